//! Rows that need tools, rules or failures of their own, and numbered behaviours of the source systems on whole conversations.

use super::super::super::facts::facts_of;
use super::super::super::guard::Guard;
use super::super::super::tool::Tier;
use super::*;

const ALL: [Effect; 7] = [Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown];

fn tool(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec { name: name.into(), description: String::new(), parameters: json!({}), effect, tier: None, irreversible: false, needs_person: false, ask: None, step: None, display: name.into() }
}

impl World {
    fn of(config: EngineConfig, tools: Vec<ToolSpec>) -> World {
        let mut w = World::with(config);
        w.engine.config.tools = tools.into();
        w
    }

    fn call(&mut self, tool: &str) -> Value {
        self.typed(&format!("call {tool} {{}}"));
        self.last_result()
    }

    /// A conversation whose agent is in the middle of a response.
    fn answering() -> (World, TurnId) {
        let mut w = World::new();
        w.agent_ms = 600_000;
        w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "hello".into(), ticket: Ticket(1) });
        let turn = w.steps.last().map(|s| s.turn).unwrap_or_default();
        (w, turn)
    }

    fn did_run(&self, tool: &str) -> bool { self.ran.iter().any(|r| r.0 == tool) }
}

#[test]
fn ledger_l3_in_plan_mode_looking_and_the_conversations_own_state_pass_and_the_rest_is_refused() {
    let mut w = World::of(EngineConfig::default(), ALL.iter().map(|e| tool(&format!("of__{}", e.word()), *e)).collect());
    w.decide(Decide::Enter { reason: String::new() });
    for effect in ALL {
        let name = format!("of__{}", effect.word());
        let output = w.call(&name);
        let passes = matches!(effect, Effect::Read | Effect::View | Effect::Session);
        assert_eq!(w.did_run(&name), passes, "{effect:?}");
        assert_eq!(output["error_code"] == "plan_mode_blocked", !passes, "{effect:?}");
    }
}

#[test]
fn ledger_l70_plan_mode_subtracts_and_never_grants() {
    let rules = Rules::parse(&["ask tool:notes__list", "deny tool:clock__now"]).unwrap_or_else(|e| panic!("{e}"));
    let mut w = World::of(EngineConfig { rules: rules.into(), ..EngineConfig::default() }, vec![tool("notes__list", Effect::Read), tool("clock__now", Effect::Read)]);
    w.decide(Decide::Enter { reason: String::new() });
    w.call("notes__list");
    assert_eq!((w.did_run("notes__list"), w.state().approvals.len()), (false, 1), "a read may still be asked about");
    let request = w.request();
    w.decide(Decide::AnswerTool { request, approve: true });
    w.settle();
    assert!(w.did_run("notes__list"));
    assert_eq!(w.call("clock__now")["error_code"], "policy_denied", "and still be denied");
}

#[test]
fn ledger_f42_whatever_runs_has_passed_the_gate() {
    // Action::Run is the only way a call leaves the engine, and it carries a permit that only the gate makes.
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    for surface in ["typed", "spoken"] {
        if surface == "typed" { w.typed(ADD); } else { w.say(ADD) }
        assert_eq!((w.changed(), w.last_result()["error_code"].as_str()), (0, Some("plan_mode_blocked")), "{surface}");
    }
    w.input(Input::ClientText { item: "i".into(), text: ADD.into() });
    w.input(Input::CreateResponse);
    w.settle();
    assert_eq!((w.changed(), w.result_codes().iter().filter(|r| r.1 == "plan_mode_blocked").count()), (0, 3));
}

#[test]
fn ledger_d56_a_watcher_that_fails_stops_no_turn_and_a_gate_that_fails_stays_shut() {
    // The recogniser fails and the leg goes: the turn goes on. The log fails: nothing is loosened.
    let mut w = World::new();
    w.input(Input::Heard { utterance: super::super::super::id::UtteranceId(77), to_ms: 5, result: Err("no".into()) });
    w.input(Input::Synthesised { speech: super::super::super::id::SpeechId(1), segment: 0, result: Err("no sound".into()) });
    w.input(Input::LegGone);
    w.typed("What's in my notes?");
    assert!(w.did_run("notes__list"));
    let mut w = World::reviewing();
    w.log_fails = true;
    for decide in [Decide::Leave, Decide::Approve { version: Some(1), hash: None }] {
        w.decide(decide);
        w.settle();
        assert!(w.in_plan());
        assert_eq!(w.status(1), Some(PlanStatus::Waiting), "and the version waits as before");
        assert!(!w.state().items.iter().any(|i| matches!(i, Item::Gateway(GatewayNote::Approved { .. }))), "the agent is not told of an approval that was none");
    }
    w.typed(ADD);
    assert_eq!(w.changed(), 0);
}

