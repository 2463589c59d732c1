//! Conversation items: reading what a client creates, writing what the gateway makes.

use serde_json::{Map, Value, json};

use super::TEXT_MAX;
use super::audio;
use super::error::{BadEvent, shown};
use super::fields::{Fields, no_hint, too_long};

/// Where a new item goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the end.
    End,
    /// Before everything.
    Root,
    /// After this one.
    After(String),
}

/// A part of a user's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// `input_text`.
    Text(String),
    /// `input_audio`, in the session's input format.
    Audio(Vec<u8>),
}

/// What a client's item is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A person said or wrote this.
    User(Vec<Part>),
    /// A message in somebody else's name (`system`, `assistant`).
    Other(&'static str),
    /// A function call nobody made (clients that bring their own history).
    Call,
    /// The result of a function call.
    Output,
}

/// A client's item.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// The client's own name for it.
    pub id: Option<String>,
    /// What it is.
    pub kind: Kind,
    body: Map<String, Value>,
}

impl NewItem {
    pub(super) fn read(fields: &Fields) -> Result<Self, BadEvent> {
        let kind = match fields.need_text("type")? {
            "message" => message(fields)?,
            "function_call" => function_call(fields)?,
            "function_call_output" => function_call_output(fields)?,
            other => {
                let message = format!(
                    "Invalid value: '{}'. Supported values are: 'message', 'function_call', 'function_call_output'.",
                    shown(other)
                );
                return Err(BadEvent::value(fields.path("type"), message));
            }
        };
        Ok(Self { id: fields.id("id")?.map(str::to_string), kind, body: body(fields) })
    }

    /// The item as it is echoed and kept, under the name it has now. Sound is left out.
    pub fn to_json(&self, id: &str) -> Value {
        let mut item = json!({"id": id, "object": "realtime.item"});
        if let Value::Object(map) = &mut item {
            map.extend(self.body.clone());
            map.insert("status".into(), json!("completed"));
        }
        item
    }
}

/// The fields that are known, without sound.
fn body(fields: &Fields) -> Map<String, Value> {
    let mut body = Map::new();
    for name in ["type", "role", "name", "call_id", "arguments", "output", "content"] {
        if let Some(value) = fields.get(name) {
            body.insert(name.to_string(), value.clone());
        }
    }
    for part in body.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            part.remove("audio");
        }
    }
    body
}

fn message(fields: &Fields) -> Result<Kind, BadEvent> {
    fields.only(&["id", "object", "type", "role", "status", "content", "phase"], no_hint)?;
    let role = fields.word("role", &["user", "assistant", "system"])?.ok_or_else(|| BadEvent::missing(fields.path("role")))?;
    let path = fields.path("content");
    let list = fields.list("content")?.ok_or_else(|| BadEvent::missing(path.clone()))?;
    if list.is_empty() || list.len() > 64 {
        return Err(BadEvent::value(path, format!("Expected 1 to 64 parts, got {}.", list.len())));
    }
    let parts = list.iter().enumerate().map(|(at, part)| read_part(part, format!("{path}[{at}]"), role));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let text: usize = parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum();
    if text > TEXT_MAX {
        return Err(too_long(path, TEXT_MAX));
    }
    Ok(if role == "user" { Kind::User(parts) } else { Kind::Other(role) })
}

fn read_part(part: &Value, path: String, role: &str) -> Result<Part, BadEvent> {
    let part = Fields::of(part, path)?;
    let kinds: &[&'static str] = match role {
        "user" => &["input_text", "input_audio"],
        "assistant" => &["output_text", "output_audio"],
        _ => &["input_text"],
    };
    part.only(&["type", "text", "audio", "transcript"], no_hint)?;
    let kind = part.word("type", kinds)?.ok_or_else(|| BadEvent::missing(part.path("type")))?;
    part.text_max("transcript", TEXT_MAX)?;
    match kind {
        // A transcript that the client sends along is not what was heard; only sound is.
        "input_audio" => Ok(Part::Audio(audio::bytes(part.need_text("audio")?, &part.path("audio"))?)),
        "output_audio" => Ok(Part::Text(part.text("transcript")?.unwrap_or_default().to_string())),
        _ => {
            part.need_text("text")?;
            Ok(Part::Text(part.text_max("text", TEXT_MAX)?.unwrap_or_default().to_string()))
        }
    }
}

fn function_call(fields: &Fields) -> Result<Kind, BadEvent> {
    fields.only(&["id", "object", "type", "status", "call_id", "name", "arguments"], no_hint)?;
    fields.need_text("name")?;
    fields.text_max("name", 128)?;
    fields.need_text("arguments")?;
    fields.text_max("arguments", TEXT_MAX)?;
    fields.id("call_id")?;
    Ok(Kind::Call)
}

fn function_call_output(fields: &Fields) -> Result<Kind, BadEvent> {
    fields.only(&["id", "object", "type", "status", "call_id", "output"], no_hint)?;
    fields.need_id("call_id")?;
    fields.need_text("output")?;
    fields.text_max("output", TEXT_MAX)?;
    Ok(Kind::Output)
}

/// A user's spoken item. `transcript` is `null` until the words are known.
pub fn user_audio(id: &str, transcript: Option<&str>) -> Value {
    json!({
        "id": id, "object": "realtime.item", "type": "message", "status": "completed", "role": "user",
        "content": [{"type": "input_audio", "transcript": transcript}],
    })
}

/// What the gateway says. `part`: none while nothing is there.
pub fn assistant(id: &str, status: &str, part: Option<Value>) -> Value {
    json!({
        "id": id, "object": "realtime.item", "type": "message", "status": status, "role": "assistant",
        "content": part.into_iter().collect::<Vec<_>>(),
    })
}
