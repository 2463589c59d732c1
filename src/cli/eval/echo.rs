//! `voxgate eval echo`: what the gateway makes of its own voice from a loudspeaker, and of a person who speaks over it.
//!
//! Holds conversations in simulated rooms, counts what came of them, prints and publishes. Reads no microphone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::setup::{Place, Trouble};
use crate::engine::authority::{OperatorDoor, Surface};
use crate::engine::grammar::{Meaning, meaning_of};
use crate::engine::session::EngineConfig;
use crate::eval::echo::{Counted, Outcome, Rig, Trial, barge_in_times, count, heard, hold, misheard, sentences};
use crate::eval::figures::{Figure, Row, machine, publish, upper_bound};
use crate::eval::kept_voice::{KeptVoice, at_level, spoken};
use crate::eval::loudspeaker::Acoustics;
use crate::eval::person::{Line, When};
use crate::eval::room::Random;
use crate::eval::voices::{Clips, Voice as PersonVoice, cache_dir, choose};
use crate::session::parts::Parts;
use crate::tts::{self, Voice, VoiceSettings};

/// Sentences of one conversation.
const A_TRIAL: usize = 18;
/// Levels of the echo at the microphone, in dB relative to what is played.
const LEVELS_DB: [f32; 3] = [-6.0, -12.0, -20.0];
const DELAYS_MS: [u64; 4] = [80, 150, 250, 400];
const RT60_MS: [u32; 3] = [200, 400, 600];
/// Level of a person at the microphone: the loud parts of speech, as of somebody at an arm's length.
const PERSON_DBFS: f32 = -24.0;

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub struct EchoArgs {
    /// Only some of it: echo, socket, person, barge-in
    #[arg(long, value_name = "PART")]
    pub only: Option<String>,
    /// At most so many sentences or commands of each part (for a first look; nothing is published then)
    #[arg(long, value_name = "N")]
    pub quick: Option<usize>,
    /// Where sounds are kept between runs
    #[arg(long, value_name = "FOLDER", default_value = "target/eval-voices")]
    pub kept: PathBuf,
    /// The project's folder, for docs/figures
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub project: PathBuf,
}

impl EchoArgs {
    fn wants(&self, part: &str) -> bool { self.only.as_deref().is_none_or(|only| only == part) }
    fn most(&self, n: usize) -> usize { self.quick.unwrap_or(n).min(n) }
    fn publish(&self, figure: &Figure) -> Result<(), Trouble> {
        for row in &figure.rows { outln!("{:<60} {:<32} {}", row.what, row.value, row.aim) }
        if self.quick.is_some() { return Ok(()) }
        publish(&self.project, figure).map_err(Trouble::failed)
    }
}

/// Measures.
///
/// # Errors
/// [`Trouble`] when ears or a voice are missing, or a figure cannot be written.
pub async fn run(place: &Place, args: &EchoArgs) -> Result<ExitCode, Trouble> {
    let parts = place.parts().await?;
    let door = OperatorDoor::vouch(Surface::Chat).ok_or_else(|| Trouble::failed("there is no chat door"))?;
    let voice: Arc<dyn Voice> = Arc::new(KeptVoice::new(parts.voice.clone(), &args.kept));
    let notes = args.kept.join("notes");
    let rig = Rig { parts: Parts { voice, ..parts }, engine: EngineConfig { ear: place.ear_settings(), ..EngineConfig::default() }, door, notes };
    if args.wants("echo") { own_voice(place, &rig, args).await? }
    if args.wants("socket") { at_a_socket(&rig, args).await? }
    if args.wants("person") { person_over_it(place, &rig, args).await? }
    if args.wants("barge-in") { barge_in(place, &rig, args).await? }
    Ok(ExitCode::SUCCESS)
}

fn program_voice(kind: &str, voice: &str, kept: &Path) -> Result<Arc<dyn Voice>, Trouble> {
    let settings = VoiceSettings { voice: voice.into(), speed: 1.0, ..VoiceSettings::default() };
    Ok(Arc::new(KeptVoice::new(tts::open(kind, &settings).map_err(Trouble::failed)?, kept)))
}

/// The room of a trial: all levels, delays and lengths of reverberation come in turn, some with a little noise.
fn acoustics(n: usize) -> Acoustics {
    Acoustics {
        echo_db: Some(LEVELS_DB[n % 3]), delay_ms: DELAYS_MS[n / 3 % 4], rt60_ms: RT60_MS[n / 12 % 3], room: n as u64,
        noise_dbfs: (n % 2 == 1).then_some(-58.0),
    }
}

