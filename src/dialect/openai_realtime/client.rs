//! Client events: one text frame to one typed value.

use serde_json::Value;

use super::audio;
use super::error::{BadEvent, shown};
use super::fields::{Fields, no_hint, quoted};
use super::item::{NewItem, Place};
use super::response::ResponseAsk;
use super::session::SessionChange;

/// Every client event there is, for the answer to an unknown one.
pub const TYPES: [&str; 11] = [
    "session.update", "input_audio_buffer.append", "input_audio_buffer.commit", "input_audio_buffer.clear",
    "conversation.item.create", "conversation.item.retrieve", "conversation.item.truncate", "conversation.item.delete",
    "response.create", "response.cancel", "output_audio_buffer.clear",
];

/// Most values in one event (chosen: a session with 128 large tools has about 20,000). Keeps a large frame from becoming a
/// far larger tree.
const VALUES_MAX: usize = 100_000;

/// What a client asks.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// `session.update`.
    Update(Box<SessionChange>),
    /// `input_audio_buffer.append`: bytes in the session's input format.
    Append(Vec<u8>),
    /// `input_audio_buffer.commit`.
    Commit,
    /// `input_audio_buffer.clear`.
    Clear,
    /// `conversation.item.create`.
    Create {
        /// The item.
        item: Box<NewItem>,
        /// Where.
        place: Place,
    },
    /// `conversation.item.retrieve`.
    Retrieve(String),
    /// `conversation.item.truncate`.
    Truncate {
        /// The item.
        item: String,
        /// Always 0: assistant items have one part.
        content_index: u64,
        /// Milliseconds that were played.
        audio_end_ms: u64,
    },
    /// `conversation.item.delete`.
    Delete(String),
    /// `response.create`.
    Respond(Box<ResponseAsk>),
    /// `response.cancel`.
    Cancel(Option<String>),
    /// `output_audio_buffer.clear`.
    ClearOutput,
}

/// A client event with its own id.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The client's `event_id`.
    pub event_id: Option<String>,
    /// What it asks.
    pub event: ClientEvent,
}

/// Reads one text frame.
///
/// # Errors
/// [`BadEvent`], naming the field; with the client's `event_id` as far as it could be read.
pub fn parse(text: &str) -> Result<Received, BadEvent> {
    if text.bytes().filter(|b| matches!(b, b',' | b'[' | b'{')).count() > VALUES_MAX {
        return Err(BadEvent::new("invalid_json", format!("An event may hold at most {VALUES_MAX} values.")));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| BadEvent::new("invalid_json", format!("The event is not JSON that can be read: {error}.")))?;
    let Value::Object(map) = &value else {
        return Err(BadEvent::new("invalid_json", "An event is a JSON object with a 'type'."));
    };
    let fields = Fields::root(map);
    let event_id = fields.id("event_id")?.map(str::to_string);
    match read(&fields) {
        Ok(event) => Ok(Received { event_id, event }),
        Err(bad) => Err(bad.of(event_id)),
    }
}

fn read(fields: &Fields) -> Result<ClientEvent, BadEvent> {
    let kind = fields.need_text("type")?;
    let only = |names: &[&str]| fields.only(&[&["type", "event_id"], names].concat(), no_hint);
    match kind {
        "session.update" => {
            only(&["session"])?;
            Ok(ClientEvent::Update(Box::new(SessionChange::read(&fields.need_object("session")?)?)))
        }
        "input_audio_buffer.append" => {
            only(&["audio"])?;
            Ok(ClientEvent::Append(audio::bytes(fields.need_text("audio")?, "audio")?))
        }
        "input_audio_buffer.commit" => only(&[]).map(|()| ClientEvent::Commit),
        "input_audio_buffer.clear" => only(&[]).map(|()| ClientEvent::Clear),
        "conversation.item.create" => {
            only(&["item", "previous_item_id"])?;
            create(fields)
        }
        "conversation.item.retrieve" => {
            only(&["item_id"])?;
            Ok(ClientEvent::Retrieve(fields.need_id("item_id")?.to_string()))
        }
        "conversation.item.delete" => {
            only(&["item_id"])?;
            Ok(ClientEvent::Delete(fields.need_id("item_id")?.to_string()))
        }
        "conversation.item.truncate" => {
            only(&["item_id", "content_index", "audio_end_ms"])?;
            truncate(fields)
        }
        "response.create" => {
            only(&["response"])?;
            let ask = fields.object("response")?.as_ref().map(ResponseAsk::read).transpose()?;
            Ok(ClientEvent::Respond(Box::new(ask.unwrap_or_default())))
        }
        "response.cancel" => {
            only(&["response_id"])?;
            Ok(ClientEvent::Cancel(fields.id("response_id")?.map(str::to_string)))
        }
        "output_audio_buffer.clear" => only(&[]).map(|()| ClientEvent::ClearOutput),
        other => {
            let message = format!("Invalid value: '{}'. Supported values are: {}.", shown(other), quoted(&TYPES));
            Err(BadEvent::value("type", message))
        }
    }
}

fn create(fields: &Fields) -> Result<ClientEvent, BadEvent> {
    let place = match fields.id("previous_item_id")? {
        None => Place::End,
        Some("root") => Place::Root,
        Some(id) => Place::After(id.to_string()),
    };
    Ok(ClientEvent::Create { item: Box::new(NewItem::read(&fields.need_object("item")?)?), place })
}

fn truncate(fields: &Fields) -> Result<ClientEvent, BadEvent> {
    let need = |name: &str, high| fields.whole(name, 0, high)?.ok_or_else(|| BadEvent::missing(name));
    Ok(ClientEvent::Truncate {
        item: fields.need_id("item_id")?.to_string(),
        content_index: need("content_index", 0)?,
        // A day: more than any item can hold.
        audio_end_ms: need("audio_end_ms", 86_400_000)?,
    })
}
