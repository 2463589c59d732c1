//! OpenAI Realtime as it was in its beta, for clients that still speak it: a translation to the GA shape and back.
//!
//! Owns the two names of everything that was renamed. Called by `server/realtime/seam` and by the door of client secrets. It judges
//! nothing: what it cannot read goes on as it came and is refused where GA is read; sound goes on with at most its event's name changed.

use serde_json::{Map, Value, json};

use super::openai_realtime::peek::Peek;

/// Events of the client that are the same in both.
const SAME: [&str; 8] = [
    "input_audio_buffer.append", "input_audio_buffer.commit", "input_audio_buffer.clear", "conversation.item.retrieve", "conversation.item.truncate",
    "conversation.item.delete", "response.cancel", "output_audio_buffer.clear",
];
/// Server events that were renamed: beta, GA.
const RENAMED: [(&str, &str); 7] = [
    ("response.text.delta", "response.output_text.delta"),
    ("response.text.done", "response.output_text.done"),
    ("response.audio.delta", "response.output_audio.delta"),
    ("response.audio.done", "response.output_audio.done"),
    ("response.audio_transcript.delta", "response.output_audio_transcript.delta"),
    ("response.audio_transcript.done", "response.output_audio_transcript.done"),
    ("conversation.item.created", "conversation.item.added"),
];
/// Fields of a session that lie flat in beta, and where GA has them under `audio`.
const MOVED: [(&str, [&str; 2]); 7] = [
    ("voice", ["output", "voice"]),
    ("speed", ["output", "speed"]),
    ("output_audio_format", ["output", "format"]),
    ("input_audio_format", ["input", "format"]),
    ("input_audio_transcription", ["input", "transcription"]),
    ("input_audio_noise_reduction", ["input", "noise_reduction"]),
    ("turn_detection", ["input", "turn_detection"]),
];
const FORMATS: [(&str, &str); 3] = [("pcm16", "audio/pcm"), ("g711_ulaw", "audio/pcmu"), ("g711_alaw", "audio/pcma")];

/// A client's event, in GA shape. `None`: it goes on as it came.
pub fn from_client(text: &str) -> Option<String> {
    if Peek::at(text).is_some_and(|peek| peek.text("type").is_some_and(|kind| SAME.contains(&kind))) { return None }
    let Ok(Value::Object(mut event)) = serde_json::from_str(text) else { return None };
    match event.get("type").and_then(Value::as_str)? {
        "session.update" => change(&mut event, "session", |session| session_from_client(session, "realtime")),
        "transcription_session.update" => {
            event.insert("type".into(), json!("session.update"));
            change(&mut event, "session", |session| session_from_client(session, "transcription"));
        }
        "response.create" => change(&mut event, "response", response_from_client),
        "conversation.item.create" => change(&mut event, "item", item_from_client),
        _ => return None,
    }
    Some(Value::Object(event).to_string())
}

fn change(event: &mut Map<String, Value>, field: &str, with: impl FnOnce(Value) -> Value) {
    if let Some(value) = event.remove(field) { event.insert(field.to_string(), with(value)); }
}

/// A flat session, in GA shape. `kind`: `realtime` or `transcription`. Fields that have their GA name already stay.
pub fn session_from_client(session: Value, kind: &str) -> Value {
    let Value::Object(flat) = session else { return session };
    let mut out = json!({"type": kind});
    for (name, value) in flat {
        match name.as_str() {
            "temperature" | "client_secret" => {}
            "modalities" => out["output_modalities"] = modalities_from_client(value),
            "max_response_output_tokens" => out["max_output_tokens"] = value,
            "tools" => out["tools"] = tools(value),
            name => match MOVED.iter().find(|(flat, _)| *flat == name) {
                Some((_, [side, inner])) => put(&mut out, side, inner, if inner == &"format" { format_from_client(value) } else { value }),
                // Beside flat fields of sound, whoever mixes both.
                None if name == "audio" => super::openai_realtime::upstream::merge(&mut out, json!({"audio": value})),
                None => out[name] = value,
            },
        }
    }
    out
}

/// `out.audio.SIDE.INNER = value`, unless something else than an object stands there.
fn put(out: &mut Value, side: &str, inner: &str, value: Value) {
    super::openai_realtime::upstream::merge(out, json!({"audio": {side: {inner: value}}}));
}

fn modalities_from_client(value: Value) -> Value {
    let has = |word: &str| value.as_array().is_some_and(|list| list.iter().any(|v| v == word));
    match (has("audio"), has("text")) {
        (true, _) => json!(["audio"]),
        (false, true) => json!(["text"]),
        _ => value,
    }
}

fn format_from_client(value: Value) -> Value {
    let Some(word) = value.as_str() else { return value };
    match FORMATS.iter().find(|(beta, _)| *beta == word) {
        Some((_, "audio/pcm")) => json!({"type": "audio/pcm", "rate": 24_000}),
        Some((_, kind)) => json!({"type": kind}),
        None => json!({"type": word}),
    }
}

/// Some clients of the beta left out the only type of tool there was.
fn tools(mut value: Value) -> Value {
    for tool in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if tool.contains_key("name") && !tool.contains_key("type") { tool.insert("type".into(), json!("function")); }
    }
    value
}

