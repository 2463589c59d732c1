//! One conversation, a headset and a chat client: what is typed is heard, what is said is seen, and the first answer to a
//! question wins on both.

use serde_json::{Value, json};

use crate::live::Gateway;
use crate::live::chat::Chat;
use crate::live::headset::Headset;
use crate::sdk_conversation::notes;

fn session() -> Value { json!({"type": "realtime"}) }

/// Waits for the open tool question to have been heard; its request.
async fn heard_question(chat: &Chat, seen: usize) -> Value {
    chat.event_after(seen, "the question was heard", |e| e["type"] == "question" && e["payload"]["state"] == "heard").await["payload"]["request_id"].clone()
}

fn adds(chat: &Chat, seen: usize) -> usize {
    chat.look(|s| s.events[seen..].iter().filter(|e| e["type"] == "tool_result" && e["payload"]["tool"] == "notes__add" && e["payload"]["success"] == true).count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_typed_is_heard_and_the_first_answer_wins() {
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, session(), false).await;

    // Typed in the chat, answered aloud.
    assert_eq!(chat.chat("What's in my notes?").await["ok"], true);
    headset.answer_after(0, "no notes").await;
    assert!(headset.count_after(0, "response.output_audio.delta") > 0);

    // Said into the headset, shown in the chat.
    headset.quiet().await;
    let seen = chat.mark();
    headset.say("Add buy bread to my notes.").await;
    let line = chat.event_after(seen, "the spoken line", |e| e["type"] == "transcript" && e["payload"]["role"] == "user").await;
    assert_eq!((&line["payload"]["surface"], &line["payload"]["for_agent"]), (&json!("voice"), &json!(true)));

    // The screen answers first; the same words said afterwards answer nothing.
    let request = heard_question(&chat, seen).await;
    let ack = chat.send("approval_decision", json!({"request_id": request, "decision": "approve"})).await;
    assert_eq!(ack["ok"], true, "{ack}");
    headset.answer_after(0, "i added buy bread").await;
    headset.quiet().await;
    let later = chat.mark();
    headset.say("Yes, go ahead.").await;
    chat.event_after(later, "the late yes", |e| e["type"] == "transcript" && e["payload"]["text"].as_str().unwrap().to_lowercase().contains("go ahead")).await;
    headset.quiet().await;
    assert_eq!((adds(&chat, seen), notes(&gateway)), (1, vec!["buy bread".to_string()]));
    let again = chat.send("approval_decision", json!({"request_id": request, "decision": "deny"})).await;
    assert_eq!((&again["ok"], &again["code"]), (&json!(true), &json!("already")));

    // The headset answers first; a click afterwards answers nothing.
    headset.quiet().await;
    let seen = chat.mark();
    assert_eq!(chat.chat("Add buy salt to my notes.").await["ok"], true);
    let request = heard_question(&chat, seen).await;
    headset.quiet().await;
    headset.say("Yes, go ahead.").await;
    let resolved = chat.event_after(seen, "the spoken answer", |e| e["type"] == "approval_resolved").await;
    assert_eq!((&resolved["payload"]["request_id"], &resolved["payload"]["by"]["surface"]), (&request, &json!("voice")));
    let late = chat.send("approval_decision", json!({"request_id": request, "decision": "deny"})).await;
    assert_eq!((&late["ok"], &late["code"]), (&json!(true), &json!("already")));
    headset.answer_after(0, "i added buy salt").await;
    assert_eq!((adds(&chat, seen), notes(&gateway)), (1, vec!["buy bread".to_string(), "buy salt".to_string()]));
    chat.agrees(&gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_mode_by_chat_rest_and_page_is_heard() {
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, session(), false).await;
    let path = format!("/api/sessions/{}/plan_mode", chat.id);

    assert!(chat.chat("/plan status").await["message"].as_str().unwrap().contains("Plan mode is off"));
    assert_eq!(chat.chat("/plan").await["ok"], true);
    headset.answer_after(0, "plan mode is on").await;
    assert!(chat.chat("/plan status").await["message"].as_str().unwrap().contains("Plan mode is on"));
    assert_eq!(gateway.ask("GET", &path, "").await.json()["plan_mode"], true);
    let mark = headset.mark();
    assert_eq!(chat.chat("/plan off").await["ok"], true);
    headset.answer_after(mark, "plan mode is off").await;

    let on = gateway.ask("POST", &path, r#"{"enabled":true,"reason":"a look first"}"#).await;
    assert_eq!((on.status, &on.json()["plan_mode"], &on.json()["reason"]), (200, &json!(true), &json!("a look first")));

    chat.chat("Add buy eggs to my notes.").await;
    headset.answer_after(mark, "nothing was changed").await;
    let seen = chat.mark();
    chat.chat("Present the plan.").await;
    let plan = chat.event_after(seen, "the plan", |e| e["type"] == "plan_review" && e["payload"]["status"] == "waiting").await["payload"].clone();
    let shown = plan["steps"][0]["title"].as_str().unwrap().to_lowercase();
    assert!(headset.answer_after(mark, "plan one").await.to_lowercase().contains(&shown), "the same text is read");

    // The spoken approval opens a question; "No" on the page, which asks to stay in plan mode, withdraws it.
    headset.quiet().await;
    let seen = chat.mark();
    headset.say("Approve plan one.").await;
    chat.event_after(seen, "the question", |e| e["type"] == "question" && e["payload"]["kind"] == "approve" && e["payload"]["state"] == "heard").await;
    let stay = chat.send("mode", json!({"posture": "plan"})).await;
    assert_eq!((&stay["ok"], &stay["code"]), (&json!(true), &json!("already")));
    let closed = chat.event_after(seen, "the question is withdrawn", |e| e["type"] == "question" && e["payload"]["state"] == "answered").await;
    assert_eq!((&closed["payload"]["outcome"], &closed["payload"]["by"]["surface"]), (&json!("withdrawn"), &json!("screen")));
    headset.quiet().await;
    headset.say("Confirm plan one.").await;
    headset.quiet().await;
    assert_eq!(gateway.ask("GET", &path, "").await.json()["plan_mode"], true, "a withdrawn question is not confirmed");

    let wrong = chat.send("plan_decision", json!({"decision": "approve", "version": 1, "hash": "00"})).await;
    assert_eq!((&wrong["ok"], &wrong["code"]), (&json!(false), &json!("plan_changed")));
    let seen = chat.mark();
    let right = chat.send("plan_decision", json!({"decision": "approve", "version": 1, "hash": plan["hash"]})).await;
    assert_eq!(right["ok"], true, "{right}");
    headset.answer_after(mark, "plan one is approved").await;
    let request = heard_question(&chat, seen).await;
    assert_eq!(gateway.ask("POST", &format!("/api/approvals/{}/approve", request.as_str().unwrap()), "{}").await.status, 200);
    headset.answer_after(mark, "i added buy eggs").await;
    assert_eq!(notes(&gateway), ["buy eggs"]);
    assert_eq!(gateway.ask("GET", &path, "").await.json()["plan_mode"], false);
    chat.agrees(&gateway).await;
    figures(&gateway).await;
}

/// What a conversation counts can be read.
async fn figures(gateway: &Gateway) {
    let metrics = gateway.ask("GET", "/metrics", "").await.body;
    for name in [
        "voxgate_http_requests_total", "voxgate_mirrors", "voxgate_realtime_sockets", "voxgate_connections", "voxgate_heard_seconds_total",
        "voxgate_recognition_seconds", "voxgate_synthesis_seconds", "voxgate_tool_calls_total", "voxgate_voice_intent_total",
        "voxgate_plan_mode_blocked_total",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} is missing:\n{metrics}");
    }
    assert!(metrics.contains("voxgate_plan_mode_blocked_total{surface=\"chat\",effect=\"files\"} 1") || metrics.contains("voxgate_plan_mode_blocked_total{surface=\"voice\",effect=\"files\"} 1"), "{metrics}");
}