#[test]
fn ledger_d47_words_behind_the_command_are_the_reason_and_the_next_turn_under_plan() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: ADD.into() });
    w.typed(ADD);
    assert_eq!((w.state().entered_reason.as_str(), w.changed(), w.last_result()["error_code"].as_str()), (ADD, 0, Some("plan_mode_blocked")));
    assert!(w.steps.iter().all(|s| s.plan_mode), "every response of it was composed under plan");
}

#[test]
fn ledger_d17_what_is_chosen_and_does_not_hold_yet_is_shown_as_pending_until_it_does() {
    let slow = || {
        let mut w = World::new();
        w.decide(Decide::Enter { reason: String::new() });
        w.agent_ms = 3_000;
        w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: ADD.into(), ticket: Ticket(1) });
        w
    };
    let mut w = slow();
    assert_eq!(w.state().still, None);
    w.decide(Decide::Leave);
    assert_eq!((w.state().in_plan(), w.state().still), (false, Some(Mode::Plan)), "a response that began in plan mode is under way, and plan holds for it");
    assert_eq!(w.state().modes(), (Mode::Plan, Some(Mode::Default)));
    w.silence(8_000);
    assert_eq!(w.state().modes(), (Mode::Default, None));
    let told: Vec<_> = w.events.iter().filter_map(|e| if let EventKind::Still(mode) = &e.kind { Some(*mode) } else { None }).collect();
    assert_eq!(told, [Some(Mode::Plan), None], "and said once more when it has ended");
    // Idle: it holds at once, and nothing is pending.
    w.settle();
    w.decide(Decide::Enter { reason: String::new() });
    w.decide(Decide::Leave);
    assert_eq!(w.state().still, None);
    // Tightening holds at once, whatever is under way.
    let mut w = World::new();
    w.agent_ms = 3_000;
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: ADD.into(), ticket: Ticket(1) });
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!(w.state().still, None);
    // Taken back before it held: cancelled, and nothing is pending any more.
    let mut w = slow();
    w.decide(Decide::Leave);
    w.decide(Decide::Enter { reason: String::new() });
    assert_eq!((w.state().in_plan(), w.state().still), (true, None));
    w.silence(8_000);
    assert_eq!(w.last_result()["error_code"], "plan_mode_blocked");
    // A restart has no response under way.
    let mut w = slow();
    w.decide(Decide::Leave);
    assert_eq!(w.restarted().snapshot().still, None);
}

// ---- numbered behaviours of the source systems

#[test]
fn behaviour_1_2_entering_twice_keeps_the_first_reason_and_time() {
    let mut w = World::new();
    w.decide(Decide::Enter { reason: "first".into() });
    let at = w.state().entered_ms;
    w.silence(1_000);
    w.decide(Decide::Enter { reason: "second".into() });
    assert_eq!((w.state().entered_ms, w.state().entered_reason.as_str()), (at, "first"));
}

#[test]
fn behaviour_9_10_a_plan_is_kept_apart_from_the_posture_and_after_the_exit() {
    let mut w = World::new();
    w.submit("Shop for a cake.", &["buy eggs"]);
    assert!(!w.in_plan() && w.state().newest().is_some_and(|p| p.version == 1));
    w.decide(Decide::Enter { reason: String::new() });
    w.submit("Shop for a tart.", &["buy plums"]);
    w.decide(Decide::Leave);
    assert_eq!(w.state().newest().map(|p| (p.version, p.status)), Some((2, PlanStatus::SetAside)));
}

#[test]
fn behaviour_19_20_22_23_no_doubt_counts_as_safe() {
    let safe_tier = ToolSpec { tier: Some(Tier::Safe), ..tool("read__only", Effect::Unknown) };
    let asks = ToolSpec { tier: Some(Tier::Safe), needs_person: true, ..tool("get__it", Effect::Read) };
    let mut w = World::of(EngineConfig::default(), vec![safe_tier, asks, tool("list__read_get_search", Effect::Unknown)]);
    w.decide(Decide::Enter { reason: String::new() });
    for name in ["read__only", "get__it", "list__read_get_search", "nobody__knows", "mcp_files_read", "daemon_read"] {
        assert_eq!(w.call(name)["error_code"], "plan_mode_blocked", "{name}");
    }
    assert!(w.ran.is_empty());
}

