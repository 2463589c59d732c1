//! What the conversation says and decides beside the provider: its own words as answers of their own or within one that waits, verdicts,
//! outputs of calls, and what the provider is to know.

use serde_json::{Map, Value, json};

use super::super::voice::Voice;
use super::{Create, Live, Proxy, VERDICT_MS};
use crate::dialect::openai_chat;
use crate::dialect::openai_realtime::item::{Place, assistant};
use crate::dialect::openai_realtime::response::{Response, Status};
use crate::dialect::openai_realtime::server::At;
use crate::dialect::openai_realtime::session::Modality;
use crate::dialect::openai_realtime::upstream::line;
use crate::engine::conversation::{Item, StepRequest};
use crate::engine::id::{ItemId, Ms, SpeechId};
use crate::session::leg::{FromProvider, LegEnd, LegOutput};

/// Most lines and calls that a provider is told of when it begins anew; the oldest are left out.
const SEED_MAX: usize = 60;

/// The gateway speaks.
pub(super) struct Saying {
    speech: SpeechId,
    at: At,
    index: u64,
    text: String,
    voice: Voice,
    /// It is an answer of its own, not part of one that waits.
    own: bool,
}

impl Proxy {
    /// Something of the conversation. Answers with the reason once it lets the leg go.
    pub(super) fn leg(&mut self, now: Ms, output: LegOutput) -> Option<String> {
        self.at(now);
        match output {
            LegOutput::SpeechBegan { .. } | LegOutput::Text { .. } | LegOutput::Audio { .. } | LegOutput::SpeechEnded { .. } => self.words(now, output),
            LegOutput::SpeechStarted { item, .. } => {
                self.verdict.listening = Some(now);
                Self::remember(&mut self.known, &item.0);
            }
            // The provider has heard these words itself.
            LegOutput::Committed { item } => Self::remember(&mut self.known, &item.0),
            LegOutput::Judged { consumed } => self.judged(now, consumed),
            LegOutput::Brief(brief) => {
                let new = self.brief.replace(brief);
                self.take_back_names();
                let told = self.brief.as_ref().zip(new.as_ref())
                    .is_none_or(|(now, before)| now.instructions != before.instructions || now.tools != before.tools || now.instructed != before.instructed);
                if told { self.tell_session() }
            }
            LegOutput::History(items) => self.seed(now, &items),
            LegOutput::Step(request) => self.step(now, &request),
            LegOutput::CancelStep => self.cut_answer(now, "client_cancelled"),
            LegOutput::CallDone { call, output } => self.call_done(now, &call, output),
            LegOutput::Handed { call } => self.handed(now, &call),
            LegOutput::TurnBegan { .. } => self.turn_ended = false,
            LegOutput::TurnEnded { .. } => {
                self.turn_ended = true;
                self.turn_over(now);
            }
            // The provider tells the client of its turns.
            LegOutput::SpeechStopped { .. } | LegOutput::UserTranscript { .. } | LegOutput::Notice { .. } => {}
            LegOutput::Closed { reason } => return Some(reason),
        }
        self.go_on(now);
        None
    }

    /// A client's tool that has the name of one of the gateway's is not taken.
    pub(super) fn take_back_names(&mut self) {
        let Some(names) = self.brief.as_ref().map(|b| b.names.clone()) else { return };
        let taken = self.session.drop_functions(|name| names.iter().any(|n| n == name));
        if !taken.is_empty() {
            self.notice("client_tools_left_out", format!("The realtime client declared tools that the gateway has already ({}); the gateway's are used.", taken.join(", ")));
        }
    }

    fn judged(&mut self, now: Ms, consumed: bool) {
        self.verdict.listening = None;
        if self.verdict.committed.is_some() {
            self.resolve(now, consumed);
        } else if consumed && !self.session.turns.is_some_and(|t| t.create_response) {
            // The client asks for answers itself: not for this one.
            let asked = self.create.take_if(|c| c.until.is_some());
            if asked.is_none() {
                // Nor when it asks a moment later.
                self.verdict.judged = Some((true, now));
                self.consume(now);
            }
        } else {
            self.verdict.judged = Some((consumed, now));
            if consumed { self.consume(now) }
        }
        if let Some(create) = self.create.as_mut() { create.until = None }
        self.try_create(now);
    }

    /// The conversation wants an answer: to tools' results, to typed words, or to a note of the gateway.
    fn step(&mut self, now: Ms, request: &StepRequest) {
        self.tell_outputs();
        let notes = request.items.iter().rev().take_while(|i| matches!(i, Item::Gateway(_))).count();
        let (said, noted) = request.items.split_at(request.items.len() - notes);
        self.lines(said);
        for item in noted {
            if let Item::Gateway(note) = item { self.hidden_line("system", &openai_chat::note(note)) }
        }
        let goes_on = self.answer.as_ref().is_some_and(|a| a.waits);
        // A client that was handed calls asks for the next answer itself.
        let clients = !goes_on && request.step > 0 && notes == 0;
        if clients {
            return self.tell_of(FromProvider::Done(LegEnd::Completed));
        }
        self.want_create(now, Create { response: Map::new(), event_id: None, goes_on, until: None });
    }

