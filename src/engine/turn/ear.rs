//! From frames to utterances that begin, pause, go on and end. Microphone time counts frames; the engine's clock stands beside it.
//!
//! Owned by a [`super::Listener`]. Never knows words: it only asks for looks.

use std::collections::VecDeque;

use super::{EarSettings, FRAME_MS, Frame, LONGEST_MS, MUTED_DBFS, Ms, ONSET_MS, POST_ROLL_MS, PRE_ROLL_MS, RUN_ON_MS, SHORTEST_MS, STEADY_DB, TOLD_MS};
use crate::engine::id::UtteranceId;

/// Unvoiced frames after which a steady noise counts as gone.
const NOISE_GONE_MS: u64 = 200;
/// After an utterance that was cut in the middle of voice, one that begins this soon takes up where that was cut.
const TAKE_UP_MS: u64 = 2_000;

/// What the ear tells after a frame, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum EarEvent {
    /// An utterance began.
    Onset {
        /// Which.
        utterance: UtteranceId,
        /// Microphone time of its first voice.
        at_ms: u64,
    },
    /// There is enough voice over playback that playback should hold its breath.
    Over(UtteranceId),
    /// It is more than a click ([`TOLD_MS`] of voice).
    Sustained(UtteranceId),
    /// It has gone on long enough to stop a voice that cannot hold its breath.
    Insistent(UtteranceId),
    /// Recognise what there is. May come again for the same utterance when it goes on.
    Look {
        /// Which.
        utterance: UtteranceId,
        /// Microphone time, pre-roll included.
        from_ms: u64,
        /// Microphone time, post-roll included.
        to_ms: u64,
        /// Voice goes on: these words may decide about playback, and never close the utterance by themselves.
        early: bool,
    },
    /// The look that ended here is of no more use: speech went on, or a later look takes its place.
    Void {
        /// Of which utterance.
        utterance: UtteranceId,
        /// Which look.
        to_ms: u64,
    },
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
    /// Nothing is added any more (too long, stuck, muted): it closes as soon as its words are known.
    pub over: bool,
    from_ms: u64,
    /// Voiced while something played, and when that began.
    over_ms: u64,
    over_since: Option<u64>,
    /// Voice without a pause since, in microphone time.
    run_since: u64,
    looked_to: Option<u64>,
    early_to: Option<u64>,
    early_over: bool,
    told: bool,
    insistent: bool,
}

impl Utterance {
    /// Something played while it was spoken, long enough to count.
    pub fn is_over_playback(&self, settings: &EarSettings) -> bool { self.over_ms >= settings.duck_ms }

    /// Voice has gone on without a pause for suspiciously long.
    pub(super) fn runs_on(&self) -> bool { self.last_ms.saturating_sub(self.run_since) >= RUN_ON_MS }
}

/// See the file's head.
#[derive(Debug)]
pub struct Ear {
    /// May be changed at any time.
    pub settings: EarSettings,
    now_ms: u64,
    heard_at: Ms,
    run_ms: u64,
    run_began: (u64, Ms),
    current: Option<Utterance>,
    next: u64,
    /// Levels of the last frames, at most [`EarSettings::stuck_ms`] of them.
    levels: VecDeque<f32>,
    /// Level of a steady noise that was taken for voice, and for how long it has been gone.
    noise: Option<(f32, u64)>,
    take_up: Option<u64>,
    /// End of the last voice of the utterance before.
    closed_ms: u64,
}

impl Ear {
    /// An ear whose utterances are numbered from `first`.
    pub fn new(settings: EarSettings, first: u64) -> Self {
        Self { settings, now_ms: 0, heard_at: 0, run_ms: 0, run_began: (0, 0), current: None, next: first, levels: VecDeque::new(), noise: None, take_up: None, closed_ms: 0 }
    }

    /// Microphone time: everything heard so far.
    pub fn now_ms(&self) -> u64 { self.now_ms }

    /// The number the next utterance will get.
    pub fn next_id(&self) -> u64 { self.next }

    /// The utterance that is not closed yet.
    pub fn current(&self) -> Option<&Utterance> { self.current.as_ref() }

    /// Silence since the last voice of the open utterance; without end when nothing is added to it any more.
    pub fn silence_ms(&self) -> u64 { self.current.as_ref().map_or(0, |u| if u.over { u64::MAX } else { self.now_ms - u.last_ms }) }

    /// Engine time at which an open utterance is over for want of frames.
    pub fn starves_at(&self) -> Option<Ms> { self.current.as_ref().filter(|u| !u.over).map(|_| self.heard_at + self.settings.stuck_ms) }

