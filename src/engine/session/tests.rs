//! The engine in virtual time: one small world that plays driver, microphone, agent and tools, and the conversations it holds.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::authority::{Decide, OperatorDoor, Surface};
use super::super::conversation::{GatewayNote, Item, StepRequest};
use super::super::event::{Event, EventKind, QuestionState, Role};
use super::super::heard::Heard;
use super::super::id::{CallId, Ms, SpeechId};
use super::super::input::{Action, Input, LegFacts, LegNote, Output, Ticket, Turns};
use super::super::plan::PlanStatus;
use super::super::tool::{Effect, SessionDeed, ToolCall, ToolOutcome, ToolSpec};
use super::super::turn::Frame;
use super::{Engine, EngineConfig};

fn spec(name: &str, effect: Effect, ask: Option<&str>) -> ToolSpec {
    ToolSpec {
        name: name.into(), description: String::new(), parameters: json!({}), effect, tier: None, irreversible: false, needs_person: false,
        ask: ask.map(str::to_string), step: None, display: name.into(),
    }
}

/// An agent that knows three sentences, as commander would.
fn agent(request: &StepRequest) -> Vec<(Option<&'static str>, Option<(String, Value)>)> {
    let last = request.items.last();
    // A wish of the table of verdicts is granted whatever came behind it: the end of another call, a note about the mode.
    let probe = request.items.iter().rev().take_while(|i| !matches!(i, Item::Call { tool, .. } if tool.starts_with("probe__"))).find(|i| matches!(i, Item::User { text, .. } if text.starts_with("call probe__")));
    match probe.or(last) {
        Some(Item::User { text, .. }) => {
            let text = text.to_lowercase();
            if let Some(rest) = text.strip_prefix("add ") {
                let what = rest.split(" to my notes").next().unwrap_or(rest);
                return vec![(None, Some(("notes__add".into(), json!({"text": what}))))];
            }
            if text.contains("in my notes") { return vec![(None, Some(("notes__list".into(), json!({}))))] }
            if let Some(call) = text.strip_prefix("call ") {
                let (tool, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
                return vec![(None, Some((tool.to_string(), serde_json::from_str(arguments).unwrap_or(Value::Null))))];
            }
            if text.contains("present the plan") {
                let steps: Vec<Value> = request.draft.iter().map(|s| json!(s.title)).collect();
                return vec![(None, Some(("plan__submit".into(), json!({"summary": "Add things to the notes. That is all.", "steps": steps}))))];
            }
            vec![(Some("I do not know that."), None)]
        }
        Some(Item::Gateway(GatewayNote::Approved { steps, .. })) => steps.iter().filter_map(|s| s.kept.as_ref()).map(|k| (None, Some((k.tool.clone(), k.arguments.clone())))).collect(),
        Some(Item::Result { output, .. }) if output["success"] == json!(false) => vec![],
        Some(Item::Result { .. }) => vec![(Some("Done."), None)],
        _ => vec![(Some("Nothing to do."), None)],
    }
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Ms,
    pub(super) events: Vec<Event>,
    pub(super) ran: Vec<(String, Value)>,
    pub(super) script: VecDeque<Heard>,
    pub(super) speaking: Option<Playing>,
    running: Vec<(super::super::gate::Running, ToolCall, Ms)>,
    calls: u64,
    /// How long a tool takes.
    pub(super) tool_ms: u64,
    pub(super) replies: Vec<(Ticket, super::super::input::Reply)>,
    /// What the leg was told: `turn`, `speech`, `ended`, `started`, `stopped`.
    pub(super) told: Vec<String>,
    /// Items of the speeches that began.
    begun: Vec<super::super::id::ItemId>,
    /// How long a recognition and an agent's answer take.
    pub(super) recognise_ms: u64,
    pub(super) agent_ms: u64,
    /// What a judge of turns says, if there is one.
    pub(super) complete: Option<f32>,
    later: Vec<(Ms, Input)>,
    /// Sound that was to be recognised.
    pub(super) looks: Vec<(u64, u64)>,
    pub(super) forgotten: usize,
    pub(super) counts: Vec<super::super::input::Count>,
    /// What the agent was given, response by response.
    pub(super) steps: Vec<StepRequest>,
    /// Whether the agent fails.
    pub(super) agent_fails: bool,
    pub(super) log_fails: bool,
    pub(super) earcons: Vec<crate::media::earcon::Earcon>,
    /// When playback fell silent or came back, and whether it sounds.
    pub(super) sounded: Vec<(Ms, bool)>,
}

/// A speech that is played, on a device that can hold its breath.
pub(super) struct Playing {
    speech: SpeechId,
    pub(super) heard: u64,
    length: u64,
    ended: bool,
    pub(super) held: bool,
}

impl World {
    pub(super) fn new() -> Self { Self::with(EngineConfig::default()) }

    pub(super) fn with(config: EngineConfig) -> Self {
        let tools = [
            spec("notes__list", Effect::Read, None), spec("notes__add", Effect::Files, Some("Add {text} to your notes?")), spec("plan__submit", Effect::Session, None),
            spec("todo__write", Effect::Session, None), spec("plan__complete", Effect::Session, None), ToolSpec { irreversible: true, ..spec("notes__shred", Effect::Files, Some("Shred the notes?")) },
        ];
        let mut world = Self {
            engine: Engine::new(EngineConfig { tools: tools.into(), ..config }, 1_000_000), now: 0, events: vec![], ran: vec![], script: VecDeque::new(), speaking: None,
            running: vec![], calls: 0, tool_ms: 0, replies: vec![], told: vec![], begun: vec![], recognise_ms: 0, agent_ms: 0, complete: None, later: vec![], looks: vec![], forgotten: 0,
            counts: vec![], steps: vec![], agent_fails: false, log_fails: false, earcons: vec![], sounded: vec![],
        };
        world.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
        world
    }

    pub(super) fn input(&mut self, input: Input) {
        let mut todo = VecDeque::from([input]);
        while let Some(input) = todo.pop_front() {
            self.engine.handle_input(self.now, input);
            loop {
                match self.engine.poll_output() {
                    Output::Event(event) => self.events.push(event),
                    Output::Action(action) => todo.extend(self.act(action)),
                    Output::Wait(_) => break,
                }
            }
        }
    }

    fn act(&mut self, action: Action) -> Vec<Input> {
        match action {
            Action::Recognise { utterance, from_ms, to_ms } => {
                self.looks.push((from_ms, to_ms));
                let heard = self.script.front().cloned().unwrap_or_default();
                self.after(self.recognise_ms, vec![Input::Heard { utterance, to_ms, result: Ok(heard) }])
            }
            Action::Forget { utterance, to_ms } => {
                let before = self.later.len();
                self.later.retain(|(_, i)| !matches!(i, Input::Heard { utterance: u, to_ms: t, .. } if (*u, *t) == (utterance, to_ms)));
                self.forgotten += before - self.later.len();
                vec![]
            }
            Action::JudgeTurn { utterance, to_ms, .. } => self.complete.map(|complete| Input::TurnJudged { utterance, to_ms, complete }).into_iter().collect(),
            Action::CancelStep(turn) => {
                self.later.retain(|(_, i)| !matches!(i, Input::AgentText { turn: t, .. } | Input::AgentCall { turn: t, .. } | Input::AgentDone { turn: t, .. } if *t == turn));
                vec![]
            }
            Action::Count(count) => { self.counts.push(count); vec![] }
            Action::Duck(speech) => {
                self.hold(speech, true);
                self.speaking.as_ref().map(|p| Input::Ducked { speech, heard_ms: p.heard }).into_iter().collect()
            }
            Action::Resume(speech) => { self.hold(speech, false); vec![] }
            Action::Earcon(earcon) => { self.earcons.push(earcon); vec![] }
            Action::Step(request) if self.agent_fails => {
                self.steps.push((*request).clone());
                vec![Input::AgentDone { turn: request.turn, failed: Some("nobody answers".into()) }]
            }
            Action::Loosen(_) if self.log_fails => vec![Input::LogFailed],
            Action::Step(request) => {
                self.steps.push((*request).clone());
                let mut inputs = Vec::new();
                for (text, call) in agent(&request) {
                    if let Some(text) = text { inputs.push(Input::AgentText { turn: request.turn, text: text.into() }) }
                    if let Some((tool, arguments)) = call {
                        self.calls += 1;
                        inputs.push(Input::AgentCall { turn: request.turn, id: CallId(format!("call_{}", self.calls)), tool, arguments: Ok(arguments) });
                    }
                }
                inputs.push(Input::AgentDone { turn: request.turn, failed: None });
                self.after(self.agent_ms, inputs)
            }
            Action::Run(permit, call) => self.run(permit, call),
            Action::Loosen(to) => {
                self.engine.gate().flip(to);
                vec![Input::Loosened]
            }
            Action::BeginSpeech { speech, item, .. } => {
                self.told.push("speech".into());
                self.begun.push(item);
                self.speaking = Some(Playing { speech, heard: 0, length: 0, ended: false, held: false });
                self.sounded.push((self.now, true));
                vec![]
            }
            Action::Leg(LegNote::SpeechStarted(..)) => { self.told.push("started".into()); vec![] }
            Action::Leg(LegNote::SpeechStopped(..)) => { self.told.push("stopped".into()); vec![] }
            Action::Leg(LegNote::TurnBegan(_)) => { self.told.push("turn".into()); vec![] }
            Action::Leg(LegNote::TurnEnded(..)) => { self.told.push("ended".into()); vec![] }
            Action::Say { speech, segment, text } => {
                let ms = text.len() as u64 * 60;
                if let Some(s) = &mut self.speaking { s.length += ms }
                vec![Input::Synthesised { speech, segment, result: Ok(ms) }]
            }
            Action::EndSpeech(_) => { if let Some(s) = &mut self.speaking { s.ended = true } vec![] }
            Action::CutSpeech(speech, _) => {
                let heard_ms = self.speaking.take().map_or(0, |s| s.heard);
                self.sounded.push((self.now, false));
                vec![Input::WasCut { speech, heard_ms }]
            }
            Action::Reply(ticket, reply) => { self.replies.push((ticket, reply)); vec![] }
            _ => vec![],
        }
    }

    fn run(&mut self, permit: super::super::gate::Permit, call: ToolCall) -> Vec<Input> {
        match self.engine.gate().begin(permit, &call) {
            Err(refusal) => vec![Input::ToolDone { call: call.id, outcome: ToolOutcome::failed(refusal.code, refusal.message) }],
            Ok(running) if self.tool_ms == 0 => { let done = self.done(&call); drop(running); vec![done] }
            Ok(running) => { let at = self.now + self.tool_ms; self.running.push((running, call, at)); vec![] }
        }
    }

    fn done(&mut self, call: &ToolCall) -> Input {
        self.ran.push((call.tool.clone(), call.arguments.clone()));
        let outcome = match call.tool.as_str() {
            "plan__submit" => ToolOutcome::deed(SessionDeed::SubmitPlan(call.arguments.clone())),
            "todo__write" => ToolOutcome::deed(SessionDeed::WriteTodo(call.arguments.clone())),
            "plan__complete" => ToolOutcome::deed(SessionDeed::CompletePlan(call.arguments.clone())),
            _ => ToolOutcome::ok(json!({"success": true})),
        };
        Input::ToolDone { call: call.id.clone(), outcome }
    }

    /// One 20 ms frame.
    pub(super) fn frame(&mut self, voice: bool) {
        self.now += 20;
        let due: Vec<usize> = (0..self.running.len()).filter(|i| self.running[*i].2 <= self.now).collect();
        for i in due.into_iter().rev() {
            let (running, call, _) = self.running.remove(i);
            let done = self.done(&call);
            drop(running);
            self.input(done);
        }
        let (ready, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= self.now);
        self.later = later;
        ready.into_iter().for_each(|(_, input)| self.input(input));
        if let Some(playing) = self.speaking.as_mut().filter(|p| !p.held) {
            playing.heard = (playing.heard + 20).min(playing.length);
            if playing.ended && playing.heard == playing.length {
                let speech = playing.speech;
                self.speaking = None;
                self.sounded.push((self.now, false));
                self.input(Input::Drained { speech });
            }
        }
        // A person's level moves.
        let level_dbfs = if voice { -18.0 - (self.now / 20 % 6) as f32 * 4.0 } else { -65.0 };
        self.input(Input::Frame(Frame { probability: if voice { 0.95 } else { 0.02 }, level_dbfs }));
    }

    fn after(&mut self, ms: u64, inputs: Vec<Input>) -> Vec<Input> {
        if ms == 0 { return inputs }
        self.later.extend(inputs.into_iter().map(|i| (self.now + ms, i)));
        vec![]
    }

    fn hold(&mut self, speech: SpeechId, held: bool) {
        if let Some(p) = self.speaking.as_mut().filter(|p| p.speech == speech) {
            p.held = held;
            self.sounded.push((self.now, !held));
        }
    }

    pub(super) fn silence(&mut self, ms: u64) { (0..ms / 20).for_each(|_| self.frame(false)) }

    /// Silence until nothing is said, asked or done any more, at most a minute.
    pub(super) fn settle(&mut self) {
        for _ in 0..3000 {
            if self.speaking.is_none() && !self.engine.mouth.is_busy() && (self.engine.asked_is_heard() || !self.engine.turns.is_busy()) { break }
            self.frame(false);
        }
        self.silence(1000);
    }

    /// A person says this now, a word every 300 ms.
    pub(super) fn say_now(&mut self, text: &str) {
        self.script = VecDeque::from([Heard::text_only(text)]);
        let frames = text.split_whitespace().count().max(2) as u64 * 15;
        (0..frames).for_each(|_| self.frame(true));
        self.silence(800);
    }

    /// A person says this when everything is quiet.
    pub(super) fn say(&mut self, text: &str) {
        self.settle();
        self.say_now(text);
        self.settle();
    }

    pub(super) fn spoken(&self) -> String {
        self.events.iter().filter_map(|e| if let EventKind::Speech { text, .. } = &e.kind { Some(text.as_str()) } else { None }).collect::<Vec<_>>().join(" | ")
    }

    pub(super) fn decide(&mut self, decide: Decide) -> (bool, &'static str) {
        let action = OperatorDoor::vouch(Surface::Screen).map(|d| d.decide(decide, ""));
        let Some(action) = action else { return (false, "no door") };
        let ticket = Ticket(self.replies.len() as u64 + 1);
        self.input(Input::Decide(action, ticket));
        self.replies.last().map_or((false, "none"), |(_, r)| (r.ok, r.code))
    }

    pub(super) fn result_codes(&self) -> Vec<(String, String)> {
        self.events.iter().filter_map(|e| if let EventKind::ToolResult { tool, error_code, .. } = &e.kind { Some((tool.clone(), error_code.clone())) } else { None }).collect()
    }
}

#[test]
fn the_seven_steps() {
    let mut w = World::new();
    w.say("What's in my notes?");
    assert_eq!(w.ran.len(), 1, "{}", w.spoken());
    w.say("Add buy milk to my notes.");
    assert_eq!(w.ran.len(), 1, "it asks first");
    assert!(w.engine.asked_is_heard());
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.ran[1], ("notes__add".into(), json!({"text": "buy milk"})));
    w.say("Enter plan mode.");
    assert!(w.engine.snapshot().in_plan());
    w.say("Add buy eggs to my notes.");
    assert_eq!(w.ran.len(), 2);
    assert_eq!(w.result_codes().last().map(|r| r.1.as_str()), Some("plan_mode_blocked"));
    assert_eq!(w.engine.snapshot().draft.len(), 1);
    w.say("Present the plan.");
    assert_eq!(w.engine.snapshot().waiting().map(|p| p.version), Some(1));
    assert!(w.spoken().contains("Plan one: Add things to the notes. Step one: Add buy eggs to your notes."), "{}", w.spoken());
    w.say("Approve plan one.");
    assert!(w.engine.snapshot().in_plan(), "the first step only asks");
    w.say("Confirm plan one.");
    assert!(!w.engine.snapshot().in_plan());
    assert_eq!(w.engine.snapshot().version(1).map(|p| p.status), Some(PlanStatus::Approved));
    assert_eq!(w.ran.iter().filter(|r| r.0 == "notes__add").count(), 1, "the kept call asks again");
    w.say("Yes, do it.");
    assert_eq!(w.ran.last(), Some(&("notes__add".into(), json!({"text": "buy eggs"}))), "{:?} {}", w.result_codes(), w.spoken());
    w.say("Enter plan mode.");
    w.say("Exit plan mode.");
    assert!(w.engine.snapshot().in_plan());
    w.say("Go ahead.");
    assert!(!w.engine.snapshot().in_plan());
    w.say("What mode are you in?");
    assert!(w.spoken().ends_with("Plan mode is off. I ask before I change something."), "{}", w.spoken());
    for (n, event) in w.events.iter().enumerate() { assert_eq!(event.seq, n as u64 + 1) }
}

