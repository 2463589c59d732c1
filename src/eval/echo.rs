//! The gateway beside its own loudspeaker: what it makes of its own voice, and of a person who speaks over it.
//!
//! Called by `voxgate eval echo` and the tests. Each trial is a whole conversation of the product's driver with the real ears
//! in a simulated room; nothing is judged here that the conversation's own events do not say.

use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::loudspeaker::{Acoustics, Beat as Rhythm, Simulation};
use super::person::{Line, Person, When};
use crate::agent::scripted::{Beat, Scripted};
use crate::engine::authority::OperatorDoor;
use crate::engine::conversation::AgentOutput;
use crate::engine::grammar::{Meaning, meaning_of};
use crate::engine::session::{Engine, EngineConfig};
use crate::media::frame::EAR_HZ;
use crate::media::level::rms_dbfs;
use crate::session::clock::unix_ms;
use crate::session::driver::Driver;
use crate::session::file::{FileRun, Pace};
use crate::session::handle::Handle;
use crate::session::parts::{NoJournal, Parts};
use crate::tools::{BuiltinContext, ToolRunner};

pub mod sentences;

/// Silence before the gateway is asked for its next sentence.
const BETWEEN_MS: u64 = 1_200;
/// It is asked again when nothing was heard for this long.
const ASK_AGAIN_MS: u64 = 6_000;
/// A trial is ended after this, whatever happens in it.
const LONGEST_MS: u64 = 1_200_000;

/// What a conversation is made with.
#[derive(Clone)]
pub struct Rig {
    /// Ears, voice and tools; the agent is the trial's own.
    pub parts: Parts,
    /// For the engine.
    pub engine: EngineConfig,
    /// Asks the gateway to go on, as somebody at the chat would.
    pub door: OperatorDoor,
    /// Where built-in tools may write.
    pub notes: PathBuf,
}

/// An event of a conversation.
#[derive(Clone, Debug)]
pub struct Told {
    /// Milliseconds of the conversation.
    pub at_ms: u64,
    /// Its type on the wire.
    pub kind: String,
    /// Its payload.
    pub payload: Value,
}

impl Told {
    fn text(&self, field: &str) -> &str { self.payload[field].as_str().unwrap_or_default() }
    fn number(&self, field: &str) -> u64 { self.payload[field].as_u64().unwrap_or_default() }
    /// The words of somebody at the microphone.
    fn is_spoken(&self) -> bool { self.kind == "transcript" && self.text("role") == "user" && self.text("surface") == "voice" }
    /// When a speech began to sound.
    fn began_ms(&self) -> u64 { self.at_ms.saturating_sub(self.number("heard_ms")) }
}

/// A conversation in a room: what is played at which acoustics, with whom.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The room.
    pub acoustics: Acoustics,
    /// The product's canceller stands between speaker and microphone; without it, as at a socket whose client brings none.
    pub canceller: bool,
    /// Plan mode is on.
    pub in_plan: bool,
    /// What the gateway says, one after the other.
    pub sentences: Vec<String>,
    /// What a person says over it.
    pub lines: Vec<Line>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Everything that happened.
    pub events: Vec<Told>,
    /// Speaker, in step with the microphone.
    pub played: Vec<i16>,
    /// Where the person's lines were.
    pub said: Vec<super::person::Said>,
}

