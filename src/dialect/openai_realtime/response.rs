//! `response.create`: what one response may ask for, and the response object.

use serde_json::{Map, Value, json};

use super::audio::Format;
use super::error::BadEvent;
use super::fields::{Fields, no_hint, too_long};
use super::session::{Modality, Tools, output_tokens, voice};
use super::{INSTRUCTIONS_MAX, KEPT_BYTES_MAX};

/// The fields of a `response.create` that have an effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseAsk {
    /// Instructions for this response alone.
    pub instructions: Option<String>,
    /// Audio or text for this response alone.
    pub modality: Option<Modality>,
    /// Echoed in `response.created` and `response.done`.
    pub metadata: Option<Value>,
    /// What was left out, as in a session.
    pub left_out: Vec<String>,
    /// Names of functions that came with it.
    pub functions: Vec<String>,
}

impl ResponseAsk {
    pub(super) fn read(fields: &Fields) -> Result<Self, BadEvent> {
        let known = [
            "conversation", "input", "instructions", "tools", "tool_choice", "output_modalities", "audio", "max_output_tokens",
            "metadata", "prompt", "reasoning", "parallel_tool_calls", "temperature",
        ];
        fields.only(&known, no_hint)?;
        Self::refuse_out_of_band(fields)?;
        output_tokens(fields)?;
        fields.flag("parallel_tool_calls")?;
        fields.object("reasoning")?;
        fields.kept("tool_choice", KEPT_BYTES_MAX)?;
        if let Some(audio) = fields.object("audio")? {
            if let Some(output) = audio.object("output")? {
                output.object("format")?.as_ref().map(Format::read).transpose()?;
                voice(&output)?;
            }
        }
        let tools = Tools::read(fields)?.unwrap_or_default();
        let mut left_out = tools.left_out;
        if fields.get("prompt").is_some() {
            left_out.push("prompt".into());
        }
        Ok(Self {
            instructions: fields.text_max("instructions", INSTRUCTIONS_MAX)?.map(str::to_string),
            modality: Modality::read(fields)?,
            metadata: metadata(fields)?,
            left_out,
            functions: tools.functions.iter().filter_map(|tool| tool["name"].as_str().map(str::to_string)).collect(),
        })
    }

    /// There is one conversation, and every response belongs to it.
    fn refuse_out_of_band(fields: &Fields) -> Result<(), BadEvent> {
        if fields.text("conversation")?.is_some_and(|which| which != "auto") {
            let message = "Only 'auto' is supported: a response outside the conversation cannot be made here.";
            return Err(BadEvent::value(fields.path("conversation"), message));
        }
        match fields.list("input")? {
            Some(list) if !list.is_empty() => {
                let message = "A response of its own input cannot be made here: create the items in the conversation first.";
                Err(BadEvent::value(fields.path("input"), message))
            }
            _ => Ok(()),
        }
    }
}

/// At most 16 pairs, keys of 64 and values of 512 characters.
fn metadata(fields: &Fields) -> Result<Option<Value>, BadEvent> {
    let path = fields.path("metadata");
    let Some(value) = fields.get("metadata") else { return Ok(None) };
    let Value::Object(map) = value else { return Err(super::fields::wrong_type(path, "an object", value)) };
    if map.len() > 16 {
        return Err(BadEvent::value(path, format!("At most 16 pairs, got {}.", map.len())));
    }
    let inner = Fields::of(value, path.clone())?;
    for key in map.keys() {
        if key.chars().count() > 64 {
            return Err(too_long(inner.path(key), 64));
        }
        inner.text_max(key, 512)?;
    }
    Ok(Some(value.clone()))
}

/// How a response stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Still going.
    InProgress,
    /// To its end.
    Completed,
    /// Cut because somebody spoke.
    TurnDetected,
    /// Cut because the client asked.
    ClientCancelled,
    /// Something broke.
    Failed {
        /// Stable code.
        code: String,
        /// A sentence.
        message: String,
    },
}

impl Status {
    /// The word for the response.
    pub fn word(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::TurnDetected | Self::ClientCancelled => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }

    /// The word for an item that ended with it.
    pub fn item_word(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            _ => "incomplete",
        }
    }

    fn details(&self) -> Value {
        match self {
            Self::InProgress => Value::Null,
            Self::Completed => json!({"type": "completed"}),
            Self::TurnDetected => json!({"type": "cancelled", "reason": "turn_detected"}),
            Self::ClientCancelled => json!({"type": "cancelled", "reason": "client_cancelled"}),
            Self::Failed { code, message } => {
                json!({"type": "failed", "error": {"type": "server_error", "code": code, "message": message}})
            }
        }
    }
}

/// A response object.
#[derive(Clone, Debug, PartialEq)]
pub struct Response<'a> {
    /// Its id.
    pub id: &'a str,
    /// The conversation's id.
    pub conversation: &'a str,
    /// How it stands.
    pub status: Status,
    /// Audio or text.
    pub modality: Modality,
    /// What the client sent along.
    pub metadata: &'a Value,
    /// Format and voice of the session.
    pub format: Format,
    /// Voice of the session.
    pub voice: &'a Value,
    /// Limit of the session.
    pub max_output_tokens: Value,
    /// Its items.
    pub output: Vec<Value>,
}

impl Response<'_> {
    /// As events carry it.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_string(), value);
        put("object", json!("realtime.response"));
        put("id", json!(self.id));
        put("status", json!(self.status.word()));
        put("status_details", self.status.details());
        put("output", json!(self.output));
        put("conversation_id", json!(self.conversation));
        put("output_modalities", self.modality.to_json());
        put("max_output_tokens", self.max_output_tokens.clone());
        put("audio", json!({"output": {"format": self.format.to_json(), "voice": self.voice}}));
        // Nothing is metered by token here; clients that add usage up read the numbers without asking whether they are there.
        put("usage", if self.status == Status::InProgress { Value::Null } else { no_tokens() });
        put("metadata", self.metadata.clone());
        Value::Object(map)
    }
}

fn no_tokens() -> Value {
    json!({
        "total_tokens": 0, "input_tokens": 0, "output_tokens": 0,
        "input_token_details": {
            "text_tokens": 0, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0,
            "cached_tokens_details": {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": 0, "audio_tokens": 0},
    })
}
