//! Rows of the behaviour ledger that are pinned on whole conversations of the engine: a test names the rows it pins, and goes red
//! when one of them is broken.

use serde_json::{Value, json};

use super::super::authority::{By, Decide, OperatorDoor, Surface, UserAction};
use super::super::comment::CommentState;
use super::super::conversation::{GatewayNote, Item};
use super::super::event::{EventKind, ModeEvent, QuestionKind, QuestionState, VoiceState};
use super::super::id::{CallId, TurnId};
use super::super::input::{Count, Input, LegFacts, Ticket};
use super::super::mode::{AskPolicy, Autonomy, Mode, Posture, Telling};
use super::super::plan::{PlanStatus, PlanVersion};
use super::super::rules::Rules;
use super::super::snapshot::Snapshot;
use super::super::tool::{Effect, ToolOutcome, ToolSpec};
use super::tests::World;
use super::{Engine, EngineConfig};
use crate::media::earcon::Earcon;

#[path = "ledger_more.rs"]
mod more;

const ADD: &str = "Add buy eggs to my notes.";

impl World {
    fn typed(&mut self, text: &str) -> (bool, &'static str) {
        let door = OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!());
        let ticket = Ticket(5_000 + self.replies.len() as u64);
        self.input(Input::Typed { door, text: text.into(), ticket });
        self.settle();
        self.replies.iter().rev().find(|(t, _)| *t == ticket).map_or((false, "none"), |(_, r)| (r.ok, r.code))
    }

    fn by(&mut self, surface: Surface, decide: Decide) -> (bool, &'static str) {
        let ticket = Ticket(9_000 + self.replies.len() as u64);
        self.input(Input::Decide(UserAction { decide, by: By { surface, utterance: None, words: "w".into() } }, ticket));
        self.settle();
        self.replies.iter().rev().find(|(t, _)| *t == ticket).map_or((false, "none"), |(_, r)| (r.ok, r.code))
    }

    fn said_last(&self) -> &str { self.replies.last().map_or("", |(_, r)| r.message.as_str()) }

    fn state(&self) -> &Snapshot { self.engine.snapshot() }

    fn in_plan(&self) -> bool { self.state().in_plan() && self.engine.gate().stamp().posture == Posture::Plan }

    fn status(&self, version: u32) -> Option<PlanStatus> { self.state().version(version).map(|p| p.status) }

    fn modes(&self) -> Vec<&ModeEvent> { self.events.iter().filter_map(|e| if let EventKind::Mode(m) = &e.kind { Some(m) } else { None }).collect() }

    fn last_result(&self) -> Value { self.events.iter().rev().find_map(|e| if let EventKind::ToolResult { output, .. } = &e.kind { Some(output.clone()) } else { None }).unwrap_or_default() }

    fn notices(&self) -> Vec<&str> { self.events.iter().filter_map(|e| if let EventKind::Notice { code, .. } = &e.kind { Some(code.as_str()) } else { None }).collect() }

    fn changed(&self) -> usize { self.ran.iter().filter(|r| r.0 == "notes__add").count() }

    fn submit(&mut self, summary: &str, steps: &[&str]) { self.typed(&format!("call plan__submit {}", json!({"summary": summary, "steps": steps}))); }

    /// Plan mode with one version that waits.
    fn reviewing() -> World {
        let mut w = World::new();
        w.decide(Decide::Enter { reason: "look first".into() });
        w.submit("Shop for a cake.", &["buy eggs", "buy milk"]);
        assert_eq!(w.status(1), Some(PlanStatus::Waiting));
        w
    }

    fn approve(&mut self, version: u32) -> (bool, &'static str) { let done = self.decide(Decide::Approve { version: Some(version), hash: None }); self.settle(); done }

    fn asked() -> World {
        let mut w = World::new();
        w.say(ADD);
        assert!(w.engine.asked_is_heard());
        w
    }

    fn request(&self) -> super::super::id::QuestionId { self.state().approvals[0].request.clone() }

    /// The conversation after a kill: its log folded, nothing else.
    fn restarted(&self) -> Engine {
        let mut fold = Snapshot::default();
        self.events.iter().for_each(|e| fold.apply(e));
        let config = EngineConfig { tools: self.engine.config.tools.clone(), ..EngineConfig::default() };
        Engine::restore(config, fold, 2_000_000, false)
    }
}

// ---- posture and state

#[test]
fn ledger_f1_plan_mode_looks_and_proposes_and_changes_nothing_until_a_person_lets_it() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    w.say("What's in my notes?");
    w.say(ADD);
    w.say("Present the plan.");
    assert_eq!(w.ran.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), ["notes__list", "plan__submit"]);
    w.approve(1);
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.changed(), 1);
}

#[test]
fn ledger_f3_d51_the_global_level_and_the_posture_of_a_conversation_never_write_each_other() {
    let mut w = World::new();
    w.input(Input::Autonomy(Autonomy::Strict));
    w.decide(Decide::Enter { reason: String::new() });
    w.decide(Decide::Leave);
    w.decide(Decide::Mode(Mode::Bypass));
    assert_eq!(w.engine.autonomy, Autonomy::Strict);
    w.input(Input::Autonomy(Autonomy::Loose));
    assert_eq!((w.state().ask, w.state().stamp.posture), (AskPolicy::Bypass, Posture::Default));
    assert!(!World::new().in_plan(), "another conversation has a posture of its own");
}

#[test]
fn ledger_f4_d6_plan_mode_comes_back_and_nothing_runs_before_somebody_was_told() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: "look first".into() });
    let mut back = w.restarted();
    assert!(back.snapshot().in_plan() && back.snapshot().restored && back.gate().stamp().posture == Posture::Plan);
    assert_eq!(back.snapshot().entered_reason, "look first");
    assert!(back.unannounced);
    back.handle_input(1, Input::Announced);
    assert!(!back.unannounced);
}

#[test]
fn ledger_f5_one_state_is_read_by_everybody_who_holds_the_gate() {
    let mut w = World::new();
    let (runner, mirror) = (w.engine.gate(), w.engine.gate());
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!((runner.stamp(), mirror.stamp()), (w.engine.gate().stamp(), w.state().stamp));
    assert_eq!(runner.stamp().posture, Posture::Plan);
}

#[test]
fn ledger_f6_a_conversation_that_was_wiped_has_no_posture_and_no_plans() {
    let w = World::reviewing();
    assert!(w.in_plan() && w.state().plan_count == 1);
    let fresh = Engine::restore(EngineConfig::default(), Snapshot::default(), 1, false);
    assert!(!fresh.snapshot().in_plan() && fresh.snapshot().plans.is_empty() && fresh.snapshot().plan_count == 0);
}

#[test]
fn ledger_f7_l21_l22_l23_d61_a_child_has_its_roots_mode_and_cannot_change_it() {
    let mut w = World::new();
    let tools = w.engine.config.tools.clone();
    let root = w.engine.root_for_child().unwrap_or_else(|e| panic!("{e}"));
    // A child's own settings cannot make its mode another than its root's.
    let mut child = Engine::child(EngineConfig { tools: tools.clone(), start_ask: AskPolicy::Bypass, start_in_plan: true, ..EngineConfig::default() }, root, 1);
    assert_eq!((child.snapshot().stamp, child.snapshot().ask), (w.state().stamp, AskPolicy::Ask));
    let grandchild = Engine::child(EngineConfig { tools, ..EngineConfig::default() }, child.root_for_child().unwrap_or_else(|e| panic!("{e}")), 1);
    w.decide(Decide::Enter { reason: String::new() });
    child.handle_input(1, Input::Tick);
    assert!(child.snapshot().in_plan() && child.gate().stamp() == w.state().stamp && grandchild.gate().stamp() == w.state().stamp);
    for decide in [Decide::Leave, Decide::Mode(Mode::Bypass), Decide::Approve { version: None, hash: None }, Decide::Enter { reason: String::new() }] {
        let action = OperatorDoor::vouch(Surface::Screen).map(|d| d.decide(decide, ""));
        let before = child.snapshot().clone();
        child.handle_input(2, Input::Decide(action.unwrap_or_else(|| unreachable!()), Ticket(1)));
        assert_eq!(child.snapshot(), &before);
    }
    assert!(w.in_plan());
    assert!(w.engine.root_for_child().is_err() && child.root_for_child().is_err(), "none is begun in plan mode");
    w.decide(Decide::Leave);
    child.handle_input(3, Input::Tick);
    assert!(!child.snapshot().in_plan());
}

