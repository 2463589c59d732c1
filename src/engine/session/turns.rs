//! Running the agent: one turn at a time, each a chain of responses and tool results, bounded.

use std::collections::{BTreeSet, VecDeque};

use super::super::authority::Surface;
use super::super::conversation::{GatewayNote, Item, StepRequest};
use super::super::event::{EventKind, QuestionKind, Role};
use super::super::grammar::{Meaning, meaning_in};
use super::super::id::{CallId, ItemId, TurnId};
use super::super::input::{Action, CutWhy, LegNote, TurnEnd};
use super::super::mode::{AskPolicy, Mode, Posture, Stamp};
use super::super::tool::{ToolOutcome, ToolSpec, listed};
use super::Engine;
use super::calls::Made;

/// Responses of one turn at most; a model that calls tools for ever is stopped here.
pub const STEPS_MAX: u32 = 12;
/// Turns that wait at most.
const QUEUE_MAX: usize = 8;

#[derive(Debug)]
struct Turn {
    id: TurnId,
    step: u32,
    stamp: Stamp,
    ask: AskPolicy,
    note: Option<GatewayNote>,
    /// Calls of this turn that have no result yet.
    open: BTreeSet<CallId>,
    called: bool,
    responding: bool,
    presented: bool,
    abandoned: bool,
    failed: bool,
}

/// The agent's side.
#[derive(Debug)]
pub(super) struct Turns {
    active: Option<Turn>,
    queue: VecDeque<Option<GatewayNote>>,
    /// A turn that is over while words still wait to be said: the leg is told after they have begun.
    untold: Option<(TurnId, TurnEnd)>,
    next: u64,
    failed_before: bool,
    /// What the agent was last told of plan mode, and by which event it was so; `None` before its first response.
    told_plan: Option<bool>,
}

impl Turns {
    pub(super) fn new(first: u64) -> Self { Self { active: None, queue: VecDeque::new(), untold: None, next: first, failed_before: false, told_plan: None } }

    pub(super) fn is_busy(&self) -> bool { self.active.is_some() || !self.queue.is_empty() }

    /// The agent itself is at work (not waiting for a person or a tool).
    pub(super) fn is_working(&self) -> bool { self.active.as_ref().is_some_and(|t| t.responding) }

