//! Changing the rate: a streaming polyphase FIR with anti-aliasing and a constant delay.
//!
//! Owns the filter and its history. Called wherever two rates meet (devices, sockets, voices, the ear). Never rounds a frame
//! up or down: n input samples always give `n * to / from` outputs, carried exactly across calls.

use std::f64::consts::PI;

/// Zero crossings of the filter on either side, at the lower of the two rates. 24 at 16 kHz is 1.5 ms of delay.
const HALF_ZEROS: usize = 24;
/// Half-amplitude point as a part of the lower rate. With [`BETA`] the stop band begins at about half the lower rate.
const CUTOFF: f64 = 0.450;
/// Kaiser shape: about 80 dB of stop band.
const BETA: f64 = 8.0;
/// Rate pairs with more phases than this are interpolated between stored phases, which bounds the table.
const MAX_PHASES: usize = 1024;
/// Parts of an output's time in an adjustable resampler: one is a millionth of the ratio.
const FINE: u64 = 1_000_000;
/// The most that a ratio can be trimmed by, in millionths. 1 % is a sixth of a semitone.
pub const TRIM_MAX_PPM: i32 = 10_000;

/// Converts mono i16 from one integer rate to another, 8 to 96 kHz.
pub struct Resampler {
    from_hz: u32,
    to_hz: u32,
    /// Outputs per `down` inputs, in lowest terms.
    up: u64,
    down: u64,
    /// What an output moves the time by: `down`, or a little more or less.
    step: u64,
    /// Stored phases of `taps` coefficients each, plus one closing phase for interpolation.
    table: Vec<f32>,
    phases: usize,
    taps: usize,
    /// The last `taps` inputs, kept twice so that any window of them is contiguous.
    history: Vec<f32>,
    head: usize,
    /// Time of the next output after the newest input, in 1/up of an input sample.
    next: u64,
}

impl Resampler {
    /// A resampler for the pair. Rates are clamped to 1..; equal rates copy.
    pub fn new(from_hz: u32, to_hz: u32) -> Self {
        let (from, to) = (u64::from(from_hz.max(1)), u64::from(to_hz.max(1)));
        let common = gcd(from, to);
        let (up, down) = (to / common, from / common);
        let mut this = Self {
            from_hz, to_hz, up, down, step: down, table: Vec::new(), phases: 0, taps: 0, history: Vec::new(), head: 0, next: 0,
        };
        if up != down {
            this.design();
        }
        this
    }

    /// One whose ratio can be changed while it runs, by [`Self::trim`]: for two clocks that are not the same.
    pub fn adjustable(from_hz: u32, to_hz: u32) -> Self {
        let mut this = Self::new(from_hz, to_hz);
        (this.up, this.down, this.step) = (this.up * FINE, this.down * FINE, this.down * FINE);
        this.design();
        this
    }

    /// From now on gives this many more outputs in a million (fewer when negative). Nothing jumps: the phase goes on. Of no
    /// effect unless made by [`Self::adjustable`]; held to [`TRIM_MAX_PPM`].
    pub fn trim(&mut self, ppm: i32) {
        if self.down.is_multiple_of(FINE) {
            let ppm = i64::from(ppm.clamp(-TRIM_MAX_PPM, TRIM_MAX_PPM));
            self.step = self.down / FINE * FINE.saturating_add_signed(-ppm);
        }
    }

    /// The rate of the input, in Hz.
    pub fn from_hz(&self) -> u32 {
        self.from_hz
    }

    /// The rate of the output, in Hz.
    pub fn to_hz(&self) -> u32 {
        self.to_hz
    }

    /// How much later a sound leaves than it came, in output samples (rounded). 0 for equal rates.
    pub fn delay(&self) -> usize {
        let half = self.taps as u64 / 2;
        ((half * self.up + self.down / 2) / self.down) as usize
    }

    /// Takes any number of samples and appends what is due to `out`.
    pub fn push(&mut self, input: &[i16], out: &mut Vec<i16>) {
        if self.taps == 0 {
            return out.extend_from_slice(input);
        }
        for &sample in input {
            self.step(f32::from(sample), out);
        }
    }

    /// Appends what the filter still holds (one delay's worth) and forgets it: the next `push` begins a new sound.
    pub fn flush(&mut self, out: &mut Vec<i16>) {
        if self.taps == 0 {
            return;
        }
        for _ in 0..self.taps / 2 {
            self.step(0.0, out);
        }
        self.reset();
    }

    /// Forgets all input.
    pub fn reset(&mut self) {
        self.history.fill(0.0);
        self.head = 0;
        self.next = 0;
    }

