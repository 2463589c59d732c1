//! The engine held against the model, step by step: ten thousand random histories, after each step the same state.

use serde_json::json;

use super::super::authority::{Decide, OperatorDoor, Surface, UserAction};
use super::super::gate::{Permit, Running};
use super::super::id::{CallId, TurnId};
use super::super::input::{Action, Input, LegFacts, Output, Ticket};
use super::super::mode::{AskPolicy, Mode, Posture};
use super::super::plan::PlanStatus;
use super::super::snapshot::Snapshot;
use super::super::tool::{Effect, SessionDeed, ToolCall, ToolOutcome, ToolSpec};
use super::model::{Budget, FAULTS, Kind, Model, Op, Place, Status, have};
use super::{Engine, EngineConfig};

const CASES: u64 = 10_000;
const LONGEST: u64 = 28;

fn tool(kind: Kind) -> (&'static str, Effect) {
    match kind { Kind::Read => ("notes__list", Effect::Read), Kind::Write => ("notes__add", Effect::Files), Kind::Shred => ("notes__shred", Effect::Files), Kind::Present => ("plan__submit", Effect::Session) }
}

fn config() -> EngineConfig {
    let spec = |kind| {
        let (name, effect) = tool(kind);
        ToolSpec { name: name.into(), description: String::new(), parameters: json!({}), effect, tier: None, irreversible: kind == Kind::Shred, needs_person: false, ask: None, step: None, display: name.into() }
    };
    EngineConfig { tools: [Kind::Read, Kind::Write, Kind::Shred, Kind::Present].map(spec).into(), ..EngineConfig::default() }
}

/// The engine with a driver whose runner begins and ends calls when it is told to. What is said is heard at once; screens answer.
struct Real {
    engine: Engine,
    fold: Snapshot,
    permit: Option<(Permit, ToolCall)>,
    running: Option<(Running, ToolCall)>,
    turn: TurnId,
    calls: u64,
    log_takes: bool,
}

impl Real {
    fn new() -> Self {
        let mut real = Self { engine: Engine::new(config(), 1_000), fold: Snapshot::default(), permit: None, running: None, turn: TurnId(0), calls: 0, log_takes: true };
        real.drain();
        real.listen();
        real
    }

    fn listen(&mut self) { self.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false })); }

    fn drain(&mut self) -> bool {
        let (mut back, mut any) = (Vec::new(), false);
        loop {
            let output = self.engine.poll_output();
            any |= !matches!(output, Output::Wait(_));
            match output {
                Output::Event(event) => self.fold.apply(&event),
                Output::Action(Action::Step(request)) => self.turn = request.turn,
                Output::Action(Action::Run(permit, call)) => self.permit = Some((permit, call)),
                Output::Action(Action::Loosen(to)) if self.log_takes => {
                    self.engine.gate().flip(to);
                    back.push(Input::Loosened);
                }
                Output::Action(Action::Loosen(_)) => back.push(Input::LogFailed),
                Output::Action(Action::EndSpeech(speech)) => back.push(Input::Drained { speech }),
                Output::Action(Action::CutSpeech(speech, _)) => back.push(Input::WasCut { speech, heard_ms: 0 }),
                Output::Action(_) => {}
                Output::Wait(_) => break,
            }
        }
        for input in back { self.input(input); }
        any
    }

    /// Answers whether anything came of it.
    fn input(&mut self, input: Input) -> bool {
        self.engine.handle_input(1, input);
        self.drain()
    }

    fn decide(&mut self, decide: Decide) {
        let action: Option<UserAction> = OperatorDoor::vouch(Surface::Screen).map(|d| d.decide(decide, ""));
        if let Some(action) = action { self.input(Input::Decide(action, Ticket(1))); }
    }

    fn done(&mut self, call: ToolCall) {
        let outcome = if call.tool == "plan__submit" { ToolOutcome::deed(SessionDeed::SubmitPlan(call.arguments.clone())) } else { ToolOutcome::ok(json!({"success": true})) };
        self.input(Input::ToolDone { call: call.id, outcome });
    }

    fn play(&mut self, op: Op) {
        self.log_takes = !matches!(op, Op::Leave(false) | Op::Approve(false) | Op::Bypass(false) | Op::Default(false));
        match op {
            Op::Enter => self.decide(Decide::Enter { reason: String::new() }),
            Op::Leave(_) => self.decide(Decide::Leave),
            Op::Approve(_) => { let version = self.fold.waiting().map(|p| p.version); self.decide(Decide::Approve { version, hash: None }) }
            Op::Dismiss => self.decide(Decide::Dismiss { version: None }),
            Op::Bypass(_) => self.decide(Decide::Mode(Mode::Bypass)),
            Op::Default(_) => self.decide(Decide::Mode(Mode::Default)),
            Op::Say => if let Some(door) = OperatorDoor::vouch(Surface::Chat) { self.input(Input::Typed { door, text: "hello there, how are things".into(), ticket: Ticket(1) }); },
            Op::Call(kind) => {
                let id = CallId(format!("call_{}", self.calls));
                let arguments = json!({"summary": format!("Plan of {}", self.calls), "steps": ["one"], "n": self.calls});
                self.calls += 1;
                self.input(Input::AgentCall { turn: self.turn, id, tool: tool(kind).0.into(), arguments: Ok(arguments) });
            }
            Op::Done => { self.input(Input::AgentDone { turn: self.turn, failed: None }); }
            Op::Begin => if let Some((permit, call)) = self.permit.take() {
                match self.engine.gate().begin(permit, &call) {
                    Ok(running) => self.running = Some((running, call)),
                    Err(refusal) => { self.input(Input::ToolDone { call: call.id, outcome: ToolOutcome::failed(refusal.code, refusal.message) }); }
                }
            },
            Op::Finish => if let Some((running, call)) = self.running.take() {
                drop(running);
                self.done(call);
            },
            Op::Answer(i, approve) => {
                let request = self.fold.approvals.iter().find(|a| a.call.0 == format!("call_{i}")).map(|a| a.request.clone()).unwrap_or_default();
                self.decide(Decide::AnswerTool { request, approve });
            }
            Op::Restart => {
                (self.permit, self.running) = (None, None);
                self.engine = Engine::restore(config(), self.fold.clone(), 2_000, false);
                self.drain();
                // Nobody is there yet where somebody must be told first.
                if !self.fold.in_plan() { self.listen() }
            }
            Op::Announced => self.listen(),
        }
        // What follows from what has just followed.
        while self.input(Input::Tick) {}
    }

    fn place(&self, i: u8) -> Place {
        let id = CallId(format!("call_{i}"));
        if self.fold.trace.iter().any(|t| t.call == id && t.ended.is_some()) { return Place::Ended }
        if self.running.as_ref().is_some_and(|r| r.1.id == id) { return Place::Running }
        if self.permit.as_ref().is_some_and(|p| p.1.id == id) { return Place::Permitted }
        if self.engine.lane.is_parked(&id) { return Place::Parked }
        if self.fold.approvals.iter().any(|a| a.call == id) { Place::Asked } else { Place::Queued }
    }

    /// What differs from the model, in words.
    fn differs(&self, model: &Model) -> Option<String> {
        let (posture, ask) = (if model.plan { Posture::Plan } else { Posture::Default }, if model.bypass { AskPolicy::Bypass } else { AskPolicy::Ask });
        let status = |s: PlanStatus| match s { PlanStatus::Waiting => Status::Waiting, PlanStatus::Approved => Status::Approved, PlanStatus::Dismissed => Status::Dismissed, PlanStatus::SetAside => Status::SetAside, _ => Status::Superseded };
        let (gate, snap) = (self.engine.gate().stamp(), self.engine.snapshot());
        let same = [
            ("posture", snap.stamp.posture == posture && gate.posture == posture), ("epoch", gate.epoch == u32::from(model.epoch)), ("ask policy", snap.ask == ask),
            ("draining", snap.draining == u32::from(model.draining)), ("duty to tell", self.engine.unannounced == model.untold),
            ("versions", snap.plans.iter().map(|p| status(p.status)).eq(model.versions.iter().flatten().copied())),
            ("response", self.engine.turns.is_working() == model.is_responding() && self.engine.turns.is_busy() == model.has_turn()),
            ("calls", model.made().all(|(i, c)| self.place(i) == c.place)), ("fold", self.fold.seq == snap.seq),
        ];
        let (what, _) = same.iter().find(|(_, same)| !same)?;
        let calls: Vec<Place> = model.made().map(|(i, _)| self.place(i)).collect();
        Some(format!("{what}: the engine has {:?} {gate:?} {:?} draining {} versions {:?} calls {calls:?}, the model {model:?}", snap.stamp, snap.ask, snap.draining, snap.plans.iter().map(|p| p.status).collect::<Vec<_>>()))
    }
}

