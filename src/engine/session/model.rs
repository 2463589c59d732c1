//! A small model of posture, calls, questions, plans, failed writes and restarts, written from what is promised. Every state within its
//! bounds is visited, each promise looked at on each step; `lockstep` holds the engine itself against it.

use std::cell::Cell;
use std::collections::HashMap;

/// One condition of the model turned round: the promises, and the engine beside it, must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    BeginsInPlan,
    BeginsStale,
    ForgetsWhereItWasMade,
    AsksNobody,
    LoosensUnwritten,
    RestartLoosens,
    RestartKeepsBypass,
    RunsBeforeAnybodyIsTold,
    HidesWhatStillRuns,
    EntersLater,
    TwoWait,
    YesOutlivesARestart,
}

/// All of them.
pub(super) const FAULTS: [Fault; 12] = [
    Fault::BeginsInPlan, Fault::BeginsStale, Fault::ForgetsWhereItWasMade, Fault::AsksNobody, Fault::LoosensUnwritten, Fault::RestartLoosens, Fault::RestartKeepsBypass,
    Fault::RunsBeforeAnybodyIsTold, Fault::HidesWhatStillRuns, Fault::EntersLater, Fault::TwoWait, Fault::YesOutlivesARestart,
];

thread_local! { static FAULT: Cell<Option<Fault>> = const { Cell::new(None) } }

/// This test's thread has this fault from now on.
pub(super) fn have(fault: Option<Fault>) { FAULT.set(fault) }

fn has(fault: Fault) -> bool { FAULT.get() == Some(fault) }

/// Calls of one history at most.
pub(super) const CALLS: usize = 6;
/// Versions of one history at most.
pub(super) const VERSIONS: usize = 4;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Read,
    Write,
    /// Cannot be undone: a screen is asked whatever the mode.
    Shred,
    /// Presents a plan.
    Present,
}

impl Kind {
    pub(super) fn changes(self) -> bool { matches!(self, Kind::Write | Kind::Shred) }
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Queued,
    /// A question about it is open.
    Asked,
    /// It waits for a screen.
    Parked,
    /// It may begin.
    Permitted,
    Running,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub kind: Kind,
    pub place: Place,
    /// Composed in plan mode.
    plan: bool,
    /// Composed while changes were asked about.
    asking: bool,
    /// A person said yes to it.
    yes: bool,
    /// Epoch of its permit.
    epoch: u8,
    turn: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Turn {
    id: u8,
    responding: bool,
    plan: bool,
    asking: bool,
    called: bool,
    presented: bool,
    abandoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Status { Waiting, Approved, Dismissed, SetAside, Superseded }

/// A short list of small numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Line { len: u8, items: [u8; CALLS] }

impl Line {
    fn iter(&self) -> impl Iterator<Item = u8> + '_ { self.items[..self.len as usize].iter().copied() }
    fn of(items: impl Iterator<Item = u8>) -> Line { items.fold(Line::default(), |mut l, i| { l.items[l.len as usize] = i; l.len += 1; l }) }
    fn push(&mut self, i: u8) { *self = Line::of(self.iter().chain([i])) }
    fn push_front(&mut self, i: u8) { *self = Line::of([i].into_iter().chain(self.iter())) }
    fn pop(&mut self) -> Option<u8> { let first = self.iter().next()?; *self = Line::of(self.iter().skip(1)); Some(first) }
    fn remove(&mut self, i: u8) { *self = Line::of(self.iter().filter(|x| *x != i)) }
}

/// What can still happen in a bounded history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub calls: u8,
    pub versions: u8,
    pub flips: u8,
    pub lines: u8,
    pub restarts: u8,
}

/// What happens. A flag says whether the log took the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Enter,
    Leave(bool),
    Approve(bool),
    Dismiss,
    Bypass(bool),
    Default(bool),
    /// A person's line: the agent gets a turn.
    Say,
    Call(Kind),
    /// The agent's response is whole.
    Done,
    /// The runner begins what was permitted.
    Begin,
    /// What runs has ended.
    Finish,
    Answer(u8, bool),
    Restart,
    /// Somebody was told of the restored mode.
    Announced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Model {
    pub plan: bool,
    pub bypass: bool,
    pub epoch: u8,
    pub untold: bool,
    pub draining: u8,
    turn: Option<Turn>,
    waiting_turns: u8,
    turns: u8,
    pub calls: [Option<Call>; CALLS],
    lane: Line,
    parked: Line,
    pub versions: [Option<Status>; VERSIONS],
    left: Budget,
}

impl Model {
    pub(super) fn new(left: Budget) -> Self {
        Self { plan: false, bypass: false, epoch: 0, untold: false, draining: 0, turn: None, waiting_turns: 0, turns: 0, calls: [None; CALLS], lane: Line::default(), parked: Line::default(), versions: [None; VERSIONS], left }
    }

