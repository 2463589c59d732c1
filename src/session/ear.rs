//! The hearing end of the driver: whatever arrives becomes 20 ms frames at 16 kHz, each judged for voice, the last minute kept.

use std::sync::Arc;

use crate::listen::ring::EarRing;
use crate::listen::vad::{Vad, VadMaker};
use crate::media::frame::EAR_FRAME;
use crate::media::resample::Resampler;

/// What one frame was.
#[derive(Clone, Copy, Debug)]
pub struct Framed {
    /// Probability of voice.
    pub probability: f32,
    /// Level in dBFS.
    pub level_dbfs: f32,
}

/// See the file's head.
pub struct EarEnd {
    ring: EarRing,
    vad: Box<dyn Vad>,
    resampler: Option<Resampler>,
    waiting: Vec<i16>,
}

impl EarEnd {
    /// An ear for sound at this rate.
    pub fn new(rate_hz: u32) -> Self {
        let resampler = (rate_hz != 16_000).then(|| Resampler::new(rate_hz, 16_000));
        Self { ring: EarRing::new(), vad: VadMaker::default().make(), resampler, waiting: Vec::with_capacity(EAR_FRAME * 4) }
    }

    /// The same ear with another detector of voice.
    pub fn with_vad(mut self, vad: Box<dyn Vad>) -> Self {
        self.vad = vad;
        self
    }

    /// Takes sound at the ear's rate; answers what each whole frame was.
    pub fn push(&mut self, samples: &[i16]) -> Vec<Framed> {
        match &mut self.resampler {
            Some(resampler) => resampler.push(samples, &mut self.waiting),
            None => self.waiting.extend_from_slice(samples),
        }
        let whole = self.waiting.len() / EAR_FRAME * EAR_FRAME;
        let mut frames = Vec::with_capacity(whole / EAR_FRAME);
        for frame in self.waiting[..whole].chunks(EAR_FRAME) {
            self.ring.push(frame);
            let judged = self.vad.push(frame);
            frames.push(Framed { probability: judged.probability, level_dbfs: judged.level_dbfs });
        }
        self.waiting.drain(..whole);
        frames
    }

    /// The sound between two microphone times, mono i16 at 16 kHz.
    pub fn slice(&self, from_ms: u64, to_ms: u64) -> Arc<[i16]> { self.ring.slice(from_ms, to_ms) }
}
