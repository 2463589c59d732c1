//! Two clocks held together: how much a ratio must be trimmed so that a buffer between them neither fills nor empties.
//!
//! Owns the controller, not the buffer and not the resampler. Called by the loop every 20 ms with what lies in the speaker's
//! ring; its answer goes to [`super::resample::Resampler::trim`]. Reads no clock.
//!
//! A microphone and a speaker that say 48 kHz differ by up to some 200 millionths: 0.7 s an hour. The conversation goes by the
//! microphone's clock, so what is played is stretched by as much, which nobody hears, instead of torn now and then.

use super::frame::FRAME_MS;

/// What should lie in the buffer in the mean, in milliseconds: two periods of a card, so that neither being late empties it.
pub const TARGET_MS: f64 = 80.0;
/// Most that the ratio is trimmed by, in millionths: a fiftieth of a semitone, far under what is heard.
pub const MOST_PPM: f64 = 1_000.0;

/// Millionths for every millisecond off the target: the error is halved in 35 s.
const PROPORTIONAL: f64 = 20.0;
/// Millionths for every millisecond and second off the target: a standing difference is learnt in about 100 s, without swinging.
const INTEGRAL: f64 = 0.1;
/// The fill moves up and down by a period of the card at every frame; it is smoothed over this many seconds.
const SMOOTH_S: f64 = 4.0;

/// See the file's head.
#[derive(Clone, Debug)]
pub struct DriftControl {
    smooth_ms: Option<f64>,
    /// The standing difference, as far as it is known, in millionths.
    learnt_ppm: f64,
}

impl DriftControl {
    /// Knows nothing of the two clocks.
    pub fn new() -> Self {
        Self { smooth_ms: None, learnt_ppm: 0.0 }
    }

    /// Every 20 ms, whether something was just written or not: this much lies in the buffer, in milliseconds. Answers by how many
    /// millionths more (or fewer) samples the writing side must give from now on.
    pub fn tick(&mut self, fill_ms: f64) -> i32 {
        let seconds = FRAME_MS as f64 / 1000.0;
        let fill_ms = if fill_ms.is_finite() { fill_ms } else { TARGET_MS };
        let smooth = self.smooth_ms.map_or(fill_ms, |was| was + (fill_ms - was) * seconds / SMOOTH_S);
        self.smooth_ms = Some(smooth);
        let short = TARGET_MS - smooth;
        let trim = PROPORTIONAL * short + self.learnt_ppm;
        // What is beyond its reach teaches nothing: a buffer that was emptied at once is no drift.
        if trim.abs() < MOST_PPM {
            self.learnt_ppm += INTEGRAL * short * seconds;
        }
        trim.clamp(-MOST_PPM, MOST_PPM).round() as i32
    }

    /// The buffer was emptied or filled by something else (another device): what is known of the clocks stays.
    pub fn jumped(&mut self) {
        self.smooth_ms = None;
    }

    /// The standing difference, as far as it is known, in millionths: positive when the reading side is the faster.
    pub fn learnt_ppm(&self) -> f64 {
        self.learnt_ppm
    }
}

impl Default for DriftControl {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::resample::Resampler;

    /// Hours, in steps of 5 ms, of a microphone that writes so much at a time and a speaker that reads as much at a time by its own
    /// clock. Lowest and highest fill.
    fn run(ppm: f64, hours: u64, period_ms: u64, rate_hz: u32, sound: bool) -> (f64, f64, DriftControl) {
        let (mut control, mut resampler) = (DriftControl::new(), Resampler::adjustable(rate_hz, rate_hz));
        let per_ms = f64::from(rate_hz) / 1000.0;
        let (period, steps) = (period_ms as f64 * per_ms, period_ms / 5);
        let (mut trim, mut fill, mut owed, mut fraction) = (0, TARGET_MS * per_ms - period, 0.0, 0.0f64);
        let (mut low, mut high) = (f64::MAX, 0.0f64);
        let (silence, mut out) = (vec![0i16; period as usize], Vec::new());
        for step in 0..hours * 3_600 * 200 {
            if step % steps == 0 {
                out.clear();
                resampler.trim(trim);
                if sound { resampler.push(&silence, &mut out) } else { fraction = fraction.fract() + period * (1.0 + f64::from(trim) / 1e6) }
                fill += if sound { out.len() as f64 } else { fraction.floor() };
            }
            high = high.max(fill / per_ms);
            owed += period / steps as f64 * (1.0 + ppm / 1e6);
            if owed >= period {
                owed -= period;
                fill -= period;
            }
            low = low.min(fill / per_ms);
            if step % 4 == 2 { trim = control.tick(fill / per_ms) }
        }
        (low, high, control)
    }

    #[test]
    fn three_hours_of_two_clocks_stay_between_40_and_120_ms() {
        for ppm in [-200.0, -50.0, 0.0, 50.0, 200.0] {
            let (low, high, control) = run(ppm, 3, 20, 48_000, false);
            println!("{ppm:+} ppm: {low:.1} to {high:.1} ms, learnt {:+.1}", control.learnt_ppm());
            assert!(low >= 40.0 && high <= 120.0, "{ppm}: {low:.1} to {high:.1} ms");
            assert!((control.learnt_ppm() - ppm).abs() < 40.0, "{ppm}: learnt {}", control.learnt_ppm());
        }
    }

    /// A card that hands over 40 ms at once moves the fill by as much, whatever anybody does.
    #[test]
    fn with_periods_of_40_ms_nothing_is_torn_and_nothing_grows() {
        for ppm in [-200.0, 200.0] {
            let (low, high, _) = run(ppm, 3, 40, 48_000, false);
            println!("{ppm:+} ppm: {low:.1} to {high:.1} ms");
            assert!(low >= 30.0 && high <= 140.0, "{ppm}: {low:.1} to {high:.1} ms");
        }
    }

    #[test]
    fn the_resampler_does_what_the_controller_asks() {
        for ppm in [-200.0, 200.0] {
            let (low, high, control) = run(ppm, 1, 20, 8_000, true);
            println!("{ppm:+} ppm: {low:.1} to {high:.1} ms, learnt {:+.1}", control.learnt_ppm());
            assert!(low >= 40.0 && high <= 120.0 && (control.learnt_ppm() - ppm).abs() < 40.0, "{ppm}: {low:.1} to {high:.1} ms, {control:?}");
        }
    }

    #[test]
    fn a_buffer_that_jumped_teaches_nothing_and_the_trim_is_bounded() {
        let mut control = DriftControl::new();
        for _ in 0..50 * 600 {
            assert!(control.tick(0.0).abs() <= MOST_PPM as i32);
        }
        assert!(control.learnt_ppm() < 1.0, "{control:?}");
        control.jumped();
        assert_eq!(control.tick(TARGET_MS), control.learnt_ppm().round() as i32);
        control.tick(f64::NAN);
        assert!(control.learnt_ppm().is_finite());
    }
}
