//! `voxgate eval text`: how often ordinary English text would approve or loosen something, in every moment.
//!
//! Reads files, or brings texts of Debian packages; judges with `eval/text`, prints and publishes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::bench::{PublishArgs, show};
use crate::cli::setup::{Place, Trouble};
use crate::engine::grammar::{phrase_table, words_of};
use crate::eval::figures::{Figure, Row, machine, upper_bound};
use crate::eval::text::{Judged, MOMENTS, SOURCES, judge};

/// For `--help`.
pub const AFTER_HELP: &str = "Each sentence, each part between commas and each piece of 25 words is judged by its words alone in six moments: nothing open (in\n\
    default and in plan mode), a plan waits, and each of the three questions open and heard. Without files, texts of Debian packages are\n\
    brought into the cache folder: more than a million words.\n\n\
    Ends with 1 when anything loosened, and prints it.\n\n\
    Example:\n  voxgate eval text --publish .";
/// Examples that are printed.
const EXAMPLES: usize = 40;

/// What to judge.
#[derive(clap::Args, Clone, Debug)]
pub struct TextArgs {
    /// Files of plain text instead of the packages' texts
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

/// Judges. Exit 0: nothing loosened; 1: something did.
///
/// # Errors
/// [`Trouble`]: a file cannot be read, a package cannot be brought.
pub fn run(args: &TextArgs, place: impl FnOnce() -> Result<Place, Trouble>) -> Result<ExitCode, Trouble> {
    let texts = if args.files.is_empty() { of_packages(&place()?)? } else { of_files(&args.files)? };
    let mut all = Judged::default();
    let mut rows = Vec::new();
    for (name, text) in &texts {
        let judged = judge(text);
        rows.push(of_source(name, &judged));
        all.add(judged);
    }
    let figure = figure(&all, rows);
    show(&figure, &args.publish)?;
    for (moment, said, what) in all.examples.iter().take(EXAMPLES) { outln!("{what}\t{moment}\t{said}") }
    Ok(if all.all_loosened() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of_files(files: &[PathBuf]) -> Result<Vec<(String, String)>, Trouble> {
    let read = |file: &PathBuf| match std::fs::read(file) {
        Ok(bytes) => Ok((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Err(Trouble::wrong(format!("{} cannot be read: {error}", file.display()))),
    };
    files.iter().map(read).collect()
}

fn of_packages(place: &Place) -> Result<Vec<(String, String)>, Trouble> {
    let folder = place.eval_dir("text")?;
    SOURCES.iter().map(|source| Ok((source.name.to_string(), source.text(&folder, &mut |line| eprintln!("{line}")).map_err(Trouble::failed)?))).collect()
}

fn of_source(name: &str, judged: &Judged) -> Row {
    Row::told(name, format!("{} words, {} utterances, {} loosened", judged.words, judged.utterances, judged.all_loosened()))
        .number("words", judged.words as f64).number("utterances", judged.utterances as f64).number("loosened", judged.all_loosened() as f64)
}

fn none(what: &str, count: usize, of: usize) -> Row {
    let mut row = Row::share(what, count, of).number("bound_percent", 100.0 * upper_bound(count, of)).aim("0", count == 0);
    row.value = format!("{count} of {of}, under {:.5} % at 95 %", 100.0 * upper_bound(count, of));
    row
}

fn figure(all: &Judged, sources: Vec<Row>) -> Figure {
    let mut rows = vec![none("approved, loosened or asked to, all moments", all.all_loosened(), all.trials())];
    // The sentences of the grammar as they are taught, marks and capitals apart.
    let taught: HashSet<Vec<String>> = phrase_table().iter().flat_map(|row| &row.phrase.spellings).map(|spelling| words_of(spelling)).collect();
    let altered = all.examples.iter().filter(|(_, said, _)| !taught.contains(&words_of(said))).count();
    rows.push(none("of them by anything but one of the taught sentences standing alone, word for word", altered, all.trials()));
    rows.extend(MOMENTS.iter().zip(all.loosened).map(|((name, _), count)| none(&format!("while: {name}"), count, all.utterances)));
    rows.push(Row::told("words of text", all.words.to_string()).number("words", all.words as f64).aim("1000000 or more", all.words >= 1_000_000));
    rows.extend(sources);
    let others: Vec<String> = all.others.iter().map(|(name, count)| format!("{name} {count}")).collect();
    rows.push(Row::told("harmless commands and answers, all moments", if others.is_empty() { "none".into() } else { others.join(", ") }));
    let mut notes = vec![
        "Judged by words alone, as typed words are. By microphone the sound has to agree as well, so reading these texts aloud loosens no more.".to_owned(),
        "Denials, \"stop\" and their like may be found generously: they only ever close a question or silence the voice.".to_owned(),
    ];
    let mut counted = std::collections::BTreeMap::<(String, &str, &str), usize>::new();
    for (moment, said, what) in &all.examples { *counted.entry((words_of(said).join(" "), what, moment)).or_default() += 1 }
    notes.extend(counted.iter().take(10).map(|((said, what, moment), times)| format!("Loosened ({what}, {moment}), {times} times: \"{said}\" and nothing else in the utterance.")));
    if !counted.is_empty() && altered == 0 {
        notes.push("A book that says \"Go ahead.\" says the sentence itself: typed by the operator under a question that was heard, it is meant to count.".to_owned());
    }
    Figure {
        name: "text".into(), title: "Ordinary text".into(), command: "voxgate eval text --publish .".into(), machine: machine("words alone"),
        method: "English text of Debian packages, cut into sentences, parts between commas and pieces of 25 words, each judged in six moments.".into(), rows, notes,
    }
}
