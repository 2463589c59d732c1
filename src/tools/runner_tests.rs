//! The runner with a real gate: what runs, what does not, and that the guard outlives whoever waits.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::engine::gate::{Policy, Verdict};
use crate::engine::mode::{Autonomy, Posture, Stamp};

fn loose() -> Policy<'static> { Policy { autonomy: Autonomy::Loose, ..Policy::default() } }

struct World {
    dir: tempfile::TempDir,
    gate: Gate,
    catalogue: Catalogue,
    runner: ToolRunner,
}

fn world() -> World {
    let dir = tempfile::tempdir().expect("a folder");
    let tools = dir.path().join("tools");
    std::fs::create_dir(&tools).expect("a folder");
    std::fs::write(tools.join("test.json"), r#"{"skill_id":"test","max_calls_per_hour":12,"endpoints":[
        {"id":"panic","method":"CUSTOM","url":"builtin:test_panic","description":"d","effect":"files"},
        {"id":"wait","method":"CUSTOM","url":"builtin:test_wait","description":"d","effect":"files","timeout_seconds":1,
         "params":[{"name":"path","type":"string","required":true}]}]}"#).expect("a file");
    let catalogue = Catalogue::load(true, Some(&tools)).expect("it loads");
    let gate = Gate::default();
    let context = BuiltinContext { notes_dir: dir.path().join("notes"), files_root: None };
    let runner = ToolRunner::new(catalogue.clone(), gate.clone(), context).with_session("s1");
    World { dir, gate, catalogue, runner }
}

impl World {
    fn call(&self, id: &str, tool: &str, arguments: Value) -> ToolCall {
        ToolCall { id: id.into(), tool: tool.into(), arguments, stamp: self.gate.stamp() }
    }

    fn judge(&self, call: &ToolCall) -> Verdict { self.gate.judge(call, self.catalogue.spec(&call.tool), loose(), None) }

    fn permit(&self, call: &ToolCall) -> Permit {
        match self.judge(call) { Verdict::Allow(permit) => permit, other => panic!("no permit: {other:?}") }
    }

    async fn run(&self, id: &str, tool: &str, arguments: Value) -> ToolOutcome {
        let call = self.call(id, tool, arguments);
        self.runner.run(self.permit(&call), call).await
    }

    async fn notes(&self) -> Value { self.run("n", "notes__list", json!({})).await.output["count"].clone() }

    fn waiting(&self) -> (ToolCall, std::path::PathBuf) {
        let path = self.dir.path().join("go");
        (self.call("w", "test__wait", json!({"path": path})), path)
    }