    pub(super) fn is_responding(&self) -> bool { self.turn.is_some_and(|t| t.responding) }
    pub(super) fn has_turn(&self) -> bool { self.turn.is_some() || self.waiting_turns > 0 }
    pub(super) fn made(&self) -> impl Iterator<Item = (u8, Call)> + '_ { self.calls.iter().enumerate().filter_map(|(i, c)| c.map(|c| (i as u8, c))) }
    fn at(&self, place: Place) -> Option<u8> { self.made().find(|(_, c)| c.place == place).map(|(i, _)| i) }
    fn running_changes(&self) -> u8 { self.made().filter(|(_, c)| c.place == Place::Running && c.kind.changes()).count() as u8 }
    fn newest(&self) -> Option<(usize, Status)> { self.versions.iter().enumerate().filter_map(|(n, v)| v.map(|v| (n, v))).last() }
    fn waiting(&self) -> Option<usize> { self.versions.iter().position(|v| *v == Some(Status::Waiting)) }

    /// Everything that can happen here and changes something.
    pub(super) fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.left.flips > 0 {
            if self.plan { ops.extend([Op::Leave(true), Op::Leave(false)]) } else { ops.push(Op::Enter) }
            if self.waiting().is_some() { ops.extend([Op::Approve(true), Op::Approve(false)]) }
            if !self.bypass { ops.extend([Op::Bypass(true), Op::Bypass(false)]) } else { ops.extend([Op::Default(true), Op::Default(false)]) }
        }
        if self.waiting().is_some() { ops.push(Op::Dismiss) }
        if self.left.lines > 0 { ops.push(Op::Say) }
        if self.is_responding() {
            ops.push(Op::Done);
            if self.left.calls > 0 {
                ops.extend([Op::Call(Kind::Read), Op::Call(Kind::Write), Op::Call(Kind::Shred)]);
                if self.left.versions > 0 { ops.push(Op::Call(Kind::Present)) }
            }
        }
        if self.at(Place::Permitted).is_some() { ops.push(Op::Begin) }
        if self.at(Place::Running).is_some() { ops.push(Op::Finish) }
        ops.extend(self.made().filter(|(_, c)| matches!(c.place, Place::Asked | Place::Parked)).flat_map(|(i, _)| [Op::Answer(i, true), Op::Answer(i, false)]));
        if self.left.restarts > 0 { ops.push(Op::Restart) }
        if self.untold { ops.push(Op::Announced) }
        ops
    }

    pub(super) fn after(mut self, op: Op) -> Model {
        match op {
            Op::Enter => { self.left.flips -= 1; self.enter() }
            Op::Leave(logged) => { self.left.flips -= 1; self.leave(logged) }
            Op::Default(logged) => {
                self.left.flips -= 1;
                self.bypass = false;
                if self.plan { self.leave(logged) }
            }
            Op::Bypass(logged) => { self.left.flips -= 1; self.bypass = logged }
            Op::Approve(logged) => { self.left.flips -= 1; self.approve(logged) }
            Op::Dismiss => if let Some(n) = self.waiting() { self.versions[n] = Some(Status::Dismissed) },
            Op::Say => { self.left.lines -= 1; self.say() }
            Op::Call(kind) => self.call(kind),
            Op::Done => if let Some(t) = &mut self.turn { t.responding = false },
            Op::Begin => self.begin(),
            Op::Finish => self.finish(),
            Op::Answer(i, yes) => self.answer(i, yes),
            Op::Restart => self.restart(),
            Op::Announced => self.untold = false,
        }
        self.settle();
        self
    }