#[test]
fn no_silence_and_a_bare_yeah_run_nothing() {
    for answer in ["No.", "Yeah.", "Okay.", "Sure.", ""] {
        let mut w = World::new();
        w.say("Add buy milk to my notes.");
        if answer.is_empty() { w.silence(17_000) } else { w.say_now(answer) }
        w.silence(1000);
        assert!(w.ran.is_empty(), "{answer}");
        if answer.is_empty() {
            assert_eq!(w.engine.question().map(|q| q.state), Some(QuestionState::ScreenOnly));
            let request = w.engine.snapshot().approvals[0].request.clone();
            assert_eq!(w.decide(Decide::AnswerTool { request: request.clone(), approve: true }), (true, "ok"));
            w.settle();
            assert_eq!(w.ran.len(), 1, "a screen can still answer");
            assert_eq!(w.decide(Decide::AnswerTool { request, approve: true }), (true, "already"));
        }
        if answer == "Yeah." { assert!(w.engine.mouth.is_busy() || w.spoken().contains("To be sure I heard you right")) }
        let agent_lines = w.events.iter().filter(|e| matches!(&e.kind, EventKind::Transcript { role: Role::User, for_agent: true, .. })).count();
        assert_eq!(agent_lines, 1, "words that answer a question never reach the agent");
    }
}

