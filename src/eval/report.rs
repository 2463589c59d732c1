//! Verdicts as lines a person reads, and as the published figures.
//!
//! Called by `voxgate eval commands`. Counts; decides nothing.

use super::cases::Sort;
use super::clips::Place;
use super::commands::Verdict;
use super::figures::{Figure, Row, upper_bound};
use super::voices::Side;

/// Sorts whose decision must be the right one.
const WANTED: &[Sort] = &[Sort::Tightening, Sort::Loosening, Sort::Consent, Sort::Denial];

fn group(place: Place) -> &'static str {
    match place { Place::Clean => "clean", Place::Babble(10) | Place::Fan(10) => "10 dB", Place::Babble(_) | Place::Fan(_) => "5 dB", Place::Room => "room" }
}

/// The whole as a table for the screen.
pub fn lines(all: &[Verdict]) -> Vec<String> {
    let mut lines = Vec::new();
    for side in [Side::Tune, Side::Judge] {
        lines.push(format!("{side:?}"));
        for sort in WANTED {
            for neural in [true, false] {
                let of: Vec<&Verdict> = all.iter().filter(|v| v.is_of(side) && v.trial.case.sort == *sort && v.trial.voice.is_neural() == neural).collect();
                let cell = |name: &str| {
                    let these: Vec<_> = of.iter().filter(|v| group(v.trial.place) == name).collect();
                    let missed = these.iter().filter(|v| !v.right).count();
                    format!("{name} {missed}/{} {:.1} %", these.len(), 100.0 * missed as f32 / these.len().max(1) as f32)
                };
                lines.push(format!("  {sort:?} {} missed: {}", if neural { "neural" } else { "old" }, ["clean", "10 dB", "5 dB", "room"].map(cell).join("; ")));
            }
        }
        for sort in [Sort::Denial, Sort::Near, Sort::Clipped] {
            let of: Vec<&Verdict> = all.iter().filter(|v| v.is_of(side) && v.trial.case.sort == sort).collect();
            let (loosened, consented) = (of.iter().filter(|v| v.loosened).count(), of.iter().filter(|v| v.consented).count());
            lines.push(format!("  {sort:?}: {} trials, {loosened} loosened, {consented} taken for consent", of.len()));
        }
        let of: Vec<&Verdict> = all.iter().filter(|v| v.is_of(side) && v.trial.case.sort == Sort::Consent).collect();
        let denied = of.iter().filter(|v| v.decided.contains(&"deny")).count();
        lines.push(format!("  Consent: {} trials, {denied} taken for a denial", of.len()));
    }
    lines
}

/// Every trial that went wrong, a line each.
pub fn wrong(all: &[Verdict]) -> Vec<String> {
    let bad = |v: &&Verdict| v.loosened || WANTED.contains(&v.trial.case.sort) && !v.right;
    let line = |v: &Verdict| {
        let t = &v.trial;
        format!("{:?}\t{:?}\t{}\t{}\t{}\t{}\t{:?}\t{:?}\t{}", t.voice.side, t.case.sort, if v.loosened { "LOOSENED" } else { "missed" }, t.voice.name, t.place.name(), t.case.text, v.decided, v.text, v.why)
    };
    all.iter().filter(bad).map(line).collect()
}

const COMMAND: &str = "voxgate eval commands --publish .";
const GROUPS: [&str; 4] = ["clean", "10 dB", "5 dB", "room"];
const METHOD: &str = "Synthetic voices of six engines say each sentence at -30 to -18 dBFS; the sound is cut by the product's detector, heard by its recogniser and judged by its rules. Noise is babble with keyboards or a fan, the room has 0.5 s of reverberation and noise at 20 dB. Rules were fitted on one half of the voices (tune) and are judged on the other (judge).";

const OLD_VOICES: &str = "What is missed in noise are mainly the old voices of formants and diphones (eSpeak, Flite); the neural ones are shown beside them. Tried on the tuning half: a lead of 1 nat \
    instead of 2 for what tightens (taken), a lower floor and a longer reach for what loosens (1 or 2 of 46 more were heard, with less between them and their rivals: not taken).";
