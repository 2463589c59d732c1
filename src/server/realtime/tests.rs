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
fn a_session_that_was_agreed_on_holds_from_the_first_event() {
    let mut door = Door::new("conv", "tag", Some("m"));
    let session = json!({"type": "realtime", "instructions": "Be brief.", "output_modalities": ["text"], "tools": [{"type": "mcp"}, {"type": "function", "name": "f"}]});
    door.begin_with(&session).unwrap();
    let told = events(&mut door);
    assert_eq!(kinds(&told), ["session.created"]);
    assert_eq!((&told[0]["session"]["instructions"], &told[0]["session"]["output_modalities"], told[0]["session"]["tools"].as_array().unwrap().len()), (&json!("Be brief."), &json!(["text"]), 1));
    assert!(door.inputs.iter().any(|i| matches!(i, LegInput::Instructions(text) if text == "Be brief.")));
    assert!(Door::new("conv", "tag", Some("m")).begin_with(&json!({"type": "realtime", "model": "other"})).is_err());
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

/// Sound of both directions, in each format.
#[cfg(feature = "opus")]
mod sound {
    use super::*;
    use crate::codec::{self, EncoderSettings};
    use crate::dialect::openai_realtime::audio::to_base64;
    use crate::engine::id::SpeechId;
    use crate::session::leg::LegEnd;

    fn tone(rate: usize, ms: usize) -> Vec<i16> {
        (0..rate * ms / 1000).map(|n| (8_000.0 * (std::f64::consts::TAU * 1_000.0 * n as f64 / rate as f64).sin()) as i16).collect()
    }

    /// Root mean square in dB.
    fn level(sound: &[i16]) -> f64 {
        let energy: f64 = sound.iter().map(|s| f64::from(*s) * f64::from(*s)).sum();
        10.0 * (energy / sound.len() as f64).log10()
    }

    fn tuned(format: Value) -> Door {
        let mut door = door();
        let audio = json!({"input": {"format": format}, "output": {"format": format}});
        door.client(0, &json!({"type": "session.update", "session": {"type": "realtime", "audio": audio}}).to_string());
        let updated = events(&mut door);
        assert_eq!(kinds(&updated), ["session.updated"], "{updated:?}");
        assert_eq!((&updated[0]["session"]["audio"]["input"]["format"], &updated[0]["session"]["audio"]["output"]["format"]), (&format, &format));
        door
    }

    fn append(door: &mut Door, now: u64, audio: &str, event_id: &str) {
        door.client(now, &json!({"type": "input_audio_buffer.append", "event_id": event_id, "audio": audio}).to_string());
    }

    /// What the conversation was given to hear.
    fn heard(door: &mut Door) -> Vec<i16> {
        door.inputs.drain(..).filter_map(|input| if let LegInput::Audio(sound) = input { Some(sound) } else { None }).flatten().collect()
    }

    /// The bytes of each delta of a speech of this sound.
    fn spoken(door: &mut Door, sound: &[i16], rate_hz: u32) -> Vec<Vec<u8>> {
        let speech = SpeechId(1);
        door.leg(0, LegOutput::SpeechBegan { speech, item: "item_s".into(), turn: None });
        door.leg(0, LegOutput::Audio { speech, samples: sound.to_vec(), rate_hz });
        door.leg(0, LegOutput::SpeechEnded { speech, end: LegEnd::Completed });
        let delta = |e: &Value| (e["type"] == "response.output_audio.delta").then(|| decoded(e["delta"].as_str().unwrap()));
        events(door).iter().filter_map(delta).collect()
    }

    fn decoded(text: &str) -> Vec<u8> {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    fn packets(sound: &[i16]) -> Vec<Vec<u8>> {
        let mut encoder = codec::encoder(EncoderSettings::default()).unwrap();
        sound.chunks_exact(codec::FRAME).map(|frame| encoder.encode(frame).unwrap()).collect()
    }

    #[test]
    fn a_tone_keeps_its_level_in_every_format_both_ways() {
        for (format, tolerance) in [
            (json!({"type": "audio/pcm", "rate": 24_000}), 0.1), (json!({"type": "audio/pcmu"}), 0.5), (json!({"type": "audio/pcma"}), 0.5),
            (json!({"type": "audio/opus", "rate": 48_000}), 0.5),
        ] {
            let mut door = tuned(format.clone());
            let (wire, rate) = (door.session.input_format, door.session.input_format.rate_hz() as usize);
            let input = tone(rate, 1_000);
            let sent: Vec<String> = match wire {
                Format::Opus => packets(&input).iter().map(|p| to_base64(p)).collect(),
                plain => input.chunks(rate / 50).map(|frame| plain.encode(frame)).collect(),
            };
            sent.iter().enumerate().for_each(|(n, audio)| append(&mut door, n as u64 * 20, audio, "x"));
            let ear = heard(&mut door);
            assert_eq!(ear.len(), 16_000, "{format}");
            let off = level(&ear[3_200..]) - level(&input);
            assert!(off.abs() < tolerance, "in by {format}: {off} dB");

            let output = tone(24_000, 1_000);
            let deltas = spoken(&mut door, &output, 24_000);
            let mouth: Vec<i16> = match wire {
                Format::Opus => {
                    let (mut decoder, mut out) = (codec::decoder().unwrap(), Vec::new());
                    deltas.iter().for_each(|p| decoder.decode(p, &mut out).unwrap());
                    out
                }
                plain => deltas.iter().flat_map(|bytes| plain.decode(bytes, "delta").unwrap()).collect(),
            };
            let (from, to) = (rate / 5, rate * 9 / 10);
            let off = level(&mouth[from..to]) - level(&output);
            assert!(off.abs() < tolerance, "out by {format}: {off} dB");
        }
    }

    #[test]
    fn one_delta_is_one_packet_and_the_last_words_are_in_them() {
        let mut door = tuned(json!({"type": "audio/opus", "rate": 48_000}));
        // 505 ms whose last 40 ms are loud.
        let mut sound = vec![0; 24_000 * 465 / 1000];
        sound.extend(tone(24_000, 40));
        let deltas = spoken(&mut door, &sound, 24_000);
        assert_eq!(deltas.len(), 26);
        let (mut decoder, mut out) = (codec::decoder().unwrap(), Vec::new());
        for packet in &deltas {
            let before = out.len();
            decoder.decode(packet, &mut out).unwrap();
            assert_eq!(out.len() - before, codec::FRAME);
        }
        let loud = out.iter().filter(|s| s.unsigned_abs() > 3_000).count();
        assert!(loud > 40 * 48 / 2, "{loud} loud samples");
        door.client(0, &json!({"type": "conversation.item.truncate", "item_id": "item_s", "content_index": 0, "audio_end_ms": 520}).to_string());
        assert_eq!(kinds(&events(&mut door)), ["conversation.item.truncated"]);
    }

    #[test]
    fn numbered_packets_are_put_in_order_and_gaps_are_filled() {
        let mut door = tuned(json!({"type": "audio/opus", "rate": 48_000}));
        let sent: Vec<String> = packets(&tone(48_000, 1_000)).iter().map(|p| to_base64(p)).collect();
        let name = |n: usize| format!("pkt_{n:06}");
        // 11 and 12 change places, 20 and 21 never come, 30 comes twice.
        let order = (0..11).chain([12, 11]).chain((13..20).chain(22..50)).collect::<Vec<usize>>();
        for (at, n) in order.iter().enumerate() {
            append(&mut door, at as u64 * 20, &sent[*n], &name(*n));
            if *n == 30 { append(&mut door, at as u64 * 20, &sent[*n], &name(*n)) }
        }
        append(&mut door, 2_000, &sent[20], &name(20));
        assert!(events(&mut door).is_empty());
        let ear = heard(&mut door);
        assert_eq!(ear.len(), 16_000);
        let off = level(&ear[3_200..]) - level(&tone(48_000, 1_000));
        assert!(off.abs() < 1.0, "{off} dB");
        let Some(LegInput::Notice { code, message }) = door.farewell() else { panic!("no farewell") };
        assert_eq!(code, "audio_packets");
        assert_eq!(message, "48 packets of sound were heard; 2 were lost and made up for, 1 came out of order, 1 twice, 1 too late, 0 were damaged.");
    }

    #[test]
    fn a_gap_that_nothing_follows_is_over_in_time_and_at_a_commit() {
        let mut door = tuned(json!({"type": "audio/opus", "rate": 48_000}));
        let sent: Vec<String> = packets(&tone(48_000, 400)).iter().map(|p| to_base64(p)).collect();
        for n in [0, 1, 3] { append(&mut door, n * 20, &sent[n as usize], &format!("pkt_{n}")) }
        assert_eq!(heard(&mut door).len(), 640);
        let due = door.deadline().unwrap();
        door.listen(due - 1);
        assert!(heard(&mut door).is_empty());
        door.listen(due);
        assert_eq!((heard(&mut door).len(), door.deadline()), (640, None));
        for n in [4, 5, 7] { append(&mut door, 200, &sent[n], &format!("pkt_{n}")) }
        door.client(200, r#"{"type": "input_audio_buffer.commit"}"#);
        assert!(matches!(door.inputs.back(), Some(LegInput::Commit { .. })));
        assert_eq!(heard(&mut door).len(), 4 * 320);
    }

    #[test]
    fn damage_is_told_once_and_its_time_is_filled() {
        let mut door = tuned(json!({"type": "audio/opus", "rate": 48_000}));
        for n in 0..10u64 { append(&mut door, n * 20, &to_base64(&[2, 252]), if n == 0 { "mine" } else { "x" }) }
        let told = events(&mut door);
        assert_eq!(kinds(&told), ["error"]);
        let error = &told[0]["error"];
        assert_eq!((&error["code"], &error["param"], &error["event_id"]), (&json!("invalid_audio_packet"), &json!("audio"), &json!("mine")));
        assert!(error["message"].as_str().unwrap().contains("middle of a length"), "{error}");
        let notices = door.inputs.iter().filter(|i| matches!(i, LegInput::Notice { .. })).count();
        assert_eq!((notices, heard(&mut door).len()), (1, 10 * 320));
        assert!(door.farewell().is_some_and(|f| format!("{f:?}").contains("10 were damaged")));
    }

    #[test]
    fn a_wrong_rate_names_its_field() {
        let mut door = door();
        for (place, format) in [("input", json!({"type": "audio/opus", "rate": 16_000})), ("output", json!({"type": "audio/opus", "rate": 24_000})), ("input", json!({"type": "audio/ogg"}))] {
            let update = json!({"type": "session.update", "session": {"type": "realtime", "audio": {place: {"format": format}}}});
            door.client(0, &update.to_string());
            let told = events(&mut door);
            let param = told[0]["error"]["param"].as_str().unwrap().to_string();
            assert!(param.starts_with(&format!("session.audio.{place}.format.")), "{told:?}");
        }
    }
}
