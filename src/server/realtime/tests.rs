//! The door without a socket, on a clock of its own.

use serde_json::{Value, json};

use super::door::Door;
use crate::dialect::openai_realtime::audio::Format;
use crate::engine::id::TurnId;
use crate::session::leg::{LegInput, LegOutput};

fn events(door: &mut Door) -> Vec<Value> {
    std::iter::from_fn(|| door.next_frame()).map(|frame| serde_json::from_str(&frame).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> { events.iter().map(|event| event["type"].as_str().unwrap()).collect() }

fn door() -> Door {
    let mut door = Door::new("conv", "tag", None);
    assert_eq!(kinds(&events(&mut door)), ["session.created"]);
    assert_eq!((door.waiting_bytes(), door.has_frames()), (0, false));
    door
}

#[test]
fn a_response_nobody_answers_ends_after_half_a_minute() {
    let mut door = door();
    door.client(1_000, &json!({"type": "response.create", "response": {"instructions": "x"}}).to_string());
    door.tick(30_000);
    assert_eq!(kinds(&events(&mut door)), ["response.created"]);
    door.tick(31_001);
    let late = events(&mut door);
    assert_eq!(kinds(&late), ["response.done", "rate_limits.updated"]);
    assert_eq!(late[0]["response"]["status_details"]["error"]["code"], "no_answer");
    assert_eq!(door.inputs.back(), Some(&LegInput::Instructions(String::new())), "its own instructions go with it");
    // A turn that comes after all makes a response of its own; one that a turn has claimed waits as long as the turn takes.
    door.leg(32_000, LegOutput::TurnBegan { turn: TurnId(1) });
    door.tick(900_000);
    assert_eq!(kinds(&events(&mut door)), ["response.created"]);
}

#[test]
fn sound_may_run_a_minute_ahead_of_the_clock_and_no_further() {
    let mut door = door();
    let append = json!({"type": "input_audio_buffer.append", "audio": Format::Pcm.encode(&vec![0; 24_000])});
    let append = append.to_string();
    for second in 0..60 {
        door.client(0, &append);
        assert_eq!(door.inputs.len(), second + 1);
    }
    door.client(999, &append);
    assert_eq!(events(&mut door)[0]["error"]["code"], "input_audio_too_far_ahead");
    door.client(1_000, &append);
    assert!(!door.has_frames() && door.inputs.len() == 61);
}

#[test]
fn ten_times_real_time_for_a_minute_is_bounded_and_told_once() {
    let mut door = door();
    let append = json!({"type": "input_audio_buffer.append", "audio": Format::Pcm.encode(&vec![0; 4_800])}).to_string();
    let (mut heard_ms, mut told) = (0, Vec::new());
    for n in 0..3_000 {
        door.client(n * 20, &append);
        heard_ms += door.inputs.drain(..).filter(|i| matches!(i, LegInput::Audio(_))).count() * 200;
        told.extend(events(&mut door));
    }
    // What runs ahead is held to a minute, and a minute went by.
    assert!((118_000..=120_000).contains(&heard_ms), "{heard_ms}");
    assert_eq!(told.iter().map(|e| e["error"]["code"].clone()).collect::<Vec<_>>(), [json!("input_audio_too_far_ahead")]);
    // A client that came back to its senses and floods again is told again.
    for n in 0..3_000 { door.client(60_000 + n * 20, &json!({"type": "input_audio_buffer.append", "audio": Format::Pcm.encode(&[0; 48])}).to_string()) }
    assert!(!door.has_frames());
    for n in 0..600 { door.client(120_000 + n, &append) }
    assert_eq!(events(&mut door)[0]["error"]["code"], "input_audio_too_far_ahead");
}

#[test]
fn live_sound_of_a_wrong_rate_is_told_once_within_five_seconds() {
    let mut door = door();
    // 20 ms of 16 kHz, said to be 24 kHz.
    let append = json!({"type": "input_audio_buffer.append", "audio": Format::Pcm.encode(&[0; 320])}).to_string();
    for n in 0..250 { door.client(n * 20, &append) }
    let told = events(&mut door);
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["error"]["code"], told[0]["error"]["message"].as_str().unwrap().contains("like 16000 Hz")), (&json!("input_audio_wrong_rate"), true));
    let notices = door.inputs.iter().filter(|i| matches!(i, LegInput::Notice { code, .. } if code == "input_audio_wrong_rate")).count();
    for n in 250..900 { door.client(n * 20, &append) }
    assert!(notices == 1 && !door.has_frames());
}

#[test]
fn only_so_many_items_are_remembered() {
    let mut door = door();
    for at in 0..300 {
        door.leg(0, LegOutput::Committed { item: format!("item_{at}").as_str().into() });
    }
    events(&mut door);
    for (item, kind) in [("item_0", "error"), ("item_299", "conversation.item.retrieved")] {
        door.client(0, &json!({"type": "conversation.item.retrieve", "item_id": item}).to_string());
        assert_eq!(kinds(&events(&mut door)), [kind]);
    }
}

#[test]
fn a_repeated_update_is_noticed_once() {
    let mut door = door();
    let update = json!({"type": "session.update", "session": {"type": "realtime", "tools": [{"type": "function", "name": "f"}]}}).to_string();
    for _ in 0..3 {
        door.client(0, &update);
    }
    assert_eq!(door.inputs.len(), 1);
    assert_eq!(kinds(&events(&mut door)), ["session.updated"; 3]);
}
