//! The trades a conversation is given: who hears, who speaks, who answers, what it may do, where it is written down.

use std::sync::Arc;

pub use super::ear::Cleaning;
use crate::agent::Agent;
use crate::engine::event::Event;
use crate::engine::turn::TurnJudge;
use crate::listen::vad::VadMaker;
use crate::stt::Recogniser;
use crate::tools::Catalogue;
use crate::tts::Voice;

/// Shared by every conversation of the process.
#[derive(Clone)]
pub struct Parts {
    /// Ears.
    pub recogniser: Arc<dyn Recogniser>,
    /// Makes the detector of voice of each ear.
    pub vad: VadMaker,
    /// Language it listens for ("en").
    pub language: String,
    /// A second opinion on whether a turn is complete; without one plain silence decides.
    pub judge: Option<Arc<dyn TurnJudge>>,
    /// The recogniser has every core: the judge is asked after the words, because two who compute on one core are both late.
    pub judge_waits: bool,
    /// The voice.
    pub voice: Arc<dyn Voice>,
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// The tools.
    pub catalogue: Catalogue,
    /// What is done to a device's sound before it is heard.
    pub cleaning: Cleaning,
}

/// Where a conversation's events are written down before anybody sees them.
pub trait Journal: Send {
    /// Appends one event.
    ///
    /// # Errors
    /// A sentence about why it could not be kept.
    fn append(&mut self, event: &Event) -> Result<(), String>;
    /// Nothing more comes for a while: what waits is written.
    fn settle(&mut self) {}
    /// Says whether events outlive the process.
    fn lasts(&self) -> bool { true }
}

/// Keeps nothing (`plan.persist = "memory"`, and tests).
#[derive(Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _: &Event) -> Result<(), String> { Ok(()) }
    fn lasts(&self) -> bool { false }
}
