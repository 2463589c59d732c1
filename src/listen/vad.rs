//! Voice activity: how likely it is that a frame holds speech, and how loud it is.
//!
//! Owns the trait, the maker, and the detector that needs no weights of its own (earshot: pure Rust, weights in the crate, about
//! 16 us per 16 ms) with a measure of voicing beside it. Called by the loop for every frame. Never thresholds: hysteresis and
//! timing are the engine's. The better detector, for machines that have its weights, is `confirmed`.
//!
//! Why the measure of voicing: after digital silence (a muted microphone, a file, a gated headset) earshot takes steady hiss of -36 to
//! -42 dBFS for speech for seconds (measured: 98 % of windows over 0.5). So its word counts only near a voiced sound. Speech loses
//! 0 to 4 % of its windows by this, by voice and noise; a whisper, which has no voiced sound, is not heard. Quiet speech is
//! lifted first (`levelling`); the level that is told is the one that came.

use super::levelling::Levelling;
use super::voicing::Voicing;
use crate::media::level::rms_dbfs;

/// Samples in one window of the detector: 16 ms at 16 kHz.
const WINDOW: usize = 256;
/// From this much of the voicing measure on a window counts as voiced.
const VOICED: f32 = 0.5;
/// How many windows after a voiced sound earshot is believed: 400 ms, enough for "-sts" at the end of a word.
const BELIEVED: u32 = 25;
/// The most that is reported far from any voiced sound.
const UNVOICED_CAP: f32 = 0.3;

/// What one frame sounded like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VadFrame {
    /// Probability of speech, 0..=1: the highest of the windows that ended in this frame.
    pub probability: f32,
    /// Level of the frame, rms in dBFS.
    pub level_dbfs: f32,
}

/// A detector of speech with its own memory; one per stream.
pub trait Vad: Send {
    /// Takes a frame of mono i16 at 16 kHz (320 samples; other lengths work) and judges it.
    fn push(&mut self, frame: &[i16]) -> VadFrame;
    /// Forgets the past: a new stream begins.
    fn reset(&mut self);
}

/// Makes a detector for each new stream; cheap to clone, shared by all conversations.
#[derive(Clone, Default)]
pub struct VadMaker {
    #[cfg(feature = "voice")]
    confirmer: Option<std::sync::Arc<super::silero::SileroModel>>,
}

impl VadMaker {
    /// Makes detectors of two opinions (see `confirmed`). The default maker makes [`EarshotVad`]s.
    #[cfg(feature = "voice")]
    pub fn confirmed(model: std::sync::Arc<super::silero::SileroModel>) -> Self { Self { confirmer: Some(model) } }

    /// A detector that has heard nothing.
    pub fn make(&self) -> Box<dyn Vad> {
        #[cfg(feature = "voice")]
        if let Some(model) = &self.confirmer {
            return Box::new(super::confirmed::ConfirmedVad::new(model.clone()));
        }
        Box::new(EarshotVad::new())
    }
}

/// The detector that needs no weights.
pub struct EarshotVad {
    detector: Box<earshot::Detector>,
    voicing: Voicing,
    levelling: Levelling,
    /// Voiced windows in a row, and windows since there were two.
    in_a_row: u32,
    since_voiced: u32,
    /// The window that is filling.
    window: [i16; WINDOW],
    filled: usize,
    /// Given again when no window ended in a frame.
    last: f32,
}

impl EarshotVad {
    /// A detector that has heard nothing.
    pub fn new() -> Self {
        Self { detector: Box::default(), voicing: Voicing::new(), levelling: Levelling::new(), in_a_row: 0, since_voiced: BELIEVED, window: [0; WINDOW], filled: 0, last: 0.0 }
    }
}

impl EarshotVad {
    fn judge(&mut self) -> f32 {
        self.levelling.lift(&mut self.window);
        let likely = self.detector.predict_i16(&self.window).clamp(0.0, 1.0);
        self.voicing.push(&self.window);
        // The measure is dear beside the detector, so it is taken only where it can change the answer.
        let voiced = likely > UNVOICED_CAP && self.voicing.measure() > VOICED;
        self.in_a_row = if voiced { self.in_a_row + 1 } else { 0 };
        self.since_voiced = if self.in_a_row >= 2 { 0 } else { (self.since_voiced + 1).min(BELIEVED) };
        if self.since_voiced < BELIEVED { likely } else { likely.min(UNVOICED_CAP) }
    }
}

impl Default for EarshotVad {
    fn default() -> Self {
        Self::new()
    }
}

impl Vad for EarshotVad {
    fn push(&mut self, frame: &[i16]) -> VadFrame {
        let mut highest: Option<f32> = None;
        for &sample in frame {
            self.window[self.filled] = sample;
            self.filled += 1;
            if self.filled == WINDOW {
                self.filled = 0;
                let p = self.judge();
                self.last = p;
                highest = Some(highest.map_or(p, |h| h.max(p)));
            }
        }
        VadFrame { probability: highest.unwrap_or(self.last), level_dbfs: rms_dbfs(frame) }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::frame::EAR_FRAME;

    #[test]
    fn silence_and_hiss_are_not_speech() {
        let mut vad = EarshotVad::new();
        let mut seed = 1u32;
        let (mut silent, mut hissing) = (0, 0);
        for n in 0..300 {
            let frame: Vec<i16> = (0..EAR_FRAME).map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if n < 100 { 0 } else { ((seed >> 16) as i32 - 32_768) as i16 / 64 }
            }).collect();
            let likely = u32::from(vad.push(&frame).probability > 0.5);
            if n < 100 { silent += likely } else { hissing += likely }
        }
        assert!(silent == 0 && hissing <= 2, "{silent} of 100 silent, {hissing} of 200 hissing frames were taken for speech");
    }

    #[test]
    fn every_window_is_judged_once_and_odd_lengths_work() {
        let (mut whole, mut parts) = (EarshotVad::new(), EarshotVad::new());
        let sound: Vec<i16> = (0..EAR_FRAME * 40).map(|n| ((n as f32 * 0.05).sin() * 8000.0) as i16).collect();
        let a: f32 = sound.chunks(EAR_FRAME).map(|f| whole.push(f).probability).fold(0.0, f32::max);
        let b: f32 = sound.chunks(77).map(|f| parts.push(f).probability).fold(0.0, f32::max);
        assert_eq!((a, whole.filled), (b, parts.filled));
        assert!((whole.push(&[3277; 320]).level_dbfs + 20.0).abs() < 0.1);
        whole.reset();
        assert_eq!(whole.filled, 0);
    }
}
