//! The engine: one conversation's decisions. Inputs change it, outputs are drained; it waits for nothing.
//!
//! `hear` turns frames and words into decisions, `floor` lets a person and playback not speak at once, `join` makes one turn of two halves, `decide` carries decisions out, `modes` turns the mode, `review` keeps a plan's life, `calls` takes tool calls to the gate, `approvals` asks a person about them, `child` follows a root's mode, `remote` is the provider of a proxied session,
//! `speak` says things one after the other, `turns` runs the agent. This file owns the state and the way in and out.

mod approvals;
mod calls;
mod child;
mod decide;
mod floor;
mod echo;
mod hear;
mod join;
mod modes;
mod remote;
mod review;
mod speak;
mod turns;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod lockstep;
#[cfg(test)]
mod model;
#[cfg(test)]
mod props;
#[cfg(test)]
mod verdicts;
#[cfg(test)]
mod readback_tests;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use super::authority::By;
pub use super::event::REQUEST_LIFE_MS;
use super::event::{Event, EventKind, ModeEvent, Question, VoiceState};
use super::gate::{Gate, Policy};
use super::grammar::{Scored, shared_table};
use super::guard::Guard;
use super::id::{ItemId, Ms, UtteranceId};
use super::input::{Action, Count, Input, LegFacts, Output, Reply, Ticket};
use super::language::Language;
use super::mode::{AskPolicy, Autonomy, Posture, Stamp, Telling};
use super::rules::Rules;
use super::snapshot::Snapshot;
use super::tool::{ToolOutcome, ToolSpec};
use super::turn::EarSettings;
use calls::Lane;
use hear::Ears;
use speak::Mouth;
use turns::Turns;

pub use child::{Root, SpawnRefused};

/// A spoken answer counts this long after the question was heard.
pub const ANSWER_WINDOW_MS: u64 = 15_000;
/// An answer that began sooner after the last sample of the voice is asked for again.
pub const QUIET_BEFORE_MS: u64 = 250;
/// An answer that ended sooner after the last sample of the voice is asked for again.
pub const QUIET_AFTER_MS: u64 = 700;
/// Speech that begins this soon after consenting words takes them back, if nothing has begun.
pub const TAKE_BACK_MS: u64 = 1_500;

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Turn taking, and the language that is spoken.
    pub ear: EarSettings,
    /// Global level at the start.
    pub autonomy: Autonomy,
    /// Voice may only tighten.
    pub voice_exit: bool,
    /// A new conversation starts in plan mode.
    pub start_in_plan: bool,
    /// The operator's instructions for the agent.
    pub instructions: String,
    /// All tools.
    pub tools: Arc<[ToolSpec]>,
    /// What a new conversation asks, where it does not start in plan mode.
    pub start_ask: AskPolicy,
    /// The organisation lets conversations be in bypass and autonomous.
    pub loose_modes: bool,
    /// How a completed plan is told.
    pub completion: Telling,
    /// The operator's rules.
    pub rules: Arc<Rules>,
    /// What nothing lets through.
    pub guard: Arc<Guard>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { ear: EarSettings::default(), autonomy: Autonomy::Hybrid, voice_exit: true, start_in_plan: false, instructions: String::new(), tools: Arc::new([]), start_ask: AskPolicy::Ask, loose_modes: true, completion: Telling::default(), rules: Arc::default(), guard: Arc::default() }
    }
}

/// The open question beside what the snapshot shows of it.
#[derive(Debug, Default)]
struct Asked {
    /// Since when a spoken answer is waited for: it was heard to its end, or stopped.
    open_since: Option<Ms>,
    expires_at: Option<Ms>,
    neither: u32,
    repeats: u32,
}

/// One conversation's decisions.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    gate: Gate,
    table: Arc<[Scored]>,
    snap: Snapshot,
    /// The fold of the events that were taken out: what a frame of the last one tells of.
    taken: Snapshot,
    out: VecDeque<Output>,
    now: Ms,
    /// Unix milliseconds at engine time 0.
    epoch_ms: u64,
    autonomy: Autonomy,
    instructions: String,
    leg: Option<LegFacts>,
    remote: remote::RemoteVoice,
    /// Tools that the attached client runs itself.
    client_tools: Vec<ToolSpec>,
    ears: Ears,
    mouth: Mouth,
    turns: Turns,
    lane: Lane,
    asked: Asked,
    unannounced: bool,
    loosening: bool,
    after_loosening: Option<modes::AfterLoosening>,
    delivering: Option<review::Delivery>,
    settled: VecDeque<approvals::Settled>,
    /// It is a child: its gate is its root's, and so is its mode.
    is_child: bool,
    serial: u64,
    /// Names of what the tools work on, for ordinary speech that nearly says one.
    titles: Vec<String>,
    ended: bool,
}

