//! A provider that speaks Gemini Live, as the rest of the proxy knows providers: events of OpenAI Realtime go in and come out.
//!
//! What that protocol has no word for happens here: its session is set up once, so the set-up waits until the client has said what it
//! wants; it begins answers by itself, has none to cancel and no items. Turns by hand are kept here until an answer is wanted. Waits for
//! nothing: frames for the provider and events for the proxy gather in two queues.

use std::collections::{HashMap, HashSet, VecDeque};

use axum::body::Bytes;
use serde_json::{Value, json};

use super::super::voice::Voice;
use crate::dialect::gemini_live::{self as wire, Frame, FunctionCall, HEARS_HZ, Resume, SPEAKS_HZ};
use crate::dialect::openai_realtime::audio::{Format, bytes, to_base64};
use crate::engine::id::Ms;
use crate::media::resample::Resampler;

/// A client that has said what its session is to be often says more in the next moment, in milliseconds.
const SETTLED_MS: Ms = 150;
/// One that sends sound, or nothing, has so long to say it.
const UNSAID_MS: Ms = 1_000;
/// Sound that waits for the session to stand, or for a turn by hand to be answered, in samples: a minute. The oldest goes.
const SOUND_MAX: usize = 60 * HEARS_HZ as usize;
/// Sound of a turn by hand goes in pieces of so many samples: half a second.
const PIECE: usize = HEARS_HZ as usize / 2;
/// A line that no answer is wanted to is told this much later, in milliseconds: together with others, and with the wish if one follows.
const LINES_MS: Ms = 100;
/// Sound with a sample of this may be somebody speaking (-40 dBFS).
const LOUD: u16 = 330;
/// Lines that wait to be told; the oldest go.
const LINES_MAX: usize = 256;
/// Names of calls that are remembered.
const CALLS_MAX: usize = 256;

/// What the proxy is told.
pub(super) enum Said {
    /// An event of OpenAI Realtime.
    Event(Bytes),
    /// The provider used a tool of its own.
    Foreign(&'static str),
    /// It does not want its calls any more.
    CallsCancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No connection.
    Away,
    /// There is one, since then, and it was told nothing.
    Fresh(Ms),
    /// It was told what the session is to be.
    SetUp,
    /// The session stands.
    On,
}

/// A response as the proxy sees it: a stretch of the model's turn.
struct Round {
    id: String,
    metadata: Value,
    /// The message in it: item, its text, and whether sound of it went out.
    message: Option<Message>,
    output: Vec<Value>,
}

struct Message {
    item: String,
    index: usize,
    words: String,
    voice: Voice,
}

/// See the file's head.
pub(super) struct Live {
    pub(super) now: Ms,
    tag: String,
    ids: u64,
    model: String,
    conversation: String,
    stage: Stage,
    session: Value,
    /// The client has said what its session is to be.
    declared: bool,
    setup_at: Option<Ms>,
    sent: Value,
    handle: Option<String>,
    /// This connection goes on with the session of the one before.
    remembers: bool,
    resampler: Resampler,
    early: Vec<i16>,
    by_hand: Vec<i16>,
    turn: Vec<i16>,
    lines: Vec<(&'static str, String)>,
    lines_at: Option<Ms>,
    /// Told before the session stood.
    wants_answer: bool,
    round: Option<Round>,
    /// The rest of the model's turn is not wanted.
    muted: bool,
    /// An answer was asked for, with these metadata; true: to what was spoken, which is answered in any case.
    asked: Option<(Value, bool)>,
    /// The model goes on because its calls were answered.
    goes_on: bool,
    /// Sound went out since its last turn.
    heard: bool,
    user: Option<String>,
    user_words: String,
    user_told: bool,
    calls: HashMap<String, String>,
    void: HashSet<String>,
    outputs: Vec<(String, String, String)>,
    usage: Value,
    out: VecDeque<Bytes>,
    said: VecDeque<Said>,
    /// The connection is to be replaced, by then at the latest.
    pub(super) renew: Option<Ms>,
}

impl Live {
    pub(super) fn new(conversation: &str, tag: &str, model: &str) -> Self {
        let model = if model.contains('/') { model.to_string() } else { format!("models/{model}") };
        Self {
            now: 0, tag: tag.to_string(), ids: 0, model, conversation: conversation.to_string(), stage: Stage::Away, session: json!({}), declared: false, setup_at: None, sent: Value::Null, handle: None,
            remembers: false, resampler: Resampler::new(Format::Pcm.rate_hz(), HEARS_HZ), early: Vec::new(), by_hand: Vec::new(), turn: Vec::new(), lines: Vec::new(), lines_at: None, wants_answer: false, round: None,
            muted: false, asked: None, goes_on: false, heard: false, user: None, user_words: String::new(), user_told: false, calls: HashMap::new(), void: HashSet::new(), outputs: Vec::new(),
            usage: Value::Null, out: VecDeque::new(), said: VecDeque::new(), renew: None,
        }
    }