    fn step(&mut self, sample: f32, out: &mut Vec<i16>) {
        // Newest first: the head walks backwards, so history[head..] reads x[i], x[i-1], ...
        self.head = if self.head == 0 { self.taps - 1 } else { self.head - 1 };
        self.history[self.head] = sample;
        self.history[self.head + self.taps] = sample;
        while self.next < self.up {
            let y = self.output(self.next);
            out.push(super::level::round_to_i16(y));
            self.next += self.step;
        }
        self.next -= self.up;
    }

    fn output(&self, phase: u64) -> f32 {
        let window = &self.history[self.head..self.head + self.taps];
        if self.phases as u64 == self.up {
            return dot(window, self.row(phase as usize));
        }
        let at = phase as f64 * self.phases as f64 / self.up as f64;
        let (row, part) = (at as usize, at.fract() as f32);
        dot(window, self.row(row)) * (1.0 - part) + dot(window, self.row(row + 1)) * part
    }

    fn row(&self, phase: usize) -> &[f32] {
        &self.table[phase * self.taps..(phase + 1) * self.taps]
    }

    fn design(&mut self) {
        // Widths are in input samples; going down the filter is stretched to the lower output rate.
        let stretch = (self.down as f64 / self.up as f64).max(1.0);
        let half = (HALF_ZEROS as f64 * stretch).ceil();
        self.taps = 2 * half as usize;
        self.phases = (self.up as usize).min(MAX_PHASES);
        self.table = Vec::with_capacity((self.phases + 1) * self.taps);
        for phase in 0..=self.phases {
            let shift = phase as f64 / self.phases as f64 - half;
            let row: Vec<f64> = (0..self.taps).map(|k| tap(k as f64 + shift, half, stretch)).collect();
            // Each phase sums to one: a constant stays the same constant, whatever the phase.
            let sum: f64 = row.iter().sum();
            self.table.extend(row.iter().map(|c| (c / sum) as f32));
        }
        self.history = vec![0.0; 2 * self.taps];
    }
}

/// Converts a whole sound at once, in time with the original: the delay is taken off and the length is `len * to / from`.
pub fn resample_all(input: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
    if from_hz == to_hz {
        return input.to_vec();
    }
    let mut r = Resampler::new(from_hz, to_hz);
    let (length, delay) = ((input.len() as u64 * r.up / r.down) as usize, r.delay());
    let mut out = Vec::with_capacity(length + 2 * delay + 2);
    r.push(input, &mut out);
    r.flush(&mut out);
    out.drain(..delay.min(out.len()));
    out.resize(length, 0);
    out
}

fn tap(t: f64, half: f64, stretch: f64) -> f64 {
    let x = 2.0 * CUTOFF * t / stretch;
    let sinc = if x.abs() < 1e-12 { 1.0 } else { (PI * x).sin() / (PI * x) };
    let inside = 1.0 - (t / half) * (t / half);
    if inside <= 0.0 { 0.0 } else { sinc * bessel_i0(BETA * inside.sqrt()) / bessel_i0(BETA) }
}

/// The modified Bessel function of order zero, by its series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        term *= quarter / (k * k) as f64;
        sum += term;
    }
    sum
}