#[test]
fn ledger_d45_a_child_opens_no_review_and_reports_upward() {
    let w = World::new();
    let root = w.engine.root_for_child().unwrap_or_else(|e| panic!("{e}"));
    let mut child = Engine::child(EngineConfig { tools: w.engine.config.tools.clone(), ..EngineConfig::default() }, root, 1);
    let mut world = World::new();
    std::mem::swap(&mut world.engine, &mut child);
    world.submit("Shop for a cake.", &["buy eggs"]);
    assert!(world.state().plans.is_empty());
    assert_eq!(world.last_result()["error_code"], "child_reports");
}

// ---- entry and exit

#[test]
fn ledger_f8_f10_only_the_whole_command_enters_and_prose_about_planning_never_does() {
    for text in ["make a plan for the migration", "plan", "/planner", "can you /plan this out for me", "please plan the week", "what is plan mode", "I entered plan mode yesterday"] {
        let mut w = World::new();
        w.typed(text);
        assert!(!w.in_plan(), "{text}");
        let mut w = World::new();
        w.say(text);
        assert!(!w.in_plan(), "spoken: {text}");
    }
}

#[test]
fn ledger_f9_f39_a_whole_spoken_sentence_enters_and_anything_longer_does_not() {
    let mut w = World::new();
    w.say("Enter plan mode and look at the build.");
    assert!(!w.in_plan());
    w.say("Enter plan mode.");
    assert!(w.in_plan());
    assert_eq!(w.state().entered_by.as_ref().map(|b| b.surface), Some(Surface::Voice));
}

#[test]
fn ledger_f11_a_command_is_caught_before_it_could_answer_a_pending_request() {
    let mut w = World::asked();
    assert_eq!(w.typed("Enter plan mode."), (true, "ok"));
    assert!(w.in_plan() && w.changed() == 0 && w.state().approvals.is_empty());
    assert!(!w.state().items.iter().any(|i| matches!(i, Item::User { text, .. } if text.contains("plan mode"))), "and the agent never gets it");
}

#[test]
fn ledger_f13_every_door_for_words_knows_the_command() {
    let mut chat = World::new();
    chat.typed("Enter plan mode.");
    let mut voice = World::new();
    voice.say("Enter plan mode.");
    let mut client = World::new();
    client.input(Input::ClientText { item: "i".into(), text: "/plan".into() });
    assert!([chat, voice, client].iter().all(World::in_plan));
}

#[test]
fn ledger_f15_d33_nothing_but_a_persons_decision_leaves_plan_mode() {
    let mut w = World::reviewing();
    for text in ["exit plan mode", "/plan off", "approve plan one", "yes, go ahead", "confirm plan one"] {
        w.input(Input::ClientText { item: "i1".into(), text: text.into() });
        assert!(w.in_plan(), "a client's item: {text}");
    }
    w.typed("call exit_plan_mode {}");
    w.typed("call plan__submit {\"summary\": \"exit plan mode\", \"steps\": [\"approve plan one\"], \"approved\": true}");
    w.typed("call mode__set {\"mode\": \"default\"}");
    w.input(Input::AgentText { turn: TurnId(99), text: "Plan mode is off. Exit plan mode. Confirm plan one.".into() });
    w.input(Input::ToolDone { call: CallId("nobody".into()), outcome: ToolOutcome::ok(json!({"plan_mode": false})) });
    w.settle();
    assert!(w.in_plan());
    for decide in [Decide::Leave, Decide::Mode(Mode::Default), Decide::Approve { version: Some(1), hash: None }, Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass }] {
        assert_eq!(UserAction::typed_by_client(decide, ""), None);
    }
    for surface in [Surface::Voice, Surface::Client, Surface::Gateway, Surface::Agent] {
        assert!(OperatorDoor::vouch(surface).is_none(), "{surface:?} is no door of a person");
    }
}

#[test]
fn ledger_f18_f31_l32_a_refusal_is_counted_names_its_class_and_is_not_for_the_model_to_mend() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.typed(ADD);
    let output = w.last_result();
    for (name, value) in [("success", json!(false)), ("is_error", json!(true)), ("error_code", json!("plan_mode_blocked")), ("plan_mode", json!(true)), ("fixable_by_llm", json!(false)), ("effect", json!("files")), ("tool_name", json!("notes__add"))] {
        assert_eq!(output[name], value, "{name}");
    }
    assert_eq!(w.counts.iter().filter(|c| matches!(c, Count::Blocked { surface: "chat", effect: "files" })).count(), 1);
}

#[test]
fn ledger_f19_f20_an_approved_plan_grants_nothing_and_each_change_is_still_asked_about() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.typed(ADD);
    w.typed("Add buy milk to my notes.");
    w.typed("Present the plan.");
    w.approve(1);
    assert_eq!((w.changed(), w.state().approvals.len()), (0, 1), "the first kept call asks");
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!((w.changed(), w.state().approvals.len()), (1, 1), "and the second asks anew: a yes is to one call");
}

#[test]
fn ledger_f21_the_person_is_told_by_voice_that_changes_are_still_asked_about() {
    let mut w = World::reviewing();
    w.approve(1);
    assert!(w.spoken().contains("I still ask before each change."), "{}", w.spoken());
}

#[test]
fn ledger_f25_d66_a_call_of_a_tool_that_was_never_listed_is_refused_all_the_same() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.typed(ADD);
    assert!(w.steps.iter().all(|s| s.tools.iter().all(|t| t.name != "notes__add")), "hidden");
    assert_eq!((w.changed(), w.last_result()["error_code"].as_str()), (0, Some("plan_mode_blocked")), "and refused");
}

#[test]
fn ledger_f30_a_button_cannot_run_what_plan_mode_refuses() {
    let mut w = World::asked();
    let request = w.request();
    w.decide(Decide::Enter { reason: String::new() });
    let (_, code) = w.decide(Decide::AnswerTool { request, approve: true });
    w.settle();
    assert_ne!(code, "ok");
    assert_eq!(w.changed(), 0);
}

#[test]
fn ledger_f34_l33_a_plan_a_todo_list_and_comments_are_the_conversations_own_and_go_on_in_plan_mode() {
    let mut w = World::reviewing();
    w.typed("call todo__write {\"todos\": [\"one\"]}");
    assert_eq!(w.state().todo.len(), 1);
    assert_eq!(w.decide(Decide::Comment { id: None, version: None, step: None, quote: String::new(), text: "Why?".into() }), (true, "ok"));
    assert!(w.in_plan() && w.state().comments.len() == 1);
}