    /// Takes the open utterance away: it is done.
    pub fn close(&mut self) -> Option<Utterance> {
        self.run_ms = 0;
        let closed = self.current.take()?;
        self.closed_ms = closed.last_ms;
        self.take_up = (closed.over && closed.looked_to.is_some()).then_some(closed.last_ms);
        Some(closed)
    }

    /// One frame at engine time `now`. `playing`: a voice is audible that speech may interrupt.
    pub fn frame(&mut self, now: Ms, frame: Frame, playing: bool) -> Vec<EarEvent> {
        let start = self.now_ms;
        self.now_ms += FRAME_MS;
        self.heard_at = now;
        let mut events = Vec::new();
        let least = if self.current.is_some() { self.settings.off } else { self.settings.on };
        let voiced = frame.probability >= least && frame.level_dbfs > MUTED_DBFS && !self.is_known_noise(frame);
        self.remember_level(frame.level_dbfs);
        match &self.current {
            None => self.wait_for_onset(now, start, voiced, playing, &mut events),
            Some(u) if u.over => {}
            Some(_) => self.go_on(now, voiced, playing, &mut events),
        }
        events
    }

    /// Frames have stopped coming while an utterance is open: it is over.
    pub fn starve(&mut self, now: Ms) -> Vec<EarEvent> {
        let mut events = Vec::new();
        if self.starves_at().is_some_and(|at| now >= at) {
            self.end_here(&mut events);
        }
        events
    }

    /// Words that stayed the same while voice went on: the detector is stuck, and the utterance ends where those were heard.
    pub(super) fn is_stuck(&mut self) -> Vec<EarEvent> {
        let mut events = Vec::new();
        self.end_here(&mut events);
        events
    }

    /// Words that changed: somebody does speak, and is looked at again after another while.
    pub(super) fn moved_on(&mut self) {
        if let Some(u) = &mut self.current { u.run_since = self.now_ms }
    }

