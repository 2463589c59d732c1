//! A child conversation: an engine of its own behind its root's gate. It shows the root's mode and follows it, cannot change it,
//! opens no review, and none is begun while plan mode is on.
//!
//! The tie is a value handed over at birth ([`Root`]), never read out of an id.

use super::super::authority::{By, Decide};
use super::super::event::{EventKind, ModeEvent};
use super::super::gate::Gate;
use super::super::input::Ticket;
use super::super::mode::{AskPolicy, Posture};
use super::super::snapshot::Snapshot;
use super::super::tool::ToolOutcome;
use super::{Engine, EngineConfig};

/// What a child is born with: the gate of its conversation tree. Made by an engine, for a child of its own tree.
#[derive(Clone, Debug)]
pub struct Root(Gate);

/// Why no child was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan mode is on, so no further agent is started; propose it as a step of the plan")]
pub struct SpawnRefused;

impl Engine {
    /// The tie for a child of this conversation, or of one further down: always the root's gate.
    ///
    /// # Errors
    /// [`SpawnRefused`] while plan mode is on.
    pub fn root_for_child(&self) -> Result<Root, SpawnRefused> {
        if self.gate.stamp().posture == Posture::Plan { Err(SpawnRefused) } else { Ok(Root(self.gate.clone())) }
    }

    /// A new child. It asks as its own settings say, whatever its root was let off.
    pub fn child(config: EngineConfig, root: Root, epoch_ms: u64) -> Engine {
        let mut engine = Engine::with(EngineConfig { start_in_plan: false, start_ask: AskPolicy::Ask, ..config }, Snapshot::default(), epoch_ms);
        engine.gate = root.0;
        engine.is_child = true;
        engine.event(EventKind::Started { how: "new" });
        engine.follow_root();
        engine
    }

    /// The root's posture has turned: the child's state says so, and what has not begun is judged anew.
    pub(super) fn follow_root(&mut self) {
        let now = self.gate.stamp();
        if !self.is_child || now == self.snap.stamp {
            return;
        }
        let draining = if now.posture == Posture::Plan { self.gate.running() } else { 0 };
        self.event(EventKind::Mode(ModeEvent {
            posture: now.posture, ask: self.snap.ask, epoch: now.epoch, draining, restored: false, reason: "the conversation it belongs to".into(), by: By::gateway(), approved: None,
        }));
        if now.posture == Posture::Plan {
            self.rejudge_all();
        }
    }

    /// True when this decision is not a child's to take; it is answered then.
    pub(super) fn is_for_the_root(&mut self, decide: &Decide, ticket: Option<Ticket>) -> bool {
        let own = matches!(decide, Decide::AnswerTool { .. } | Decide::StopSpeech | Decide::StopTurn);
        if self.is_child && !own {
            self.reply(ticket, false, "child_follows", "This conversation belongs to another one and has its mode; decide there.");
        }
        self.is_child && !own
    }

    /// What a child gets that wants to present a plan.
    pub(super) fn report_upward(&self) -> Option<ToolOutcome> {
        self.is_child.then(|| ToolOutcome::failed("child_reports", "No review is opened from here: put the open decision into your final result, for whoever gave you this task."))
    }
}
