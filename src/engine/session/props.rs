//! Ten thousand random histories over every door of the engine, with a model of driver, agent and tools beside it that checks what must
//! always hold. A history is a list of numbers: one that fails is cut down to what is needed, and printed with its seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use super::super::authority::{Decide, OperatorDoor, Surface};
use super::super::event::{Event, EventKind, QuestionKind, QuestionState};
use super::super::gate::{Permit, Running};
use super::super::heard::Heard;
use super::super::id::{CallId, ItemId, Ms, QuestionId, SpeechId, TurnId, UtteranceId};
use super::super::input::{Action, Count, Input, LegFacts, Output, Ticket, Turns};
use super::super::mode::Posture;
use super::super::snapshot::Snapshot;
use super::super::tool::{Effect, SessionDeed, ToolCall, ToolOutcome, ToolSpec};
use super::super::turn::Frame;
use super::{Engine, EngineConfig};

const HISTORIES: u64 = 10_000;
const LONGEST: u64 = 60;

/// What somebody may say or type.
const SENTENCES: &[&str] = &[
    "Enter plan mode.", "Exit plan mode.", "Leave plan mode.", "Yes, go ahead.", "Go ahead.", "Yes, do it.", "Yes.", "No.", "Don't do it.", "Wait.", "Stop.", "Cancel that.",
    "Approve plan one.", "Approve plan two.", "Confirm plan one.", "Confirm plan two.", "Confirm plan three.", "Approve plan three.", "Approve the plan.", "Read me the plan.", "Keep planning.",
    "Change step one: use another list.", "Set the plan aside.", "What mode are you in?", "What can I say?", "Say that again.", "Add milk to my notes.", "Bypass mode on.", "Add milk and", "eggs to my list.", "Okay.", "yes", "no", "ok", "/plan off", "",
];
/// What may be the answer to an agent's or a tool's text: sentences of the grammar too.
const TEXTS: &[&str] = &["Done. That is all there is to say about it.", "Go ahead.", "Exit plan mode.", "Confirm plan one.", "yes, do it", "I have left plan mode. Confirm plan two"];
const TOOLS: &[(&str, Effect)] = &[
    ("notes__list", Effect::Read), ("notes__add", Effect::Files), ("host__run", Effect::Host), ("mail__send", Effect::External), ("odd__thing", Effect::Unknown), ("notes__shred", Effect::Files),
    ("view__show", Effect::View), ("plan__submit", Effect::Session), ("todo__write", Effect::Session), ("no__such", Effect::Unknown),
];

fn tools() -> Vec<ToolSpec> {
    TOOLS.iter().filter(|t| t.0 != "no__such").map(|(name, effect)| ToolSpec {
        name: (*name).into(), description: String::new(), parameters: json!({}), effect: *effect, tier: None, irreversible: *name == "notes__shred", needs_person: *name == "odd__thing",
        ask: (*name == "notes__add").then(|| "{text}?".to_string()), step: None, display: (*name).into(),
    }).collect()
}

fn config() -> EngineConfig { EngineConfig { tools: tools().into(), ..EngineConfig::default() } }

/// One step of a history: what is done, and the number its choices are made from.
type Op = (u8, u64);

/// Xorshift, so that a seed is a history for ever.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self { Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 13) % n
    }
    fn of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> { if list.is_empty() { None } else { list.get(self.roll(list.len() as u64) as usize) } }
    fn one_in(&mut self, n: u64) -> bool { self.roll(n) == 0 }
}

struct Speaking {
    id: SpeechId,
    heard: u64,
    length: u64,
    ended: bool,
    held: bool,
}

impl Speaking {
    fn is_over(&self) -> bool { self.ended && self.heard >= self.length }
}

/// Driver, microphone, agent, tools and screens, and what they have seen.
struct Model {
    engine: Engine,
    now: Ms,
    fold: Snapshot,
    script: Heard,
    hearing_fails: bool,
    recognitions: VecDeque<(UtteranceId, u64, Result<Heard, String>)>,
    slow_ear: bool,
    speaking: Option<Speaking>,
    running: Vec<(Running, ToolCall, bool)>,
    steps: Vec<TurnId>,
    last_turn: TurnId,
    log_fails: bool,
    calls: u64,
    tickets: u64,
    replied: BTreeSet<u64>,
    unanswered: BTreeMap<CallId, usize>,
    answered: BTreeSet<CallId>,
    approved: BTreeMap<CallId, Surface>,
    questions: BTreeMap<QuestionId, QuestionState>,
    /// Restored in plan mode and nobody has been told.
    untold: bool,
    /// The input that is being handled may loosen: a person's decision to leave or approve.
    may_loosen: bool,
    spoken: Vec<String>,
    broken: Option<String>,
    /// What went in and came out, when somebody will read it.
    told: Option<Vec<String>>,
    /// How often what has come about.
    reached: BTreeMap<&'static str, u64>,
}

