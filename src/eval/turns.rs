//! Ends of turns, measured: sixty scripted utterances in several voices through the real detector, recogniser and turn taking.
//!
//! Called by `voxgate eval turns`. Thirty utterances have a thinking pause in the middle, thirty are said in one breath. A cut-off
//! is a turn that closed although its speaker had not said all; the delay is from the last sample of the voice to the end of the
//! turn. Time is virtual: a recognition takes what it is said to take, whatever the machine does meanwhile.

mod kept;
mod script;

use std::path::Path;
use std::sync::Arc;

pub use kept::Kept;
pub use script::{Said, Speakers, script};

use crate::engine::grammar::{Scored, phrase_table};
use crate::engine::id::{Ms, UtteranceId};
use crate::engine::intent::{Moment, decide};
use crate::engine::turn::{EarEvent, EarSettings, Frame, Listener, TurnJudge};
use crate::media::frame::EAR_FRAME;
use crate::listen::vad::VadMaker;
use crate::session::ear::EarEnd;
use crate::stt::{Job, Recogniser};

/// What takes how long, in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// From the look to its words.
    pub recognise_ms: u64,
    /// From the look to the judge's opinion.
    pub judge_ms: u64,
}

/// Who hears.
pub struct Hearing {
    /// Words.
    pub recogniser: Arc<dyn Recogniser>,
    /// Completeness, if there is a judge.
    pub judge: Option<Arc<dyn TurnJudge>>,
    /// What was recognised before, by sound and model.
    pub kept: Kept,
    /// The detector of voice.
    pub vad: VadMaker,
    /// The grammar.
    pub table: Vec<Scored>,
    /// See [`Latency`].
    pub latency: Latency,
}

impl Hearing {
    /// With this recogniser (`model` names it) and judge; words are kept under `cache`.
    ///
    /// # Errors
    /// A sentence: the cache cannot be made.
    pub fn new(recogniser: Arc<dyn Recogniser>, judge: Option<Arc<dyn TurnJudge>>, vad: VadMaker, model: &str, cache: &Path, latency: Latency) -> Result<Self, String> {
        Ok(Self { recogniser, judge, vad, kept: Kept::open(cache, model)?, table: phrase_table(), latency })
    }
}

/// One way of ending turns.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The settings.
    pub settings: EarSettings,
    /// With the judge of turns.
    pub judged: bool,
}

impl Way {
    /// Silence alone ends a turn, whatever is said.
    pub fn silence(silence_ms: u64) -> Self {
        let all = EarSettings { silence_ms, answer_silence_ms: silence_ms, command_silence_ms: silence_ms, complete_silence_ms: silence_ms, unfinished_silence_ms: silence_ms, ..EarSettings::default() };
        Self { settings: all, judged: false }
    }

    /// The product, with this silence for ordinary speech.
    pub fn product(silence_ms: u64, judged: bool) -> Self { Self { settings: EarSettings { silence_ms, ..EarSettings::default() }, judged } }
}

/// What became of one utterance.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// It had a pause inside.
    pub paused: bool,
    /// Turns that closed before its last word.
    pub cut: bool,
    /// The words after the cut began soon enough to join, if nothing of an answer was heard by then.
    pub joins: bool,
    /// From its last sample to the end of its last turn.
    pub delay_ms: Option<u64>,
    /// What was heard in each turn.
    pub turns: Vec<String>,
}

/// Plays one utterance to the product's ear.
///
/// # Errors
/// A sentence: the recogniser failed.
pub async fn hear(said: &Said, way: &Way, hearing: &mut Hearing) -> Result<Outcome, String> {
    let mut ear = EarEnd::new(16_000).with_vad(hearing.vad.make());
    let mut listener = Listener::new(way.settings, 1);
    let mut walk = Walk { due: Vec::new(), opinions: Vec::new(), now: 0 };
    let mut outcome = Outcome { paused: said.paused, ..Outcome::default() };
    let mut last_end = None;
    for chunk in said.sound.chunks_exact(EAR_FRAME) {
        for framed in ear.push(chunk) {
            walk.now += 20;
            let frame = Frame { probability: framed.probability, level_dbfs: framed.level_dbfs };
            for event in listener.frame(walk.now, frame, false) {
                walk.follow(&event, &ear, way, hearing).await?;
                if let (EarEvent::Onset { at_ms, .. }, Some(end)) = (&event, last_end) {
                    outcome.joins |= outcome.cut && *at_ms <= end + way.settings.join_ms;
                }
            }
            walk.deliver(&mut listener);
            let table = &hearing.table;
            if let Some(closed) = listener.close(|heard| decide(heard, table, &Moment { in_plan: true, waiting: Some(1), ..Moment::default() })) {
                outcome.cut |= walk.now < said.last_begins_ms;
                outcome.delay_ms = walk.now.checked_sub(said.ends_ms);
                last_end = Some(closed.utterance.last_ms);
                outcome.turns.push(closed.heard.text);
            }
        }
    }
    Ok(outcome)
}