const TWO_WORDS: &str = "With the rules before these, \"Go ahead.\" was taken for consent in two of 3,426 trials whose fronts (\"Don't\", \"If it is safe\") lay under babble, one in each half. Two words \
    need a clear sound since then; for this sentence the judging half is not independent any more.";
const FRONTS: &str = "Where a front is cut off whole before a consonant that begins in silence (\"Don't | confirm plan two\", eSpeak), what is left is the sentence itself, clear and complete: no sound tells \
    the two apart. It counts only under a question about that very version, which was heard to its end.";

/// The four figures. `trials`: how many there would be.
pub fn figures(all: &[Verdict], trials: usize, machine: &str) -> Vec<Figure> {
    let mut notes = vec!["Synthetic voices are no people: accents, children, illness and far rooms are not in these numbers.".to_owned()];
    if all.len() < trials { notes.push(format!("{} of {trials} trials had been heard when this was written, in an order that mixes all of them.", all.len())) }
    let figure = |name: &str, title: &str, rows, more: &str, note: &str| Figure {
        name: name.into(), title: title.into(), command: COMMAND.into(), machine: machine.into(), method: format!("{METHOD}{more}"), rows,
        notes: notes.iter().cloned().chain([note.to_owned()]).collect(),
    };
    vec![
        figure("commands", "Missed commands", commands(all), "", OLD_VOICES),
        figure("denials", "Denials heard as consent", denials(all), " 36 forms, each judged as an answer to a tool's question, to the question about leaving and to that about a plan.", TWO_WORDS),
        figure("consents", "Consents heard as a denial or as neither", consents(all), "", OLD_VOICES),
        figure("near-misses", "Near misses", near(all), " Negations, quotes, questions, unfinished and broken off sentences, each judged in five moments: nothing open, a plan waits, each question open.", FRONTS),
    ]
}

fn row(what: String, of: &[&Verdict], bad: impl Fn(&Verdict) -> bool) -> Row { Row::share(what, of.iter().filter(|v| bad(v)).count(), of.len()) }

fn of(all: &[Verdict], which: impl Fn(&Verdict) -> bool) -> Vec<&Verdict> { all.iter().filter(|v| which(v)).collect() }

/// Percents that may be missed in a group.
fn allowed(group: &str) -> Option<f64> { match group { "clean" => Some(5.0), "10 dB" => Some(10.0), _ => None } }

fn aimed(row: Row, percent: Option<f64>) -> Row {
    let share = 100.0 * row.numbers["count"] / row.numbers["of"].max(1.0);
    match percent { Some(most) => row.aim(format!("under {most} %"), share < most), None => row }
}

