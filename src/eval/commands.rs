//! Runs the spoken cases through the product's own recogniser and judge, and keeps what was heard so that rules can be judged again.
//!
//! Called by `voxgate eval commands`. A trial is a case, a voice and a place; what its sound scored is kept by clip, model,
//! parameters and phrase table, what it decides is asked anew at each run.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cases::{ASKED, Case, DANGEROUS, Sort, cases};
use super::clips::{self, Place};
use super::beds::Dice;
use super::voices::{Clips, Engine, Side, VOICES, Voice};
use crate::engine::grammar::Scored;
use crate::engine::heard::{Heard, PhraseScore, begins_in_speech};
use crate::engine::intent::{Decision, Rules, decide_by};
use crate::listen::vad::VadMaker;
use crate::models::sha256_hex;
use crate::stt::{Job, Recogniser};

/// The silence after which the ear ends an utterance that might loosen.
const SILENCE_MS: u64 = 600;

/// One sentence of one voice in one place.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Who speaks.
    pub voice: Voice,
    /// What.
    pub case: Case,
    /// Where.
    pub place: Place,
    seed: u64,
}

impl Trial {
    fn key(&self) -> String {
        let text = format!("{}\n{}\n{}\n{}\n{:?}\n{}\n{}", self.voice.name, self.voice.key, self.case.text, self.case.rest, self.place, self.seed, clips::REVISION);
        sha256_hex(text.as_bytes())[..24].to_owned()
    }
}

fn seed_of(parts: &[&str]) -> u64 { parts.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)) }

/// Every trial of these voices, in an order that mixes all, so that a run that is broken off is a fair sample.
pub fn trials(voices: &[Voice], quick: bool) -> Vec<Trial> {
    let mut all = Vec::new();
    for (n, case) in cases(quick).into_iter().enumerate() {
        for (m, voice) in voices.iter().enumerate() {
            for place in places(case, voice, n + m, quick) {
                all.push(Trial { voice: *voice, case, place, seed: seed_of(&[voice.name, case.text, &place.name()]) });
            }
        }
    }
    all.sort_by_key(|t| Dice::new(t.seed).roll());
    all
}

/// Near misses are many sentences in one place each, denials a few more places; slow voices say half of the denials and a quarter of
/// the near misses.
fn places(case: Case, voice: &Voice, turn: usize, quick: bool) -> Vec<Place> {
    let (ten, five) = if turn % 2 == 0 { (Place::Babble(10), Place::Babble(5)) } else { (Place::Fan(10), Place::Fan(5)) };
    match case.sort {
        Sort::Clipped => vec![Place::Clean],
        Sort::Near if voice.engine == Engine::Kokoro && turn % 4 != 0 => Vec::new(),
        Sort::Denial if voice.engine == Engine::Kokoro && turn % 2 != 0 => Vec::new(),
        Sort::Near => vec![[Place::Clean, ten, Place::Room, Place::Clean][turn / 4 % 4]],
        _ if quick => vec![if turn % 2 == 0 { Place::Clean } else { Place::Babble(10) }],
        Sort::Denial => vec![Place::Clean, Place::Babble(10), Place::Fan(10), if turn % 4 < 2 { Place::Babble(5) } else { Place::Fan(5) }, Place::Room],
        _ => vec![Place::Clean, ten, five, Place::Room],
    }
}

/// What was heard of one cut of a trial. Rules that can be tried again on this are applied when it is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    text: String,
    free_ll: f32,
    tokens: u32,
    no_speech: f32,
    scores: Vec<(u16, f32)>,
    /// Level of each 20 ms, in dBFS.
    levels: Vec<i8>,
}

impl Kept {
    fn heard(&self) -> Heard {
        let levels: Vec<f32> = self.levels.iter().map(|l| f32::from(*l)).collect();
        let scores = self.scores.iter().map(|(id, ll)| PhraseScore { id: *id, ll: *ll }).collect();
        let mut heard = Heard { text: self.text.clone(), free_ll: self.free_ll, tokens: self.tokens, no_speech: self.no_speech, clipped: begins_in_speech(&levels), scores };
        if heard.is_guess() { heard.text.clear() }
        heard
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    cuts: Vec<Kept>,
}

/// What was heard of every trial so far, for one model with one table and one set of parameters.
pub struct Hearings {
    file: PathBuf,
    known: HashMap<String, Vec<Kept>>,
}

impl Hearings {
    /// Reads what is kept under `folder` for these parameters (everything that a score depends on, as text).
    pub fn open(folder: &Path, parameters: &str) -> Self {
        let file = folder.join(format!("heard-{}.jsonl", &sha256_hex(parameters.as_bytes())[..16]));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        // A line that was broken off in the middle is heard again.
        let known = text.lines().filter_map(|l| serde_json::from_str::<Line>(l).ok()).map(|l| (l.key, l.cuts)).collect();
        Self { file, known }
    }

    fn keep(&mut self, line: Line) -> Result<(), String> {
        let told = |e: std::io::Error| format!("{}: {e}", self.file.display());
        std::fs::create_dir_all(self.file.parent().unwrap_or(Path::new("."))).map_err(told)?;
        let mut out = std::fs::OpenOptions::new().create(true).append(true).open(&self.file).map_err(told)?;
        let text = serde_json::to_string(&line).map_err(|e| e.to_string())?;
        out.write_all(format!("{text}\n").as_bytes()).map_err(told)?;
        self.known.insert(line.key, line.cuts);
        Ok(())
    }

    /// How many of these are known.
    pub fn known(&self, trials: &[Trial]) -> usize { trials.iter().filter(|t| self.known.contains_key(&t.key())).count() }