#[test]
fn behaviour_43_45_60_outside_plan_mode_the_level_decides_and_plan_mode_comes_before_it() {
    let tools = || vec![tool("a__read", Effect::Read), tool("a__write", Effect::Files), ToolSpec { tier: Some(Tier::Deny), ..tool("a__deny", Effect::Read) }];
    for (level, runs) in [(Autonomy::Strict, false), (Autonomy::Hybrid, false), (Autonomy::Loose, true)] {
        let mut w = World::of(EngineConfig { autonomy: level, ..EngineConfig::default() }, tools());
        assert_eq!(w.call("a__deny")["error_code"], "policy_denied", "{level:?}");
        w.call("a__read");
        w.call("a__write");
        assert_eq!((w.did_run("a__read"), w.did_run("a__write"), w.state().approvals.len()), (true, runs, usize::from(!runs)), "{level:?}");
        let mut w = World::of(EngineConfig { autonomy: level, ..EngineConfig::default() }, tools());
        w.decide(Decide::Enter { reason: String::new() });
        assert_eq!(w.call("a__write")["error_code"], "plan_mode_blocked", "{level:?}");
    }
}

#[test]
fn behaviour_49_what_was_asked_about_before_plan_mode_is_judged_again_before_it_could_run() {
    let mut w = World::asked();
    let request = w.request();
    w.silence(20_000);
    w.decide(Decide::Enter { reason: String::new() });
    w.decide(Decide::AnswerTool { request, approve: true });
    w.settle();
    assert_eq!((w.changed(), w.state().approvals.len()), (0, 0));
    // A yes and plan mode in one moment: the permit is judged again where it begins.
    let mut w = World::asked();
    w.say_now("Yes, go ahead.");
    w.decide(Decide::Enter { reason: String::new() });
    w.settle();
    assert!(w.in_plan() && w.changed() <= 1);
}

#[test]
fn behaviour_52_a_session_that_the_model_names_is_not_looked_at() {
    let mut w = World::new();
    w.typed("call plan__submit {\"summary\": \"shop\", \"steps\": [\"buy eggs\"], \"session_id\": \"another\"}");
    assert_eq!(w.state().plan_count, 1, "it is filed where it was said");
}

#[test]
fn behaviour_67_a_call_id_that_comes_again_repeats_nothing() {
    let (mut w, turn) = World::answering();
    for _ in 0..3 {
        w.input(Input::AgentCall { turn, id: CallId("same".into()), tool: "notes__list".into(), arguments: Ok(json!({})) });
    }
    assert_eq!((w.ran.len(), w.state().trace.iter().filter(|t| t.call.0 == "same").count()), (1, 1));
}

#[test]
fn behaviour_68_a_full_lane_refuses_at_once_and_what_comes_in_is_still_heard() {
    let (mut w, turn) = World::answering();
    for n in 0..40 {
        w.input(Input::AgentCall { turn, id: CallId(format!("c{n}")), tool: "notes__add".into(), arguments: Ok(json!({"text": n})) });
    }
    let full = w.result_codes().iter().filter(|r| r.1 == "queue_full").count();
    assert_eq!((w.changed(), full), (0, 40 - 1 - 32), "one is asked about, 32 wait");
    w.say("Enter plan mode.");
    assert!(w.in_plan());
}

#[test]
fn behaviour_66_71_82_84_what_comes_after_the_end_of_a_turn_is_nothing() {
    let (mut w, turn) = World::answering();
    w.decide(Decide::StopTurn);
    let said = w.spoken();
    w.input(Input::AgentText { turn, text: "Too late.".into() });
    w.input(Input::AgentCall { turn, id: CallId("late".into()), tool: "notes__list".into(), arguments: Ok(json!({})) });
    w.input(Input::ToolDone { call: CallId("late".into()), outcome: ToolOutcome::ok(json!({})) });
    w.settle();
    assert_eq!((w.ran.len(), w.spoken().replace(&said, "").contains("Too late")), (0, false));
    // A barge-in stops speech alone: the call that runs goes on and is answered once.
    let mut w = World::asked();
    w.tool_ms = 4_000;
    w.say_now("Yes, go ahead.");
    w.say_now("Stop.");
    w.silence(6_000);
    assert_eq!((w.changed(), w.result_codes().iter().filter(|r| r.0 == "notes__add").count()), (1, 1));
}

#[test]
fn behaviour_69_70_a_tool_that_fails_keeps_the_lane_until_it_has_ended_and_the_next_one_runs() {
    let (mut w, turn) = World::answering();
    w.tool_ms = 3_000;
    for id in ["a", "b"] {
        w.input(Input::AgentCall { turn, id: CallId(id.into()), tool: "notes__list".into(), arguments: Ok(json!({})) });
    }
    w.silence(2_000);
    assert!(w.ran.is_empty(), "nothing runs beside it");
    w.input(Input::ToolDone { call: CallId("a".into()), outcome: ToolOutcome::failed("tool_failed", "It broke.") });
    w.silence(4_000);
    assert_eq!(w.result_codes().iter().map(|r| r.1.as_str()).collect::<Vec<_>>(), ["tool_failed", ""]);
}

