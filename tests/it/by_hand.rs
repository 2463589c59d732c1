//! `/v1/realtime` where the client takes its turns by hand, types, or has no voice: what tightens still does, nothing typed
//! loosens, and nobody consents aloud to a question that was not said aloud.

use serde_json::{Value, json};

use crate::live::Gateway;
use crate::live::chat::Chat;
use crate::live::headset::Headset;
use crate::sdk_conversation::notes;

fn by_hand() -> Value { json!({"type": "realtime", "audio": {"input": {"turn_detection": null}}}) }

fn typed(text: &str) -> Value {
    json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}})
}

async fn commit(headset: &Headset, words: &str) -> usize {
    headset.quiet().await;
    let mark = headset.mark();
    headset.say(words).await;
    headset.tell(json!({"type": "input_audio_buffer.commit"}));
    headset.tell(json!({"type": "response.create"}));
    mark
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_by_hand_are_answered_and_the_ear_still_tightens() {
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, by_hand(), false).await;
    let mark = commit(&headset, "What's in my notes?").await;
    headset.answer_after(mark, "no notes").await;

    // A question is asked and answered by committed words.
    let mark = commit(&headset, "Add buy milk to my notes.").await;
    headset.answer_after(mark, "buy milk to your notes?").await;
    let mark = commit(&headset, "Yes, go ahead.").await;
    headset.answer_after(mark, "i added buy milk").await;
    assert_eq!(notes(&gateway), ["buy milk"]);

    // Nobody commits this: the ear hears it all the same. And what it hears of other things stays unsaid.
    headset.quiet().await;
    let (mark, seen) = (headset.mark(), chat.mark());
    headset.say("What's in my notes?").await;
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    headset.say("Enter plan mode.").await;
    let mode = chat.event_after(seen, "plan mode by ear", |e| e["type"] == "plan_mode").await;
    assert_eq!((&mode["payload"]["plan_mode"], &mode["payload"]["by"]["surface"]), (&json!(true), &json!("voice")));
    headset.answer_after(mark, "plan mode is on").await;
    assert_eq!(headset.count_after(mark, "conversation.item.input_audio_transcription.completed"), 0);
    assert!(!chat.look(|s| s.events[seen..].iter().any(|e| e["type"] == "tool_start")));
    headset.tell(json!({"type": "input_audio_buffer.clear"}));
    chat.agrees(&gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_items_tighten_and_never_loosen() {
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, by_hand(), true).await;
    headset.tell(typed("Add buy milk to my notes."));
    headset.tell(json!({"type": "response.create"}));
    headset.answer_after(0, "buy milk to your notes?").await;
    headset.quiet().await;

    // The question is open and was heard: no typed word of the client answers it, whether it asks for a response or not.
    let seen = chat.mark();
    headset.tell(typed("yes, go ahead"));
    chat.event_after(seen, "the typed line", |e| e["payload"]["text"] == "yes, go ahead").await;
    let mark = headset.mark();
    headset.tell(typed("Yes, do it."));
    headset.tell(json!({"type": "response.create"}));
    headset.answer_after(mark, "you can say").await;
    let approvals = gateway.ask("GET", "/api/approvals", "").await.json();
    assert_eq!(approvals["count"], 1, "{approvals}");
    assert!(notes(&gateway).is_empty());

    let seen = chat.mark();
    headset.tell(typed("enter plan mode"));
    chat.event_after(seen, "plan mode by a typed item", |e| e["type"] == "plan_mode" && e["payload"]["by"]["surface"] == "client").await;
    headset.answer_after(mark, "plan mode is on").await;
    for words in ["/plan off", "exit plan mode", "Exit plan mode.", "yes, go ahead", "approve plan one", "confirm plan one"] {
        headset.quiet().await;
        let (mark, seen) = (headset.mark(), chat.mark());
        headset.tell(typed(words));
        headset.tell(json!({"type": "response.create"}));
        headset.event_after(mark, "an answer", |e| e["type"] == "response.done").await;
        let changed = chat.look(|s| s.events[seen..].iter().find(|e| e["type"] == "plan_mode" || e["type"] == "question").cloned());
        assert_eq!(changed, None, "{words:?} changes nothing");
    }
    let mode = gateway.ask("GET", &format!("/api/sessions/{}/plan_mode", chat.id), "").await.json();
    assert_eq!(mode["plan_mode"], true);
    assert!(notes(&gateway).is_empty());
    chat.agrees(&gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_text_reads_its_questions_and_cannot_consent_aloud() {
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, json!({"type": "realtime", "output_modalities": ["text"]}), false).await;
    headset.say("Add buy milk to my notes.").await;
    let question = headset.answer_after(0, "buy milk to your notes?").await;
    assert_eq!(headset.count_after(0, "response.output_audio.delta"), 0, "{question}");
    assert!(headset.count_after(0, "response.output_text.delta") > 0);
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let seen = chat.mark();
    headset.say("Yes, go ahead.").await;
    chat.event_after(seen, "the spoken line", |e| e["type"] == "transcript" && e["payload"]["text"].as_str().unwrap().to_lowercase().contains("go ahead")).await;
    let approvals = gateway.ask("GET", "/api/approvals", "").await.json();
    assert_eq!(approvals["count"], 1, "{approvals}");
    assert!(notes(&gateway).is_empty());
    // On a screen it can be answered, and the answer is written too.
    let mark = headset.mark();
    let request = approvals["approvals"][0]["request_id"].clone();
    let ack = chat.send("approval_decision", json!({"request_id": request, "decision": "approve"})).await;
    assert_eq!(ack["ok"], true, "{ack}");
    headset.answer_after(mark, "i added buy milk").await;
    assert_eq!(notes(&gateway), ["buy milk"]);
    chat.agrees(&gateway).await;
}