#[test]
fn ledger_f35_l25_presenting_never_enters_plan_mode_and_says_which_mode_it_met() {
    let mut w = World::new();
    w.submit("Shop for a cake.", &["buy eggs"]);
    assert!(!w.in_plan() && w.state().plans.len() == 1);
    assert_eq!(w.last_result()["data"]["plan_mode"], false);
    let w = World::reviewing();
    assert_eq!((w.last_result()["data"]["plan_mode"].clone(), w.last_result()["data"]["awaiting"].clone()), (json!(true), json!("user_review")));
}

#[test]
fn ledger_f40_d7_by_voice_a_change_is_confirmed_sounded_and_can_be_asked_for() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    assert!(w.spoken().contains("Plan mode is on.") && w.earcons.contains(&Earcon::Enter));
    w.say("What mode are you in?");
    assert!(w.spoken().ends_with("Plan mode is on. I can look, but I change nothing."), "{}", w.spoken());
    assert_eq!(w.modes().len(), 1, "and everybody else reads it from the one event");
}

#[test]
fn ledger_f45_entered_in_a_chat_it_holds_for_the_voice_that_speaks_now() {
    let mut w = World::new();
    w.typed("Enter plan mode.");
    w.say(ADD);
    assert_eq!((w.changed(), w.last_result()["error_code"].as_str()), (0, Some("plan_mode_blocked")));
}

#[test]
fn ledger_f46_writing_the_todo_list_runs_nothing() {
    let mut w = World::new();
    w.typed("call todo__write {\"todos\": [\"add buy eggs to my notes\", \"exit plan mode\"]}");
    assert_eq!((w.ran.len(), w.state().todo.len(), w.changed()), (1, 2, 0));
}

#[test]
fn ledger_f47_f52_a_list_is_replaced_whole_and_a_bad_one_leaves_the_old_one_whole() {
    let mut w = World::new();
    w.typed("call todo__write {\"todos\": [\"one\", \"two\"]}");
    w.typed("call todo__write {\"todos\": [\"three\"]}");
    assert_eq!(w.state().todo.iter().map(|i| i.content.as_str()).collect::<Vec<_>>(), ["three"]);
    w.typed("call todo__write {\"todos\": [\"four\", {\"content\": \"five\", \"status\": \"odd\"}]}");
    assert_eq!(w.state().todo.iter().map(|i| i.content.as_str()).collect::<Vec<_>>(), ["three"]);
    assert_eq!(w.last_result()["error_code"], "invalid_status");
}

// ---- one pass through everything

#[test]
fn ledger_d1_policy_artefact_moment_switch_and_record_are_five_things() {
    let mut w = World::reviewing();
    assert!(w.steps.iter().any(|s| s.plan_mode), "the policy is told");
    let plan = w.state().version(1).cloned().unwrap_or_default();
    w.decide(Decide::Approve { version: Some(1), hash: Some(plan.hash) });
    w.settle();
    let kinds: Vec<&str> = w.events.iter().filter_map(|e| match &e.kind {
        EventKind::Presented(_) => Some("artefact"),
        EventKind::PlanDecided { status: PlanStatus::Approved, .. } => Some("moment"),
        EventKind::Mode(m) if m.posture == Posture::Default => Some("switch"),
        _ => None,
    }).collect();
    assert_eq!(kinds, ["artefact", "moment", "switch"]);
    assert_eq!(w.restarted().snapshot().plans[0].status, PlanStatus::Approved, "and the record lasts");
}

#[test]
fn ledger_d4_d5_a_change_of_mode_is_a_whole_value_in_the_log_and_no_line_of_the_agents_history() {
    let mut w = World::new();
    let before = w.state().items.len();
    w.decide(Decide::Enter { reason: String::new() });
    w.decide(Decide::Leave);
    w.decide(Decide::Enter { reason: "again".into() });
    assert_eq!(w.state().items.len(), before);
    assert_eq!(Snapshot::default().stamp.posture, Posture::Default, "with no event it is default");
    let mut fold = Snapshot::default();
    for event in &w.events {
        fold.apply(event);
        if let EventKind::Mode(m) = &event.kind { assert_eq!((fold.stamp.posture, fold.ask), (m.posture, m.ask), "the last word is the state") }
    }
    assert!(fold.in_plan());
}

#[test]
fn ledger_d9_a_change_of_mode_says_who_where_and_with_which_words() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    let by = &w.modes()[0].by;
    assert_eq!((by.surface, by.utterance.is_some(), by.words.as_str(), by.actor()), (Surface::Voice, true, "Enter plan mode.", "user"));
    w.decide(Decide::Leave);
    assert_eq!(w.modes().last().map(|m| (m.by.surface, m.by.actor())), Some((Surface::Screen, "user")));
}

#[test]
fn ledger_d11_d59_the_state_is_the_fold_and_an_event_is_folded_once() {
    let w = World::reviewing();
    let mut fold = Snapshot::default();
    for event in &w.events {
        fold.apply(event);
        let once = fold.clone();
        fold.apply(event);
        assert_eq!(fold, once, "an event that was folded costs nothing");
    }
    assert_eq!(&fold, w.state());
}

#[test]
fn ledger_d12_d13_what_is_so_already_logs_nothing_and_what_is_not_holds_at_once() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: "first".into() });
    assert!(w.in_plan(), "idle: committed at once");
    let (events, entered) = (w.modes().len(), w.state().entered_ms);
    assert_eq!(w.decide(Decide::Enter { reason: "second".into() }), (true, "already"));
    assert_eq!(w.by(Surface::Screen, Decide::Mode(Mode::Plan)), (true, "already"));
    assert_eq!((w.modes().len(), w.state().entered_ms, w.state().entered_reason.as_str()), (events, entered, "first"));
    w.decide(Decide::Leave);
    let events = w.modes().len();
    assert_eq!(w.decide(Decide::Leave).1, "not_in_plan_mode");
    assert_eq!(w.decide(Decide::Mode(Mode::Default)), (true, "already"));
    assert_eq!(w.modes().len(), events);
}

#[test]
fn ledger_d22_d23_d24_d25_the_agent_is_told_of_a_change_once_and_only_of_one_it_could_see() {
    let notes = |w: &World| -> Vec<bool> { w.steps.iter().flat_map(|s| s.items.iter()).filter_map(|i| if let Item::Gateway(GatewayNote::Mode { plan }) = i { Some(*plan) } else { None }).collect() };
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.typed("hello");
    assert_eq!(notes(&w), [] as [bool; 0], "set before the first turn: the section says it");
    w.decide(Decide::Leave);
    w.decide(Decide::Enter { reason: String::new() });
    w.typed("hello");
    assert_eq!(notes(&w), [] as [bool; 0], "what cancels out is not told");
    w.decide(Decide::Leave);
    w.typed("hello");
    w.typed("hello");
    assert_eq!(notes(&w), [false], "once");
    let last = w.steps.last().map(|s| s.items.last().cloned());
    assert!(matches!(last, Some(Some(Item::User { .. }))), "the words to be answered come last");
    let mut w = World::reviewing();
    w.approve(1);
    assert_eq!(notes(&w), [] as [bool; 0], "an approval says so itself");
    assert!(w.steps.iter().any(|s| matches!(s.items.last(), Some(Item::Gateway(GatewayNote::Approved { .. })))));
}

#[test]
fn ledger_d26_flips_that_cancel_out_are_not_all_said() {
    let mut w = World::new();
    w.say_now("What can I say?");
    assert!(w.speaking.is_some());
    for _ in 0..5 {
        w.decide(Decide::Enter { reason: String::new() });
        w.decide(Decide::Leave);
    }
    w.settle();
    assert!(w.spoken().matches("Plan mode is on.").count() + w.spoken().matches("Plan mode is off.").count() <= 1, "{}", w.spoken());
}

