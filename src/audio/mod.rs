//! SOUND CARDS AND FILES. Where frames come from and go to when it is not a socket.
//!
//! Owns microphones and speakers of three kinds: files, devices (feature `devices`) and none. Called by `talk` and the pump.
//! Sound is mono i16 at the device's own rate, in frames of 20 ms. Never resamples and never decides.

#[cfg(feature = "devices")]
pub mod device;
pub mod null;
pub mod wav_file;

use std::path::PathBuf;
use thiserror::Error;

/// What keeps a microphone or speaker from working. Each message is for the person at it.
#[derive(Debug, Error)]
pub enum AudioError {
    /// A file that cannot be read.
    #[error("cannot read the microphone file {path}: {reason}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file that is read and is not a sound we can use.
    #[error("cannot use the microphone file {path}: {source}")]
    NotASound {
        /// Which.
        path: PathBuf,
        /// Why.
        source: crate::media::wav::WavError,
    },
    /// A file that cannot be written.
    #[error("cannot write the speaker file {path}: {reason}")]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No device of that kind or name.
    #[error("no {what}: looked for {looked_for}{known}. `voxgate devices` lists what there is; {instead} works without one")]
    NoDevice {
        /// "microphone" or "speaker".
        what: &'static str,
        /// The name, or the default of which sound system.
        looked_for: String,
        /// "; there is A, B" or "; there is none".
        known: String,
        /// The option that takes a file.
        instead: &'static str,
    },
    /// Several devices could be meant.
    #[error("the {what} {name:?} could be any of {candidates}; name one of them by more of its name, or by the word before the bracket")]
    Ambiguous {
        /// "microphone" or "speaker".
        what: &'static str,
        /// What was asked for.
        name: String,
        /// Those that fit, each with its id and name.
        candidates: String,
    },
    /// A device that is there and does not open.
    #[error("the {what} {name:?} does not open ({}). `voxgate devices` lists what there is; --mic FILE.wav and --speaker FILE.wav work without one", reason.trim_end_matches('.'))]
    DoesNotOpen {
        /// "microphone" or "speaker".
        what: &'static str,
        /// Which.
        name: String,
        /// What the sound system said.
        reason: String,
    },
}