#[test]
fn an_answer_before_the_question_was_heard_is_asked_for_again() {
    let mut w = World::new();
    w.settle();
    w.say_now("Add buy milk to my notes.");
    w.silence(400);
    assert!(w.speaking.is_some());
    w.say_now("Yes, go ahead.");
    assert!(w.ran.is_empty());
    w.settle();
    assert!(w.engine.asked_is_heard(), "{:?}", w.engine.question());
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.ran.len(), 1);
}

#[test]
fn a_no_over_the_question_denies_although_the_question_would_have_ended_with_that_word() {
    let mut w = World::new();
    w.settle();
    w.say_now("Add buy milk to my notes.");
    assert!(w.speaking.is_some());
    w.say_now("No.");
    assert_eq!(w.result_codes(), vec![("notes__add".into(), "denied_by_user".into())], "{}", w.spoken());
}

#[test]
fn speech_that_goes_on_takes_consent_back() {
    let mut w = World::new();
    w.say("Add buy milk to my notes.");
    w.script = VecDeque::from([Heard::text_only("Yes, go ahead.")]);
    (0..40).for_each(|_| w.frame(true));
    w.silence(500);
    w.script = VecDeque::from([Heard::text_only("Yes, go ahead. No, wait.")]);
    (0..30).for_each(|_| w.frame(true));
    w.silence(1500);
    assert!(w.ran.is_empty());
    assert_eq!(w.result_codes().last().map(|r| r.1.as_str()), Some("denied_by_user"));
}

