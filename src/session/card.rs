//! This machine's microphone and speaker, as the driver uses them: one rate each for as long as the conversation lasts, whichever
//! device is open, and one clock, the microphone's.
//!
//! Owns the resampling to and from the devices, the pace of playback and what is said of the devices. Called by the driver alone.
//! Playback is pulled in step with the microphone's frames, so that an echo canceller sees both sides on one clock; the speaker's
//! clock is followed by the resampling ratio ([`crate::media::drift`]).

use futures_util::future::BoxFuture;

use crate::media::frame::{EAR_FRAME, EAR_HZ};

/// The microphone is missing when nothing came for this long; the wall then gives the pace. Chosen: three periods of a card.
const MISSING_MS: u64 = 150;
/// Less than this in the ring and a frame is played before the microphone asks for it, in milliseconds.
const LOW_MS: f64 = 30.0;
/// More than this in the ring and nothing is pulled: a microphone that catches up does not pile up delay.
const HIGH_MS: f64 = 140.0;
/// Most that playback may be ahead of the microphone, in samples of the ear: 100 ms.
const AHEAD_MAX: i64 = 5 * EAR_FRAME as i64;

/// What happened to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardNews {
    /// A sentence for those who watch; empty when there is nothing to say.
    pub message: String,
    /// Another device, or the same anew: what was learnt of the room between speaker and microphone is void.
    pub changed: bool,
}

/// A microphone that delivers in its own time, at the ear's rate.
pub trait Microphone: Send {
    /// What came, mono at 16 kHz; possibly nothing, so that the caller looks for news. Safe to drop and ask again.
    fn next_frame(&mut self) -> BoxFuture<'_, Vec<i16>>;
    /// What happened to it.
    fn news(&mut self) -> Option<CardNews>;
}

/// A speaker that plays in its own time.
pub trait Loudspeaker: Send {
    /// Samples a second that it is written; the same for ever.
    fn rate_hz(&self) -> u32;
    /// Sound that waits for the device, in milliseconds. 0 while there is none.
    fn fill_ms(&self) -> f64;
    /// A device is there; without one what is written is dropped.
    fn is_open(&self) -> bool;
    /// Takes mono samples. What does not fit is dropped: look at the fill first.
    fn write(&mut self, sound: &[i16]);
    /// Looks after the device, to be called every 20 ms; what happened to it.
    fn news(&mut self) -> Option<CardNews>;
}

/// Both.
pub struct Card {
    /// The microphone.
    pub mic: Box<dyn Microphone>,
    /// The speaker.
    pub speaker: Box<dyn Loudspeaker>,
    pacer: Pacer,
}

impl Card {
    /// Of these two.
    pub fn new(mic: Box<dyn Microphone>, speaker: Box<dyn Loudspeaker>) -> Self {
        Self { mic, speaker, pacer: Pacer::default() }
    }

    /// The microphone gave this many samples at 16 kHz.
    pub fn heard(&mut self, samples: usize) { self.pacer.heard(samples) }

    /// This much time went by.
    pub fn passed(&mut self, ms: u64) { self.pacer.passed(ms) }

    /// The microphone gives nothing.
    pub fn is_missing(&self) -> bool { self.pacer.is_missing() }

    /// True when a frame is to be pulled for the speaker now; asked again after each.
    pub fn is_due(&mut self) -> bool { self.pacer.is_due(self.speaker.is_open().then(|| self.speaker.fill_ms())) }
}

/// When the next 20 ms are pulled for the speaker.
#[derive(Debug, Default)]
struct Pacer {
    /// Samples of the microphone that playback has not been pulled for; below zero it is ahead.
    owed: i64,
    /// Since the microphone gave something.
    quiet_ms: u64,
}

impl Pacer {
    /// The microphone gave this many samples at 16 kHz.
    pub(super) fn heard(&mut self, samples: usize) {
        self.owed += samples as i64;
        if samples > 0 { self.quiet_ms = 0 }
    }