    /// Tightening holds at once, for everything that has not begun.
    fn enter(&mut self) {
        if self.plan { return }
        if has(Fault::EntersLater) { return }
        (self.plan, self.epoch) = (true, self.epoch.wrapping_add(1));
        self.draining = if has(Fault::HidesWhatStillRuns) { 0 } else { self.running_changes() };
        if let Some(asked) = self.at(Place::Asked) {
            self.put(asked, Place::Queued);
            self.lane.push_front(asked);
        }
        while let Some(i) = self.parked.pop() {
            self.put(i, Place::Queued);
            self.lane.push(i);
        }
        if let Some((n, Status::SetAside)) = self.newest() { self.versions[n] = Some(Status::Waiting) }
    }

    fn leave(&mut self, logged: bool) {
        if !self.plan { return }
        let aside = self.waiting();
        if !logged && !has(Fault::LoosensUnwritten) { return self.not_logged() }
        if let Some(n) = aside { self.versions[n] = Some(Status::SetAside) }
        self.loosen();
    }

    fn loosen(&mut self) {
        (self.plan, self.draining, self.epoch) = (false, 0, self.epoch.wrapping_add(1));
    }

    /// What could not be written does not hold: plan mode stays on, and changes are asked about.
    fn not_logged(&mut self) {
        self.bypass = false;
        self.draining = self.running_changes();
        // A version that was set aside before waits again, as on every return to plan mode.
        if let Some((n, Status::SetAside)) = self.newest() { self.versions[n] = Some(Status::Waiting) }
    }

    fn approve(&mut self, logged: bool) {
        let Some(n) = self.waiting() else { return };
        self.versions.iter_mut().for_each(|v| if *v == Some(Status::Approved) { *v = Some(Status::Superseded) });
        if self.plan {
            if !logged {
                self.bypass = false;
                self.draining = self.running_changes();
                return;
            }
            self.bypass = false;
            self.loosen();
        }
        self.versions[n] = Some(Status::Approved);
        self.more_turns();
    }

    fn more_turns(&mut self) { self.waiting_turns = (self.waiting_turns + 1).min(8) }

    /// Talk of something else: the question steps aside for a screen, the turn is over, what waits in it is not run.
    fn say(&mut self) {
        if let Some(asked) = self.at(Place::Asked) { self.park(asked) }
        if let Some(t) = &mut self.turn {
            (t.abandoned, t.responding) = (true, false);
            while let Some(i) = self.lane.pop() { self.end(i) }
        }
        self.more_turns();
    }

    fn call(&mut self, kind: Kind) {
        let Some(t) = &mut self.turn else { return };
        t.called = true;
        let call = Call { kind, place: Place::Queued, plan: t.plan, asking: t.asking, yes: false, epoch: 0, turn: t.id };
        let Some(i) = self.calls.iter().position(Option::is_none) else { return };
        self.calls[i] = Some(call);
        self.left.calls -= 1;
        if kind == Kind::Present { self.left.versions -= 1 }
        self.lane.push(i as u8);
    }

    /// The permit is used up: what changes something begins only in the epoch it was given in.
    fn begin(&mut self) {
        let Some(i) = self.at(Place::Permitted) else { return };
        let Some(call) = self.calls[i as usize] else { return };
        if call.kind.changes() && (self.plan && !has(Fault::BeginsInPlan) || call.epoch != self.epoch && !has(Fault::BeginsStale) && !(self.plan && has(Fault::BeginsInPlan))) { self.end(i) } else { self.put(i, Place::Running) }
    }

    fn finish(&mut self) {
        let Some(i) = self.at(Place::Running) else { return };
        if self.calls[i as usize].is_some_and(|c| c.kind == Kind::Present) {
            if !has(Fault::TwoWait) { self.versions.iter_mut().for_each(|v| if matches!(v, Some(Status::Waiting | Status::SetAside)) { *v = Some(Status::Superseded) }) }
            if let Some(n) = self.versions.iter().position(Option::is_none) { self.versions[n] = Some(Status::Waiting) }
            if let Some(t) = &mut self.turn { t.presented = true }
        }
        self.end(i);
    }

    fn answer(&mut self, i: u8, yes: bool) {
        self.parked.remove(i);
        if !yes { return self.end(i) }
        if let Some(call) = &mut self.calls[i as usize] { (call.yes, call.place) = (true, Place::Queued) }
        self.lane.push_front(i);
    }

