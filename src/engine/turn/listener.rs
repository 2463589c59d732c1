//! An ear with its looks: frames in, "recognise this" out; words in, closed utterances out.
//!
//! Whoever only listens drives it alone, without an engine:
//!
//! ```
//! use voxgate::engine::intent::{Moment, decide_text};
//! use voxgate::engine::heard::Heard;
//! use voxgate::engine::turn::{EarEvent, EarSettings, Frame, Listener};
//!
//! let mut listener = Listener::new(EarSettings::default(), 1);
//! let mut closed = Vec::new();
//! for n in 0..150u64 {
//!     let voice = (10..60).contains(&n);
//!     let frame = Frame { probability: if voice { 0.9 } else { 0.0 }, level_dbfs: if voice { -20.0 - (n % 7) as f32 * 3.0 } else { -60.0 } };
//!     for event in listener.frame(n * 20, frame, false) {
//!         if let EarEvent::Look { utterance, to_ms, .. } = event {
//!             // Recognise the sound from `from_ms` to `to_ms` here.
//!             listener.heard(utterance, to_ms, Heard::text_only("Enter plan mode."));
//!         }
//!     }
//!     closed.extend(listener.close(|heard| decide_text(&heard.text, &Moment::default())));
//! }
//! assert_eq!((closed.len(), closed[0].decision.name()), (1, "enter"));
//! assert_eq!(closed[0].utterance.last_ms, 1_200);
//! ```
//!
//! Asks for recognition and never does it; decides when an utterance is over and never what its words mean: `close` is told.

use super::endpoint::silence_for;
use super::{Ear, EarEvent, EarSettings, Frame, JUDGED_MS, Utterance};
use crate::engine::grammar::words_of;
use crate::engine::heard::Heard;
use crate::engine::id::{Ms, UtteranceId};
use crate::engine::intent::Decision;

#[derive(Debug)]
struct Look {
    utterance: UtteranceId,
    from_ms: u64,
    to_ms: u64,
    heard: Option<Heard>,
    complete: Option<f32>,
}

/// What an answer of the recogniser was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The utterance as it stands: it can close.
    Whole,
    /// Its beginning; voice goes on.
    Early,
    /// Nothing that is still wanted.
    Stale,
}

/// An utterance that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// When it was.
    pub utterance: Utterance,
    /// Its words.
    pub heard: Heard,
    /// What they decide.
    pub decision: Decision,
    /// Microphone time of the sound that was recognised.
    pub from_ms: u64,
    /// See `from_ms`.
    pub to_ms: u64,
}

/// See the file's head.
#[derive(Debug)]
pub struct Listener {
    ear: Ear,
    look: Option<Look>,
    early: Option<(UtteranceId, u64)>,
    /// What was heard of voice that goes on and on.
    run_on: Option<(UtteranceId, Vec<String>)>,
    /// What follows from words rather than from a frame, for the next frame.
    owed: Vec<EarEvent>,
}

impl Listener {
    /// Utterances are numbered from `first`.
    pub fn new(settings: EarSettings, first: u64) -> Self { Self { ear: Ear::new(settings, first), look: None, early: None, run_on: None, owed: Vec::new() } }

    /// The ear's state.
    pub fn ear(&self) -> &Ear { &self.ear }

    /// May be changed at any time.
    pub fn settings_mut(&mut self) -> &mut EarSettings { &mut self.ear.settings }

    /// A look waits for its words.
    pub fn is_recognising(&self) -> bool { self.look.as_ref().is_some_and(|l| l.heard.is_none()) }

    /// The look that still waits for its words: of which utterance, and its end.
    pub fn looking(&self) -> Option<(UtteranceId, u64)> { self.look.as_ref().filter(|l| l.heard.is_none()).map(|l| (l.utterance, l.to_ms)).or(self.early) }

    /// The words of the open utterance as far as it has paused.
    pub fn words(&self) -> Option<&Heard> { self.look.as_ref().and_then(|l| l.heard.as_ref()) }

    /// The sound that a judge of turns should be given for a look.
    pub fn judged_from(from_ms: u64, to_ms: u64) -> u64 { from_ms.max(to_ms.saturating_sub(JUDGED_MS)) }

    /// One frame of microphone at engine time `now` (milliseconds; never runs backwards). `playing`: a voice is audible that
    /// speech may interrupt.
    pub fn frame(&mut self, now: Ms, frame: Frame, playing: bool) -> Vec<EarEvent> {
        let mut events = std::mem::take(&mut self.owed);
        events.extend(self.ear.frame(now, frame, playing));
        self.follow(&events);
        events
    }

    /// Time has passed without a frame.
    pub fn tick(&mut self, now: Ms) -> Vec<EarEvent> {
        let mut events = std::mem::take(&mut self.owed);
        events.extend(self.ear.starve(now));
        self.follow(&events);
        events
    }

    fn follow(&mut self, events: &[EarEvent]) {
        for event in events {
            match *event {
                EarEvent::Look { utterance, to_ms, early: true, .. } => self.early = Some((utterance, to_ms)),
                EarEvent::Look { utterance, from_ms, to_ms, early: false } => self.look = Some(Look { utterance, from_ms, to_ms, heard: None, complete: None }),
                EarEvent::Void { to_ms, .. } => {
                    self.early.take_if(|e| e.1 == to_ms);
                    self.look.take_if(|l| l.to_ms == to_ms);
                }
                EarEvent::Click(_) => self.forget(),
                _ => {}
            }
        }
    }

    fn forget(&mut self) {
        self.look = None;
        self.early = None;
        self.run_on = None;
    }