    pub(super) fn next_frame(&mut self) -> Option<Bytes> { self.out.pop_front() }

    pub(super) fn waiting(&self) -> usize { self.out.len() }

    pub(super) fn next_said(&mut self) -> Option<Said> { self.said.pop_front() }

    /// What was said before is still known there.
    pub(super) fn remembers(&self) -> bool { self.remembers }

    /// The client has said what its session is to be.
    pub(super) fn declare(&mut self) {
        self.declared = true;
        let settled = self.now + SETTLED_MS;
        if let Stage::Fresh(_) = self.stage { self.setup_at = Some(self.setup_at.map_or(settled, |at| at.min(settled))) }
    }

    /// A connection stands. The proxy sees a session at once; the provider gets its set-up when the client has said enough.
    pub(super) fn connected(&mut self) {
        self.stage = Stage::Fresh(self.now);
        self.remembers = self.handle.is_some();
        self.setup_at = Some(self.now + if self.declared { 0 } else { UNSAID_MS });
        self.say(&json!({"type": "session.created", "session": {}}));
    }

    /// The connection is gone, and what it was in the middle of.
    pub(super) fn disconnected(&mut self) {
        // A session that was refused before it stood is not gone on with a second time.
        if self.stage == Stage::SetUp { self.handle = None }
        (self.stage, self.sent, self.remembers, self.round, self.muted, self.asked, self.goes_on, self.renew) = (Stage::Away, Value::Null, false, None, false, None, false, None);
        self.out.clear();
        self.said.clear();
        self.lines.clear();
        self.outputs.clear();
        self.calls.clear();
        self.void.clear();
        self.wants_answer = false;
        (self.user, self.user_told) = (None, false);
        self.user_words.clear();
    }

    /// Trying again with the same words is no use: the set-up itself was refused.
    pub(super) fn is_refused(&self) -> bool { self.stage == Stage::SetUp && !self.remembers }

    pub(super) fn deadline(&self) -> Option<Ms> {
        match self.stage {
            Stage::Fresh(_) => self.setup_at,
            Stage::On if self.is_quiet() => self.lines_at,
            _ => None,
        }
    }

    pub(super) fn tick(&mut self) {
        if self.deadline().is_none_or(|at| self.now < at) { return }
        if self.stage == Stage::On { self.speak() } else { self.set_up() }
    }

    /// It says nothing and waits for no call: words to it cut nothing off.
    fn is_quiet(&self) -> bool { self.round.is_none() && self.calls.is_empty() && self.asked.is_none() && !self.goes_on }