#[test]
fn ledger_d30_d31_d44_the_other_tool_name_presents_a_heading_and_its_steps_and_flips_nothing() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.typed("call plan__submit {\"plan\": \"# shop for a cake\\n\\n1. buy eggs\\n2. buy milk\"}");
    let plan = w.state().version(1).cloned().unwrap_or_default();
    assert_eq!((plan.title.as_str(), plan.steps.len(), w.in_plan()), ("shop for a cake", 2, true));
    assert!(w.spoken().contains("Plan one: shop for a cake."), "{}", w.spoken());
    for bad in ["", "no heading\\nbuy eggs", "# a heading alone", "#\\nbuy eggs"] {
        w.typed(&format!("call plan__submit {{\"plan\": \"{bad}\"}}"));
        assert_eq!((w.last_result()["error_code"].as_str(), w.last_result()["field"].as_str()), (Some("missing_required_field"), Some("plan")), "{bad}");
    }
    assert_eq!(w.state().plan_count, 1);
}

#[test]
fn ledger_d32_a_call_that_belongs_to_no_turn_of_this_conversation_is_none() {
    let mut w = World::new();
    w.input(Input::AgentCall { turn: TurnId(7), id: CallId("c".into()), tool: "notes__list".into(), arguments: Ok(json!({})) });
    w.settle();
    assert!(w.ran.is_empty() && w.state().trace.is_empty());
}

#[test]
fn ledger_d35_d37_a_review_is_no_permission_and_consent_is_exact() {
    for words in ["Yes, go ahead.", "Confirm plan one but use the other list.", "Confirm plan one if you like.", "Confirm plan two.", "Okay."] {
        let mut w = World::reviewing();
        w.say("Approve plan one.");
        assert_eq!(w.engine.question().map(|q| (q.kind, q.version, q.state)), Some((QuestionKind::Approve, Some(1), QuestionState::Heard)));
        w.say_now(words);
        w.settle();
        assert!(w.in_plan(), "{words}");
        assert!(w.state().approvals.is_empty(), "no tool's request was made or answered by it");
    }
    let mut w = World::asked();
    w.say_now("Confirm plan one.");
    w.settle();
    assert_eq!(w.changed(), 0, "and no sentence about a plan answers a tool");
}

#[test]
fn ledger_d36_what_is_approved_is_the_logged_text_with_its_hash() {
    let mut w = World::reviewing();
    let plan = w.state().version(1).cloned().unwrap_or_default();
    let logged = w.events.iter().find_map(|e| if let EventKind::Presented(p) = &e.kind { Some(p.clone()) } else { None }).unwrap_or_default();
    assert_eq!((logged.hash.as_str(), &logged.steps), (plan.hash.as_str(), &plan.steps));
    assert_eq!(w.decide(Decide::Approve { version: Some(1), hash: Some("0000".into()) }), (false, "plan_changed"));
    assert!(w.in_plan());
    assert_eq!(w.decide(Decide::Approve { version: Some(1), hash: Some(plan.hash) }), (true, "ok"));
}

#[test]
fn ledger_d38_l51_changes_go_to_the_agent_word_for_word_and_need_at_least_one() {
    let mut w = World::reviewing();
    assert_eq!(w.decide(Decide::RequestChanges { version: Some(1), comments: "  ".into() }), (false, "no_comments"));
    w.decide(Decide::Comment { id: None, version: Some(1), step: Some(2), quote: String::new(), text: "Oat milk, please.".into() });
    assert_eq!(w.decide(Decide::RequestChanges { version: Some(1), comments: "And be quick!".into() }), (true, "ok"));
    w.settle();
    let told = w.steps.last().and_then(|s| s.items.iter().rev().find_map(|i| if let Item::Gateway(GatewayNote::ChangesRequested { comments, .. }) = i { Some(comments.clone()) } else { None }));
    assert_eq!(told.as_deref(), Some("On step 2 (\"buy milk\"): Oat milk, please.\nAnd be quick!"));
    assert!(w.in_plan() && w.state().comments.iter().all(|c| c.state == CommentState::Sent));
    let mut w = World::reviewing();
    w.say("Keep planning.");
    assert_eq!(w.status(1), Some(PlanStatus::ChangesRequested), "by voice it is a whole sentence");
}

#[test]
fn ledger_d39_l53_dismissing_stays_in_plan_mode_and_wakes_nobody() {
    let mut w = World::reviewing();
    let before = w.steps.len();
    w.decide(Decide::Dismiss { version: None });
    w.settle();
    assert_eq!((w.status(1), w.in_plan(), w.steps.len()), (Some(PlanStatus::Dismissed), true, before));
}

#[test]
fn ledger_d40_a_reload_in_the_middle_of_a_review_never_leaves() {
    let mut w = World::reviewing();
    w.say("Approve plan one.");
    assert!(w.engine.question().is_some());
    let back = w.restarted();
    assert!(back.snapshot().in_plan() && back.snapshot().restored && back.unannounced && back.question().is_none(), "and somebody is told before anything runs");
    assert_eq!(back.snapshot().version(1).map(|p| p.status), Some(PlanStatus::Waiting));
    w.input(Input::LegGone);
    w.silence(200_000);
    w.input(Input::Tick);
    assert!(w.in_plan() && w.engine.question().is_none(), "nobody there: it expires");
}

#[test]
fn ledger_d41_l24_what_was_composed_under_plan_is_judged_as_plan_and_tightening_is_at_once() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.agent_ms = 3_000;
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: ADD.into(), ticket: Ticket(1) });
    w.decide(Decide::Leave);
    assert!(!w.in_plan());
    w.silence(4_000);
    assert_eq!(w.last_result()["error_code"], "plan_mode_blocked", "the response began in plan mode");
    w.agent_ms = 0;
    w.typed(ADD);
    assert_eq!(w.state().approvals.len(), 1, "the next turn's call is asked about");
    w.decide(Decide::Enter { reason: String::new() });
    w.settle();
    assert_eq!((w.changed(), w.state().approvals.len()), (0, 0), "and tightening takes what has not begun");
}

#[test]
fn ledger_d42_after_approval_the_next_response_has_neither_section_nor_tool() {
    let mut w = World::reviewing();
    w.approve(1);
    let step = w.steps.last().cloned().unwrap_or_else(|| panic!("no step"));
    assert!(!step.plan_mode && step.tools.iter().all(|t| t.name != "plan__submit") && step.tools.iter().any(|t| t.name == "notes__add"));
}

#[test]
fn ledger_d43_following_the_work_is_the_todo_lists_matter_and_no_plans_status() {
    let mut w = World::reviewing();
    w.approve(1);
    w.typed("call todo__write {\"todos\": [{\"content\": \"buy eggs\", \"status\": \"completed\"}, {\"content\": \"buy milk\", \"status\": \"completed\"}]}");
    assert_eq!(w.status(1), Some(PlanStatus::Approved));
    assert_eq!(w.state().todo.len(), 2);
}

#[test]
fn ledger_d48_what_is_taken_back_before_it_had_an_effect_is_said() {
    let mut w = World::reviewing();
    w.say("Approve plan one.");
    w.say_now("Confirm plan one.");
    assert!(!w.in_plan());
    w.say_now("After lunch.");
    w.settle();
    assert!(w.in_plan() && w.status(1) == Some(PlanStatus::Waiting));
    assert!(w.spoken().contains("I took the approval back."), "{}", w.spoken());
}

