//! What was queued and what was heard: the one account of playback.
//!
//! Owns the queue between the voices and a loudspeaker, the cut of a barge-in, ducking and earcons. Called by the loop (append,
//! cut) and by whatever clock plays (pull). Never waits: a device pulls at its own pace and gets silence when nothing is due.
//!
//! Speeches play strictly one after the other, in the order of their first `append` or `finish`; the next begins when the one
//! before is finished and drained. A speech that was cut stays cut: what is appended to it later is refused.

use super::frame::{ms_of, samples_in};
use super::level::round_to_i16;
use std::collections::VecDeque;

/// Most sound that is held, in milliseconds.
pub const MAX_QUEUED_MS: u64 = 120_000;
/// Fade-out of what is cut, in milliseconds: long enough not to click, too short to be a sound.
pub const FADE_MS: u64 = 5;
/// Most speeches that wait at once.
const MAX_SPEECHES: usize = 256;
/// How many ended speeches are remembered for [`Playout::heard_ms`].
const MAX_PAST: usize = 256;
/// Most earcons that sound at once.
const MAX_EARCONS: usize = 4;
/// Fade-out of what holds its breath, in milliseconds: 20 dB down within 23 ms, and no click.
pub const DUCK_FADE_MS: u64 = 25;
/// Fade-in of what goes on, in milliseconds.
const RAMP_MS: u64 = 20;

/// What happened, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayoutEvent {
    /// The first sample of a speech was pulled.
    Started {
        /// Which.
        speech: u64,
    },
    /// A finished speech was played to its end.
    Drained {
        /// Which.
        speech: u64,
        /// Its length in milliseconds.
        heard_ms: u64,
    },
    /// Nothing is queued and no speech is open.
    Idle,
}

/// A speech that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which.
    pub speech: u64,
    /// How much of it was heard, in milliseconds.
    pub heard_ms: u64,
    /// How much of it had been appended, in milliseconds.
    pub total_ms: u64,
}

struct Speech {
    id: u64,
    waiting: VecDeque<i16>,
    heard: u64,
    finished: bool,
}

/// Playback of one loudspeaker. Mono i16 at the loudspeaker's rate.
pub struct Playout {
    rate_hz: u32,
    speeches: VecDeque<Speech>,
    /// Ended speeches: id, samples heard.
    past: VecDeque<(u64, u64)>,
    /// The fading end of what was cut.
    tail: VecDeque<i16>,
    earcons: Vec<VecDeque<i16>>,
    events: VecDeque<PlayoutEvent>,
    queued: u64,
    /// Gain of speech: 1 but for the fade-in after a duck.
    gain: f32,
    /// Speech holds its breath: no sample of it is played.
    ducked: bool,
    idle: bool,
}

impl Playout {
    /// An idle playout at `rate_hz`.
    pub fn new(rate_hz: u32) -> Self {
        Self {
            rate_hz,
            speeches: VecDeque::new(),
            past: VecDeque::new(),
            tail: VecDeque::new(),
            earcons: Vec::new(),
            events: VecDeque::new(),
            queued: 0,
            gain: 1.0,
            ducked: false,
            idle: true,
        }
    }

    /// The rate of everything in it, in Hz.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Queues sound of a speech behind what it already has. Returns how many samples were refused: those beyond
    /// [`MAX_QUEUED_MS`], and all of a speech that has ended or was cut.
    pub fn append(&mut self, speech: u64, pcm: &[i16]) -> usize {
        let room = samples_in(MAX_QUEUED_MS, self.rate_hz).saturating_sub(self.queued);
        let taken = pcm.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let Some(entry) = self.open(speech) else { return pcm.len() };
        if entry.finished {
            return pcm.len();
        }
        entry.waiting.extend(&pcm[..taken]);
        self.queued += taken as u64;
        pcm.len() - taken
    }

    /// Says that nothing more comes for a speech. Unknown ones count as speeches without sound.
    pub fn finish(&mut self, speech: u64) {
        if let Some(entry) = self.open(speech) {
            entry.finished = true;
        }
        self.settle();
    }

    /// Mixes a short sound over whatever plays, at once and undimmed. Left out when four sound already.
    pub fn earcon(&mut self, pcm: &[i16]) {
        if self.earcons.len() < MAX_EARCONS {
            let most = samples_in(1000, self.rate_hz) as usize;
            self.earcons.push(pcm.iter().take(most).copied().collect());
        }
    }

    /// Speech falls silent within [`DUCK_FADE_MS`] and keeps its place: the fading end does not count as heard and is played again
    /// after [`Playout::resume`]. Earcons are not touched. A second call changes nothing.
    pub fn duck(&mut self) {
        if std::mem::replace(&mut self.ducked, true) {
            return;
        }
        if let Some(front) = self.speeches.pop_front() {
            if front.heard > 0 { self.fade(&front.waiting, DUCK_FADE_MS) }
            self.speeches.push_front(front);
        }
    }

    /// Speech goes on where [`Playout::duck`] held it, faded in over 20 ms.
    pub fn resume(&mut self) {
        if std::mem::take(&mut self.ducked) {
            self.gain = 0.0;
        }
    }

    /// Speech holds its breath.
    pub fn is_ducked(&self) -> bool {
        self.ducked
    }