/// Every sentence, in trials.
fn trials(most: usize, canceller: bool) -> Vec<Trial> {
    let prompts = sentences::PROMPTS.iter().map(|p| (*p).to_string());
    let mut all: Vec<String> = prompts.chain(sentences::with_commands(500)).collect();
    // Prompts and sentences mixed, so that each trial has some of both, and the same each time.
    let mut random = Random::new(11);
    for n in (1..all.len()).rev() { all.swap(n, random.below(n + 1)) }
    all.truncate(most);
    let trial = |(n, part): (usize, &[String])| Trial { acoustics: acoustics(n), canceller, in_plan: n % 2 == 0, sentences: part.to_vec(), lines: Vec::new() };
    all.chunks(A_TRIAL).enumerate().map(trial).collect()
}

/// A conversation, held again where the machine was too busy for the recogniser.
async fn held(rig: &Rig, trial: &Trial) -> Result<Outcome, Trouble> {
    for _ in 0..2 {
        match hold(rig, trial).await {
            Ok(outcome) => return Ok(outcome),
            Err(why) => eprintln!("held again: {why}"),
        }
    }
    hold(rig, trial).await.map_err(Trouble::failed)
}

async fn counted(rig: &Rig, trials: &[Trial], label: &str) -> Result<Vec<(f32, Counted)>, Trouble> {
    let mut all = Vec::new();
    for (n, trial) in trials.iter().enumerate() {
        let outcome = held(rig, trial).await?;
        let counted = count(&outcome);
        eprintln!("{label} {}/{} {:?}: {counted:?}", n + 1, trials.len(), trial.acoustics);
        misheard(&outcome).iter().for_each(|line| eprintln!("    {line}"));
        all.push((trial.acoustics.echo_db.unwrap_or(0.0), counted));
    }
    Ok(all)
}

fn sum(all: &[(f32, Counted)], level: Option<f32>) -> Counted {
    all.iter().filter(|(db, _)| level.is_none_or(|l| l == *db)).fold(Counted::default(), |sum, (_, c)| sum.and(*c))
}

async fn own_voice(place: &Place, rig: &Rig, args: &EchoArgs) -> Result<(), Trouble> {
    let all_trials = trials(args.most(usize::MAX), true);
    let mut all = counted(rig, &all_trials, "default voice").await?;
    let other = Rig { parts: Parts { voice: program_voice("flite", "slt", &args.kept)?, ..rig.parts.clone() }, ..rig.clone() };
    all.extend(counted(&other, &all_trials, "flite slt").await?);
    let whole = sum(&all, None);
    let bound = |n: usize| format!("{n} of {} (at most {:.2} %)", whole.sentences, 100.0 * upper_bound(n, whole.sentences));
    let mut rows = vec![
        Row::told("decisions from our own voice", bound(whole.decisions)).aim("0", whole.decisions == 0).number("count", whole.decisions as f64).number("of", whole.sentences as f64),
        Row::told("of them approving, leaving, or asking whether to", whole.loosened.to_string()).aim("0", whole.loosened == 0).number("count", whole.loosened as f64),
        Row::told("turns from our own voice", bound(whole.turns)).aim("0 in 1,000", whole.turns == 0).number("count", whole.turns as f64).number("of", whole.sentences as f64),
    ];
    for level in LEVELS_DB {
        let c = sum(&all, Some(level));
        rows.push(Row::told(format!("echo at {level} dB: decisions, turns"), format!("{}, {} of {}", c.decisions, c.turns, c.sentences)).number("decisions", c.decisions as f64).number("turns", c.turns as f64).number("of", c.sentences as f64));
    }
    args.publish(&Figure {
        name: "echo".into(), title: "Echo of our own voice".into(), command: "voxgate eval echo".into(), machine: machine(&place.config.stt.model),
        method: "Own prompts and 500 sentences that contain commands, in two voices, from a simulated loudspeaker through rooms (RT60 200 to 600 ms, 80 to 400 ms of delay, half of them with noise at -58 dBFS) back into the microphone, the echo canceller between; each conversation begins with a canceller that has learnt nothing; half of them in plan mode.".into(),
        rows, notes: vec!["Simulated rooms and one kind of loudspeaker (soft clipping), at one level of output; a real loudspeaker that rattles leaves more.".into()],
    })?;
    let mut rows = Vec::new();
    for level in LEVELS_DB {
        let c = sum(&all, Some(level));
        let hours = c.playback_ms as f64 / 3_600_000.0;
        rows.push(Row::told(format!("speech cut by its own echo at {level} dB, an hour of playback"), format!("{:.1} ({} in {:.2} h)", c.cuts as f64 / hours.max(1e-9), c.cuts, hours)).aim("0", c.cuts == 0).number("cuts", c.cuts as f64).number("hours", hours));
    }
    args.publish(&Figure {
        name: "self-interruptions".into(), title: "Self-interruptions".into(), command: "voxgate eval echo".into(), machine: machine(&place.config.stt.model),
        method: "The same conversations: speeches that ended before their end although nobody spoke. Hours are those in which the voice sounded.".into(),
        rows, notes: vec![],
    })
}