    /// The mode the turn's response began in, where it is stricter than this.
    pub(super) fn stricter_than(&self, now: Stamp, ask: AskPolicy) -> Option<Mode> {
        let turn = self.active.as_ref().filter(|t| !t.abandoned && (t.responding || !t.open.is_empty()))?;
        if now.posture == Posture::Plan {
            return None;
        }
        match turn.stamp.posture {
            Posture::Plan => Some(Mode::Plan),
            Posture::Default => (ask.for_a_call_made_under(turn.ask) != ask).then_some(Mode::Default),
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize { self.queue.len() }

    pub(super) fn active_id(&self) -> Option<TurnId> { self.active.as_ref().map(|t| t.id) }

    /// The turn whose response is under way, or was asked for.
    pub(super) fn responding_id(&self) -> Option<TurnId> { self.active.as_ref().filter(|t| t.responding).map(|t| t.id) }
}

impl Engine {
    /// A user line is in the transcript; the agent answers it.
    pub(super) fn new_user_turn(&mut self) {
        // A question about a call is not withdrawn by talk of something else: a screen can still answer it.
        self.park_asked();
        self.abandon_turn(TurnEnd::Interrupted);
        self.queue_turn(None);
    }

    /// The agent gets a turn, after those that wait already.
    pub(super) fn queue_turn(&mut self, note: Option<GatewayNote>) {
        if self.turns.queue.len() >= QUEUE_MAX {
            self.turns.queue.pop_front();
            self.notice("turns_dropped", "Too much was said at once; the oldest of it gets no answer of its own.");
        }
        self.turns.queue.push_back(note);
    }

    pub(super) fn on_create_response(&mut self) {
        if self.response_must_wait() {
            return;
        }
        // A client that goes on in writing is answered; the open question steps aside for a screen, as for other words.
        if matches!(self.snap.items.last(), Some(Item::User { .. })) && self.question().is_some_and(|q| q.kind == QuestionKind::Tool) {
            self.park_asked();
        }
        self.queue_turn(None);
    }

    pub(super) fn on_client_text(&mut self, item: ItemId, text: String) {
        let tighten = match meaning_in(self.language(), &text) {
            Some(Meaning::Enter) => Some(super::super::authority::Decide::Enter { reason: String::new() }),
            Some(Meaning::Stop) => Some(super::super::authority::Decide::StopSpeech),
            _ => text.trim().eq_ignore_ascii_case("/plan").then(|| super::super::authority::Decide::Enter { reason: String::new() }),
        };
        let action = tighten.and_then(|d| super::super::authority::UserAction::typed_by_client(d, &text));
        self.event(EventKind::Transcript { role: Role::User, text, item, utterance: None, for_agent: action.is_none(), surface: Surface::Client });
        if let Some(action) = action {
            self.on_decide(&action, None);
        }
    }

    /// A provider's response has begun that nobody here asked for. An older turn whose calls still run is over: they are answered
    /// when they end.
    pub(super) fn begin_remote_turn(&mut self) -> TurnId {
        self.end_turn(TurnEnd::Interrupted);
        let id = self.begin_turn(None);
        let (stamp, ask) = (self.snap.stamp, self.snap.ask);
        if let Some(turn) = &mut self.turns.active {
            (turn.stamp, turn.ask, turn.responding) = (stamp, ask, true);
        }
        id
    }

    /// The response that was asked for begins now: its calls are made under what is in force now.
    pub(super) fn remote_turn_begins(&mut self) {
        let (stamp, ask) = (self.snap.stamp, self.snap.ask);
        if let Some(turn) = self.turns.active.as_mut().filter(|t| t.responding) { (turn.stamp, turn.ask) = (stamp, ask) }
    }

    fn begin_turn(&mut self, note: Option<GatewayNote>) -> TurnId {
        let id = TurnId(self.turns.next);
        self.turns.next += 1;
        self.turns.active = Some(Turn { id, step: 0, stamp: self.snap.stamp, ask: self.snap.ask, note, open: BTreeSet::new(), called: false, responding: false, presented: false, abandoned: false, failed: false });
        self.act(Action::Leg(LegNote::TurnBegan(id)));
        id
    }

    /// Lets turns begin, go on and end.
    pub(super) fn pump_turns(&mut self) {
        self.pump_active();
        if self.turns.active.is_some() || self.loosening {
            return;
        }
        let Some(note) = self.turns.queue.pop_front() else { return };
        self.begin_turn(note);
        self.step();
    }

    fn pump_active(&mut self) {
        let Some(turn) = &self.turns.active else { return };
        let parked = turn.open.iter().all(|c| self.lane.is_parked(c));
        if turn.responding || !(turn.open.is_empty() || parked) {
            return;
        }
        let go_on = turn.called && turn.open.is_empty() && !turn.presented && !turn.abandoned && !turn.failed;
        let end = if turn.failed { TurnEnd::Failed } else if turn.abandoned { TurnEnd::Interrupted } else { TurnEnd::Completed };
        if go_on && turn.step + 1 < STEPS_MAX {
            if let Some(turn) = &mut self.turns.active { turn.step += 1 }
            self.step();
            return;
        }
        if go_on {
            self.notice("too_many_steps", format!("The agent called tools {STEPS_MAX} times in one turn and was stopped there."));
        }
        self.end_turn(end);
    }

    fn end_turn(&mut self, end: TurnEnd) {
        let Some(turn) = self.turns.active.take() else { return };
        self.tell_turn_ended(true);
        self.turns.untold = Some((turn.id, end));
        self.tell_turn_ended(false);
    }

    /// Tells the leg that a turn is over, once what waits to be said has begun (or at once): what a turn brings about, also in the
    /// gateway's own words, is said in it.
    pub(super) fn tell_turn_ended(&mut self, at_once: bool) {
        if let Some((turn, end)) = self.turns.untold.take_if(|_| at_once || !self.mouth.has_words_waiting()) {
            self.act(Action::Leg(LegNote::TurnEnded(turn, end)));
        }
    }

    /// What an agent is to know now, beside what is to be answered: a proxied session's provider is told it whenever it changes.
    pub fn briefing(&self) -> StepRequest {
        let instructions = self.all_instructions();
        let (plan_mode, tools, draft, approved) = (self.snap.in_plan(), self.listed_tools(), self.snap.draft.clone(), self.snap.approved().cloned());
        StepRequest { turn: TurnId(0), step: 0, items: Vec::new(), tools, plan_mode, draft, approved, instructions }
    }

    fn all_instructions(&self) -> String {
        [self.config.instructions.as_str(), self.instructions.as_str()].iter().filter(|t| !t.is_empty()).copied().collect::<Vec<_>>().join("\n\n")
    }

    fn step(&mut self) {
        let (stamp, ask) = (self.snap.stamp, self.snap.ask);
        let instructions = self.all_instructions();
        let (plan_mode, tools, items) = (self.snap.in_plan(), self.listed_tools(), self.history());
        let (draft, approved) = (self.snap.draft.clone(), self.snap.approved().cloned());
        let Some(turn) = &mut self.turns.active else { return };
        turn.stamp = stamp;
        turn.ask = ask;
        turn.called = false;
        turn.responding = true;
        let mut request = StepRequest { turn: turn.id, step: turn.step, items, tools, plan_mode, draft, approved, instructions };
        if turn.step == 0 {
            request.items.extend(turn.note.clone().map(Item::Gateway));
        }
        // Told once, and only if it is other than in the last request; an approval says so itself.
        let told = self.turns.told_plan.replace(plan_mode);
        if told.is_some_and(|t| t != plan_mode) && !matches!(request.items.last(), Some(Item::Gateway(GatewayNote::Approved { .. }))) {
            let before_the_words = matches!(request.items.last(), Some(Item::User { .. } | Item::Gateway(_)));
            let at = request.items.len() - usize::from(before_the_words);
            request.items.insert(at, Item::Gateway(GatewayNote::Mode { plan: plan_mode }));
        }
        self.act(Action::Step(Box::new(request)));
    }

    /// The tools an agent is told of.
    fn listed_tools(&self) -> Vec<ToolSpec> { listed(&self.config.tools, self.snap.in_plan(), self.snap.approved().is_some()) }

    /// The history, with a passing answer for calls that still wait for a person: no model may see a call without a result.
    pub fn history(&self) -> Vec<Item> {
        let answered: BTreeSet<&CallId> = self.snap.items.iter().filter_map(|i| if let Item::Result { id, .. } = i { Some(id) } else { None }).collect();
        let mut items = Vec::with_capacity(self.snap.items.len());
        for item in &self.snap.items {
            items.push(item.clone());
            if let Item::Call { id, tool, .. } = item {
                if !answered.contains(id) {
                    let output = serde_json::json!({"success": false, "status": "pending_approval", "note": "a person has not answered yet"});
                    items.push(Item::Result { id: id.clone(), tool: tool.clone(), output });
                }
            }
        }
        items
    }

    pub(super) fn on_agent_text(&mut self, turn: TurnId, text: &str) {
        // A response that has ended says nothing more: its speech is complete.
        if self.turns.active.as_ref().is_some_and(|t| t.id == turn && t.responding) {
            self.turns.failed_before = false;
            self.say_more(turn, text);
        }
    }

    pub(super) fn on_agent_call(&mut self, turn: TurnId, id: CallId, tool: String, arguments: Result<serde_json::Value, ToolOutcome>) {
        let known = self.snap.items.iter().any(|i| matches!(i, Item::Call { id: old, .. } if old == &id));
        let Some(active) = self.turns.active.as_mut().filter(|t| t.id == turn && t.responding && !known) else { return };
        active.called = true;
        active.open.insert(id.clone());
        let made = Made { turn, stamp: active.stamp, ask: active.ask };
        self.turns.failed_before = false;
        self.want_call(made, id, tool, arguments);
    }

    pub(super) fn on_agent_done(&mut self, turn: TurnId, failed: Option<String>) {
        let Some(active) = self.turns.active.as_mut().filter(|t| t.id == turn && t.responding) else { return };
        active.responding = false;
        active.failed |= failed.is_some();
        if self.delivers_changes() {
            self.changes_delivered(failed.is_none());
        }
        self.say_end(turn);
        if let Some(message) = failed {
            self.notice("agent_failed", message.clone());
            // Said once; while it stays down the notice alone says so.
            if !std::mem::replace(&mut self.turns.failed_before, true) {
                self.say_plain(format!("I cannot answer right now: {message}"));
            }
        }
    }

    /// A call of the active turn has its result.
    pub(super) fn call_resolved(&mut self, call: &CallId) -> bool {
        self.turns.active.as_mut().is_some_and(|t| t.open.remove(call))
    }

    /// A plan was presented in this turn: it ends there.
    pub(super) fn turn_presented(&mut self) {
        if let Some(turn) = &mut self.turns.active { turn.presented = true }
    }

    pub(super) fn turn_has_presented(&self) -> bool { self.turns.active.as_ref().is_some_and(|t| t.presented) }

    /// The posture a call of this moment is made under, for calls the gateway itself re-judges.
    pub(super) fn stricter_stamp(&self, made: Stamp) -> Stamp {
        if made.posture == Posture::Plan { made } else { self.gate.stamp() }
    }

    /// Ends the turn without its agent: nothing more of it is said or called. A call that runs is left to end.
    pub(super) fn abandon_turn(&mut self, end: TurnEnd) {
        let Some(turn) = &mut self.turns.active else { return };
        let id = turn.id;
        turn.abandoned = true;
        let responding = std::mem::replace(&mut turn.responding, false);
        if responding {
            self.act(Action::CancelStep(id));
        }
        self.end_agent_speech();
        self.drop_queued_calls("cancelled", "The turn was ended before this was run.");
        if self.turns.active.as_ref().is_some_and(|t| t.open.is_empty()) {
            self.end_turn(end);
        }
    }

    /// A person or the client ends the turn and the voice.
    pub(super) fn stop_turn(&mut self, why: CutWhy) {
        self.turns.queue.clear();
        self.cut_speech(why);
        self.drop_unbegun();
        self.abandon_turn(TurnEnd::Cancelled);
    }
}
