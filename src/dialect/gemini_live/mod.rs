//! The client's side of Gemini Live (BidiGenerateContent): frames a gateway sends to such a provider and what it reads of the answers.
//!
//! One JSON object a frame, with one key at the top as a rule. Names come in camel or snake case at every level and are read in both;
//! they are written in camel case. Text in, text out; who has the turn is the caller's matter (`server/realtime/proxy`).

mod inbound;
mod outbound;

pub use inbound::{Content, Frame, FunctionCall};
pub use outbound::{activity, audio, content, context_update, setup, stream_end, tool_response, Resume};

/// Rate of the sound that such a provider hears, in Hz (16-bit mono; it takes others and makes this of them).
pub const HEARS_HZ: u32 = 16_000;
/// Rate of the sound it makes where a frame does not say, in Hz.
pub const SPEAKS_HZ: u32 = 24_000;

/// A field by its name in camel case, in either spelling.
pub fn field<'a>(of: &'a serde_json::Value, camel: &str) -> &'a serde_json::Value {
    match of.get(camel) {
        Some(value) => value,
        None => &of[snake(camel).as_str()],
    }
}

fn snake(camel: &str) -> String {
    let mut out = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() { out.push('_') }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// A session can be given other instructions and tools while it runs (`contextUpdate`): from 3.8 on. `model` is the name as the service
/// has it, with or without a path before it.
pub fn takes_updates(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let Some(version) = name.strip_prefix("gemini-").and_then(|rest| rest.split('-').next()) else { return false };
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (3, 8)) || matches!(version.parse::<u32>(), Ok(major) if major > 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_both_spellings() {
        let value = serde_json::json!({"turn_complete": true, "outputTranscription": 1});
        assert_eq!((field(&value, "turnComplete"), field(&value, "outputTranscription"), field(&value, "goAway")), (&true.into(), &1.into(), &serde_json::Value::Null));
    }

    #[test]
    fn only_newer_models_take_another_context() {
        for (model, takes) in [("gemini-3.8-live", true), ("models/gemini-3.10-live-preview", true), ("gemini-4-live", true), ("gemini-3.1-flash-live", false), ("gemini-2.5-flash-native-audio", false), ("mine", false), ("gemini-3-live", false)] {
            assert_eq!(takes_updates(model), takes, "{model}");
        }
    }
}