fn response_from_client(response: Value) -> Value {
    let Value::Object(flat) = response else { return response };
    let mut out = json!({});
    for (name, value) in flat {
        match name.as_str() {
            "temperature" => {}
            "modalities" => out["output_modalities"] = modalities_from_client(value),
            "max_response_output_tokens" => out["max_output_tokens"] = value,
            "voice" => put(&mut out, "output", "voice", value),
            "output_audio_format" => put(&mut out, "output", "format", format_from_client(value)),
            "tools" => out["tools"] = tools(value),
            "input" => out["input"] = match value {
                Value::Array(items) => items.into_iter().map(item_from_client).collect(),
                other => other,
            },
            name => out[name] = value,
        }
    }
    out
}

fn item_from_client(mut item: Value) -> Value {
    if item["role"] == "assistant" { rename_parts(&mut item, &[("text", "output_text"), ("audio", "output_audio")]) }
    item
}

fn rename_parts(item: &mut Value, names: &[(&str, &str)]) {
    for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        let new = part["type"].as_str().and_then(|kind| names.iter().find(|(old, _)| *old == kind)).map(|(_, new)| *new);
        if let (Some(new), Some(part)) = (new, part.as_object_mut()) { part.insert("type".into(), json!(new)); }
    }
}

/// What becomes of a server's event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// As it came.
    Same,
    /// This instead.
    Text(String),
    /// The beta has no such event: `conversation.item.done`, whose item was told of by `conversation.item.created`.
    Nothing,
}

/// A server's event, for a client of the beta.
pub fn to_client(text: &str) -> Told {
    if let Some(peek) = Peek::at(text) {
        // Flat events hold no session, item or response: a name is all there is to change.
        let kind = peek.text("type").unwrap_or_default();
        if kind == "conversation.item.done" { return Told::Nothing }
        return match RENAMED.iter().find(|(_, ga)| *ga == kind) {
            Some((beta, _)) => Told::Text(peek.with(&[("type", beta)])),
            None => Told::Same,
        };
    }
    let Ok(Value::Object(mut event)) = serde_json::from_str(text) else { return Told::Same };
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
    let transcribes = event.get("session").is_some_and(|session| session["type"] == "transcription");
    let beta = match kind.as_str() {
        "conversation.item.done" => return Told::Nothing,
        "session.updated" if transcribes => Some("transcription_session.updated"),
        kind => RENAMED.iter().find(|(_, ga)| *ga == kind).map(|(beta, _)| *beta),
    };
    if let Some(beta) = beta { event.insert("type".into(), json!(beta)); }
    change(&mut event, "session", session_to_client);
    change(&mut event, "item", item_to_client);
    change(&mut event, "response", response_to_client);
    change(&mut event, "error", error_to_client);
    Told::Text(Value::Object(event).to_string())
}

/// A GA session, flat.
pub fn session_to_client(session: Value) -> Value {
    let Value::Object(full) = session else { return session };
    let mut out = Map::new();
    for (name, value) in full {
        match name.as_str() {
            "type" | "reasoning" | "prompt" | "truncation" | "parallel_tool_calls" => {}
            "output_modalities" => drop(out.insert("modalities".into(), modalities_to_client(value))),
            "max_output_tokens" => drop(out.insert("max_response_output_tokens".into(), value)),
            "audio" => MOVED.iter().for_each(|(flat, [side, inner])| {
                if let Some(value) = value[*side].get(*inner) {
                    out.insert((*flat).to_string(), if inner == &"format" { format_to_client(value) } else { value.clone() });
                }
            }),
            _ => drop(out.insert(name, value)),
        }
    }
    Value::Object(out)
}

fn modalities_to_client(value: Value) -> Value { if value == json!(["audio"]) { json!(["text", "audio"]) } else { value } }

fn format_to_client(value: &Value) -> Value {
    let kind = value["type"].as_str().unwrap_or_default();
    FORMATS.iter().find(|(_, ga)| *ga == kind).map_or_else(|| value.clone(), |(beta, _)| json!(beta))
}

fn item_to_client(mut item: Value) -> Value {
    rename_parts(&mut item, &[("output_text", "text"), ("output_audio", "audio")]);
    if let Some(item) = item.as_object_mut() {
        item.remove("phase");
        item.entry("object").or_insert_with(|| json!("realtime.item"));
    }
    item
}

fn response_to_client(response: Value) -> Value {
    let Value::Object(full) = response else { return response };
    let mut out = Map::new();
    for (name, value) in full {
        match name.as_str() {
            "reasoning" | "parallel_tool_calls" => {}
            "output_modalities" => drop(out.insert("modalities".into(), modalities_to_client(value))),
            "audio" => {
                if let Some(voice) = value["output"].get("voice") { out.insert("voice".into(), voice.clone()); }
                if let Some(format) = value["output"].get("format") { out.insert("output_audio_format".into(), format_to_client(format)); }
            }
            "output" => drop(out.insert(name, match value {
                Value::Array(items) => items.into_iter().map(item_to_client).collect(),
                other => other,
            })),
            _ => drop(out.insert(name, value)),
        }
    }
    Value::Object(out)
}

/// An error names the field by the name that the client wrote.
fn error_to_client(mut error: Value) -> Value {
    if let Some(param) = error["param"].as_str() {
        let moved = MOVED.iter().find_map(|(flat, [side, inner])| {
            let rest = param.strip_prefix(&format!("session.audio.{side}.{inner}"))?;
            Some(format!("session.{flat}{}", if *inner == "format" { "" } else { rest }))
        });
        let renamed = match param {
            "session.output_modalities" => Some("session.modalities".to_string()),
            "session.max_output_tokens" => Some("session.max_response_output_tokens".to_string()),
            _ => moved,
        };
        if let Some(param) = renamed { error["param"] = json!(param) }
    }
    error
}

#[cfg(test)]
#[path = "openai_beta_tests.rs"]
mod tests;