    fn set_up(&mut self) {
        // Nothing is known of the session yet: the proxy says it with the next thing it learns.
        self.setup_at = None;
        if !matches!(self.stage, Stage::Fresh(_)) || self.session.as_object().is_none_or(serde_json::Map::is_empty) { return }
        let handle = self.handle.take();
        let setup = wire::setup(&self.model, &self.session, Resume { handle: handle.as_deref() });
        self.sent = wire::setup(&self.model, &self.session, Resume::default());
        self.send(&setup);
        self.handle = handle;
        self.stage = Stage::SetUp;
    }

    fn send(&mut self, frame: &Value) { self.out.push_back(frame.to_string().into()) }

    fn say(&mut self, event: &Value) {
        let mut event = event.clone();
        event["event_id"] = json!(self.id("event"));
        self.said.push_back(Said::Event(event.to_string().into()));
    }

    fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}g{}", self.tag, self.ids)
    }

    fn is_by_hand(&self) -> bool { self.session.pointer("/audio/input/turn_detection").is_none_or(Value::is_null) }

    /// Sound of the client at this rate.
    pub(super) fn sound(&mut self, samples: &[i16], rate_hz: u32) {
        if self.resampler.from_hz() != rate_hz { self.resampler = Resampler::new(rate_hz, HEARS_HZ) }
        let mut out = Vec::with_capacity(samples.len() * HEARS_HZ as usize / rate_hz as usize + 16);
        self.resampler.push(samples, &mut out);
        let kept = if self.is_by_hand() && self.declared { &mut self.by_hand } else if self.stage == Stage::On { return self.hear(&out) } else { &mut self.early };
        kept.extend(out);
        let over = kept.len().saturating_sub(SOUND_MAX);
        kept.drain(..over);
    }

    fn hear(&mut self, samples: &[i16]) {
        if samples.is_empty() { return }
        self.heard |= samples.iter().any(|s| s.unsigned_abs() >= LOUD);
        let bytes: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
        self.out.push_back(wire::audio(&to_base64(&bytes)).into());
    }

    /// What was said last is not wanted there: of a turn by hand nothing goes out.
    pub(super) fn forget(&mut self) { self.turn.clear() }