#[test]
fn ledger_d52_without_anybody_to_ask_nothing_runs_and_a_screen_can_still_say_yes() {
    let mut w = World::new();
    w.input(Input::LegGone);
    w.typed(ADD);
    w.silence(60_000);
    assert_eq!((w.changed(), w.state().approvals.len()), (0, 1));
    let request = w.request();
    w.decide(Decide::AnswerTool { request, approve: true });
    w.settle();
    assert_eq!(w.changed(), 1);
}

#[test]
fn ledger_d60_tightening_turns_the_gate_before_anything_is_written() {
    let mut w = World::new();
    let action = OperatorDoor::vouch(Surface::Screen).map(|d| d.decide(Decide::Enter { reason: String::new() }, "")).unwrap_or_else(|| unreachable!());
    w.engine.handle_input(w.now, Input::Decide(action, Ticket(1)));
    assert_eq!(w.engine.gate().stamp().posture, Posture::Plan, "no output has been taken yet, so nothing can have been written");
    let mut w = World::reviewing();
    w.log_fails = true;
    w.approve(1);
    assert!(w.in_plan() && w.notices().contains(&"log_failed"), "a loosening that is not written is none");
}

// ---- modes

#[test]
fn ledger_l2_by_default_a_card_is_shown_and_the_person_answers() {
    let mut w = World::asked();
    let pending = w.state().approvals[0].clone();
    assert_eq!((pending.tool.as_str(), pending.effect, pending.reason.as_str()), ("notes__add", Effect::Files, "Add buy eggs to your notes?"));
    w.decide(Decide::AnswerTool { request: pending.request, approve: false });
    w.settle();
    assert_eq!((w.changed(), w.last_result()["error_code"].as_str()), (0, Some("denied_by_user")));
}

#[test]
fn ledger_l4_l12_in_bypass_no_class_is_asked_about_but_what_cannot_be_undone_is() {
    let mut w = World::new();
    assert_eq!(w.decide(Decide::Mode(Mode::Bypass)), (true, "ok"));
    w.typed(ADD);
    assert_eq!((w.changed(), w.state().approvals.len()), (1, 0));
    w.typed("call notes__shred {}");
    assert_eq!(w.state().approvals.iter().map(|a| a.screen_only).collect::<Vec<_>>(), [true]);
}

#[test]
fn ledger_l5_l14_autonomous_is_bypass_with_nobody_there() {
    let mut w = World::new();
    w.decide(Decide::Mode(Mode::Autonomous));
    w.typed(ADD);
    assert_eq!(w.changed(), 1);
    w.typed("call notes__shred {}");
    let output = w.last_result();
    assert_eq!((output["error_code"].as_str(), w.state().approvals.len()), (Some("nobody_to_ask"), 0));
    assert!(output["error"].as_str().is_some_and(|e| e.contains("nobody is asked")), "a tool that would raise its own question is told");
}

#[test]
fn ledger_l20_the_organisations_switch_refuses_loose_modes_and_carries_a_plan_out_in_default() {
    let mut w = World::with(EngineConfig { loose_modes: false, start_ask: AskPolicy::Bypass, ..EngineConfig::default() });
    assert_eq!(w.state().ask, AskPolicy::Ask, "not at the start");
    for mode in [Mode::Bypass, Mode::Autonomous] {
        assert_eq!(w.decide(Decide::Mode(mode)), (false, "mode_forbidden"));
    }
    w.decide(Decide::Enter { reason: String::new() });
    w.submit("Shop for a cake.", &["buy eggs"]);
    assert_eq!(w.decide(Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass }), (true, "ok"));
    w.settle();
    assert_eq!((w.state().ask, w.in_plan(), w.status(1)), (AskPolicy::Ask, false, Some(PlanStatus::Approved)));
}

#[test]
fn bypass_and_autonomous_come_from_a_screen_only_and_are_never_restored() {
    for surface in [Surface::Voice, Surface::Client] {
        let mut w = World::new();
        assert_eq!(w.by(surface, Decide::Mode(Mode::Bypass)), (false, "screen_only"));
        assert_eq!(w.state().ask, AskPolicy::Ask);
    }
    let mut w = World::new();
    w.say("Bypass mode on.");
    assert_eq!(w.state().ask, AskPolicy::Ask);
    w.decide(Decide::Mode(Mode::Bypass));
    assert_eq!(w.restarted().snapshot().ask, AskPolicy::Ask);
    w.decide(Decide::Enter { reason: String::new() });
    let back = w.restarted();
    assert_eq!((back.snapshot().ask, back.snapshot().in_plan()), (AskPolicy::Ask, true));
    let mut w = World::new();
    w.log_fails = true;
    w.decide(Decide::Mode(Mode::Bypass));
    assert_eq!((w.state().ask, w.in_plan(), w.notices().contains(&"log_failed")), (AskPolicy::Ask, false, true), "not logged, not loosened");
}

#[test]
fn choosing_a_loose_mode_in_plan_mode_reads_custom_and_plan_mode_stays() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!(w.decide(Decide::Mode(Mode::Bypass)), (true, "ok"));
    assert_eq!(Mode::of(w.state().stamp.posture, w.state().ask), Mode::Custom);
    assert_eq!(w.decide(Decide::Mode(Mode::Custom)), (false, "not_a_mode"));
    w.typed(ADD);
    assert_eq!((w.changed(), w.in_plan()), (0, true));
    assert_eq!(w.decide(Decide::Mode(Mode::Default)), (true, "ok"));
    assert_eq!((w.state().ask, w.in_plan()), (AskPolicy::Ask, false));
}

#[test]
fn a_loosening_holds_for_calls_that_are_made_after_it() {
    let mut w = World::new();
    w.agent_ms = 3_000;
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: ADD.into(), ticket: Ticket(1) });
    w.decide(Decide::Mode(Mode::Bypass));
    w.silence(4_000);
    assert_eq!((w.changed(), w.state().approvals.len()), (0, 1), "it was composed while changes were asked about");
}

#[test]
fn ledger_l11_the_operators_rules_hold_in_a_conversation_and_its_mode_leaves_them_alone() {
    let rules = Rules::parse(&["deny tool:notes__list", "ask effect:session"]).unwrap_or_else(|e| panic!("{e}"));
    let mut w = World::with(EngineConfig { rules: rules.clone().into(), ..EngineConfig::default() });
    w.typed("What's in my notes?");
    assert_eq!(w.last_result()["error_code"], "policy_denied");
    w.typed("call todo__write {\"todos\": [\"one\"]}");
    assert_eq!(w.state().approvals.len(), 1, "a rule may ask about what no level asks about");
    w.decide(Decide::Mode(Mode::Bypass));
    w.typed("call todo__write {\"todos\": [\"two\"]}");
    w.typed("What's in my notes?");
    assert_eq!((w.state().todo.len(), w.last_result()["error_code"].as_str()), (1, Some("policy_denied")));
    assert_eq!(*w.engine.config.rules, rules);
}

// ---- plan documents and their review

#[test]
fn ledger_l34_a_plan_has_a_goal_steps_risks_and_open_questions() {
    let mut w = World::new();
    w.typed("call plan__submit {\"title\": \"cake\", \"summary\": \"shop for a cake\", \"steps\": [{\"title\": \"buy eggs\", \"detail\": \"six\", \"tools\": [\"notes__add\"]}], \"risks\": [\"they break\"], \"open_questions\": [\"which?\"]}");
    let plan = w.state().version(1).cloned().unwrap_or_default();
    assert_eq!((plan.title.as_str(), plan.summary.as_str(), plan.risks, plan.open_questions), ("cake", "shop for a cake", vec!["they break".to_string()], vec!["which?".to_string()]));
    assert_eq!((plan.steps[0].detail.as_str(), plan.steps[0].tools.as_slice()), ("six", &["notes__add".to_string()][..]));
}