#[test]
fn speech_that_goes_on_takes_leaving_back() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    w.say("Exit plan mode.");
    w.say_now("Yes, go ahead.");
    assert!(!w.engine.snapshot().in_plan());
    w.say_now("After lunch.");
    assert!(w.engine.snapshot().in_plan() && w.engine.gate().stamp().posture == super::super::mode::Posture::Plan);
}

#[test]
fn entering_while_a_call_runs_drains_and_refuses_what_waits() {
    let mut w = World::new();
    w.tool_ms = 20_000;
    w.say("Add buy milk to my notes.");
    w.say_now("Yes, go ahead.");
    w.say_now("Enter plan mode.");
    assert!(w.engine.snapshot().in_plan());
    assert_eq!(w.engine.snapshot().draining, 1);
    w.silence(25_000);
    assert_eq!(w.engine.snapshot().draining, 0);
    assert_eq!(w.ran.len(), 1, "what ran was not killed");
}

#[test]
fn entering_while_a_question_is_open_refuses_the_call() {
    let mut w = World::new();
    w.say("Add buy milk to my notes.");
    w.say_now("Enter plan mode.");
    w.settle();
    assert_eq!(w.result_codes(), vec![("notes__add".into(), "plan_mode_blocked".into())]);
    assert!(w.engine.snapshot().question.is_none() && w.engine.snapshot().approvals.is_empty());
    assert_eq!(w.engine.snapshot().draft.len(), 1);
}