/// A client that brings no canceller: nothing may loosen; what becomes a turn is told.
async fn at_a_socket(rig: &Rig, args: &EchoArgs) -> Result<(), Trouble> {
    let some: Vec<Trial> = trials(args.most(180), false);
    let all = counted(rig, &some, "without a canceller").await?;
    let c = sum(&all, None);
    outln!("without a canceller: {c:?}");
    Ok(())
}

/// What a person says over the voice.
const COMMANDS: &[&str] = &["Stop.", "Wait.", "No.", "Enter plan mode.", "What mode are you in?", "Cancel that.", "Be quiet.", "Read me the plan.", "Hold on.", "What can I say?"];
/// What is said while they say it: long enough to be spoken over, and half of it with their words in it.
const LONG: &[&str] = &[
    "The library opens at nine in the morning, and on Saturdays it closes at noon, so it is best to come early and bring something to read.",
    "You can say enter plan mode, read me the plan, or what mode are you in. Stop ends what I am saying, and say that again repeats it.",
    "There was a time when every letter took three weeks to arrive, and nobody thought that this was slow, because nobody knew anything else.",
    "A question is still open. If you want that, say yes, go ahead; otherwise say no, or wait, or cancel that, and I leave everything as it is.",
];

/// Who says them: old voices, which are harder to hear than people, and two that are nearer to them.
const PERSONS: &[&str] = &["flite-slt", "flite-rms", "espeak-us", "kokoro-heart", "kokoro-michael"];

/// Heard, of all: lines over the first sentence of a conversation, when the canceller has learnt nothing, apart.
#[derive(Clone, Copy, Default)]
struct Heard {
    first: (usize, usize),
    later: (usize, usize),
}

impl Heard {
    fn add(&mut self, each: &[bool]) {
        for (n, heard) in each.iter().enumerate() {
            let part = if n == 0 { &mut self.first } else { &mut self.later };
            *part = (part.0 + usize::from(*heard), part.1 + 1);
        }
    }
}

async fn person_over_it(place: &Place, rig: &Rig, args: &EchoArgs) -> Result<(), Trouble> {
    let commands = &COMMANDS[..args.most(COMMANDS.len())];
    let persons = choose(&PERSONS.iter().map(|p| (*p).to_string()).collect::<Vec<_>>()).map_err(Trouble::wrong)?;
    let clips = Clips::new(&cache_dir().map_err(Trouble::failed)?, &place.models);
    let wanted: Vec<_> = persons.iter().flat_map(|v| commands.iter().map(|c| (*v, (*c).to_string()))).collect();
    clips.bring(&wanted).map_err(Trouble::failed)?;
    let conditions = std::iter::once(("headset".to_string(), vec![Acoustics::headset()])).chain(LEVELS_DB.iter().map(|level| {
        (format!("echo at {level} dB"), [(80, 200), (200, 400), (400, 300)].iter().map(|(delay_ms, rt60_ms)| Acoustics { echo_db: Some(*level), delay_ms: *delay_ms, rt60_ms: *rt60_ms, room: *delay_ms, noise_dbfs: None }).collect())
    }));
    let (mut rows, mut turn) = (Vec::new(), 0);
    for (label, rooms) in conditions {
        let mut found = Heard::default();
        for room in &rooms {
            for voice in &persons {
                // Each conversation begins with another command.
                let mut said = commands.to_vec();
                said.rotate_left(turn % commands.len());
                turn += 1;
                let (outcome, each) = said_over(rig, &clips, voice, &said, room).await?;
                let missed: Vec<&str> = each.iter().zip(&said).filter(|(h, _)| !**h).map(|(_, c)| *c).collect();
                eprintln!("{label} {} {room:?}: first {}, missed {missed:?} of {}; heard {:?}", voice.name, said[0], outcome.said.len(), misheard(&outcome));
                found.add(&each);
            }
        }
        let (hits, of) = (found.first.0 + found.later.0, found.first.1 + found.later.1);
        let row = Row::share(format!("a person's command over the voice, {label}: heard"), hits, of);
        rows.push(if label.contains("-12") { row.aim("9 of 10", hits * 10 >= of * 9) } else { row });
        rows.push(Row::share(format!("{label}: over the first sentence of a conversation"), found.first.0, found.first.1));
    }
    args.publish(&Figure {
        name: "over-speech".into(), title: "A person over our own voice".into(), command: "voxgate eval echo".into(), machine: machine(&place.config.stt.model),
        method: format!("{} commands in {} voices of three engines, at {PERSON_DBFS} dBFS, begun 0.7 to 2.2 s into what the default voice says; heard: words of the same meaning were written before the next, or they were taken for a command.", commands.len(), persons.len()),
        rows, notes: vec![
            "Three of the five voices are old and harder to hear than people; the line for a headset says how they are heard without any echo.".into(),
            "Each conversation begins with a canceller that has learnt nothing of the room; it takes the first seconds of what is played to learn.".into(),
        ],
    })
}