    /// Plan mode comes back and is told before anything runs; nothing looser does, and nothing is tried again.
    fn restart(&mut self) {
        self.left.restarts -= 1;
        self.bypass &= has(Fault::RestartKeepsBypass);
        self.plan &= !has(Fault::RestartLoosens);
        self.untold = self.plan;
        (self.turn, self.waiting_turns, self.lane, self.parked, self.draining) = (None, 0, Line::default(), Line::default(), 0);
        self.calls.iter_mut().flatten().for_each(|c| if !(has(Fault::YesOutlivesARestart) && c.yes) { c.place = Place::Ended });
    }

    fn put(&mut self, i: u8, place: Place) { if let Some(call) = &mut self.calls[i as usize] { call.place = place } }

    fn park(&mut self, i: u8) {
        self.put(i, Place::Parked);
        self.parked.push(i);
    }

    /// A call ends once. One that outlived its turn gives the agent another.
    fn end(&mut self, i: u8) {
        let Some(call) = &mut self.calls[i as usize] else { return };
        call.place = Place::Ended;
        if self.turn.is_none_or(|t| t.id != call.turn) { self.more_turns() }
    }

    fn settle(&mut self) {
        loop {
            let before = *self;
            while self.at(Place::Asked).is_none() && self.at(Place::Permitted).is_none() && self.at(Place::Running).is_none() && (!self.untold || has(Fault::RunsBeforeAnybodyIsTold)) {
                let Some(i) = self.lane.pop() else { break };
                self.judge(i);
            }
            self.turns_go_on();
            if let Some(i) = self.at(Place::Asked).filter(|i| self.calls[*i as usize].is_some_and(|c| c.kind == Kind::Shred)) { self.park(i) }
            if self.plan && self.draining > 0 && self.running_changes() == 0 { self.draining = 0 }
            if *self == before { return }
        }
    }

    fn judge(&mut self, i: u8) {
        let Some(call) = self.calls[i as usize] else { return };
        if call.kind.changes() && (self.turn.is_some_and(|t| t.presented) || self.plan || call.plan && !has(Fault::ForgetsWhereItWasMade)) { return self.end(i) }
        let asks = match call.kind { Kind::Read | Kind::Present => false, Kind::Write => call.asking || !self.bypass, Kind::Shred => true };
        self.put(i, if asks && !call.yes && !has(Fault::AsksNobody) { Place::Asked } else { Place::Permitted });
        if let Some(call) = &mut self.calls[i as usize] { call.epoch = self.epoch }
    }

    fn turns_go_on(&mut self) {
        let (plan, asking) = (self.plan, !self.bypass);
        if let Some(t) = self.turn {
            let open: Vec<Place> = self.made().filter(|(_, c)| c.turn == t.id && c.place != Place::Ended).map(|(_, c)| c.place).collect();
            if t.responding || !open.iter().all(|p| *p == Place::Parked) { return }
            let goes_on = t.called && open.is_empty() && !t.presented && !t.abandoned;
            self.turn = goes_on.then_some(Turn { responding: true, called: false, plan, asking, ..t });
        }
        if self.turn.is_none() && self.waiting_turns > 0 {
            self.waiting_turns -= 1;
            self.turns += 1;
            self.turn = Some(Turn { id: self.turns, responding: true, plan, asking, called: false, presented: false, abandoned: false });
        }
    }

