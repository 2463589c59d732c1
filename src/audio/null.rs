//! A microphone that hears nothing and a speaker that nobody hears.
//!
//! Owns a frame length and a count. Used where a side is not wanted, and in tests.

use crate::media::frame::{frame_len, ms_of};

/// A silent microphone.
#[derive(Clone, Debug)]
pub struct NullMic {
    frame_len: usize,
}

impl NullMic {
    /// At a rate in Hz.
    pub fn new(rate_hz: u32) -> Self {
        Self { frame_len: frame_len(rate_hz) }
    }

    /// The next 20 ms: silence, for ever.
    pub fn next_frame(&mut self) -> Vec<i16> {
        vec![0; self.frame_len]
    }
}

/// A speaker that drops what it is given.
#[derive(Clone, Debug)]
pub struct NullSpeaker {
    rate_hz: u32,
    samples: u64,
}

impl NullSpeaker {
    /// At a rate in Hz.
    pub fn new(rate_hz: u32) -> Self {
        Self { rate_hz, samples: 0 }
    }

    /// Takes mono i16 and drops it.
    pub fn write(&mut self, pcm: &[i16]) {
        self.samples += pcm.len() as u64;
    }

    /// How much was dropped, in milliseconds.
    pub fn played_ms(&self) -> u64 {
        ms_of(self.samples, self.rate_hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_in_and_nothing_out() {
        assert_eq!(NullMic::new(48_000).next_frame(), vec![0; 960]);
        let mut speaker = NullSpeaker::new(16_000);
        speaker.write(&[9; 1600]);
        assert_eq!(speaker.played_ms(), 100);
    }
}
