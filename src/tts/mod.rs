//! TEXT TO SPEECH. The trait, the table of kinds, and what a voice may fail with.
//!
//! Owns voices, the text made sayable (`speakable`) and the cache of short prompts. Called by the loop, a segment at a time.
//! Never plays anything and never decides what is said.

pub mod cache;
pub mod fallback;
#[cfg(feature = "voice")]
pub mod hibari;
mod program;
pub mod programs;
pub mod speakable;
pub mod tone;

use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Longest text of one synthesis, in bytes. Segments are sentences; this only bounds accidents.
pub const MAX_TEXT: usize = 8_000;

/// Sound of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// Mono i16. Empty when the text holds nothing sayable.
    pub samples: Vec<i16>,
    /// Samples a second.
    pub rate_hz: u32,
}

impl Speech {
    /// The same sound at another rate. Empty sounds only change the label.
    pub fn at_rate(self, rate_hz: u32) -> Self {
        if self.rate_hz == rate_hz || self.samples.is_empty() {
            return Self { rate_hz, ..self };
        }
        Self { samples: crate::media::resample::resample_all(&self.samples, self.rate_hz, rate_hz), rate_hz }
    }
}

/// Something that speaks. Calls may overlap; each kind bounds its own work.
pub trait Voice: Send + Sync {
    /// The rate at which this voice answers, in Hz.
    fn rate_hz(&self) -> u32;
    /// Its name, for logs and the page ("hibari", "flite slt").
    fn name(&self) -> &str;
    /// Speaks a segment of plain text (see [`speakable`]). Dropping the future gives up the sound.
    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>>;
}

/// Why there is no voice, or no sound.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TtsError {
    /// No such row in the table.
    #[error("there is no voice of kind {kind:?}; there are: {known}")]
    UnknownKind {
        /// What was asked for.
        kind: String,
        /// What there is.
        known: String,
    },
    /// Weights are not where they should be.
    #[error("the voice's file {path} is missing; `voxgate models get {model}` brings it")]
    ModelMissing {
        /// Where it was looked for.
        path: PathBuf,
        /// Its name in the manifest.
        model: &'static str,
    },
    /// Weights are there and do not load or do not fit.
    #[error("the voice's file {path} cannot be used: {reason}")]
    ModelUnusable {
        /// Which file.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// A program is not installed.
    #[error("the program `{program}` is not installed (on Debian: apt-get install {package})")]
    ProgramMissing {
        /// What was run.
        program: String,
        /// What brings it.
        package: &'static str,
    },
    /// A program failed.
    #[error("`{program}` failed: {reason}")]
    ProgramFailed {
        /// What was run.
        program: String,
        /// Its last words, or what its answer lacked.
        reason: String,
    },
    /// It took too long.
    #[error("`{program}` gave no sound in {seconds} s and was ended")]
    Timeout {
        /// What was run.
        program: String,
        /// How long it had.
        seconds: u64,
    },
    /// More text than one segment may hold.
    #[error("the text has {length} bytes; a segment may have {MAX_TEXT}")]
    TooLong {
        /// What it has.
        length: usize,
    },
    /// The synthesis itself failed.
    #[error("the voice failed: {reason}")]
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl TtsError {
    /// Whether the same text may work a moment later.
    pub fn retry(&self) -> bool {
        matches!(self, Self::ProgramFailed { .. } | Self::Timeout { .. } | Self::Failed { .. })
    }
}

/// What a voice is made from. Each kind takes what it needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VoiceSettings {
    /// Folder with the weights of the kind (hibari).
    pub model_dir: PathBuf,
    /// The voice of a program (flite: `slt`, espeak: `en-us`). Empty: the kind's own default.
    pub voice: String,
    /// Speaking rate, 1.0 as the voice is, 0.5 slow to 2.0 fast. 0 counts as 1.
    pub speed: f32,
}

impl VoiceSettings {
    /// The speaking rate within its bounds.
    pub fn speed(&self) -> f32 {
        if self.speed > 0.0 && self.speed.is_finite() { self.speed.clamp(0.5, 2.0) } else { 1.0 }
    }
}

/// A row of the table of kinds.
pub struct Kind {
    /// What it is called in the configuration.
    pub name: &'static str,
    /// One line for `--help` and the example configuration.
    pub about: &'static str,
    /// Makes the voice. May read files and take half a second: call it off the async threads.
    pub open: fn(&VoiceSettings) -> Result<Arc<dyn Voice>, TtsError>,
}

/// Every kind of voice in this build.
pub const KINDS: &[Kind] = &[
    #[cfg(feature = "voice")]
    Kind { name: "hibari", about: "neural, American English, in this process (the default)", open: hibari::open },
    Kind { name: "flite", about: "the flite program: small, quick, a little mechanical", open: programs::flite },
    Kind { name: "espeak", about: "the espeak-ng program: many languages, robotic", open: programs::espeak },
    Kind { name: "tone", about: "beeps as long as the text, for tests", open: tone::open },
];

/// Makes a voice of a kind. May take half a second: call it off the async threads.
///
/// # Errors
/// [`TtsError::UnknownKind`], or what the kind needs and does not find.
pub fn open(kind: &str, settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    match KINDS.iter().find(|k| k.name == kind) {
        Some(row) => (row.open)(settings),
        None => {
            let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            Err(TtsError::UnknownKind { kind: kind.into(), known: known.join(", ") })
        }
    }
}

/// Refuses what is longer than a segment.
fn check_length(text: &str) -> Result<(), TtsError> {
    if text.len() > MAX_TEXT { Err(TtsError::TooLong { length: text.len() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_names_the_known_ones() {
        let Err(e) = open("parrot", &VoiceSettings::default()) else { panic!("there is no parrot") };
        assert!(e.to_string().contains("flite, espeak, tone"), "{e}");
        assert!(!e.retry());
        assert_eq!(VoiceSettings { speed: f32::NAN, ..Default::default() }.speed(), 1.0);
    }
}