    fn wait_for_onset(&mut self, now: Ms, start: u64, voiced: bool, playing: bool, events: &mut Vec<EarEvent>) {
        if !voiced {
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
        let early = began_ms.saturating_sub(PRE_ROLL_MS).max(self.closed_ms.min(began_ms));
        let from_ms = self.take_up.take().filter(|cut| began_ms.saturating_sub(*cut) <= TAKE_UP_MS).unwrap_or(early);
        let over_ms = if playing { self.run_ms } else { 0 };
        self.current = Some(Utterance {
            id, began_ms, last_ms: self.now_ms, began_at, last_at: now, voiced_ms: self.run_ms, over: false, from_ms, over_ms, over_since: playing.then_some(began_ms),
            run_since: began_ms, looked_to: None, early_to: None, early_over: false, told: false, insistent: false,
        });
        events.push(EarEvent::Onset { utterance: id, at_ms: began_ms });
        if over_ms >= self.settings.duck_ms {
            events.push(EarEvent::Over(id));
        }
    }

    fn go_on(&mut self, now: Ms, voiced: bool, playing: bool, events: &mut Vec<EarEvent>) {
        let settings = self.settings;
        let steady = voiced && self.is_steady();
        let now_ms = self.now_ms;
        let Some(u) = &mut self.current else { return };
        if voiced {
            hear_voice(u, now, now_ms, playing, &settings, events);
        }
        if steady && now_ms - u.run_since >= settings.stuck_ms {
            self.drop_noise(events);
            return;
        }
        if now_ms - u.began_ms >= LONGEST_MS {
            self.end_here(events);
            return;
        }
        let silence = now_ms - u.last_ms;
        if u.looked_to.is_none() && silence >= settings.look_ms.min(settings.silence_ms) {
            self.look(events);
        } else if voiced {
            self.look_early(events);
        }
    }

    /// The pause look: everything there is.
    fn look(&mut self, events: &mut Vec<EarEvent>) {
        let now_ms = self.now_ms;
        let Some(u) = &mut self.current else { return };
        let id = u.id;
        if u.voiced_ms < SHORTEST_MS {
            events.push(EarEvent::Click(id));
            self.close();
            return;
        }
        let to_ms = (u.last_ms + POST_ROLL_MS).min(now_ms);
        u.looked_to = Some(to_ms);
        events.push(EarEvent::Look { utterance: id, from_ms: u.from_ms, to_ms, early: false });
    }

    /// A look while voice goes on: once over playback, and where it goes on suspiciously long.
    fn look_early(&mut self, events: &mut Vec<EarEvent>) {
        let now_ms = self.now_ms;
        let (early_look_ms, stuck_ms) = (self.settings.early_look_ms, self.settings.stuck_ms);
        let Some(u) = &mut self.current else { return };
        let over = !u.early_over && u.over_since.is_some_and(|since| now_ms - since >= early_look_ms) && u.over_ms >= self.settings.duck_ms;
        let run_on = now_ms - u.run_since >= RUN_ON_MS && u.early_to.is_none_or(|to| now_ms - to >= stuck_ms);
        if !over && !run_on {
            return;
        }
        u.early_over |= over;
        if let Some(to_ms) = u.early_to.replace(now_ms) {
            events.push(EarEvent::Void { utterance: u.id, to_ms });
        }
        events.push(EarEvent::Look { utterance: u.id, from_ms: u.from_ms, to_ms: now_ms, early: true });
    }

    /// Nothing more is added: what there is is looked at, unless it has been already.
    fn end_here(&mut self, events: &mut Vec<EarEvent>) {
        let Some(u) = self.current.as_mut().filter(|u| !u.over) else { return };
        u.over = true;
        if u.looked_to.is_none() {
            self.look(events);
        }
    }

    /// What was taken for voice is a machine's hum: the utterance ends where that began, and the hum is remembered.
    fn drop_noise(&mut self, events: &mut Vec<EarEvent>) {
        let mean = self.levels.iter().sum::<f32>() / self.levels.len().max(1) as f32;
        self.noise = Some((mean, 0));
        let (now_ms, stuck_ms) = (self.now_ms, self.settings.stuck_ms);
        if let Some(u) = &mut self.current {
            u.last_ms = u.last_ms.min(now_ms - stuck_ms).max(u.began_ms);
            u.last_at = u.last_at.saturating_sub(stuck_ms).max(u.began_at);
            u.voiced_ms = u.voiced_ms.saturating_sub(stuck_ms);
        }
        self.end_here(events);
        self.take_up = None;
    }

    fn remember_level(&mut self, level: f32) {
        self.levels.push_back(level);
        let most = (self.settings.stuck_ms / FRAME_MS) as usize;
        while self.levels.len() > most.max(3) {
            self.levels.pop_front();
        }
    }

    /// The level has not moved for as long as it is remembered. Three frames in one: a hum moves less in 60 ms than in 20, a
    /// person does not.
    fn is_steady(&self) -> bool {
        let full = self.levels.len() as u64 * FRAME_MS >= self.settings.stuck_ms;
        let means = self.levels.iter().zip(self.levels.iter().skip(1)).zip(self.levels.iter().skip(2)).map(|((a, b), c)| (a + b + c) / 3.0);
        let (low, high) = means.fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        full && high - low < STEADY_DB
    }

    /// The hum that was taken for voice before, as loud as before. It is forgotten when the detector has not heard it for a while.
    fn is_known_noise(&mut self, frame: Frame) -> bool {
        let Some((level, gone)) = &mut self.noise else { return false };
        *gone = if frame.probability < self.settings.off { *gone + FRAME_MS } else { 0 };
        let known = frame.level_dbfs < *level + STEADY_DB;
        if *gone >= NOISE_GONE_MS {
            self.noise = None;
            return false;
        }
        known
    }
}

/// A voiced frame of an utterance that is open.
fn hear_voice(u: &mut Utterance, now: Ms, now_ms: u64, playing: bool, settings: &EarSettings, events: &mut Vec<EarEvent>) {
    if now_ms - u.last_ms > FRAME_MS * 5 {
        u.run_since = now_ms - FRAME_MS;
    }
    u.last_ms = now_ms;
    u.last_at = now;
    u.voiced_ms += FRAME_MS;
    if let Some(to_ms) = u.looked_to.take() {
        events.push(EarEvent::Void { utterance: u.id, to_ms });
    }
    if playing {
        let before = u.over_ms;
        u.over_ms += FRAME_MS;
        u.over_since.get_or_insert(now_ms - FRAME_MS);
        if before < settings.duck_ms && u.over_ms >= settings.duck_ms {
            events.push(EarEvent::Over(u.id));
        }
    }
    if !u.told && u.voiced_ms >= TOLD_MS {
        u.told = true;
        events.push(EarEvent::Sustained(u.id));
    }
    if !u.insistent && u.over_since.is_some_and(|since| now_ms - since >= settings.barge_in_ms) && u.voiced_ms >= settings.barge_in_ms * 3 / 4 {
        u.insistent = true;
        events.push(EarEvent::Insistent(u.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EarEvent::{Click, Look, Onset, Over, Sustained, Void};

    const ONE: UtteranceId = UtteranceId(1);

    /// Speech moves in level; a machine does not.
    fn speech(n: u64) -> Frame { Frame { probability: 0.9, level_dbfs: -20.0 - (n % 5) as f32 * 5.0 } }
    const QUIET: Frame = Frame { probability: 0.0, level_dbfs: -60.0 };
    const HUM: Frame = Frame { probability: 0.8, level_dbfs: -38.0 };

    struct Try {
        ear: Ear,
        at: Ms,
        playing: bool,
    }

    impl Try {
        fn new() -> Self { Self { ear: Ear::new(EarSettings::default(), 1), at: 0, playing: false } }
        fn run(&mut self, ms: u64, frame: impl Fn(u64) -> Frame) -> Vec<EarEvent> {
            (0..ms / FRAME_MS).flat_map(|n| { self.at += FRAME_MS; self.ear.frame(self.at, frame(n), self.playing) }).collect()
        }
    }

    #[test]
    fn speech_is_looked_at_in_the_first_pause_and_again_when_it_goes_on() {
        let mut t = Try::new();
        let mut seen = t.run(500, |_| QUIET);
        seen.extend(t.run(1_000, speech));
        seen.extend(t.run(400, |_| QUIET));
        assert_eq!(seen, vec![Onset { utterance: ONE, at_ms: 500 }, Sustained(ONE), Look { utterance: ONE, from_ms: 0, to_ms: 1_600, early: false }]);
        assert_eq!(t.run(100, speech), vec![Void { utterance: ONE, to_ms: 1_600 }]);
        assert_eq!(t.ear.close().map(|u| u.last_ms), Some(2_000));
    }

    #[test]
    fn a_click_is_nothing() {
        let mut t = Try::new();
        let mut seen = t.run(80, speech);
        seen.extend(t.run(300, |_| QUIET));
        assert_eq!(seen.last(), Some(&Click(ONE)));
        assert!(t.ear.current().is_none());
    }

    #[test]
    fn over_playback_it_ducks_at_the_onset_and_is_looked_at_while_it_goes_on() {
        let mut t = Try::new();
        t.playing = true;
        assert_eq!(t.run(60, speech), vec![Onset { utterance: ONE, at_ms: 0 }, Over(ONE)]);
        let seen = t.run(260, speech);
        assert_eq!(seen, vec![Sustained(ONE), Look { utterance: ONE, from_ms: 0, to_ms: 320, early: true }]);
        assert_eq!(t.run(80, speech), vec![EarEvent::Insistent(ONE)]);
        let seen = t.run(200, |_| QUIET);
        assert_eq!(seen, vec![Look { utterance: ONE, from_ms: 0, to_ms: 500, early: false }], "the early one still counts");
    }

    #[test]
    fn a_detector_that_is_stuck_on_steady_noise_ends_the_utterance_where_the_noise_began() {
        let mut t = Try::new();
        t.run(1_000, speech);
        let seen = t.run(1_300, |_| HUM);
        let Some(Look { to_ms, early: false, .. }) = seen.last() else { panic!("{seen:?}") };
        assert!((1_000..=1_500).contains(to_ms), "{to_ms}");
        assert_eq!(t.ear.silence_ms(), u64::MAX);
        t.ear.close();
        assert!(t.run(20_000, |_| HUM).is_empty(), "the noise begins no utterance of its own");
        assert!(matches!(t.run(200, speech)[..], [Onset { .. }, ..]), "a voice over it does");
        let mut t = Try::new();
        let seen = t.run(5_000, |_| HUM);
        assert_eq!(seen.last(), Some(&Click(ONE)), "noise alone is thrown away: {seen:?}");
    }

    #[test]
    fn a_muted_microphone_is_silent_whatever_the_detector_says() {
        let mut t = Try::new();
        t.run(1_000, speech);
        let seen = t.run(200, |_| Frame { probability: 0.9, level_dbfs: -120.0 });
        assert!(matches!(seen[..], [Look { early: false, .. }]), "{seen:?}");
    }

    #[test]
    fn frames_that_do_not_come_end_the_utterance() {
        let mut t = Try::new();
        t.run(600, speech);
        let due = t.ear.starves_at().unwrap();
        assert_eq!(due, 600 + 1_200);
        assert!(t.ear.starve(due - 1).is_empty());
        assert!(matches!(t.ear.starve(due)[..], [Look { early: false, .. }]));
        assert_eq!((t.ear.silence_ms(), t.ear.starves_at()), (u64::MAX, None));
    }

    #[test]
    fn endless_speech_is_cut_once_and_the_next_takes_up_where_it_was_cut() {
        let mut t = Try::new();
        let seen = t.run(28_000, speech);
        let looks: Vec<_> = seen.iter().filter(|e| matches!(e, Look { early: false, .. })).collect();
        assert_eq!(looks, [&Look { utterance: ONE, from_ms: 0, to_ms: 28_000, early: false }]);
        assert!(t.run(400, speech).is_empty());
        t.ear.close();
        let seen = t.run(100, speech);
        assert!(matches!(seen[..], [Onset { .. }]));
        let seen = t.run(300, |_| QUIET);
        assert!(matches!(seen[..], [Look { from_ms: 28_000, .. }] | [_, Look { from_ms: 28_000, .. }]), "{seen:?}");
    }
}
