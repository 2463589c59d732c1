//! A scripted person beside the loudspeaker: hears when the gateway speaks and is silent, and says lines at their moments.
//!
//! Owns the script and where in it the person is. Called by the loop simulator, a frame of 20 ms at a time, on its sample clock.

use std::collections::VecDeque;

use crate::media::frame::{EAR_HZ, FRAME_MS};
use crate::media::level::rms_dbfs;

/// Quieter than this, a loudspeaker is taken to be silent.
const SILENT_DBFS: f32 = -55.0;
/// The gateway has fallen silent when nothing came for this long: pauses between its words and sentences are shorter.
const PAUSE_MS: u64 = 400;

/// When a line is said. Whatever the moment, a person finishes one line before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time of the conversation, or at once when that is past.
    At(u64),
    /// This long after the line before it ended.
    After(u64),
    /// When the gateway has said something since the line before and has then been silent for `quiet_ms`, or when it has said
    /// nothing for `patience_ms` since that line ended.
    Answered {
        /// Silence after the answer.
        quiet_ms: u64,
        /// How long to wait for one.
        patience_ms: u64,
    },
    /// This long into what the gateway begins to say after the line before.
    IntoSpeech(u64),
}

/// A line as sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When it is said.
    pub when: When,
    /// Mono i16 at 16 kHz.
    pub sound: Vec<i16>,
}

/// When a line was said, in milliseconds of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Of its first sample.
    pub from_ms: u64,
    /// Of its last.
    pub to_ms: u64,
}

/// See the file's head.
#[derive(Debug, Default)]
pub struct Person {
    lines: VecDeque<Line>,
    saying: Option<(Vec<i16>, usize)>,
    said: Vec<Said>,
    now_ms: u64,
    /// End of the last line.
    ended_ms: u64,
    /// When the gateway last began to speak after [`PAUSE_MS`] of silence, and when it was last heard.
    gateway_began_ms: Option<u64>,
    gateway_heard_ms: Option<u64>,
}

impl Person {
    /// Somebody with these lines to say.
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Self { Self { lines: lines.into_iter().collect(), ..Self::default() } }

    /// One more line.
    pub fn add(&mut self, line: Line) { self.lines.push_back(line) }

    /// Where the lines were said, in order.
    pub fn said(&self) -> &[Said] { &self.said }

    /// Nothing is left to say.
    pub fn is_done(&self) -> bool { self.lines.is_empty() && self.saying.is_none() }

    /// How long the gateway has been silent, and the person too.
    pub fn quiet_ms(&self) -> u64 {
        let last = self.gateway_heard_ms.unwrap_or(0).max(if self.saying.is_some() { self.now_ms } else { self.ended_ms });
        self.now_ms.saturating_sub(last)
    }

    /// The gateway is speaking, or only pauses.
    pub fn hears_gateway(&self) -> bool { self.gateway_heard_ms.is_some_and(|at| self.now_ms < at + PAUSE_MS) }

    /// When the gateway began what it said last.
    pub fn gateway_began_ms(&self) -> Option<u64> { self.gateway_began_ms }

    /// What the loudspeaker played during the frame that [`Person::speak`] has just filled.
    pub fn hear(&mut self, played: &[i16]) {
        if rms_dbfs(played) < SILENT_DBFS {
            return;
        }
        if !self.hears_gateway() {
            self.gateway_began_ms = Some(self.now_ms.saturating_sub(FRAME_MS));
        }
        self.gateway_heard_ms = Some(self.now_ms);
    }

    /// Adds the next frame of the person's voice to `out` (20 ms at 16 kHz) and moves on.
    pub fn speak(&mut self, out: &mut [f32]) {
        if self.saying.is_none() && self.lines.front().is_some_and(|l| self.is_time(l.when)) {
            if let Some(line) = self.lines.pop_front() {
                self.said.push(Said { from_ms: self.now_ms, to_ms: self.now_ms + line.sound.len() as u64 * 1000 / u64::from(EAR_HZ) });
                self.saying = Some((line.sound, 0));
            }
        }
        self.now_ms += FRAME_MS;
        let Some((sound, at)) = &mut self.saying else { return };
        out.iter_mut().zip(&sound[*at..]).for_each(|(slot, s)| *slot += f32::from(*s));
        *at += out.len();
        if *at >= sound.len() {
            self.saying = None;
            self.ended_ms = self.now_ms;
        }
    }

    fn is_time(&self, when: When) -> bool {
        let since = self.now_ms - self.ended_ms;
        let began = self.gateway_began_ms.filter(|at| *at >= self.ended_ms);
        let heard_since = self.gateway_heard_ms.filter(|at| *at > self.ended_ms);
        match when {
            When::At(ms) => self.now_ms >= ms,
            When::After(ms) => since >= ms,
            When::IntoSpeech(ms) => began.is_some_and(|at| self.hears_gateway() && self.now_ms >= at + ms),
            When::Answered { quiet_ms, patience_ms } => match heard_since {
                Some(at) => self.now_ms >= at + quiet_ms,
                None => since >= patience_ms,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(when: When) -> Line { Line { when, sound: vec![1_000; 640] } }

    /// Runs for so many frames; the gateway speaks in the given ones. Answers when the lines began.
    fn run(mut person: Person, frames: u64, speaks: impl Fn(u64) -> bool) -> Vec<u64> {
        for n in 0..frames {
            person.speak(&mut [0.0; 320]);
            let played = if speaks(n) { [3_000i16; 320] } else { [0; 320] };
            person.hear(&played);
        }
        person.said().iter().map(|s| s.from_ms).collect()
    }

    #[test]
    fn lines_come_at_their_moments() {
        let script = [line(When::At(100)), line(When::After(200)), line(When::IntoSpeech(300)), line(When::Answered { quiet_ms: 500, patience_ms: 9_000 })];
        // The gateway speaks from 1 s to 3 s, with a pause of 200 ms.
        let said = run(Person::new(script), 400, |n| (50..150).contains(&n) && !(90..100).contains(&n));
        assert_eq!(said.len(), 4);
        assert_eq!(said[..2], [100, 340]);
        assert!((1_300..=1_360).contains(&said[2]), "{said:?}");
        assert!((3_500..=3_560).contains(&said[3]), "{said:?}");
    }

    #[test]
    fn who_gets_no_answer_goes_on_after_a_while() {
        let answered = When::Answered { quiet_ms: 500, patience_ms: 2_000 };
        assert_eq!(run(Person::new([line(When::At(0)), line(answered)]), 300, |_| false), [0, 2_040]);
    }
}
