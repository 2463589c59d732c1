//! Turn taking: from voice probabilities, frame by frame, to utterances that begin, pause, go on and close.
//!
//! Pure and in the microphone's own time: every frame is 20 ms, whenever it arrives. The engine stamps its own clock beside it.

use super::id::{Ms, UtteranceId};

/// Length of a frame.
pub const FRAME_MS: u64 = 20;
/// Sound kept before the first voiced frame. The detector may miss a whole first word: with 300 ms, "Exit plan mode" lost its "exit" in
/// a reverberant room and in a fan's noise, and 7 of 180 utterances began in the middle of speech; with 500 ms the latest onset found
/// ("Exit", 480 ms) was just inside. A further 100 ms show that nothing was said before.
pub const PRE_ROLL_MS: u64 = 600;
/// Sound kept after the last voiced frame.
pub const POST_ROLL_MS: u64 = 240;
/// Voice this long begins an utterance; shorter is a click.
pub const ONSET_MS: u64 = 60;
/// An utterance with less voice than this is thrown away.
pub const SHORTEST_MS: u64 = 100;
/// An utterance longer than this is cut: the recogniser takes 30 s.
pub const LONGEST_MS: u64 = 28_000;

/// Every number of turn taking that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarSettings {
    /// Voice probability that begins an utterance.
    pub on: f32,
    /// Voice probability that keeps it going.
    pub off: f32,
    /// Silence that ends a turn.
    pub silence_ms: u64,
    /// Silence after which a denial or "stop" counts while a question is open.
    pub answer_silence_ms: u64,
    /// Silence that consent and loosening wait for.
    pub loosen_silence_ms: u64,
    /// Voice over playback that stops it.
    pub barge_in_ms: u64,
    /// False: turns are committed by hand.
    pub automatic: bool,
}

impl Default for EarSettings {
    fn default() -> Self {
        Self { on: 0.5, off: 0.35, silence_ms: 500, answer_silence_ms: 300, loosen_silence_ms: 600, barge_in_ms: 200, automatic: true }
    }
}

/// What the ear tells the engine after a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum EarEvent {
    /// An utterance began, at this time of the microphone.
    Onset {
        /// Which.
        utterance: UtteranceId,
        /// Microphone time of its first voice.
        at_ms: u64,
    },
    /// It has gone on long enough to stop the voice.
    Sustained(UtteranceId),
    /// It has paused: recognise what there is. May come again for the same utterance when it goes on.
    Look {
        /// Which.
        utterance: UtteranceId,
        /// Microphone time, pre-roll included.
        from_ms: u64,
        /// Microphone time, post-roll included.
        to_ms: u64,
    },
    /// Speech went on after a look: what was recognised before is void.
    WentOn(UtteranceId),
    /// It was too short to be anything.
    Click(UtteranceId),
}

/// An utterance that has begun and is not closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// Its id.
    pub id: UtteranceId,
    /// Microphone time of the first voiced frame.
    pub began_ms: u64,
    /// Microphone time of the end of the last voiced frame.
    pub last_ms: u64,
    /// Engine time of the first voiced frame.
    pub began_at: Ms,
    /// Engine time of the last voiced frame.
    pub last_at: Ms,
    /// Voice heard so far.
    pub voiced_ms: u64,
    looked_at: Option<u64>,
    sustained: bool,
}

/// See the file's head.
#[derive(Debug)]
pub struct Ear {
    /// May be changed at any time.
    pub settings: EarSettings,
    now_ms: u64,
    run_ms: u64,
    run_began: (u64, Ms),
    current: Option<Utterance>,
    next: u64,
}

impl Ear {
    /// An ear whose utterances are numbered from `first`.
    pub fn new(settings: EarSettings, first: u64) -> Self {
        Self { settings, now_ms: 0, run_ms: 0, run_began: (0, 0), current: None, next: first }
    }

    /// Microphone time: everything heard so far.
    pub fn now_ms(&self) -> u64 { self.now_ms }

    /// The number the next utterance will get.
    pub fn next_id(&self) -> u64 { self.next }

    /// The utterance that is not closed yet.
    pub fn current(&self) -> Option<&Utterance> { self.current.as_ref() }

    /// Silence since the last voice of the open utterance.
    pub fn silence_ms(&self) -> u64 { self.current.as_ref().map_or(0, |u| self.now_ms - u.last_ms) }