/// What is on its way to the listener.
struct Walk {
    due: Vec<(Ms, UtteranceId, u64, crate::engine::heard::Heard)>,
    opinions: Vec<(Ms, UtteranceId, u64, f32)>,
    now: Ms,
}

impl Walk {
    async fn follow(&mut self, event: &EarEvent, ear: &EarEnd, way: &Way, hearing: &mut Hearing) -> Result<(), String> {
        match *event {
            EarEvent::Look { utterance, from_ms, to_ms, early } => {
                let heard = recognise(ear.slice(from_ms, to_ms), hearing).await?;
                self.due.push((self.now + hearing.latency.recognise_ms, utterance, to_ms, heard));
                if let Some(judge) = hearing.judge.as_ref().filter(|_| way.judged && !early) {
                    let sound = ear.slice(Listener::judged_from(from_ms, to_ms), to_ms);
                    let complete = hearing.kept.judged(&sound, || judge.complete(&sound));
                    self.opinions.push((self.now + hearing.latency.judge_ms, utterance, to_ms, complete));
                }
            }
            EarEvent::Void { to_ms, .. } => self.due.retain(|d| d.2 != to_ms),
            _ => {}
        }
        Ok(())
    }

    fn deliver(&mut self, listener: &mut Listener) {
        let now = self.now;
        self.opinions.retain(|(at, utterance, to_ms, complete)| {
            if *at <= now { listener.judged(*utterance, *to_ms, *complete) }
            *at > now
        });
        self.due.retain(|(at, utterance, to_ms, heard)| {
            if *at <= now { listener.heard(*utterance, *to_ms, heard.clone()); }
            *at > now
        });
    }
}

async fn recognise(sound: Arc<[i16]>, hearing: &mut Hearing) -> Result<crate::engine::heard::Heard, String> {
    if let Some(heard) = hearing.kept.heard(&sound) {
        return Ok(heard);
    }
    let heard = hearing.recogniser.recognise(Job::new(sound.clone())).await.map_err(|e| e.to_string())?;
    hearing.kept.keep(&sound, &heard)?;
    Ok(heard)
}

/// What is counted over many utterances.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Utterances with a pause, and those of them that were cut.
    pub paused: (usize, usize),
    /// Cut ones whose second half joins.
    pub joined: usize,
    /// Utterances in one breath, and those of them that were cut.
    pub whole: (usize, usize),
    /// Sorted.
    pub delays: Vec<u64>,
    /// Nothing closed after the last word.
    pub unheard: usize,
}

impl Tally {
    /// Adds one.
    pub fn add(&mut self, outcome: &Outcome) {
        let kind = if outcome.paused { &mut self.paused } else { &mut self.whole };
        *kind = (kind.0 + 1, kind.1 + usize::from(outcome.cut));
        self.joined += usize::from(outcome.cut && outcome.joins);
        match outcome.delay_ms {
            Some(ms) => { let at = self.delays.partition_point(|d| *d < ms); self.delays.insert(at, ms) }
            None => self.unheard += 1,
        }
    }

    /// The delay that this part of the turns stays within.
    pub fn delay(&self, part: f64) -> u64 { self.delays.get(((self.delays.len() as f64 * part).ceil() as usize).saturating_sub(1)).copied().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_cuts_and_delays() {
        let mut tally = Tally::default();
        for (paused, cut, delay_ms) in [(true, true, Some(500)), (true, false, Some(300)), (false, false, Some(900)), (false, false, None)] {
            tally.add(&Outcome { paused, cut, joins: cut, delay_ms, turns: vec![] });
        }
        assert_eq!((tally.paused, tally.whole, tally.joined, tally.unheard), ((2, 1), (2, 0), 1, 1));
        assert_eq!((tally.delay(0.5), tally.delay(0.95)), (500, 900));
    }
}
