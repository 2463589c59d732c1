//! HEARING: is somebody speaking, what was the sound of the last minute, and what of it was ourselves.
//!
//! Owns the voice activity detector, the judge of ends of turns, the ring of recent sound and the echo canceller. Called by the
//! loop with 20 ms frames at 16 kHz. Never decides when a turn ends (that is the engine's) and never writes words (that is `stt`'s).

pub mod asleep;
pub mod canceller;
#[cfg(feature = "voice")]
pub mod confirmed;
#[cfg(feature = "voice")]
mod log_mel;
mod levelling;
pub mod ring;
#[cfg(feature = "voice")]
pub mod silero;
#[cfg(feature = "voice")]
pub mod smart_turn;
pub mod vad;
mod voicing;
