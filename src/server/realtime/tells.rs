//! What the conversation tells, written as server events in the order clients rely on.
//!
//! One response is open at a time. A turn opens one; the next speech becomes its content, whosever words they are; a speech ends its
//! response. A speech that finds none open makes a whole response of its own.

use serde_json::{Value, json};

use super::door::{Door, Saying};
use super::voice::Voice;
use crate::dialect::openai_realtime::item::{Place, assistant, user_audio};
use crate::dialect::openai_realtime::response::Status;
use crate::dialect::openai_realtime::server::At;
use crate::dialect::openai_realtime::session::Modality;
use crate::engine::id::{ItemId, Ms, SpeechId, TurnId};
use crate::session::leg::{LegEnd, LegOutput};

/// Longest transcript that is kept for `response.done`, in bytes (chosen; the deltas carry everything).
const WORDS_MAX: usize = 65_536;

impl Door {
    /// Writes what the conversation says. Answers with the reason once the conversation lets the leg go.
    pub(super) fn leg(&mut self, now: Ms, output: LegOutput) -> Option<String> {
        match output {
            LegOutput::SpeechStarted { at_ms, item, .. } => self.speech_started(at_ms, item),
            LegOutput::SpeechStopped { at_ms, item, .. } => self.speech_stopped(at_ms, &item),
            LegOutput::Committed { item } => self.committed(&item),
            LegOutput::UserTranscript { item, text } => self.user_transcript(&item, text.as_deref()),
            LegOutput::TurnBegan { turn } => self.turn_began(now, turn),
            LegOutput::SpeechBegan { speech, item, turn } => self.speech_began(now, speech, &item, turn),
            LegOutput::Text { speech, text } => self.words(speech, &text),
            LegOutput::Audio { speech, samples, rate_hz } => self.sound(speech, &samples, rate_hz),
            LegOutput::SpeechEnded { speech, end } => self.speech_ended(speech, end),
            LegOutput::TurnEnded { turn, end } => self.turn_ended(turn, end),
            // Only a mirror shows notices; here one explains a response that fails.
            LegOutput::Notice { code, message } => self.trouble = Some((code, message)),
            // Of proxied sessions, which have a door of their own.
            LegOutput::Brief(_) | LegOutput::History(_) | LegOutput::Step(_) | LegOutput::CancelStep | LegOutput::CallDone { .. } | LegOutput::Handed { .. } | LegOutput::Judged { .. } => {}
            LegOutput::Closed { reason } => return Some(reason),
        }
        None
    }

    fn speech_started(&mut self, at_ms: Ms, item: ItemId) {
        let started = self.writer.speech_started(&item.0, at_ms);
        self.send(started);
        self.utterance = Some((item, at_ms, at_ms));
    }

    fn speech_stopped(&mut self, at_ms: Ms, item: &ItemId) {
        let stopped = self.writer.speech_stopped(&item.0, at_ms);
        self.send(stopped);
        if let Some(utterance) = self.utterance.as_mut().filter(|utterance| utterance.0 == *item) {
            utterance.2 = at_ms;
        }
    }

    fn committed(&mut self, item: &ItemId) {
        let previous = self.items.last();
        self.ear.turned();
        let json = user_audio(&item.0, None);
        self.items.put(&item.0, json.clone(), None, &Place::End);
        for frame in [
            self.writer.committed(&item.0, previous.as_deref()),
            self.writer.item_added(&json, previous.as_deref()),
            self.writer.item_done(&json, previous.as_deref()),
        ] {
            self.send(frame);
        }
    }

    fn user_transcript(&mut self, item: &ItemId, text: Option<&str>) {
        let seconds = match &self.utterance {
            Some((id, from, to)) if id == item => to.saturating_sub(*from) as f64 / 1_000.0,
            _ => 0.0,
        };
        self.items.words(&item.0, text.unwrap_or_default());
        if !self.session.transcribes() {
            return;
        }
        let frame = match text {
            Some(text) => self.writer.transcription_completed(&item.0, text, seconds),
            None => self.writer.transcription_failed(&item.0, "nothing_understood", "Nothing was understood."),
        };
        self.send(frame);
    }

    fn turn_began(&mut self, now: Ms, turn: TurnId) {
        self.turn = Some(turn);
        match &mut self.open {
            Some(open) => {
                open.turn.get_or_insert(turn);
            }
            None => {
                self.open_response(now, Some(turn), self.session.modality, Value::Null);
            }
        }
    }

    fn turn_ended(&mut self, turn: TurnId, end: LegEnd) {
        if self.turn == Some(turn) {
            self.turn = None;
        }
        if let Some(open) = self.open.take_if(|open| open.turn == Some(turn) && open.saying.is_none()) {
            let status = self.status(end);
            self.close_response(&open, status, Vec::new());
        }
    }

