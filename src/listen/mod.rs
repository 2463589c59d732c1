//! HEARING: is somebody speaking, and what was the sound of the last minute.
//!
//! Owns the voice activity detector and the ring of recent sound. Called by the loop with 20 ms frames at 16 kHz. Never decides
//! when a turn ends (that is the engine's) and never writes words (that is `stt`'s).

mod levelling;
pub mod ring;
pub mod vad;
mod voicing;