    async fn until(&self, what: impl Fn() -> bool) {
        for _ in 0..1000 {
            if what() { return }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it did not come to pass");
    }
}

#[tokio::test]
async fn plan_mode_refuses_what_changes_and_lets_what_looks() {
    let w = world();
    assert_eq!(w.run("a", "notes__add", json!({"text": "buy milk"})).await.output["title"], "buy milk");
    w.gate.flip(Posture::Plan);
    let call = w.call("b", "notes__add", json!({"text": "buy eggs"}));
    let Verdict::Refuse(refusal) = w.judge(&call) else { panic!("plan mode must refuse") };
    let outcome = refusal_outcome(&refusal, &call.tool, "s1");
    assert!(!outcome.success);
    for (key, value) in [
        ("success", json!(false)), ("is_error", json!(true)), ("error_code", json!("plan_mode_blocked")), ("plan_mode", json!(true)),
        ("tool_name", json!("notes__add")), ("session_id", json!("s1")), ("fixable_by_llm", json!(false)), ("effect", json!("files")),
        ("reason", outcome.output["error"].clone()),
    ] {
        assert_eq!(outcome.output[key], value, "{key}");
    }
    assert_eq!(w.notes().await, 1);
    for tool in ["test__panic", "nobody__knows", "mcp_files_write", "", "notes__delete"] {
        assert!(matches!(w.judge(&w.call("c", tool, json!({}))), Verdict::Refuse(r) if r.code == "plan_mode_blocked"), "{tool}");
    }
    let todo = w.run("d", "todo__write", json!({"todos": ["a"]})).await;
    assert_eq!(todo.session, Some(crate::engine::tool::SessionDeed::WriteTodo(json!({"todos": ["a"]}))));
}

#[tokio::test]
async fn a_permit_from_before_the_flip_begins_nothing() {
    let w = world();
    let call = w.call("a", "notes__add", json!({"text": "buy milk"}));
    let permit = w.permit(&call);
    w.gate.flip(Posture::Plan);
    let outcome = w.runner.run(permit, call.clone()).await;
    assert_eq!((outcome.error_code.as_str(), outcome.output["session_id"].as_str()), ("plan_mode_blocked", Some("s1")));
    let again = ToolCall { stamp: Stamp::default(), ..call };
    w.gate.flip(Posture::Default);
    let permit = w.permit(&ToolCall { stamp: w.gate.stamp(), ..again.clone() });
    let changed = ToolCall { arguments: json!({"text": "buy a boat"}), ..again };
    assert_eq!(w.runner.run(permit, changed).await.error_code, "arguments_changed");
    assert_eq!((w.notes().await, w.gate.running()), (json!(0), 0));
}

#[tokio::test]
async fn a_panic_is_an_outcome_that_tells_nothing_and_the_next_tool_runs() {
    let w = world();
    let outcome = w.run("a", "test__panic", json!({})).await;
    assert_eq!((outcome.error_code.as_str(), &outcome.output["outcome_unknown"]), ("tool_failed", &json!(true)));
    assert!(!outcome.output.to_string().contains("swordfish"));
    w.until(|| w.gate.running() == 0).await;
    assert!(w.run("b", "notes__add", json!({"text": "x"})).await.success);
}

#[tokio::test]
async fn the_guard_is_held_until_the_executor_ends_whoever_waits() {
    let w = world();
    let (call, path) = w.waiting();
    let future = w.runner.run(w.permit(&call), call);
    assert_eq!(w.gate.running(), 1);
    drop(future);
    assert_eq!(w.gate.flip(Posture::Plan).1, 1, "it still runs");
    w.until(|| path.with_extension("runs").exists()).await;
    assert_eq!(w.gate.running(), 1);
    std::fs::write(&path, "").expect("a file");
    w.until(|| w.gate.running() == 0).await;
    assert_eq!(std::fs::read_to_string(path.with_extension("runs")).expect("it ran"), "x", "exactly once");
}

#[tokio::test]
async fn a_late_tool_is_answered_once_and_keeps_its_guard() {
    let w = world();
    let (call, path) = w.waiting();
    let outcome = w.runner.run(w.permit(&call), call).await;
    assert_eq!((outcome.error_code.as_str(), &outcome.output["outcome_unknown"]), ("timeout", &json!(true)));
    assert_eq!(w.gate.running(), 1);
    std::fs::write(&path, "").expect("a file");
    w.until(|| w.gate.running() == 0).await;
}

#[tokio::test]
async fn going_round_in_circles_is_refused() {
    let w = world();
    for n in 0..10 { assert!(w.run(&format!("c{n}"), "clock__now", json!({})).await.success); }
    let outcome = w.run("c10", "clock__now", json!({})).await;
    assert_eq!((outcome.error_code.as_str(), &outcome.output["is_error"]), ("too_many_calls", &json!(true)));
    assert!(w.run("d", "clock__today", json!({})).await.success);
    for n in 0..9 { w.run(&format!("p{n}"), "test__panic", json!({})).await; }
    let (_, path) = w.waiting();
    std::fs::write(&path, "").expect("a file");
    for n in 0..3 { assert!(w.run(&format!("q{n}"), "test__wait", json!({"path": path})).await.success); }
    assert_eq!(w.run("q3", "test__wait", json!({"path": path})).await.error_code, "too_many_calls", "the skill's hour is used up");
}

#[tokio::test]
async fn only_eight_run_at_once() {
    let w = world();
    let (_, path) = w.waiting();
    let running: Vec<_> = (0..8).map(|n| {
        let call = w.call(&format!("w{n}"), "test__wait", json!({"path": path}));
        w.runner.run(w.permit(&call), call)
    }).collect();
    assert_eq!(w.run("one more", "notes__list", json!({})).await.error_code, "too_many_calls");
    std::fs::write(&path, "").expect("a file");
    for future in running { assert!(future.await.success); }
    assert_eq!(w.notes().await, 0);
}