impl Model {
    fn new(told: bool) -> Self {
        let mut model = Self {
            engine: Engine::new(config(), 1_000_000), now: 0, fold: Snapshot::default(), script: Heard::default(), hearing_fails: false, recognitions: VecDeque::new(), slow_ear: false,
            speaking: None, running: vec![], steps: vec![], last_turn: TurnId(0), log_fails: false, calls: 0, tickets: 0, replied: BTreeSet::new(), unanswered: BTreeMap::new(),
            answered: BTreeSet::new(), approved: BTreeMap::new(), questions: BTreeMap::new(), untold: false, may_loosen: false, spoken: vec![], broken: None, told: told.then(Vec::new), reached: BTreeMap::new(),
        };
        model.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
        model
    }

    fn must(&mut self, holds: bool, what: impl FnOnce(&Self) -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(what(self));
        }
    }

    fn reach(&mut self, what: &'static str) { *self.reached.entry(what).or_default() += 1 }

    fn tell(&mut self, way: &str, what: &dyn std::fmt::Debug) {
        if let Some(told) = &mut self.told {
            told.push(format!("{:>8} {way} {}", self.now, super::super::plan::clip(&format!("{what:?}"), 240)));
        }
    }

    fn input(&mut self, input: Input) {
        match &input {
            Input::Decide(action, _) => self.may_loosen = matches!(action.decision(), Decide::Leave | Decide::Approve { .. }),
            Input::LegAttached(_) | Input::Announced => self.untold = false,
            _ => self.may_loosen = false,
        }
        let mut pending = VecDeque::from([input]);
        while let Some(input) = pending.pop_front() {
            if !matches!(input, Input::Frame(_)) { self.tell("<-", &input) }
            self.engine.handle_input(self.now, input);
            loop {
                match self.engine.poll_output() {
                    Output::Event(event) => self.event(&event),
                    Output::Action(action) => self.act(action, &mut pending),
                    Output::Wait(_) => break,
                }
            }
        }
        self.check();
    }

    fn event(&mut self, event: &Event) {
        let expected = self.fold.seq + 1;
        self.tell("event", &event.kind);
        self.must(event.seq == expected, |_| format!("event {} follows {}", event.seq, expected - 1));
        let was_plan = self.fold.in_plan();
        self.fold.apply(event);
        match &event.kind {
            EventKind::Mode(mode) if mode.draining > 0 => self.reach("draining"),
            EventKind::Mode(mode) if was_plan && mode.posture == Posture::Default => {
                let said = self.spoken.iter().rev().take(4).any(|s| *s == mode.by.words);
                let consent = ["yes go ahead", "go ahead", "yes do it", "confirm plan one", "confirm plan two", "confirm plan three"].contains(&super::super::grammar::words_of(&mode.by.words).join(" ").as_str());
                let by_voice = mode.by.surface == Surface::Voice && mode.by.utterance.is_some() && said && consent;
                let holds = by_voice || self.may_loosen && mode.by.has_screen();
                self.must(holds, |_| format!("plan mode was left by {:?}", mode.by));
                self.reach(match (by_voice, mode.approved) { (true, Some(true)) => "approved by voice", (true, _) => "left by voice", (_, Some(true)) => "approved by hand", _ => "left by hand" });
            }
            EventKind::ToolStart { call, .. } => {
                let seen = self.answered.contains(call) || self.unanswered.insert(call.clone(), 0).is_some();
                self.must(!seen, |_| format!("{call} was started twice"));
            }
            EventKind::ToolResult { call, error_code, .. } => {
                match error_code.as_str() {
                    "plan_mode_blocked" => self.reach("blocked"),
                    "denied_by_user" => self.reach("denied"),
                    "expired" => self.reach("expired"),
                    "outcome_unknown" => self.reach("unknown after a restart"),
                    "" => self.reach("done"),
                    _ => {}
                }
                let open = self.unanswered.remove(call).is_some() && self.answered.insert(call.clone());
                self.must(open, |_| format!("{call} was answered twice or never started"));
            }
            EventKind::ApprovalResolved { call, status: "approved", by, .. } => {
                self.must(by.surface != Surface::Gateway && by.surface != Surface::Client, |_| format!("{call} was approved by {by:?}"));
                self.approved.insert(call.clone(), by.surface);
                self.reach(if by.surface == Surface::Voice { "a call approved by voice" } else { "a call approved by hand" });
            }
            EventKind::Question(question) => {
                self.questions.insert(question.id.clone(), question.state);
                self.questions.retain(|_, state| matches!(state, QuestionState::Asked | QuestionState::Heard));
                self.must(self.questions.len() <= 1, |m| format!("{} questions are open at once", m.questions.len()));
            }
            EventKind::Notice { code, .. } if code == "log_failed" => self.reach("log failed"),
            EventKind::Presented(_) => self.reach("presented"),
            _ => {}
        }
    }

    fn act(&mut self, action: Action, pending: &mut VecDeque<Input>) {
        if !matches!(action, Action::Count(_) | Action::Partial { .. } | Action::Leg(_)) { self.tell("->", &action) }
        match action {
            Action::Recognise { utterance, to_ms, .. } => {
                let result = if self.hearing_fails { Err("the recogniser fell over".to_string()) } else { Ok(self.script.clone()) };
                if self.slow_ear { self.recognitions.push_back((utterance, to_ms, result)) } else { pending.push_back(Input::Heard { utterance, to_ms, result }) }
            }
            Action::JudgeTurn { utterance, to_ms, .. } if to_ms % 3 > 0 => pending.push_back(Input::TurnJudged { utterance, to_ms, complete: (to_ms % 11) as f32 / 10.0 }),
            Action::JudgeTurn { .. } => {}
            Action::Forget { utterance, to_ms } => self.recognitions.retain(|(u, t, _)| (*u, *t) != (utterance, to_ms)),
            Action::Duck(speech) => {
                let plays = self.speaking.as_mut().filter(|s| s.id == speech && !s.held).map(|s| s.held = true).is_some();
                self.must(plays, |_| format!("{speech:?} is held and does not play"));
                if let Some(s) = &self.speaking { pending.push_back(Input::Ducked { speech, heard_ms: s.heard.min(s.length) }) }
                self.reach("held");
            }
            Action::Resume(speech) => {
                let held = self.speaking.as_mut().filter(|s| s.id == speech && s.held).map(|s| s.held = false).is_some();
                self.must(held, |_| format!("{speech:?} goes on and was not held"));
                self.reach("came back");
            }
            Action::Count(Count::JoinedTurn) => self.reach("joined"),
            Action::Step(request) => {
                self.steps.push(request.turn);
                self.last_turn = request.turn;
                let unanswered = self.unanswered.len();
                self.must(request.plan_mode == self.fold.in_plan(), |_| format!("the agent is told the wrong mode, {unanswered} calls open"));
            }
            Action::CancelStep(turn) => self.steps.retain(|t| *t != turn),
            Action::Run(permit, call) => self.run(permit, call, pending),
            Action::Loosen(_) if self.log_fails => pending.push_back(Input::LogFailed),
            Action::Loosen(to) => {
                self.engine.gate().flip(to);
                pending.push_back(Input::Loosened);
            }
            Action::BeginSpeech { speech, .. } => self.speaking = Some(Speaking { id: speech, heard: 0, length: 0, ended: false, held: false }),
            Action::Say { speech, segment, text } => {
                let ms = text.len() as u64 * 20;
                if let Some(s) = &mut self.speaking { s.length += ms }
                pending.push_back(Input::Synthesised { speech, segment, result: if text.len() % 17 == 0 { Err("no sound".into()) } else { Ok(ms) } });
            }
            Action::EndSpeech(_) => if let Some(s) = &mut self.speaking { s.ended = true },
            Action::CutSpeech(speech, _) => {
                let heard_ms = self.speaking.take().map_or(0, |s| s.heard.min(s.length));
                pending.push_back(Input::WasCut { speech, heard_ms });
            }
            Action::Reply(Ticket(ticket), _) => {
                let first = self.replied.insert(ticket);
                self.must(first && ticket <= self.tickets, |_| format!("ticket {ticket} was answered twice"));
            }
            _ => {}
        }
    }

    fn run(&mut self, permit: Permit, call: ToolCall, pending: &mut VecDeque<Input>) {
        let untold = self.untold;
        self.must(!untold, |_| format!("{} runs before anybody was told of the restored plan mode", call.tool));
        let changes = !permit.effect().is_plan_safe();
        let known = self.unanswered.get_mut(&call.id).map(|times| { *times += 1; *times });
        self.must(known == Some(1), |_| format!("{} was run {known:?} times", call.id));
        match self.engine.gate().begin(permit, &call) {
            Err(refusal) => pending.push_back(Input::ToolDone { call: call.id, outcome: ToolOutcome::failed(refusal.code, refusal.message) }),
            Ok(running) => {
                self.must(!(changes && (self.fold.in_plan() || self.engine.snap.in_plan())), |_| format!("{} began in plan mode", call.tool));
                let by = self.approved.get(&call.id).copied();
                self.must(!changes || by.is_some(), |_| format!("{} began and nobody had said yes", call.tool));
                self.must(call.tool != "notes__shred" || by != Some(Surface::Voice), |_| "what cannot be undone was approved by voice".into());
                if changes { self.reach("a changing call began") }
                self.running.push((running, call, changes));
            }
        }
    }

    fn check(&mut self) {
        let changing = self.running.iter().filter(|r| r.2).count();
        self.must(!(self.fold.in_plan() && self.fold.draining == 0 && changing > 0), |_| format!("{changing} changing calls run in plan mode and draining is 0"));
        let gate = self.engine.gate().stamp();
        self.must(gate == self.engine.snap.stamp, |m| format!("the gate says {gate:?}, the state {:?}", m.engine.snap.stamp));
        let stuck = self.speaking.as_ref().is_some_and(|s| s.held) && !self.engine.hears_somebody();
        self.must(!stuck, |_| "playback is held and nobody speaks".into());
        let (lane, parked) = self.engine.lane.sizes();
        self.must(lane <= 64 && parked <= 17, |_| format!("{lane} calls wait, {parked} are parked"));
        let (speeches, turns) = (self.engine.mouth.waiting(), self.engine.turns.waiting());
        self.must(speeches <= 40 && turns <= 8, |_| format!("{speeches} speeches and {turns} turns wait"));
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        if let Some(s) = self.speaking.as_mut().filter(|s| !s.held) { s.heard += ms }
        if let Some(done) = self.speaking.as_ref().filter(|s| s.is_over()).map(|s| s.id) {
            self.speaking = None;
            self.input(Input::Drained { speech: done });
        }
    }

    fn frames(&mut self, n: u64, voice: bool) {
        for _ in 0..n {
            self.pass(20);
            let level_dbfs = if voice { -18.0 - (self.now / 20 % 6) as f32 * 4.0 } else { -65.0 };
            self.input(Input::Frame(Frame { probability: if voice { 0.9 } else { 0.02 }, level_dbfs }));
        }
    }

    fn say(&mut self, text: &str, dice: &mut Dice) {
        self.script = Heard::text_only(text);
        self.spoken.push(text.to_string());
        self.frames(20 + dice.roll(10), true);
        let silence = 20 + dice.roll(25);
        self.frames(silence, false);
    }

    /// A person who listens to the end and says what fits, most of the time.
    fn say_what_fits(&mut self, dice: &mut Dice) {
        for _ in 0..4 {
            if let Some(left) = self.speaking.as_ref().filter(|s| s.ended && !s.held).map(|s| s.length.saturating_sub(s.heard)) { self.pass(left) }
            self.frames(2, false);
        }
        self.pass(300);
        let open = self.engine.question().filter(|q| q.state != QuestionState::ScreenOnly).map(|q| (q.kind, q.version));
        let number = |n: Option<u32>| super::super::grammar::number_word(n.unwrap_or(1));
        let fits = match (open, self.fold.waiting().map(|p| p.version)) {
            (Some((QuestionKind::Approve, version)), _) => format!("Confirm plan {}.", number(version)),
            (Some(_), _) if dice.one_in(4) => "No.".into(),
            (Some(_), _) => "Yes, go ahead.".into(),
            (None, Some(version)) => format!("Approve plan {}.", number(Some(version))),
            (None, None) if self.fold.in_plan() => "Exit plan mode.".into(),
            (None, None) => "Enter plan mode.".into(),
        };
        self.say(&fits, dice);
        self.frames(if dice.one_in(2) { 40 } else { 0 }, false);
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn door(dice: &mut Dice) -> Option<OperatorDoor> { dice.of(&[Surface::Chat, Surface::Rest, Surface::Screen]).and_then(|s| OperatorDoor::vouch(*s)) }

    fn decide(&mut self, dice: &mut Dice) {
        let version = if dice.one_in(2) { None } else { Some(dice.roll(4) as u32) };
        let hash = match dice.roll(3) {
            0 => self.fold.waiting().map(|p| p.hash.clone()),
            1 => Some("0123456789abcdef".to_string()),
            _ => None,
        };
        let asked: Vec<QuestionId> = self.fold.approvals.iter().map(|a| a.request.clone()).chain(["req_nobody".into()]).collect();
        let decide = match dice.roll(12) {
            0 | 1 => Decide::Enter { reason: String::new() },
            2 => Decide::Leave,
            3 | 4 => Decide::Approve { version, hash },
            5 => Decide::RequestChanges { version, comments: "another list".into() },
            6 => Decide::Dismiss { version },
            7 => Decide::BackToReview { version },
            8 => Decide::StopSpeech,
            9 => Decide::StopTurn,
            _ => Decide::AnswerTool { request: dice.of(&asked).cloned().unwrap_or_default(), approve: !dice.one_in(3) },
        };
        let Some(door) = Self::door(dice) else { return };
        let ticket = self.ticket();
        self.input(Input::Decide(door.decide(decide, ""), ticket));
    }

    fn agent(&mut self, dice: &mut Dice) {
        let turn = if dice.one_in(8) { TurnId(dice.roll(self.last_turn.0 + 2)) } else { self.last_turn };
        match dice.roll(6) {
            0 => self.input(Input::AgentText { turn, text: dice.of(TEXTS).map_or(String::new(), |t| (*t).into()) }),
            1 => self.agent_done(turn, dice.one_in(4).then(|| "Go ahead.".to_string())),
            _ => {
                self.calls += u64::from(!dice.one_in(10));
                let tool = dice.of(TOOLS).map_or("", |t| t.0);
                let arguments = match tool {
                    "plan__submit" => json!({"summary": format!("Plan of {}. It is short.", dice.roll(4)), "steps": ["Add milk?", dice.of(TEXTS)]}),
                    "todo__write" => json!({"todos": ["one"]}),
                    _ => json!({"text": dice.of(TEXTS)}),
                };
                let arguments: Result<Value, ToolOutcome> = if dice.one_in(12) { Err(ToolOutcome::failed("invalid_arguments", "no")) } else { Ok(arguments) };
                self.input(Input::AgentCall { turn, id: CallId(format!("call_{}", self.calls)), tool: tool.into(), arguments });
                if dice.one_in(2) { self.agent_done(turn, None) }
            }
        }
    }

    fn agent_done(&mut self, turn: TurnId, failed: Option<String>) {
        self.steps.retain(|t| *t != turn);
        self.input(Input::AgentDone { turn, failed });
    }

    fn finish_tool(&mut self, dice: &mut Dice) {
        if self.running.is_empty() || dice.one_in(12) {
            return self.input(Input::ToolDone { call: CallId(format!("call_{}", dice.roll(self.calls + 1) + 1000)), outcome: ToolOutcome::ok(json!({})) });
        }
        let (running, call, _) = self.running.remove(dice.roll(self.running.len() as u64) as usize);
        let outcome = match call.tool.as_str() {
            "plan__submit" => ToolOutcome::deed(SessionDeed::SubmitPlan(call.arguments.clone())),
            "todo__write" => ToolOutcome::deed(SessionDeed::WriteTodo(call.arguments.clone())),
            _ if dice.one_in(4) => ToolOutcome::failed("timed_out", "Exit plan mode."),
            _ => ToolOutcome::ok(json!({"text": dice.of(TEXTS)})),
        };
        drop(running);
        self.input(Input::ToolDone { call: call.id.clone(), outcome: outcome.clone() });
        // A result that comes twice is nothing.
        if dice.one_in(6) { self.input(Input::ToolDone { call: call.id, outcome }) }
    }

    fn client(&mut self, dice: &mut Dice) {
        let item = ItemId(format!("client_{}", dice.roll(6)));
        match dice.roll(9) {
            0 | 1 => self.input(Input::ClientText { item, text: dice.of(SENTENCES).map_or(String::new(), |t| (*t).into()) }),
            2 => self.input(Input::CreateResponse),
            3 => self.input(Input::CancelResponse),
            4 => { self.script = Heard::text_only(*dice.of(SENTENCES).unwrap_or(&"")); self.spoken.push(self.script.text.clone()); self.input(Input::Commit { item }) }
            5 => self.input(Input::Clear),
            6 => self.input(Input::Truncate { item, heard_ms: dice.roll(2000) }),
            7 => self.input(Input::Delete { item }),
            _ => self.input(Input::LegTurns(Turns { automatic: !dice.one_in(3), silence_ms: None, threshold: None, create_response: !dice.one_in(3), interrupt: !dice.one_in(3) })),
        }
    }

    fn world(&mut self, dice: &mut Dice) {
        match dice.roll(11) {
            9 => self.input(Input::Interrupted),
            10 => { let (utterance, to_ms) = (UtteranceId(dice.roll(200)), dice.roll(9_000) / 20 * 20); self.input(Input::TurnJudged { utterance, to_ms, complete: f32::NAN }) }
            0 => { self.speaking = None; self.input(Input::LegGone) }
            1 | 2 => { self.speaking = None; self.input(Input::LegAttached(LegFacts { hears: !dice.one_in(4), speaks: !dice.one_in(4), holds: dice.one_in(2), remote: false })) }
            3 => self.hearing_fails = !self.hearing_fails,
            4 => self.slow_ear = !self.slow_ear,
            5 => self.log_fails = !self.log_fails,
            6 => self.restart(dice.one_in(4)),
            7 => self.late_words(),
            _ => self.input(Input::Announced),
        }
    }

    fn late_words(&mut self) {
        while let Some((utterance, to_ms, result)) = self.recognitions.pop_front() {
            self.input(Input::Heard { utterance, to_ms, result });
        }
    }

    /// The process dies and comes back from its log. What ran is gone, and its calls end as unknown.
    fn restart(&mut self, damaged: bool) {
        self.running.clear();
        self.steps.clear();
        self.recognitions.clear();
        self.speaking = None;
        self.now = 0;
        self.replied = (1..=self.tickets).collect();
        self.untold = self.fold.in_plan() || damaged;
        if self.untold { self.reach("restored in plan mode") }
        let was_plan = self.fold.in_plan();
        self.engine = Engine::restore(config(), self.fold.clone(), self.fold.last_ms + 1, damaged);
        self.questions.clear();
        let leg = std::mem::replace(&mut self.may_loosen, false);
        while let Output::Event(event) = self.engine.poll_output() {
            self.event(&event);
        }
        self.must(self.fold.in_plan() == (was_plan || damaged), |m| format!("restored: plan was {was_plan}, is {}", m.fold.in_plan()));
        let open = self.unanswered.len();
        self.must(open == 0, |_| format!("{open} calls have no end after a restart"));
        self.may_loosen = leg;
        self.check();
    }

    fn step(&mut self, (kind, number): Op) {
        let dice = &mut Dice::new(number);
        match kind {
            0..=9 => self.say_what_fits(dice),
            10..=12 => { let n = 2 + dice.roll(30); self.script = Heard::text_only(*dice.of(&["", "Okay.", "Mm-hmm.", "Stop.", "Thank you."]).unwrap_or(&"")); self.spoken.push(self.script.text.clone()); self.frames(n, true); self.frames(dice.roll(30), false) }
            13..=21 => { let text = dice.of(SENTENCES).copied().unwrap_or(""); self.say(text, dice) }
            22..=29 => { let n = 10 + dice.roll(120); self.frames(n, false) }
            30..=33 => { let ms = *dice.of(&[100, 700, 2_000, 16_000, 130_000, 601_000]).unwrap_or(&0); self.pass(ms); self.input(Input::Tick) }
            34..=37 => {
                let Some(door) = Self::door(dice) else { return };
                let (text, ticket) = (dice.of(SENTENCES).copied().unwrap_or("").to_string(), self.ticket());
                self.input(Input::Typed { door, text, ticket });
            }
            38..=51 => self.decide(dice),
            52..=79 => self.agent(dice),
            80..=89 => self.finish_tool(dice),
            90..=94 => self.client(dice),
            95 => { let ticket = self.ticket(); self.input(Input::Report(ticket)) }
            _ => self.world(dice),
        }
    }

    /// Everything that is under way comes to its end, and somebody listens; then nothing may be left open.
    fn come_to_rest(&mut self) {
        self.hearing_fails = false;
        self.log_fails = false;
        self.slow_ear = false;
        self.script = Heard::default();
        self.speaking = None;
        self.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
        for _ in 0..80 {
            self.late_words();
            while let Some(turn) = self.steps.first().copied() { self.agent_done(turn, None) }
            while let Some((running, call, _)) = self.running.pop() {
                drop(running);
                self.input(Input::ToolDone { call: call.id, outcome: ToolOutcome::ok(json!({})) });
            }
            self.pass(16_000);
            self.input(Input::Tick);
            self.frames(2, false);
            if !self.engine.is_busy() && self.unanswered.is_empty() { break }
            self.pass(120_000);
            self.input(Input::Tick);
        }
        self.pass(700_000);
        self.input(Input::Tick);
        self.frames(40, false);
        self.must(self.unanswered.is_empty(), |m| format!("calls without an end: {:?}", m.unanswered));
        self.must(!self.engine.is_busy(), |_| "it never comes to rest".into());
        self.must(self.replied.len() as u64 == self.tickets, |m| format!("{} of {} decisions were answered", m.replied.len(), m.tickets));
        self.must(self.fold == *self.engine.snapshot(), |_| "the state is not the fold of its events".into());
        self.must(self.fold.approvals.is_empty(), |m| format!("still asked about: {:?}", m.fold.approvals));
    }
}

fn history(seed: u64) -> Vec<Op> {
    let mut dice = Dice::new(seed);
    let length = 5 + dice.roll(LONGEST - 4);
    (0..length).map(|_| (dice.roll(100) as u8, dice.roll(u64::from(u32::MAX)))).collect()
}

/// What went wrong in this history, if anything did.
fn fault(ops: &[Op]) -> Option<String> { play(ops, &mut Model::new(false)) }

fn play(ops: &[Op], model: &mut Model) -> Option<String> {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        for (n, op) in ops.iter().enumerate() {
            model.step(*op);
            if n % 8 == 0 {
                model.must(model.fold == *model.engine.snapshot(), |_| "the state is not the fold of its events".into());
            }
            if let Some(broken) = model.broken.take() {
                return Some(format!("op {n}: {broken}"));
            }
        }
        model.come_to_rest();
        model.broken.take()
    }));
    tried.unwrap_or_else(|panic| Some(format!("panic: {}", panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string())).unwrap_or_default())))
}

