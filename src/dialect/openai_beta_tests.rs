//! The table both ways, row by row, and what holds for any event.

use super::*;
use crate::dialect::openai_realtime::client;

fn ga(event: Value) -> Value { from_client(&event.to_string()).map_or(event, |text| serde_json::from_str(&text).unwrap()) }

fn beta(event: Value) -> Value {
    match to_client(&event.to_string()) {
        Told::Same => event,
        Told::Text(text) => serde_json::from_str(&text).unwrap(),
        Told::Nothing => Value::Null,
    }
}

#[test]
fn a_flat_session_is_read_and_written_back() {
    let flat = json!({
        "modalities": ["text", "audio"], "instructions": "Be brief.", "voice": "marin", "speed": 1.1, "input_audio_format": "g711_ulaw", "output_audio_format": "pcm16",
        "input_audio_transcription": {"model": "whisper-1"}, "input_audio_noise_reduction": {"type": "near_field"},
        "turn_detection": {"type": "server_vad", "threshold": 0.6, "prefix_padding_ms": 300, "silence_duration_ms": 200, "create_response": true},
        "tools": [{"name": "light", "parameters": {"type": "object"}}], "tool_choice": "auto", "temperature": 0.7, "max_response_output_tokens": 4096,
    });
    let update = ga(json!({"type": "session.update", "event_id": "e1", "session": flat}));
    assert_eq!(update, json!({"type": "session.update", "event_id": "e1", "session": {
        "type": "realtime", "output_modalities": ["audio"], "instructions": "Be brief.",
        "audio": {
            "output": {"voice": "marin", "speed": 1.1, "format": {"type": "audio/pcm", "rate": 24_000}},
            "input": {"format": {"type": "audio/pcmu"}, "transcription": {"model": "whisper-1"}, "noise_reduction": {"type": "near_field"},
                "turn_detection": {"type": "server_vad", "threshold": 0.6, "prefix_padding_ms": 300, "silence_duration_ms": 200, "create_response": true}},
        },
        "tools": [{"name": "light", "parameters": {"type": "object"}, "type": "function"}], "tool_choice": "auto", "max_output_tokens": 4096,
    }}));
    assert!(client::parse(&update.to_string()).is_ok(), "and GA takes it");
    let mut back = beta(json!({"type": "session.updated", "event_id": "e2", "session": update["session"]}));
    assert_eq!(back["session"]["tools"][0]["type"], "function");
    let mut there = flat.clone();
    for object in [&mut back["session"], &mut there] {
        object.as_object_mut().unwrap().retain(|key, _| key != "tools" && key != "temperature");
    }
    assert_eq!(back["session"], there);
}

#[test]
fn what_clears_a_field_still_clears_it() {
    let update = ga(json!({"type": "session.update", "session": {"turn_detection": null, "input_audio_transcription": null, "tools": [], "instructions": "", "modalities": ["text"]}}));
    let session = &update["session"];
    assert_eq!(session["audio"]["input"], json!({"turn_detection": null, "transcription": null}));
    assert_eq!((&session["tools"], &session["instructions"], &session["output_modalities"]), (&json!([]), &json!(""), &json!(["text"])));
    // Whoever speaks GA under the old header is understood as well.
    let mixed = ga(json!({"type": "session.update", "session": {"type": "realtime", "audio": {"output": {"voice": "a"}}, "speed": 1.0}}));
    assert_eq!(mixed["session"], json!({"type": "realtime", "audio": {"output": {"voice": "a", "speed": 1.0}}}));
    assert_eq!(ga(json!({"type": "transcription_session.update", "session": {"input_audio_format": "pcm16"}})), json!({"type": "session.update", "session": {"type": "transcription", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24_000}}}}}));
    assert_eq!(ga(json!({"type": "session.update", "session": {"input_audio_format": "mp3"}}))["session"]["audio"]["input"]["format"], json!({"type": "mp3"}), "and is refused where GA is read");
}

#[test]
fn responses_and_items_of_the_client() {
    let create = ga(json!({"type": "response.create", "response": {"modalities": ["text"], "instructions": "x", "voice": "a", "output_audio_format": "g711_alaw", "temperature": 0.8, "max_response_output_tokens": "inf", "metadata": {"k": "v"}}}));
    assert_eq!(create["response"], json!({"output_modalities": ["text"], "instructions": "x", "audio": {"output": {"voice": "a", "format": {"type": "audio/pcma"}}}, "max_output_tokens": "inf", "metadata": {"k": "v"}}));
    let message = |role: &str, kind: &str| json!({"type": "conversation.item.create", "item": {"type": "message", "role": role, "content": [{"type": kind, "text": "hi"}]}});
    assert_eq!(ga(message("assistant", "text")), message("assistant", "output_text"));
    assert_eq!(ga(message("user", "input_text")), message("user", "input_text"));
    for kind in SAME { assert_eq!(from_client(&json!({"type": kind, "audio": "AAAA"}).to_string()), None, "{kind}") }
}