impl Engine {
    /// A new conversation. `epoch_ms`: Unix milliseconds at engine time 0.
    pub fn new(config: EngineConfig, epoch_ms: u64) -> Self {
        let mut engine = Self::with(config, Snapshot::default(), epoch_ms);
        engine.event(EventKind::Started { how: "new" });
        if engine.config.start_in_plan {
            engine.enter_plan("the configuration starts every conversation in plan mode", &By::gateway());
        } else {
            engine.start_loose();
        }
        engine
    }

    /// A conversation from its log. Plan mode comes back and is announced before any tool runs; a loosened state never does.
    /// Calls that were running end as `unknown`, questions end as expired.
    pub fn restore(config: EngineConfig, snapshot: Snapshot, epoch_ms: u64, damaged: bool) -> Self {
        let mut engine = Self::with(config, snapshot, epoch_ms);
        engine.event(EventKind::Started { how: "resumed" });
        engine.void_what_was_open();
        engine.check_still();
        let plan = engine.snap.in_plan() || damaged;
        let loose = engine.snap.ask != AskPolicy::Ask;
        if plan {
            engine.gate.flip(Posture::Plan);
            engine.unannounced = true;
            let reason = if damaged { "the log was damaged, so plan mode is on to be safe".to_string() } else { engine.snap.entered_reason.clone() };
            engine.mode_event(Posture::Plan, AskPolicy::Ask, reason, By::gateway(), None, true);
        } else if loose {
            engine.mode_event(Posture::Default, AskPolicy::Ask, String::new(), By::gateway(), None, true);
        }
        if loose {
            engine.notice("mode_not_restored", "A mode that asks less is not brought back by a restart; changes are asked about again.");
        }
        engine
    }

    fn with(config: EngineConfig, snap: Snapshot, epoch_ms: u64) -> Self {
        let gate = Gate::new(Stamp { epoch: snap.stamp.epoch, posture: snap.stamp.posture });
        let serial = snap.seq;
        Self {
            autonomy: config.autonomy, instructions: String::new(), ears: Ears::new(config.ear, serial + 1), mouth: Mouth::new(serial + 1),
            turns: Turns::new(serial + 1), lane: Lane::default(), asked: Asked::default(), gate, table: shared_table(config.ear.language), taken: snap.clone(), snap,
            out: VecDeque::new(), now: 0, epoch_ms, leg: None, remote: remote::RemoteVoice::default(), client_tools: Vec::new(), unannounced: false, loosening: false, after_loosening: None, delivering: None, settled: VecDeque::new(), is_child: false, serial, titles: Vec::new(), ended: false, config,
        }
    }

    /// The gate, for the runner.
    pub fn gate(&self) -> Gate { self.gate.clone() }

    /// The state: the fold of every event so far.
    pub fn snapshot(&self) -> &Snapshot { &self.snap }

    /// The fold up to the event that was taken out last. What one input does to the state is many events; each is told with the state
    /// that it makes, as anybody finds it who folds the log.
    pub fn taken(&self) -> &Snapshot { &self.taken }

    /// True while an answer, a call, a speech, a question or a draining call is open.
    pub fn is_busy(&self) -> bool {
        self.turns.is_busy() || self.mouth.is_busy() || self.lane.is_busy() || self.gate.running() > 0
            || self.ears.is_busy() || self.loosening || self.snap.question.as_ref().is_some_and(|q| q.state != super::event::QuestionState::ScreenOnly)
    }

    /// An utterance is open: somebody is speaking, or has paused.
    pub fn hears_somebody(&self) -> bool { self.ears.hears_somebody() }