    fn speech_began(&mut self, now: Ms, speech: SpeechId, item: &ItemId, turn: Option<TurnId>) {
        if let Some(before) = self.open.as_ref().and_then(|open| open.saying.as_ref()).map(|saying| saying.speech) {
            self.speech_ended(before, LegEnd::Completed);
        }
        if self.open.is_none() {
            self.open_response(now, turn, self.session.modality, Value::Null);
        }
        let previous = self.items.last();
        let Some(open) = &mut self.open else { return };
        let at = At { response: open.id.clone(), item: item.0.clone() };
        open.saying = Some(Saying {
            speech,
            at: at.clone(),
            text: String::new(),
            voice: Voice::new(self.session.output_format),
        });
        let (part, sent_ms) = match open.modality {
            Modality::Audio => (json!({"type": "audio", "transcript": ""}), Some(0)),
            Modality::Text => (json!({"type": "text", "text": ""}), None),
        };
        let json = assistant(&item.0, "in_progress", None);
        self.items.put(&item.0, json.clone(), sent_ms, &Place::End);
        for frame in [
            self.writer.output_item_added(&at.response, &json),
            self.writer.item_added(&json, previous.as_deref()),
            self.writer.part_added(&at, part),
        ] {
            self.send(frame);
        }
    }

    fn words(&mut self, speech: SpeechId, text: &str) {
        let Some(open) = &mut self.open else { return };
        let Some(saying) = open.saying.as_mut().filter(|saying| saying.speech == speech) else { return };
        if saying.text.len() + text.len() <= WORDS_MAX {
            saying.text.push_str(text);
        }
        let frame = match open.modality {
            Modality::Audio => self.writer.transcript_delta(&saying.at, text),
            Modality::Text => self.writer.text_delta(&saying.at, text),
        };
        self.send(frame);
    }

    fn sound(&mut self, speech: SpeechId, samples: &[i16], rate_hz: u32) {
        let Some(open) = self.open.as_mut().filter(|open| open.modality == Modality::Audio) else { return };
        let Some(saying) = open.saying.as_mut().filter(|saying| saying.speech == speech) else { return };
        let deltas = saying.voice.push(samples, rate_hz);
        self.deltas(&deltas);
    }

    /// Sends sound of the open speech.
    fn deltas(&mut self, deltas: &[String]) {
        let Some(saying) = self.open.as_mut().and_then(|open| open.saying.as_mut()) else { return };
        self.items.sent(&saying.at.item, saying.voice.sent_ms());
        let frames: Vec<String> = deltas.iter().map(|delta| self.writer.audio_delta(&saying.at, delta)).collect();
        for frame in frames {
            self.spoken = true;
            self.send(frame);
        }
    }

    fn speech_ended(&mut self, speech: SpeechId, end: LegEnd) {
        let saying = self.open.as_mut().and_then(|open| open.saying.as_mut()).filter(|saying| saying.speech == speech);
        let Some(saying) = saying else { return };
        if end == LegEnd::Completed {
            let rest = saying.voice.finish();
            if !rest.is_empty() {
                self.deltas(&rest);
            }
        }
        let Some(mut open) = self.open.take() else { return };
        let Some(saying) = open.saying.take() else { return };
        let status = self.status(end);
        let item = self.finish_item(&saying, open.modality, &status);
        self.close_response(&open, status, vec![item]);
    }

    /// Everything between the last delta and `response.done`. Answers with the item as it is now.
    fn finish_item(&mut self, saying: &Saying, modality: Modality, status: &Status) -> Value {
        let Saying { at, text, .. } = saying;
        let (part, content) = match modality {
            Modality::Audio => {
                for frame in [self.writer.audio_done(at), self.writer.transcript_done(at, text)] {
                    self.send(frame);
                }
                (json!({"type": "audio", "transcript": text}), json!({"type": "output_audio", "transcript": text}))
            }
            Modality::Text => {
                let done = self.writer.text_done(at, text);
                self.send(done);
                (json!({"type": "text", "text": text}), json!({"type": "output_text", "text": text}))
            }
        };
        let item = assistant(&at.item, status.item_word(), Some(content));
        self.items.settle(&at.item, item.clone());
        let previous = self.items.previous(&at.item);
        for frame in [
            self.writer.part_done(at, part),
            self.writer.item_done(&item, previous.as_deref()),
            self.writer.output_item_done(&at.response, &item),
        ] {
            self.send(frame);
        }
        item
    }

    fn status(&mut self, end: LegEnd) -> Status {
        match end {
            LegEnd::Completed => Status::Completed,
            LegEnd::Interrupted => Status::TurnDetected,
            LegEnd::Cancelled => Status::ClientCancelled,
            LegEnd::Failed => {
                let unknown = || ("failed".to_string(), "The answer could not be finished.".to_string());
                let (code, message) = self.trouble.take().unwrap_or_else(unknown);
                Status::Failed { code, message }
            }
        }
    }
}
