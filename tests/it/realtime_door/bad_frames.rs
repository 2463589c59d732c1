//! Hundreds of frames nobody should send: each is answered or taken, and the session lives on.

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::world::World;

/// One good event of each kind.
fn seeds() -> Vec<Value> {
    vec![
        json!({"type": "session.update", "event_id": "e", "session": {"type": "realtime", "instructions": "x", "tools": [{"type": "function", "name": "f", "parameters": {}}],
            "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24_000}, "turn_detection": {"type": "server_vad", "threshold": 0.5}}, "output": {"voice": "v", "speed": 1.0}}}}),
        json!({"type": "input_audio_buffer.append", "audio": "AAAA"}),
        json!({"type": "input_audio_buffer.commit"}),
        json!({"type": "input_audio_buffer.clear"}),
        json!({"type": "conversation.item.create", "previous_item_id": "root", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}}),
        json!({"type": "conversation.item.retrieve", "item_id": "a"}),
        json!({"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": 5}),
        json!({"type": "conversation.item.delete", "item_id": "a"}),
        json!({"type": "response.create", "response": {"metadata": {"a": "b"}, "instructions": "x"}}),
        json!({"type": "response.cancel", "response_id": "r"}),
        json!({"type": "output_audio_buffer.clear"}),
    ]
}

/// Values that hardly ever belong where they are put.
fn strange() -> Vec<Value> {
    vec![
        json!(null), json!(true), json!(-1), json!(1e308), json!(18_446_744_073_709_551_615u64), json!(""), json!("\u{0}\u{7f}"),
        json!("AAA"), json!([]), json!([[null]]), json!({}), json!({"type": 5}), json!("é".repeat(3_000)),
    ]
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| {
            out.push(format!("{at}/{key}"));
            places(inner, format!("{at}/{key}"), out);
        }),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, inner)| {
            out.push(format!("{at}/{i}"));
            places(inner, format!("{at}/{i}"), out);
        }),
        _ => {}
    }
}

fn mutated() -> Vec<String> {
    let mut frames = Vec::new();
    for seed in seeds() {
        let mut at = Vec::new();
        places(&seed, String::new(), &mut at);
        for place in at {
            for value in strange() {
                let mut event = seed.clone();
                *event.pointer_mut(&place).unwrap() = value;
                frames.push(event.to_string());
            }
        }
        let text = seed.to_string();
        frames.extend([1, 2, 3].map(|part| text[..text.len() * part / 4].to_string()));
        frames.push(text.replacen('{', "{\"surprise\": [1, {}], ", 1));
        frames.push(text.replace(':', ","));
        frames.push(text.replace("\"type\"", "\"typ\""));
    }
    frames.extend(
        ["", " ", "null", "[]", "5", "\"text\"", "{", "}", "{}", "NaN", "{\"type\": NaN}", "{\"type\": \"\\ud800\"}", "\u{feff}{}"].map(String::from),
    );
    frames.push("[".repeat(100_000));
    frames.push(format!("{}1{}", "[".repeat(100), "]".repeat(100)));
    frames.push(format!("{{\"type\":\"session.update\",\"session\":{}{}", "{\"audio\":".repeat(110), "}".repeat(111)));
    frames.push(format!("[{}0]", "0,".repeat(1_000_000)));
    frames.push(json!({"type": "x".repeat(10 * 1024 * 1024)}).to_string());
    frames
}

#[tokio::test]
async fn every_mutated_frame_is_survived() {
    let (mut client, mut driver) = World::pair().await;
    let drain = tokio::spawn(async move { while driver.input.recv().await.is_some() {} });
    let frames = mutated();
    assert!(frames.len() > 600, "{}", frames.len());
    let mut errors = 0;
    for (at, frame) in frames.iter().enumerate() {
        client.send_text(frame.clone()).await;
        // A marker that is always refused tells when the frame before it has been dealt with.
        let marker = format!("marker_{at}");
        client.send(json!({"type": "marker", "event_id": marker})).await;
        loop {
            let event = client.next().await;
            if event["error"]["event_id"] == marker.as_str() {
                break;
            }
            if event["type"] == "error" {
                errors += 1;
                let error = &event["error"];
                let message = error["message"].as_str().unwrap();
                assert!(error["code"].is_string() && !message.is_empty() && message.len() < 2_000, "{event}");
            }
        }
    }
    assert!(errors > frames.len() / 2, "{errors} of {}", frames.len());
    client.assert_alive().await;
    client.socket.send(Message::Binary(vec![0u8; 32].into())).await.unwrap();
    assert_eq!(client.next().await["error"]["code"], "invalid_json");
    client.assert_alive().await;
    drop(client);
    drain.await.unwrap();
}