#[test]
fn the_plan_is_not_approved_by_other_words_or_numbers() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    w.say("Add buy eggs to my notes.");
    w.say("Present the plan.");
    for words in ["Approve plan two.", "Approve the plan.", "Yes, go ahead.", "Confirm plan one."] {
        w.say(words);
        assert!(w.engine.snapshot().in_plan() && w.engine.question().is_none(), "{words}");
    }
    w.say("Approve plan one.");
    for words in ["Yes, go ahead.", "Yes.", "Confirm plan two."] {
        w.say_now(words);
        w.settle();
        assert!(w.engine.snapshot().in_plan(), "{words}");
    }
    w.say("No.");
    assert!(w.engine.snapshot().in_plan() && w.engine.question().is_none());
    assert_eq!(w.decide(Decide::Approve { version: Some(1), hash: Some("another".into()) }), (false, "plan_changed"));
    assert_eq!(w.decide(Decide::Approve { version: None, hash: None }), (true, "ok"));
    assert!(!w.engine.snapshot().in_plan());
    assert_eq!(w.decide(Decide::Approve { version: Some(1), hash: None }), (true, "already"));
}

#[test]
fn stop_silences_over_playback_and_history_ends_at_what_was_heard() {
    let mut w = World::new();
    w.settle();
    w.say_now("Tell me a story.");
    w.settle();
    w.say("Enter plan mode.");
    w.input(Input::Tick);
    w.say_now("What mode are you in?");
    assert!(w.speaking.is_some());
    w.script = VecDeque::from([Heard::text_only("Stop.")]);
    (0..20).for_each(|_| w.frame(true));
    assert!(w.speaking.is_none(), "speech over playback stops it");
    w.silence(600);
    let cut = w.events.iter().rev().find_map(|e| if let EventKind::Speech { heard_ms, total_ms, .. } = &e.kind { Some((*heard_ms, *total_ms)) } else { None });
    assert!(cut.is_some_and(|(heard, total)| heard < total), "{cut:?}");
    assert!(!w.engine.mouth.is_busy());
}