#[test]
fn ledger_l35_what_is_too_long_is_refused_with_the_name_of_its_field() {
    let mut w = World::new();
    let long = |n: usize| "x".repeat(n);
    for (arguments, field) in [
        (json!({"title": long(201), "summary": "s", "steps": ["a"]}), "title"), (json!({"summary": "s", "steps": ["a", long(201)]}), "steps[1].title"),
        (json!({"summary": "s", "steps": [{"title": "a", "detail": long(50_000)}]}), "steps"), (json!({"summary": long(50_001), "steps": ["a"]}), "summary"),
        (json!({"plan": format!("# {}\nstep", long(201))}), "plan"), (json!({"summary": "s", "steps": vec!["a"; 101]}), "steps"),
    ] {
        w.typed(&format!("call plan__submit {arguments}"));
        assert_eq!((w.last_result()["error_code"].as_str(), w.last_result()["field"].as_str()), (Some("too_long"), Some(field)));
    }
    assert!(w.state().plans.is_empty());
    w.typed(&format!("call plan__submit {}", json!({"title": long(200), "summary": "s", "steps": [{"title": "a", "detail": long(49_998)}]})));
    assert_eq!(w.state().plans.len(), 1, "to the very bound: {}", w.last_result());
    w.approve(1);
    for (summary, code) in [(String::new(), "missing_required_field"), (long(4_001), "too_long")] {
        w.typed(&format!("call plan__complete {}", json!({"summary": summary})));
        assert_eq!((w.last_result()["error_code"].as_str(), w.last_result()["field"].as_str()), (Some(code), Some("summary")));
    }
    w.typed(&format!("call plan__complete {}", json!({"summary": long(4_000)})));
    assert_eq!(w.status(1), Some(PlanStatus::Completed));
    let mut w = World::reviewing();
    for (text, quote) in [(long(4_001), String::new()), ("t".into(), long(1_001))] {
        assert_eq!(w.decide(Decide::Comment { id: None, version: None, step: None, quote, text }), (false, "too_long"));
    }
}

#[test]
fn ledger_l36_l39_l43_every_version_is_kept_and_its_text_never_changes() {
    let mut w = World::reviewing();
    let first = w.state().version(1).cloned().unwrap_or_default();
    w.decide(Decide::RequestChanges { version: None, comments: "more".into() });
    w.settle();
    w.submit("Shop for a cake.", &["buy eggs", "buy milk", "buy flour"]);
    w.submit("Shop for a tart.", &["buy plums"]);
    assert_eq!(w.state().plans.iter().map(|p| p.version).collect::<Vec<_>>(), [1, 2, 3]);
    let same = |a: &PlanVersion, b: &PlanVersion| (&a.title, &a.summary, &a.steps, &a.hash) == (&b.title, &b.summary, &b.steps, &b.hash);
    assert!(w.state().version(1).is_some_and(|p| same(p, &first)));
    assert_eq!((w.status(2), w.status(3)), (Some(PlanStatus::Superseded), Some(PlanStatus::Waiting)));
    assert_eq!(w.decide(Decide::Approve { version: Some(2), hash: None }).0, false, "what was superseded is read and not decided on");
    assert_eq!(w.decide(Decide::Comment { id: None, version: Some(2), step: None, quote: String::new(), text: "x".into() }), (false, "not_waiting"));
}

#[test]
fn ledger_l40_a_plan_that_differs_in_white_space_alone_is_the_same_version() {
    let again = |w: &mut World| w.submit("Shop  for a\n cake.", &["buy eggs ", " buy   milk"]);
    let mut w = World::reviewing();
    again(&mut w);
    assert_eq!((w.state().plan_count, w.status(1)), (1, Some(PlanStatus::Waiting)), "waiting: nothing changes");
    w.decide(Decide::Dismiss { version: None });
    again(&mut w);
    assert_eq!((w.state().plan_count, w.status(1)), (1, Some(PlanStatus::Waiting)), "set aside: it comes back");
    w.approve(1);
    again(&mut w);
    assert_eq!((w.state().plan_count, w.last_result()["error_code"].as_str()), (1, Some("plan_unchanged")), "approved: it must change");
    w.typed("call plan__complete {\"summary\": \"done\"}");
    again(&mut w);
    assert_eq!(w.last_result()["error_code"], "plan_unchanged");
    w.submit("Shop for a cake.", &["buy eggs", "buy oats"]);
    assert_eq!(w.state().plan_count, 2);
}

#[test]
fn ledger_l42_presenting_ends_the_turn_and_what_runs_goes_on() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    let steps = w.steps.len();
    w.submit("Shop for a cake.", &["buy eggs"]);
    assert_eq!(w.steps.len(), steps + 1, "no further response of that turn");
    let mut w = World::asked();
    w.tool_ms = 5_000;
    w.say_now("Yes, go ahead.");
    w.submit("Shop for a cake.", &["buy eggs"]);
    w.silence(6_000);
    assert_eq!(w.changed(), 1, "what had begun runs to its end");
}

#[test]
fn ledger_l46_a_version_is_read_aloud_by_itself_once_and_a_new_leg_hears_the_mode_alone() {
    let mut w = World::reviewing();
    w.submit("Shop for a cake.", &["buy eggs", "buy milk"]);
    w.decide(Decide::Dismiss { version: None });
    w.decide(Decide::BackToReview { version: None });
    w.settle();
    assert_eq!(w.spoken().matches("Plan one: Shop for a cake").count() + w.spoken().matches("Plan one: shop for a cake").count(), 1, "{}", w.spoken());
    let before = w.spoken().len();
    w.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
    w.settle();
    assert_eq!(&w.spoken()[before..], " | Plan mode is on.");
}

#[test]
fn ledger_l47_a_plan_or_one_step_of_it_is_read_again_when_asked_for() {
    let mut w = World::reviewing();
    w.say("Read me the plan.");
    assert!(w.spoken().ends_with("You can say approve plan one, or tell me what to change."), "{}", w.spoken());
    w.say("Read step two.");
    assert!(w.spoken().ends_with("Step two of plan one: buy milk."), "{}", w.spoken());
}

#[test]
fn ledger_l48_l49_a_decision_made_twice_changes_nothing_wakes_nobody_and_says_who_was_first() {
    let mut w = World::reviewing();
    w.say("Approve plan one.");
    w.say_now("Confirm plan one.");
    w.settle();
    let (steps, events) = (w.steps.len(), w.modes().len());
    assert_eq!(w.approve(1), (true, "already"));
    assert!(w.said_last().starts_with("Plan 1 was approved already by voice, ") && w.said_last().ends_with(" seconds ago."), "{}", w.said_last());
    for decide in [Decide::Dismiss { version: Some(1) }, Decide::RequestChanges { version: Some(1), comments: "x".into() }] {
        assert_eq!(w.decide(decide), (true, "already"));
    }
    assert_eq!((w.steps.len(), w.modes().len(), w.status(1)), (steps, events, Some(PlanStatus::Approved)));
    let mut w = World::reviewing();
    w.decide(Decide::Dismiss { version: None });
    assert_eq!(w.approve(1), (false, "not_waiting"), "an approval of what was set aside is not taken for one");
    assert!(w.said_last().starts_with("Plan 1 was set aside already on a screen, "), "{}", w.said_last());
    // The same for a tool's request.
    let mut w = World::asked();
    let request = w.request();
    w.say_now("No.");
    w.settle();
    assert_eq!(w.decide(Decide::AnswerTool { request, approve: true }), (true, "already"));
    assert!(w.said_last().starts_with("It was denied already by voice"), "{}", w.said_last());
    assert_eq!(w.changed(), 0);
}

