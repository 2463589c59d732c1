//! The mirror's language: one frame for every event, a snapshot to start from, and the few messages a chat client may send.
//!
//! Owns the envelope and the field names that FERAL's clients know. The driver makes frames with it, `server/mirror` and
//! `server/rest` read and answer with it, `talk --events` writes the same frames. It decides nothing and keeps nothing.
//!
//! Every event kind has exactly one frame, so the top-level `seq` of the frames has no gaps. What passes (partial
//! transcripts, levels, answers to one client) carries no `seq`.

mod command;
mod inbound;
mod state;
#[cfg(test)]
mod tests;

pub use command::{ChatCommand, USAGE, parse_chat_command};
pub use inbound::{BadMessage, Deed, Inbound, OTHER_ARGUMENTS, StopScope, TEXT_CHARS_MAX, parse_inbound};
pub use state::{approval_object, comment_object, difference_object, modes_line, modes_object, plan_mode_object, plans_object, plan_object, question_object, snapshot_frame, todo_object};

use serde_json::{Map, Value, json};

use crate::engine::authority::By;
use crate::engine::diff;
use crate::engine::event::{Event, EventKind, ModeEvent, Role};
use crate::engine::mode::Posture;
use crate::engine::plan::{Step, clip};
use crate::engine::snapshot::Snapshot;
use crate::engine::stage;

/// Longest `args_preview`, in characters.
pub const ARGS_PREVIEW_CHARS: usize = 160;
/// Longest `error` of a tool result, in characters.
pub const ERROR_CHARS: usize = 240;
/// Longest `result_preview`, in characters. Chosen: a few lines of a trace card.
pub const RESULT_PREVIEW_CHARS: usize = 400;
/// Refusals that keep their code on a `tool_result`; every other failure stays an error.
const REFUSALS: [&str; 3] = ["plan_mode_blocked", "policy_denied", "pending_approval"];

/// What stands on the outside of a frame that is no event.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The conversation.
    pub session_id: &'a str,
    /// A fresh uuid4.
    pub msg_id: &'a str,
    /// Unix milliseconds.
    pub at_ms: u64,
}

impl Head<'_> {
    fn frame(&self, kind: &str, payload: Value, seq: Option<u64>) -> String {
        let mut map = Map::new();
        map.insert("msg_id".into(), self.msg_id.into());
        map.insert("session_id".into(), self.session_id.into());
        map.insert("timestamp_ms".into(), self.at_ms.into());
        map.insert("hop".into(), "brain".into());
        map.insert("type".into(), kind.into());
        if let Some(seq) = seq {
            map.insert("seq".into(), seq.into());
        }
        map.insert("payload".into(), payload);
        Value::Object(map).to_string()
    }
}

/// Whether an event has reached the log; a `plan_mode` frame says so as `persisted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in the log.
    Logged,
    /// Only in memory (`plan.persist = "memory"`, or the disk refused).
    Memory,
}

/// The frame of one event that is in the log. `after` is the state with the event folded in; `msg_id` a fresh uuid4.
pub fn frame(event: &Event, after: &Snapshot, session_id: &str, msg_id: &str) -> String {
    frame_kept(event, after, session_id, msg_id, Kept::Logged)
}

/// As [`frame`], for an event that the log may not hold: its payload then says `persisted: false`.
pub fn frame_kept(event: &Event, after: &Snapshot, session_id: &str, msg_id: &str, kept: Kept) -> String {
    let (kind, payload) = match &event.kind {
        EventKind::Mode(mode) => ("plan_mode", mode_payload(mode, after, session_id, kept)),
        EventKind::Still(_) => ("plan_mode", plan_mode_object(after, session_id)),
        EventKind::ApprovalRequested(pending) => ("approval_request", state::approval_request(pending, session_id)),
        other => payload_of(event, other, after),
    };
    let mut payload = with_line(payload, event);
    if kept == Kept::Memory {
        payload["persisted"] = false.into();
    }
    Head { session_id, msg_id, at_ms: event.at_ms }.frame(kind, payload, Some(event.seq))
}

/// Words that are still being spoken, by either side. Not numbered, not logged. What a person's words are for is not known yet.
pub fn partial_transcript(head: Head<'_>, role: Role, for_agent: bool, text: &str) -> String {
    head.frame("transcript", json!({"text": text, "role": role_word(role), "is_partial": true, "item_id": "", "previous_item_id": null, "for_agent": for_agent}), None)
}

/// How loud the microphone is, in dB relative to full scale (0 is the loudest), and whether speech is heard in it.
pub fn level(head: Head<'_>, dbfs: f32, speech: bool) -> String {
    let dbfs = if dbfs.is_finite() { (f64::from(dbfs) * 10.0).round() / 10.0 } else { -120.0 };
    head.frame("level", json!({"dbfs": dbfs, "speech": speech}), None)
}

/// The answer to a client's message. `reply_to` is that message's own id.
pub fn ack(head: Head<'_>, reply_to: Option<&str>, ok: bool, code: &str, message: &str) -> String {
    let mut payload = json!({"msg_id": reply_to, "ok": ok});
    put_if(&mut payload, "code", code);
    put_if(&mut payload, "message", message);
    head.frame("ack", payload, None)
}

/// The answer to a message that is none: code 1003 and the field that is wrong. The socket stays open.
pub fn bad_message(head: Head<'_>, bad: &BadMessage) -> String {
    head.frame("error", json!({"code": 1003, "field": bad.field, "message": bad.message, "msg_id": bad.msg_id}), None)
}

