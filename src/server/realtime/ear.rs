//! Appended sound on its way in: from the client's format to 16 kHz, counted, and held to a measure.

use super::packets::Packets;
use crate::codec::CodecError;
use crate::dialect::openai_realtime::audio::Format;
use crate::dialect::openai_realtime::error::BadEvent;
use crate::engine::id::Ms;
use crate::media::pace::Pace;
use crate::media::resample::Resampler;

/// What the conversation listens at.
const EAR_HZ: u32 = 16_000;
/// Longest piece handed to the conversation: one second.
const PIECE: usize = EAR_HZ as usize;
/// How far uncommitted sound may run ahead of the clock, in milliseconds (chosen: a file sent at once still fits, a flood does not).
const AHEAD_MAX_MS: u64 = 60_000;
/// Shortest sound that can be committed, in milliseconds (as the API has it).
const COMMIT_MIN_MS: u64 = 100;

/// See the file's head.
pub(super) struct Ear {
    format: Format,
    resampler: Resampler,
    /// Of a format of packets.
    packets: Option<Packets>,
    uncommitted_ms: u64,
    ahead_ms: u64,
    at: Ms,
    /// It was told that sound runs too far ahead, and that still holds.
    told_ahead: bool,
    pace: Pace,
    /// A sentence about sound that has another rate than it was declared with.
    wrong_rate: Option<String>,
}

impl Ear {
    pub(super) fn new(format: Format) -> Self {
        Self { format, resampler: Resampler::new(format.rate_hz(), EAR_HZ), packets: None, uncommitted_ms: 0, ahead_ms: 0, at: 0, told_ahead: false, pace: Pace::new(format.rate_hz()), wrong_rate: None }
    }

    /// Another format from here on.
    ///
    /// # Errors
    /// This build has no codec for it; the old one stays.
    pub(super) fn retune(&mut self, format: Format) -> Result<(), CodecError> {
        self.packets = match format {
            Format::Opus => Some(Packets::new()?),
            _ => None,
        };
        self.format = format;
        self.resampler = Resampler::new(format.rate_hz(), EAR_HZ);
        self.pace = Pace::new(format.rate_hz());
        Ok(())
    }

    /// Takes the bytes of the field `param` and answers with mono pieces at 16 kHz, each at most a second. `number` is a packet's place
    /// where its sender counts.
    ///
    /// # Errors
    /// Half a sample, or sound that runs too far ahead: nothing of it is heard then. The first damaged packet: its place is filled.
    /// A flood is told once, until it is taken again.
    pub(super) fn hear(&mut self, now: Ms, bytes: &[u8], number: Option<u64>, param: &str) -> (Vec<Vec<i16>>, Result<(), BadEvent>) {
        let plain = match self.format {
            Format::Opus => Ok(Vec::new()),
            format => format.decode(bytes, param),
        };
        let mut samples = match plain {
            Ok(samples) => samples,
            Err(bad) => return (Vec::new(), Err(bad)),
        };
        let ms = match self.packets {
            Some(_) => Packets::length_ms(bytes),
            None => samples.len() as u64 * 1_000 / u64::from(self.format.rate_hz()),
        };
        // Packets carry their own rate, and lost ones are no sign of another.
        if self.packets.is_none() { self.judge_pace(now, samples.len()) }
        match self.comes(now, ms, param) {
            Ok(true) => {}
            Ok(false) => return (Vec::new(), Ok(())),
            Err(bad) => return (Vec::new(), Err(bad)),
        }
        let done = match &mut self.packets {
            Some(packets) => packets.take(now, bytes, number, param, &mut samples),
            None => Ok(()),
        };
        (self.pieces(&samples), done)
    }

    /// Sound of packets whose time has come without another one.
    pub(super) fn poll(&mut self, now: Ms) -> Vec<Vec<i16>> {
        let mut samples = Vec::new();
        if let Some(packets) = &mut self.packets {
            packets.poll(now, &mut samples);
        }
        self.pieces(&samples)
    }

    /// When [`Ear::poll`] has something to give.
    pub(super) fn deadline(&self) -> Option<Ms> { self.packets.as_ref().and_then(Packets::deadline) }

    /// How packets fared, where something went wrong with them.
    pub(super) fn report(&self) -> Option<String> { self.packets.as_ref().and_then(Packets::report) }

    /// Counts sound that comes. False: it is too much, and that was told before.
    fn comes(&mut self, now: Ms, ms: u64, param: &str) -> Result<bool, BadEvent> {
        self.ahead_ms = self.ahead_ms.saturating_sub(now.saturating_sub(self.at));
        self.at = now;
        if self.ahead_ms + ms > AHEAD_MAX_MS {
            if std::mem::replace(&mut self.told_ahead, true) { return Ok(false) }
            let message = format!(
                "This would be {} s of uncommitted audio ahead of real time, the most is {} s. It was not taken.",
                (self.ahead_ms + ms) / 1_000,
                AHEAD_MAX_MS / 1_000
            );
            return Err(BadEvent::at("input_audio_too_far_ahead", param, message));
        }
        // While a flood goes on, a piece fits now and then; it is over when a good part of the minute is free again.
        self.told_ahead &= self.ahead_ms > AHEAD_MAX_MS / 2;
        self.ahead_ms += ms;
        self.uncommitted_ms += ms;
        Ok(true)
    }

    fn pieces(&mut self, samples: &[i16]) -> Vec<Vec<i16>> {
        let mut out = Vec::with_capacity(samples.len());
        self.resampler.push(samples, &mut out);
        out.chunks(PIECE).map(<[i16]>::to_vec).collect()
    }

    fn judge_pace(&mut self, now: Ms, samples: usize) {
        let Some(wrong) = self.pace.took(now, samples) else { return };
        let declared = self.format.rate_hz();
        let seems = wrong.rate_hz.map_or_else(|| format!("{:.0} % of real time", wrong.ratio * 100.0), |hz| format!("like {hz} Hz"));
        self.wrong_rate = Some(format!("The sound was declared as {declared} Hz and comes {seems}: words are not understood at a wrong rate."));
    }

    /// A sentence, once, when live sound does not come at the rate it was declared with.
    pub(super) fn wrong_rate(&mut self) -> Option<String> { self.wrong_rate.take() }

    /// The conversation made a turn by itself of what was there.
    pub(super) fn turned(&mut self) { self.uncommitted_ms = 0; }

    /// Nothing has come since the last commit, turn or clear.
    pub(super) fn is_empty(&self) -> bool { self.uncommitted_ms == 0 }

    /// The client commits: what still waits behind a gap belongs to it.
    ///
    /// # Errors
    /// Too little is there.
    pub(super) fn commit(&mut self, now: Ms) -> Result<Vec<Vec<i16>>, BadEvent> {
        if self.uncommitted_ms < COMMIT_MIN_MS {
            let message = format!(
                "Error committing input audio buffer: buffer too small. Expected at least {COMMIT_MIN_MS} ms of audio, but it has {} ms.",
                self.uncommitted_ms
            );
            return Err(BadEvent::new("input_audio_buffer_commit_empty", message));
        }
        let mut samples = Vec::new();
        if let Some(packets) = &mut self.packets {
            packets.flush(now, &mut samples);
        }
        self.clear();
        Ok(self.pieces(&samples))
    }

    /// Nothing that came before counts any more.
    pub(super) fn clear(&mut self) {
        self.uncommitted_ms = 0;
        self.ahead_ms = 0;
        if let Some(packets) = &mut self.packets {
            packets.clear();
        }
        self.told_ahead = false;
    }
}
