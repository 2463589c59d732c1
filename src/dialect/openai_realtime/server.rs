//! Server events: typed values to text frames, each with an `event_id` of its own.

use serde_json::{Value, json};

use super::error::BadEvent;

/// Where a piece of a response belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The response.
    pub response: String,
    /// The item.
    pub item: String,
}

/// Writes the server events of one socket. Ids are `event_TAG_n`.
#[derive(Clone, Debug)]
pub struct Writer {
    tag: String,
    next: u64,
}

impl Writer {
    /// `tag` sets this socket's ids apart from any other's.
    pub fn new(tag: &str) -> Self { Self { tag: tag.to_string(), next: 0 } }

    fn event(&mut self, kind: &str, fields: Value) -> String {
        self.next += 1;
        let mut event = json!({"type": kind, "event_id": format!("event_{}_{}", self.tag, self.next)});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        event.to_string()
    }

    fn part_event(&mut self, kind: &str, at: &At, field: Option<(&str, Value)>) -> String {
        let mut fields = json!({"response_id": at.response, "item_id": at.item, "output_index": 0, "content_index": 0});
        if let Some((name, value)) = field {
            fields[name] = value;
        }
        self.event(kind, fields)
    }

    /// `error`.
    pub fn error(&mut self, bad: &BadEvent) -> String {
        self.event("error", json!({"error": {
            "type": "invalid_request_error", "code": bad.code, "message": bad.message, "param": bad.param, "event_id": bad.event_id,
        }}))
    }

    /// `session.created`, with the whole session object.
    pub fn session_created(&mut self, session: Value) -> String { self.event("session.created", json!({"session": session})) }

    /// `session.updated`, with the whole session object.
    pub fn session_updated(&mut self, session: Value) -> String { self.event("session.updated", json!({"session": session})) }

    /// `conversation.item.added`.
    pub fn item_added(&mut self, item: &Value, previous: Option<&str>) -> String {
        self.event("conversation.item.added", json!({"previous_item_id": previous, "item": item}))
    }

    /// `conversation.item.done`.
    pub fn item_done(&mut self, item: &Value, previous: Option<&str>) -> String {
        self.event("conversation.item.done", json!({"previous_item_id": previous, "item": item}))
    }

    /// `conversation.item.retrieved`.
    pub fn item_retrieved(&mut self, item: &Value) -> String { self.event("conversation.item.retrieved", json!({"item": item})) }

    /// `conversation.item.truncated`.
    pub fn item_truncated(&mut self, item: &str, audio_end_ms: u64) -> String {
        self.event("conversation.item.truncated", json!({"item_id": item, "content_index": 0, "audio_end_ms": audio_end_ms}))
    }

    /// `conversation.item.deleted`.
    pub fn item_deleted(&mut self, item: &str) -> String { self.event("conversation.item.deleted", json!({"item_id": item})) }

    /// `input_audio_buffer.speech_started`.
    pub fn speech_started(&mut self, item: &str, at_ms: u64) -> String {
        self.event("input_audio_buffer.speech_started", json!({"audio_start_ms": at_ms, "item_id": item}))
    }

    /// `input_audio_buffer.speech_stopped`.
    pub fn speech_stopped(&mut self, item: &str, at_ms: u64) -> String {
        self.event("input_audio_buffer.speech_stopped", json!({"audio_end_ms": at_ms, "item_id": item}))
    }

    /// `input_audio_buffer.committed`.
    pub fn committed(&mut self, item: &str, previous: Option<&str>) -> String {
        self.event("input_audio_buffer.committed", json!({"previous_item_id": previous, "item_id": item}))
    }

    /// `input_audio_buffer.cleared`.
    pub fn cleared(&mut self) -> String { self.event("input_audio_buffer.cleared", json!({})) }

    /// `output_audio_buffer.cleared`.
    pub fn output_cleared(&mut self, response: &str) -> String {
        self.event("output_audio_buffer.cleared", json!({"response_id": response}))
    }

    /// `conversation.item.input_audio_transcription.completed`.
    pub fn transcription_completed(&mut self, item: &str, transcript: &str, seconds: f64) -> String {
        self.event("conversation.item.input_audio_transcription.completed", json!({
            "item_id": item, "content_index": 0, "transcript": transcript, "usage": {"type": "duration", "seconds": seconds},
        }))
    }

    /// `conversation.item.input_audio_transcription.failed`.
    pub fn transcription_failed(&mut self, item: &str, code: &str, message: &str) -> String {
        self.event("conversation.item.input_audio_transcription.failed", json!({
            "item_id": item, "content_index": 0,
            "error": {"type": "transcription_error", "code": code, "message": message, "param": null},
        }))
    }

    /// `response.created`.
    pub fn response_created(&mut self, response: Value) -> String { self.event("response.created", json!({"response": response})) }

    /// `response.done`.
    pub fn response_done(&mut self, response: Value) -> String { self.event("response.done", json!({"response": response})) }

    /// `response.output_item.added`.
    pub fn output_item_added(&mut self, response: &str, item: &Value) -> String {
        self.event("response.output_item.added", json!({"response_id": response, "output_index": 0, "item": item}))
    }

    /// `response.output_item.done`.
    pub fn output_item_done(&mut self, response: &str, item: &Value) -> String {
        self.event("response.output_item.done", json!({"response_id": response, "output_index": 0, "item": item}))
    }

    /// `response.content_part.added`.
    pub fn part_added(&mut self, at: &At, part: Value) -> String {
        self.part_event("response.content_part.added", at, Some(("part", part)))
    }

    /// `response.content_part.done`.
    pub fn part_done(&mut self, at: &At, part: Value) -> String {
        self.part_event("response.content_part.done", at, Some(("part", part)))
    }

    /// `response.output_audio.delta`: base64 of sound in the session's output format.
    pub fn audio_delta(&mut self, at: &At, delta: &str) -> String {
        self.part_event("response.output_audio.delta", at, Some(("delta", json!(delta))))
    }

    /// `response.output_audio.done`.
    pub fn audio_done(&mut self, at: &At) -> String { self.part_event("response.output_audio.done", at, None) }

    /// `response.output_audio_transcript.delta`.
    pub fn transcript_delta(&mut self, at: &At, text: &str) -> String {
        self.part_event("response.output_audio_transcript.delta", at, Some(("delta", json!(text))))
    }

    /// `response.output_audio_transcript.done`.
    pub fn transcript_done(&mut self, at: &At, text: &str) -> String {
        self.part_event("response.output_audio_transcript.done", at, Some(("transcript", json!(text))))
    }

    /// `response.output_text.delta`.
    pub fn text_delta(&mut self, at: &At, text: &str) -> String {
        self.part_event("response.output_text.delta", at, Some(("delta", json!(text))))
    }

    /// `response.output_text.done`.
    pub fn text_done(&mut self, at: &At, text: &str) -> String {
        self.part_event("response.output_text.done", at, Some(("text", json!(text))))
    }

    /// `rate_limits.updated`: the gateway meters nothing, so the list is empty. Clients take it as the end of a turn's events.
    pub fn rate_limits(&mut self) -> String { self.event("rate_limits.updated", json!({"rate_limits": []})) }
}