#[test]
fn ledger_l50_a_comment_is_kept_at_once_bound_to_a_step_or_a_quote_and_can_be_changed() {
    let mut w = World::reviewing();
    let write = |w: &mut World, id, step, quote: &str, text: &str| w.decide(Decide::Comment { id, version: None, step, quote: quote.into(), text: text.into() });
    assert_eq!(write(&mut w, None, Some(2), "", "Oat milk."), (true, "ok"));
    assert_eq!(write(&mut w, None, None, "FOR a cake", "Which?").1, "quote_not_found", "a quote is quoted as it stands");
    assert_eq!(write(&mut w, None, None, "for a cake", "Which?"), (true, "ok"));
    assert_eq!(write(&mut w, Some(1), None, "", "Soy milk."), (true, "ok"));
    let comments: Vec<_> = w.state().comments.iter().map(|c| (c.id, c.step, c.quote.as_str(), c.text.as_str(), c.state)).collect();
    assert_eq!(comments, [(1, Some(2), "buy milk", "Soy milk.", CommentState::Open), (2, None, "for a cake", "Which?", CommentState::Open)]);
    assert_eq!(write(&mut w, Some(2), None, "", ""), (true, "ok"));
    assert_eq!(w.state().comments.len(), 1, "an empty text takes it away");
    assert_eq!(write(&mut w, Some(2), None, "", "again").1, "no_such_comment");
    assert_eq!(write(&mut w, None, Some(3), "", "x").1, "no_such_step");
    assert_eq!(write(&mut w, None, None, "", " ").1, "missing_required_field");
    assert_eq!(w.restarted().snapshot().comments.len(), 1, "kept");
    w.say("Comment on step one: brown ones.");
    assert_eq!(w.status(1), Some(PlanStatus::ChangesRequested), "by voice it goes at once");
}

#[test]
fn ledger_l52_a_screen_chooses_the_mode_a_plan_is_carried_out_in_and_a_voice_does_not() {
    let mut w = World::reviewing();
    assert_eq!(w.decide(Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass }), (true, "ok"));
    w.settle();
    assert_eq!((w.state().ask, w.in_plan()), (AskPolicy::Bypass, false));
    assert!(w.spoken().contains("I do not ask before each change."), "{}", w.spoken());
    let mut w = World::reviewing();
    w.by(Surface::Voice, Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass });
    assert_eq!((w.state().ask, w.in_plan()), (AskPolicy::Ask, false));
}

#[test]
fn ledger_l54_the_newest_goes_back_to_review_and_plan_mode_with_it() {
    let mut w = World::reviewing();
    w.submit("Shop for a tart.", &["buy plums"]);
    w.decide(Decide::Leave);
    w.settle();
    assert_eq!((w.in_plan(), w.status(2)), (false, Some(PlanStatus::SetAside)));
    assert_eq!(w.decide(Decide::BackToReview { version: Some(1) }), (false, "not_waiting"), "an older one does not");
    assert_eq!(w.decide(Decide::BackToReview { version: Some(2) }), (true, "ok"));
    assert_eq!((w.in_plan(), w.status(2)), (true, Some(PlanStatus::Waiting)));
    assert_eq!(w.decide(Decide::BackToReview { version: Some(2) }), (true, "already"));
}

#[test]
fn ledger_l55_comments_that_were_not_sent_go_on_with_a_new_version() {
    let mut w = World::reviewing();
    for (step, text) in [(1, "brown"), (2, "oat")] {
        w.decide(Decide::Comment { id: None, version: None, step: Some(step), quote: String::new(), text: text.into() });
    }
    w.submit("Shop for a cake.", &["buy flour", "buy eggs"]);
    let comments: Vec<_> = w.state().comments.iter().map(|c| (c.version, c.step, c.text.as_str(), c.state)).collect();
    assert_eq!(comments, [(2, Some(2), "brown", CommentState::Open), (1, Some(2), "oat", CommentState::Outdated)]);
}

#[test]
fn ledger_l56_leaving_while_a_plan_waits_is_asked_about_with_what_becomes_of_it() {
    let mut w = World::reviewing();
    w.say("Exit plan mode.");
    assert!(w.in_plan() && w.engine.question().is_some_and(|q| q.kind == QuestionKind::Leave && q.text.contains("Plan one is set aside then.")));
    w.say_now("No.");
    w.settle();
    assert_eq!((w.in_plan(), w.status(1)), (true, Some(PlanStatus::Waiting)));
}

#[test]
fn ledger_l57_what_was_set_aside_by_leaving_comes_back_and_what_was_dismissed_does_not() {
    let mut w = World::reviewing();
    w.decide(Decide::Leave);
    assert_eq!(w.status(1), Some(PlanStatus::SetAside));
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!(w.status(1), Some(PlanStatus::Waiting));
    w.decide(Decide::Dismiss { version: None });
    w.decide(Decide::Leave);
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!(w.status(1), Some(PlanStatus::Dismissed));
}

#[test]
fn ledger_l58_approving_is_first_the_plan_and_then_the_mode() {
    let mut w = World::reviewing();
    w.decide(Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass });
    let order: Vec<String> = w.events.iter().filter_map(|e| match &e.kind {
        EventKind::PlanDecided { status, .. } => Some(status.word().to_string()),
        EventKind::Mode(m) if m.posture == Posture::Default => Some(Mode::of(m.posture, m.ask).word().to_string()),
        _ => None,
    }).collect();
    assert_eq!(order, ["approved", "default", "bypass"], "each a decision of its own in the log");
}

#[test]
fn ledger_l59_if_the_agent_cannot_be_woken_the_decision_stands_and_a_notice_says_so() {
    let mut w = World::reviewing();
    w.agent_fails = true;
    w.approve(1);
    assert_eq!((w.status(1), w.in_plan()), (Some(PlanStatus::Approved), false));
    assert!(w.notices().contains(&"agent_failed"));
}

#[test]
fn ledger_l60_changes_that_did_not_reach_the_agent_come_back_with_their_comments() {
    let mut w = World::reviewing();
    w.decide(Decide::Comment { id: None, version: None, step: Some(1), quote: String::new(), text: "brown".into() });
    w.agent_fails = true;
    w.decide(Decide::RequestChanges { version: None, comments: String::new() });
    w.settle();
    assert_eq!((w.status(1), w.state().comments[0].state), (Some(PlanStatus::Waiting), CommentState::Open));
    assert!(w.notices().contains(&"changes_not_delivered"));
    w.agent_fails = false;
    assert_eq!(w.decide(Decide::RequestChanges { version: None, comments: String::new() }), (true, "ok"));
    w.settle();
    assert_eq!((w.status(1), w.state().comments[0].state), (Some(PlanStatus::ChangesRequested), CommentState::Sent));
}

// ---- after approval

#[test]
fn ledger_l61_the_approved_plan_stays_in_the_agents_instructions_until_it_is_over() {
    let given = |w: &World| w.steps.last().and_then(|s| s.approved.as_ref().map(|p| p.version));
    for end in [Decide::MarkDone { version: None }, Decide::BackToReview { version: None }] {
        let mut w = World::reviewing();
        w.approve(1);
        w.typed("hello");
        assert_eq!(given(&w), Some(1));
        if matches!(end, Decide::MarkDone { .. }) { w.decide(end); } else { w.typed("call plan__complete {\"summary\": \"done\"}"); }
        w.typed("hello");
        assert_eq!(given(&w), None);
    }
    let mut w = World::reviewing();
    w.approve(1);
    w.decide(Decide::Enter { reason: String::new() });
    w.submit("Shop for a tart.", &["buy plums"]);
    w.approve(2);
    assert_eq!((given(&w), w.status(1)), (Some(2), Some(PlanStatus::Superseded)), "a newer one takes its place");
}

