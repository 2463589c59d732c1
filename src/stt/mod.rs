//! SPEECH TO TEXT: one utterance in, the words and the scores of the spoken grammar out.
//!
//! Owns the trait, the table of kinds and a file for each. Called by the session's driver and the local command listener. Never
//! decides what words mean, never decides where an utterance ends, and never loads native code into the gateway's own process.

#[cfg(feature = "whisper")]
pub mod child;
#[cfg(feature = "whisper")]
mod plain;
#[cfg(feature = "whisper")]
pub mod pool;
pub mod scripted;
#[cfg(feature = "whisper")]
mod transcript;
#[cfg(feature = "whisper")]
mod trie;
#[cfg(feature = "whisper")]
pub mod whisper;
#[cfg(feature = "whisper")]
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::engine::heard::Heard;

#[cfg(feature = "whisper")]
pub use pool::{PoolConfig, WhisperPool};
pub use scripted::Scripted;
#[cfg(feature = "whisper")]
pub use wire::{SentPhrase, Timings};

/// Samples a second of everything that comes in here.
pub const SAMPLE_RATE_HZ: usize = 16_000;
/// Raised when the same sound, model and phrases would score differently: what is kept of measurements is heard anew.
pub const REVISION: u32 = 3;
/// The longest sound that is listened to in one go: 30 s, the window of Whisper's encoder.
pub const MAX_SAMPLES: usize = 30 * SAMPLE_RATE_HZ;

/// Where an utterance stands among those that wait for a free recogniser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Whose it is; conversations are served by turns.
    pub session: u64,
    /// Short, or said while a question is open: goes before long ordinary talk.
    pub urgent: bool,
    /// Asked at a pause: a newer look of the same conversation makes it void, which answers [`SttError::Superseded`].
    pub look: bool,
}

/// One utterance to recognise.
#[derive(Clone, Debug)]
pub struct Job {
    /// Mono i16, 16 kHz. Only the first 30 s are listened to, see [`Job::is_too_long`].
    pub samples: Arc<[i16]>,
    /// True when the phrases of the grammar are wanted with their scores.
    pub score: bool,
    /// The language spoken, as an ISO 639-1 code ("en").
    pub language: String,
    /// Its place among those that wait.
    pub order: Order,
}

impl Job {
    /// An English utterance whose phrases are to be scored.
    pub fn new(samples: impl Into<Arc<[i16]>>) -> Self {
        Self { samples: samples.into(), score: true, language: "en".to_owned(), order: Order::default() }
    }

    /// True when the sound is longer than what is listened to, so that its end will be missing from the transcript.
    pub fn is_too_long(&self) -> bool {
        self.samples.len() > MAX_SAMPLES
    }

    /// What is listened to: the first 30 s.
    pub fn heard_samples(&self) -> &[i16] {
        &self.samples[..self.samples.len().min(MAX_SAMPLES)]
    }
}

/// Something that turns an utterance into words.
pub trait Recogniser: Send + Sync {
    /// Recognises one utterance. Dropping the future gives the answer up, not the recogniser.
    ///
    /// # Errors
    /// [`SttError`]; the recogniser stays usable after every one of them.
    fn recognise(&self, job: Job) -> BoxFuture<'_, Result<Heard, SttError>>;

    /// The same, with how long it waited for a free recogniser.
    fn recognise_told(&self, job: Job) -> BoxFuture<'_, (Duration, Result<Heard, SttError>)> {
        Box::pin(async move { (Duration::ZERO, self.recognise(job).await) })
    }
}

/// Why an utterance was not recognised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SttError {
    /// The recogniser's process ended in the middle of this utterance. Another one is being started.
    #[error("the recogniser ended unexpectedly ({0}) and is being restarted")]
    Crashed(String),
    /// No answer in time; the process was ended and another one is being started.
    #[error("the recogniser gave no answer within {seconds} s and is being restarted")]
    TimedOut {
        /// How long it had.
        seconds: u64,
    },
    /// As many utterances are waiting as may wait.
    #[error("too many utterances are waiting to be recognised")]
    Busy,
    /// A newer look of the same conversation came before it was its turn.
    #[error("newer sound made it void")]
    Superseded,
    /// No recogniser runs, and starting one failed.
    #[error("no recogniser is running: {0}")]
    Unavailable(String),
    /// The recogniser is sound but cannot do this one.
    #[error("the recogniser refused: {0}")]
    Refused(String),
}

impl SttError {
    /// True when the same utterance may well succeed a moment later.
    pub fn retry(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Superseded)
    }

    /// The stable word for it, for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Crashed(_) => "recogniser_crashed",
            Self::TimedOut { .. } => "recogniser_timeout",
            Self::Busy => "recogniser_busy",
            Self::Superseded => "recogniser_superseded",
            Self::Unavailable(_) => "recogniser_unavailable",
            Self::Refused(_) => "recogniser_refused",
        }
    }
}

/// One row of the table of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindRow {
    /// The word in the configuration.
    pub name: &'static str,
    /// A line for a person.
    pub about: &'static str,
    /// True when it scores the phrases of the grammar on the sound itself.
    pub scores: bool,
}

/// Every kind of recogniser in this build.
pub const KINDS: &[KindRow] = &[
    #[cfg(feature = "whisper")]
    KindRow { name: "whisper", about: "Whisper on this machine, in processes of its own", scores: true },
    KindRow { name: "scripted", about: "answers from a list, for tests and demonstrations", scores: false },
];

/// A kind with its settings.
#[derive(Clone, Debug)]
pub enum Settings {
    /// `whisper`
    #[cfg(feature = "whisper")]
    Whisper(PoolConfig),
    /// `scripted`: the transcripts, in order.
    Scripted(Vec<String>),
}

/// Starts a recogniser of the chosen kind.
///
/// # Errors
/// [`SttError::Unavailable`] when it cannot run, with the reason (a missing model names the command that brings it).
pub async fn start(settings: Settings) -> Result<Arc<dyn Recogniser>, SttError> {
    Ok(match settings {
        #[cfg(feature = "whisper")]
        Settings::Whisper(config) => Arc::new(WhisperPool::start(config).await?),
        Settings::Scripted(texts) => Arc::new(Scripted::new(texts)),
    })
}
