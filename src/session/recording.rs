//! What a conversation sounded like, kept as an Ogg Opus file where that is switched on: the microphone on the left, what was played on
//! the right.
//!
//! Owns the two tracks on the way to one stereo file, on the time of the microphone. Called by the driver. Holds at most what a socket
//! was sent ahead, writes a page a second, and never fails the conversation: a disk that refuses ends the recording and is told.

use std::collections::VecDeque;
use std::fs::File;

use crate::codec::{self, CodecError, Encode, EncoderSettings, FRAME, Keep, RATE_HZ};
use crate::engine::id::Ms;
use crate::media::resample::Resampler;

/// Bits a second of both channels: speech on each, and nothing heard of the other (chosen; 22 MB an hour).
const BITRATE: i32 = 48_000;
/// A microphone may be this late before silence is written in its place, in milliseconds.
const LATE_MS: Ms = 300;
/// Most sound that waits on a track, in samples: two minutes, as much as a playout holds.
const WAITING_MAX: usize = 120 * RATE_HZ as usize;

/// What became audible, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Played {
    /// Sound: mono, and its rate. It plays behind what was there.
    Sound(Vec<i16>, u32),
    /// What has not been played yet never is.
    Cut,
}

/// Why a recording has ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The disk.
    #[error("the recording cannot be written: {0}")]
    Disk(#[from] std::io::Error),
    /// The codec.
    #[error("the recording cannot be made: {0}")]
    Codec(#[from] CodecError),
}

struct Track {
    resampler: Resampler,
    waiting: VecDeque<i16>,
}

impl Track {
    fn new() -> Self { Self { resampler: Resampler::new(RATE_HZ, RATE_HZ), waiting: VecDeque::new() } }

    fn push(&mut self, samples: &[i16], rate_hz: u32) {
        if self.resampler.from_hz() != rate_hz { self.resampler = Resampler::new(rate_hz, RATE_HZ) }
        let mut fitted = Vec::new();
        self.resampler.push(samples, &mut fitted);
        let room = WAITING_MAX.saturating_sub(self.waiting.len());
        self.waiting.extend(fitted.into_iter().take(room));
    }
}

/// See the file's head.
pub struct Recording {
    file: Box<dyn Keep>,
    encoder: Box<dyn Encode>,
    said: Track,
    played: Track,
    /// Conversation time at which the part that is being written began, and how much of it is written.
    began: Ms,
    written_ms: Ms,
    frame: Vec<i16>,
}

impl Recording {
    /// Begins a file at conversation time `now`.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn begin(file: File, now: Ms) -> Result<Self, RecordingError> {
        let encoder = codec::encoder(EncoderSettings { stereo: true, bitrate: BITRATE, fec: false, loss_percent: 0, dtx: false, complexity: 5 })?;
        let file = codec::keep(file, 2, encoder.lookahead())?;
        Ok(Self { file, encoder, said: Track::new(), played: Track::new(), began: now, written_ms: 0, frame: Vec::with_capacity(2 * FRAME) })
    }

    /// Somebody listens again: the time in between is left out.
    pub fn resume(&mut self, now: Ms) {
        (self.began, self.written_ms) = (now, 0);
        self.said.waiting.clear();
        self.played.waiting.clear();
    }

    /// Sound of the microphone.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn said(&mut self, now: Ms, samples: &[i16], rate_hz: u32) -> Result<(), RecordingError> {
        self.said.push(samples, rate_hz);
        self.advance(now)
    }

    /// Something became audible.
    pub fn played(&mut self, what: Played) {
        match what {
            Played::Sound(samples, rate_hz) => self.played.push(&samples, rate_hz),
            Played::Cut => self.played.waiting.clear(),
        }
    }

    /// Time passes, also for a microphone that sends nothing.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn advance(&mut self, now: Ms) -> Result<(), RecordingError> {
        while self.said.waiting.len() >= FRAME || now.saturating_sub(self.began + self.written_ms) > LATE_MS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), RecordingError> {
        self.frame.clear();
        for _ in 0..FRAME {
            self.frame.push(self.said.waiting.pop_front().unwrap_or(0));
            self.frame.push(self.played.waiting.pop_front().unwrap_or(0));
        }
        let packet = self.encoder.encode(&self.frame)?;
        self.written_ms += 20;
        Ok(self.file.packet(packet, FRAME as u32)?)
    }

    /// Writes what waits (of what was played: nothing more, it never was) and closes the file.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn finish(mut self) -> Result<(), RecordingError> {
        // The last frame also brings out what the encoder still holds.
        self.write()?;
        Ok(self.file.finish()?)
    }
}

#[cfg(feature = "opus")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::decoder;
    use crate::media::level::rms_dbfs;

    fn tone(hz: f64, rate: u32, ms: u32) -> Vec<i16> {
        (0..rate * ms / 1000).map(|n| (8_000.0 * (std::f64::consts::TAU * hz * f64::from(n) / f64::from(rate)).sin()) as i16).collect()
    }

    /// The packets of a file, mixed to mono: enough to see when something sounds.
    fn mixed(bytes: &[u8]) -> Vec<i16> {
        let mut reader = ogg::reading::PacketReader::new(std::io::Cursor::new(bytes));
        let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
        let mut n = 0;
        while let Some(packet) = reader.read_packet().unwrap() {
            n += 1;
            if n > 2 { decoder.decode(&packet.data, &mut out).unwrap() }
        }
        out
    }

    #[test]
    fn both_sides_are_kept_in_time_and_a_cut_is_silent() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut recording = Recording::begin(file.reopen().unwrap(), 5_000).unwrap();
        // A second of silence; the agent then speaks for two seconds and is cut after one.
        for n in 0..200u64 {
            let now = 5_000 + n * 20;
            if n == 50 { recording.played(Played::Sound(tone(440.0, 24_000, 2_000), 24_000)) }
            if n == 100 { recording.played(Played::Cut) }
            recording.said(now, &vec![0; 320], 16_000).unwrap();
        }
        // The microphone falls silent for a second; then somebody speaks.
        recording.advance(10_000).unwrap();
        recording.said(10_000, &tone(300.0, 16_000, 1_000), 16_000).unwrap();
        recording.finish().unwrap();
        let sound = mixed(&std::fs::read(file.path()).unwrap());
        let level = |from: usize, to: usize| rms_dbfs(&sound[from * 48..to * 48]);
        assert!(level(0, 950) < -60.0 && level(1_100, 1_950) > -25.0 && level(2_200, 4_600) < -60.0 && level(4_800, 5_600) > -25.0);
    }
}
