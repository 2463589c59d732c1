//! Rooms: what a shoebox does to a sound on its way from a mouth or a loudspeaker to a microphone.
//!
//! Owns impulse responses by image sources and the convolution with them. Called by the loop simulator and by whatever measures
//! hearing in rooms. Everything is a pure function of its arguments: the same room is the same samples on every machine.

use std::f64::consts::PI;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use crate::media::frame::EAR_HZ;

/// Metres a second.
const SOUND_M_S: f64 = 343.0;
/// Half the width of the pulse that stands for one reflection, in samples: a windowed sinc, so that delays need not be whole.
const PULSE_HALF: i64 = 8;
/// The response ends where it has fallen by this much, in dB: what follows is under any noise that is put in.
const KEPT_DB: f64 = 50.0;
/// Samples that go through the frequency domain at once.
const BLOCK: usize = 320;

/// A shoebox with somebody or something that sounds, and a microphone. Lengths in metres from one lower corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Length, width, height.
    pub size_m: [f64; 3],
    /// Where the sound comes from.
    pub source_m: [f64; 3],
    /// Where it is heard.
    pub microphone_m: [f64; 3],
    /// Time in which the reverberation falls by 60 dB, in milliseconds; 200 is a furnished room, 600 a bare one.
    pub rt60_ms: u32,
}

impl Room {
    /// A living room or office of one of several sizes, chosen by `number`: any number is a valid room with the microphone
    /// 0.6 to 2 m from the source.
    pub fn numbered(number: u64, rt60_ms: u32) -> Room {
        let mut random = Random::new(number ^ 0x5eed_0011);
        let size_m = [random.between(3.0, 6.5), random.between(2.6, 5.0), random.between(2.3, 3.0)];
        let source_m = [0, 1, 2].map(|axis| size_m[axis] * random.between(0.25, 0.45));
        let (turn, far) = (random.between(0.0, 2.0 * PI), random.between(0.6, 2.0));
        let wanted = [source_m[0] + far * turn.cos(), source_m[1] + far * turn.sin(), source_m[2] + random.between(-0.2, 0.2)];
        let microphone_m = [0, 1, 2].map(|axis| wanted[axis].clamp(0.3, size_m[axis] - 0.3));
        Room { size_m, source_m, microphone_m, rt60_ms }
    }
}

/// The response of a room at 16 kHz, beginning with the direct sound (`PULSE_HALF` samples late), scaled so that speech
/// leaves about as loud as it came (sum of squares 1). At most 1 s long.
///
/// Image sources with one reflection factor for all walls, by Eyring's formula; each image but the direct one is moved by up
/// to 4 cm, because a perfect shoebox whistles, and the decay is then fitted to what was asked for, because sound along the
/// longest axis of a shoebox outlives the formula.
pub fn impulse(room: &Room) -> Vec<f32> {
    let rate = f64::from(EAR_HZ);
    let rt60_s = f64::from(room.rt60_ms.clamp(50, 1_000)) / 1000.0;
    let length = (rt60_s * KEPT_DB / 60.0 * rate) as usize;
    let direct = distance(room.source_m, room.microphone_m).max(0.05);
    let reflection = reflection_factor(room.size_m, rt60_s);
    let furthest = direct + length as f64 / rate * SOUND_M_S;
    let mut response = vec![0f32; length + 2 * PULSE_HALF as usize];
    let most = room.size_m.map(|side| (furthest / (2.0 * side)).ceil() as i64 + 1);
    let mut random = Random::new(0x0b5e_55ed);
    for nx in -most[0]..=most[0] {
        for ny in -most[1]..=most[1] {
            for nz in -most[2]..=most[2] {
                let n = [nx, ny, nz];
                for mirrored in 0..8u32 {
                    let flips = [0, 1, 2].map(|axis| i64::from(mirrored >> axis & 1));
                    let image = [0, 1, 2].map(|axis| (1 - 2 * flips[axis]) as f64 * room.source_m[axis] + 2.0 * n[axis] as f64 * room.size_m[axis]);
                    let bounces: i64 = (0..3).map(|axis| (n[axis] - flips[axis]).abs() + n[axis].abs()).sum();
                    let jitter = if bounces == 0 { 0.0 } else { random.between(-0.04, 0.04) };
                    let way = distance(image, room.microphone_m).max(0.05) + jitter;
                    if way >= direct && way < furthest {
                        let gain = reflection.powi(bounces as i32) / way;
                        add_pulse(&mut response, (way - direct) / SOUND_M_S * rate, gain);
                    }
                }
            }
        }
    }
    fit_decay(&mut response, rt60_s);
    let energy: f32 = response.iter().map(|x| x * x).sum();
    let scale = 1.0 / energy.max(1e-12).sqrt();
    response.iter_mut().for_each(|x| *x *= scale);
    response
}