/// Holds the conversation of a trial.
///
/// # Errors
/// What failed on the way.
pub async fn hold(rig: &Rig, trial: &Trial) -> Result<Outcome, String> {
    let steps = trial.sentences.iter().map(|text| vec![Beat::Out(AgentOutput::Text(text.clone()))]);
    let parts = Parts { agent: Arc::new(Scripted::new(steps)), ..rig.parts.clone() };
    let config = EngineConfig { start_in_plan: trial.in_plan, tools: parts.catalogue.specs().to_vec().into(), ..rig.engine.clone() };
    let engine = Engine::new(config, unix_ms());
    let (handle, commands) = Handle::channel("trial");
    let builtins = BuiltinContext { notes_dir: rig.notes.clone(), files_root: None };
    let runner = ToolRunner::new(parts.catalogue.clone(), engine.gate(), builtins).with_session("trial");
    let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sink = { let lines = lines.clone(); Box::new(move |line: &str| {
        if let Ok(value) = serde_json::from_str(line) { lines.lock().unwrap_or_else(PoisonError::into_inner).push(value) }
    }) };
    let driver = Driver::new("trial", engine, parts, runner, Box::new(NoJournal), commands, Arc::new(AtomicUsize::new(0))).with_sink(sink);
    let simulation = Simulation::new(&trial.acoustics, Person::new(trial.lines.clone()), LONGEST_MS);
    let mut simulation = simulation.with_prompter(prompter(handle, rig.door, trial.sentences.len()));
    if !trial.canceller { simulation = simulation.without_canceller() }
    driver.run_file(&mut simulation, FileRun { pace: Pace::Fast, stand_still: true }).await?;
    let values = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    let zero = values.first().and_then(|v| v["timestamp_ms"].as_u64()).unwrap_or(0);
    let events = values.into_iter().map(|v| Told { at_ms: v["timestamp_ms"].as_u64().unwrap_or(zero).saturating_sub(zero), kind: v["type"].as_str().unwrap_or_default().into(), payload: v["payload"].clone() }).collect();
    Ok(Outcome { events, played: simulation.played().to_vec(), said: simulation.person().said().to_vec() })
}

/// Asks for a sentence whenever both have been silent for a while.
fn prompter(handle: Handle, door: OperatorDoor, sentences: usize) -> super::loudspeaker::Prompter {
    let (mut asked, mut since) = (0, 0u64);
    Box::new(move |person| {
        since += 20;
        if person.quiet_ms() < BETWEEN_MS || since < BETWEEN_MS || asked > 0 && since < ASK_AGAIN_MS && person.quiet_ms() >= since {
            return Rhythm::GoOn;
        }
        if asked == sentences {
            return Rhythm::Done;
        }
        if handle.chat_soon(door, format!("Number {asked}.")) { asked += 1 }
        since = 0;
        Rhythm::GoOn
    })
}

/// What an echo did, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Sentences that were played, whole or not.
    pub sentences: usize,
    /// How long they sounded.
    pub playback_ms: u64,
    /// Utterances that became turns of the agent.
    pub turns: usize,
    /// Utterances that the gateway took for commands or answers, carried out or asked for again.
    pub decisions: usize,
    /// Of those, what approved, left, or asked whether to.
    pub loosened: usize,
    /// Speeches that were stopped before their end.
    pub cuts: usize,
}

impl Counted {
    /// Both together.
    pub fn and(self, other: Counted) -> Counted {
        Counted {
            sentences: self.sentences + other.sentences, playback_ms: self.playback_ms + other.playback_ms, turns: self.turns + other.turns,
            decisions: self.decisions + other.decisions, loosened: self.loosened + other.loosened, cuts: self.cuts + other.cuts,
        }
    }
}

/// Counts an outcome in which nobody but the gateway spoke.
pub fn count(outcome: &Outcome) -> Counted {
    let all = || outcome.events.iter();
    let speeches = || all().filter(|e| e.kind == "speech" && e.number("total_ms") > 0);
    let loosens = |e: &&Told| match e.kind.as_str() {
        "plan_mode" => e.payload["plan_mode"] == false,
        "approval_resolved" => e.text("status") == "approved",
        "question" => matches!(e.text("kind"), "leave" | "approve") && e.text("state") == "asked",
        _ => false,
    };
    Counted {
        sentences: speeches().count(),
        playback_ms: speeches().map(|e| e.number("heard_ms")).sum(),
        turns: all().filter(|e| e.is_spoken() && e.payload["for_agent"] == true).count(),
        decisions: all().filter(|e| e.is_spoken() && e.payload["for_agent"] == false).count(),
        loosened: all().filter(loosens).count(),
        cuts: speeches().filter(|e| e.number("heard_ms") < e.number("total_ms")).count(),
    }
}

/// What the microphone was taken to say, for a person who looks into a figure.
pub fn misheard(outcome: &Outcome) -> Vec<String> {
    outcome.events.iter().filter(|e| e.is_spoken()).map(|e| format!("{:.1} s: {:?}", e.at_ms as f64 / 1000.0, e.text("text"))).collect()
}