/// The conversation in which a voice says these commands over what the gateway says.
async fn said_over(rig: &Rig, clips: &Clips, voice: &PersonVoice, said: &[&str], room: &Acoustics) -> Result<(Outcome, Vec<bool>), Trouble> {
    let meant: Vec<Meaning> = said.iter().filter_map(|c| meaning_of(c)).collect();
    let mut lines = Vec::new();
    for (n, command) in said.iter().enumerate() {
        let sound = at_level(&clips.say(voice, command).map_err(Trouble::failed)?, PERSON_DBFS);
        lines.push(Line { when: When::IntoSpeech(700 + 370 * (n as u64 % 5)), sound });
    }
    let sentences = (0..said.len() * 2).map(|n| LONG[n % LONG.len()].to_string()).collect();
    let trial = Trial { acoustics: *room, canceller: room.echo_db.is_some(), in_plan: false, sentences, lines };
    let outcome = held(rig, &trial).await?;
    let each = heard(&outcome, &meant);
    Ok((outcome, each))
}

async fn barge_in(place: &Place, rig: &Rig, args: &EchoArgs) -> Result<(), Trouble> {
    let n = args.most(20);
    let mut random = Random::new(5);
    let words = ["Wait a moment please.", "Stop talking now.", "No, that is wrong.", "Hold on a second."];
    let mut rows = Vec::new();
    for (label, room) in [("headset", Acoustics::headset()), ("echo at -20 dB", Acoustics { echo_db: Some(-20.0), ..Acoustics::default() })] {
        let mut lines = Vec::new();
        for i in 0..n {
            let voice = program_voice(["flite", "espeak"][i % 2], ["slt", "en-us"][i % 2], &args.kept)?;
            let sound = spoken(&*voice, words[i % words.len()], PERSON_DBFS).await.map_err(Trouble::failed)?;
            lines.push((random.between(600.0, 5_000.0) as u64 / 20 * 20, sound));
        }
        let times = barge_in_times(rig, &room, LONG[0], &lines).await.map_err(Trouble::failed)?;
        let mut found: Vec<u64> = times.iter().flatten().copied().collect();
        found.sort_unstable();
        let at = |share: f64| found.get(((found.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied().unwrap_or(u64::MAX);
        let (half, most) = (at(0.5), at(0.95));
        eprintln!("barge-in {label}: {times:?}");
        let missed = times.len() - found.len();
        rows.push(Row::told(format!("{label}: median"), format!("{half} ms")).aim("120 ms", half <= 120).number("ms", half as f64));
        rows.push(Row::told(format!("{label}: 95 of 100"), format!("{most} ms; {missed} of {} never", times.len())).aim("200 ms", most <= 200 && missed == 0).number("ms", most as f64).number("missed", missed as f64));
    }
    args.publish(&Figure {
        name: "barge-in".into(), title: "Barge-in".into(), command: "voxgate eval echo --only barge-in".into(), machine: machine(&place.config.stt.model),
        method: "From the first sample of a person's voice (-36 dBFS) at the microphone to the speaker's output at least 20 dB under what it would have been, in windows of 10 ms, on the sample clock; begun at random times in a long answer.".into(),
        rows, notes: vec!["The sound card's own buffers come on top: 80 ms of fill and its period.".into()],
    })
}
