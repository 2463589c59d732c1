//! The conversations of this process: opened, found by id, listed, ended. Doors ask it; it owns the driver tasks.

use futures_util::future::BoxFuture;

use super::handle::Handle;
use crate::engine::mode::Autonomy;

/// One line of the list of conversations, running or resting in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// First words.
    pub title: String,
    /// Unix milliseconds.
    pub started_ms: u64,
    /// Unix milliseconds of its last event.
    pub last_ms: u64,
    /// `plan`, `default`, ...
    pub mode: String,
    /// Mirrors and legs attached now.
    pub attached: usize,
    /// A driver runs.
    pub running: bool,
}

/// Which conversation is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    /// This one, running or resting in the store.
    Id(String),
    /// The last one of this home, or a new one if there is none.
    Last,
    /// A new one.
    New,
}

/// Why there is no conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefused {
    /// No conversation has this id.
    #[error("there is no conversation {0}")]
    Unknown(String),
    /// All places are taken.
    #[error("{0} conversations are open already, the most this gateway holds; close one and try again")]
    Full(usize),
    /// Its log cannot be read.
    #[error("the conversation's log cannot be read: {0}")]
    Broken(String),
}

/// What doors need of the registry. One implementation serves the product, another the doors' own tests.
pub trait Conversations: Send + Sync + 'static {
    /// Opens or finds one.
    fn open(&self, which: Which) -> BoxFuture<'_, Result<Handle, OpenRefused>>;
    /// All that are known, newest first.
    fn list(&self) -> BoxFuture<'_, Vec<Listed>>;
    /// The global autonomy level.
    fn autonomy(&self) -> Autonomy;
    /// Sets it. Answers whether it could be written down; the live change holds either way.
    fn set_autonomy(&self, to: Autonomy) -> BoxFuture<'_, bool>;
}
