//! From the network's spectra to a waveform: a pulse train shaped by the harmonic branch, shaped noise, and a free-phase branch,
//! added in the spectrum and brought back by one inverse short-time transform.
//!
//! Owns the arithmetic of the synthesis step. Called by `hibari` with the network's six outputs. Never reads a random source:
//! its noise follows from the seed.

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftError, RealFftPlanner, RealToComplex};
use std::f32::consts::{PI, TAU};
use std::sync::Arc;

/// Samples a second.
pub const RATE_HZ: u32 = 24_000;
/// Samples between two frames (12.5 ms).
const HOP: usize = 300;
/// Length of a transform.
const FFT: usize = 1200;
/// Bins of a transform.
const BINS: usize = FFT / 2 + 1;
/// Below this pitch a sample is voiceless, in Hz.
const VOICELESS_HZ: f32 = 40.0;
/// No harmonic lies higher, in Hz.
const TOP_HZ: f32 = 11_000.0;
/// The network's logarithms are not believed beyond this.
const MAX_LOG: f32 = 7.0;

/// Five planes `[601][F]` (harmonic log magnitude, harmonic phase, noise log magnitude, free log magnitude, free phase) and
/// the pitch `[F]` in Hz give `300 * F` samples, nominal -1..=1. Planes that do not fit together give nothing.
///
/// # Errors
/// The transform's, which means a programming mistake.
pub fn synthesise(planes: &[Vec<f32>; 6], seed: u64) -> Result<Vec<f32>, FftError> {
    let frames = planes[5].len();
    if frames == 0 || planes[..5].iter().any(|p| p.len() != BINS * frames) {
        return Ok(Vec::new());
    }
    let mut transform = Transform::new();
    let mut noise = Noise(seed);
    let padded = reflected(&pulses(&planes[5]));
    let mut overlap = Overlap::new(frames);
    let mut time = vec![0f32; FFT];
    let mut bins = vec![Complex::new(0f32, 0f32); BINS];
    for frame in 0..frames {
        let source = &padded[frame * HOP..frame * HOP + FFT];
        for ((t, s), w) in time.iter_mut().zip(source).zip(&transform.window) {
            // A cosine of amplitude one peaks at one: the log magnitude is the harmonic's.
            *t = s * w / (FFT as f32 / 4.0);
        }
        transform.forward.process_with_scratch(&mut time, &mut bins, &mut transform.scratch)?;
        shape(planes, frames, frame, &mut bins, &mut noise);
        transform.inverse.process_with_scratch(&mut bins, &mut time, &mut transform.scratch)?;
        overlap.add(frame, &time, &transform.window);
    }
    Ok(overlap.finish())
}

/// Applies the five planes to the spectrum of one frame of pulses.
fn shape(planes: &[Vec<f32>; 6], frames: usize, frame: usize, bins: &mut [Complex<f32>], noise: &mut Noise) {
    let [harmonic, angle, hiss, free, phase, _] = planes;
    for (k, bin) in bins.iter_mut().enumerate() {
        let at = k * frames + frame;
        let turned = Complex::from_polar(capped_exp(harmonic[at]), PI * angle[at].tanh());
        let hissing = noise.next() * capped_exp(hiss[at]);
        *bin = *bin * turned + hissing + Complex::from_polar(capped_exp(free[at]), phase[at]);
    }
    // A real signal has real ends.
    bins[0].im = 0.0;
    bins[BINS - 1].im = 0.0;
}

fn capped_exp(x: f32) -> f32 {
    x.min(MAX_LOG).exp()
}

/// All harmonics below [`TOP_HZ`] at amplitude one, following a pitch that is interpolated between frames; silent where voiceless.
/// The sum of n cosines is sin((n + 1/2) t) / (2 sin(t / 2)) - 1/2.
fn pulses(f0: &[f32]) -> Vec<f32> {
    let mut turns = 0f64;
    (0..f0.len() * HOP).map(|n| {
        let hz = pitch_at(f0, n);
        let voiced = hz > VOICELESS_HZ;
        let hz = hz.max(VOICELESS_HZ);
        turns = (turns + f64::from(hz) / f64::from(RATE_HZ)).fract();
        if !voiced {
            return 0.0;
        }
        let t = turns as f32 * TAU;
        let order = (TOP_HZ / hz).floor() + 0.5;
        let below = 2.0 * (t / 2.0).sin();
        // Near a pulse both sines vanish, and their quotient is the order.
        let peak = if below.abs() <= 2e-3 { order } else { (order * t).sin() / below };
        peak - 0.5
    }).collect()
}

/// Pitch at a sample: frames stand at the middle of their hop, ends are held.
fn pitch_at(f0: &[f32], n: usize) -> f32 {
    let at = (n as f32 + 0.5) / HOP as f32 - 0.5;
    let low = at.floor();
    let part = at - low;
    let frame = |i: f32| f0[(i.max(0.0) as usize).min(f0.len() - 1)];
    frame(low) * (1.0 - part) + frame(low + 1.0) * part
}