#[test]
fn behaviour_d_6_a_write_that_fails_leaves_the_old_state_and_the_next_try_goes_through() {
    let mut w = World::reviewing();
    w.log_fails = true;
    w.decide(Decide::Leave);
    assert!(w.in_plan());
    w.log_fails = false;
    assert_eq!(w.decide(Decide::Leave), (true, "ok"));
    assert!(!w.in_plan());
}

#[test]
fn behaviour_d_14_consent_is_one_answer_to_one_question() {
    for near in ["Confirm plan one and hurry.", "Confirm.", "Confirm plan one or two.", "I would confirm plan one.", "Don't confirm plan one."] {
        let mut w = World::reviewing();
        w.say("Approve plan one.");
        w.say_now(near);
        w.settle();
        assert!(w.in_plan(), "{near}");
    }
}

#[test]
fn behaviour_d_22_the_state_is_a_replay_of_what_is_in_the_log() {
    let mut w = World::reviewing();
    w.approve(1);
    w.decide(Decide::Enter { reason: "again".into() });
    let mut replay = Snapshot::default();
    w.events.iter().for_each(|e| replay.apply(e));
    assert_eq!(&replay, w.state());
    // The log of a conversation that ended in the middle of a loosening: the event is what counts.
    let upto = w.events.iter().position(|e| matches!(&e.kind, EventKind::Mode(m) if m.posture == Posture::Default)).unwrap_or(0);
    let mut cut = Snapshot::default();
    w.events[..upto].iter().for_each(|e| cut.apply(e));
    assert!(cut.in_plan(), "a prefix has the state of its end");
}

#[test]
fn behaviour_d_26_a_person_who_is_not_there_is_no_yes() {
    let mut w = World::asked();
    w.input(Input::LegGone);
    w.silence(30_000);
    w.now += 700_000;
    w.input(Input::Tick);
    w.settle();
    assert_eq!((w.changed(), w.last_result()["error_code"].as_str()), (0, Some("expired")));
    let mut w = World::new();
    w.decide(Decide::Mode(Mode::Autonomous));
    assert_eq!(w.call("notes__shred")["error_code"], "nobody_to_ask", "asking nobody is a refusal and no permission");
}

#[test]
fn the_facts_of_a_call_are_what_the_gate_and_the_draft_show() {
    let guarded = ToolSpec { parameters: json!({"properties": {"path": {"format": "path"}}}), ..tool("files__read", Effect::Read) };
    let mut w = World::of(EngineConfig { guard: Guard::over(&["/var/lib/voxgate"], "/").into(), ..EngineConfig::default() }, vec![guarded.clone()]);
    w.typed("call files__read {\"path\": \"/var/lib/voxgate/keys\"}");
    assert_eq!(w.last_result()["effect"], facts_of(&guarded, &json!({})).effect.word());
}

#[test]
fn behaviour_51_an_empty_summary_and_empty_steps_are_refused_with_the_field() {
    let mut w = World::new();
    for (arguments, field) in [
        (json!({}), "summary"), (json!({"summary": " ", "steps": ["a"]}), "summary"), (json!({"summary": "s"}), "steps"), (json!({"summary": "s", "steps": []}), "steps"),
        (json!({"summary": "s", "steps": ["", {"title": " "}, {}]}), "steps"), (json!({"summary": "s", "steps": "a"}), "steps"),
    ] {
        w.typed(&format!("call plan__submit {arguments}"));
        let output = w.last_result();
        assert_eq!((output["error_code"].as_str(), output["field"].as_str(), output["status_code"].as_u64()), (Some("missing_required_field"), Some(field), Some(400)), "{arguments}");
    }
    assert!(w.state().plans.is_empty());
    w.typed(&format!("call plan__submit {}", json!({"summary": "s", "steps": ["", {"detail": "x".repeat(150)}]})));
    let steps: Vec<usize> = w.state().plans[0].steps.iter().map(|s| s.title.len()).collect();
    assert_eq!(steps, [120], "an empty step is none, one without a title takes the beginning of its detail");
}

#[test]
fn behaviour_80_a_second_flush_with_nothing_new_runs_nothing_again() {
    let mut w = World::new();
    w.script = std::collections::VecDeque::from([super::super::super::heard::Heard::text_only("What's in my notes?")]);
    (0..40).for_each(|_| w.frame(true));
    w.input(Input::Commit { item: "a".into() });
    w.settle();
    assert_eq!(w.ran.len(), 1);
    w.script.clear();
    for item in ["b", "c"] {
        w.input(Input::Commit { item: item.into() });
        w.settle();
    }
    assert_eq!(w.ran.len(), 1);
}

