//! A recorded sound through the product's own ear, as a live microphone would bring it: frames, voice, turns, words, decisions.
//!
//! Called by `eval listen` and `eval words`. Owns the walk through one sound; detector, turn taking, recogniser and judge are the
//! product's. Recognising takes no time here: a sound's clock stands still meanwhile, as it does in `talk --pace fast`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::grammar::{Scored, words_of};
use crate::engine::heard::Heard;
use crate::engine::id::UtteranceId;
use crate::engine::intent::{Decision, Moment, Open, decide};
use crate::engine::junk::is_stock_closer;
use crate::engine::language::Language;
use crate::engine::turn::{Closed, EarEvent, EarSettings, FRAME_MS, Frame, Listener as Turns, PRE_ROLL_MS, TurnJudge};
use crate::listen::vad::VadMaker;
use crate::media::frame::frame_len;
use crate::session::ear::EarEnd;
use crate::stt::{Job, Recogniser, SttError};

/// Silence that is heard after the end of a sound at least, so that its last turn ends.
const SILENCE_AFTER_MS: u64 = 1_000;
/// Silence before its beginning: a live microphone was on before the first word, and the pre-roll is cut from there.
const SILENCE_BEFORE_MS: u64 = PRE_ROLL_MS;
/// The engine takes nothing shorter for a loosening sentence.
const LOOSEN_SHORTEST_MS: u64 = 350;

/// What is open while a sound is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum State {
    /// Nothing is open, plan mode is on
    Idle,
    /// A tool's question is open and was heard
    Question,
    /// Plans one and two exist, plan two waits
    Review,
}

impl State {
    /// All of them.
    pub const ALL: [State; 3] = [State::Idle, State::Question, State::Review];

    /// The moment that every turn of the sound falls into; the same as the kinds of `eval utterances`.
    pub fn moment(self) -> Moment {
        match self { State::Idle => Moment::PLANNING, State::Question => Moment::ASKED, State::Review => Moment::REVIEW }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self { State::Idle => "idle", State::Question => "question", State::Review => "review" }
    }
}

/// One turn of a sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Where its first voice is, in ms from the sound's beginning.
    pub start_ms: u64,
    /// Where its last voice ends.
    pub end_ms: u64,
    /// What the recogniser made of it.
    pub heard: Heard,
    /// What it decides.
    pub decision: Decision,
}

/// The product's ear and judge.
pub struct Listener<'a> {
    /// Who writes the words.
    pub recogniser: &'a dyn Recogniser,
    /// The sentences that it scores: those of the language.
    pub table: &'a [Scored],
    /// Turn taking, as configured.
    pub ear: EarSettings,
    /// The language that is spoken, as an ISO 639-1 code.
    pub language: String,
    /// Who says whether a turn sounds complete, where there is one.
    pub judge: Option<Arc<dyn TurnJudge>>,
    /// Who says whether there is a voice.
    pub vad: VadMaker,
}

impl Listener<'_> {
    /// All turns of a sound (mono i16 at `rate_hz`) while `state` holds.
    ///
    /// # Errors
    /// The recogniser's.
    pub async fn turns(&self, samples: &[i16], rate_hz: u32, state: State) -> Result<Vec<Turn>, SttError> {
        Ok(self.turns_in(samples, rate_hz, &[state]).await?.pop().unwrap_or_default())
    }

    /// The same for several states at once, each as if it were alone.
    ///
    /// # Errors
    /// The recogniser's.
    pub async fn turns_in(&self, samples: &[i16], rate_hz: u32, states: &[State]) -> Result<Vec<Vec<Turn>>, SttError> {
        let mut end = EarEnd::new(rate_hz).with_vad(self.vad.make());
        let language = Language::of(&self.language);
        let walk = |state: &State| Walk {
            listener: self, moment: Moment { language, ..state.moment() }, ear: Turns::new(EarSettings { language, ..self.ear }, 1), looks: Vec::new(), turns: Vec::new(),
        };
        let mut walks: Vec<_> = states.iter().map(walk).collect();
        let length = frame_len(rate_hz);
        let silence = vec![0; length];
        // Long enough for the last turn to end, however unfinished it sounds.
        let longest = [self.ear.silence_ms, self.ear.unfinished_silence_ms, self.ear.loosen_silence_ms].into_iter().max().unwrap_or(0);
        let after_ms = SILENCE_AFTER_MS.max(longest + 600);
        let quiet = |ms: u64| std::iter::repeat_n(silence.as_slice(), (ms / FRAME_MS) as usize);
        for frame in quiet(SILENCE_BEFORE_MS).chain(samples.chunks(length)).chain(quiet(after_ms)) {
            for framed in end.push(frame) {
                for walk in &mut walks {
                    walk.frame(Frame { probability: framed.probability, level_dbfs: framed.level_dbfs }, &end).await?;
                }
            }
        }
        Ok(walks.into_iter().map(|walk| walk.turns).collect())
    }
}