/// A stage of plan mode carries its one line, for the mirror's chat.
fn with_line(mut payload: Value, event: &Event) -> Value {
    if let Some(line) = stage::line(&event.kind) {
        payload["line"] = line.into();
    }
    payload
}

fn put_if(payload: &mut Value, name: &str, text: &str) {
    if !text.is_empty() {
        payload[name] = text.into();
    }
}

fn mode_payload(mode: &ModeEvent, after: &Snapshot, session_id: &str, kept: Kept) -> Value {
    let mut payload = plan_mode_object(after, session_id);
    payload["persisted"] = (kept == Kept::Logged).into();
    payload["by"] = by_object(&mode.by);
    if mode.posture == Posture::Default && mode.approved.is_some() {
        payload["approved"] = mode.approved.into();
    }
    payload
}

/// `{actor, surface, utterance, words}`.
fn by_object(by: &By) -> Value {
    json!({"actor": by.actor(), "surface": by.surface.word(), "utterance": by.utterance.map(|u| u.0), "words": by.words})
}

fn payload_of(event: &Event, kind: &EventKind, after: &Snapshot) -> (&'static str, Value) {
    match kind {
        EventKind::Started { how } => started(how),
        EventKind::Transcript { role, text, item, utterance, for_agent, surface } => ("transcript", json!({
            "text": text, "role": role_word(*role), "is_partial": false, "item_id": item.0, "previous_item_id": null, "seq": event.seq,
            "utterance": utterance.map(|u| u.0), "for_agent": for_agent, "surface": surface.word(),
        })),
        EventKind::Draft { steps } => ("plan_review", draft_payload(steps)),
        EventKind::Presented(plan) => {
            let mut payload = plan_object(plan);
            payload["submitted_at"] = seconds(event.at_ms);
            payload["open_comments"] = after.open_comments(plan.version).len().into();
            payload["difference"] = after.plans.iter().rev().find(|p| p.version < plan.version).map_or(Value::Null, |before| difference_object(&diff::between(before, plan)));
            ("plan_review", payload)
        }
        EventKind::PlanDecided { version, status, by, comments } => {
            let mut payload = after.version(*version).map_or_else(|| json!({"version": version, "approve": "approve"}), plan_object);
            payload["status"] = status.word().into();
            payload["by"] = by_object(by);
            payload["comments"] = comments.as_str().into();
            payload["open_comments"] = after.open_comments(*version).len().into();
            ("plan_review", payload)
        }
        EventKind::Comment(comment) => {
            let mut payload = comment_object(comment);
            payload["open_comments"] = after.open_comments(comment.version).len().into();
            ("plan_comment", payload)
        }
        EventKind::Continued { version, by } => {
            let mut payload = after.version(*version).map_or_else(|| json!({"version": version, "approve": "approve"}), plan_object);
            payload["continued"] = true.into();
            payload["by"] = by_object(by);
            ("plan_review", payload)
        }
        EventKind::Question(question) => ("question", question_object(question)),
        EventKind::ApprovalResolved { request, call, status, by } => {
            ("approval_resolved", json!({"request_id": request.0, "call_id": call.0, "status": status, "by": by_object(by)}))
        }
        EventKind::Todo(items) => ("todo_update", json!({"todos": todo_object(items)})),
        EventKind::Speech { speech, text, heard_ms, total_ms } => {
            ("speech", json!({"speech_id": speech.0, "text": text, "heard_ms": heard_ms, "total_ms": total_ms}))
        }
        EventKind::Voice(state) => ("voice_state", json!({"state": state.word(), "mode": "chained"})),
        EventKind::Notice { code, message } => ("notice", json!({"code": code, "message": message})),
        EventKind::Ended { reason } => ("session_end", json!({"reason": reason})),
        other => tool_payload(other),
    }
}

fn tool_payload(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::ToolStart { call, tool, arguments, display } => {
            let (skill, endpoint) = tool.split_once("__").unwrap_or((tool.as_str(), ""));
            ("tool_start", json!({
                "tool": tool, "call_id": call.0, "skill_id": skill, "endpoint_id": endpoint,
                "args_preview": clip(&arguments.to_string(), ARGS_PREVIEW_CHARS), "display_name": display,
            }))
        }
        EventKind::ToolResult { call, tool, success, error_code, error, output, latency_ms } => {
            let preview = output.to_string();
            let short = clip(&preview, RESULT_PREVIEW_CHARS);
            ("tool_result", json!({
                "tool": tool, "call_id": call.0, "success": success, "error": clip(error, ERROR_CHARS),
                "error_code": if REFUSALS.contains(&error_code.as_str()) { error_code.as_str() } else { "" },
                "outcome_code": error_code, "latency_ms": latency_ms,
                "result_preview_truncated": short.len() < preview.len(), "result_preview": short,
            }))
        }
        // Mode and ApprovalRequested have their frames in `frame_kept`, the rest in `payload_of`; a kind added later shows here.
        other => ("notice", json!({"code": "unknown_event", "message": format!("{other:?}")})),
    }
}

fn started(how: &str) -> (&'static str, Value) {
    let (code, message) = match how {
        "resumed" => ("conversation_resumed", "The conversation goes on where it was."),
        _ => ("conversation_started", "A new conversation."),
    };
    ("notice", json!({"code": code, "message": message}))
}

fn draft_payload(steps: &[Step]) -> Value {
    json!({
        "version": null, "hash": null, "title": "Draft", "summary": "", "steps": state::steps_object(steps), "open_questions": [], "risks": [],
        "status": "draft", "approve": "approve",
    })
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Unix milliseconds as the seconds FERAL's clients expect.
fn seconds(ms: u64) -> Value { (ms as f64 / 1000.0).into() }
