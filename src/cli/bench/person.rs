//! A person for measurements: says a list of lines into a file device, each when the answer to the last has ended, and notes when
//! words ended and when the gateway's first sample came.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cli::setup::Trouble;
use crate::media::level::db_to_ratio;
use crate::media::resample::resample_all;
use crate::session::clock::Stopwatch;
use crate::session::file::FileDevice;
use crate::tts::Voice;

/// Rate of both directions.
const RATE_HZ: u32 = 16_000;
/// The answer has ended when the speaker was silent this long.
const PAUSE_MS: u64 = 900;
/// Somebody who gets no answer goes on after this.
const PATIENCE_MS: u64 = 8_000;
/// The room's noise between the words, rms in dBFS.
const ROOM_DBFS: f32 = -66.0;

/// What is waited for after a line, by its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// A command that tightens or only asks.
    Command,
    /// "No", while a question is open.
    Answer,
    /// Asks to loosen.
    Loosening,
    /// Consents.
    Consent,
    /// For the agent.
    Ordinary,
}

/// One line, as sound.
pub struct Said {
    /// Its class.
    pub line: Line,
    /// Its words.
    pub text: &'static str,
    /// Mono i16 at 16 kHz.
    pub sound: Vec<i16>,
    /// Samples up to the end of the words.
    pub end: usize,
}

impl Said {
    /// A line in a voice.
    ///
    /// # Errors
    /// What the voice failed with.
    pub async fn new(voice: &dyn Voice, line: Line, text: &'static str) -> Result<Said, Trouble> {
        let speech = voice.synthesise(text.to_string()).await.map_err(Trouble::failed)?;
        let sound = resample_all(&speech.samples, speech.rate_hz, RATE_HZ);
        let loudest = sound.iter().map(|s| s.unsigned_abs()).max().unwrap_or(0);
        let end = sound.iter().rposition(|s| s.unsigned_abs() > loudest / 50).map_or(0, |last| last + 1);
        Ok(Said { line, text, sound, end })
    }
}

/// Something that happened, by the wall since the conversation's beginning.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// The words of a line (by its number) have ended.
    Words(usize),
    /// The gateway has made up its mind about an utterance: its words are written down.
    Decided(String),
    /// Plan mode is on: the gate had turned and the log was written before this was told.
    Planned,
    /// The first sample after silence came out.
    FirstSample,
}

/// All marks of a conversation, in order.
#[derive(Clone)]
pub struct Marks {
    watch: Stopwatch,
    list: Arc<Mutex<Vec<(Duration, Mark)>>>,
}

impl Default for Marks {
    /// None yet.
    fn default() -> Self { Self { watch: Stopwatch::start(), list: Arc::default() } }
}

impl Marks {
    fn note(&self, mark: Mark) { self.list.lock().unwrap_or_else(PoisonError::into_inner).push((self.watch.elapsed(), mark)) }

    /// Reads a frame of the conversation's and notes the person's final words.
    pub fn frame(&self, text: &str) {
        let Ok(frame) = serde_json::from_str::<serde_json::Value>(text) else { return };
        let payload = if frame["payload"].is_object() { &frame["payload"] } else { &frame };
        if frame["type"] == "transcript" && payload["role"] == "user" {
            self.note(Mark::Decided(payload["text"].as_str().unwrap_or_default().to_string()));
        }
        if frame["type"] == "plan_mode" && payload["plan_mode"] == true {
            self.note(Mark::Planned);
        }
    }

    /// What was noted.
    pub fn take(&self) -> Vec<(Duration, Mark)> { std::mem::take(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner)) }
}

/// See the file's head.
pub struct Person {
    lines: Vec<Said>,
    next: usize,
    /// Where in the line that is being said.
    at: Option<usize>,
    /// Silence of the speaker, and time since the last line.
    quiet_ms: u64,
    since_ms: u64,
    /// The answer has begun.
    answered: bool,
    heard: u64,
    marks: Marks,
    seed: u32,
}

impl Person {
    /// Says these lines, one after the other.
    pub fn new(lines: Vec<Said>, marks: Marks) -> Self {
        Self { lines, next: 0, at: None, quiet_ms: 0, since_ms: PATIENCE_MS, answered: false, heard: 0, marks, seed: 1 }
    }

    fn room(&mut self) -> f32 {
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((self.seed >> 8) as f32 / 8_388_608.0 - 1.0) * 32_768.0 * 3f32.sqrt() * db_to_ratio(ROOM_DBFS)
    }

    fn is_done(&self) -> bool { self.next >= self.lines.len() && self.at.is_none() }
}

impl FileDevice for Person {
    fn rate_hz(&self) -> u32 { RATE_HZ }

    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> {
        let length = (to - from) as usize;
        let step_ms = (to - from) * 1000 / u64::from(RATE_HZ);
        self.since_ms += step_ms;
        let turn = self.answered && self.quiet_ms >= PAUSE_MS || self.since_ms >= PATIENCE_MS;
        if self.at.is_none() && self.next < self.lines.len() && turn && from > u64::from(RATE_HZ) / 2 {
            self.at = Some(0);
            self.answered = false;
        }
        let mut sound: Vec<i16> = (0..length).map(|_| self.room() as i16).collect();
        if let Some(at) = self.at {
            let said = &self.lines[self.next];
            for (slot, s) in sound.iter_mut().zip(said.sound.iter().skip(at)) {
                *slot = slot.saturating_add(*s);
            }
            if (at..at + length).contains(&said.end) {
                self.marks.note(Mark::Words(self.next));
                self.since_ms = 0;
            }
            self.at = Some(at + length).filter(|at| *at < said.sound.len());
            self.next += usize::from(self.at.is_none());
        }
        self.heard = to;
        sound
    }

    fn length(&self) -> u64 { if self.is_done() { self.heard } else { u64::MAX } }

    fn speaker(&mut self, samples: &[i16]) -> Result<(), String> {
        if samples.iter().any(|s| *s != 0) {
            if self.quiet_ms > 200 {
                self.marks.note(Mark::FirstSample);
            }
            self.quiet_ms = 0;
            self.answered |= self.at.is_none();
        } else {
            self.quiet_ms += samples.len() as u64 * 1000 / u64::from(RATE_HZ);
        }
        Ok(())
    }
}
