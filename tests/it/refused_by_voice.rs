//! What a voice does not approve, and how a question stays open, in one conversation; and a tool that is not in the tree.

use std::path::Path;

use crate::speech::Speaker;
use crate::talking::{Line, Window, hold};

const MANIFEST: &str = r#"{
  "skill_id": "house", "version": "1.0.0", "author": "a test", "description": "About the house.", "categories": ["information"], "permissions": [],
  "endpoints": [{
    "id": "gate", "method": "CUSTOM", "url": "builtin:reply", "description": "Where the garden gate leads.", "effect": "read",
    "params": [{"name": "place", "type": "string", "default": "the river", "description": "Where to"}],
    "phrases": ["where does the garden gate lead"], "answer": "The garden gate leads to {place}."
  }]
}"#;

const ADD: &str = "notes__add";

const SCRIPT: &[Line] = &[
    Line::new("Where does the garden gate lead?", 5_000, |w| { w.ran_once("house__gate")?; w.spoken("The garden gate leads to the river").map(drop) }),
    // A no.
    Line::new("Add buy milk to my notes.", 7_000, asked),
    Line::new("No.", 4_000, |w| { resolved(w, "denied")?; w.ran_never(ADD) }),
    // Silence: the spoken window closes, a screen can still answer.
    Line::new("Add buy bread to my notes.", 27_000, |w| {
        asked(w)?;
        w.question("tool", "screen_only")?;
        w.spoken("I heard no answer")?;
        let (heard, left) = (w.question("tool", "heard")?, w.question("tool", "screen_only")?);
        if left.at_ms - heard.at_ms != 15_000 { return Err(format!("the window was open for {} ms", left.at_ms - heard.at_ms)) }
        if !w.all("approval_resolved").is_empty() { return Err("a screen can not answer any more".into()) }
        w.ran_never(ADD)
    }),
    // A bare yeah is told the phrase, inside a longer sentence.
    Line::new("Add buy apples to my notes.", 7_000, asked),
    Line::new("Yeah.", 7_000, |w| {
        let hint = w.spoken("yes, go ahead")?.text("text").to_lowercase();
        if hint.starts_with("yes") || hint.trim_end_matches('.').ends_with("go ahead") { return Err(format!("the hint would answer itself: {hint}")) }
        unresolved(w)
    }),
    Line::new("No.", 4_000, |w| { resolved(w, "denied")?; w.ran_never(ADD) }),
    // Consent over the question's own playback is asked for again.
    Line::new("Add buy cheese to my notes.", 2_500, |w| w.question("tool", "asked").map(drop)).with_next(),
    Line::new("Yes, go ahead.", 8_000, |w| {
        unresolved(w)?;
        let again = w.all("speech").into_iter().filter(|e| e.text("text").contains("cheese") || e.text("text").contains("Say yes")).count();
        if again < 2 { return Err("it was not asked again".into()) }
        w.question("tool", "heard").map(drop)
    }),
    Line::new("No.", 4_000, |w| { resolved(w, "denied")?; w.ran_never(ADD) }),
    // Who goes on speaking has not consented.
    Line::new("Add buy butter to my notes.", 7_000, asked),
    Line::new("Yes, go ahead.", 6_000, |w| { resolved(w, "denied")?; w.ran_never(ADD) }).then(420, "No, wait."),
    // "Wait" keeps the question open once more, past the end of its first window.
    Line::new("Add buy honey to my notes.", 12_000, asked),
    Line::new("Wait.", 12_000, |w| { w.spoken("I wait")?; unresolved(w) }),
    Line::new("Yes, go ahead.", 5_000, |w| { resolved(w, "approved")?; w.ran_once(ADD) }),
];

fn asked(w: &Window) -> Result<(), String> { w.question("tool", "heard")?; w.ran_never(ADD) }

fn resolved(w: &Window, status: &str) -> Result<(), String> { w.need("approval_resolved", status, |e| e.is("status", status) && e.payload["by"]["surface"] == "voice").map(drop) }

fn unresolved(w: &Window) -> Result<(), String> {
    if !w.all("approval_resolved").is_empty() { return Err("it was resolved".into()) }
    w.ran_never(ADD)
}

fn prepare(home: &Path) {
    std::fs::create_dir_all(home.join("tools")).expect("a folder");
    std::fs::write(home.join("tools/house.json"), MANIFEST).expect("a manifest");
}

#[test]
fn a_voice_refuses_waits_and_is_not_taken_at_half_a_word() {
    let held = hold(Speaker::FliteSlt, SCRIPT, &[], prepare);
    let notes = held.run.notes();
    assert!(notes.len() == 1, "{notes:?}\n{}", held.run.told());
    // Words that answer a question never reach the agent.
    let answers = held.run.events.iter().filter(|e| e.kind == "transcript" && e.is("role", "user") && !e.text("text").to_lowercase().contains("notes") && !e.text("text").contains("garden"));
    let passed: Vec<&str> = answers.filter(|e| e.payload["for_agent"] == true).map(|e| e.text("text")).collect();
    assert!(passed.is_empty(), "{passed:?} reached the agent\n{}", held.run.told());
    each_call_is_answered_once(&held.run.events);
    what_is_kept_can_be_listed_shown_and_wiped(held.run.home.path());
}

fn each_call_is_answered_once(events: &[crate::talking::Event]) {
    let ids = |kind: &str| { let mut all: Vec<&str> = events.iter().filter(|e| e.kind == kind).map(|e| e.text("call_id")).collect(); all.sort_unstable(); all };
    let (started, ended) = (ids("tool_start"), ids("tool_result"));
    let twice: Vec<_> = ended.windows(2).filter(|w| w[0] == w[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
    // One is left to the screen.
    assert_eq!(started.len() - ended.len(), 1, "{started:?} {ended:?}");
}

/// `sessions` over what the conversation left.
fn what_is_kept_can_be_listed_shown_and_wiped(home: &Path) {
    let run = |args: &[&str]| {
        let output = crate::talking::finished(crate::talking::voxgate(home).arg("sessions").args(args));
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, list, _) = run(&["list"]);
    let id = list.lines().nth(1).and_then(|line| line.split_whitespace().next()).unwrap_or_default().to_string();
    assert!(code == Some(0) && id.len() == 26 && list.lines().count() == 2, "{list}");
    let (code, shown, _) = run(&["show", &id]);
    assert!(code == Some(0) && shown.contains("garden gate lead") && shown.contains("tool notes: add: done") && shown.contains("question denied: "), "{shown}");
    let (code, exported, _) = run(&["export", &id]);
    let seqs: Vec<u64> = exported.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON")["seq"].as_u64().expect("a seq")).collect();
    assert!(code == Some(0) && seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    let (code, _, error) = run(&["show", "nothing"]);
    assert!(code == Some(1) && error.contains("sessions list"), "{error}");
    assert_eq!(run(&["wipe", &id]).0, Some(0));
    assert!(run(&["list"]).1.contains("No conversations are kept") && run(&["export", &id]).0 == Some(1));
    assert!(std::fs::read_dir(home.join("data/sessions")).expect("a folder").next().is_none(), "something is left");
}