/// Half a transform mirrored onto either end.
fn reflected(x: &[f32]) -> Vec<f32> {
    let half = FFT / 2;
    let last = x.len() as isize - 1;
    let mirror = |i: isize| {
        // Folds more than once where the sound is shorter than half a transform.
        let period = (2 * last).max(1);
        let i = i.rem_euclid(period);
        x[(if i > last { period - i } else { i }) as usize]
    };
    (-(half as isize)..x.len() as isize + half as isize).map(mirror).collect()
}

struct Transform {
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    scratch: Vec<Complex<f32>>,
    /// Periodic Hann.
    window: Vec<f32>,
}

impl Transform {
    fn new() -> Self {
        let mut planner = RealFftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(FFT), planner.plan_fft_inverse(FFT));
        let longest = forward.get_scratch_len().max(inverse.get_scratch_len());
        let window = (0..FFT).map(|n| 0.5 - 0.5 * (TAU * n as f32 / FFT as f32).cos()).collect();
        Self { forward, inverse, scratch: vec![Complex::default(); longest], window }
    }
}

/// Windowed frames added up, and the squared windows beside them.
struct Overlap {
    sum: Vec<f32>,
    weight: Vec<f32>,
}

impl Overlap {
    fn new(frames: usize) -> Self {
        let length = (frames - 1) * HOP + FFT;
        Self { sum: vec![0.0; length], weight: vec![0.0; length] }
    }

    fn add(&mut self, frame: usize, time: &[f32], window: &[f32]) {
        let at = frame * HOP;
        let places = self.sum[at..].iter_mut().zip(&mut self.weight[at..]);
        for ((sum, weight), (t, w)) in places.zip(time.iter().zip(window)) {
            // The inverse transform comes without its 1/n.
            *sum += t * w / FFT as f32;
            *weight += w * w;
        }
    }

    /// Without the half transform before the first frame's middle; as many hops as frames.
    fn finish(self) -> Vec<f32> {
        let (half, length) = (FFT / 2, self.sum.len() + HOP - FFT);
        let ends = self.sum.iter().zip(&self.weight).skip(half).take(length);
        let mut out: Vec<f32> = ends.map(|(s, w)| s / w.max(1e-11)).collect();
        // One frame alone is shorter than its hops say.
        out.resize(length, 0.0);
        out
    }
}

/// Complex normal noise (both parts of variance one) from a counter (splitmix64) by Box and Muller.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // 24 bits, never zero: its logarithm is taken.
        (((z ^ (z >> 31)) >> 40) as f32 + 0.5) / (1u32 << 24) as f32
    }

    fn next(&mut self) -> Complex<f32> {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        Complex::from_polar(radius, TAU * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes(frames: usize, log: [f32; 3], hz: f32) -> [Vec<f32>; 6] {
        let plane = |v: f32| vec![v; BINS * frames];
        [plane(log[0]), plane(0.0), plane(log[1]), plane(log[2]), plane(0.0), vec![hz; frames]]
    }

    #[test]
    fn a_steady_pitch_with_a_flat_filter_is_the_pulse_train_itself() {
        let p = planes(40, [0.0, -60.0, -60.0], 200.0);
        let out = synthesise(&p, 1).unwrap();
        assert_eq!(out.len(), 40 * HOP);
        // exp(0) is amplitude one over FFT / 4 and the transform's own scale: the train comes back smaller by FFT / 4.
        let train = pulses(&p[5]);
        for n in FFT..out.len() - FFT {
            assert!((out[n] * (FFT as f32 / 4.0) - train[n]).abs() < 0.05, "{n}: {} for {}", out[n] * 300.0, train[n]);
        }
        // A pulse every 120 samples, as high as it has harmonics.
        let tops = (FFT..out.len() - FFT).filter(|&n| train[n] > 40.0).count();
        assert!((tops as i64 - (out.len() - 2 * FFT) as i64 / 120).abs() <= 1, "{tops}");
    }

    #[test]
    fn voiceless_frames_leave_the_noise_which_follows_its_seed() {
        let p = planes(20, [3.0, 0.0, -60.0], 0.0);
        let (a, b, c) = (synthesise(&p, 5).unwrap(), synthesise(&p, 5).unwrap(), synthesise(&p, 6).unwrap());
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert!(a.iter().all(|x| x.is_finite()) && a.iter().any(|x| x.abs() > 1e-3));
        assert!(pulses(&p[5]).iter().all(|x| *x == 0.0));
    }

    #[test]
    fn noise_has_variance_one_and_odd_planes_give_nothing() {
        let mut noise = Noise(3);
        let power: f32 = (0..20_000).map(|_| noise.next().norm_sqr()).sum::<f32>() / 20_000.0;
        assert!((power - 2.0).abs() < 0.06, "{power}");
        let mut p = planes(3, [0.0; 3], 100.0);
        p[2].pop();
        assert!(synthesise(&p, 1).unwrap().is_empty());
        for frames in [1, 2, 3] {
            assert_eq!(synthesise(&planes(frames, [9.0; 3], 150.0), 1).unwrap().len(), frames * HOP);
        }
    }
}
