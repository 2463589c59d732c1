//! The seven steps through `/v1/realtime`, spoken in real time by the stock `openai` Python client, while a chat client sees
//! every event in order although it drops its connection again and again.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::live::chat::Chat;
use crate::live::{Gateway, sentence_file};
use crate::realtime_door::sdk::python;

const HEARD: &str = "conversation.item.input_audio_transcription.completed";

/// What is said, and what the answer has to have in it.
const STEPS: &[(&str, &str)] = &[
    ("What's in my notes?", "no notes"),
    ("Add buy milk to my notes.", "(buy|by) milk to your notes\\?"),
    ("Yes, go ahead.", "I added (buy|by) milk"),
    ("Enter plan mode.", "plan mode is on"),
    ("Add buy eggs to my notes.", "nothing was changed"),
    ("Present the plan.", "plan one"),
    ("Approve plan one.", "confirm plan one"),
    ("Confirm plan one.", "(buy|by) eggs to your notes\\?"),
    ("Yes, go ahead.", "done. I added (buy|by) eggs"),
    ("What mode are you in?", "plan mode is off"),
    ("Enter plan mode.", "plan mode is on"),
    ("Exit plan mode.", "should I leave plan mode"),
    ("Yes, go ahead.", "plan mode is off"),
    ("What can I say?", "you can say"),
    ("Stop.", ""),
];

fn write_steps(folder: &Path) -> std::path::PathBuf {
    let steps: Vec<Value> = STEPS.iter().enumerate().map(|(n, (say, answer))| {
        let file = sentence_file(folder.join(format!("{n}.wav")), 0, say, 24_000);
        // The gateway takes a socket's playback to end 300 ms late and counts no consent that begins within 250 ms of it.
        let wait = if answer.is_empty() { json!({"type": HEARD, "contains": "stop"}) } else { json!({"matches": answer}) };
        let mut step = json!({"wav": file.file_name().unwrap().to_str(), "wait_for": wait, "tries": 2, "timeout": 60, "pause": 0.7});
        if *say == "Stop." { step["during"] = true.into() }
        step
    }).collect();
    let file = folder.join("steps.json");
    std::fs::write(&file, Value::from(steps).to_string()).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stock_client_holds_the_seven_steps_while_a_chat_client_drops_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let steps = write_steps(folder.path());
    let gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", true).await;
    let report = folder.path().join("report.json");
    let client = Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/talk_client.py"))
        .args(["--url", &format!("http://{}/v1", gateway.address), "--key", &gateway.client, "--conversation", &chat.id, "--chunk-ms", "40", "--json"])
        .arg(&report).arg("--steps").arg(&steps).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_secs(600), client).await.expect("the conversation ends").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert!(output.status.success(), "{report:#}\n{said}\n{}", gateway.said());
    assert_eq!((&report["order_errors"], &report["errors"]), (&json!([]), &json!([])));
    println!("{} s, {} repeats, the client was {} ms late at most", report["seconds"], report["repeats"], report["late_ms"]);
    // A response without words would make a client wait for nothing.
    let empty: Vec<_> = report["responses"].as_array().unwrap().iter().filter(|r| r["text"] == "").collect();
    assert!(empty.is_empty(), "{empty:?}");
    // The last answer was stopped, and the client had played only part of it.
    let cut = report["truncated"].as_array().unwrap().last().expect("\"stop\" truncates").clone();
    println!("stopped at {cut}");

    chat.agrees(&gateway).await;
    let (events, connections) = chat.look(|s| (s.events.clone(), s.connections));
    println!("{} events over {connections} connections", events.len());
    assert!(connections > 15, "{connections}");
    what_happened(&events);
    assert_eq!(notes(&gateway), ["buy eggs", "buy milk"]);
    drop(chat);
    let (status, _) = gateway.end("-TERM").await;
    assert!(status.success());
}

/// The notes' texts, sorted. "by milk" is "buy milk": nobody can hear which was said.
pub fn notes(gateway: &Gateway) -> Vec<String> {
    let mut notes: Vec<String> = std::fs::read_dir(gateway.home().join("data/notes")).into_iter().flatten()
        .map(|file| file.unwrap().path()).filter(|path| path.is_file())
        .map(|path| std::fs::read_to_string(path).unwrap().trim().trim_end_matches('.').to_lowercase().replace("by ", "buy ")).collect();
    notes.sort();
    notes
}

/// The story, as the chat client saw it.
fn what_happened(events: &[Value]) {
    let of = |kind: &str| events.iter().filter(|e| e["type"] == kind).map(|e| e["payload"].clone()).collect::<Vec<_>>();
    let modes: Vec<_> = of("plan_mode").iter().map(|p| (p["plan_mode"].as_bool().unwrap(), p["by"]["surface"].as_str().unwrap().to_string())).collect();
    assert_eq!(modes, [(true, "voice"), (false, "voice"), (true, "voice"), (false, "voice")].map(|(on, by)| (on, by.to_string())));
    let plans: Vec<_> = of("plan_review").iter().filter(|p| p["version"] == 1).map(|p| p["status"].as_str().unwrap().to_string()).collect();
    assert_eq!(plans, ["waiting", "approved"]);
    let adds: Vec<_> = of("tool_result").iter().filter(|p| p["tool"] == "notes__add").map(|p| p["outcome_code"].as_str().unwrap().to_string()).collect();
    assert_eq!(adds, ["", "plan_mode_blocked", ""], "each call is answered once");
    let resolved: Vec<_> = of("approval_resolved").iter().map(|p| (p["status"].as_str().unwrap().to_string(), p["by"]["surface"].as_str().unwrap().to_string())).collect();
    assert_eq!(resolved, [("approved".to_string(), "voice".to_string()), ("approved".to_string(), "voice".to_string())]);
    // Words that answer a question never reach the model.
    let told: Vec<_> = of("transcript").iter().filter(|p| p["role"] == "user" && p["for_agent"] == true).map(|p| p["text"].as_str().unwrap().to_lowercase()).collect();
    let expected = ["in my notes", "milk to my notes", "eggs to my notes", "present the plan"];
    assert!(told.len() == expected.len() && told.iter().zip(expected).all(|(t, e)| t.contains(e)), "{told:?}");
    let stopped = of("speech").last().cloned().unwrap();
    assert!(stopped["heard_ms"].as_u64().unwrap() < stopped["total_ms"].as_u64().unwrap(), "{stopped}");
}