    /// An event of the proxy's for the provider.
    pub(super) fn ask(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "session.update" => {
                self.session = event["session"].clone();
                if self.setup_at.is_none() { self.setup_at = Some(self.now) }
                self.session_changed();
            }
            "input_audio_buffer.append" => {
                let format = self.format("input");
                let sound = event["audio"].as_str().and_then(|a| bytes(a, "audio").ok()).and_then(|b| format.decode(&b, "audio").ok());
                if let Some(sound) = sound { self.sound(&sound, format.rate_hz()) }
            }
            "input_audio_buffer.commit" => self.commit(),
            "input_audio_buffer.clear" => {
                self.by_hand.clear();
                self.say(&json!({"type": "input_audio_buffer.cleared"}));
            }
            "conversation.item.create" => self.item(&event["item"], &event["previous_item_id"]),
            "conversation.item.truncate" => self.say(&json!({"type": "conversation.item.truncated", "item_id": event["item_id"], "content_index": 0, "audio_end_ms": event["audio_end_ms"]})),
            "conversation.item.delete" => self.say(&json!({"type": "conversation.item.deleted", "item_id": event["item_id"]})),
            "conversation.item.retrieve" => self.say(&json!({"type": "error", "error": {"type": "invalid_request_error", "code": "item_not_found", "message": "This provider keeps no items that could be looked at.", "param": "item_id", "event_id": event["event_id"]}})),
            "response.create" => self.create(event),
            "response.cancel" => {
                if let Some(round) = &self.round && event["response_id"].as_str().is_none_or(|id| id == round.id) {
                    self.muted = true;
                    self.end_round("cancelled", "client_cancelled");
                }
            }
            other => tracing::debug!(kind = other, "nothing to say to this provider"),
        }
    }

    fn format(&self, side: &str) -> Format {
        match self.session["audio"][side]["format"]["type"].as_str() { Some("audio/pcmu") => Format::Ulaw, Some("audio/pcma") => Format::Alaw, _ => Format::Pcm }
    }

    /// A session that stands is given other instructions and tools where it takes them; for anything else there has to be a new one.
    fn session_changed(&mut self) {
        if !matches!(self.stage, Stage::SetUp | Stage::On) { return }
        let wanted = wire::setup(&self.model, &self.session, Resume::default());
        if wanted == self.sent { return }
        let but_context = |setup: &Value| {
            let mut rest = setup["setup"].clone();
            if let Some(rest) = rest.as_object_mut() { for name in ["systemInstruction", "tools"] { rest.remove(name); } }
            rest
        };
        if wire::takes_updates(&self.model) && but_context(&wanted) == but_context(&self.sent) {
            self.sent = wanted;
            let update = wire::context_update(&self.session);
            self.send(&update);
        } else {
            // The new one knows what was said from the conversation: a session that is gone on with would keep what it was told.
            self.handle = None;
            self.renew = Some(Ms::MAX);
        }
    }

    fn commit(&mut self) {
        if !self.is_by_hand() {
            if self.stage == Stage::On { self.send(&wire::stream_end()) }
            return;
        }
        if self.by_hand.is_empty() {
            return self.say(&json!({"type": "error", "error": {"type": "invalid_request_error", "code": "input_audio_buffer_commit_empty", "message": "Error committing input audio buffer: the buffer is empty.", "param": null}}));
        }
        self.turn.append(&mut self.by_hand);
        let over = self.turn.len().saturating_sub(SOUND_MAX);
        self.turn.drain(..over);
        let item = self.id("item");
        self.user_item(&item);
        self.user = Some(item);
        self.user_told = true;
    }

    /// The person's turn as an item.
    fn user_item(&mut self, item: &str) {
        self.say(&json!({"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": null}));
        self.added(&json!({"id": item, "object": "realtime.item", "type": "message", "status": "completed", "role": "user", "content": [{"type": "input_audio", "transcript": null}]}), &Value::Null);
    }

    fn added(&mut self, item: &Value, before: &Value) {
        for kind in ["added", "done"] { self.say(&json!({"type": format!("conversation.item.{kind}"), "item": item, "previous_item_id": before})) }
    }

    /// An item of the conversation: words wait until an answer is wanted, outputs of calls until all calls have theirs.
    fn item(&mut self, item: &Value, before: &Value) {
        let mut shown = item.clone();
        if shown["id"].as_str().is_none() { shown["id"] = json!(self.id("item")) }
        self.added(&shown, before);
        if item["type"] == "function_call_output" {
            let call = item["call_id"].as_str().unwrap_or_default();
            let Some(name) = self.calls.remove(call) else { return };
            if !self.void.remove(call) { self.outputs.push((call.to_string(), name, item["output"].as_str().unwrap_or_default().to_string())) }
            if self.calls.is_empty() { self.answer_calls() }
            return;
        }
        let role = match item["role"].as_str() { Some("assistant") => "model", _ => "user" };
        for part in item["content"].as_array().into_iter().flatten() {
            if let Some(text) = part["text"].as_str().filter(|t| !t.is_empty()) {
                if self.lines.len() >= LINES_MAX { self.lines.remove(0); }
                self.lines.push((role, text.to_string()));
                self.lines_at = Some(self.now + LINES_MS);
            }
            if let Some(sound) = part["audio"].as_str().and_then(|a| bytes(a, "audio").ok()) {
                let format = self.format("input");
                if let Ok(samples) = format.decode(&sound, "audio") {
                    let mut out = Vec::new();
                    Resampler::new(format.rate_hz(), HEARS_HZ).push(&samples, &mut out);
                    self.turn.extend(out);
                }
            }
        }
    }

    fn answer_calls(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        if outputs.is_empty() { return }
        let frame = wire::tool_response(&outputs);
        self.send(&frame);
        self.goes_on = true;
    }

    fn create(&mut self, event: &Value) {
        // Its calls were answered: it goes on by itself.
        if self.goes_on && self.lines.is_empty() && self.turn.is_empty() {
            self.asked = Some((event["response"]["metadata"].clone(), false));
            return;
        }
        let by_itself = self.stage == Stage::On && !self.is_by_hand() && (self.heard || self.user.is_some()) && self.lines.is_empty() && self.turn.is_empty() && event["response"]["instructions"].is_null();
        if by_itself {
            // It answers what was said without being asked.
            self.asked = Some((event["response"]["metadata"].clone(), true));
            return;
        }
        let (session, one) = (self.session["instructions"].as_str().unwrap_or_default(), event["response"]["instructions"].as_str().unwrap_or_default());
        // Instructions of one response stand behind the session's, which it knows.
        let extra = one.strip_prefix(session).unwrap_or(one).trim();
        if !extra.is_empty() { self.lines.push(("user", format!("[instructions] {extra}"))) }
        self.asked = Some((event["response"]["metadata"].clone(), false));
        self.wants_answer = true;
        self.setup_at = Some(self.now);
        if self.stage == Stage::On { self.speak() } else { self.set_up() }
    }

    /// Tells what waits, and asks for the answer that is wanted.
    fn speak(&mut self) {
        self.lines_at = None;
        let mut lines = std::mem::take(&mut self.lines);
        let wants = std::mem::take(&mut self.wants_answer);
        let turn = std::mem::take(&mut self.turn);
        // A turn without a word is refused by some.
        if lines.is_empty() && wants && turn.is_empty() { lines.push(("user", ".".into())) }
        if !lines.is_empty() {
            let frame = wire::content(&lines, wants && turn.is_empty());
            self.send(&frame);
        }
        if turn.is_empty() { return }
        // With detection by the provider there is no beginning to tell: the turn is closed by the end of the stream.
        let by_hand = self.is_by_hand();
        if by_hand { self.send(&wire::activity(true)) }
        for piece in turn.chunks(PIECE) { self.hear(piece) }
        let end = if by_hand { wire::activity(false) } else { wire::stream_end() };
        self.send(&end);
    }

    /// A frame of the provider. False: it is none.
    pub(super) fn frame(&mut self, text: &str) -> bool {
        let Some(frame) = Frame::read(text) else { return false };
        if let Some(tool) = frame.foreign { self.said.push_back(Said::Foreign(tool)) }
        if frame.ready && self.stage == Stage::SetUp { self.stands() }
        if let Some(handle) = frame.handle { self.handle = handle }
        if let Some(ms) = frame.ends_in_ms { self.renew = Some((self.now + ms).saturating_sub(UNSAID_MS)) }
        if let Some(usage) = frame.usage { self.usage = usage }
        if let Some((code, message)) = frame.error { self.failed(&code, &message) }
        if let Some(content) = frame.content { self.content(content) }
        if !frame.calls.is_empty() { self.called(frame.calls) }
        if !frame.cancelled.is_empty() { self.cancelled(frame.cancelled) }
        true
    }

    /// It could not do something. An answer that was asked for is one that failed.
    fn failed(&mut self, code: &str, message: &str) {
        self.say(&json!({"type": "error", "error": {"type": "server_error", "code": code, "message": message, "param": null}}));
        if self.asked.is_some() || self.goes_on { self.begin_round() }
        self.end_round("failed", "provider_error");
    }

    fn stands(&mut self) {
        self.stage = Stage::On;
        let early = std::mem::take(&mut self.early);
        if self.wants_answer || !self.lines.is_empty() { self.speak() }
        if self.is_by_hand() { self.by_hand.splice(0..0, early); } else { for piece in early.chunks(PIECE) { self.hear(piece) } }
        // What changed while it was being set up.
        self.session_changed();
    }

    fn content(&mut self, content: wire::Content) {
        if let Some((words, finished)) = &content.heard { self.understood(words, *finished) }
        if content.interrupted {
            let item = self.user.get_or_insert_with(String::new).clone();
            let item = if item.is_empty() { self.id("item") } else { item };
            self.user = Some(item.clone());
            if !self.muted { self.say(&json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": item})) }
            self.end_round("cancelled", "turn_detected");
            (self.muted, self.heard, self.goes_on) = (false, true, false);
        }
        let speaks = !content.audio.is_empty() || !content.said.is_empty() || !content.text.is_empty();
        if speaks && !self.muted && !content.interrupted {
            self.begin_message();
            self.words(if self.is_text() { &content.text } else { &content.said });
            for (sound, rate) in &content.audio { self.sounds(sound, *rate) }
        }
        if content.complete {
            self.end_round("completed", "");
            self.muted = false;
        }
    }

    fn is_text(&self) -> bool { self.session["output_modalities"].as_array().is_some_and(|m| m.iter().any(|m| m == "text")) }

    /// What the provider understood of the person. The item it belongs to is told when the turn is closed.
    fn understood(&mut self, words: &str, finished: bool) {
        if self.user.is_none() {
            let item = self.id("item");
            self.say(&json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": item}));
            self.user = Some(item);
            self.user_told = false;
        }
        if self.user_words.len() + words.len() <= 32_768 { self.user_words.push_str(words) }
        if let Some(item) = self.user.clone().filter(|_| self.user_told && !words.is_empty()) {
            self.say(&json!({"type": "conversation.item.input_audio_transcription.delta", "item_id": item, "content_index": 0, "delta": words}));
        }
        if finished && self.user_told { self.end_user() }
    }

    /// The whole of what the person said, once.
    fn end_user(&mut self) {
        let words = std::mem::take(&mut self.user_words);
        let Some(item) = self.user.take() else { return };
        self.user_told = false;
        if !words.trim().is_empty() {
            self.say(&json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "content_index": 0, "transcript": words.trim(), "usage": {"type": "duration", "seconds": 0}}));
        }
    }

    /// The model begins: what was said to it is a turn.
    fn begin_round(&mut self) {
        if self.round.is_some() { return }
        let asked = self.asked.take();
        let heard = std::mem::take(&mut self.heard) || self.user.is_some();
        let to_speech = asked.as_ref().is_none_or(|(_, spoken)| *spoken) && !self.goes_on && heard;
        if to_speech && !self.user_told {
            let item = match self.user.take() { Some(item) => item, None => {
                let item = self.id("item");
                self.say(&json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": item}));
                item
            } };
            self.say(&json!({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 0, "item_id": item}));
            self.user_item(&item);
            if !self.user_words.is_empty() {
                let words = self.user_words.clone();
                self.say(&json!({"type": "conversation.item.input_audio_transcription.delta", "item_id": item, "content_index": 0, "delta": words}));
            }
            (self.user, self.user_told) = (Some(item), true);
        }
        self.goes_on = false;
        let metadata = asked.map_or(Value::Null, |(metadata, _)| metadata);
        let id = self.id("resp");
        let round = Round { id, metadata, message: None, output: Vec::new() };
        let created = self.response(&round, "in_progress", &Value::Null);
        self.round = Some(round);
        self.say(&json!({"type": "response.created", "response": created}));
    }

    fn response(&self, round: &Round, status: &str, details: &Value) -> Value {
        let usage = if status == "in_progress" { Value::Null } else { self.usage.clone() };
        json!({
            "object": "realtime.response", "id": round.id, "status": status, "status_details": details, "output": round.output, "conversation_id": self.conversation,
            "output_modalities": if self.is_text() { json!(["text"]) } else { json!(["audio"]) }, "max_output_tokens": self.session.get("max_output_tokens").cloned().unwrap_or_else(|| json!("inf")),
            "audio": {"output": {"format": self.format("output").to_json(), "voice": self.session["audio"]["output"]["voice"]}}, "usage": usage, "metadata": round.metadata,
        })
    }

    fn begin_message(&mut self) {
        self.begin_round();
        let (format, text, item) = (self.format("output"), self.is_text(), self.id("item"));
        let Some(round) = self.round.as_mut().filter(|r| r.message.is_none()) else { return };
        let (id, index) = (round.id.clone(), round.output.len());
        round.message = Some(Message { item: item.clone(), index, words: String::new(), voice: Voice::new(format) });
        let json = json!({"id": item, "object": "realtime.item", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
        let part = if text { json!({"type": "text", "text": ""}) } else { json!({"type": "audio", "transcript": ""}) };
        self.say(&json!({"type": "response.output_item.added", "response_id": id, "output_index": index, "item": json}));
        self.say(&json!({"type": "conversation.item.added", "item": json, "previous_item_id": null}));
        self.say(&json!({"type": "response.content_part.added", "response_id": id, "item_id": item, "output_index": index, "content_index": 0, "part": part}));
    }

    /// What the events of the open message say of it.
    fn at(&self) -> Option<(String, String, usize)> {
        let round = self.round.as_ref()?;
        round.message.as_ref().map(|m| (round.id.clone(), m.item.clone(), m.index))
    }

    fn words(&mut self, words: &str) {
        if words.is_empty() { return }
        let Some((id, item, index)) = self.at() else { return };
        if let Some(message) = self.round.as_mut().and_then(|r| r.message.as_mut()) { message.words.push_str(words) }
        let kind = if self.is_text() { "response.output_text.delta" } else { "response.output_audio_transcript.delta" };
        self.say(&json!({"type": kind, "response_id": id, "item_id": item, "output_index": index, "content_index": 0, "delta": words}));
    }

    /// Sound of the model. At the client's rate it goes on as it is.
    fn sounds(&mut self, base64: &str, rate_hz: u32) {
        if self.is_text() { return }
        let as_it_is = rate_hz == SPEAKS_HZ && self.format("output") == Format::Pcm;
        if as_it_is { return self.delta(base64) }
        let Some(samples) = bytes(base64, "data").ok().and_then(|b| Format::Pcm.decode(&b, "data").ok()) else { return };
        let Some(message) = self.round.as_mut().and_then(|r| r.message.as_mut()) else { return };
        for delta in message.voice.push(&samples, rate_hz) { self.delta(&delta) }
    }

    fn delta(&mut self, base64: &str) {
        // Written by hand: base64 needs no escaping, and most of what comes is this. What is none is left out.
        let Some((id, item, index)) = self.at() else { return };
        if !base64.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)) { return }
        let event = self.id("event");
        let frame = format!(r#"{{"type":"response.output_audio.delta","event_id":"{event}","response_id":"{id}","item_id":"{item}","output_index":{index},"content_index":0,"delta":"{base64}"}}"#);
        self.said.push_back(Said::Event(frame.into()));
    }

    fn end_message(&mut self, status: &str) {
        let Some((id, item, index)) = self.at() else { return };
        let Some(mut message) = self.round.as_mut().and_then(|r| r.message.take()) else { return };
        if status == "completed" {
            let rest = message.voice.finish();
            let words = std::mem::take(&mut message.words);
            if let Some(round) = self.round.as_mut() { round.message = Some(message) }
            for delta in rest { self.delta(&delta) }
            message = match self.round.as_mut().and_then(|r| r.message.take()) { Some(message) => message, None => return };
            message.words = words;
        }
        let (text, words) = (self.is_text(), message.words);
        let at = json!({"response_id": id, "item_id": item, "output_index": index, "content_index": 0});
        let with = |kind: &str, name: &str, value: Value| { let mut event = at.clone(); event["type"] = json!(kind); if !name.is_empty() { event[name] = value } event };
        let (part, content) = if text { (json!({"type": "text", "text": words}), json!({"type": "output_text", "text": words})) } else { (json!({"type": "audio", "transcript": words}), json!({"type": "output_audio", "transcript": words})) };
        if text {
            self.say(&with("response.output_text.done", "text", json!(words)));
        } else {
            self.say(&with("response.output_audio.done", "", Value::Null));
            self.say(&with("response.output_audio_transcript.done", "transcript", json!(words)));
        }
        self.say(&with("response.content_part.done", "part", part));
        let status = if status == "completed" { "completed" } else { "incomplete" };
        let whole = json!({"id": item, "object": "realtime.item", "type": "message", "status": status, "role": "assistant", "content": [content]});
        self.say(&json!({"type": "conversation.item.done", "item": whole, "previous_item_id": null}));
        self.say(&json!({"type": "response.output_item.done", "response_id": id, "output_index": index, "item": whole}));
        if let Some(round) = &mut self.round { round.output.push(whole) }
    }

    fn end_round(&mut self, status: &str, reason: &str) {
        self.end_message(status);
        let Some(round) = self.round.take() else { return };
        let details = if reason.is_empty() { Value::Null } else { json!({"type": status, "reason": reason}) };
        let done = self.response(&round, status, &details);
        self.usage = Value::Null;
        self.say(&json!({"type": "response.done", "response": done}));
        if self.user_told { self.end_user() }
    }

    /// Calls end the stretch: their outputs come before the rest of the turn.
    fn called(&mut self, calls: Vec<FunctionCall>) {
        if self.muted {
            // It waits for an answer to each, whoever wants to hear of it.
            let refused: Vec<_> = calls.into_iter().map(|c| (c.id, c.name, json!({"error": "The person interrupted; the call was not made."}).to_string())).collect();
            let frame = wire::tool_response(&refused);
            return self.send(&frame);
        }
        self.begin_round();
        self.end_message("completed");
        for call in calls {
            let id = if call.id.is_empty() { self.id("call") } else { call.id };
            if self.calls.len() >= CALLS_MAX || self.calls.contains_key(&id) { continue }
            self.calls.insert(id.clone(), call.name.clone());
            let item = self.id("item");
            let Some(round) = &self.round else { return };
            let (response, index) = (round.id.clone(), round.output.len());
            let begun = json!({"id": item, "object": "realtime.item", "type": "function_call", "status": "in_progress", "call_id": id, "name": call.name, "arguments": ""});
            let mut whole = begun.clone();
            (whole["status"], whole["arguments"]) = (json!("completed"), json!(call.arguments));
            self.say(&json!({"type": "response.output_item.added", "response_id": response, "output_index": index, "item": begun}));
            self.say(&json!({"type": "conversation.item.added", "item": begun, "previous_item_id": null}));
            self.say(&json!({"type": "response.function_call_arguments.delta", "response_id": response, "item_id": item, "output_index": index, "call_id": id, "delta": call.arguments}));
            self.say(&json!({"type": "response.function_call_arguments.done", "response_id": response, "item_id": item, "output_index": index, "call_id": id, "name": call.name, "arguments": call.arguments}));
            self.say(&json!({"type": "conversation.item.done", "item": whole, "previous_item_id": null}));
            self.say(&json!({"type": "response.output_item.done", "response_id": response, "output_index": index, "item": whole}));
            if let Some(round) = &mut self.round { round.output.push(whole) }
        }
        self.end_round("completed", "");
    }

    /// It does not want the outputs of these any more.
    fn cancelled(&mut self, ids: Vec<String>) {
        let known: Vec<String> = ids.into_iter().filter(|id| self.calls.contains_key(id)).collect();
        if known.is_empty() { return }
        self.outputs.retain(|(id, ..)| !known.contains(id));
        self.void.extend(known);
        self.said.push_back(Said::CallsCancelled);
    }
}
