//! Quiet speech made louder for the detector, and for nobody else.
//!
//! Owns a slow gain. Called by the detector for each window, ahead of everything it measures; what is kept for the recogniser is
//! not touched. Bounded three ways: by [`MOST_DB`], by what would be too loud, and by the noise, which is never lifted to where it
//! could be taken for something.
//!
//! Why: over a room's noise of -75 dBFS the detector lost 10 to 39 % of the windows of speech that was 30 dB under the usual -20
//! dBFS (four voices and read books); with this it loses 2 to 8 %. At the usual level it loses 1 % more than before, at the
//! beginning of a sentence. Five noises at five levels between -30 and -70 dBFS, 25 minutes, gave no onset with it or without.

use crate::media::level::{db_to_ratio, rms_dbfs, scale};

/// The most that is added, in dB. 24 dB did as well on quiet speech and lifts a television in the next room more.
const MOST_DB: f32 = 12.0;
/// Speech at this level needs nothing, in dBFS (the loudest window of the last seconds).
const LOUD_DBFS: f32 = -26.0;
/// Noise is not lifted over this, in dBFS.
const NOISE_DBFS: f32 = -58.0;
/// The loudest window is forgotten by so much a window of 16 ms: 6 dB a second.
const FORGET_DB: f32 = 0.1;
/// The gain rises by so much a window, 19 dB a second; it falls at once.
const RISE_DB: f32 = 0.3;
/// Windows in one part of the noise's memory: half a second; there are [`PARTS`], of which the quietest window counts.
const PART: u32 = 31;
const PARTS: usize = 5;

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Levelling {
    quietest: [f32; PARTS],
    windows: u32,
    loudest: f32,
    gain_db: f32,
}

impl Levelling {
    /// Nothing heard: it begins without gain.
    pub fn new() -> Self {
        Self { quietest: [0.0; PARTS], windows: 0, loudest: LOUD_DBFS, gain_db: 0.0 }
    }

    /// Lifts a window of 16 ms in place.
    pub fn lift(&mut self, window: &mut [i16]) {
        let level = rms_dbfs(window);
        if self.windows.is_multiple_of(PART) {
            self.quietest.rotate_left(1);
            self.quietest[PARTS - 1] = 0.0;
        }
        self.windows = self.windows.wrapping_add(1);
        self.quietest[PARTS - 1] = self.quietest[PARTS - 1].min(level);
        let noise = self.quietest.iter().copied().fold(0.0, f32::min);
        self.loudest = (self.loudest - FORGET_DB).max(level).max(LOUD_DBFS - 2.0 * MOST_DB);
        let wanted = (LOUD_DBFS - self.loudest).min(MOST_DB).min(NOISE_DBFS - noise).max(0.0);
        self.gain_db = wanted.min(self.gain_db + RISE_DB);
        if self.gain_db > 0.0 {
            scale(window, db_to_ratio(self.gain_db));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(level: i16, windows: usize, levelling: &mut Levelling) -> i16 {
        let mut window = [level; 256];
        for _ in 0..windows {
            window = [level; 256];
            levelling.lift(&mut window);
        }
        window[0]
    }

    #[test]
    fn quiet_speech_in_a_quiet_room_is_lifted_and_no_more_than_that() {
        let mut levelling = Levelling::new();
        assert_eq!(after(0, 500, &mut levelling), 0);
        // -50 dBFS becomes -38, and what is loud comes as it is from its first window on.
        let lifted = after(104, 10, &mut levelling);
        assert!((410..=420).contains(&lifted), "{lifted}");
        assert_eq!(after(16_000, 1, &mut levelling), 16_000);
        assert_eq!(after(104, 10, &mut levelling), 104, "and for a while what follows it");
    }

    #[test]
    fn noise_is_not_lifted_to_where_it_is_heard() {
        let mut levelling = Levelling::new();
        // -50 dBFS and -66 dBFS, for long.
        assert_eq!(after(104, 1_000, &mut levelling), 104);
        let mut levelling = Levelling::new();
        let lifted = after(16, 1_000, &mut levelling);
        assert!(rms_dbfs(&[lifted; 9]) <= NOISE_DBFS + 0.5, "{lifted}");
    }
}
