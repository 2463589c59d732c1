//! The one way to speak to a running conversation: a cheap, cloneable handle. Doors hold it; the driver holds the other end.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::leg::{LegInput, LegOutput, LegSpec};
use crate::engine::authority::{OperatorDoor, UserAction};
use crate::engine::snapshot::Snapshot;

/// Commands waiting for the driver; a full queue makes the sender wait.
pub const COMMANDS_MAX: usize = 64;
/// Frames waiting for one mirror; a mirror that reads no faster is let go.
pub const MIRROR_QUEUE: usize = 256;
/// Leg messages waiting in either direction.
pub const LEG_QUEUE: usize = 256;

/// A decision was carried out (or changed nothing because it already held).
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Stable code: `ok`, `already`, `queued`, `asked` (a question follows).
    pub code: &'static str,
    /// A sentence for the person.
    pub message: String,
}

/// A decision was not carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Declined {
    /// Stable code: `which_version`, `plan_changed`, `no_such_version`, `no_such_request`, `already_decided`, `not_in_plan_mode`, `screen_only`, ...
    pub code: &'static str,
    /// A sentence for the person.
    pub message: String,
}

/// The conversation has ended; nothing can be said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this conversation has ended")]
pub struct Gone;

/// Why a leg could not attach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachRefused {
    /// A leg that may not be displaced holds the conversation.
    #[error("{0} is already in this conversation; its chat can be joined, its microphone cannot")]
    Held(String),
    /// Nothing is there any more.
    #[error("this conversation has ended")]
    Gone,
}

/// What a mirror receives, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum MirrorItem {
    /// One numbered event as its wire frame.
    Frame {
        /// Its number.
        seq: u64,
        /// The whole JSON text.
        text: Arc<str>,
    },
    /// Something that passes and is not numbered (partial transcript, level), as its wire frame.
    Passing(Arc<str>),
}

/// What a new mirror starts from.
#[derive(Debug)]
pub struct Subscription {
    /// The state now.
    pub snapshot: Snapshot,
    /// True when `backlog` holds everything after the asked `since`, so that the snapshot need not be drawn anew.
    pub resumed: bool,
    /// Frames after `since`, oldest first, up to `snapshot.seq`. Empty when not resumed.
    pub backlog: Vec<MirrorItem>,
    /// What follows. Closed by the driver when the mirror falls behind or the conversation ends.
    pub follow: mpsc::Receiver<MirrorItem>,
}

/// The two ends a leg gets.
#[derive(Debug)]
pub struct LegPort {
    /// To the conversation.
    pub input: mpsc::Sender<LegInput>,
    /// From the conversation.
    pub output: mpsc::Receiver<LegOutput>,
}

/// What the driver is asked. Made by [`Handle`]; read by the driver.
#[derive(Debug)]
pub enum Command {
    /// A person decides.
    Decide(UserAction, oneshot::Sender<Result<Done, Declined>>),
    /// A person types on a chat door: a `/plan` command, an answer, or a line for the agent.
    Chat(OperatorDoor, String, oneshot::Sender<Result<Done, Declined>>),
    /// The state now.
    Snapshot(oneshot::Sender<Snapshot>),
    /// A mirror wants to follow.
    Subscribe(Option<u64>, oneshot::Sender<Subscription>),
    /// A leg wants to attach.
    Attach(LegSpec, oneshot::Sender<Result<LegPort, AttachRefused>>),
    /// The global autonomy level has changed.
    Autonomy(crate::engine::mode::Autonomy),
    /// End the conversation's task, not the conversation: it can be opened again where it was.
    Rest,
    /// End the conversation's task (the log stays).
    Close(String),
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Handle {
    id: Arc<str>,
    commands: mpsc::Sender<Command>,
}

impl Handle {
    /// A handle and the end its driver reads.
    pub fn channel(id: &str) -> (Handle, mpsc::Receiver<Command>) {
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        (Handle { id: id.into(), commands }, inbox)
    }

    /// The conversation's id, `session_id` on every wire.
    pub fn id(&self) -> &str { &self.id }

    /// False once the driver has gone.
    pub fn is_alive(&self) -> bool { !self.commands.is_closed() }

    /// Hands a person's decision in.
    ///
    /// # Errors
    /// [`Gone`] when the conversation has ended; the inner error says why the decision was not carried out.
    pub async fn decide(&self, action: UserAction) -> Result<Result<Done, Declined>, Gone> {
        self.ask(|reply| Command::Decide(action, reply)).await
    }

    /// Hands in a typed chat line.
    ///
    /// # Errors
    /// As [`Handle::decide`].
    pub async fn chat(&self, door: OperatorDoor, text: String) -> Result<Result<Done, Declined>, Gone> {
        self.ask(|reply| Command::Chat(door, text, reply)).await
    }

    /// [`Handle::chat`] for a caller that cannot wait and asks for no answer. False when there is no room for it now.
    pub fn chat_soon(&self, door: OperatorDoor, text: String) -> bool {
        let (reply, _) = oneshot::channel();
        self.commands.try_send(Command::Chat(door, text, reply)).is_ok()
    }

    /// The state now.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn snapshot(&self) -> Result<Snapshot, Gone> { self.ask(Command::Snapshot).await }

    /// Follows the conversation, from the event after `since` where that is still kept.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn subscribe(&self, since: Option<u64>) -> Result<Subscription, Gone> {
        self.ask(|reply| Command::Subscribe(since, reply)).await
    }

    /// Attaches a leg.
    ///
    /// # Errors
    /// [`AttachRefused`].
    pub async fn attach(&self, spec: LegSpec) -> Result<LegPort, AttachRefused> {
        self.ask(|reply| Command::Attach(spec, reply)).await.unwrap_or(Err(AttachRefused::Gone))
    }

    /// Says that the global autonomy level has changed.
    pub async fn autonomy(&self, level: crate::engine::mode::Autonomy) {
        let _ = self.commands.send(Command::Autonomy(level)).await;
    }

    /// Lets the conversation rest: its task ends, it can be opened again. False when it is too busy to be told.
    pub fn rest(&self) -> bool { self.commands.try_send(Command::Rest).is_ok() }

    /// Asks the driver to stop; it writes what it has and ends.
    pub async fn close(&self, reason: &str) {
        let _ = self.commands.send(Command::Close(reason.to_string())).await;
    }

    async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(make(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}