/// Eight sums side by side, so that the compiler can use wide registers.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (wide_a, wide_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = wide_a.remainder().iter().zip(wide_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in wide_a.zip(wide_b) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f32>() + rest
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::rms_dbfs;

    const RATES: [u32; 8] = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

    fn tone(hz: f64, rate: u32, seconds: f64) -> Vec<i16> {
        let n = (seconds * f64::from(rate)) as usize;
        (0..n).map(|i| (16_000.0 * (2.0 * PI * hz * i as f64 / f64::from(rate)).sin()) as i16).collect()
    }

    /// Frequency by the first and last rising zero crossing, interpolated.
    fn frequency(x: &[i16], rate: u32) -> f64 {
        let rising: Vec<f64> = x.windows(2).enumerate().filter(|(_, w)| w[0] < 0 && w[1] >= 0)
            .map(|(i, w)| i as f64 + f64::from(-w[0]) / (f64::from(w[1]) - f64::from(w[0]))).collect();
        (rising.len() - 1) as f64 * f64::from(rate) / (rising[rising.len() - 1] - rising[0])
    }

    #[test]
    fn a_tone_keeps_frequency_and_level_for_every_pair() {
        for from in RATES {
            for to in RATES {
                let input = tone(1000.0, from, 0.5);
                let (mut r, mut out) = (Resampler::new(from, to), Vec::new());
                for chunk in input.chunks(from as usize / 50) {
                    r.push(chunk, &mut out);
                }
                assert!((out.len() as i64 - i64::from(to) / 2).abs() <= 1, "{from}->{to}: {}", out.len());
                let steady = &out[to as usize / 20..];
                assert!((frequency(steady, to) - 1000.0).abs() < 1.0, "{from}->{to}: {}", frequency(steady, to));
                let drift = rms_dbfs(steady) - rms_dbfs(&input);
                assert!(drift.abs() < 0.5, "{from}->{to}: {drift} dB");
            }
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_gone() {
        for (hz, from, to) in [(9_000.0, 48_000, 16_000), (5_000.0, 16_000, 8_000), (20_000.0, 96_000, 22_050), (14_000.0, 48_000, 24_000)] {
            let out = resample_all(&tone(hz, from, 0.3), from, to);
            let level = rms_dbfs(&out[out.len() / 4..out.len() * 3 / 4]);
            assert!(level < -70.0, "{hz} Hz {from}->{to}: {level} dBFS left");
        }
    }

    #[test]
    fn odd_pairs_are_bounded_and_right() {
        for (from, to) in [(8_001, 16_000), (95_999, 8_000), (11_025, 16_000), (47_999, 48_000)] {
            let r = Resampler::new(from, to);
            assert!(r.table.len() < 1_200_000, "{from}->{to}: {}", r.table.len());
            let out = resample_all(&tone(1000.0, from, 0.4), from, to);
            let steady = &out[to as usize / 20..out.len() - to as usize / 20];
            assert!((frequency(steady, to) - 1000.0).abs() < 1.0, "{from}->{to}");
        }
    }

    #[test]
    fn the_delay_is_constant_and_told() {
        for (from, to) in [(48_000, 16_000), (16_000, 48_000), (22_050, 16_000), (24_000, 16_000)] {
            let mut click = vec![0i16; from as usize / 10];
            click[100] = 30_000;
            let mut r = Resampler::new(from, to);
            let mut out = Vec::new();
            r.push(&click, &mut out);
            let loudest = out.iter().enumerate().max_by_key(|(_, s)| s.unsigned_abs()).map(|(i, _)| i).unwrap();
            let due = 100.0 * f64::from(to) / f64::from(from) + r.delay() as f64;
            assert!((loudest as f64 - due).abs() <= 1.5, "{from}->{to}: {loudest} for {due}");
        }
    }

    #[test]
    fn cutting_the_input_changes_nothing() {
        let input = tone(700.0, 44_100, 0.2);
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        Resampler::new(44_100, 16_000).push(&input, &mut whole);
        let mut r = Resampler::new(44_100, 16_000);
        for chunk in input.chunks(7) {
            r.push(chunk, &mut parts);
        }
        assert_eq!(whole, parts);
        r.flush(&mut parts);
        assert!(parts.len() > whole.len());
    }

    #[test]
    fn a_trimmed_ratio_gives_that_many_more_and_stays_clean() {
        for (from, to) in [(48_000, 48_000), (48_000, 44_100), (16_000, 48_000)] {
            for ppm in [-1_000, -200, 0, 200, 1_000] {
                let mut r = Resampler::adjustable(from, to);
                r.trim(ppm);
                let mut out = Vec::new();
                tone(1000.0, from, 4.0).chunks(from as usize / 50).for_each(|chunk| r.push(chunk, &mut out));
                let wanted = f64::from(to) * 4.0 * (1.0 + f64::from(ppm) / 1e6);
                assert!((out.len() as f64 - wanted).abs() < 2.0, "{from}->{to} {ppm}: {} for {wanted}", out.len());
                let steady = &out[to as usize / 20..];
                assert!((frequency(steady, to) - 1000.0 * (1.0 - f64::from(ppm) / 1e6)).abs() < 0.1, "{from}->{to} {ppm}");
                assert!((rms_dbfs(steady) - rms_dbfs(&tone(1000.0, from, 1.0))).abs() < 0.1, "{from}->{to} {ppm}");
            }
        }
        let mut fixed = Resampler::new(16_000, 8_000);
        fixed.trim(9_000);
        assert_eq!(fixed.step, fixed.down);
    }

    #[test]
    fn equal_rates_copy_and_whole_sounds_keep_time() {
        let x = [1, -2, i16::MIN, i16::MAX];
        assert_eq!(resample_all(&x, 48_000, 48_000), x);
        let x = tone(440.0, 24_000, 0.25);
        let back = resample_all(&resample_all(&x, 24_000, 48_000), 48_000, 24_000);
        assert_eq!(back.len(), x.len());
        let worst = x.iter().zip(&back).skip(200).take(5000).map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs()).max().unwrap();
        assert!(worst < 60, "{worst}");
        assert!(resample_all(&[], 8_000, 16_000).is_empty());
    }
}