#[test]
fn ledger_l44_a_new_version_is_told_with_the_steps_that_changed() {
    let mut w = World::reviewing();
    w.submit("Shop for a cake.", &["buy eggs", "buy oat milk"]);
    assert!(w.spoken().contains("Compared with plan one, step two changed."), "{}", w.spoken());
    w.submit("Shop for a cake.", &["buy flour", "buy oat milk", "go home"]);
    assert!(w.spoken().contains("Compared with plan two, steps one and three changed."), "{}", w.spoken());
    w.submit("Shop for a tart.", &["buy flour", "buy oat milk"]);
    assert!(w.spoken().contains("Compared with plan three, one step is gone."), "{}", w.spoken());
}

#[test]
fn a_reminder_comes_at_half_of_what_is_left_and_says_how_long_it_still_waits() {
    let mut w = World::asked();
    let created = w.now;
    w.silence(20_000);
    assert_eq!(w.engine.question().map(|q| q.state), Some(QuestionState::ScreenOnly));
    let parked = w.now;
    let (mut reminded, mut said, mut expired) = (0, String::new(), 0);
    while expired == 0 && w.now < created + 700_000 {
        w.now += 1_000;
        w.input(Input::Tick);
        let told = w.events.iter().filter_map(|e| if let EventKind::Notice { code, message } = &e.kind { (code == "approval_waits").then(|| message.clone()) } else { None }).next_back();
        if let (Some(message), 0) = (told, reminded) { (reminded, said) = (w.now, message) }
        if w.state().approvals.is_empty() { expired = w.now }
    }
    assert!(expired.abs_diff(created + 600_000) < 20_000, "ten minutes: {}", expired - created);
    // It stepped aside some seconds before the loop began to look.
    assert!(reminded.abs_diff(parked + (expired - parked) / 2) < 10_000, "parked {parked}, reminded {reminded}, expired {expired}");
    assert!(said.contains(&format!("It expires in {} minutes.", (expired - reminded).div_ceil(60_000))), "{said}");
    assert_eq!(w.notices().iter().filter(|n| **n == "approval_waits").count(), 1);
}

#[test]
fn sixteen_requests_may_wait_and_the_oldest_makes_room() {
    let mut w = World::new();
    let waiting = |w: &World| w.state().approvals.iter().map(|a| a.arguments["n"].as_u64().unwrap_or(99)).collect::<Vec<_>>();
    for n in 0..16 { w.typed(&format!("call notes__shred {{\"n\": {n}}}")); }
    assert_eq!(waiting(&w), (0..16).collect::<Vec<_>>());
    w.typed("call notes__shred {\"n\": 16}");
    assert_eq!(waiting(&w), (1..17).collect::<Vec<_>>());
    assert!(w.engine.question().is_some_and(|q| q.screen_only && q.text.contains("needs an answer on the screen")), "{:?}", w.engine.question());
}

#[test]
fn without_a_voice_that_may_decide_questions_about_plan_mode_wait_for_a_screen() {
    for (voice_exit, hears, leaving_heard) in [(true, true, true), (false, true, false), (true, false, false)] {
        let mut w = World::with(EngineConfig { voice_exit, ..EngineConfig::default() });
        w.input(Input::LegAttached(LegFacts { hears, speaks: true, holds: true, remote: false }));
        w.decide(Decide::Enter { reason: String::new() });
        w.settle();
        w.say("Exit plan mode.");
        assert_eq!(w.engine.asked_is_heard(), leaving_heard, "voice_exit {voice_exit}, hears {hears}: {:?}", w.engine.question());
    }
    // A tool's question is spoken and answered whatever `voice_exit` says.
    let mut w = World::with(EngineConfig { voice_exit: false, ..EngineConfig::default() });
    w.say(ADD);
    assert!(w.engine.asked_is_heard());
}

/// Voice for so long, with these words in it.
fn voice(w: &mut World, ms: u64, words: &str) {
    w.script = std::collections::VecDeque::from([super::super::super::heard::Heard::text_only(words)]);
    (0..ms / 20).for_each(|_| w.frame(true));
}

/// How often the question about the notes was said, whole or in part.
fn asked_aloud(w: &World) -> usize { w.spoken().matches("Add buy eggs to your notes?").count() }

fn question_state(w: &World) -> Option<QuestionState> { w.engine.question().map(|q| q.state) }

/// A question was heard, and its window closes in so many milliseconds.
fn before_the_window_closes(ms: u64) -> World {
    let mut w = World::asked();
    let closes = w.engine.answer_window_closes().unwrap_or_default();
    while w.now < closes - ms { w.frame(false) }
    w
}