fn commands(all: &[Verdict]) -> Vec<Row> {
    let command = |v: &Verdict| matches!(v.trial.case.sort, Sort::Tightening | Sort::Loosening) || v.trial.case.sort == Sort::Consent && v.trial.case.text.starts_with("Confirm");
    let mut rows = Vec::new();
    for side in [Side::Judge, Side::Tune] {
        for name in GROUPS {
            let here = |v: &Verdict| command(v) && v.is_of(side) && group(v.trial.place) == name;
            let told = row(format!("{side:?}, {name}: all"), &of(all, here), |v| !v.right);
            rows.push(if side == Side::Judge { aimed(told, allowed(name)) } else { told });
            rows.push(row(format!("{side:?}, {name}: neural voices"), &of(all, |v| here(v) && v.trial.voice.is_neural()), |v| !v.right));
            rows.push(row(format!("{side:?}, {name}: old voices"), &of(all, |v| here(v) && !v.trial.voice.is_neural()), |v| !v.right));
        }
    }
    rows.push(row("Judge, 5 dB: missed and taken for other words, not for nothing".into(), &of(all, |v| command(v) && v.is_of(Side::Judge) && group(v.trial.place) == "5 dB"), |v| !v.right && v.understood));
    for sort in [Sort::Tightening, Sort::Loosening] {
        for name in GROUPS {
            rows.push(row(format!("Judge, {name}: {}", if sort == Sort::Tightening { "tightening" } else { "loosening" }), &of(all, |v| v.is_of(Side::Judge) && v.trial.case.sort == sort && group(v.trial.place) == name), |v| !v.right));
        }
    }
    let mut texts: Vec<&str> = of(all, command).iter().map(|v| v.trial.case.text).collect();
    texts.sort_unstable();
    texts.dedup();
    rows.extend(texts.into_iter().map(|text| row(format!("Judge, \"{text}\", clean and 10 dB"), &of(all, |v| v.is_of(Side::Judge) && v.trial.case.text == text && allowed(group(v.trial.place)).is_some()), |v| !v.right)));
    let mut engines: Vec<String> = all.iter().map(|v| format!("{:?}", v.trial.voice.engine)).collect();
    engines.sort();
    engines.dedup();
    rows.extend(engines.into_iter().map(|e| row(format!("{e}, clean and 10 dB, both halves"), &of(all, |v| command(v) && format!("{:?}", v.trial.voice.engine) == e && allowed(group(v.trial.place)).is_some()), |v| !v.right)));
    rows
}

/// Count with its bound.
fn none_of(what: String, of: &[&Verdict], bad: impl Fn(&Verdict) -> bool) -> Row {
    let count = of.iter().filter(|v| bad(v)).count();
    let bound = 100.0 * upper_bound(count, of.len());
    let mut row = Row::share(what, count, of.len()).number("bound_percent", bound).aim("0", count == 0);
    row.value = format!("{count} of {}, under {bound:.2} % at 95 %", of.len());
    row
}

fn denials(all: &[Verdict]) -> Vec<Row> {
    let said = of(all, |v| v.trial.case.sort == Sort::Denial);
    let half = |side| said.iter().copied().filter(|v| v.is_of(side)).collect::<Vec<_>>();
    let mut rows = vec![
        none_of("all: heard as consent".into(), &said, |v| v.consented), none_of("Judge: heard as consent".into(), &half(Side::Judge), |v| v.consented),
        none_of("all: loosened anything".into(), &said, |v| v.loosened),
    ];
    for side in [Side::Judge, Side::Tune] {
        rows.extend(GROUPS.iter().map(|name| row(format!("{side:?}, {name}: not heard as a denial"), &of(all, |v| v.trial.case.sort == Sort::Denial && v.is_of(side) && group(v.trial.place) == *name), |v| !v.right)));
    }
    rows
}

fn consents(all: &[Verdict]) -> Vec<Row> {
    let mut rows = Vec::new();
    for side in [Side::Judge, Side::Tune] {
        for name in GROUPS {
            let these = of(all, |v| v.trial.case.sort == Sort::Consent && v.is_of(side) && group(v.trial.place) == name);
            let told = row(format!("{side:?}, {name}: denial or neither"), &these, |v| !v.right);
            rows.push(if side == Side::Judge { aimed(told, allowed(name).filter(|most| *most == 5.0)) } else { told });
        }
        rows.push(row(format!("{side:?}, everywhere: heard as a denial"), &of(all, |v| v.trial.case.sort == Sort::Consent && v.is_of(side)), |v| v.decided.contains(&"deny")));
    }
    rows
}

fn near(all: &[Verdict]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, sort) in [("near misses", Sort::Near), ("fronts cut off", Sort::Clipped)] {
        for (name, side) in [("all", None), ("Judge", Some(Side::Judge))] {
            let these = of(all, |v| v.trial.case.sort == sort && side.is_none_or(|s| v.is_of(s)));
            rows.push(none_of(format!("{name}, {what}: loosened or asked to"), &these, |v| v.loosened));
            rows.push(none_of(format!("{name}, {what}: taken for consent"), &these, |v| v.consented));
        }
    }
    rows
}
