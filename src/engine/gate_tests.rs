//! Every condition of the gate by itself, and the whole of it under a scheduler that tries many interleavings.

use serde_json::{Value, json};

use super::*;

fn spec(effect: Effect) -> ToolSpec {
    ToolSpec {
        name: "t".into(), description: String::new(), parameters: json!({}), effect, tier: None, irreversible: false, needs_person: false, ask: None, step: None, display: "T".into(),
    }
}

fn call_of(id: &str, arguments: Value, stamp: Stamp) -> ToolCall { ToolCall { id: id.into(), tool: "t".into(), arguments, stamp } }

fn call(id: &str) -> ToolCall { call_of(id, json!({"n": 1}), Stamp::default()) }

fn plan(epoch: u32) -> Stamp { Stamp { epoch, posture: Posture::Plan } }

fn loose() -> Policy<'static> { Policy { autonomy: Autonomy::Loose, ..Policy::default() } }

fn word_of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow(_) => "allow",
        Verdict::Ask { screen_only: false } => "ask",
        Verdict::Ask { screen_only: true } => "screen",
        Verdict::Refuse(refusal) => refusal.code,
    }
}

fn yes_to(call: &ToolCall) -> Approval { Approval { request: "q".into(), call: call.id.clone(), hash: call.hash() } }

fn permit<W: Word>(gate: &Gate<W>, call: &ToolCall, effect: Effect) -> Option<Permit> {
    match gate.judge(call, Some(&spec(effect)), loose(), None) {
        Verdict::Allow(permit) => Some(permit),
        _ => None,
    }
}

const ALL: [Effect; 7] = [Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown];
const POLICIES: [AskPolicy; 3] = [AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse];
const LEVELS: [Autonomy; 3] = [Autonomy::Strict, Autonomy::Hybrid, Autonomy::Loose];