#[test]
fn an_echo_of_our_own_words_decides_nothing() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    w.settle();
    w.say_now("What can I say?");
    assert!(w.speaking.is_some());
    w.engine.ears_mut_interrupt(false);
    w.say_now("Exit plan mode.");
    w.settle();
    assert!(w.engine.question().is_none() && w.engine.snapshot().in_plan());
}

/// While the help is being said ("You can say enter plan mode, or what mode are you in. Stop ends ..."), with speech that does
/// not stop the voice: whether the words become a turn or a decision.
fn over_the_help(after_ms: u64, words: &str) -> World {
    let mut w = World::new();
    w.say_now("What can I say?");
    assert!(w.speaking.is_some());
    w.engine.ears_mut_interrupt(false);
    w.silence(after_ms);
    w.say_now(words);
    w.settle();
    w
}

fn voice_lines(w: &World) -> Vec<&str> {
    w.events.iter().filter_map(|e| if let EventKind::Transcript { role: Role::User, text, .. } = &e.kind { Some(text.as_str()) } else { None }).collect()
}

#[test]
fn a_garbled_echo_is_no_turn_and_a_person_over_it_is_heard() {
    for garbled in ["you can say inter plan mode", "Can stay enter plane mode or", "You can say enter planned mode."] {
        assert_eq!(voice_lines(&over_the_help(0, garbled)), ["What can I say?"], "{garbled}");
    }
    for person in ["Stop.", "Wait a minute.", "No.", "Tell me about my notes.", "Cancel that."] {
        assert_eq!(voice_lines(&over_the_help(0, person)), ["What can I say?", person]);
    }
}

#[test]
fn a_command_that_a_prompt_holds_is_an_echo_only_when_the_prompt_says_it() {
    let entered = |after_ms| over_the_help(after_ms, "Enter plan mode.").engine.snapshot().in_plan();
    // The words come first in the prompt: an echo of them is heard at its beginning.
    assert!(!entered(0));
    assert!(entered(4_500), "said when the prompt was long past the words, it is a person's");
}

