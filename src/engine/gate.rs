//! The gate: one small value, shared by everything that could start a tool, that says whether a call may begin *now*.
//!
//! Posture, epoch and the count of running mutating calls live in one atomic word, so a flip and a beginning can never
//! interleave wrongly and neither ever waits for the other. Only this file makes a [`Permit`]; running consumes it.
//!
//! The word's home is a type parameter, so that tests run this very code on a scheduler's atomics (feature `shuttle`); everybody
//! else writes [`Gate`] and gets the standard ones, with the feature or without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::facts::{Facts, facts_of};
use super::guard::Guard;
use super::id::{CallId, QuestionId};
use super::mode::{AskPolicy, Autonomy, Posture, Stamp};
use super::rules::{Rules, Ruling};
use super::tool::{CallHash, Effect, Tier, ToolCall, ToolSpec};

/// Bit 63: plan. Bits 32..=62: epoch. Bits 0..=31: running mutating calls.
const PLAN: u64 = 1 << 63;
const EPOCH_SHIFT: u32 = 32;
const EPOCH_MASK: u64 = 0x7fff_ffff;
const COUNT_MASK: u64 = 0xffff_ffff;

/// Why the gate said no.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Stable code: `plan_mode_blocked`, `guarded`, `policy_denied`, `unknown_tool`, `nobody_to_ask`, `stale_permit`, `arguments_changed`.
    pub code: &'static str,
    /// For the agent and the person.
    pub message: String,
    /// Class of the refused call.
    pub effect: Effect,
}

/// What the gate says to a call.
#[derive(Debug)]
pub enum Verdict {
    /// It may run; the permit must be handed to the runner.
    Allow(Permit),
    /// A person has to be asked first.
    Ask {
        /// True when only a screen may answer (irreversible).
        screen_only: bool,
    },
    /// No.
    Refuse(Refusal),
}

/// A person's yes to exactly one call. Made by the engine when a question is answered; bound to id and arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub(super) request: QuestionId,
    pub(super) call: CallId,
    pub(super) hash: CallHash,
}

/// The right to begin one call once. Not `Clone`; made here and nowhere else; consumed by [`Gate::begin`].
#[derive(Debug)]
pub struct Permit {
    call: CallId,
    hash: CallHash,
    effect: Effect,
    /// It changes nothing and bears no mark: it may begin in any posture.
    safe: bool,
    epoch: u32,
}

impl Permit {
    /// Class of the call.
    pub fn effect(&self) -> Effect { self.effect }
}

/// Where a gate keeps its word: an atomic that clones share, sequentially consistent in everything.
pub trait Word: Clone {
    /// A word of its own with this content.
    fn holding(content: u64) -> Self;
    /// What it holds.
    fn load(&self) -> u64;
    /// Puts `next` in if it still holds `now`.
    ///
    /// # Errors
    /// What it holds instead.
    fn exchange(&self, now: u64, next: u64) -> Result<u64, u64>;
    /// Takes one away.
    fn take_one(&self);
}

impl Word for Arc<AtomicU64> {
    fn holding(content: u64) -> Self { Arc::new(AtomicU64::new(content)) }
    fn load(&self) -> u64 { AtomicU64::load(self, Ordering::SeqCst) }
    fn exchange(&self, now: u64, next: u64) -> Result<u64, u64> { self.compare_exchange(now, next, Ordering::SeqCst, Ordering::SeqCst) }
    fn take_one(&self) { self.fetch_sub(1, Ordering::SeqCst); }
}

/// A call that has begun. Dropping it says the call has ended, whatever way it ended.
#[derive(Debug)]
pub struct Running<W: Word = Arc<AtomicU64>> {
    word: W,
    mutating: bool,
}

impl<W: Word> Drop for Running<W> {
    fn drop(&mut self) {
        if self.mutating {
            self.word.take_one();
        }
    }
}

/// See the file's head. Clones share one state.
#[derive(Clone, Debug)]
pub struct Gate<W: Word = Arc<AtomicU64>> {
    word: W,
}

impl Default for Gate {
    fn default() -> Self { Self::new(Stamp::default()) }
}

impl Gate {
    /// A gate in this posture with nothing running.
    pub fn new(stamp: Stamp) -> Self { Self::over(stamp) }
}

impl<W: Word> Gate<W> {
    /// A gate over any kind of word.
    fn over(stamp: Stamp) -> Self { Self { word: W::holding(pack(stamp)) } }

    /// Posture and epoch now.
    pub fn stamp(&self) -> Stamp { unpack(self.word.load()) }

    /// How many mutating calls are running.
    pub fn running(&self) -> u32 { (self.word.load() & COUNT_MASK) as u32 }

    /// Sets the posture; a change counts the epoch up. Answers the new stamp and how many mutating calls still run.
    pub fn flip(&self, to: Posture) -> (Stamp, u32) {
        let mut now = self.word.load();
        loop {
            let stamp = unpack(now);
            if stamp.posture == to {
                return (stamp, (now & COUNT_MASK) as u32);
            }
            let next = pack(Stamp { epoch: stamp.epoch.wrapping_add(1), posture: to }) | (now & COUNT_MASK);
            match self.word.exchange(now, next) {
                Ok(_) => return (unpack(next), (next & COUNT_MASK) as u32),
                Err(seen) => now = seen,
            }
        }
    }

