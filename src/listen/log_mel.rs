//! The picture of a sound that the judge of ends of turns looks at: 80 mel bands, 100 frames a second, over 8 s.
//!
//! Owns the arithmetic (normalisation, short-time spectrum, bands, logarithm), as the model was trained with it. Called by
//! `smart_turn`. Pure but for the plan of its transform; the bands are computed, not stored.

use std::ops::Range;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use crate::media::mel::{self, BINS};

/// Samples that are looked at: 8 s at 16 kHz.
pub const SAMPLES: usize = 128_000;
/// Mel bands.
pub const BANDS: usize = 80;
/// Frames, 10 ms apart.
pub const FRAMES: usize = 800;
/// Samples between two frames.
const HOP: usize = 160;
/// Samples of one frame.
const WINDOW: usize = 400;
/// Power below this counts as this.
const FLOOR: f32 = 1e-10;
/// What lies further below the loudest point counts as this far below, in decades.
const RANGE: f32 = 8.0;
/// Keeps silence from being divided by nothing.
const LEAST_VARIANCE: f64 = 1e-7;

/// Computes pictures; keeps its buffers.
pub struct LogMel {
    transform: Arc<dyn RealToComplex<f32>>,
    scratch: Vec<Complex<f32>>,
    window: Vec<f32>,
    /// Each band's bins with its weights on them; the rest of a band is nothing.
    bands: Vec<(Range<usize>, Vec<f32>)>,
    /// The sound, normalised, with half a window of its mirror image at either end.
    sound: Vec<f32>,
}

impl LogMel {
    /// Plans the transform and computes window and bands (about a millisecond).
    pub fn new() -> Self {
        let transform = RealFftPlanner::new().plan_fft_forward(WINDOW);
        let scratch = transform.make_scratch_vec();
        let turn = std::f64::consts::TAU / WINDOW as f64;
        let window = (0..WINDOW).map(|n| (0.5 - 0.5 * (turn * n as f64).cos()) as f32).collect();
        Self { transform, scratch, window, bands: bands(), sound: vec![0.0; SAMPLES + WINDOW] }
    }

    /// The picture of the last 8 s of mono i16 at 16 kHz, [`BANDS`] rows of [`FRAMES`], nominal -1..=1.5. Shorter sound gets silence before it.
    pub fn picture(&mut self, sound: &[i16]) -> Vec<f32> {
        self.take(&sound[sound.len().saturating_sub(SAMPLES)..]);
        let mut picture = vec![0f32; BANDS * FRAMES];
        let mut time = vec![0f32; WINDOW];
        let mut bins = vec![Complex::new(0f32, 0f32); BINS];
        let mut power = vec![0f32; BINS];
        for frame in 0..FRAMES {
            let from = &self.sound[frame * HOP..frame * HOP + WINDOW];
            for ((t, s), w) in time.iter_mut().zip(from).zip(&self.window) {
                *t = s * w;
            }
            // The lengths are the plan's own, so this cannot fail; a failed frame would be a silent one.
            if self.transform.process_with_scratch(&mut time, &mut bins, &mut self.scratch).is_err() {
                bins.fill(Complex::new(0.0, 0.0));
            }
            power.iter_mut().zip(&bins).for_each(|(p, bin)| *p = bin.norm_sqr());
            for (band, (range, weights)) in self.bands.iter().enumerate() {
                let sum: f32 = power[range.clone()].iter().zip(weights).map(|(p, w)| p * w).sum();
                picture[band * FRAMES + frame] = sum.max(FLOOR).log10();
            }
        }
        let loudest = picture.iter().copied().fold(f32::MIN, f32::max);
        picture.iter_mut().for_each(|x| *x = (x.max(loudest - RANGE) + 4.0) / 4.0);
        picture
    }

    /// Fills `self.sound`: silence, then the sound, mean 0 and variance 1 over all 8 s, mirrored at both ends.
    fn take(&mut self, sound: &[i16]) {
        let (mut sum, mut squares) = (0f64, 0f64);
        for sample in sound {
            let s = f64::from(*sample) / 32_768.0;
            sum += s;
            squares += s * s;
        }
        let mean = sum / SAMPLES as f64;
        let variance = (squares / SAMPLES as f64 - mean * mean).max(0.0);
        let gain = 1.0 / (variance + LEAST_VARIANCE).sqrt();
        let half = WINDOW / 2;
        let inner = &mut self.sound[half..half + SAMPLES];
        let before = SAMPLES - sound.len();
        inner[..before].fill((-mean * gain) as f32);
        for (slot, sample) in inner[before..].iter_mut().zip(sound) {
            *slot = ((f64::from(*sample) / 32_768.0 - mean) * gain) as f32;
        }
        for n in 1..=half {
            self.sound[half - n] = self.sound[half + n];
            self.sound[half + SAMPLES - 1 + n] = self.sound[half + SAMPLES - 1 - n];
        }
    }
}

fn bands() -> Vec<(Range<usize>, Vec<f32>)> {
    let table = mel::filters(BANDS);
    let band = |weights: &[f32]| {
        let first = weights.iter().position(|w| *w > 0.0).unwrap_or(0);
        let end = weights.iter().rposition(|w| *w > 0.0).map_or(first, |last| last + 1);
        (first..end, weights[first..end].to_vec())
    };
    table.chunks(BINS).map(band).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_lights_its_band_at_its_time() {
        // 1 kHz for the last second. 15 mel per kHz of the linear part over 45.2 mel in 81 steps: band 26 by a hair.
        let sound: Vec<i16> = (0..16_000).map(|n| ((n as f32 * std::f32::consts::TAU / 16.0).sin() * 8_000.0) as i16).collect();
        let picture = LogMel::new().picture(&sound);
        let at = |frame: usize| (0..BANDS).max_by(|a, b| picture[a * FRAMES + frame].total_cmp(&picture[b * FRAMES + frame])).unwrap();
        assert!((25..=27).contains(&at(750)), "{}", at(750));
        let loudest = picture.iter().copied().fold(f32::MIN, f32::max);
        assert!((0..690).all(|frame| (0..BANDS).all(|band| picture[band * FRAMES + frame] < loudest - 1.0)), "silence before is dark");
    }

    #[test]
    fn every_length_gives_a_finite_picture() {
        let mut mel = LogMel::new();
        for length in [0, 1, 399, SAMPLES, SAMPLES + 1_000] {
            for level in [0i16, 1, i16::MIN] {
                let picture = mel.picture(&vec![level; length]);
                assert!(picture.len() == BANDS * FRAMES && picture.iter().all(|x| x.is_finite()), "{length} samples of {level}");
            }
        }
    }

    #[test]
    fn the_level_does_not_matter_and_only_the_last_eight_seconds_count() {
        let mut mel = LogMel::new();
        let tone = |level: f32| -> Vec<i16> { (0..SAMPLES).map(|n| ((n as f32 * 0.3).sin() * level + (n as f32 * 0.011).sin() * level) as i16).collect() };
        let (loud, soft) = (mel.picture(&tone(8_000.0)), mel.picture(&tone(4_000.0)));
        let peak = |p: &[f32]| p.iter().copied().fold(f32::MIN, f32::max);
        assert!((peak(&loud) - peak(&soft)).abs() < 1e-3);
        let longer = [vec![1_000i16; 5_000], tone(8_000.0)].concat();
        assert_eq!(mel.picture(&longer), loud);
    }
}