#[test]
fn the_window_closes_after_fifteen_seconds_to_the_millisecond() {
    let mut w = World::new();
    w.say_now(ADD);
    while !w.engine.asked_is_heard() { w.frame(false) }
    let heard = w.now;
    assert_eq!(w.engine.answer_window_closes(), Some(heard + 15_000));
    w.now = heard + 14_999;
    w.input(Input::Tick);
    assert_eq!(question_state(&w), Some(QuestionState::Heard));
    w.now = heard + 15_000;
    w.input(Input::Tick);
    assert_eq!((question_state(&w), w.engine.answer_window_closes()), (Some(QuestionState::ScreenOnly), None));
}

#[test]
fn who_begins_to_answer_within_the_window_is_heard_out() {
    // However long it takes.
    let mut w = before_the_window_closes(1_000);
    voice(&mut w, 3_000, "Yes, go ahead.");
    assert_eq!(question_state(&w), Some(QuestionState::Heard));
    w.silence(1_000);
    assert_eq!((w.changed(), w.spoken().contains("I heard no answer")), (1, false), "{}", w.spoken());
    // A commit by hand that is still being recognised, and words that wait for one.
    let by_hand = || {
        let mut w = before_the_window_closes(1_000);
        w.input(Input::LegTurns(super::super::super::input::Turns { automatic: false, silence_ms: None, threshold: None, create_response: true, interrupt: false }));
        voice(&mut w, 900, "Yes, go ahead.");
        w
    };
    for (recognise_ms, waits_ms) in [(3_000, 0), (0, 4_000)] {
        let mut w = by_hand();
        w.silence(waits_ms);
        w.recognise_ms = recognise_ms;
        w.input(Input::Commit { item: "a".into() });
        w.silence(4_000);
        assert_eq!((w.changed(), w.spoken().contains("I heard no answer")), (1, false), "{recognise_ms} {waits_ms}: {}", w.spoken());
    }
    // What nobody commits holds it for as long as a commit could bring it.
    let mut w = by_hand();
    let began = w.now - 900;
    while question_state(&w) == Some(QuestionState::Heard) && w.now < began + 60_000 { w.frame(false) }
    assert!((w.now - began).abs_diff(super::super::super::turn::LONGEST_MS) <= 40, "{}", w.now - began);
    // Words that were thrown away hold nothing, and neither do words that came too late.
    let mut w = by_hand();
    w.silence(1_000);
    w.input(Input::Clear);
    w.silence(20);
    assert_eq!(question_state(&w), Some(QuestionState::ScreenOnly));
    let mut w = before_the_window_closes(0);
    voice(&mut w, 600, "Yes, go ahead.");
    w.silence(1_000);
    assert_eq!((w.changed(), question_state(&w)), (0, Some(QuestionState::ScreenOnly)));
}

#[test]
fn while_something_is_being_said_the_window_stays_open() {
    let mut w = before_the_window_closes(600);
    w.engine.say_plain("By the way, this is said while an answer is waited for.");
    w.silence(1_000);
    assert!(w.speaking.is_some() && question_state(&w) == Some(QuestionState::Heard));
    while w.speaking.is_some() { w.frame(false) }
    assert_eq!(question_state(&w), Some(QuestionState::ScreenOnly));
}

#[test]
fn an_answer_that_did_not_count_is_asked_for_again_and_there_is_time_for_it() {
    // It could not be recognised, at the very end of the window.
    let failed = |ms| {
        let mut w = before_the_window_closes(ms);
        w.input(Input::Heard { utterance: super::super::super::id::UtteranceId(77), to_ms: 5, result: Err("no".into()) });
        while w.engine.mouth.is_busy() { w.frame(false) }
        assert!(w.spoken().ends_with("Please say it once more."), "{}", w.spoken());
        w
    };
    let mut w = failed(200);
    w.silence(8_000);
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.changed(), 1);
    // It came on the heels of that.
    let mut w = failed(10_000);
    w.silence(100);
    voice(&mut w, 600, "Yes, go ahead.");
    w.silence(1_000);
    assert!(w.changed() == 0 && w.speaking.is_some(), "{}", w.spoken());
    w.settle();
    assert!(w.spoken().ends_with("That came too soon for me. Please say that once more."), "{}", w.spoken());
    w.silence(8_000);
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.changed(), 1);
    // Leaving plan mode while something is being said and nothing is asked.
    let mut w = World::reviewing();
    w.engine.say_plain("This is being said for quite a while, and somebody speaks over it all the same.");
    w.silence(600);
    w.engine.ears_mut_interrupt(false);
    w.say_now("Exit plan mode.");
    w.settle();
    assert!(w.in_plan() && w.spoken().ends_with("I was still speaking. Please say that once more."), "{}", w.spoken());
}