    /// Judges a call. `spec` is `None` for a tool nobody knows. `approval` is a person's yes to this very call.
    ///
    /// Plan mode is looked at first and only ever subtracts: the stricter of the posture the call was made under and the
    /// present one counts. No error, absence or doubt yields a permit.
    pub fn judge(&self, call: &ToolCall, spec: Option<&ToolSpec>, policy: Policy<'_>, approval: Option<&Approval>) -> Verdict {
        let now = self.stamp();
        let Some(spec) = spec else {
            // Even the name of an unknown tool is refused by the posture first: the person hears the reason that holds.
            return if now.posture.stricter(call.stamp.posture) == Posture::Plan {
                Verdict::Refuse(plan_refusal(&call.tool, Effect::Unknown))
            } else {
                Verdict::Refuse(Refusal { code: "unknown_tool", message: format!("There is no tool named {}.", call.tool), effect: Effect::Unknown })
            };
        };
        let facts = facts_of(spec, &call.arguments);
        let effect = facts.effect;
        if now.posture.stricter(call.stamp.posture) == Posture::Plan && !facts.is_plan_safe() {
            return Verdict::Refuse(plan_refusal(&call.tool, effect));
        }
        if let Some(why) = policy.guard.objects(&facts) {
            return Verdict::Refuse(Refusal { code: "guarded", message: format!("{} was not run. {why}", spec.display), effect });
        }
        if spec.tier == Some(Tier::Deny) {
            return Verdict::Refuse(Refusal { code: "policy_denied", message: format!("{} is switched off here.", spec.display), effect });
        }
        let ruling = policy.rules.ruling(&call.tool, &facts, policy.ask);
        if let Some((Ruling::Deny, rule)) = ruling {
            return Verdict::Refuse(Refusal { code: "policy_denied", message: format!("{} is denied by the rule \"{}\".", spec.display, rule.text()), effect });
        }
        if let Some(given) = approval {
            if given.call == call.id && given.hash == call.hash() {
                return Verdict::Allow(self.permit(call, &facts, now));
            }
        }
        let marked = facts.irreversible || facts.needs_person;
        let asks = match ruling {
            Some((Ruling::Allow, _)) => false,
            Some((Ruling::Ask | Ruling::Deny, _)) => true,
            // Without a rule: what is marked is asked about always, a class as the autonomy level says and bypass does not.
            None => marked || policy.ask == AskPolicy::Ask && must_ask(&facts, spec.tier, policy.autonomy),
        };
        if !asks {
            return Verdict::Allow(self.permit(call, &facts, now));
        }
        match policy.ask {
            AskPolicy::Ask | AskPolicy::Bypass => Verdict::Ask { screen_only: facts.irreversible },
            AskPolicy::Refuse => Verdict::Refuse(Refusal {
                code: "nobody_to_ask", message: "This would need a person's answer, and nobody is asked in this mode.".into(), effect,
            }),
        }
    }

    /// Begins a call: the permit is used up, the arguments must be the ones it was given for, and a mutating call begins
    /// only if the posture has not turned to plan since. The answer must be held until the call has ended.
    ///
    /// # Errors
    /// A [`Refusal`] (`plan_mode_blocked`, `stale_permit`, `arguments_changed`); nothing has begun then.
    pub fn begin(&self, permit: Permit, call: &ToolCall) -> Result<Running<W>, Refusal> {
        let effect = permit.effect;
        if permit.call != call.id || permit.hash != call.hash() {
            return Err(Refusal { code: "arguments_changed", message: "The call is not the one that was allowed.".into(), effect });
        }
        if permit.safe {
            return Ok(Running { word: self.word.clone(), mutating: false });
        }
        let mut now = self.word.load();
        loop {
            let stamp = unpack(now);
            if stamp.posture == Posture::Plan {
                return Err(plan_refusal(&call.tool, effect));
            }
            if stamp.epoch != permit.epoch {
                return Err(Refusal { code: "stale_permit", message: "The mode has changed since this call was allowed.".into(), effect });
            }
            match self.word.exchange(now, now + 1) {
                Ok(_) => return Ok(Running { word: self.word.clone(), mutating: true }),
                Err(seen) => now = seen,
            }
        }
    }

    fn permit(&self, call: &ToolCall, facts: &Facts, stamp: Stamp) -> Permit {
        Permit { call: call.id.clone(), hash: call.hash(), effect: facts.effect, safe: facts.is_plan_safe(), epoch: stamp.epoch }
    }
}

/// What decides beside the posture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy<'a> {
    /// How much is asked about.
    pub autonomy: Autonomy,
    /// What happens instead of asking.
    pub ask: AskPolicy,
    /// The operator's rules.
    pub rules: &'a Rules,
    /// What nothing lets through.
    pub guard: &'a Guard,
}

static NO_RULES: Rules = Rules::none();
static NO_GUARD: Guard = Guard::none();

impl Default for Policy<'_> {
    fn default() -> Self { Self { autonomy: Autonomy::default(), ask: AskPolicy::default(), rules: &NO_RULES, guard: &NO_GUARD } }
}

fn must_ask(facts: &Facts, tier: Option<Tier>, autonomy: Autonomy) -> bool {
    match autonomy {
        Autonomy::Loose => false,
        Autonomy::Hybrid => !facts.effect.is_plan_safe() && tier != Some(Tier::Safe),
        Autonomy::Strict => !facts.effect.is_plan_safe(),
    }
}

fn plan_refusal(tool: &str, effect: Effect) -> Refusal {
    Refusal {
        code: "plan_mode_blocked",
        message: format!("Plan mode is on, so {tool} was not run and nothing was changed. Propose it as a step of the plan instead."),
        effect,
    }
}

fn pack(stamp: Stamp) -> u64 {
    let plan = if stamp.posture == Posture::Plan { PLAN } else { 0 };
    plan | ((u64::from(stamp.epoch) & EPOCH_MASK) << EPOCH_SHIFT)
}

fn unpack(word: u64) -> Stamp {
    let posture = if word & PLAN != 0 { Posture::Plan } else { Posture::Default };
    Stamp { epoch: ((word >> EPOCH_SHIFT) & EPOCH_MASK) as u32, posture }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
