//! SOUND AS NUMBERS. Frames, resampling, levels, WAV bytes, earcons, numbered frames and the account of what was played.
//! SOUND AS NUMBERS. Frames, resampling, two clocks held together, levels, WAV bytes, earcons and the account of what was played.
//!
//! Owns arithmetic on samples and nothing else. Called by every room that carries sound. Never opens, waits or reads a clock.
//! Everything inside the house is mono i16; other shapes are converted at the door they come in by.

pub mod drift;
pub mod earcon;
pub mod frame;
pub mod jitter;
pub mod level;
pub mod mel;
pub mod pace;
pub mod playout;
pub mod resample;
pub mod wav;