#[test]
fn a_question_is_said_again_only_when_it_was_cut_off_and_four_times_at_most() {
    // A cough over it, and one after it: it is said once.
    let mut w = World::new();
    w.say_now(ADD);
    w.silence(400);
    voice(&mut w, 300, "");
    w.settle();
    assert_eq!((asked_aloud(&w), question_state(&w)), (1, Some(QuestionState::Heard)));
    voice(&mut w, 300, "");
    w.settle();
    assert_eq!((asked_aloud(&w), w.engine.asked.repeats), (1, 0));
    // What is being said is not taken back from the mouth, so it is not asked for a second time.
    let mut w = World::new();
    w.say_now(ADD);
    let id = w.engine.question().map(|q| q.id.clone()).unwrap_or_default();
    w.engine.drop_question_speech(&id);
    assert!(w.engine.mouth.has_question(&id));
    w.engine.reask();
    assert_eq!(w.engine.asked.repeats, 0);
    // Cut off each time.
    let mut w = World::new();
    w.say_now(ADD);
    for n in 1..=4 {
        w.silence(400);
        assert!(w.speaking.is_some() && question_state(&w) == Some(QuestionState::Asked), "{n}");
        w.say_now("Wait.");
        assert_eq!(asked_aloud(&w), n);
    }
    w.settle();
    assert_eq!((asked_aloud(&w), question_state(&w)), (4, Some(QuestionState::ScreenOnly)));
    assert!(w.spoken().ends_with("I heard no answer, so I have not done it. You can still answer on the screen."), "{}", w.spoken());
    assert_eq!((w.changed(), w.engine.lane.sizes()), (0, (0, 1)));
    let request = w.request();
    w.decide(Decide::AnswerTool { request, approve: true });
    assert_eq!(w.changed(), 1);
}

#[test]
fn a_yes_to_a_question_that_was_stopped_does_not_count_until_it_was_heard() {
    // Stopped while it was being said; and before it was.
    let begun = || { let mut w = World::new(); w.say_now(ADD); w.silence(400); w };
    let waiting = || {
        let mut w = World::new();
        w.settle();
        w.say_now("What can I say?");
        w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: ADD.into(), ticket: Ticket(7) });
        w.silence(400);
        w
    };
    for (mut w, before) in [(begun(), 1), (waiting(), 0)] {
        w.say_now("Stop.");
        w.silence(1_000);
        voice(&mut w, 300, "");
        w.silence(1_000);
        assert_eq!((w.speaking.is_some(), question_state(&w), asked_aloud(&w)), (false, Some(QuestionState::Asked), before), "a cough does not bring it back");
        w.say_now("Go ahead.");
        assert!(w.changed() == 0 && w.speaking.is_some(), "{}", w.spoken());
        w.settle();
        assert_eq!((asked_aloud(&w), question_state(&w)), (before + 1, Some(QuestionState::Heard)));
        w.say_now("Yes, go ahead.");
        w.settle();
        assert_eq!(w.changed(), 1);
    }
    // A no counts, and silence ends it as it ends one that was heard.
    let mut w = begun();
    w.say_now("Stop.");
    w.say_now("No.");
    assert_eq!(w.last_result()["error_code"], "denied_by_user");
    let mut w = begun();
    w.say_now("Stop.");
    w.silence(13_000);
    assert_eq!(question_state(&w), Some(QuestionState::Asked));
    w.silence(3_000);
    assert_eq!(question_state(&w), Some(QuestionState::ScreenOnly));
}

#[test]
fn only_the_question_that_was_said_is_heard() {
    // The first is answered on a screen while it is being said; the second waits for its turn.
    let (mut w, turn) = World::answering();
    for id in ["a", "b"] {
        w.input(Input::AgentCall { turn, id: CallId(id.into()), tool: "notes__add".into(), arguments: Ok(json!({"text": id})) });
    }
    w.silence(400);
    let request = w.request();
    w.decide(Decide::AnswerTool { request, approve: false });
    let second = w.request();
    assert!(w.speaking.is_some() && w.engine.question().is_some_and(|q| q.id == second));
    while !w.spoken().contains("Add a to your notes?") { w.frame(false) }
    assert_eq!(question_state(&w), Some(QuestionState::Asked), "its own words are still to be said");
    w.settle();
    assert_eq!(question_state(&w), Some(QuestionState::Heard));
    // One that has stepped aside while it was being said stays there.
    let mut w = World::new();
    w.say_now(ADD);
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "something else".into(), ticket: Ticket(1) });
    assert!(w.speaking.is_some() && question_state(&w) == Some(QuestionState::ScreenOnly));
    w.settle();
    assert_eq!(question_state(&w), Some(QuestionState::ScreenOnly));
}

