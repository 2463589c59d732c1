//! One evening: a headset and two chats on one conversation. Plan mode is entered by voice, a plan is drafted, commented from chat A,
//! changed, presented again, and approved by voice while chat B clicks: one decision, everybody sees it, nothing runs twice.

use serde_json::{Value, json};

use crate::live::Gateway;
use crate::live::chat::Chat;
use crate::live::headset::Headset;
use crate::sdk_conversation::notes;

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> { events.iter().filter(|e| e["type"] == kind).map(|e| &e["payload"]).collect() }

async fn presented(chat: &Chat, mark: usize, version: u64) -> Value {
    chat.event_after(mark, &format!("plan {version} waits"), |e| e["type"] == "plan_review" && e["payload"]["version"] == version && e["payload"]["status"] == "waiting").await["payload"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_clients_make_one_decision() {
    let gateway = Gateway::serve("").await;
    let a = Chat::follow(&gateway, "new", false).await;
    let b = Chat::follow(&gateway, &a.id, false).await;
    let headset = Headset::join(&gateway, &a.id, json!({"type": "realtime"}), false).await;

    // Entered by voice; both chats see it, with the words.
    headset.say("Enter plan mode.").await;
    for chat in [&a, &b] {
        let on = chat.event_after(0, "plan mode is on", |e| e["type"] == "plan_mode" && e["payload"]["plan_mode"] == true).await;
        assert_eq!(on["payload"]["by"]["surface"], "voice", "{on}");
        assert!(on["payload"]["by"]["words"].as_str().unwrap().to_lowercase().contains("plan mode"), "{on}");
    }
    headset.answer_after(0, "plan mode is on").await;

    // Drafted by voice: the call is refused and becomes a step.
    headset.quiet().await;
    headset.say("Add buy eggs to my notes.").await;
    let refused = b.event_after(0, "the refusal", |e| e["type"] == "tool_result" && e["payload"]["tool"] == "notes__add").await;
    assert_eq!(refused["payload"]["error_code"], "plan_mode_blocked");
    headset.answer_after(0, "nothing was changed").await;
    headset.quiet().await;
    let seen = a.mark();
    headset.say("Present the plan.").await;
    let first = presented(&a, seen, 1).await;

    // Commented from chat A, which everybody sees; the changes go to the agent, and the plan is presented again.
    headset.answer_after(0, "plan one").await;
    let comment = a.send("plan_comment", json!({"version": 1, "step": 1, "text": "And bread, please."})).await;
    assert_eq!(comment["ok"], true, "{comment}");
    let shown = b.event_after(0, "the comment", |e| e["type"] == "plan_comment" && e["payload"]["state"] == "open").await;
    assert_eq!((&shown["payload"]["text"], &shown["payload"]["step"]), (&json!("And bread, please."), &json!(1)));
    let back = a.send("plan_decision", json!({"version": 1, "decision": "request_changes"})).await;
    assert_eq!(back["ok"], true, "{back}");
    let sent = b.event_after(0, "sent back", |e| e["type"] == "plan_review" && e["payload"]["status"] == "changes_requested").await;
    assert!(sent["payload"]["comments"].as_str().unwrap().contains("And bread, please."), "{sent}");
    headset.quiet().await;
    assert_eq!(a.chat("Add buy bread to my notes.").await["ok"], true);
    b.event_after(0, "the second refusal", |e| e["type"] == "tool_result" && e["payload"]["tool"] == "notes__add" && e["payload"]["call_id"] != refused["payload"]["call_id"]).await;
    headset.quiet().await;
    let seen = b.mark();
    assert_eq!(a.chat("Present the plan.").await["ok"], true);
    let second = presented(&b, seen, 2).await;
    assert_ne!(first["hash"], second["hash"]);
    headset.answer_after(0, "plan two").await;

    // Approved by voice while chat B clicks: whoever is first decides, the other is told so.
    headset.quiet().await;
    let mark = b.mark();
    headset.say("Approve plan two.").await;
    b.event_after(mark, "the question was heard", |e| e["type"] == "question" && e["payload"]["kind"] == "approve" && e["payload"]["state"] == "heard").await;
    headset.quiet().await;
    let (click, ()) = tokio::join!(
        async {
            // The click falls into the moment in which the spoken words are being heard.
            let heard = |e: &Value| e["type"] == "voice_state" && e["payload"]["state"] == "processing" || e["type"] == "plan_mode" && e["payload"]["plan_mode"] == false;
            b.event_after(mark, "somebody speaks", heard).await;
            b.send("plan_decision", json!({"version": 2, "hash": second["hash"], "decision": "approve"})).await
        },
        headset.say("Confirm plan two."),
    );
    assert_eq!(click["ok"], true, "{click}");
    for chat in [&a, &b] {
        chat.event_after(mark, "plan mode is off", |e| e["type"] == "plan_mode" && e["payload"]["plan_mode"] == false).await;
    }
    headset.answer_after(0, "plan two is approved").await;
    headset.quiet().await;
    let again = a.send("plan_decision", json!({"version": 2, "decision": "approve"})).await;
    assert_eq!((&again["ok"], &again["code"]), (&json!(true), &json!("already")), "{again}");
    assert!(again["message"].as_str().unwrap().contains("approved already"), "{again}");

    // What the plan kept is made again, asked about, and runs once each.
    let mut wanted = second["steps"].as_array().unwrap().iter().filter(|s| !s["call"].is_null()).count();
    assert!(wanted >= 1, "{second}");
    let mut answered: Vec<String> = Vec::new();
    while wanted > 0 {
        let asked = a.until("the next request", |s| s.shown.approvals.iter().find(|r| !answered.contains(r)).cloned()).await;
        // Both chats click at once, of which one is the answer.
        let message = json!({"request_id": asked, "decision": "approve"});
        let (one, two) = tokio::join!(a.send("approval_decision", message.clone()), b.send("approval_decision", message));
        let codes = [one["code"].as_str().unwrap_or("ok").to_string(), two["code"].as_str().unwrap_or("ok").to_string()];
        assert_eq!(codes.iter().filter(|c| *c == "ok").count(), 1, "{one} {two}");
        answered.push(asked);
        wanted -= 1;
    }
    a.until("everything ran", |s| (s.events.iter().filter(|e| e["type"] == "tool_result" && e["payload"]["tool"] == "notes__add" && e["payload"]["success"] == true).count() == answered.len()).then_some(())).await;
    headset.quiet().await;
    a.agrees(&gateway).await;
    b.agrees(&gateway).await;
    one_decision(&a, &b, answered.len());
    let kept = notes(&gateway);
    assert_eq!(kept.len(), answered.len(), "{kept:?}");
}

/// Both chats saw the same events, one approval of plan two, one end of plan mode, and each call once.
fn one_decision(a: &Chat, b: &Chat, ran: usize) {
    let (ours, theirs) = (a.look(|s| s.events.clone()), b.look(|s| s.events.clone()));
    let seqs = |events: &[Value]| events.iter().map(|e| (e["seq"].clone(), e["type"].clone())).collect::<Vec<_>>();
    let (ours_seqs, theirs_seqs) = (seqs(&ours), seqs(&theirs));
    // Chat B came later: its story is the end of A's.
    assert!(ours_seqs.ends_with(&theirs_seqs), "{ours_seqs:?}\n{theirs_seqs:?}");
    let approved = of(&ours, "plan_review").into_iter().filter(|p| p["version"] == 2 && p["status"] == "approved").count();
    let off = of(&ours, "plan_mode").into_iter().filter(|p| p["plan_mode"] == false).count();
    let asked = of(&ours, "approval_resolved").len();
    let results = of(&ours, "tool_result").into_iter().filter(|p| p["tool"] == "notes__add" && p["success"] == true).count();
    assert_eq!((approved, off, asked, results), (1, 1, ran, ran));
}
