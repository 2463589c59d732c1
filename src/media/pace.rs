//! Does sound come at the rate that was declared? Told by the wall, from how much comes in how long.
//!
//! Owns a few seconds of arrivals. Called by a socket's ear at every piece. Reads no clock: the caller says when it is. Judges
//! live sound only: whole utterances at once, files sent as fast as the line takes them, sound sent only while somebody speaks
//! and lines that stand still and catch up say nothing of a rate, and nothing is said of them.

use std::collections::VecDeque;

/// How long it is looked at, in milliseconds; a wrong rate is told within 5 s.
const SPAN_MS: u64 = 4_500;
/// Cut into parts this long, of which each must be like the others.
const PART_MS: u64 = 750;
/// A gap this long ends what was live. Chosen: pieces of live sound are 10 to 200 ms.
const GAP_MS: u64 = 350;
/// A longer piece is no piece of live sound.
const PIECE_MAX_MS: u64 = 300;
/// Sound that is off by less has the right rate and a bad clock.
const OFF: f64 = 0.05;
/// Live sound of a wrong rate lies between these: 8 kHz said to be 24 and 96 said to be 24 are the furthest that occur.
const LIVE: std::ops::RangeInclusive<f64> = 0.3..=4.2;
/// Rates that sound has, in Hz.
const RATES: [u32; 10] = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];
/// A measured rate this near to one of them is taken to be it.
const NEAR: f64 = 0.04;
/// Pieces that are kept: more of them in the time would be a flood of tiny ones.
const PIECES_MAX: usize = 1_024;

/// What was found, once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrongPace {
    /// Seconds of sound that come in a second, by the declared rate.
    pub ratio: f64,
    /// The rate that it seems to have, in Hz, when it is one that sound has.
    pub rate_hz: Option<u32>,
}

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// When a piece came, and its length in samples of the declared rate.
    pieces: VecDeque<(u64, u64)>,
    rate_hz: u32,
    told: bool,
}

impl Pace {
    /// For sound declared to have this rate, in Hz.
    pub fn new(rate_hz: u32) -> Self {
        Self { pieces: VecDeque::new(), rate_hz: rate_hz.max(1), told: false }
    }

    /// A piece of this many samples came at `now` (milliseconds). Answers once, when live sound of some seconds was off.
    pub fn took(&mut self, now: u64, samples: usize) -> Option<WrongPace> {
        let samples = samples as u64;
        let length_ms = samples * 1000 / u64::from(self.rate_hz);
        let gap = self.pieces.back().is_some_and(|(at, _)| now.saturating_sub(*at) > GAP_MS);
        if gap || length_ms > PIECE_MAX_MS * 4 {
            self.pieces.clear();
        }
        if self.told || length_ms > PIECE_MAX_MS * 4 {
            return None;
        }
        self.pieces.push_back((now, samples));
        let wrong = self.judged(now)?;
        self.told = true;
        Some(wrong)
    }

    fn judged(&mut self, now: u64) -> Option<WrongPace> {
        while self.pieces.len() > PIECES_MAX || self.pieces.get(1).is_some_and(|(at, _)| at + SPAN_MS <= now) {
            self.pieces.pop_front();
        }
        let first = self.pieces.front()?.0;
        if first + SPAN_MS > now || self.pieces.len() < 12 {
            return None;
        }
        // What came first was recorded before its time: it does not count. Each piece spans the time since the one before.
        let ratio = self.ratio(first, now)?;
        let longest_ms = self.pieces.iter().map(|p| self.ms(p.1)).fold(0.0, f64::max);
        // One piece that is much longer than the others is the beginning of something else.
        let mean_ms = self.pieces.iter().map(|p| self.ms(p.1)).sum::<f64>() / self.pieces.len() as f64;
        if longest_ms > 6.0 * mean_ms {
            return None;
        }
        let steady = (0..SPAN_MS / PART_MS).all(|n| {
            let (from, to) = (first + n * PART_MS, first + (n + 1) * PART_MS);
            // A part may hold a piece more or less than its share, and a tenth for the line.
            let slack = (longest_ms + 0.1 * PART_MS as f64) / PART_MS as f64;
            self.part(from, to).is_some_and(|part| (part - ratio).abs() <= slack)
        });
        if !steady || !LIVE.contains(&ratio) || (ratio - 1.0).abs() <= OFF {
            return None;
        }
        let measured = ratio * f64::from(self.rate_hz);
        let near = RATES.into_iter().find(|r| (measured / f64::from(*r) - 1.0).abs() < NEAR);
        Some(WrongPace { ratio, rate_hz: near.filter(|r| *r != self.rate_hz) })
    }