/// Whether each line of the person was heard: words of the same meaning were written before the next line, or the gateway took
/// them for a command (it also judges the sound itself, where the words are written wrong).
pub fn heard(outcome: &Outcome, meant: &[Meaning]) -> Vec<bool> {
    meant.iter().enumerate().map(|(n, meaning)| {
        let from = outcome.said.get(n).map_or(u64::MAX, |s| s.from_ms);
        let to = outcome.said.get(n + 1).map_or(u64::MAX, |s| s.from_ms);
        outcome.events.iter().filter(|e| e.is_spoken() && (from..to).contains(&e.at_ms)).any(|e| e.payload["for_agent"] == false || means(e.text("text"), meaning))
    }).collect()
}

/// Denials and "wait" do the same harmless thing, and so do the two ways of stopping.
fn means(text: &str, meant: &Meaning) -> bool {
    let class = |m: &Meaning| match m {
        Meaning::Deny | Meaning::Hold => 1,
        Meaning::Stop | Meaning::CancelTurn => 2,
        _ => 0,
    };
    meaning_of(text).is_some_and(|m| &m == meant || class(&m) > 0 && class(&m) == class(meant))
}

/// Times from the onset of a person's speech to playback that is at least 20 dB down, in milliseconds; `None` where it never
/// fell. The same conversation is held without the person, so that pauses of the voice are not taken for its end.
///
/// # Errors
/// As [`hold`].
pub async fn barge_in_times(rig: &Rig, acoustics: &Acoustics, answer: &str, lines: &[(u64, Vec<i16>)]) -> Result<Vec<Option<u64>>, String> {
    let alone = Trial { acoustics: *acoustics, canceller: true, in_plan: false, sentences: vec![answer.to_string()], lines: Vec::new() };
    let whole = hold(rig, &alone).await?;
    let mut times = Vec::new();
    for (into_ms, sound) in lines {
        let trial = Trial { lines: vec![Line { when: When::IntoSpeech(*into_ms), sound: sound.clone() }], ..alone.clone() };
        let outcome = hold(rig, &trial).await?;
        let loud = sound.iter().position(|s| s.unsigned_abs() > ONSET_LEVEL).unwrap_or(0) as u64 * 1000 / u64::from(EAR_HZ);
        times.push(outcome.said.first().and_then(|s| fallen_after(&whole.played, &outcome.played, s.from_ms + loud)));
    }
    Ok(times)
}

/// The first sample of a voice that counts as its onset: -36 dBFS.
const ONSET_LEVEL: u16 = 500;
/// Windows in which levels are compared.
const WINDOW_MS: u64 = 10;

fn fallen_after(whole: &[i16], played: &[i16], onset_ms: u64) -> Option<u64> {
    let n = (WINDOW_MS * u64::from(EAR_HZ) / 1000) as usize;
    let level = |sound: &[i16], window: usize| rms_dbfs(sound.get(window * n..(window + 1) * n).unwrap_or_default());
    // Only windows in which the voice would have sounded tell anything.
    let sounding: Vec<usize> = ((onset_ms / WINDOW_MS) as usize..whole.len() / n).filter(|w| level(whole, *w) > -45.0).collect();
    let down = |w: &usize| level(played, *w) <= level(whole, *w) - 20.0;
    let first = sounding.windows(3).find(|three| three.iter().all(down))?;
    Some((first[0] as u64 * WINDOW_MS).saturating_sub(onset_ms))
}

/// Speeches that began in a stretch of time: for tests.
pub fn speeches_between(outcome: &Outcome, from_ms: u64, to_ms: u64) -> usize {
    outcome.events.iter().filter(|e| e.kind == "speech" && (from_ms..to_ms).contains(&e.began_ms())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fall_is_found_where_the_voice_would_have_gone_on() {
        // A voice that pauses from 200 to 300 ms; it is cut at 350.
        let whole: Vec<i16> = (0..16_000).map(|i| if (3_200..4_800).contains(&i) { 0 } else { 5_000 }).collect();
        let mut cut = whole.clone();
        cut[5_600..].fill(0);
        assert_eq!(fallen_after(&whole, &cut, 150), Some(200));
        assert_eq!(fallen_after(&whole, &whole, 150), None);
    }

    #[test]
    fn alike_meanings_count() {
        assert!(means("No.", &Meaning::Hold) && means("Be quiet.", &Meaning::Stop) && !means("No.", &Meaning::Stop) && !means("the weather", &Meaning::Stop));
    }
}