#[test]
fn every_renamed_event_and_nothing_else() {
    for (old, new) in RENAMED { assert_eq!(beta(json!({"type": new, "event_id": "e", "delta": "AAAA"})), json!({"type": old, "event_id": "e", "delta": "AAAA"})) }
    // With what no flat look takes.
    assert_eq!(beta(json!({"type": "response.output_text.delta", "delta": "a \"b\""})), json!({"type": "response.text.delta", "delta": "a \"b\""}));
    assert_eq!(to_client(r#"{"type":"input_audio_buffer.committed","item_id":"i"}"#), Told::Same);
    assert_eq!(beta(json!({"type": "conversation.item.done", "item": {"id": "i"}})), Value::Null);
    let added = json!({"type": "conversation.item.added", "previous_item_id": null, "item": {"id": "i", "type": "message", "role": "assistant", "phase": "final", "content": [{"type": "output_audio", "transcript": "t"}, {"type": "output_text", "text": "u"}]}});
    assert_eq!(beta(added), json!({"type": "conversation.item.created", "previous_item_id": null, "item": {"id": "i", "type": "message", "role": "assistant", "content": [{"type": "audio", "transcript": "t"}, {"type": "text", "text": "u"}], "object": "realtime.item"}}));
    let done = json!({"type": "response.done", "response": {"id": "r", "output_modalities": ["audio"], "audio": {"output": {"voice": "v", "format": {"type": "audio/pcm", "rate": 24_000}}}, "max_output_tokens": "inf", "output": [{"id": "i", "content": [{"type": "output_audio", "transcript": "t"}]}], "usage": {"total_tokens": 1}}});
    assert_eq!(beta(done)["response"], json!({"id": "r", "modalities": ["text", "audio"], "voice": "v", "output_audio_format": "pcm16", "max_output_tokens": "inf", "output": [{"id": "i", "content": [{"type": "audio", "transcript": "t"}], "object": "realtime.item"}], "usage": {"total_tokens": 1}}));
    let error = |param: &str| beta(json!({"type": "error", "event_id": "e", "error": {"code": "c", "param": param}}))["error"]["param"].clone();
    assert_eq!([error("session.audio.input.format.rate"), error("session.audio.input.turn_detection.threshold"), error("session.output_modalities"), error("item.id")], ["session.input_audio_format", "session.turn_detection.threshold", "session.modalities", "item.id"]);
}

#[test]
fn no_event_is_lost_but_the_end_of_an_item_and_what_cannot_be_read_goes_on() {
    use proptest::prelude::*;
    let value = prop_oneof![
        Just(json!(null)), Just(json!({})), Just(json!([])), Just(json!({"audio": 1, "content": {"type": 2}, "output": {"a": []}, "param": 3})), any::<i32>().prop_map(|n| json!(n)), ".{0,6}".prop_map(|s| json!(s)),
        Just(json!({"type": "realtime", "audio": {"input": [1], "output": {"format": 3}}, "output_modalities": "x", "output": [1, null, {"content": [null, "a", {"type": 4}]}]})),
    ];
    let kinds = prop_oneof![Just("response.done"), Just("session.created"), Just("session.updated"), Just("conversation.item.added"), Just("conversation.item.done"), Just("response.output_audio.delta"), Just("error"), Just("session.update"), Just("response.create"), Just("conversation.item.create"), Just("new.event")];
    proptest!(|(kind in kinds, fields in proptest::collection::vec(("session|item|response|error|delta|part|x", value), 0..4))| {
        let mut event = json!({"type": kind, "event_id": "e"});
        for (name, value) in fields { event[name] = value }
        let told = to_client(&event.to_string());
        prop_assert_eq!(told == Told::Nothing, kind == "conversation.item.done");
        let after = beta(event.clone());
        if !after.is_null() {
            prop_assert_eq!(&after["event_id"], "e");
            let name = RENAMED.iter().find(|(_, ga)| *ga == kind).map_or(kind, |(beta, _)| beta);
            prop_assert_eq!(after["type"].as_str(), Some(name));
        }
        prop_assert_eq!(&ga(event)["event_id"], "e");
    });
    for broken in ["", "{", "[1]", "null", "{\"type\":1}", "\u{0}"] {
        assert_eq!((from_client(broken), to_client(broken)), (None, Told::Same), "{broken:?}");
    }
}