    /// The words of a look.
    pub fn heard(&mut self, utterance: UtteranceId, to_ms: u64, heard: Heard) -> Told {
        if let Some(look) = self.look.as_mut().filter(|l| l.utterance == utterance && l.to_ms == to_ms) {
            look.heard = Some(heard);
            return Told::Whole;
        }
        if self.early.take_if(|e| *e == (utterance, to_ms)).is_none() {
            return Told::Stale;
        }
        self.runs_on(utterance, words_of(&heard.text));
        Told::Early
    }

    /// The same words twice, more than a second apart, and the detector has heard voice all the time: it is stuck.
    fn runs_on(&mut self, utterance: UtteranceId, words: Vec<String>) {
        if !self.ear.current().is_some_and(|u| u.id == utterance && u.runs_on()) {
            return;
        }
        match self.run_on.take().filter(|(of, _)| *of == utterance) {
            Some((_, before)) if before == words => {
                let events = self.ear.is_stuck();
                self.follow(&events);
                self.owed.extend(events);
            }
            Some(_) => self.ear.moved_on(),
            None => self.run_on = Some((utterance, words)),
        }
    }

    /// The judge's verdict on a look: probability that the turn is complete.
    pub fn judged(&mut self, utterance: UtteranceId, to_ms: u64, complete: f32) {
        if let Some(look) = self.look.as_mut().filter(|l| l.utterance == utterance && l.to_ms == to_ms && complete.is_finite()) {
            look.complete = Some(complete.clamp(0.0, 1.0));
        }
    }

    /// The open utterance, if its words are known and the silence is long enough for what they decide.
    pub fn close(&mut self, decide: impl FnOnce(&Heard) -> Decision) -> Option<Closed> {
        let look = self.look.as_ref()?;
        let heard = look.heard.as_ref()?;
        let decision = decide(heard);
        if self.ear.silence_ms() < silence_for(&decision, &heard.text, look.complete, &self.ear.settings) {
            return None;
        }
        let Look { heard: Some(heard), from_ms, to_ms, .. } = self.look.take()? else { return None };
        self.forget();
        let utterance = self.ear.close()?;
        Some(Closed { utterance, heard, decision, from_ms, to_ms })
    }

    /// Takes the open utterance away without its words. Answers what it was.
    pub fn drop_open(&mut self) -> Option<Utterance> {
        self.forget();
        self.owed.clear();
        self.ear.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::intent::{Moment, decide_text};

    fn speech(n: u64) -> Frame { Frame { probability: 0.9, level_dbfs: -20.0 - (n % 5) as f32 * 5.0 } }
    const QUIET: Frame = Frame { probability: 0.0, level_dbfs: -60.0 };

    struct Try {
        listener: Listener,
        at: Ms,
        text: &'static str,
        complete: Option<f32>,
        looks: usize,
    }

    impl Try {
        fn new(text: &'static str) -> Self { Self { listener: Listener::new(EarSettings::default(), 1), at: 0, text, complete: None, looks: 0 } }

        /// Runs on; answers how long after the end of the voice it closed.
        fn run(&mut self, ms: u64, frame: impl Fn(u64) -> Frame) -> Option<(u64, Closed)> {
            let mut closed = None;
            for n in 0..ms / 20 {
                self.at += 20;
                let events = self.listener.frame(self.at, frame(n), false);
                for event in &events {
                    if let EarEvent::Look { utterance, to_ms, .. } = event {
                        self.looks += 1;
                        if let Some(p) = self.complete { self.listener.judged(*utterance, *to_ms, p) }
                        self.listener.heard(*utterance, *to_ms, Heard::text_only(self.text));
                    }
                }
                if let Some(done) = self.listener.close(|h| decide_text(&h.text, &Moment::default())) {
                    closed = Some((self.at - done.utterance.last_ms, done));
                }
            }
            closed
        }
    }

    #[test]
    fn silence_grammar_and_judge_end_a_turn() {
        let after = |text, complete| {
            let mut t = Try { complete, ..Try::new(text) };
            assert!(t.run(900, speech).is_none());
            t.run(2_000, |_| QUIET).map(|c| c.0)
        };
        assert_eq!(after("Enter plan mode.", None), Some(320));
        assert_eq!(after("What is in my notes?", None), Some(500));
        assert_eq!(after("What is in my notes?", Some(0.9)), Some(300));
        assert_eq!(after("What is in my notes?", Some(0.1)), Some(1_400));
        assert_eq!(after("Put milk and", None), Some(1_400));
    }

    #[test]
    fn words_that_do_not_move_while_voice_goes_on_end_the_turn() {
        let mut t = Try::new("What is in my notes?");
        assert!(t.run(6_000, speech).is_none());
        let (_, closed) = t.run(1_500, speech).expect("it is stuck");
        assert_eq!((closed.heard.text.as_str(), t.looks), ("What is in my notes?", 3));
    }

    #[test]
    fn what_was_recognised_before_speech_went_on_is_stale() {
        let mut listener = Listener::new(EarSettings::default(), 1);
        let mut at = 0;
        let mut run = |listener: &mut Listener, ms: u64, frame: fn(u64) -> Frame| -> Vec<EarEvent> { (0..ms / 20).flat_map(|n| { at += 20; listener.frame(at, frame(n), false) }).collect() };
        run(&mut listener, 600, speech);
        let Some(EarEvent::Look { utterance, to_ms, .. }) = run(&mut listener, 200, |_| QUIET).pop() else { panic!("no look") };
        run(&mut listener, 100, speech);
        assert_eq!(listener.heard(utterance, to_ms, Heard::text_only("No.")), Told::Stale);
        assert!(listener.close(|_| Decision::Deny).is_none());
    }
}