#[test]
fn ledger_l62_whether_it_is_being_carried_out_is_read_from_what_goes_on() {
    let mut w = World::reviewing();
    w.approve(1);
    w.settle();
    assert!(!w.state().is_active(), "paused");
    w.typed(ADD);
    assert!(w.state().is_active(), "a call has no end yet");
    let speaking = Snapshot { voice: VoiceState::Speaking, ..Snapshot::default() };
    assert!(speaking.is_active());
}

#[test]
fn ledger_l63_the_agents_word_that_it_is_done_is_recorded_as_its_word() {
    let mut w = World::reviewing();
    w.typed("call plan__complete {\"summary\": \"all bought\"}");
    assert_eq!((w.last_result()["error_code"].as_str(), w.status(1)), (Some("no_approved_plan"), Some(PlanStatus::Waiting)), "nothing is completed that was not approved");
    w.approve(1);
    w.typed("call plan__complete {\"summary\": \"all bought\"}");
    let plan = w.state().version(1).cloned().unwrap_or_default();
    assert_eq!((plan.status, plan.done.as_str(), plan.decided.map(|d| d.by.actor())), (PlanStatus::Completed, "all bought", Some("agent")));
}

#[test]
fn ledger_l64_marked_as_done_it_is_set_aside_without_a_summary_and_no_turn_is_stopped() {
    let mut w = World::reviewing();
    w.approve(1);
    w.agent_ms = 3_000;
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "What's in my notes?".into(), ticket: Ticket(1) });
    let ran = w.ran.len();
    assert_eq!(w.decide(Decide::MarkDone { version: Some(1) }), (true, "ok"));
    w.silence(8_000);
    assert_eq!(w.ran.len(), ran + 1, "the turn went on");
    let plan = w.state().version(1).cloned().unwrap_or_default();
    assert_eq!((plan.status, plan.done.as_str()), (PlanStatus::Closed, ""));
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!(w.status(1), Some(PlanStatus::Closed), "and it does not come back by itself");
    assert_eq!(w.decide(Decide::MarkDone { version: Some(1) }), (true, "already"));
}

#[test]
fn ledger_l65_going_on_hands_the_plan_over_again_and_marks_it() {
    let mut w = World::reviewing();
    assert_eq!(w.decide(Decide::Continue { version: None }), (false, "no_approved_plan"));
    w.approve(1);
    w.settle();
    let steps = w.steps.len();
    assert_eq!(w.decide(Decide::Continue { version: Some(1) }), (true, "ok"), "{}", w.said_last());
    w.settle();
    assert!(w.steps[steps..].iter().any(|s| matches!(s.items.last(), Some(Item::Gateway(GatewayNote::Continue { version: 1, .. })))));
    assert!(w.events.iter().any(|e| matches!(&e.kind, EventKind::Continued { version: 1, by } if by.surface == Surface::Screen)));
}

#[test]
fn ledger_l66_it_goes_on_only_when_nothing_runs_waits_or_is_said() {
    let mut w = World::reviewing();
    w.approve(1);
    w.settle();
    w.say_now("What can I say?");
    assert!(w.speaking.is_some());
    assert_eq!(w.decide(Decide::Continue { version: None }), (false, "busy"), "something is being said");
    w.settle();
    w.typed(ADD);
    w.silence(20_000);
    assert_eq!(w.decide(Decide::Continue { version: None }), (false, "busy"), "a request waits");
    let request = w.request();
    w.decide(Decide::AnswerTool { request, approve: false });
    w.settle();
    w.agent_ms = 3_000;
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "hello".into(), ticket: Ticket(1) });
    assert_eq!(w.decide(Decide::Continue { version: None }), (false, "busy"), "a turn runs");
    w.silence(20_000);
    assert_eq!(w.decide(Decide::Continue { version: None }), (true, "ok"));
    w.silence(20_000);
    w.decide(Decide::Enter { reason: String::new() });
    w.settle();
    assert_eq!(w.decide(Decide::Continue { version: None }), (false, "in_plan_mode"));
}

#[test]
fn ledger_l69_settings_decide_how_a_completion_is_told() {
    for (completion, spoken, tones) in [(Telling::Speech, true, 0), (Telling::Earcon, false, 1), (Telling::Silent, false, 0)] {
        let mut w = World::with(EngineConfig { completion, ..EngineConfig::default() });
        w.submit("Shop for a cake.", &["buy eggs"]);
        w.approve(1);
        let before = w.earcons.len();
        w.typed("call plan__complete {\"summary\": \"all bought\"}");
        assert_eq!((w.spoken().contains("is carried out"), w.earcons.len() - before), (spoken, tones), "{completion:?}");
    }
}

// ---- approvals

#[test]
fn the_same_call_again_is_asked_about_under_the_same_request_and_one_yes_runs_one_call() {
    let mut w = World::asked();
    let request = w.request();
    w.silence(20_000);
    assert_eq!(w.engine.question().map(|q| q.state), Some(QuestionState::ScreenOnly));
    w.say(ADD);
    assert_eq!(w.state().approvals.iter().map(|a| a.request.clone()).collect::<Vec<_>>(), [request.clone()], "reused, not doubled");
    assert!(w.engine.asked_is_heard(), "and asked aloud again");
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.changed(), 1);
    assert_eq!(w.result_codes().iter().filter(|r| r.1 == "pending_approval").count(), 1, "each call has its one end");
    w.say(ADD);
    assert_eq!((w.changed(), w.state().approvals.len()), (1, 1), "no yes is left standing for the tool");
    assert_ne!(w.request(), request);
}

#[test]
fn an_open_request_reminds_once_expires_and_stays_in_the_history() {
    let mut w = World::asked();
    w.silence(20_000);
    for _ in 0..5 {
        w.now += 100_000;
        w.input(Input::Tick);
    }
    assert_eq!(w.notices().iter().filter(|n| **n == "approval_waits").count(), 1);
    w.now += 200_000;
    w.input(Input::Tick);
    w.settle();
    assert_eq!((w.changed(), w.state().approvals.len(), w.last_result()["error_code"].as_str()), (0, 0, Some("expired")));
    assert!(w.state().trace.iter().any(|t| t.tool == "notes__add" && t.ended.as_ref().is_some_and(|e| e.error_code == "expired")));
}

#[test]
fn a_guarded_folder_and_a_rule_hold_whatever_the_mode() {
    let read = ToolSpec {
        name: "files__read".into(), description: String::new(), parameters: json!({"properties": {"path": {"type": "string", "format": "path"}}}), effect: Effect::Read, tier: None,
        irreversible: false, needs_person: false, ask: None, step: None, display: "files: read".into(),
    };
    let guard = super::super::guard::Guard::over(&["/var/lib/voxgate"], "/srv");
    let mut w = World::with(EngineConfig { guard: guard.into(), ..EngineConfig::default() });
    w.engine.config.tools = [read].into();
    for mode in [Mode::Default, Mode::Bypass, Mode::Autonomous] {
        w.decide(Decide::Mode(mode));
        w.typed("call files__read {\"path\": \"../var/lib/voxgate/keys\"}");
        assert_eq!(w.last_result()["error_code"], "guarded", "{mode:?}");
    }
    w.typed("call files__read {\"path\": \"readme\"}");
    assert_eq!(w.last_result()["success"], true);
}