    /// Appends exactly `n` samples to `out`, silence where nothing is due, and takes them as heard.
    pub fn pull(&mut self, n: usize, out: &mut Vec<i16>) {
        let step = 1.0 / samples_in(RAMP_MS, self.rate_hz).max(1) as f32;
        for _ in 0..n {
            self.gain = (self.gain + step).min(1.0);
            let speech = if self.ducked { 0 } else { self.next_speech_sample() };
            let mut sum = f32::from(speech) * self.gain;
            sum += f32::from(self.tail.pop_front().unwrap_or(0));
            for earcon in &mut self.earcons {
                sum += f32::from(earcon.pop_front().unwrap_or(0));
            }
            out.push(round_to_i16(sum));
        }
        self.earcons.retain(|e| !e.is_empty());
        self.settle();
    }

    /// Ends one speech, or all with `None`, within [`FADE_MS`]. Tells what was heard of each that had not ended, in order.
    pub fn cut(&mut self, speech: Option<u64>) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let mut kept = VecDeque::new();
        for (place, entry) in std::mem::take(&mut self.speeches).into_iter().enumerate() {
            if speech.is_some_and(|id| id != entry.id) {
                kept.push_back(entry);
                continue;
            }
            if place == 0 && entry.heard > 0 && !self.ducked {
                self.fade(&entry.waiting, FADE_MS);
            }
            // What comes next is another speech: it does not begin with its breath held.
            self.ducked &= place != 0;
            self.queued -= entry.waiting.len() as u64;
            let total = entry.heard + entry.waiting.len() as u64;
            cuts.push(Cut { speech: entry.id, heard_ms: ms_of(entry.heard, self.rate_hz), total_ms: ms_of(total, self.rate_hz) });
            self.remember(entry.id, entry.heard);
        }
        self.speeches = kept;
        self.settle();
        cuts
    }

    /// How much of a speech was heard, in milliseconds. `None` when it is unknown or long past.
    pub fn heard_ms(&self, speech: u64) -> Option<u64> {
        let open = self.speeches.iter().find(|s| s.id == speech).map(|s| s.heard);
        let heard = open.or_else(|| self.past.iter().find(|(id, _)| *id == speech).map(|(_, heard)| *heard));
        heard.map(|samples| ms_of(samples, self.rate_hz))
    }

    /// How much speech is queued and not yet heard, in milliseconds.
    pub fn queued_ms(&self) -> u64 {
        ms_of(self.queued, self.rate_hz)
    }

    /// The speech whose turn it is.
    pub fn current(&self) -> Option<u64> {
        self.speeches.front().map(|s| s.id)
    }

    /// Nothing sounds and nothing is due: no open speech, no fading end, no earcon.
    pub fn is_silent(&self) -> bool {
        self.speeches.is_empty() && self.tail.is_empty() && self.earcons.is_empty()
    }

    /// The next event, oldest first. Drain it after every call that changes something.
    pub fn poll(&mut self) -> Option<PlayoutEvent> {
        self.events.pop_front()
    }

    fn open(&mut self, id: u64) -> Option<&mut Speech> {
        if let Some(place) = self.speeches.iter().position(|s| s.id == id) {
            return self.speeches.get_mut(place);
        }
        if self.speeches.len() >= MAX_SPEECHES || self.past.iter().any(|(past, _)| *past == id) {
            return None;
        }
        self.idle = false;
        self.speeches.push_back(Speech { id, waiting: VecDeque::new(), heard: 0, finished: false });
        self.speeches.back_mut()
    }

    fn next_speech_sample(&mut self) -> i16 {
        loop {
            let Some(front) = self.speeches.front_mut() else { return 0 };
            if let Some(sample) = front.waiting.pop_front() {
                if front.heard == 0 {
                    self.events.push_back(PlayoutEvent::Started { speech: front.id });
                }
                front.heard += 1;
                self.queued -= 1;
                return sample;
            }
            if !front.finished {
                return 0;
            }
            self.end_front();
        }
    }

    fn end_front(&mut self) {
        if let Some(done) = self.speeches.pop_front() {
            self.events.push_back(PlayoutEvent::Drained { speech: done.id, heard_ms: ms_of(done.heard, self.rate_hz) });
            self.remember(done.id, done.heard);
        }
    }

    /// Ends what is finished and empty, and says so when that was the last.
    fn settle(&mut self) {
        while self.speeches.front().is_some_and(|s| s.finished && s.waiting.is_empty()) {
            self.end_front();
        }
        if self.speeches.is_empty() && !self.idle {
            self.idle = true;
            self.events.push_back(PlayoutEvent::Idle);
        }
    }

    fn remember(&mut self, id: u64, heard: u64) {
        if self.past.len() == MAX_PAST {
            self.past.pop_front();
        }
        self.past.push_back((id, heard));
    }

    fn fade(&mut self, rest: &VecDeque<i16>, ms: u64) {
        let length = (samples_in(ms, self.rate_hz) as usize).min(rest.len());
        let gain = self.gain;
        let faded = rest.iter().take(length).enumerate().map(|(i, s)| {
            let left = (length - i) as f32 / (length + 1) as f32;
            round_to_i16(f32::from(*s) * gain * left)
        });
        self.tail.clear();
        self.tail.extend(faded);
    }
}

#[cfg(test)]
#[path = "playout_tests.rs"]
mod tests;