/// Plays these choices (each a number that picks among what can happen); what went wrong, and the steps so far.
fn fault(choices: &[u64]) -> Option<(String, Vec<Op>)> {
    let mut model = Model::new(Budget { calls: 6, versions: 4, flips: 12, lines: 5, restarts: 2 });
    let (mut real, mut way) = (Real::new(), Vec::new());
    for choice in choices {
        let ops = model.ops();
        if ops.is_empty() { break }
        // A restart ends everything; it comes seldom, so that the rest is reached.
        let mut op = ops[(choice % ops.len() as u64) as usize];
        if op == Op::Restart && choice % 7 > 0 { op = ops[0] }
        let after = model.after(op);
        way.push(op);
        if let Some(broken) = model.broken_by(op, &after) { return Some((broken, way)) }
        real.play(op);
        model = after;
        if let Some(differs) = real.differs(&model) { return Some((differs, way)) }
    }
    (&real.fold != real.engine.snapshot()).then(|| ("the state is not the fold of its events".into(), way))
}

fn history(seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || { state ^= state << 13; state ^= state >> 7; state ^= state << 17; state >> 11 };
    (0..5 + next() % LONGEST).map(|_| next()).collect()
}

#[test]
fn ten_thousand_histories_of_the_engine_are_histories_of_the_model() {
    let mut steps = 0;
    for seed in 1..=CASES {
        let mut choices = history(seed);
        steps += choices.len();
        if fault(&choices).is_none() { continue }
        // Cut down to what is needed.
        loop {
            let before = choices.len();
            for at in (0..before).rev() {
                let mut fewer = choices.clone();
                fewer.remove(at);
                if fault(&fewer).is_some() { choices = fewer }
            }
            if choices.len() == before { break }
        }
        let (what, way) = fault(&choices).unwrap_or_default();
        panic!("seed {seed}: {what}\nhistory: {way:?}");
    }
    println!("{CASES} histories, up to {steps} steps, engine and model agree after each");
}

#[test]
fn each_fault_of_the_model_is_told_from_the_engine() {
    for fault in FAULTS {
        have(Some(fault));
        let seen = (1..=CASES).find(|seed| self::fault(&history(*seed)).is_some());
        have(None);
        assert!(seen.is_some(), "{fault:?}: {CASES} histories do not tell it from the engine");
    }
}
