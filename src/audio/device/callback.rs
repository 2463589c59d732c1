//! What the sound system's own thread runs: between a card's buffer and a lock-free ring, and nothing else.
//!
//! Owns one end of a ring and some counters. Called by the card's thread every period, which must not wait: nothing here
//! allocates, locks, logs or can panic. A test counts allocations, another reads this file for words that wait.

use crate::media::level::sample_from_f32;
use cpal::{FromSample, Sample};
use ringbuf::traits::{Consumer, Producer};
use ringbuf::{HeapCons, HeapProd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a microphone's thread counts.
#[derive(Debug, Default)]
pub struct Heard {
    /// Samples that found no room, because nobody emptied the ring.
    pub lost: AtomicU64,
}

/// Puts a microphone's buffers, mixed to mono i16, into a ring.
pub struct Taker {
    channels: usize,
    ring: HeapProd<i16>,
    counts: Arc<Heard>,
}

impl Taker {
    /// For buffers with this many channels side by side (at least one).
    pub fn new(channels: u16, ring: HeapProd<i16>, counts: Arc<Heard>) -> Self {
        Self { channels: usize::from(channels.max(1)), ring, counts }
    }

    /// Takes one buffer. What is no number, or infinite, is silence; a last incomplete group is left out.
    pub fn take<T: Copy>(&mut self, data: &[T])
    where
        f32: FromSample<T>,
    {
        let mut lost = 0u64;
        for group in data.chunks_exact(self.channels) {
            let sum: i32 = group.iter().map(|s| i32::from(sample_from_f32(f32::from_sample(*s)))).sum();
            lost += u64::from(self.ring.try_push((sum / self.channels as i32) as i16).is_err());
        }
        self.counts.lost.fetch_add(lost, Ordering::Relaxed);
    }
}

/// What a speaker's thread counts.
#[derive(Debug, Default)]
pub struct Played {
    /// Samples of ours that the device took.
    pub taken: AtomicU64,
    /// Times that it wanted more than there was, after the first sample.
    pub underruns: AtomicU64,
    /// Its last word on the time from taking to sounding, in microseconds.
    pub latency_us: AtomicU64,
}

/// Fills a speaker's buffers from a ring of mono i16, and with silence where it is empty.
pub struct Giver {
    channels: usize,
    ring: HeapCons<i16>,
    counts: Arc<Played>,
    begun: bool,
}

impl Giver {
    /// For buffers with this many channels side by side (at least one).
    pub fn new(channels: u16, ring: HeapCons<i16>, counts: Arc<Played>) -> Self {
        Self { channels: usize::from(channels.max(1)), ring, counts, begun: false }
    }

    /// Fills one buffer, which sounds `latency_us` microseconds later.
    pub fn give<T: Copy + FromSample<i16>>(&mut self, data: &mut [T], latency_us: u64) {
        let (mut taken, mut short) = (0u64, false);
        for group in data.chunks_mut(self.channels) {
            let sample = self.ring.try_pop();
            taken += u64::from(sample.is_some());
            short |= sample.is_none();
            group.fill(T::from_sample_(sample.unwrap_or(0)));
        }
        self.begun |= taken > 0;
        self.counts.taken.fetch_add(taken, Ordering::Release);
        self.counts.underruns.fetch_add(u64::from(short && self.begun), Ordering::Relaxed);
        self.counts.latency_us.store(latency_us, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringbuf::HeapRb;
    use ringbuf::traits::{Observer, Split};

    #[test]
    fn nothing_here_waits_or_allocates() {
        let text = include_str!("callback.rs");
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in ["Mutex", "RwLock", ".lock(", "Vec", "vec!", "Box", "String", "format!", "println!", "tracing", "metrics::", "unwrap()", "expect(", "panic!", "Instant", "mpsc", "[0]"] {
            let stands = code.lines().filter(|l| !l.trim_start().starts_with("//")).any(|l| l.contains(word));
            assert!(!stands, "{word} in a callback");
        }
    }

    #[test]
    fn six_channels_of_floats_become_mono_and_back() {
        let (producer, mut consumer) = HeapRb::<i16>::new(64).split();
        let counts = Arc::new(Heard::default());
        let mut taker = Taker::new(6, producer, counts.clone());
        taker.take(&[0.5f32; 12]);
        taker.take(&[f32::NAN, f32::INFINITY, 9.0, -9.0, 0.0, f32::NEG_INFINITY, 0.25]);
        assert_eq!(consumer.try_pop(), Some(16_384));
        assert_eq!(consumer.occupied_len(), 2, "half a group is left out");
        taker.take(&[1i16; 6 * 70]);
        assert_eq!((consumer.occupied_len(), counts.lost.load(Ordering::Relaxed)), (64, 8));
        let (producer, consumer) = HeapRb::<i16>::new(64).split();
        drop(producer);
        let played = Arc::new(Played::default());
        let mut giver = Giver::new(2, consumer, played.clone());
        let mut out = [7.0f32; 8];
        giver.give(&mut out, 5_000);
        assert_eq!((out, played.underruns.load(Ordering::Relaxed)), ([0.0; 8], 0), "silence before the first sample is no underrun");
    }

    #[test]
    fn what_is_short_after_the_first_sample_is_counted() {
        let (mut producer, consumer) = HeapRb::<i16>::new(64).split();
        producer.push_slice(&[16_384; 6]);
        let played = Arc::new(Played::default());
        let mut giver = Giver::new(1, consumer, played.clone());
        let mut out = [0.0f32; 4];
        giver.give(&mut out, 0);
        assert_eq!((out, played.underruns.load(Ordering::Relaxed)), ([0.5; 4], 0));
        giver.give(&mut out, 0);
        assert_eq!((out, played.underruns.load(Ordering::Relaxed), played.taken.load(Ordering::Relaxed)), ([0.5, 0.5, 0.0, 0.0], 1, 6));
    }
}