/// A piece of sound whose words are wanted.
#[derive(Clone, Copy)]
struct Look {
    utterance: UtteranceId,
    from_ms: u64,
    to_ms: u64,
    early: bool,
}

struct Walk<'a> {
    listener: &'a Listener<'a>,
    moment: Moment,
    ear: Turns,
    /// Looks whose words are not known yet.
    looks: Vec<Look>,
    turns: Vec<Turn>,
}

impl Walk<'_> {
    async fn frame(&mut self, frame: Frame, end: &EarEnd) -> Result<(), SttError> {
        for event in self.ear.frame(self.ear.ear().now_ms(), frame, false) {
            match event {
                EarEvent::Look { utterance, from_ms, to_ms, early } => self.looks.push(Look { utterance, from_ms, to_ms, early }),
                EarEvent::Void { to_ms, .. } => self.looks.retain(|l| l.to_ms != to_ms),
                EarEvent::Click(_) => self.looks.clear(),
                EarEvent::Onset { .. } | EarEvent::Over(_) | EarEvent::Sustained(_) | EarEvent::Insistent(_) => {}
            }
        }
        // Nothing closes sooner than this, so nothing sooner has to be recognised: speech that goes on makes it void.
        let settings = self.ear.ear().settings;
        let soonest = [settings.answer_silence_ms, settings.command_silence_ms, settings.complete_silence_ms, settings.silence_ms].into_iter().min().unwrap_or(0);
        let paused = self.ear.ear().silence_ms() >= soonest;
        while let Some(at) = self.looks.iter().position(|l| l.early || paused) {
            let look = self.looks.remove(at);
            self.recognise(look, end).await?;
        }
        let (table, moment) = (self.listener.table, self.moment);
        if let Some(closed) = self.ear.close(|heard| decide(heard, table, &moment)) {
            self.closed(closed);
        }
        Ok(())
    }

    async fn recognise(&mut self, look: Look, end: &EarEnd) -> Result<(), SttError> {
        let Look { utterance, from_ms, to_ms, early } = look;
        let score = Language::of(&self.listener.language).has_sentences();
        let job = Job { score, language: self.listener.language.clone(), ..Job::new(end.slice(from_ms, to_ms)) };
        let heard = self.listener.recogniser.recognise(job).await?;
        self.ear.heard(utterance, to_ms, heard);
        if let Some(judge) = self.listener.judge.as_ref().filter(|_| !early) {
            let complete = judge.complete(&end.slice(Turns::judged_from(from_ms, to_ms), to_ms));
            self.ear.judged(utterance, to_ms, complete);
        }
        Ok(())
    }

    /// What the engine would let pass is a turn; the rest was nothing.
    fn closed(&mut self, closed: Closed) {
        let Closed { utterance, heard, decision, .. } = closed;
        let words = words_of(&heard.text);
        let nothing = matches!(decision, Decision::None | Decision::Neither { .. });
        if words.is_empty() && nothing || decision == Decision::None && is_stock_closer(&words) {
            return;
        }
        let short = decision.loosens() && utterance.last_ms - utterance.began_ms < LOOSEN_SHORTEST_MS;
        let decision = match (short, self.moment.open) {
            (false, _) => decision,
            (true, Open::Nothing) => Decision::None,
            (true, _) => Decision::Neither { bare: false },
        };
        let at = |ms: u64| ms.saturating_sub(SILENCE_BEFORE_MS);
        self.turns.push(Turn { start_ms: at(utterance.began_ms), end_ms: at(utterance.last_ms), heard, decision });
    }
}

