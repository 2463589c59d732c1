//! The session log's own language: one [`Event`], one line of JSON, and back without loss.
//!
//! Owns the record format (its version, its words for every kind and field). `store/log` frames the lines and is the only
//! caller at run time. Never drops a field, never guesses a kind it does not know.
//!
//! Shape: `{"v":1,"seq":7,"at":1790000000000,"kind":"mode", ...fields of the kind}`. The kind stands before its fields, so
//! that a line cut in the middle still says what it was (see [`could_be_mode`]).

mod fields;
mod kinds;
mod nouns;
mod opaque;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::any_kind;

use serde_json::{Map, Value};

use crate::engine::event::Event;
use fields::Fields;

/// Version of the record format that is written.
pub const VERSION: u64 = 1;

/// A record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// What happened.
    pub event: Event,
    /// A word of the record that this version does not know and that was folded to the strict side; `None` for an ordinary
    /// record. Whoever reads it must say so to a person.
    pub folded: Option<Folded>,
}

/// What an unknown word was folded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folded {
    /// An unknown posture became plan.
    Posture(String),
    /// An unknown ask policy became ask.
    Ask(String),
}

impl std::fmt::Display for Folded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self { Folded::Posture(word) => write!(f, "{word:?} (a posture, read as plan)"), Folded::Ask(word) => write!(f, "{word:?} (an ask policy, read as ask)") }
    }
}

/// Why a line is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON, or not an object.
    #[error("the record is not a JSON object: {0}")]
    NotJson(String),
    /// Another version wrote it.
    #[error("the record has version {0}, this program reads version {VERSION}")]
    Version(String),
    /// Nobody knows this kind of event.
    #[error("unknown kind of event \"{0}\"")]
    UnknownKind(String),
    /// A field is missing or wrong.
    #[error("{kind}: field \"{field}\" {problem}")]
    Field {
        /// Kind of event, or `record` for the envelope.
        kind: String,
        /// Which field, with a dot for nested ones.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Writes an event as one line, without the line's end.
pub fn encode(event: &Event) -> String {
    let mut map = Map::new();
    map.insert("v".into(), VERSION.into());
    map.insert("seq".into(), event.seq.into());
    map.insert("at".into(), event.at_ms.into());
    map.insert("kind".into(), kinds::word(&event.kind).into());
    kinds::write(&event.kind, &mut map);
    Value::Object(map).to_string()
}

/// Reads one line.
///
/// # Errors
/// [`RecordError`]; nothing of the line may be used then.
pub fn decode(line: &str) -> Result<Decoded, RecordError> {
    let value: Value = serde_json::from_str(line).map_err(|e| RecordError::NotJson(e.to_string()))?;
    let Value::Object(map) = value else { return Err(RecordError::NotJson("it is not an object".into())) };
    if map.get("v").and_then(Value::as_u64) != Some(VERSION) {
        return Err(RecordError::Version(map.get("v").map_or_else(|| "none".into(), Value::to_string)));
    }
    let envelope = Fields::new("record", &map);
    let (seq, at_ms, word) = (envelope.whole("seq")?, envelope.whole("at")?, envelope.text("kind")?);
    let mut folded = None;
    let kind = kinds::read(&word, &map, &mut folded)?;
    Ok(Decoded { event: Event { seq, at_ms, kind }, folded })
}

/// True when the beginning of a line, cut anywhere, may have been a change of mode. Read by the log when a crash tore its
/// last record: a change to plan that somebody may have heard of must not be lost with it.
pub fn could_be_mode(start: &str) -> bool {
    const MARK: &str = "\"kind\":\"";
    match start.find(MARK) {
        None => true,
        Some(at) => {
            let word = &start[at + MARK.len()..];
            word.starts_with("mode\"") || "mode\"".starts_with(word)
        }
    }
}
