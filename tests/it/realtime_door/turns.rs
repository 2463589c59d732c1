//! What the conversation says, as server events in the order clients rely on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use voxgate::engine::id::SpeechId;
use voxgate::session::leg::{LegEnd, LegInput, LegOutput};

use super::world::{World, tone};

/// What comes between `response.created` and the first delta.
const OPENING: [&str; 3] = ["response.output_item.added", "conversation.item.added", "response.content_part.added"];
/// What comes after the last delta.
const CLOSING: [&str; 7] = [
    "response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done", "conversation.item.done",
    "response.output_item.done", "response.done", "rate_limits.updated",
];

#[tokio::test]
async fn one_turn_has_the_order_clients_rely_on() {
    let (mut client, driver) = World::pair().await;
    driver.hear("item_user", "What's in my notes?").await;
    driver.turn_began(1).await;
    driver.begin(7, "item_said", Some(1)).await;
    driver.text(7, "You have").await;
    driver.sound(7, 300).await;
    driver.text(7, " one note.").await;
    driver.end(7, LegEnd::Completed).await;
    driver.turn_ended(1, LegEnd::Completed).await;

    let heard = client
        .expect_all(&[
            "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
            "conversation.item.added", "conversation.item.done", "conversation.item.input_audio_transcription.completed",
        ])
        .await;
    assert_eq!((&heard[0]["audio_start_ms"], &heard[1]["audio_end_ms"]), (&json!(480), &json!(1_980)));
    assert_eq!(heard[2]["previous_item_id"], json!(null));
    assert_eq!(heard[3]["item"]["content"], json!([{"type": "input_audio", "transcript": null}]));
    assert_eq!((&heard[5]["transcript"], &heard[5]["usage"]["seconds"]), (&json!("What's in my notes?"), &json!(1.5)));

    let created = client.expect("response.created").await;
    assert_eq!(created["response"]["status"], "in_progress");
    let opening = client.expect_all(&OPENING).await;
    assert_eq!(opening[0]["item"]["status"], "in_progress");
    assert_eq!(opening[1]["previous_item_id"], "item_user");
    assert_eq!(opening[2]["part"], json!({"type": "audio", "transcript": ""}));
    let deltas = client
        .expect_all(&[
            "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio.delta",
            "response.output_audio_transcript.delta",
        ])
        .await;
    let bytes: Vec<usize> = deltas[1..3].iter().map(|d| STANDARD.decode(d["delta"].as_str().unwrap()).unwrap().len()).collect();
    assert_eq!(bytes, [9_600, 4_800], "200 ms at most in one delta, and nothing is lost");
    let closing = client.expect_all(&CLOSING).await;
    assert_eq!(closing[1]["transcript"], "You have one note.");
    assert_eq!(closing[2]["part"], json!({"type": "audio", "transcript": "You have one note."}));
    let done = &closing[5]["response"];
    assert_eq!((&done["status"], &done["id"]), (&json!("completed"), &created["response"]["id"]));
    assert_eq!(done["output"][0]["content"], json!([{"type": "output_audio", "transcript": "You have one note."}]));
    for event in opening.iter().skip(2).chain(&deltas).chain(&closing[..3]) {
        assert_eq!((&event["response_id"], &event["item_id"]), (&created["response"]["id"], &json!("item_said")), "{event}");
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn a_second_sentence_of_a_turn_is_a_response_of_its_own() {
    let (mut client, driver) = World::pair().await;
    driver.turn_began(1).await;
    driver.speak(1, "a", Some(1), "Let me look.").await;
    driver.speak(2, "b", Some(1), "Here it is.").await;
    driver.turn_ended(1, LegEnd::Completed).await;
    let mut ids = Vec::new();
    for words in ["Let me look.", "Here it is."] {
        ids.push(client.expect("response.created").await["response"]["id"].clone());
        client.expect_all(&OPENING).await;
        client.expect_all(&["response.output_audio_transcript.delta", "response.output_audio.delta"]).await;
        let closing = client.expect_all(&CLOSING).await;
        assert_eq!(closing[5]["response"]["output"][0]["content"][0]["transcript"], words);
    }
    assert_ne!(ids[0], ids[1]);
    client.assert_alive().await;
}

#[tokio::test]
async fn an_empty_open_response_takes_the_next_speech_whosever_it_is() {
    let (mut client, driver) = World::pair().await;
    driver.turn_began(1).await;
    driver.speak(1, "ask", None, "Shall I add buy milk to your notes?").await;
    driver.turn_ended(1, LegEnd::Completed).await;
    driver.speak(2, "later", None, "That took too long.").await;
    for _ in 0..2 {
        client.expect("response.created").await;
        client.expect_all(&OPENING).await;
        client.expect_all(&["response.output_audio_transcript.delta", "response.output_audio.delta"]).await;
        assert_eq!(client.expect_all(&CLOSING).await[5]["response"]["status"], "completed");
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn a_turn_without_words_is_an_empty_response() {
    let (mut client, driver) = World::pair().await;
    for (turn, end, status) in [(1, LegEnd::Completed, "completed"), (2, LegEnd::Interrupted, "cancelled"), (3, LegEnd::Failed, "failed")] {
        driver.turn_began(turn).await;
        if end == LegEnd::Failed {
            driver.say(LegOutput::Notice { code: "agent_down".into(), message: "The model does not answer.".into() }).await;
        }
        driver.turn_ended(turn, end).await;
        client.expect("response.created").await;
        let done = client.expect("response.done").await;
        assert_eq!((&done["response"]["status"], &done["response"]["output"]), (&json!(status), &json!([])));
        if end == LegEnd::Failed {
            let error = &done["response"]["status_details"]["error"];
            assert_eq!((&error["code"], &error["message"]), (&json!("agent_down"), &json!("The model does not answer.")));
        }
        client.expect("rate_limits.updated").await;
    }
}

#[tokio::test]
async fn barge_in_cancels_then_truncate_and_retrieve_work() {
    let (mut client, mut driver) = World::pair().await;
    driver.turn_began(1).await;
    driver.begin(1, "said", Some(1)).await;
    driver.text(1, "A long story about notes.").await;
    driver.sound(1, 1_000).await;
    client.expect("response.created").await;
    client.expect_all(&OPENING).await;
    client.expect("response.output_audio_transcript.delta").await;
    for _ in 0..5 {
        client.expect("response.output_audio.delta").await;
    }
    driver.say(LegOutput::SpeechStarted { utterance: Default::default(), at_ms: 9_000, item: "u".into() }).await;
    driver.end(1, LegEnd::Interrupted).await;
    driver.turn_ended(1, LegEnd::Interrupted).await;
    client.expect("input_audio_buffer.speech_started").await;
    let closing = client.expect_all(&CLOSING).await;
    assert_eq!(closing[3]["item"]["status"], "incomplete");
    assert_eq!(closing[5]["response"]["status_details"], json!({"type": "cancelled", "reason": "turn_detected"}));

    client.send(json!({"type": "conversation.item.truncate", "item_id": "said", "content_index": 0, "audio_end_ms": 297})).await;
    let truncated = client.expect("conversation.item.truncated").await;
    assert_eq!((&truncated["item_id"], &truncated["audio_end_ms"]), (&json!("said"), &json!(297)));
    assert_eq!(driver.next_word().await, LegInput::Truncate { item: "said".into(), audio_end_ms: 297 });
    client.send(json!({"type": "conversation.item.retrieve", "item_id": "said"})).await;
    let item = client.expect("conversation.item.retrieved").await;
    assert_eq!(item["item"]["content"][0]["transcript"], json!(null), "what was cut is not claimed");
}

#[tokio::test]
async fn a_text_session_gets_text() {
    let (mut client, mut driver) = World::pair().await;
    client.send(json!({"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}})).await;
    assert_eq!(client.expect("session.updated").await["session"]["output_modalities"], json!(["text"]));
    assert_eq!(driver.next_word().await, LegInput::Speaks(false));
    driver.turn_began(1).await;
    driver.begin(1, "said", Some(1)).await;
    driver.text(1, "Shall I?").await;
    driver.sound(1, 100).await;
    driver.end(1, LegEnd::Completed).await;
    let events = client
        .expect_all(&[
            "response.created", OPENING[0], OPENING[1], OPENING[2], "response.output_text.delta", "response.output_text.done",
            "response.content_part.done", "conversation.item.done", "response.output_item.done", "response.done", "rate_limits.updated",
        ])
        .await;
    assert_eq!(events[3]["part"], json!({"type": "text", "text": ""}));
    assert_eq!(events[9]["response"]["output"][0]["content"], json!([{"type": "output_text", "text": "Shall I?"}]));
}

#[tokio::test]
async fn a_voice_of_another_rate_and_a_client_of_another_format_meet() {
    let (mut client, driver) = World::pair().await;
    let session = json!({"type": "realtime", "audio": {"output": {"format": {"type": "audio/pcmu"}}}});
    client.send(json!({"type": "session.update", "session": session})).await;
    client.expect("session.updated").await;
    driver.begin(1, "said", None).await;
    driver.say(LegOutput::Audio { speech: SpeechId(1), samples: tone(22_050, 1_000), rate_hz: 22_050 }).await;
    driver.end(1, LegEnd::Completed).await;
    let mut bytes = 0;
    loop {
        let event = client.next().await;
        match event["type"].as_str().unwrap() {
            "response.output_audio.delta" => bytes += STANDARD.decode(event["delta"].as_str().unwrap()).unwrap().len(),
            "response.done" => break,
            _ => {}
        }
    }
    assert!((8_000..8_100).contains(&bytes), "a second at 8 kHz, one byte a sample, and the filter's tail: {bytes}");
}

#[tokio::test]
async fn nothing_understood_is_said_and_transcripts_can_be_switched_off() {
    let (mut client, driver) = World::pair().await;
    driver.say(LegOutput::UserTranscript { item: "u".into(), text: None }).await;
    let failed = client.expect("conversation.item.input_audio_transcription.failed").await;
    assert_eq!(failed["error"]["code"], "nothing_understood");
    let session = json!({"type": "realtime", "audio": {"input": {"transcription": null}}});
    client.send(json!({"type": "session.update", "session": session})).await;
    client.expect("session.updated").await;
    driver.say(LegOutput::UserTranscript { item: "u".into(), text: Some("hello".into()) }).await;
    driver.turn_began(1).await;
    client.expect("response.created").await;
}
