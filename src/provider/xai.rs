//! xAI's voice API: OpenAI's protocol, with voice and turn taking at the top of the session.

use serde_json::Value;

use super::{Capabilities, Dialect, Kind, bearer, in_query};

/// Its row.
pub(super) const KIND: Kind = Kind {
    name: "xai",
    about: "xAI's voice API",
    url: "https://api.x.ai/v1",
    dialect: Dialect::OpenAiRealtime,
    capabilities: Capabilities { cancels: true, truncates: true, edits: true, lets_go_of_turns: true, session_minutes: 60 },
    path: |model| format!("/realtime?model={}", in_query(model)),
    key: bearer,
    session: moved_up,
};

/// `audio.input.turn_detection` and `audio.output.voice` stand beside `audio` here.
fn moved_up(mut session: Value) -> Value {
    for (at, name) in [("/audio/input", "turn_detection"), ("/audio/output", "voice")] {
        if let Some(value) = session.pointer_mut(at).and_then(Value::as_object_mut).and_then(|o| o.remove(name)) {
            session[name] = value;
        }
    }
    session
}

#[cfg(test)]
mod tests {
    #[test]
    fn voice_and_turns_stand_at_the_top() {
        let session = serde_json::json!({"audio": {"input": {"turn_detection": null, "format": {}}, "output": {"voice": "ara"}}});
        let moved = super::moved_up(session);
        assert_eq!(moved, serde_json::json!({"audio": {"input": {"format": {}}, "output": {}}, "turn_detection": null, "voice": "ara"}));
    }
}
