//! An hour without a voice: silence, hiss, a fan, hum, keys and tones like music, the same to the sample at every run.
//!
//! Called by `eval listen --noise` and tests. Pure: numbers in, samples out (mono i16, 16 kHz).

/// Kinds of sound.
pub const KINDS: [&str; 8] = ["digital silence", "white noise", "pink noise", "fan", "mains hum", "keyboard", "tones like music", "rumble and clicks"];
/// Loudness of each, rms in dBFS (keys: of a stroke).
pub const LEVELS: [f32; 4] = [-60.0, -50.0, -40.0, -30.0];
/// Samples a second.
pub const RATE_HZ: u32 = 16_000;

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    /// Even between -1 and 1.
    fn roll(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }
}

/// `seconds` of a kind (an index of [`KINDS`]) at a level.
pub fn sound(kind: usize, level_dbfs: f32, seconds: u32) -> Vec<i16> {
    let length = (seconds * RATE_HZ) as usize;
    let mut dice = Dice(0x5eed + kind as u64 * 977 + level_dbfs.abs() as u64);
    let shape = match kind {
        1 => (0..length).map(|_| dice.roll()).collect(),
        2 => pink(&mut dice, length),
        3 => fan(&mut dice, length),
        4 => tones(length, &[(50.0, 1.0), (100.0, 0.6), (150.0, 0.5), (250.0, 0.3), (350.0, 0.2), (550.0, 0.1)]),
        5 => keys(&mut dice, length),
        6 => music(&mut dice, length),
        7 => rumble(&mut dice, length),
        _ => vec![0.0; length],
    };
    to_level(&shape, level_dbfs, kind == 5)
}

/// Scales to the level; strokes are measured where they are, not over the pauses.
fn to_level(shape: &[f32], level_dbfs: f32, strokes: bool) -> Vec<i16> {
    let heard: Vec<f32> = shape.iter().copied().filter(|x| !strokes || x.abs() > 0.02).collect();
    let rms = (heard.iter().map(|x| x * x).sum::<f32>() / heard.len().max(1) as f32).sqrt();
    if rms == 0.0 {
        return vec![0; shape.len()];
    }
    let gain = 10f32.powf(level_dbfs / 20.0) * 32_768.0 / rms;
    shape.iter().map(|x| (x * gain).clamp(-32_768.0, 32_767.0) as i16).collect()
}

/// Seven poles of Paul Kellet's filter: falls 3 dB an octave.
fn pink(dice: &mut Dice, length: usize) -> Vec<f32> {
    let mut b = [0f32; 6];
    let poles = [(0.998_86, 0.055_517_9), (0.993_32, 0.075_075_9), (0.969, 0.153_852), (0.8665, 0.310_485_6), (0.55, 0.532_952_2), (-0.7616, -0.016_898)];
    let mut next = || {
        let white = dice.roll();
        for (state, (pole, gain)) in b.iter_mut().zip(poles) { *state = *state * pole + white * gain }
        b.iter().sum::<f32>() + white * 0.5362
    };
    (0..length).map(|_| next()).collect()
}

/// Air below 500 Hz, blades at 118 Hz, and a slow swell.
fn fan(dice: &mut Dice, length: usize) -> Vec<f32> {
    let mut low = 0.0;
    let at = |n: usize| n as f32 / RATE_HZ as f32 * std::f32::consts::TAU;
    (0..length).map(|n| {
        low += 0.18 * (dice.roll() - low);
        let blades = 0.25 * (at(n) * 118.0).sin() + 0.12 * (at(n) * 236.0).sin();
        (low + blades * 0.3) * (1.0 + 0.2 * (at(n) * 0.3).sin())
    }).collect()
}

fn tones(length: usize, parts: &[(f32, f32)]) -> Vec<f32> {
    (0..length).map(|n| parts.iter().map(|(hz, gain)| gain * (n as f32 / RATE_HZ as f32 * std::f32::consts::TAU * hz).sin()).sum()).collect()
}

/// Strokes of 4 to 12 a second, in bursts: a click, a body of 2 to 4 kHz, the key coming back.
fn keys(dice: &mut Dice, length: usize) -> Vec<f32> {
    let mut out = vec![0.0; length];
    let mut at = 0usize;
    while at < length {
        for (delay, gain) in [(0, 1.0), (1_400, 0.5)] {
            let hz = 3_000.0 + 1_000.0 * dice.roll();
            for n in 0..320 {
                let Some(sample) = out.get_mut(at + delay + n) else { break };
                let fade = (-(n as f32) / 60.0).exp();
                *sample += gain * fade * (0.6 * dice.roll() + 0.4 * (n as f32 / RATE_HZ as f32 * std::f32::consts::TAU * hz).sin());
            }
        }
        let pause = if dice.roll() > 0.8 { 24_000.0 } else { 2_600.0 };
        at += (pause * (1.0 + 0.5 * dice.roll())) as usize + 1;
    }
    out
}

/// Chords and a melody in the range of a voice, each note struck and fading.
fn music(dice: &mut Dice, length: usize) -> Vec<f32> {
    const SCALE: [f32; 8] = [220.0, 246.9, 261.6, 293.7, 329.6, 349.2, 392.0, 440.0];
    let mut out = vec![0.0; length];
    let (beat, ring) = (6_000usize, 20_000usize);
    for start in (0..length).step_by(beat) {
        let root = ((dice.roll() + 1.0) * 3.99) as usize;
        for (step, octave, gain) in [(0, 0.5, 0.5), (2, 1.0, 0.35), (4, 1.0, 0.3), (root, 2.0, 0.4)] {
            let hz = SCALE[(root + step) % 8] * octave;
            for n in 0..ring.min(length - start) {
                let t = n as f32 / RATE_HZ as f32;
                let fade = (-t * 4.0).exp() * (t * 200.0).min(1.0);
                let wave = (1..5).map(|k| (t * std::f32::consts::TAU * hz * k as f32).sin() / (k * k) as f32).sum::<f32>();
                out[start + n] += gain * fade * wave;
            }
        }
    }
    out
}

/// Traffic below 120 Hz with single clicks.
fn rumble(dice: &mut Dice, length: usize) -> Vec<f32> {
    let (mut low, mut lower) = (0.0, 0.0);
    (0..length).map(|n| {
        low += 0.045 * (dice.roll() - low);
        lower += 0.045 * (low - lower);
        lower * 6.0 + if n % 23_011 < 12 { 1.5 * dice.roll() } else { 0.0 }
    }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::rms_dbfs;

    #[test]
    fn each_kind_has_its_level_and_is_the_same_again() {
        for kind in 1..KINDS.len() {
            let a = sound(kind, -40.0, 4);
            assert_eq!(a.len(), 64_000);
            assert_eq!(a, sound(kind, -40.0, 4), "{}", KINDS[kind]);
            let level = rms_dbfs(&a);
            assert!(kind == 5 && (-65.0..-38.0).contains(&level) || (level + 40.0).abs() < 1.0, "{}: {level}", KINDS[kind]);
        }
        assert!(sound(0, -40.0, 1).iter().all(|s| *s == 0));
    }
}