/// Takes away whatever the fault does not need.
fn smallest(mut ops: Vec<Op>) -> Vec<Op> {
    loop {
        let before = ops.len();
        for at in (0..before).rev() {
            let mut fewer = ops.clone();
            fewer.remove(at);
            if fault(&fewer).is_some() { ops = fewer }
        }
        if ops.len() == before { return ops }
    }
}

#[test]
fn ten_thousand_random_histories() {
    let seeds: Vec<u64> = match std::env::var("VOXGATE_PROPS_SEED") {
        Ok(seed) => vec![seed.parse().unwrap_or(1)],
        Err(_) => (1..=HISTORIES).collect(),
    };
    let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in &seeds {
        let mut model = Model::new(false);
        if play(&history(*seed), &mut model).is_some() {
            let ops = smallest(history(*seed));
            let mut model = Model::new(true);
            let fault = play(&ops, &mut model).unwrap_or_default();
            panic!("seed {seed}: {fault}\nsmallest history: {ops:?}\n{}", model.told.unwrap_or_default().join("\n"));
        }
        model.reached.into_iter().for_each(|(what, times)| *reached.entry(what).or_default() += times);
    }
    // Histories in which nothing comes about prove nothing.
    println!("{reached:?}");
    let seldom: Vec<_> = reached.iter().filter(|(_, times)| **times < 20).collect();
    assert!(seeds.len() == 1 || reached.len() == 19 && seldom.is_empty(), "{} kinds, {seldom:?} of {reached:?}", reached.len());
}