/// A sound in a room: as long as the sound and the response together. Mono, i16-scaled or not: it is linear.
pub fn convolve(sound: &[f32], response: &[f32]) -> Vec<f32> {
    let mut filter = Convolver::new(response);
    let length = sound.len() + response.len().saturating_sub(1);
    let mut out = Vec::with_capacity(length + BLOCK);
    let mut block = [0f32; BLOCK];
    while out.len() < length {
        let from = out.len().min(sound.len());
        let n = (sound.len() - from).min(BLOCK);
        block[..n].copy_from_slice(&sound[from..from + n]);
        block[n..].fill(0.0);
        out.extend_from_slice(filter.frame(&block));
    }
    out.truncate(length);
    out
}

/// [`convolve`] for mono i16: rounded and clamped.
pub fn convolve_i16(sound: &[i16], response: &[f32]) -> Vec<i16> {
    let floats: Vec<f32> = sound.iter().map(|s| f32::from(*s)).collect();
    convolve(&floats, response).into_iter().map(crate::media::level::round_to_i16).collect()
}

/// A room in running: 320 samples in, 320 samples out, without delay of its own.
pub struct Convolver {
    forward: Arc<dyn RealToComplex<f32>>,
    back: Arc<dyn ComplexToReal<f32>>,
    /// Spectra of the response's parts, the first first.
    parts: Vec<Vec<Complex<f32>>>,
    /// Spectra of the last inputs, the newest at `head`.
    inputs: Vec<Vec<Complex<f32>>>,
    head: usize,
    window: Vec<f32>,
    sum: Vec<Complex<f32>>,
    out: Vec<f32>,
}

impl Convolver {
    /// For this response; an empty one is silence.
    pub fn new(response: &[f32]) -> Self {
        let mut planner = RealFftPlanner::<f32>::new();
        let (forward, back) = (planner.plan_fft_forward(2 * BLOCK), planner.plan_fft_inverse(2 * BLOCK));
        let parts: Vec<_> = response.chunks(BLOCK).map(|part| {
            let mut padded = vec![0f32; 2 * BLOCK];
            // The inverse transform does not divide by its length; that is done here once.
            padded.iter_mut().zip(part).for_each(|(slot, x)| *slot = x / (2 * BLOCK) as f32);
            let mut spectrum = forward.make_output_vec();
            // Lengths are those the plan was made for.
            let _ = forward.process(&mut padded, &mut spectrum);
            spectrum
        }).collect();
        let inputs = parts.iter().map(|_| forward.make_output_vec()).collect();
        let sum = forward.make_output_vec();
        Self { forward, back, parts, inputs, head: 0, window: vec![0.0; 2 * BLOCK], sum, out: vec![0.0; 2 * BLOCK] }
    }

    /// The next 320 samples.
    pub fn frame(&mut self, block: &[f32; BLOCK]) -> &[f32] {
        if self.parts.is_empty() {
            return &self.out[BLOCK..];
        }
        self.window.copy_within(BLOCK.., 0);
        self.window[BLOCK..].copy_from_slice(block);
        self.head = (self.head + self.inputs.len() - 1) % self.inputs.len();
        let mut scratch = self.window.clone();
        let _ = self.forward.process(&mut scratch, &mut self.inputs[self.head]);
        self.sum.fill(Complex::default());
        for (n, part) in self.parts.iter().enumerate() {
            let input = &self.inputs[(self.head + n) % self.inputs.len()];
            self.sum.iter_mut().zip(input.iter().zip(part)).for_each(|(sum, (a, b))| *sum += a * b);
        }
        // A real signal has real ends; rounding may leave traces that the plan would refuse.
        if let Some(first) = self.sum.first_mut() { first.im = 0.0 }
        if let Some(last) = self.sum.last_mut() { last.im = 0.0 }
        let _ = self.back.process(&mut self.sum, &mut self.out);
        &self.out[BLOCK..]
    }
}

