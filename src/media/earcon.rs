//! Short signs for the ear: the mode turned, something was refused, somebody is listening.
//!
//! Owns the four tones. Called by the loop, which mixes them over whatever plays. Never longer than 200 ms, never loud.

use super::level::{db_to_ratio, rms_dbfs, round_to_i16, scale};
use std::f32::consts::PI;

/// Level of every earcon, rms in dBFS.
pub const EARCON_DBFS: f32 = -18.0;
/// Length of the soft edges, in milliseconds.
const EDGE_MS: u32 = 8;

/// What a tone says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Earcon {
    /// Plan mode is on: two notes up.
    Enter,
    /// Plan mode is off: two notes down.
    Leave,
    /// Something was not done: one note twice. Not a low one: two notes of 220 Hz are a voice to any detector.
    Refused,
    /// The microphone is open: one short high note.
    Listening,
}

impl Earcon {
    /// Its notes as (Hz, ms); 0 Hz is a rest.
    fn notes(self) -> &'static [(f32, u32)] {
        match self {
            Self::Enter => &[(523.25, 80), (783.99, 110)],
            Self::Leave => &[(783.99, 80), (523.25, 110)],
            Self::Refused => &[(659.26, 75), (0.0, 30), (659.26, 85)],
            Self::Listening => &[(1046.5, 90)],
        }
    }
}

/// The tone as mono i16 at `rate_hz`, at most 200 ms, [`EARCON_DBFS`] rms, first and last sample near zero.
pub fn earcon(kind: Earcon, rate_hz: u32) -> Vec<i16> {
    let mut out = Vec::new();
    for &(hz, ms) in kind.notes() {
        note(hz, (u64::from(ms) * u64::from(rate_hz) / 1000) as usize, rate_hz, &mut out);
    }
    let gain = db_to_ratio(EARCON_DBFS - rms_dbfs(&out));
    scale(&mut out, gain);
    out
}

fn note(hz: f32, length: usize, rate_hz: u32, out: &mut Vec<i16>) {
    let edge = ((EDGE_MS * rate_hz / 1000) as usize).clamp(1, (length / 2).max(1));
    out.extend((0..length).map(|n| {
        let t = n as f32 / rate_hz as f32;
        let near = n.min(length - 1 - n).min(edge) as f32 / edge as f32;
        let soft = 0.5 - 0.5 * (PI * near).cos();
        // A little second harmonic, so that a small loudspeaker still carries the low notes.
        let wave = (2.0 * PI * hz * t).sin() + 0.25 * (4.0 * PI * hz * t).sin();
        round_to_i16(6000.0 * soft * wave)
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::peak;

    #[test]
    fn every_tone_is_short_soft_and_of_one_level() {
        for kind in [Earcon::Enter, Earcon::Leave, Earcon::Refused, Earcon::Listening] {
            for rate in [8_000, 16_000, 24_000, 44_100, 48_000] {
                let x = earcon(kind, rate);
                assert!(x.len() as u32 * 1000 <= 200 * rate, "{kind:?} is too long");
                assert!((rms_dbfs(&x) - EARCON_DBFS).abs() < 0.3, "{kind:?} {}", rms_dbfs(&x));
                assert!(peak(&x) < 16_000);
                let step = x.windows(2).map(|w| (i32::from(w[1]) - i32::from(w[0])).abs()).max().unwrap();
                assert!(x[0].abs() < 60 && x[x.len() - 1].abs() < 60 && step < 12_000, "{kind:?} clicks");
            }
        }
        assert_ne!(earcon(Earcon::Enter, 16_000), earcon(Earcon::Leave, 16_000));
    }
}