    /// Changes the state. `now` never runs backwards; an earlier one counts as the latest seen.
    pub fn handle_input(&mut self, now: Ms, input: Input) {
        self.now = self.now.max(now);
        if self.ended {
            return;
        }
        self.follow_root();
        self.timers();
        match input {
            Input::Tick => {}
            Input::Frame(frame) => self.on_frame(frame),
            Input::TurnJudged { utterance, to_ms, complete } => self.on_turn_judged(utterance, to_ms, complete),
            Input::Interrupted => self.count(Count::ProviderInterrupted),
            Input::Heard { utterance, to_ms, result } => self.on_heard(utterance, to_ms, result),
            Input::LegAttached(facts) => self.on_leg(Some(facts)),
            Input::LegGone => self.on_leg(None),
            Input::Remote(remote) => self.on_remote(remote),
            Input::LegTurns(turns) => self.on_turn_settings(turns),
            Input::LegSpeaks(speaks) => {
                if let Some(leg) = &mut self.leg { leg.speaks = speaks }
            }
            Input::Instructions(text) => self.instructions = text,
            Input::Commit { item } => self.on_commit(item),
            Input::Clear => self.on_clear(),
            Input::ClientText { item, text } => self.on_client_text(item, text),
            Input::CreateResponse => self.on_create_response(),
            Input::CancelResponse => self.stop_turn(super::input::CutWhy::Cancelled),
            Input::Truncate { item, heard_ms } => self.on_truncate(&item, heard_ms),
            Input::Delete { item } => self.on_delete(&item),
            Input::Notice { code, message } => self.notice(&code, message),
            Input::Overloaded => self.on_overload(),
            Input::Titles(titles) => self.titles = titles,
            Input::AgentText { turn, text } => self.on_agent_text(turn, &text),
            Input::AgentCall { turn, id, tool, arguments } => self.on_agent_call(turn, id, tool, arguments),
            Input::AgentDone { turn, failed } => self.on_agent_done(turn, failed),
            Input::ToolDone { call, outcome } => self.on_tool_done(&call, outcome),
            Input::Synthesised { speech, segment, result } => self.on_synthesised(speech, segment, result),
            Input::Drained { speech } => self.on_drained(speech),
            Input::Ducked { speech, heard_ms } => self.on_ducked(speech, heard_ms),
            Input::WasCut { speech, heard_ms } => self.on_was_cut(speech, heard_ms),
            Input::Decide(action, ticket) => self.on_decide(&action, Some(ticket)),
            Input::Typed { door, text, ticket } => self.on_typed(door, &text, ticket),
            Input::Report(ticket) => {
                let message = self.status_sentence();
                self.reply(Some(ticket), true, "ok", message);
            }
            Input::Loosened => self.on_loosened(),
            Input::LogFailed => self.on_log_failed(),
            Input::Announced => self.on_announced(),
            Input::Autonomy(level) => self.autonomy = level,
            Input::End { reason } => self.end(reason),
        }
        self.settle();
    }

    /// The next thing to do, or how long to wait.
    pub fn poll_output(&mut self) -> Output {
        let output = self.out.pop_front().unwrap_or_else(|| Output::Wait(self.deadline()));
        if let Output::Event(event) = &output { self.taken.apply(event) }
        output
    }

    /// What follows from every change: calls, speech and turns that may go on now.
    fn settle(&mut self) {
        self.pump_lane();
        self.pump_turns();
        self.pump_mouth();
        self.tell_turn_ended(false);
        self.check_draining();
        self.check_still();
        self.show_voice_state();
    }

    fn deadline(&self) -> Option<Ms> {
        [self.answer_window_closes(), self.asked.expires_at, self.lane.deadline(), self.ears.deadline()].into_iter().flatten().min()
    }

    fn timers(&mut self) {
        self.close_answer_window();
        self.expire_requests();
        self.ears_timer();
    }

    fn event(&mut self, kind: EventKind) {
        let event = Event { seq: self.snap.seq + 1, at_ms: self.epoch_ms + self.now, kind };
        self.snap.apply(&event);
        self.out.push_back(Output::Event(event));
    }

    fn act(&mut self, action: Action) { self.out.push_back(Output::Action(action)) }

    fn count(&mut self, count: Count) { self.act(Action::Count(count)) }

    fn notice(&mut self, code: &str, message: impl Into<String>) {
        self.event(EventKind::Notice { code: code.into(), message: message.into() });
    }

    fn reply(&mut self, ticket: Option<Ticket>, ok: bool, code: &'static str, message: impl Into<String>) {
        if let Some(ticket) = ticket {
            self.act(Action::Reply(ticket, Reply { ok, code, message: message.into() }));
        }
    }

    fn fresh(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn item(&mut self) -> ItemId { ItemId(format!("item_{:06}", self.fresh())) }

    /// What decides about a call that was made under this ask policy.
    fn policy(&self, made: AskPolicy) -> Policy<'_> {
        let ask = self.snap.ask.for_a_call_made_under(made);
        Policy { autonomy: self.autonomy, ask, rules: &self.config.rules, guard: &self.config.guard }
    }

