//! The hearing end of the driver: whatever arrives becomes 20 ms frames at 16 kHz, each judged for voice, the last minute kept.
//!
//! Where a loudspeaker of ours stands in the same room, its sound is taken out first, for the detector more thoroughly than for
//! the ring and so the recogniser.

use std::sync::Arc;

use crate::listen::canceller::{Canceller, Cleaned, NearGate};
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

/// What is done to a device's sound before it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// What we play is taken out of what we hear.
    pub echo_canceller: bool,
    /// Steady noise is taken down as well; only together with the canceller.
    pub noise_suppression: bool,
}

impl Default for Cleaning {
    fn default() -> Self { Self { echo_canceller: true, noise_suppression: false } }
}

/// See the file's head.
pub struct EarEnd {
    ring: EarRing,
    vad: Box<dyn Vad>,
    resampler: Option<Resampler>,
    waiting: Cleaned,
    cleaning: Option<Cleaner>,
}

/// The most that is believed of a frame that is too quiet to be somebody beside the loudspeaker.
const NOT_NEAR: f32 = 0.2;

struct Cleaner {
    canceller: Canceller,
    gate: NearGate,
    /// What is played, from its rate to the ear's.
    far: Resampler,
    played: Vec<i16>,
}

impl EarEnd {
    /// An ear for sound at this rate.
    pub fn new(rate_hz: u32) -> Self {
        let resampler = (rate_hz != 16_000).then(|| Resampler::new(rate_hz, 16_000));
        Self { ring: EarRing::new(), vad: VadMaker::default().make(), resampler, waiting: Cleaned::default(), cleaning: None }
    }

    /// The ear of a device whose loudspeaker may be heard by its microphone.
    pub fn beside_a_loudspeaker(mut self, cleaning: Cleaning) -> Self {
        self.cleaning = cleaning.echo_canceller.then(|| Cleaner { canceller: Canceller::new(cleaning.noise_suppression), gate: NearGate::new(), far: Resampler::new(16_000, 16_000), played: Vec::new() });
        self
    }

    /// Tells what is played just now, mono at any rate: call it before [`EarEnd::push`] of the same time.
    pub fn reference(&mut self, samples: &[i16], rate_hz: u32) {
        let Some(Cleaner { canceller, gate, far, played, .. }) = &mut self.cleaning else { return };
        if far.from_hz() != rate_hz {
            canceller.reset();
            *gate = NearGate::new();
            *far = Resampler::new(rate_hz, 16_000);
        }
        played.clear();
        far.push(samples, played);
        gate.played(played);
        canceller.reference(played);
    }

    /// The same ear with another detector of voice.
    pub fn with_vad(mut self, vad: Box<dyn Vad>) -> Self {
        self.vad = vad;
        self
    }

    /// Takes sound at the ear's rate; answers what each whole frame was.
    pub fn push(&mut self, samples: &[i16]) -> Vec<Framed> {
        let mut at_16k = Vec::new();
        let sound = match &mut self.resampler {
            Some(resampler) => { resampler.push(samples, &mut at_16k); &at_16k }
            None => samples,
        };
        match &mut self.cleaning {
            Some(cleaner) => cleaner.canceller.microphone(sound, &mut self.waiting),
            None => {
                self.waiting.voice.extend_from_slice(sound);
                self.waiting.words.extend_from_slice(sound);
            }
        }
        let whole = self.waiting.voice.len() / EAR_FRAME * EAR_FRAME;
        let mut frames = Vec::with_capacity(whole / EAR_FRAME);
        for (voice, words) in self.waiting.voice[..whole].chunks(EAR_FRAME).zip(self.waiting.words.chunks(EAR_FRAME)) {
            self.ring.push(words);
            let judged = self.vad.push(voice);
            let near = self.cleaning.as_mut().is_none_or(|c| c.gate.may_be_near(judged.level_dbfs, judged.probability));
            let probability = if near { judged.probability } else { judged.probability.min(NOT_NEAR) };
            frames.push(Framed { probability, level_dbfs: judged.level_dbfs });
        }
        self.waiting.voice.drain(..whole);
        self.waiting.words.drain(..whole);
        frames
    }

    /// Another microphone or speaker, or the same one opened anew: what was learnt of the way between them is void. Times, rate and
    /// what was heard stay.
    pub fn device_changed(&mut self) {
        self.vad.reset();
        if let Some(cleaner) = &mut self.cleaning {
            cleaner.canceller.reset();
            cleaner.gate = NearGate::new();
            cleaner.far = Resampler::new(cleaner.far.from_hz(), 16_000);
        }
    }

    /// The sound between two microphone times, mono i16 at 16 kHz.
    pub fn slice(&self, from_ms: u64, to_ms: u64) -> Arc<[i16]> { self.ring.slice(from_ms, to_ms) }
}