    /// Takes the open utterance away: it is done.
    pub fn close(&mut self) -> Option<Utterance> {
        self.run_ms = 0;
        self.current.take()
    }

    /// One frame's voice probability at engine time `now`. `look_ms` is the silence after which to look (shorter while a question is open).
    pub fn frame(&mut self, now: Ms, probability: f32, look_ms: u64) -> Vec<EarEvent> {
        let start = self.now_ms;
        self.now_ms += FRAME_MS;
        let mut events = Vec::new();
        let Some(utterance) = &mut self.current else {
            self.wait_for_onset(now, start, probability, &mut events);
            return events;
        };
        if probability >= self.settings.off {
            utterance.last_ms = self.now_ms;
            utterance.last_at = now;
            utterance.voiced_ms += FRAME_MS;
            if utterance.looked_at.take().is_some() {
                events.push(EarEvent::WentOn(utterance.id));
            }
            if !utterance.sustained && utterance.voiced_ms >= self.settings.barge_in_ms {
                utterance.sustained = true;
                events.push(EarEvent::Sustained(utterance.id));
            }
        }
        let silence = self.now_ms - utterance.last_ms;
        let too_long = self.now_ms - utterance.began_ms >= LONGEST_MS;
        if utterance.looked_at.is_none() && (silence >= look_ms || too_long) {
            if utterance.voiced_ms < SHORTEST_MS {
                events.push(EarEvent::Click(utterance.id));
                self.current = None;
                self.run_ms = 0;
            } else {
                utterance.looked_at = Some(utterance.last_ms);
                events.push(EarEvent::Look {
                    utterance: utterance.id,
                    from_ms: utterance.began_ms.saturating_sub(PRE_ROLL_MS),
                    to_ms: (utterance.last_ms + POST_ROLL_MS).min(self.now_ms),
                });
            }
        }
        events
    }

    fn wait_for_onset(&mut self, now: Ms, start: u64, probability: f32, events: &mut Vec<EarEvent>) {
        if probability < self.settings.on {
            self.run_ms = 0;
            return;
        }
        if self.run_ms == 0 {
            self.run_began = (start, now);
        }
        self.run_ms += FRAME_MS;
        if self.run_ms < ONSET_MS {
            return;
        }
        let id = UtteranceId(self.next);
        self.next += 1;
        let (began_ms, began_at) = self.run_began;
        self.current = Some(Utterance { id, began_ms, last_ms: self.now_ms, began_at, last_at: now, voiced_ms: self.run_ms, looked_at: None, sustained: false });
        events.push(EarEvent::Onset { utterance: id, at_ms: began_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ear: &mut Ear, from: Ms, frames: u64, p: f32, look: u64) -> Vec<EarEvent> {
        (0..frames).flat_map(|n| ear.frame(from + n * FRAME_MS, p, look)).collect()
    }

    #[test]
    fn speech_is_looked_at_after_the_silence_and_again_when_it_goes_on() {
        let mut ear = Ear::new(EarSettings::default(), 1);
        let mut seen = run(&mut ear, 0, 25, 0.0, 500);
        seen.extend(run(&mut ear, 500, 50, 0.9, 500));
        seen.extend(run(&mut ear, 1500, 30, 0.0, 500));
        assert_eq!(seen, vec![
            EarEvent::Onset { utterance: UtteranceId(1), at_ms: 500 }, EarEvent::Sustained(UtteranceId(1)),
            EarEvent::Look { utterance: UtteranceId(1), from_ms: 0, to_ms: 1740 },
        ]);
        let more = run(&mut ear, 2100, 5, 0.9, 500);
        assert_eq!(more, vec![EarEvent::WentOn(UtteranceId(1))]);
        assert_eq!(ear.close().map(|u| u.last_ms), Some(2200));
    }

    #[test]
    fn a_click_is_nothing() {
        let mut ear = Ear::new(EarSettings::default(), 1);
        let mut seen = run(&mut ear, 0, 4, 0.9, 500);
        seen.extend(run(&mut ear, 80, 30, 0.0, 500));
        assert_eq!(seen.last(), Some(&EarEvent::Click(UtteranceId(1))));
        assert!(ear.current().is_none());
    }
}