    /// The language that is spoken.
    fn language(&self) -> Language { self.config.ear.language }

    fn question(&self) -> Option<&Question> { self.snap.question.as_ref() }

    fn speaks(&self) -> bool { self.leg.is_some_and(|l| l.speaks) }

    fn mode_event(&mut self, posture: Posture, ask: AskPolicy, reason: String, by: By, approved: Option<bool>, restored: bool) {
        let now = self.gate.stamp();
        let epoch = if posture == now.posture { now.epoch } else { now.epoch.wrapping_add(1) };
        let draining = if posture == Posture::Plan { self.gate.running() } else { 0 };
        self.event(EventKind::Mode(ModeEvent { posture, ask, epoch, draining, restored, reason, by, approved }));
    }

    fn check_draining(&mut self) {
        if self.snap.in_plan() && self.snap.draining > 0 && self.gate.running() == 0 {
            let (reason, by) = (self.snap.entered_reason.clone(), self.snap.entered_by.clone().unwrap_or_else(By::gateway));
            let restored = self.snap.restored;
            let ask = self.snap.ask;
            self.mode_event(Posture::Plan, ask, reason, by, None, restored);
            self.say_plain("The action that was still running has ended. Nothing more will change.");
        }
    }

    /// What was loosened holds from the next response on; while an older one is under way that is shown.
    fn check_still(&mut self) {
        let still = if self.loosening { self.snap.still } else { self.turns.stricter_than(self.snap.stamp, self.snap.ask) };
        if still != self.snap.still {
            self.event(EventKind::Still(still));
        }
    }

    fn show_voice_state(&mut self) {
        let state = match self.leg {
            None => VoiceState::Idle,
            Some(_) if self.ears.broken => VoiceState::Error,
            Some(_) if self.mouth.is_audible() || self.remote_is_audible() => VoiceState::Speaking,
            Some(_) if self.turns.is_working() || self.ears.is_recognising() => VoiceState::Processing,
            Some(_) => VoiceState::Listening,
        };
        if state != self.snap.voice {
            self.event(EventKind::Voice(state));
        }
    }

    fn void_what_was_open(&mut self) {
        let open: Vec<_> = self.snap.trace.iter().filter(|t| t.ended.is_none()).map(|t| (t.call.clone(), t.tool.clone())).collect();
        for (call, tool) in open {
            let waiting = self.snap.approvals.iter().any(|a| a.call == call);
            let outcome = if waiting {
                ToolOutcome::failed("expired", "The gateway was restarted before anybody answered; it was not run.")
            } else {
                ToolOutcome::failed("outcome_unknown", "The gateway was restarted while this ran; whether it took effect is not known. It is not tried again.")
            };
            self.event(EventKind::ToolResult { call, tool, success: false, error_code: outcome.error_code, error: outcome.error, output: outcome.output, latency_ms: 0 });
        }
        for pending in self.snap.approvals.clone() {
            self.event(EventKind::ApprovalResolved { request: pending.request, call: pending.call, status: "expired", by: By::gateway() });
        }
        if let Some(question) = self.snap.question.clone() {
            self.event(EventKind::Question(Question { state: super::event::QuestionState::Expired, outcome: "expired".into(), by: Some(By::gateway()), ..question }));
        }
    }

    fn on_announced(&mut self) {
        if std::mem::take(&mut self.unannounced) && self.speaks() {
            self.say_plain("Plan mode is still on from before. I can look, but I change nothing until you approve a plan.");
        }
    }

    fn on_leg(&mut self, leg: Option<LegFacts>) {
        self.mouth_leg_changed();
        self.remote_leg_changed();
        self.ears.reset(self.config.ear);
        self.leg = leg;
        if leg.is_none() {
            return;
        }
        if self.unannounced {
            self.on_announced();
        } else if self.snap.in_plan() && self.speaks() && self.snap.seq > 2 {
            self.say_plain("Plan mode is on.");
        }
        self.reask();
    }

    fn end(&mut self, reason: String) {
        self.event(EventKind::Ended { reason });
        self.ended = true;
    }

    /// Who spoke an utterance.
    fn by_voice(utterance: UtteranceId, words: &str) -> By {
        By { surface: super::authority::Surface::Voice, utterance: Some(utterance), words: words.to_string() }
    }
}