    /// This much time went by.
    pub(super) fn passed(&mut self, ms: u64) {
        self.quiet_ms = self.quiet_ms.saturating_add(ms);
        if self.is_missing() {
            self.owed = self.owed.saturating_add((ms.min(1_000) * u64::from(EAR_HZ) / 1000) as i64);
        }
    }

    /// The microphone gives nothing.
    pub(super) fn is_missing(&self) -> bool { self.quiet_ms > MISSING_MS }

    /// True when a frame is to be pulled now; asked again after each. `fill_ms`: what waits for the speaker, `None` without one.
    pub(super) fn is_due(&mut self, fill_ms: Option<f64>) -> bool {
        let fill_ms = fill_ms.unwrap_or((LOW_MS + HIGH_MS) / 2.0);
        if fill_ms > HIGH_MS {
            // Nothing is lost: the voice waits.
            self.owed = self.owed.min(0);
            return false;
        }
        let late = fill_ms < LOW_MS && self.owed > -AHEAD_MAX;
        let due = late || self.owed >= EAR_FRAME as i64;
        if due { self.owed -= EAR_FRAME as i64 }
        due
    }
}

#[cfg(feature = "devices")]
pub use cpal_devices::{CardMic, CardSpeaker};

#[cfg(feature = "devices")]
mod cpal_devices {
    use super::{BoxFuture, CardNews, EAR_HZ, Loudspeaker, Microphone};
    use crate::audio::device::{DeviceNews, Kind, KeptInput, KeptOutput};
    use crate::media::drift::{DriftControl, TARGET_MS};
    use crate::media::resample::Resampler;

    /// A speaker's rate is kept when a frame of it is whole; else sound is made at this.
    const USUAL_HZ: u32 = 48_000;
    /// Underruns are told at most this often, in looks of 20 ms: a minute.
    const TELL_LOOKS: u32 = 3_000;
    /// Fewer in that time are counted and not told.
    const TELL_FROM: u64 = 5;

    /// The microphone, whichever device it is.
    pub struct CardMic {
        device: KeptInput,
        resampler: Resampler,
        /// Frames that were dropped, as far as it was counted; those before the first is asked for were nobody's.
        dropped: Option<u64>,
    }

    impl CardMic {
        /// Over a device.
        pub fn new(device: KeptInput) -> Self {
            Self { resampler: Resampler::new(device.rate_hz(), EAR_HZ), dropped: None, device }
        }

        async fn next(&mut self) -> Vec<i16> {
            let frame = self.device.next_frame().await;
            if self.device.rate_hz() != self.resampler.from_hz() {
                self.resampler = Resampler::new(self.device.rate_hz(), EAR_HZ);
            }
            let dropped = self.device.dropped();
            let new = dropped.saturating_sub(self.dropped.replace(dropped).unwrap_or(dropped));
            if new > 0 { metrics::counter!("voxgate_device_dropped_frames_total").increment(new) }
            let mut out = Vec::with_capacity(frame.len() + 1);
            self.resampler.push(&frame, &mut out);
            out
        }
    }

    impl Microphone for CardMic {
        fn next_frame(&mut self) -> BoxFuture<'_, Vec<i16>> { Box::pin(self.next()) }
        fn news(&mut self) -> Option<CardNews> { self.device.news().map(|n| told(Kind::Input, n)) }
    }

    /// The speaker, whichever device it is, with its clock followed.
    pub struct CardSpeaker {
        device: KeptOutput,
        rate_hz: u32,
        resampler: Resampler,
        drift: DriftControl,
        out: Vec<i16>,
        underruns: u64,
        /// Underruns and looks since they were last told.
        untold: u64,
        looks: u32,
    }

    impl CardSpeaker {
        /// Over a device.
        pub fn new(device: KeptOutput) -> Self {
            let rate_hz = if device.rate_hz().is_multiple_of(50) { device.rate_hz() } else { USUAL_HZ };
            let resampler = Resampler::adjustable(rate_hz, device.rate_hz());
            let mut this = Self { device, rate_hz, resampler, drift: DriftControl::new(), out: Vec::new(), underruns: 0, untold: 0, looks: TELL_LOOKS };
            this.prime();
            this
        }