#[test]
fn what_only_a_screen_answers_waits_there_once_it_was_said_or_cut_off() {
    let mut w = World::new();
    w.settle();
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "call notes__shred {}".into(), ticket: Ticket(7) });
    w.silence(600);
    assert!(w.speaking.is_some() && question_state(&w) == Some(QuestionState::Asked));
    w.say_now("What mode are you in?");
    assert_eq!((question_state(&w), w.engine.lane.sizes()), (Some(QuestionState::ScreenOnly), (0, 1)));
    w.say(ADD);
    assert!(w.engine.asked_is_heard(), "what comes after it goes on: {:?}", w.engine.question());
    // Nobody listens: it is shown, and waits.
    let mut w = World::new();
    w.input(Input::LegGone);
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "call notes__shred {}".into(), ticket: Ticket(7) });
    assert_eq!(w.engine.lane.sizes(), (0, 1));
}

#[test]
fn what_nobody_answers_in_time_ends_and_says_what_that_means() {
    // A question about leaving that nobody hears.
    let mut w = World::new();
    w.decide(Decide::Enter { reason: String::new() });
    w.settle();
    w.input(Input::LegAttached(LegFacts { hears: false, speaks: true, holds: true, remote: false }));
    w.settle();
    w.say("Exit plan mode.");
    assert_eq!(question_state(&w), Some(QuestionState::Asked));
    let lines = w.spoken().len();
    w.now += 120_000;
    w.input(Input::Tick);
    w.settle();
    assert_eq!(question_state(&w), None);
    assert!(w.spoken()[lines..].ends_with("I heard no answer. Plan mode stays on."), "{}", w.spoken());
    // A call's question that nobody hears says nothing about plan mode, and no reminder comes with its end.
    for parked in [false, true] {
        let mut w = World::new();
        w.input(Input::LegGone);
        w.typed(ADD);
        if parked { w.typed("hello"); }
        w.now = w.engine.asked.expires_at.or_else(|| w.engine.lane.parked.first().map(|p| p.expires_at)).unwrap_or_default();
        w.input(Input::Tick);
        w.settle();
        assert_eq!((w.last_result()["error_code"].as_str(), w.state().approvals.len()), (Some("expired"), 0), "{parked}");
        assert!(!w.spoken().contains("I heard no answer") && !w.notices().contains(&"approval_waits"), "{parked}: {} {:?}", w.spoken(), w.notices());
    }
}

#[test]
fn a_plan_without_its_number_is_approved_only_where_no_other_could_be_meant() {
    let mut w = World::reviewing();
    w.submit("Shop for a tart.", &["buy plums"]);
    assert_eq!((w.status(1), w.status(2)), (Some(PlanStatus::Superseded), Some(PlanStatus::Waiting)));
    assert_eq!(w.decide(Decide::Approve { version: None, hash: None }), (false, "which_version"), "two were presented since the last decision");
    assert_eq!(w.decide(Decide::Approve { version: Some(2), hash: None }), (true, "ok"));
    w.settle();
    // What was presented before the last approval is no other any more, and neither is what a person set aside.
    for aside in [false, true] {
        w.decide(Decide::Enter { reason: String::new() });
        w.submit(if aside { "Shop for a pie." } else { "Shop for bread." }, &["buy rye"]);
        if aside {
            w.decide(Decide::Dismiss { version: None });
            w.submit("Shop for buns.", &["buy wheat"]);
        }
        assert_eq!(w.decide(Decide::Approve { version: None, hash: None }), (true, "ok"), "{aside}");
        w.settle();
    }
    // One that was sent back for changes is one that could be meant.
    w.decide(Decide::Enter { reason: String::new() });
    w.submit("Shop for tea.", &["buy tea"]);
    w.decide(Decide::RequestChanges { version: None, comments: "green tea".into() });
    w.settle();
    w.submit("Shop for green tea.", &["buy green tea"]);
    assert_eq!(w.decide(Decide::Approve { version: None, hash: None }), (false, "which_version"));
}

#[test]
fn a_plan_presented_outside_plan_mode_is_carried_out_in_the_mode_it_was_approved_in() {
    let mut w = World::new();
    w.submit("Shop for a cake.", &["buy eggs"]);
    let before = w.modes().len();
    assert_eq!(w.decide(Decide::ApproveIn { version: Some(1), hash: None, mode: Mode::Bypass }), (true, "ok"));
    w.settle();
    assert_eq!((w.modes().len(), w.state().modes()), (before + 1, (Mode::Bypass, None)));
    w.submit("Shop for a tart.", &["buy plums"]);
    assert_eq!(w.decide(Decide::ApproveIn { version: Some(2), hash: None, mode: Mode::Bypass }), (true, "ok"));
    w.settle();
    assert_eq!((w.modes().len(), w.state().modes()), (before + 1, (Mode::Bypass, None)), "what is so already is not decided again");
}
