//! The last minute of sound, by absolute time: where an utterance is cut from once its ends are known.
//!
//! Owns 60 s of mono i16 at 16 kHz. Called by the loop: every frame goes in, every utterance comes out. Never grows.

use crate::media::frame::{EAR_HZ, ms_of, samples_in};
use std::sync::Arc;

/// How much is kept, in milliseconds.
pub const KEPT_MS: u64 = 60_000;
const CAPACITY: usize = (KEPT_MS * EAR_HZ as u64 / 1000) as usize;

/// Recent sound. Time 0 is the first sample that was ever pushed.
pub struct EarRing {
    samples: Box<[i16]>,
    /// Samples pushed since the beginning.
    pushed: u64,
}

impl EarRing {
    /// An empty ring (1.92 MB).
    pub fn new() -> Self {
        Self { samples: vec![0; CAPACITY].into_boxed_slice(), pushed: 0 }
    }

    /// Takes mono i16 at 16 kHz.
    pub fn push(&mut self, samples: &[i16]) {
        // Of more than a ring's length only the end can stay.
        let skipped = samples.len().saturating_sub(CAPACITY);
        self.pushed += skipped as u64;
        let mut rest = &samples[skipped..];
        while !rest.is_empty() {
            let at = (self.pushed % CAPACITY as u64) as usize;
            let n = rest.len().min(CAPACITY - at);
            self.samples[at..at + n].copy_from_slice(&rest[..n]);
            self.pushed += n as u64;
            rest = &rest[n..];
        }
    }

    /// Time of the end of what was pushed, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        ms_of(self.pushed, EAR_HZ)
    }

    /// Time of the oldest sample that is kept, in milliseconds, rounded up.
    pub fn oldest_ms(&self) -> u64 {
        ms_of(self.oldest() + u64::from(EAR_HZ) / 1000 - 1, EAR_HZ)
    }

    /// The sound from `from_ms` to `to_ms`, clamped to what is kept; empty when nothing of it is.
    pub fn slice(&self, from_ms: u64, to_ms: u64) -> Arc<[i16]> {
        let clamp = |ms| samples_in(ms, EAR_HZ).clamp(self.oldest(), self.pushed);
        let (from, to) = (clamp(from_ms), clamp(to_ms));
        if from >= to {
            return Arc::from([]);
        }
        let (at, n) = ((from % CAPACITY as u64) as usize, (to - from) as usize);
        if at + n <= CAPACITY {
            return Arc::from(&self.samples[at..at + n]);
        }
        let (head, tail) = (&self.samples[at..], &self.samples[..at + n - CAPACITY]);
        [head, tail].concat().into()
    }

    fn oldest(&self) -> u64 {
        self.pushed.saturating_sub(CAPACITY as u64)
    }
}

impl Default for EarRing {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_by_absolute_time_over_the_seam() {
        let mut ring = EarRing::new();
        let mut n = 0u64;
        // 70 s: the first 10 s are gone, and 55..65 s lies over the seam.
        for _ in 0..3500 {
            let frame: Vec<i16> = (0..320).map(|i| ((n + i) % 30_011) as i16).collect();
            ring.push(&frame);
            n += 320;
        }
        assert_eq!((ring.now_ms(), ring.oldest_ms()), (70_000, 10_000));
        let cut = ring.slice(55_000, 65_000);
        assert_eq!(cut.len(), 160_000);
        assert!(cut.iter().enumerate().all(|(i, s)| *s == ((880_000 + i as u64) % 30_011) as i16));
        assert_eq!(ring.slice(0, 11_000).len(), 16_000);
        assert_eq!(ring.slice(69_990, u64::MAX).len(), 160);
        assert!(ring.slice(0, 5_000).is_empty() && ring.slice(9, 3).is_empty() && ring.slice(80_000, 90_000).is_empty());
    }

    #[test]
    fn a_push_longer_than_the_ring_keeps_its_end() {
        let mut ring = EarRing::new();
        let long: Vec<i16> = (0..CAPACITY + 1600).map(|i| (i % 1000) as i16).collect();
        ring.push(&long);
        assert_eq!(ring.now_ms(), KEPT_MS + 100);
        assert_eq!(ring.slice(0, 101)[..], long[1600..1616]);
    }
}