#[test]
fn plan_lets_only_what_changes_nothing_through_whatever_else_says_yes() {
    for (now, made) in [(plan(1), plan(1)), (plan(1), Stamp::default()), (Stamp { epoch: 2, posture: Posture::Default }, plan(1))] {
        let gate = Gate::new(now);
        for effect in ALL {
            for (irreversible, needs_person) in [(false, false), (true, false), (false, true)] {
                for (autonomy, ask) in LEVELS.iter().flat_map(|a| POLICIES.iter().map(move |p| (*a, *p))) {
                    for tier in [None, Some(Tier::Safe), Some(Tier::Deny)] {
                        let spec = ToolSpec { irreversible, needs_person, tier, ..spec(effect) };
                        let call = call_of("c", json!({}), made);
                        let verdict = word_of(&gate.judge(&call, Some(&spec), Policy { autonomy, ask, ..Policy::default() }, Some(&yes_to(&call))));
                        let safe = effect.is_plan_safe() && !irreversible && !needs_person;
                        assert_eq!(verdict == "plan_mode_blocked", !safe, "{spec:?} {verdict}");
                        assert!(!safe || verdict == if tier == Some(Tier::Deny) { "policy_denied" } else { "allow" }, "{spec:?} {verdict}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_unknown_tool_never_runs() {
    for (now, made, code) in [
        (plan(1), plan(1), "plan_mode_blocked"), (plan(1), Stamp::default(), "plan_mode_blocked"), (Stamp::default(), plan(1), "plan_mode_blocked"),
        (Stamp::default(), Stamp::default(), "unknown_tool"),
    ] {
        let call = call_of("c", json!({}), made);
        for policy in POLICIES.map(|ask| Policy { autonomy: Autonomy::Loose, ask, ..Policy::default() }) {
            assert_eq!(word_of(&Gate::new(now).judge(&call, None, policy, Some(&yes_to(&call)))), code);
        }
    }
}

#[test]
fn outside_plan_mode_the_policy_decides() {
    let gate = Gate::default();
    let said = |spec: &ToolSpec, autonomy, ask| word_of(&gate.judge(&call("c"), Some(spec), Policy { autonomy, ask, ..Policy::default() }, None));
    for effect in ALL {
        let asked = |asks: bool| if asks { "ask" } else { "allow" };
        assert_eq!(said(&spec(effect), Autonomy::Hybrid, AskPolicy::Ask), asked(!effect.is_plan_safe()), "{effect:?}");
        assert_eq!(said(&spec(effect), Autonomy::Strict, AskPolicy::Ask), asked(!effect.is_plan_safe()), "{effect:?}");
        assert_eq!(said(&spec(effect), Autonomy::Loose, AskPolicy::Ask), "allow", "{effect:?}");
        assert_eq!(said(&spec(effect), Autonomy::Strict, AskPolicy::Bypass), "allow", "{effect:?}");
        assert_eq!(said(&spec(effect), Autonomy::Hybrid, AskPolicy::Refuse), "allow", "{effect:?}: as bypass");
        for (autonomy, ask) in LEVELS.iter().flat_map(|a| POLICIES.iter().map(move |p| (*a, *p))) {
            let denied = ToolSpec { tier: Some(Tier::Deny), ..spec(effect) };
            assert_eq!(word_of(&gate.judge(&call("c"), Some(&denied), Policy { autonomy, ask, ..Policy::default() }, Some(&yes_to(&call("c"))))), "policy_denied");
            let for_ever = ToolSpec { irreversible: true, tier: Some(Tier::Safe), ..spec(effect) };
            assert_eq!(said(&for_ever, autonomy, ask), if ask == AskPolicy::Refuse { "nobody_to_ask" } else { "screen" });
            let marked = ToolSpec { needs_person: true, tier: Some(Tier::Safe), ..spec(effect) };
            assert_eq!(said(&marked, autonomy, ask), match ask { AskPolicy::Ask | AskPolicy::Bypass => "ask", AskPolicy::Refuse => "nobody_to_ask" });
        }
    }
    let safe = ToolSpec { tier: Some(Tier::Safe), ..spec(Effect::Files) };
    assert_eq!([said(&safe, Autonomy::Strict, AskPolicy::Ask), said(&safe, Autonomy::Hybrid, AskPolicy::Ask)], ["ask", "allow"]);
}

#[test]
fn a_yes_is_to_one_call_with_these_arguments() {
    let gate = Gate::default();
    let said = |given: &Approval| word_of(&gate.judge(&call("c"), Some(&spec(Effect::Files)), Policy::default(), Some(given)));
    assert_eq!(said(&yes_to(&call("c"))), "allow");
    assert_eq!(said(&Approval { call: "d".into(), ..yes_to(&call("c")) }), "ask");
    assert_eq!(said(&yes_to(&call_of("c", json!({"n": 2}), Stamp::default()))), "ask");
    let for_ever = ToolSpec { irreversible: true, ..spec(Effect::Files) };
    assert_eq!(word_of(&gate.judge(&call("c"), Some(&for_ever), Policy::default(), Some(&yes_to(&call("c"))))), "allow");
}

#[test]
fn a_permit_begins_the_call_it_was_given_for() {
    let gate = Gate::default();
    for other in [call("d"), call_of("c", json!({"n": 2}), Stamp::default()), ToolCall { tool: "u".into(), ..call("c") }] {
        for effect in [Effect::Read, Effect::Files] {
            let begun = permit(&gate, &call("c"), effect).map(|p| gate.begin(p, &other).map(|_| ()).map_err(|r| r.code));
            assert_eq!(begun, Some(Err("arguments_changed")));
        }
    }
    assert_eq!(gate.running(), 0);
}

#[test]
fn running_counts_what_may_change_something_until_it_has_ended() {
    let gate = Gate::default();
    let begin = |id: &str, effect| permit(&gate, &call(id), effect).and_then(|p| gate.begin(p, &call(id)).ok());
    let (a, b, reader) = (begin("a", Effect::Files), begin("b", Effect::Unknown), begin("r", Effect::Read));
    assert!(a.is_some() && b.is_some() && reader.is_some());
    assert_eq!(gate.running(), 2);
    drop(reader);
    assert_eq!(gate.running(), 2);
    assert_eq!(gate.flip(Posture::Plan), (plan(1), 2));
    assert_eq!(gate.flip(Posture::Plan), (plan(1), 2), "no change, no new epoch");
    drop(a);
    assert_eq!((gate.running(), gate.stamp()), (1, plan(1)));
    assert_eq!(gate.flip(Posture::Default), (Stamp { epoch: 2, posture: Posture::Default }, 1));
    drop(b);
    assert_eq!((gate.running(), gate.stamp().epoch), (0, 2));
}

#[test]
fn a_flip_voids_the_permits_of_what_may_change_something() {
    let gate = Gate::default();
    let permits = || [permit(&gate, &call("w"), Effect::Files), permit(&gate, &call("w"), Effect::Host), permit(&gate, &call("r"), Effect::Read)].map(|p| p.unwrap_or_else(|| unreachable!()));
    let [early, late, reading] = permits();
    gate.flip(Posture::Plan);
    assert_eq!(gate.begin(early, &call("w")).map(|_| ()).map_err(|r| r.code), Err("plan_mode_blocked"));
    assert!(gate.begin(reading, &call("r")).is_ok(), "looking is not stopped");
    gate.flip(Posture::Default);
    assert_eq!(gate.begin(late, &call("w")).map(|_| ()).map_err(|r| r.code), Err("stale_permit"));
    assert_eq!(gate.running(), 0);
    let [fresh, ..] = permits();
    assert!(gate.begin(fresh, &call("w")).is_ok());
}

#[test]
fn the_epoch_turns_over_without_touching_posture_or_count() {
    let gate = Gate::new(Stamp { epoch: 0x7fff_ffff, posture: Posture::Default });
    let begun = permit(&gate, &call("a"), Effect::Files).and_then(|p| gate.begin(p, &call("a")).ok());
    assert!(begun.is_some());
    assert_eq!(gate.flip(Posture::Plan).0.posture, Posture::Plan);
    assert_eq!((gate.stamp(), gate.running()), (plan(0), 1));
    gate.flip(Posture::Default);
    assert_eq!((gate.stamp().posture, gate.running()), (Posture::Default, 1));
}

/// Two blanket rules fit a type that is `Clone`, so this names `Permit` only while it is not.
#[test]
fn a_permit_cannot_be_copied() {
    trait OnlyOnce<Why> { fn holds() -> bool { true } }
    struct Cloned;
    impl<T> OnlyOnce<()> for T {}
    impl<T: Clone> OnlyOnce<Cloned> for T {}
    assert!(<Permit as OnlyOnce<_>>::holds() && <Running as OnlyOnce<_>>::holds());
}

#[cfg(feature = "shuttle")]
#[path = "gate_schedules.rs"]
mod schedules;