#[test]
fn what_a_person_adds_to_an_echo_is_heard() {
    let w = over_the_help(0, "You can say enter plan no wait stop");
    assert_eq!(voice_lines(&w).len(), 2, "{}", w.spoken());
    let alone = over_the_help(0, "You can say enter plan mode");
    assert_eq!(voice_lines(&alone).len(), 1);
}

/// The client takes its turns by hand and its microphone is open all the time: what is committed may be our own voice.
#[test]
fn a_committed_echo_decides_nothing_and_a_committed_answer_does() {
    let by_hand = || {
        let mut w = World::new();
        w.say("Add buy milk to my notes.");
        assert!(w.engine.asked_is_heard());
        w.input(Input::LegTurns(Turns { automatic: false, silence_ms: None, threshold: None, create_response: true, interrupt: false }));
        w
    };
    let commit = |w: &mut World, words: &str, voice_ms: u64| {
        w.script = VecDeque::from([Heard::text_only(words)]);
        (0..voice_ms / 20).for_each(|_| w.frame(true));
        let item = w.engine.item();
        w.script = VecDeque::from([Heard::text_only(words)]);
        w.input(Input::Commit { item });
        w.settle();
    };
    // Read again, and committed while the question sounds.
    let mut w = by_hand();
    w.say_now("Say that again.");
    commit(&mut w, "Yes, go ahead.", 900);
    assert!(w.ran.len() < 2, "{:?}", w.ran);
    let mut w = by_hand();
    w.silence(3_000);
    commit(&mut w, "Yes, go ahead.", 900);
    assert_eq!(w.ran.len(), 1, "{}", w.spoken());
    // No decision, and no turn either.
    let mut w = by_hand();
    w.say_now("Enter plan mode.");
    let before = voice_lines(&w).len();
    commit(&mut w, "Plan mode is on, I can look but I change nothing.", 1_500);
    let told = w.events.iter().rev().find_map(|e| if let EventKind::Transcript { role: Role::User, for_agent, .. } = &e.kind { Some(*for_agent) } else { None });
    assert_eq!((voice_lines(&w).len(), told), (before + 1, Some(false)), "{}", w.spoken());
}

#[test]
fn plan_mode_comes_back_and_is_announced_before_anything_runs() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    let mut snapshot = super::super::snapshot::Snapshot::default();
    w.events.iter().for_each(|e| snapshot.apply(e));
    assert_eq!(&snapshot, w.engine.snapshot(), "the state is the fold of the events");
    let tools = w.engine.config.tools.clone();
    let engine = Engine::restore(EngineConfig { tools, ..EngineConfig::default() }, snapshot, 2_000_000, false);
    assert!(engine.snapshot().in_plan() && engine.snapshot().restored);
    let mut w = World { engine, now: 0, events: vec![], ran: vec![], script: VecDeque::new(), speaking: None, running: vec![], calls: 50, tool_ms: 0, replies: vec![], told: vec![], begun: vec![], recognise_ms: 0, agent_ms: 0, complete: None, later: vec![], looks: vec![], forgotten: 0, counts: vec![], steps: vec![], agent_fails: false, log_fails: false, earcons: vec![], sounded: vec![] };
    w.input(Input::Tick);
    w.input(Input::Typed { door: OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!()), text: "What's in my notes?".into(), ticket: Ticket(9) });
    assert!(w.ran.is_empty(), "nobody has been told yet");
    w.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
    w.settle();
    assert_eq!(w.ran.len(), 1);
    assert!(w.spoken().starts_with("Plan mode is still on from before."), "{}", w.spoken());
}

#[test]
fn a_loosened_state_is_never_restored() {
    let mut w = World::new();
    w.say("Add buy milk to my notes.");
    let mut snapshot = w.engine.snapshot().clone();
    snapshot.ask = super::super::mode::AskPolicy::Bypass;
    let engine = Engine::restore(EngineConfig::default(), snapshot, 2_000_000, false);
    assert_eq!(engine.snapshot().ask, super::super::mode::AskPolicy::Ask);
    assert!(engine.snapshot().question.is_none() && engine.snapshot().approvals.is_empty());
    assert!(engine.snapshot().trace.iter().all(|t| t.ended.is_some()), "every call has its one end");
}

