//! The seven steps of the main job on sound cards: a person plays sentences into one sink and waits for what comes of each.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::live::chat::Chat;
use crate::live::{Gateway, sentence_file};
use crate::pulse;
use crate::sdk_conversation::notes;

/// How long a line may take to bring what it should. A line that brought nothing is said once more.
const WAIT: Duration = Duration::from_secs(20);

struct Person {
    dir: tempfile::TempDir,
    chat: Chat,
    repeated: Vec<&'static str>,
}

impl Person {
    /// Waits until nobody speaks or works, and half a second longer.
    async fn quiet(&self) {
        let (mut since, mut seen) = (Instant::now(), self.chat.mark());
        let began = Instant::now();
        while since.elapsed() < Duration::from_millis(500) {
            assert!(began.elapsed() < Duration::from_secs(90), "it is never quiet");
            tokio::time::sleep(Duration::from_millis(20)).await;
            let (busy, mark) = self.chat.look(|s| (["speaking", "processing"].contains(&s.shown.voice.as_str()), s.events.len()));
            if busy || mark != seen { (since, seen) = (Instant::now(), mark) }
        }
    }

    /// Says a line until this event comes; at most twice.
    async fn say(&mut self, text: &'static str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let file: PathBuf = sentence_file(self.dir.path().join("line.wav"), 200, text, 48_000);
        for last in [false, true] {
            self.quiet().await;
            let (mark, began) = (self.chat.mark(), Instant::now());
            pulse::play(self.dir.path(), "micsink", &file).await;
            while began.elapsed() < WAIT {
                if let Some(found) = self.chat.look(|s| s.events[mark..].iter().find(|e| fits(e)).cloned()) {
                    println!("{:5.1} s {text:?}", began.elapsed().as_secs_f32());
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let heard: Vec<String> = self.chat.look(|s| s.events[mark..].iter().filter(|e| e["type"] == "transcript").map(|e| e["payload"]["text"].to_string()).collect());
            println!("{text:?} brought no {what}; heard {heard:?}");
            assert!(!last, "{text:?} was said twice and brought no {what}");
            self.repeated.push(text);
        }
        unreachable!()
    }
}

fn is(event: &Value, kind: &str, field: &str, value: impl Into<Value>) -> bool { event["type"] == kind && event["payload"][field] == value.into() }

fn speech(event: &Value, words: &str) -> bool { event["type"] == "speech" && event["payload"]["text"].as_str().unwrap().contains(words) && event["payload"]["heard_ms"] == event["payload"]["total_ms"] }

fn question(event: &Value, kind: &str) -> bool { is(event, "question", "kind", kind) && is(event, "question", "state", "heard") }

fn added(event: &Value) -> bool { is(event, "tool_result", "tool", "notes__add") && is(event, "tool_result", "success", true) }

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seven_steps_hold_on_sound_cards() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = pulse::start(dir.path());
    let mut talk = Gateway::run(&["talk", "--port", "0"], "", &[("PULSE_SERVER", pulse::server(dir.path()))]).await;
    talk.says("voxgate: speak").await;
    let chat = Chat::follow(&talk, "last", false).await;
    let mut person = Person { dir, chat, repeated: Vec::new() };
    let began = Instant::now();

    person.say("What's in my notes?", "answer", |e| speech(e, "You have no notes")).await;
    person.say("Add buy milk to my notes.", "question", |e| question(e, "tool")).await;
    assert!(notes(&talk).is_empty());
    person.say("Yes, go ahead.", "note", added).await;
    person.say("Enter plan mode.", "plan mode", |e| is(e, "plan_mode", "plan_mode", true)).await;
    person.say("Add buy eggs to my notes.", "refusal", |e| is(e, "tool_result", "error_code", "plan_mode_blocked")).await;
    person.say("Present the plan.", "plan that was read", |e| speech(e, "Plan one: ")).await;
    person.say("Approve plan one.", "question", |e| question(e, "approve")).await;
    assert!(person.chat.look(|s| s.shown.plan_mode), "one sentence does not leave plan mode");
    let mark = person.chat.mark();
    person.say("Confirm plan one.", "end of plan mode", |e| is(e, "plan_mode", "plan_mode", false)).await;
    person.chat.event_after(mark, "the kept call is asked about", |e| question(e, "tool")).await;
    person.say("Yes, do it.", "note", added).await;
    person.say("What mode are you in?", "answer", |e| speech(e, "Plan mode is off")).await;

    println!("the seven steps took {:.0} s, {} repeats {:?}", began.elapsed().as_secs_f32(), person.repeated.len(), person.repeated);
    assert_eq!(notes(&talk).len(), 2);
    person.chat.agrees(&talk).await;
    // A machine that is busy elsewhere lets sound come late or stall; whoever speaks is told, and it goes on.
    let busy = |told: &str| told.contains("too late") || told.contains("opened again");
    let wrong = person.chat.look(|s| s.events.iter().filter(|e| is(e, "notice", "code", "device") && !busy(e["payload"]["message"].as_str().unwrap())).map(Value::to_string).collect::<String>());
    assert!(wrong.is_empty(), "{wrong}");
    let metrics = talk.ask("GET", "/metrics", "").await.body;
    println!("{}", metrics.lines().filter(|l| l.starts_with("voxgate_device")).map(|l| format!("{l}\n")).collect::<String>());
    drop(person);
    let (status, said) = talk.end("-INT").await;
    assert!(status.success(), "{status}: {said}");
}
