//! The real gate under random schedules: three racing calls, two doors that flip. `cargo test --no-default-features --features shuttle --lib gate`

use std::sync::Arc as StdArc;

use shuttle::sync::Arc as ShuttleArc;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64 as ShuttleU64, Ordering as O};
use shuttle::thread;

use super::*;

const SCHEDULES: usize = 20_000;

type ShuttleWord = ShuttleArc<ShuttleU64>;

impl Word for ShuttleWord {
    fn holding(content: u64) -> Self { ShuttleArc::new(ShuttleU64::new(content)) }
    fn load(&self) -> u64 { ShuttleU64::load(self, O::SeqCst) }
    fn exchange(&self, now: u64, next: u64) -> Result<u64, u64> { self.compare_exchange(now, next, O::SeqCst, O::SeqCst) }
    fn take_one(&self) { self.fetch_sub(1, O::SeqCst); }
}

type Tried = Gate<ShuttleWord>;
/// How a call begins: the gate's own way, or a wrong one that the harness must catch.
type Begin = fn(&Tried, Permit, &ToolCall) -> Option<Running<ShuttleWord>>;

fn rightly(gate: &Tried, permit: Permit, call: &ToolCall) -> Option<Running<ShuttleWord>> { gate.begin(permit, call).ok() }

/// Wrong: looks, and begins a moment later.
fn check_then_run(gate: &Tried, permit: Permit, _: &ToolCall) -> Option<Running<ShuttleWord>> {
    let stamp = gate.stamp();
    if stamp.posture == Posture::Plan || stamp.epoch != permit.epoch {
        return None;
    }
    gate.word.fetch_add(1, O::SeqCst);
    Some(Running { word: gate.word.clone(), mutating: true })
}

/// Wrong: takes a permit of before the last flips.
fn without_epoch(gate: &Tried, permit: Permit, _: &ToolCall) -> Option<Running<ShuttleWord>> {
    let mut now = gate.word.load();
    drop(permit);
    while unpack(now).posture != Posture::Plan {
        match gate.word.exchange(now, now + 1) {
            Ok(_) => return Some(Running { word: gate.word.clone(), mutating: true }),
            Err(seen) => now = seen,
        }
    }
    None
}

/// Wrong: runs without being counted.
fn uncounted(gate: &Tried, permit: Permit, call: &ToolCall) -> Option<Running<ShuttleWord>> {
    let running = gate.begin(permit, call).ok()?;
    gate.word.take_one();
    std::mem::forget(running);
    Some(Running { word: gate.word.clone(), mutating: false })
}

/// What the threads know beside the gate.
#[derive(Default)]
struct Seen {
    /// Odd from the return of a flip to plan until just before the next flip to default: plan is on for certain.
    window: AtomicU32,
    /// Plan is on for certain and nothing was running.
    quiet: AtomicBool,
    /// Calls that are in the middle of it.
    bodies: AtomicU32,
}

/// How many flips to plan had returned at this reading of the window.
fn plans(window: u32) -> u32 { window.div_ceil(2) }

fn one_call(gate: &Tried, seen: &Seen, id: &str, begin: Begin) {
    let call = ToolCall { stamp: gate.stamp(), ..call(id) };
    let Some(permit) = permit(gate, &call, Effect::Files) else { return };
    let judged = seen.window.load(O::SeqCst);
    thread::yield_now();
    let before = seen.window.load(O::SeqCst);
    let Some(running) = begin(gate, permit, &call) else { return };
    assert!(before % 2 == 0 || seen.window.load(O::SeqCst) != before, "a call began while plan mode was on");
    assert_eq!(plans(before), plans(judged), "a permit outlived a flip to plan");
    seen.bodies.fetch_add(1, O::SeqCst);
    for _ in 0..2 {
        assert!(!seen.quiet.load(O::SeqCst), "a call runs although plan mode is on and nothing was draining");
        thread::yield_now();
    }
    seen.bodies.fetch_sub(1, O::SeqCst);
    drop(running);
}

/// Plan, until nothing drains (or patience ends), default, and plan again.
fn person(gate: &Tried, seen: &Seen) {
    for round in 0..2 {
        let (stamp, draining) = gate.flip(Posture::Plan);
        assert!(stamp.posture == Posture::Plan && draining <= 3);
        seen.window.fetch_add(1, O::SeqCst);
        for _ in 0..4 {
            if gate.running() == 0 {
                seen.quiet.store(true, O::SeqCst);
                assert_eq!(seen.bodies.load(O::SeqCst), 0, "nothing drains and yet a call runs");
                break;
            }
            thread::yield_now();
        }
        thread::yield_now();
        assert_eq!(gate.stamp().posture, Posture::Plan, "nobody else loosens");
        if round == 0 {
            seen.quiet.store(false, O::SeqCst);
            seen.window.fetch_add(1, O::SeqCst);
            gate.flip(Posture::Default);
            thread::yield_now();
        }
    }
}

fn race(begin: Begin) {
    let gate = Tried::over(Stamp::default());
    let seen = StdArc::new(Seen::default());
    let mut threads = Vec::new();
    for id in ["a", "b", "c"] {
        let (gate, seen) = (gate.clone(), seen.clone());
        threads.push(thread::spawn(move || one_call(&gate, &seen, id, begin)));
    }
    let (first, knows) = (gate.clone(), seen.clone());
    threads.push(thread::spawn(move || person(&first, &knows)));
    // Another door that only tightens.
    let second = gate.clone();
    threads.push(thread::spawn(move || { second.flip(Posture::Plan); }));
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!((gate.running(), gate.stamp().posture), (0, Posture::Plan));
}

#[test]
fn twenty_thousand_schedules_hold() { shuttle::check_random(|| race(rightly), SCHEDULES) }

#[test]
#[should_panic(expected = "a call")]
fn a_gate_that_checks_and_then_runs_is_caught() { shuttle::check_random(|| race(check_then_run), SCHEDULES) }

#[test]
#[should_panic(expected = "a permit outlived a flip to plan")]
fn a_gate_that_forgets_the_epoch_is_caught() { shuttle::check_random(|| race(without_epoch), SCHEDULES) }

#[test]
#[should_panic(expected = "a call")]
fn a_gate_that_does_not_count_is_caught() { shuttle::check_random(|| race(uncounted), SCHEDULES) }
