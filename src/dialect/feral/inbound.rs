//! What a chat client may send over the mirror socket. Bad messages are refused whole and the field is named; nothing is
//! clamped, guessed or half done.

use serde_json::{Map, Value};

use crate::engine::authority::Decide;
use crate::engine::comment::{COMMENT_CHARS, QUOTE_CHARS};
use crate::engine::id::QuestionId;
use crate::engine::mode::{MODES, Mode};

/// Longest chat line and longest comment, in characters. Chosen: as long as a client's instructions may be.
pub const TEXT_CHARS_MAX: usize = 16_384;
const MSG_ID_CHARS: usize = 128;
const SESSION_ID_CHARS: usize = 1024;
const TYPE_CHARS: usize = 256;
const HASH_CHARS: usize = 64;

/// A message that is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The client's own id of it, to be given back in the `ack`.
    pub msg_id: Option<String>,
    /// The conversation it names, if it names one; the socket's own otherwise. The door refuses a foreign one.
    pub session_id: Option<String>,
    /// What it wants.
    pub deed: Deed,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// A typed line: a command, an answer, or talk.
    Chat {
        /// As typed.
        text: String,
    },
    /// A decision about a plan, the mode, or a tool's question. Its surface is the screen.
    Decide(Decide),
    /// Yes or no to a call, by somebody who saw the call with this hash. The door compares; another hash decides nothing.
    Answer {
        /// The decision.
        decide: Decide,
        /// The request.
        request: QuestionId,
        /// Hash of tool and arguments.
        hash: String,
    },
    /// The voice or the turn must end.
    Stop(StopScope),
}

/// Code and sentence for an answer to a call that is another than the one that waits.
pub const OTHER_ARGUMENTS: (&str, &str) = ("arguments_changed", "The call that waits has other arguments than the one you saw; read the request again and answer that.");

/// How much a `stop` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopScope {
    /// The voice; the agent works on.
    Speech,
    /// The whole turn.
    Turn,
}

impl Deed {
    /// The decision in it; `None` for a chat line.
    pub fn decision(&self) -> Option<Decide> {
        match self {
            Deed::Chat { .. } => None,
            Deed::Decide(decide) | Deed::Answer { decide, .. } => Some(decide.clone()),
            Deed::Stop(StopScope::Speech) => Some(Decide::StopSpeech),
            Deed::Stop(StopScope::Turn) => Some(Decide::StopTurn),
        }
    }
}

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct BadMessage {
    /// The client's own id of it, where that could be read.
    pub msg_id: Option<String>,
    /// The field that is wrong (`payload.version`), or `message` for the whole.
    pub field: String,
    /// What is wrong, for a person.
    pub message: String,
}

/// Reads a message in the full envelope, or bare as `{type, payload, msg_id?}`.
///
/// # Errors
/// [`BadMessage`] names the first field that is wrong.
pub fn parse_inbound(text: &str) -> Result<Inbound, BadMessage> {
    let value: Value = serde_json::from_str(text).map_err(|e| bad(None, "message", format!("this is not JSON: {e}")))?;
    let Value::Object(map) = value else { return Err(bad(None, "message", "a message is a JSON object")) };
    let msg_id = bounded(&map, "msg_id", "msg_id", 1, MSG_ID_CHARS).map_err(|e| bad(None, &e.0, e.1))?;
    read(&map).map(|(session_id, deed)| Inbound { msg_id: msg_id.clone(), session_id, deed }).map_err(|e| bad(msg_id, &e.0, e.1))
}

/// Field and complaint.
type Wrong = (String, String);

fn bad(msg_id: Option<String>, field: &str, message: impl Into<String>) -> BadMessage {
    BadMessage { msg_id, field: field.to_string(), message: message.into() }
}

fn wrong<T>(field: &str, message: impl Into<String>) -> Result<T, Wrong> { Err((field.to_string(), message.into())) }

fn read(map: &Map<String, Value>) -> Result<(Option<String>, Deed), Wrong> {
    check_envelope(map)?;
    let session_id = bounded(map, "session_id", "session_id", 0, SESSION_ID_CHARS)?.filter(|id| !id.is_empty());
    let Some(kind) = bounded(map, "type", "type", 1, TYPE_CHARS)? else { return wrong("type", "is missing") };
    let empty = Map::new();
    let payload = match map.get("payload") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(payload)) => payload,
        Some(_) => return wrong("payload", "must be an object"),
    };
    let deed = match kind.as_str() {
        "chat" => Deed::Chat { text: chat_text(payload)? },
        "plan_decision" => Deed::Decide(plan_decision(payload)?),
        "approval_decision" => approval_decision(payload)?,
        "stop" => Deed::Stop(stop_scope(payload)?),
        "mode" => Deed::Decide(mode(payload)?),
        "plan_comment" => Deed::Decide(comment(payload)?),
        other => return wrong("type", format!("\"{other}\" is none of chat, plan_decision, plan_comment, approval_decision, stop, mode")),
    };
    Ok((session_id, deed))
}

fn check_envelope(map: &Map<String, Value>) -> Result<(), Wrong> {
    if map.get("timestamp_ms").is_some_and(|v| v.as_u64().is_none()) {
        return wrong("timestamp_ms", "must be a whole number of milliseconds, 0 or more");
    }
    if map.get("hop").is_some_and(|v| !matches!(v.as_str(), Some("client" | "brain" | "daemon" | "skill"))) {
        return wrong("hop", "must be client, brain, daemon or skill");
    }
    Ok(())
}