    /// What is promised of each step; what is broken, in words.
    pub(super) fn broken_by(&self, op: Op, after: &Model) -> Option<String> {
        let rules: [(bool, &str); 11] = [
            (self.plan && !after.plan && !matches!(op, Op::Leave(true) | Op::Approve(true) | Op::Default(true)), "plan mode was left by nobody's written decision"),
            (!self.bypass && after.bypass && op != Op::Bypass(true), "asking ended by nobody's written decision"),
            (op == Op::Enter && !after.plan, "entering did not hold at once"),
            (op == Op::Restart && (after.plan != self.plan || after.bypass || after.untold != self.plan), "a restart loosened, or forgot to tell"),
            (op == Op::Restart && after.made().any(|(_, c)| c.place != Place::Ended), "a call outlived a restart"),
            (after.untold && after.made().any(|(_, c)| matches!(c.place, Place::Permitted | Place::Running)), "something runs before anybody was told"),
            (after.plan && after.draining == 0 && after.running_changes() > 0, "something still changes and nobody is told"),
            (after.made().filter(|(_, c)| matches!(c.place, Place::Permitted | Place::Running)).count() > 1, "two calls run"),
            (after.made().filter(|(_, c)| c.place == Place::Asked).count() > 1, "two questions are open"),
            ([Status::Waiting, Status::Approved].iter().any(|s| after.versions.iter().filter(|v| **v == Some(*s)).count() > 1), "two versions wait, or are carried out"),
            (after.lane.len > 0 && !after.untold && after.made().all(|(_, c)| !matches!(c.place, Place::Asked | Place::Permitted | Place::Running)), "a call waits for nothing"),
        ];
        let of_call = |(i, now): (u8, Call)| -> Option<&str> {
            let was = self.calls[i as usize].map(|c| c.place);
            let begins = now.place == Place::Running && was != Some(Place::Running);
            if was == Some(Place::Ended) && now.place != Place::Ended { return Some("an ended call came back") }
            if !begins || !now.kind.changes() { return None }
            if self.plan || now.plan { return Some("a change began in plan mode, or was composed there") }
            if !now.yes && (now.kind == Kind::Shred || now.asking) { return Some("a change began that nobody said yes to") }
            if was != Some(Place::Permitted) || now.epoch != self.epoch { return Some("a change began without a permit of this epoch") }
            None
        };
        rules.iter().find(|r| r.0).map(|r| r.1).or_else(|| after.made().find_map(of_call)).map(|what| format!("{what}: {op:?}\nbefore {self:?}\nafter {after:?}"))
    }
}

/// Visits every state from `start` on; answers how many there are, how many steps, and how many whole histories. What breaks a promise
/// is answered with the way there.
fn explore(start: Model) -> Result<(usize, u64, u128), String> {
    /// Histories from here; the way so far is the recursion.
    fn walk(from: Model, seen: &mut HashMap<Model, u128>, steps: &mut u64, way: &mut Vec<Op>) -> Result<u128, String> {
        if let Some(known) = seen.get(&from) { return Ok(*known) }
        let mut histories = 0;
        for op in from.ops() {
            let after = from.after(op);
            *steps += 1;
            way.push(op);
            if let Some(broken) = from.broken_by(op, &after) { return Err(format!("{broken}\nway: {way:?}")) }
            if after != from { histories += walk(after, seen, steps, way)? }
            way.pop();
        }
        let histories = histories.max(1);
        seen.insert(from, histories);
        Ok(histories)
    }
    let (mut seen, mut steps) = (HashMap::new(), 0);
    let histories = walk(start, &mut seen, &mut steps, &mut Vec::new())?;
    Ok((seen.len(), steps, histories))
}

/// `VOXGATE_MODEL=calls,versions,flips,lines,restarts` sets other bounds (the long form: 3,1,3,1,1).
#[test]
fn every_state_of_the_model_keeps_what_is_promised() {
    let given = std::env::var("VOXGATE_MODEL").ok().map(|v| v.split(',').filter_map(|n| n.parse().ok()).collect::<Vec<u8>>());
    let bounds = given.unwrap_or_else(|| vec![2, 1, 3, 1, 1]);
    let [calls, versions, flips, lines, restarts] = bounds[..] else { panic!("five numbers: calls, versions, flips, lines, restarts") };
    // A response is under way when it begins, so that one line is for talk of something else.
    let start = Model::new(Budget { calls, versions, flips, lines: lines + 1, restarts }).after(Op::Say);
    let (states, steps, histories) = explore(start).unwrap_or_else(|broken| panic!("{broken}"));
    println!("{calls} calls, {versions} versions, {flips} changes of mode, {lines} lines, {restarts} restarts: {states} states, {steps} steps, {histories} interleavings");
    assert!(states > 10_000 && histories > 1_000_000, "too little was visited: {states} states, {histories} histories");
}

#[test]
fn each_fault_of_the_model_breaks_a_promise() {
    for fault in FAULTS {
        have(Some(fault));
        let start = Model::new(Budget { calls: 2, versions: 2, flips: 3, lines: 1, restarts: 1 }).after(Op::Say);
        let broken = explore(start);
        have(None);
        assert!(broken.is_err(), "{fault:?} is not noticed");
    }
}
