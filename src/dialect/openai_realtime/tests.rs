//! The codec alone: names, ids, refusals and what an update leaves standing.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{ClientEvent, TYPES, parse};
use super::error::BadEvent;
use super::server::{At, Writer};
use super::session::SessionState;

fn bad(event: Value) -> BadEvent { parse(&event.to_string()).unwrap_err() }

#[test]
fn every_known_type_is_read_or_says_what_it_lacks() {
    for kind in TYPES {
        match parse(&json!({"type": kind, "event_id": "e"}).to_string()) {
            Ok(received) => assert_eq!(received.event_id.as_deref(), Some("e")),
            Err(bad) => {
                assert_eq!((bad.code, bad.event_id.as_deref()), ("missing_required_parameter", Some("e")), "{kind}");
                assert!(bad.message.contains(bad.param.as_deref().unwrap()), "{}", bad.message);
            }
        }
    }
}

#[test]
fn messages_never_carry_a_whole_attack() {
    let error = bad(json!({"type": "x\u{0}".repeat(5_000)}));
    assert!(error.message.len() < 700 && !error.message.contains('\u{0}'), "{}", error.message);
    let error = bad(json!({"type": "input_audio_buffer.clear", "k".repeat(5_000): 1}));
    assert!(error.message.len() < 200 && error.param.unwrap().len() < 80);
}

#[test]
fn an_older_client_is_told_where_its_fields_live() {
    let error = bad(json!({"type": "session.update", "session": {"type": "realtime", "turn_detection": null}}));
    assert!(error.message.ends_with("It is 'session.audio.input.turn_detection' here."), "{}", error.message);
}

#[test]
fn a_kind_of_turn_taking_brings_its_own_defaults() {
    let mut session = SessionState::new("c", None);
    let mut update = |turns: Value| {
        let event = json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": turns}}}});
        let ClientEvent::Update(change) = parse(&event.to_string()).unwrap().event else { panic!() };
        session.apply(*change, false).unwrap();
        session.to_json()["audio"]["input"]["turn_detection"].clone()
    };
    assert_eq!(update(json!({"type": "server_vad", "silence_duration_ms": 900, "create_response": false}))["silence_duration_ms"], 900);
    let semantic = update(json!({"type": "semantic_vad"}));
    assert_eq!(semantic, json!({"type": "semantic_vad", "eagerness": "auto", "create_response": false, "interrupt_response": true}));
    assert_eq!(update(json!({"type": "server_vad"}))["silence_duration_ms"], 500, "what another kind said is not taken over");
    assert_eq!(update(json!(null)), json!(null));
    assert_eq!(update(json!({"type": "server_vad", "threshold": 0.3}))["create_response"], true);
}

#[test]
fn a_session_without_a_model_takes_the_first_and_keeps_it() {
    let mut session = SessionState::new("c", None);
    let mut update = |model: &str| {
        let event = json!({"type": "session.update", "session": {"type": "realtime", "model": model}});
        let ClientEvent::Update(change) = parse(&event.to_string()).unwrap().event else { panic!() };
        session.apply(*change, false).map(|_| ())
    };
    assert_eq!(update("gpt-realtime"), Ok(()));
    assert_eq!(update("gpt-realtime"), Ok(()));
    assert_eq!(update("other").unwrap_err().param.as_deref(), Some("session.model"));
}

#[test]
fn every_server_event_has_its_own_id() {
    let mut writer = Writer::new("tag");
    let at = At { response: "r".into(), item: "i".into() };
    let frames = [writer.cleared(), writer.text_delta(&at, "a"), writer.rate_limits(), writer.error(&BadEvent::new("c", "m"))];
    let ids: std::collections::HashSet<String> =
        frames.iter().map(|f| serde_json::from_str::<Value>(f).unwrap()["event_id"].to_string()).collect();
    assert_eq!(ids.len(), frames.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from), any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from), prop::sample::select(&TYPES[..]).prop_map(Value::from),
        prop::sample::select(vec!["realtime", "message", "user", "input_text", "server_vad", "audio/pcm", "function"]).prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "type", "event_id", "session", "audio", "input", "output", "format", "rate", "turn_detection", "tools", "item", "content", "text", "id",
        "role", "response", "metadata", "voice", "threshold", "audio_end_ms", "output_modalities", "x",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(kind in prop::sample::select(&TYPES[..]), mut event in any_json(), text in ".{0,64}") {
        let _ = parse(&text);
        if let Value::Object(map) = &mut event {
            map.insert("type".into(), json!(kind));
        }
        match parse(&event.to_string()) {
            Ok(received) => if let ClientEvent::Update(change) = received.event {
                let mut session = SessionState::new("c", None);
                let _ = session.apply(*change, true);
                prop_assert!(session.to_json().is_object());
            },
            Err(bad) => prop_assert!(!bad.code.is_empty() && !bad.message.is_empty()),
        }
    }
}