/// A string of `least..=most` characters; `None` when it is absent or null.
fn bounded(map: &Map<String, Value>, name: &str, field: &str, least: usize, most: usize) -> Result<Option<String>, Wrong> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let chars = text.chars().count();
            if (least..=most).contains(&chars) { Ok(Some(text.clone())) } else { wrong(field, format!("has {chars} characters; {least} to {most} are allowed")) }
        }
        Some(_) => wrong(field, "must be a string"),
    }
}

fn required(payload: &Map<String, Value>, name: &str, most: usize) -> Result<String, Wrong> {
    let field = format!("payload.{name}");
    bounded(payload, name, &field, 1, most)?.map_or_else(|| wrong(&field, "is missing"), Ok)
}

fn chat_text(payload: &Map<String, Value>) -> Result<String, Wrong> {
    let text = required(payload, "text", TEXT_CHARS_MAX)?;
    if text.trim().is_empty() { wrong("payload.text", "is blank") } else { Ok(text) }
}

fn plan_decision(payload: &Map<String, Value>) -> Result<Decide, Wrong> {
    let decision = required(payload, "decision", TYPE_CHARS)?;
    let hash = bounded(payload, "hash", "payload.hash", 1, HASH_CHARS)?;
    let comments = bounded(payload, "comments", "payload.comments", 0, TEXT_CHARS_MAX)?.unwrap_or_default();
    let given = version(payload)?;
    let named = || given.map_or_else(|| wrong("payload.version", "is missing: say which version you decide on"), |v| Ok(Some(v)));
    Ok(match decision.as_str() {
        "approve" => match bounded(payload, "mode", "payload.mode", 1, TYPE_CHARS)? {
            None => Decide::Approve { version: named()?, hash },
            Some(word) => Decide::ApproveIn { version: named()?, hash, mode: carried_out_in(&word)? },
        },
        "request_changes" => Decide::RequestChanges { version: named()?, comments },
        "dismiss" => Decide::Dismiss { version: named()? },
        "back_to_review" => Decide::BackToReview { version: named()? },
        "continue" => Decide::Continue { version: given },
        "mark_done" => Decide::MarkDone { version: given },
        "leave" => Decide::Leave,
        other => return wrong("payload.decision", format!("\"{other}\" is none of approve, request_changes, dismiss, back_to_review, continue, mark_done, leave")),
    })
}

/// The mode an approved plan is carried out in.
fn carried_out_in(word: &str) -> Result<Mode, Wrong> {
    match Mode::from_word(word).filter(|m| *m != Mode::Plan) {
        Some(mode) => Ok(mode),
        None => wrong("payload.mode", format!("\"{word}\" is none of default, bypass, autonomous")),
    }
}

fn version(payload: &Map<String, Value>) -> Result<Option<u32>, Wrong> { number(payload, "version") }

fn number(payload: &Map<String, Value>, name: &str) -> Result<Option<u32>, Wrong> {
    match payload.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|v| u32::try_from(v).ok()).filter(|v| *v > 0) {
            Some(number) => Ok(Some(number)),
            None => wrong(&format!("payload.{name}"), "must be a whole number, 1 or more"),
        },
    }
}

/// `{id?, version?, step?, quote?, text}`: a new comment, another text for one, or (with an empty text) one less.
fn comment(payload: &Map<String, Value>) -> Result<Decide, Wrong> {
    let text = bounded(payload, "text", "payload.text", 0, COMMENT_CHARS)?.map_or_else(|| wrong("payload.text", "is missing"), Ok)?;
    let quote = bounded(payload, "quote", "payload.quote", 0, QUOTE_CHARS)?.unwrap_or_default();
    Ok(Decide::Comment { id: number(payload, "id")?, version: version(payload)?, step: number(payload, "step")?, quote, text })
}

fn approval_decision(payload: &Map<String, Value>) -> Result<Deed, Wrong> {
    let request = QuestionId(required(payload, "request_id", MSG_ID_CHARS)?);
    let approve = match required(payload, "decision", TYPE_CHARS)?.as_str() {
        "approve" => true,
        "deny" => false,
        other => return wrong("payload.decision", format!("\"{other}\" is neither approve nor deny")),
    };
    let decide = Decide::AnswerTool { request: request.clone(), approve };
    Ok(match bounded(payload, "hash", "payload.hash", 1, HASH_CHARS)? {
        None => Deed::Decide(decide),
        Some(hash) => Deed::Answer { decide, request, hash },
    })
}

fn stop_scope(payload: &Map<String, Value>) -> Result<StopScope, Wrong> {
    match required(payload, "scope", TYPE_CHARS)?.as_str() {
        "speech" => Ok(StopScope::Speech),
        "turn" => Ok(StopScope::Turn),
        other => wrong("payload.scope", format!("\"{other}\" is neither speech nor turn")),
    }
}

/// `{mode}` names one of the list, `{posture}` the posture alone.
fn mode(payload: &Map<String, Value>) -> Result<Decide, Wrong> {
    match bounded(payload, "mode", "payload.mode", 1, TYPE_CHARS)? {
        None => posture(payload),
        Some(word) => Mode::from_word(&word).map(Decide::Mode).map_or_else(|| wrong("payload.mode", format!("\"{word}\" is none of {}", MODES.join(", "))), Ok),
    }
}

fn posture(payload: &Map<String, Value>) -> Result<Decide, Wrong> {
    match required(payload, "posture", TYPE_CHARS)?.as_str() {
        "plan" => Ok(Decide::Enter { reason: bounded(payload, "reason", "payload.reason", 0, TEXT_CHARS_MAX)?.unwrap_or_default() }),
        "default" => Ok(Decide::Leave),
        other => wrong("payload.posture", format!("\"{other}\" is neither plan nor default")),
    }
}