/// Every WAV under a folder with its path under it, sorted; a file stands for itself. Folders behind links are not entered.
///
/// # Errors
/// A sentence: which folder could not be read.
pub fn wavs_under(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    if folder.is_file() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![(name, folder.to_path_buf())]);
    }
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(here) = open.pop() {
        let entries = std::fs::read_dir(&here).map_err(|e| format!("{}: {e}", here.display()))?;
        for entry in entries {
            let entry = entry.map_err(|e| format!("{}: {e}", here.display()))?;
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if path.extension().is_some_and(|x| x.eq_ignore_ascii_case("wav")) && !path.is_dir() {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                found.push((name, path));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stt::Scripted;

    /// A hum with overtones, which the detector takes for a voice, and silence.
    fn sound(parts: &[(bool, u64)]) -> Vec<i16> {
        let tone = |n: u64| {
            let t = n as f32 / 16_000.0;
            let swell = 0.6 + 0.4 * (t * 23.0).sin();
            (1..12).map(|k| (t * 2.0 * std::f32::consts::PI * 130.0 * k as f32).sin() / k as f32).sum::<f32>() * swell * 5_000.0
        };
        let mut at = 0;
        let part = |&(voiced, ms): &(bool, u64)| {
            let from = at;
            at += ms * 16;
            (from..at).map(|n| if voiced { tone(n) as i16 } else { 0 }).collect::<Vec<_>>()
        };
        parts.iter().flat_map(part).collect()
    }

    async fn turns(texts: &[&str], parts: &[(bool, u64)], state: State) -> Vec<Turn> {
        let script = Scripted::new(texts.iter().copied());
        let listener = Listener { recogniser: &script, table: &[], ear: EarSettings::default(), language: "en".into(), judge: None, vad: VadMaker::default() };
        listener.turns(&sound(parts), 16_000, state).await.unwrap()
    }

    #[tokio::test]
    async fn a_turn_ends_after_the_silence_its_decision_waits_for() {
        // 400 ms of pause end a "no" to a question, and are an inner pause of ordinary speech.
        let parts = [(true, 600), (false, 400), (true, 600)];
        let answers = turns(&["No.", "What now?"], &parts, State::Question).await;
        assert_eq!(answers.iter().map(|t| t.decision.name()).collect::<Vec<_>>(), ["deny", "neither"]);
        assert!(answers[0].end_ms < 1_000 && answers[1].start_ms >= 960, "{answers:?}");
        let speech = turns(&["Tell me", "Tell me more."], &parts, State::Idle).await;
        assert_eq!(speech.iter().map(|t| t.heard.text.as_str()).collect::<Vec<_>>(), ["Tell me more."]);
    }

    #[tokio::test]
    async fn what_is_no_speech_is_no_turn() {
        assert_eq!(turns(&["", "Thank you."], &[(true, 600), (false, 900), (true, 600)], State::Idle).await, vec![]);
        assert_eq!(turns(&["Never heard."], &[(false, 2_000)], State::Question).await, vec![]);
        // A short sound never loosens.
        let short = turns(&["Exit plan mode."], &[(true, 260)], State::Idle).await;
        assert!(short.iter().all(|t| t.decision == Decision::None), "{short:?}");
    }

    #[test]
    fn files_are_found_in_order() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["c.WAV", "a.wav", "b/z.wav", "b/x.txt"] { std::fs::write(dir.path().join(name), b"").unwrap() }
        let names: Vec<_> = wavs_under(dir.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a.wav", "b/z.wav", "c.WAV"]);
        assert!(wavs_under(&dir.path().join("none")).is_err());
    }
}