    fn ms(&self, samples: u64) -> f64 {
        samples as f64 * 1000.0 / f64::from(self.rate_hz)
    }

    /// Sound of the pieces after the first, over the time from the first to the last.
    fn ratio(&self, first: u64, last: u64) -> Option<f64> {
        let samples: u64 = self.pieces.iter().skip(1).map(|p| p.1).sum();
        (last > first).then(|| self.ms(samples) / (last - first) as f64)
    }

    fn part(&self, from: u64, to: u64) -> Option<f64> {
        let samples: u64 = self.pieces.iter().skip(1).filter(|(at, _)| (from + 1..=to).contains(at)).map(|p| p.1).sum();
        (to > from).then(|| self.ms(samples) / (to - from) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `seconds` of sound of `real_hz` in pieces of `piece_ms`, each a little early or late. When it was told, and what.
    fn live(declared_hz: u32, real_hz: u32, piece_ms: u64, jitter_ms: u64, seconds: u64) -> Option<(u64, WrongPace)> {
        let mut pace = Pace::new(declared_hz);
        let mut seed = 7u64;
        (1..=seconds * 1000 / piece_ms).find_map(|n| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = n * piece_ms + if jitter_ms > 0 { (seed >> 33) % jitter_ms } else { 0 };
            pace.took(at, (u64::from(real_hz) * piece_ms / 1000) as usize).map(|w| (at, w))
        })
    }

    #[test]
    fn a_wrong_rate_is_told_within_five_seconds() {
        for (declared, real) in [(24_000, 16_000), (24_000, 48_000), (24_000, 44_100), (24_000, 8_000), (24_000, 22_050), (8_000, 16_000), (24_000, 96_000)] {
            for piece in [10, 20, 40, 100, 170] {
                let (at, wrong) = live(declared, real, piece, 15, 20).unwrap_or_else(|| panic!("{declared} for {real} in {piece} ms was not told"));
                assert!(at <= 5_000, "{declared} for {real} in {piece} ms: told after {at} ms");
                assert_eq!(wrong.rate_hz, Some(real), "{declared} in {piece} ms: {wrong:?}");
            }
        }
    }

    #[test]
    fn the_right_rate_is_never_told() {
        for piece in [10, 20, 40, 100, 200] {
            for jitter in [0, 10, 40] {
                assert_eq!(live(24_000, 24_000, piece, jitter, 600), None, "{piece} ms, {jitter} ms of jitter");
            }
        }
        // A clock that is off by 3 % is a bad clock.
        assert_eq!(live(24_000, 24_700, 20, 5, 60), None);
        // One that is off by 9 % is told, without a name for its rate.
        let (_, wrong) = live(24_000, 26_200, 20, 5, 60).expect("it is told");
        assert_eq!(wrong.rate_hz, None);
    }

    #[test]
    fn bursts_and_speech_that_comes_and_goes_are_not_judged() {
        // Whole utterances at once.
        let mut pace = Pace::new(24_000);
        assert!((0..50u64).all(|n| pace.took(n * 3_000, 24_000 * 3).is_none()));
        // An utterance in pieces, as fast as the line takes it; and a file that never ends.
        let mut pace = Pace::new(24_000);
        assert!((0..5_000u64).all(|n| pace.took(n / 10, 480).is_none()));
        let mut pace = Pace::new(24_000);
        assert!((0..5_000u64).all(|n| pace.took(n * 2, 480).is_none()), "ten times as fast");
        // A button that is held now and then, with what was said before it was seen to be held sent first.
        let mut pace = Pace::new(24_000);
        for turn in 0..20u64 {
            for n in 0..100 {
                assert_eq!(pace.took(turn * 5_000 + n * 20, if n == 0 { 24_000 } else { 480 }), None);
            }
        }
        // A line that stands still for 300 ms every second and then catches up.
        let mut pace = Pace::new(24_000);
        assert!((0..3_000u64).all(|n| { let at = n * 20; let held = if at % 1_000 < 300 { at / 1_000 * 1_000 + 300 } else { at }; pace.took(held, 480).is_none() }));
    }

    #[test]
    fn it_is_told_once_and_nothing_grows() {
        let mut pace = Pace::new(24_000);
        let told = (0..6_000u64).filter(|n| pace.took(n * 20, 320).is_some()).count();
        assert_eq!(told, 1);
        let mut pace = Pace::new(24_000);
        assert!((0..100_000u64).all(|_| pace.took(5, 0).is_none()) && pace.pieces.len() <= PIECES_MAX + 1);
    }
}
