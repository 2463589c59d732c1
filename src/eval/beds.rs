//! Beds of noise and a plain room for the cases: the same seed gives the same samples on every machine.
//!
//! Called by `eval::clips`. Pure. Levels are relative: whoever mixes sets them.

/// A small generator (xorshift64*), the same everywhere.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Two dice of one seed fall alike.
    pub fn new(seed: u64) -> Self { Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0..1.
    pub fn share(&mut self) -> f32 { (self.roll() >> 40) as f32 / (1u64 << 24) as f32 }

    /// -1..1.
    pub fn swing(&mut self) -> f32 { 2.0 * self.share() - 1.0 }

    /// `low..high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 { low + (high - low) * self.share() }
}

/// 3 dB less an octave: the noise of rooms and of a quiet microphone (Paul Kellet's filter).
pub fn pink(dice: &mut Dice, samples: usize) -> Vec<f32> {
    let mut state = [0.0f32; 3];
    (0..samples).map(|_| {
        let white = dice.swing();
        for (s, (pole, gain)) in state.iter_mut().zip([(0.997_65, 0.099_046), (0.963, 0.296_516_4), (0.57, 1.052_691_3)]) {
            *s = pole * *s + white * gain;
        }
        state.iter().sum::<f32>() + white * 0.1848
    }).collect()
}

/// A fan: pink noise with its upper half dampened, and the hum of its motor.
pub fn fan(dice: &mut Dice, samples: usize) -> Vec<f32> {
    let (mut low, hum) = (0.0f32, dice.between(90.0, 140.0));
    pink(dice, samples).into_iter().enumerate().map(|(n, p)| {
        low += 0.35 * (p - low);
        let turn = std::f32::consts::TAU * hum * n as f32 / 16_000.0;
        low + 0.25 * turn.sin() + 0.12 * (2.0 * turn).sin()
    }).collect()
}

/// Several people who talk: `speech` (mono, 16 kHz) laid over itself `voices` times from places that the dice choose, with the
/// clicks of a keyboard and a little pink noise.
pub fn babble(dice: &mut Dice, speech: &[f32], voices: usize, samples: usize) -> Vec<f32> {
    let mut out = vec![0.0f32; samples];
    if speech.is_empty() { return pink(dice, samples) }
    for _ in 0..voices {
        let (start, gain) = (dice.roll() as usize % speech.len(), dice.between(0.5, 1.0));
        out.iter_mut().zip(speech.iter().cycle().skip(start)).for_each(|(o, s)| *o += gain * s);
    }
    let level = rms(&out);
    let bed = pink(dice, samples);
    let thin = level * 0.15 / rms(&bed).max(1e-9);
    out.iter_mut().zip(bed).for_each(|(o, p)| *o += thin * p);
    let mut at = dice.between(0.0, 8_000.0) as usize;
    while at + 200 < samples {
        let loud = level * dice.between(1.0, 2.5);
        (0..200).for_each(|n| out[at + n] += loud * dice.swing() * (-(n as f32) / 40.0).exp());
        at += dice.between(1_600.0, 9_600.0) as usize;
    }
    out
}

/// A room by its statistics: the direct sound, and after it a tail of sparse echoes that loses 60 dB in `rt60_s`. `ratio_db` is
/// the energy of the direct sound over the tail's.
pub fn room(dice: &mut Dice, sound: &[f32], rt60_s: f32, ratio_db: f32) -> Vec<f32> {
    let length = (rt60_s * 16_000.0) as usize;
    // Two thousand echoes a second are as smooth to the ear as noise (velvet noise).
    let taps: Vec<(usize, f32)> = (0..length / 8).map(|n| {
        let at = 24 + n * 8 + dice.roll() as usize % 8;
        (at, if dice.roll() & 1 == 0 { 1.0 } else { -1.0 } * (-6.9 * at as f32 / length as f32).exp())
    }).collect();
    let energy: f32 = taps.iter().map(|(_, g)| g * g).sum();
    let gain = (10f32.powf(-ratio_db / 10.0) / energy.max(1e-9)).sqrt();
    let mut out = sound.to_vec();
    out.resize(sound.len() + length + 32, 0.0);
    for (at, g) in taps {
        let g = g * gain;
        out[at..at + sound.len()].iter_mut().zip(sound).for_each(|(o, s)| *o += g * s);
    }
    out
}

/// Root of the mean square.
pub fn rms(sound: &[f32]) -> f32 { (sound.iter().map(|s| s * s).sum::<f32>() / sound.len().max(1) as f32).sqrt() }

/// As [`rms`], of those 20 ms frames that are within 30 dB of the loudest: the level of speech without its pauses.
pub fn active_rms(sound: &[f32]) -> f32 {
    let frames: Vec<f32> = sound.chunks(320).map(|f| rms(f).powi(2)).collect();
    let most = frames.iter().copied().fold(0.0, f32::max);
    let loud: Vec<f32> = frames.into_iter().filter(|e| *e > most / 1000.0).collect();
    (loud.iter().sum::<f32>() / loud.len().max(1) as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sound() {
        assert_eq!(pink(&mut Dice::new(7), 100), pink(&mut Dice::new(7), 100));
        assert_ne!(fan(&mut Dice::new(7), 100), fan(&mut Dice::new(8), 100));
        let bed = babble(&mut Dice::new(1), &[0.1, -0.1, 0.2, 0.0], 5, 32_000);
        assert!(bed.len() == 32_000 && rms(&bed) > 0.05 && bed.iter().all(|s| s.is_finite()));
    }

    #[test]
    fn a_room_keeps_the_direct_sound_and_adds_a_tail_of_its_energy() {
        let mut click = vec![0.0; 1_600];
        click[0] = 1.0;
        let heard = room(&mut Dice::new(3), &click, 0.5, 6.0);
        let tail: f32 = heard[1..].iter().map(|s| s * s).sum();
        assert!(heard[0] == 1.0 && (tail - 0.251).abs() < 0.01, "{tail}");
        let (early, late) = (rms(&heard[24..1_000]), rms(&heard[6_000..7_000]));
        assert!(early > 20.0 * late, "{early} {late}");
    }
}