        /// Silence, so that a device which takes 40 ms at once does not find the ring empty.
        fn prime(&mut self) {
            let missing = TARGET_MS - self.fill_ms();
            let samples = (missing.max(0.0) * f64::from(self.device.rate_hz()) / 1000.0) as usize;
            self.device.write(&vec![0; samples]);
        }

        fn opened(&mut self) {
            if self.device.rate_hz() != self.resampler.to_hz() {
                self.resampler = Resampler::adjustable(self.rate_hz, self.device.rate_hz());
            }
            self.drift.jumped();
            self.prime();
        }

        /// Counts what was torn; a sentence at most once a minute.
        fn torn(&mut self) -> Option<CardNews> {
            self.looks = self.looks.saturating_add(1);
            let new = self.device.underruns().saturating_sub(self.underruns);
            if new > 0 {
                metrics::counter!("voxgate_device_underruns_total").increment(new);
                self.underruns += new;
                self.untold += new;
                self.drift.jumped();
                self.prime();
            }
            if self.untold < TELL_FROM || self.looks < TELL_LOOKS {
                return None;
            }
            let times = std::mem::take(&mut self.untold);
            self.looks = 0;
            let message = format!("The speaker {} was given its sound too late {times} times; this machine is busy.", self.device.name());
            Some(CardNews { message, changed: false })
        }
    }

    impl Loudspeaker for CardSpeaker {
        fn rate_hz(&self) -> u32 { self.rate_hz }

        fn fill_ms(&self) -> f64 { self.device.fill() as f64 * 1000.0 / f64::from(self.device.rate_hz().max(1)) }

        fn is_open(&self) -> bool { self.device.is_open() }

        fn write(&mut self, sound: &[i16]) {
            self.out.clear();
            self.resampler.push(sound, &mut self.out);
            self.device.write(&self.out);
        }

        fn news(&mut self) -> Option<CardNews> {
            if let Some(news) = self.device.look() {
                if matches!(news, DeviceNews::Opened { .. }) { self.opened() }
                return Some(told(Kind::Output, news));
            }
            if self.is_open() {
                let trim = self.drift.tick(self.fill_ms());
                self.resampler.trim(trim);
            }
            self.torn()
        }
    }