    /// Lines that the provider does not have yet.
    fn lines(&mut self, items: &[Item]) {
        for item in items {
            let (id, role, text) = match item {
                Item::User { id, text } => (id, "user", openai_chat::said(text)),
                Item::Assistant { id, text, .. } => (id, "assistant", text.clone()),
                _ => continue,
            };
            if text.is_empty() || self.known.contains(&id.0) { continue }
            Self::remember(&mut self.known, &id.0);
            self.hidden_line(role, &text);
        }
    }

    /// A provider that begins from nothing is told what was said, and what came of its predecessor's calls.
    fn seed(&mut self, now: Ms, items: &[Item]) {
        if !self.ready || self.seeded { return }
        self.seeded = true;
        // One that goes on with its session knows it all.
        let known = self.live.as_ref().is_some_and(Live::remembers);
        let first = if known { items.len() } else { items.len().saturating_sub(SEED_MAX) };
        for item in &items[first..] {
            match item {
                Item::Call { id, tool, arguments } if !self.orphans.contains_key(&id.0) => {
                    if let Some(output) = items.iter().find_map(|i| match i { Item::Result { id: of, output, .. } if of == id => Some(output), _ => None }) {
                        self.hidden_line("system", &format!("[gateway] Before, {tool} was called with {arguments}; it answered {output}"));
                    }
                }
                line => self.lines(std::slice::from_ref(line)),
            }
        }
        if std::mem::take(&mut self.again) {
            let goes_on = self.answer.as_ref().is_some_and(|a| a.waits);
            self.want_create(now, Create { response: Map::new(), event_id: None, goes_on, until: None });
        }
        self.say_waiting(now);
        self.try_create(now);
    }

    pub(super) fn hidden_line(&mut self, role: &str, text: &str) {
        let (event, id) = (self.own_event(None), self.new_id("item"));
        Self::remember(&mut self.hidden, &id);
        let mut create = line(&event, role, text);
        create["item"]["id"] = json!(id);
        self.ask(&create);
    }

    /// The conversation's turn is over: an answer that waited for tools gets no further round.
    fn turn_over(&mut self, now: Ms) {
        if !self.turn_ended || self.saying.is_some() || !self.waiting_words.is_empty() { return }
        let going_on = self.asked || self.create.as_ref().is_some_and(|c| c.goes_on);
        if self.answer.as_ref().is_some_and(|a| a.waits) && !going_on && !self.has_open_calls() {
            self.close_answer(now, "completed", "");
        }
    }

    /// The gateway's own words: said when the provider is silent.
    fn words(&mut self, now: Ms, output: LegOutput) {
        // Before the client has been told of its session nothing is said to it.
        let busy = self.saying.is_none() && (!self.told_session || !self.waiting_words.is_empty() || self.answer.as_ref().is_some_and(|a| a.active));
        if busy { self.waiting_words.push_back(output) } else { self.word(now, output) }
    }

    /// What waited to be said is said, if the provider is silent.
    pub(super) fn say_waiting(&mut self, now: Ms) {
        while self.told_session && self.answer.as_ref().is_none_or(|a| !a.active) {
            let Some(output) = self.waiting_words.pop_front() else { break };
            self.word(now, output);
        }
    }

    fn word(&mut self, now: Ms, output: LegOutput) {
        match output {
            LegOutput::SpeechBegan { speech, item, .. } => self.begin(speech, &item),
            LegOutput::Text { speech, text } => self.text(speech, &text),
            LegOutput::Audio { speech, samples, rate_hz } => self.audio(speech, &samples, rate_hz),
            LegOutput::SpeechEnded { speech, end } => self.end(now, speech, end),
            _ => {}
        }
    }

    fn begin(&mut self, speech: SpeechId, item: &ItemId) {
        if self.saying.is_some() { self.finish_words(LegEnd::Completed) }
        let own = self.answer.is_none();
        let (response, index) = match &mut self.answer {
            Some(answer) => {
                answer.next += 1;
                (answer.id.clone(), answer.next - 1)
            }
            None => (self.new_id("resp"), 0),
        };
        if own {
            let created = self.response_json(&response, Status::InProgress, Vec::new());
            let created = self.writer.response_created(created);
            self.send(created);
        }
        let at = At { response, item: item.0.clone() };
        let part = match self.session.modality { Modality::Audio => json!({"type": "audio", "transcript": ""}), Modality::Text => json!({"type": "text", "text": ""}) };
        let sent_ms = (self.session.modality == Modality::Audio).then_some(0);
        let json = assistant(&item.0, "in_progress", None);
        self.items.put(&item.0, json.clone(), sent_ms, &Place::End);
        let before = self.last_visible.replace(item.0.clone());
        let frames = [self.writer.output_item_added(&at.response, &json), self.writer.item_added(&json, before.as_deref()), self.writer.part_added(&at, part)];
        self.saying = Some(Saying { speech, at, index, text: String::new(), voice: Voice::new(self.session.output_format), own });
        frames.into_iter().for_each(|f| self.say_frame(f));
    }

