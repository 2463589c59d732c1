//! `voxgate eval words`: word errors of the model that hears, through the product's whole path and beside its library's own decoding.

use std::collections::BTreeMap;
use std::process::ExitCode;

use super::listen_figures::print;
use super::measured::Measured;
use crate::cli::setup::{Place, Trouble, logged};
use crate::engine::apart::apart;
use crate::eval::corpora::{decode, fetch};
use crate::eval::figures::{Figure, Row, machine, publish};
use crate::eval::listen::{Listener, State};
use crate::eval::words::{Known, known, plain_words};
use crate::media::resample::resample_all;
use crate::stt::{Job, Recogniser};

/// For `--help`.
pub const AFTER_HELP: &str = "Recordings with known words are brought from Debian packages into the cache folder. Each is heard twice: the way of a live microphone\n\
        (voice detection, turns, the recogniser with a short context), and whole, by the recogniser's library with its own defaults.\n\n\
        Example:\n  voxgate eval words";

/// Wrong words and all words.
#[derive(Clone, Copy, Default)]
struct Errors {
    wrong: usize,
    of: usize,
}

/// Measures and publishes `words`.
///
/// # Errors
/// [`Trouble`]: a package cannot be brought, the recogniser does not start.
pub fn run(args: &Measured, place: &Place) -> Result<ExitCode, Trouble> {
    logged(async { measure(place, args).await.map(|()| ExitCode::SUCCESS) })
}

async fn measure(place: &Place, args: &Measured) -> Result<(), Trouble> {
    let folder = place.eval_dir("corpora")?;
    fetch(&folder, &mut |line| eprintln!("{line}")).map_err(Trouble::failed)?;
    let clips = known(&folder).map_err(Trouble::failed)?;
    let (product, library, table) = (place.remembering(false).await?, place.remembering(true).await?, place.phrase_table());
    let listener = Listener { recogniser: &product, table: &table, ear: place.ear_settings(), language: place.config.stt.language.clone(), judge: place.judge(), vad: place.vad() };
    let mut sums: BTreeMap<&str, [Errors; 2]> = BTreeMap::new();
    let mut seconds = 0.0;
    for clip in &clips {
        let (samples, rate) = decode(&clip.path).map_err(Trouble::failed)?;
        seconds += samples.len() as f64 / f64::from(rate);
        let turns = listener.turns(&samples, rate, State::Idle).await.map_err(Trouble::failed)?;
        let ours = turns.iter().map(|t| t.heard.text.as_str()).collect::<Vec<_>>().join(" ");
        let whole = Job { language: listener.language.clone(), ..Job::new(resample_all(&samples, rate, 16_000)) };
        let theirs = library.recognise(whole).await.map_err(Trouble::failed)?.text;
        let both = sums.entry(clip.set).or_default();
        for (errors, heard) in both.iter_mut().zip([&ours, &theirs]) { count(clip, heard, errors) }
    }
    let figure = figure(place, &sums, clips.len(), seconds);
    print(&figure);
    publish(&args.project, &figure).map_err(Trouble::failed)
}

fn count(clip: &Known, heard: &str, errors: &mut Errors) {
    let (said, heard) = (plain_words(&clip.text), plain_words(heard));
    let wrong = apart(&said, &heard);
    if wrong > 0 { eprintln!("{wrong} of {}: {:?} heard as {:?}", said.len(), said.join(" "), heard.join(" ")) }
    errors.wrong += wrong;
    errors.of += said.len();
}

fn figure(place: &Place, sums: &BTreeMap<&str, [Errors; 2]>, clips: usize, seconds: f64) -> Figure {
    let mut rows = Vec::new();
    for (way, told) in ["the product's path", "the library's own decoding"].iter().enumerate() {
        for (set, both) in sums {
            rows.push(Row::share(format!("{set}, {told}"), both[way].wrong, both[way].of));
        }
        let all = sums.values().fold((0, 0), |(wrong, of), both| (wrong + both[way].wrong, of + both[way].of));
        rows.push(Row::share(format!("all, {told}"), all.0, all.1));
    }
    Figure {
        name: "words".into(), title: "Word errors".into(), command: "voxgate eval words".into(), machine: machine(&place.config.stt.model),
        method: format!("{clips} recordings, {seconds:.0} s: sentences read aloud, playing cards named in a room, names of animals of half a second to a second and a half. Wrong words are those to insert, drop or change; case, marks and the spelling of numbers do not count. The library decodes each recording whole, with the full context of 30 s and its fallbacks; the product cuts it into turns and gives each a context of its own length."),
        rows,
        notes: vec![
            "The word lists hold a slip of their own (\"a more a amiable\"), which counts against both.".into(),
            "Compound words that are written in one (\"coldhearted\") count as two errors.".into(),
            "Names of animals stand alone, without a sentence around them; that is the hardest that this model is asked.".into(),
        ],
    }
}