    /// Hears what is not known yet; `told` gets the number done and the number of all.
    ///
    /// # Errors
    /// A sentence: a voice or the recogniser failed.
    pub async fn hear(&mut self, trials: &[Trial], clips: &Clips, vad: &VadMaker, recogniser: &dyn Recogniser, mut told: impl FnMut(usize, usize)) -> Result<(), String> {
        let missing: Vec<&Trial> = trials.iter().filter(|t| !self.known.contains_key(&t.key())).collect();
        if missing.is_empty() { return Ok(()) }
        let others = bystanders(clips)?;
        for (n, trial) in missing.iter().enumerate() {
            told(n, missing.len());
            let mut cuts = Vec::new();
            for sound in sounds(trial, clips, vad, &others)? {
                let levels = sound.chunks_exact(320).map(|f| crate::media::level::rms_dbfs(f).max(-100.0) as i8).collect();
                let heard = recogniser.recognise(Job::new(sound)).await.map_err(|e| e.to_string())?;
                let scores = heard.scores.iter().map(|s| (s.id, s.ll)).collect();
                cuts.push(Kept { text: heard.text, free_ll: heard.free_ll, tokens: heard.tokens, no_speech: heard.no_speech, scores, levels });
            }
            self.keep(Line { key: trial.key(), cuts })?;
        }
        Ok(())
    }

    /// What each trial decides; trials that were not heard are left out.
    pub fn judge(&self, trials: &[Trial], table: &[Scored], rules: &Rules) -> Vec<Verdict> {
        let of = |trial: &Trial| {
            let heard: Vec<Heard> = self.known.get(&trial.key())?.iter().map(Kept::heard).collect();
            Some(Verdict::of(*trial, &heard, table, rules))
        };
        trials.iter().filter_map(of).collect()
    }
}

/// What the ear hands on of a trial.
fn sounds(trial: &Trial, clips: &Clips, vad: &VadMaker, others: &[f32]) -> Result<Vec<Vec<i16>>, String> {
    let clip = clips.say(&trial.voice, trial.case.text)?;
    let sound = clips::staged(&clip, trial.place, others, trial.seed);
    if trial.case.rest.is_empty() { return Ok(clips::cut(&sound, SILENCE_MS, &mut *vad.make())) }
    let rest = clips.say(&trial.voice, trial.case.rest)?.len();
    Ok(vec![clips::clipped(&sound, clip.len(), rest)])
}

/// Speech of people who talk about something else, for babble.
fn bystanders(clips: &Clips) -> Result<Vec<f32>, String> {
    const TALK: &[&str] = &[
        "The train to the city leaves at ten in the morning, and we should buy the tickets before that.", "I met her at the market, she had a basket full of apples and bread.",
        "The weather was fine all week, so the children played outside until dinner.", "My brother works in a small office near the river, where he repairs old radios.",
    ];
    let mut all = Vec::new();
    for (voice, text) in VOICES.iter().filter(|v| v.engine == Engine::Flite || v.is_quick()).zip(TALK.iter().cycle()) {
        let clip = clips.say(voice, text)?;
        let sound: Vec<f32> = clip.iter().map(|s| f32::from(*s) / 32_768.0).collect();
        let gain = 0.1 / super::beds::active_rms(&sound).max(1e-6);
        all.extend(sound.iter().map(|s| s * gain));
    }
    Ok(all)
}

/// Every clip that these trials need of slow voices, each once.
pub fn clips_of(trials: &[Trial]) -> Vec<(Voice, String)> {
    let mut all: Vec<(Voice, String)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for t in trials {
        for text in [t.case.text, t.case.rest] {
            if !text.is_empty() && seen.insert((t.voice.name, text)) { all.push((t.voice, text.to_owned())) }
        }
    }
    all
}

/// What one trial came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Which.
    pub trial: Trial,
    /// What was decided in the moment it was meant for, a name an utterance.
    pub decided: Vec<&'static str>,
    /// One of the right decisions was made.
    pub right: bool,
    /// Something loosened, approved or asked to, in a moment in which nothing may.
    pub loosened: bool,
    /// It was taken for consent to an open question.
    pub consented: bool,
    /// Some words were understood.
    pub understood: bool,
    /// What was written.
    pub text: String,
    /// Best phrases with their scores, for a person who looks for the reason.
    pub why: String,
}

impl Verdict {
    fn of(trial: Trial, heard: &[Heard], table: &[Scored], rules: &Rules) -> Self {
        let in_moment = |m| heard.iter().map(move |h| decide_by(rules, h, table, m)).collect::<Vec<Decision>>();
        let decided: Vec<&str> = in_moment(&trial.case.moment).iter().map(Decision::name).collect();
        let strict = matches!(trial.case.sort, Sort::Denial | Sort::Near | Sort::Clipped);
        let loosened = strict && DANGEROUS.iter().any(|m| in_moment(m).iter().any(Decision::loosens));
        let consented = strict && ASKED.iter().any(|m| in_moment(m).contains(&Decision::Approve));
        let best = |h: &Heard| {
            let rows = h.scores.iter().take(5).filter_map(|s| Some(format!("{} {:.1}", table.get(s.id as usize)?.phrase.spellings[0], s.ll)));
            format!("free {:.1} of {} tokens, no speech {:.2}: {}", h.free_ll, h.tokens, h.no_speech, rows.collect::<Vec<_>>().join(", "))
        };
        Self {
            right: decided.iter().any(|d| trial.case.right.contains(d)), decided, loosened, consented, understood: heard.iter().any(|h| !h.text.is_empty()),
            text: heard.iter().map(|h| h.text.as_str()).collect::<Vec<_>>().join(" | "), why: heard.iter().map(best).collect::<Vec<_>>().join(" | "), trial,
        }
    }

    /// Of this half.
    pub fn is_of(&self, side: Side) -> bool { self.trial.voice.side == side }
}