    /// A frame of the gateway's speech, at its place in the answer.
    fn say_frame(&mut self, frame: String) {
        let index = self.saying.as_ref().map_or(0, |s| s.index);
        let frame = if index > 0 { frame.replacen("\"output_index\":0", &format!("\"output_index\":{index}"), 1) } else { frame };
        self.send(frame);
    }

    fn text(&mut self, speech: SpeechId, text: &str) {
        let Some(saying) = self.saying.as_mut().filter(|s| s.speech == speech) else { return };
        saying.text.push_str(text);
        let at = saying.at.clone();
        let frame = match self.session.modality { Modality::Audio => self.writer.transcript_delta(&at, text), Modality::Text => self.writer.text_delta(&at, text) };
        self.say_frame(frame);
    }

    fn audio(&mut self, speech: SpeechId, samples: &[i16], rate_hz: u32) {
        if self.session.modality != Modality::Audio { return }
        let Some(saying) = self.saying.as_mut().filter(|s| s.speech == speech) else { return };
        let deltas = saying.voice.push(samples, rate_hz);
        self.deltas(&deltas);
    }

    fn deltas(&mut self, deltas: &[String]) {
        let Some(saying) = &self.saying else { return };
        let at = saying.at.clone();
        self.items.sent(&at.item, saying.voice.sent_ms());
        for delta in deltas {
            let frame = self.writer.audio_delta(&at, delta);
            self.say_frame(frame);
        }
    }

    fn end(&mut self, now: Ms, speech: SpeechId, end: LegEnd) {
        let Some(saying) = self.saying.as_mut().filter(|s| s.speech == speech) else { return };
        if end == LegEnd::Completed && self.session.modality == Modality::Audio {
            let rest = saying.voice.finish();
            self.deltas(&rest);
        }
        self.finish_words(end);
        self.go_on(now);
        self.say_waiting(now);
        self.turn_over(now);
        self.try_create(now);
    }

    /// The frames that end the gateway's speech, and the answer if it is one of its own.
    fn finish_words(&mut self, end: LegEnd) {
        let Some(saying) = self.saying.as_ref() else { return };
        let (at, text, own) = (saying.at.clone(), saying.text.clone(), saying.own);
        let status = match end { LegEnd::Completed => Status::Completed, LegEnd::Interrupted => Status::TurnDetected, LegEnd::Cancelled => Status::ClientCancelled, LegEnd::Failed => Status::Completed };
        let (frames, part, content) = match self.session.modality {
            Modality::Audio => (vec![self.writer.audio_done(&at), self.writer.transcript_done(&at, &text)], json!({"type": "audio", "transcript": text}), json!({"type": "output_audio", "transcript": text})),
            Modality::Text => (vec![self.writer.text_done(&at, &text)], json!({"type": "text", "text": text}), json!({"type": "output_text", "text": text})),
        };
        let item = assistant(&at.item, status.item_word(), Some(content));
        self.items.settle(&at.item, item.clone());
        let before = self.items.previous(&at.item);
        frames.into_iter().for_each(|f| self.say_frame(f));
        for frame in [self.writer.part_done(&at, part), self.writer.item_done(&item, before.as_deref()), self.writer.output_item_done(&at.response, &item)] {
            self.say_frame(frame);
        }
        self.saying = None;
        if own {
            let done = self.response_json(&at.response, status, vec![item]);
            let done = self.writer.response_done(done);
            self.send(done);
        } else if let Some(answer) = &mut self.answer {
            answer.add(item);
        }
    }

    /// The answer that the gateway is speaking in ends: so do its words.
    pub(super) fn end_words_in_answer(&mut self) {
        if self.saying.as_ref().is_some_and(|s| !s.own) { self.finish_words(LegEnd::Interrupted) }
    }

    fn response_json(&self, id: &str, status: Status, output: Vec<Value>) -> Value {
        Response {
            id, conversation: &self.conversation, status, modality: self.session.modality, metadata: &Value::Null, format: self.session.output_format, voice: self.session.voice(),
            max_output_tokens: self.session.max_output_tokens(), output,
        }
        .to_json()
    }

    /// The provider is missed: the person is told, once.
    pub(super) fn away(&mut self) { self.tell_of(FromProvider::Away) }

    /// How long a client's wish for an answer waits for a verdict.
    pub(super) fn verdict_until(&self, now: Ms) -> Option<Ms> { (self.verdict.listening.is_some()).then_some(now + VERDICT_MS) }
}