    fn told(kind: Kind, news: DeviceNews) -> CardNews {
        let what = kind.what();
        let opened = matches!(news, DeviceNews::Opened { .. });
        if opened { metrics::counter!("voxgate_device_reopened_total", "kind" => what).increment(1) }
        let message = match news {
            DeviceNews::Opened { again: true, .. } => String::new(),
            DeviceNews::Opened { name, instead_of: Some(was), broke: true, .. } => format!("The {what} {was} is gone; the {what} is now {name}."),
            DeviceNews::Opened { name, instead_of: Some(was), broke: false, .. } => format!("The {what} is now {name}, no longer {was}."),
            DeviceNews::Opened { name, instead_of: None, .. } => format!("The {what} {name} is open again."),
            DeviceNews::Gone { name, why: None } => format!("The {what} {name} is gone and there is no other. It is taken again when it comes back."),
            DeviceNews::Gone { name, why: Some(why) } => format!("The {what} {name} is gone and no other opens: {why}"),
            DeviceNews::Stalled { name } if kind == Kind::Input => format!("No sound comes from the microphone {name}; it is opened again."),
            DeviceNews::Stalled { name } => format!("The {what} {name} takes no sound; it is opened again."),
            DeviceNews::Moved { to } => format!("The {what} was moved to {to}."),
            DeviceNews::Glitch => {
                metrics::counter!("voxgate_device_glitches_total", "kind" => what).increment(1);
                String::new()
            }
        };
        CardNews { message, changed: opened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that are pulled now.
    fn pulled(pacer: &mut Pacer, fill: &mut f64) -> u32 {
        let mut n = 0;
        while pacer.is_due(Some(*fill)) {
            *fill += 20.0;
            n += 1;
        }
        n
    }

    #[test]
    fn playback_goes_with_the_microphone_and_makes_up_for_its_jitter() {
        let (mut pacer, mut fill) = (Pacer::default(), 80.0);
        pacer.heard(EAR_FRAME * 2);
        assert_eq!(pulled(&mut pacer, &mut fill), 2);
        // The microphone is 100 ms late and then there all at once: what was played ahead is not played twice.
        fill = 20.0;
        let ahead = pulled(&mut pacer, &mut fill);
        assert!(ahead > 0 && fill >= LOW_MS);
        pacer.heard(EAR_FRAME * 5);
        assert_eq!(pulled(&mut pacer, &mut fill), 5 - ahead);
    }

    #[test]
    fn without_a_microphone_the_wall_gives_the_pace() {
        let (mut pacer, mut all) = (Pacer::default(), 0);
        for _ in 0..500 {
            pacer.passed(20);
            let mut fill = 80.0;
            all += pulled(&mut pacer, &mut fill);
        }
        assert!(pacer.is_missing() && (490..=500).contains(&all), "{all}");
        // And without a speaker as well.
        pacer.passed(20);
        assert!(pacer.is_due(None) && !pacer.is_due(None));
        pacer.heard(EAR_FRAME);
        assert!(!pacer.is_missing());
    }

    #[test]
    fn a_microphone_that_catches_up_piles_up_no_delay_and_one_that_dawdles_is_not_waited_for() {
        let (mut pacer, mut fill) = (Pacer::default(), 80.0);
        pacer.heard(EAR_FRAME * 50);
        assert!(pulled(&mut pacer, &mut fill) <= 4 && fill <= HIGH_MS + 20.0);
        assert!(!pacer.is_due(Some(80.0)), "what was too much is forgotten");
        // A microphone that gives every second frame: the speaker gets all it needs for a while, then what there is.
        let (mut pacer, mut fill, mut all) = (Pacer::default(), 80.0, 0);
        for n in 0..100 {
            if n % 2 == 0 { pacer.heard(EAR_FRAME) }
            all += pulled(&mut pacer, &mut fill);
            fill = (fill - 20.0f64).max(0.0);
        }
        assert!((50..=56).contains(&all) && pacer.owed >= -AHEAD_MAX - EAR_FRAME as i64, "{all}");
    }

    #[test]
    fn frames_that_are_missing_doubled_or_out_of_order_are_only_bad_sound() {
        let mut seed = 99u64;
        let mut roll = |below: u64| { seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407); (seed >> 33) % below };
        for rate in [8_000u32, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
            let mut ear = crate::session::ear::EarEnd::new(rate);
            let frame = rate as usize / 50;
            let sound: Vec<i16> = (0..rate as usize * 4).map(|n| (8_000.0 * (std::f64::consts::TAU * 220.0 * n as f64 / f64::from(rate)).sin()) as i16).collect();
            let mut frames: Vec<&[i16]> = sound.chunks(frame).collect();
            for n in 0..frames.len() { if roll(10) == 0 { let other = (n + roll(4) as usize).min(frames.len() - 1); frames.swap(n, other) } }
            let (mut pushed, mut judged) = (0, 0);
            for piece in frames {
                let times = match roll(10) { 0 => 0, 1 => 2, _ => 1 };
                for _ in 0..times {
                    // Some come cut, some are empty.
                    let cut = if roll(8) == 0 { roll(piece.len() as u64 + 1) as usize } else { piece.len() };
                    pushed += cut;
                    for framed in ear.push(&piece[..cut]) {
                        judged += 1;
                        assert!((0.0..=1.0).contains(&framed.probability) && framed.level_dbfs.is_finite());
                    }
                }
            }
            let due = pushed as i64 * i64::from(EAR_HZ) / i64::from(rate) / 320;
            assert!((judged - due).abs() <= 1, "{rate} Hz: {judged} frames for {due}");
        }
    }
}
