//! Verdicts as lines a person reads, and as the published figures.
//!
//! Called by `voxgate eval commands`. Counts; decides nothing.

use super::cases::Sort;
use super::clips::Place;
use super::commands::Verdict;
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