/// A deterministic stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self { Self(seed) }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly between the two.
    pub fn between(&mut self, low: f64, high: f64) -> f64 { low + (high - low) * (self.draw() >> 11) as f64 / (1u64 << 53) as f64 }

    /// Below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize { (self.draw() % n.max(1) as u64) as usize }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 { (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt() }

fn reflection_factor([x, y, z]: [f64; 3], rt60_s: f64) -> f64 {
    let (volume, walls) = (x * y * z, 2.0 * (x * y + y * z + z * x));
    let absorbed = 1.0 - (-0.161 * volume / (walls * rt60_s)).exp();
    (1.0 - absorbed.clamp(0.0, 0.99)).sqrt()
}

/// Time in which the response falls by 60 dB: from 5 to 25 dB below its whole (Schroeder's integral), times three.
fn measured_rt60_s(response: &[f32]) -> f64 {
    let total: f64 = response.iter().map(|x| f64::from(x * x)).sum();
    let mut left = total;
    let (mut at5, mut at25) = (0, 0);
    for (n, x) in response.iter().enumerate() {
        let db = 10.0 * (left / total.max(1e-30)).log10();
        if db > -5.0 { at5 = n }
        if db > -25.0 { at25 = n }
        left -= f64::from(x * x);
    }
    (at25 - at5) as f64 * 3.0 / f64::from(EAR_HZ)
}

fn fit_decay(response: &mut [f32], wanted_s: f64) {
    for _ in 0..3 {
        let measured = measured_rt60_s(response).max(0.02);
        // Decibels a second that are still missing.
        let more = 60.0 / wanted_s - 60.0 / measured;
        for (n, x) in response.iter_mut().enumerate() {
            *x *= 10f64.powf(-more * n as f64 / f64::from(EAR_HZ) / 20.0) as f32;
        }
    }
}

fn add_pulse(response: &mut [f32], at: f64, gain: f64) {
    let centre = at.round() as i64;
    for n in centre - PULSE_HALF..=centre + PULSE_HALF {
        let t = n as f64 - at;
        let place = n + PULSE_HALF;
        let Some(slot) = usize::try_from(place).ok().and_then(|i| response.get_mut(i)) else { continue };
        let sinc = if t.abs() < 1e-9 { 1.0 } else { (PI * t).sin() / (PI * t) };
        let window = 0.5 + 0.5 * (PI * t / (PULSE_HALF as f64 + 1.0)).cos();
        *slot += (gain * sinc * window) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_rings_as_long_as_it_says_and_is_the_same_each_time() {
        for rt60_ms in [200, 400, 600] {
            let room = Room::numbered(7, rt60_ms);
            let response = impulse(&room);
            let measured = 1000.0 * measured_rt60_s(&response);
            assert!((measured / f64::from(rt60_ms) - 1.0).abs() < 0.25, "{measured} for {rt60_ms}");
            assert_eq!(response, impulse(&room));
            assert!((response.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-3);
            let first = response.iter().position(|x| x.abs() > 0.05).unwrap();
            assert!(first <= 2 * PULSE_HALF as usize, "the direct sound comes first: {first}");
        }
    }

    #[test]
    fn convolution_is_the_sum_it_stands_for() {
        let mut random = Random::new(3);
        let sound: Vec<f32> = (0..777).map(|_| random.between(-1.0, 1.0) as f32).collect();
        let response: Vec<f32> = (0..1_001).map(|_| random.between(-0.1, 0.1) as f32).collect();
        let fast = convolve(&sound, &response);
        assert_eq!(fast.len(), 1_777);
        for n in [0, 1, 319, 320, 700, 1_500, 1_776] {
            let slow: f32 = (0..response.len()).filter(|k| n >= *k && n - k < sound.len()).map(|k| response[k] * sound[n - k]).sum();
            assert!((fast[n] - slow).abs() < 1e-4, "{n}: {} {slow}", fast[n]);
        }
        assert!(convolve(&[1.0; 5], &[]).iter().all(|x| *x == 0.0));
    }

    #[test]
    fn every_number_is_a_room() {
        for number in 0..200 {
            let room = Room::numbered(number, 300);
            let inside = |p: [f64; 3]| (0..3).all(|i| p[i] > 0.0 && p[i] < room.size_m[i]);
            assert!(inside(room.source_m) && inside(room.microphone_m) && distance(room.source_m, room.microphone_m) > 0.3, "{room:?}");
        }
    }
}