#[test]
fn talk_of_something_else_leaves_the_call_to_a_screen() {
    let mut w = World::new();
    w.say("Add buy milk to my notes.");
    let door = OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!());
    w.input(Input::Typed { door, text: "What's in my notes?".into(), ticket: Ticket(7) });
    w.settle();
    assert_eq!(w.ran.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), ["notes__list"]);
    let request = w.engine.snapshot().approvals[0].request.clone();
    w.say("Yes, go ahead.");
    assert_eq!(w.ran.len(), 1, "its window has closed");
    assert_eq!(w.decide(Decide::AnswerTool { request, approve: true }), (true, "ok"));
    w.settle();
    assert_eq!(w.ran.last().map(|r| r.0.as_str()), Some("notes__add"));
    assert_eq!(w.result_codes().iter().filter(|r| r.0 == "notes__add").count(), 1);
}

#[test]
fn asking_for_plan_mode_is_a_no_to_leaving_and_approving() {
    let mut w = World::new();
    w.say("Enter plan mode.");
    w.say("Exit plan mode.");
    assert!(w.engine.asked_is_heard());
    assert_eq!(w.decide(Decide::Enter { reason: String::new() }), (true, "already"));
    assert!(w.engine.question().is_none());
    w.say("Yes, go ahead.");
    assert!(w.engine.snapshot().in_plan(), "{}", w.spoken());
    // While it is still being said, too: the question stops.
    w.settle();
    w.say_now("Exit plan mode.");
    assert!(w.speaking.is_some() && w.engine.question().is_some(), "{}", w.spoken());
    w.decide(Decide::Enter { reason: String::new() });
    w.settle();
    assert!(w.engine.question().is_none() && w.engine.snapshot().in_plan());
    assert!(w.spoken().ends_with("All right. Plan mode stays on."), "{}", w.spoken());
}

#[test]
fn a_turn_ends_for_the_leg_after_its_words_have_begun() {
    let mut w = World::new();
    w.say("What's in my notes?");
    w.say("Enter plan mode.");
    w.say("Add buy eggs to my notes.");
    w.say_now("Present the plan.");
    w.settle();
    let mut open = None;
    for told in &w.told {
        match told.as_str() {
            "turn" => open = Some(0),
            "started" | "stopped" => {}
            "speech" => open = open.map(|n| n + 1),
            _ => assert!(open.take().is_some_and(|n| n > 0), "a turn without words: {:?}", w.told),
        }
    }
    assert_eq!(w.told.iter().filter(|t| *t == "ended").count(), 3);
}

#[test]
fn a_client_that_writes_on_is_answered_and_the_question_waits_on_the_screen() {
    let mut w = World::new();
    w.say("Add buy milk to my notes.");
    w.input(Input::ClientText { item: "i1".into(), text: "yes, go ahead".into() });
    assert!(w.engine.asked_is_heard() && w.ran.is_empty());
    w.input(Input::CreateResponse);
    w.settle();
    assert_eq!(w.engine.snapshot().approvals.len(), 1);
    assert!(w.ran.is_empty() && w.spoken().ends_with("I do not know that."), "{}", w.spoken());
}

#[test]
fn a_client_knows_best_what_it_played() {
    let mut w = World::new();
    w.say_now("What mode are you in?");
    let item = w.engine.snapshot().transcript.last().map(|l| l.item.clone());
    w.silence(400);
    let playing = w.begun.last().cloned().expect("something is said");
    assert_ne!(Some(&playing), item.as_ref());
    w.input(Input::Truncate { item: playing.clone(), heard_ms: 700 });
    let heard = w.events.iter().rev().find_map(|e| if let EventKind::Speech { heard_ms, .. } = &e.kind { Some(*heard_ms) } else { None });
    assert_eq!(heard, Some(700));
    let line = w.engine.snapshot().transcript.iter().find(|l| l.item == playing).map(|l| l.text.clone());
    assert!(line.as_ref().is_some_and(|t| "Plan mode is off. I ask before I change something.".starts_with(t.trim_end_matches('…').trim()) && t.len() < 20), "{line:?}");
}
