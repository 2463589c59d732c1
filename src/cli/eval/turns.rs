//! `voxgate eval turns`: how often a turn is ended before its speaker is, and how long one waits at its end.
//!
//! Reads the configuration, starts the recogniser, prints and publishes. What is measured stands in `eval/turns`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::setup::{Place, Trouble, logged};
use crate::engine::turn::EarSettings;
use crate::eval::figures::{self, Figure, Row};
use crate::eval::turns::{Hearing, Latency, Speakers, Tally, Way, hear, script};

/// What is measured, and where it goes.
#[derive(clap::Args, Clone, Debug)]
pub struct TurnsArgs {
    /// The project's folder: write docs/figures/cut-offs.json there and the page anew
    #[arg(long, value_name = "FOLDER")]
    pub publish: Option<PathBuf>,
    /// What a recognition takes, in milliseconds: two free threads need 280, one 570
    #[arg(long, default_value_t = 300)]
    pub recognise_ms: u64,
    /// What the judge of turns takes, in milliseconds
    #[arg(long, default_value_t = 100)]
    pub judge_ms: u64,
    /// Silence for what is unfinished, in milliseconds, instead of the product's
    #[arg(long)]
    pub unfinished_ms: Option<u64>,
    /// Silence for what sounds complete, in milliseconds, instead of the product's
    #[arg(long)]
    pub complete_ms: Option<u64>,
    /// From this probability on the judge's "complete" counts, instead of the product's
    #[arg(long)]
    pub complete_from: Option<f32>,
    /// Up to this probability the judge's "incomplete" counts, instead of the product's
    #[arg(long)]
    pub unfinished_to: Option<f32>,
    /// Utterances at most, for a trial; 0 takes all
    #[arg(long, default_value_t = 0)]
    pub most: usize,
    /// Print what was heard of each
    #[arg(long)]
    pub verbose: bool,
}

/// Share of cut-offs that is aimed at, with a timeout of 300 ms.
const AIM: f64 = 0.20;

impl TurnsArgs {
    fn apply(&self, settings: &mut EarSettings) {
        settings.unfinished_silence_ms = self.unfinished_ms.unwrap_or(settings.unfinished_silence_ms);
        settings.complete_silence_ms = self.complete_ms.unwrap_or(settings.complete_silence_ms);
        settings.complete_from = self.complete_from.unwrap_or(settings.complete_from);
        settings.unfinished_to = self.unfinished_to.unwrap_or(settings.unfinished_to);
    }
}

/// Measures.
///
/// # Errors
/// [`Trouble`]: a model, a voice or the recogniser is missing or failed.
pub fn run(args: &TurnsArgs, place: &Place) -> Result<ExitCode, Trouble> {
    logged(measure(args, place))
}

async fn measure(args: &TurnsArgs, place: &Place) -> Result<ExitCode, Trouble> {
    let hibari = place.models.join("hibari");
    let speakers = Speakers::open(&hibari).map_err(Trouble::failed)?;
    let all = script(&speakers, args.most).await.map_err(Trouble::failed)?;
    drop(speakers);
    let parts = place.parts().await?;
    let cache = place.models.parent().unwrap_or(&place.models).join("eval/turns");
    let latency = Latency { recognise_ms: args.recognise_ms, judge_ms: args.judge_ms };
    let mut hearing = Hearing::new(parts.recogniser, parts.judge, parts.vad, &place.config.stt.model, &cache, latency).map_err(Trouble::failed)?;
    let with_judge = hearing.judge.is_some();
    let ways = [300, 600].into_iter().flat_map(|ms| [("silence alone", ms, Way::silence(ms)), ("silence and grammar", ms, Way::product(ms, false)), ("silence, grammar and judge", ms, Way::product(ms, true))]);
    let mut rows = Vec::new();
    for (name, ms, mut way) in ways.filter(|w| with_judge || !w.2.judged) {
        if name != "silence alone" { args.apply(&mut way.settings) }
        let mut tally = Tally::default();
        for said in &all {
            let outcome = hear(said, &way, &mut hearing).await.map_err(Trouble::failed)?;
            if args.verbose { outln!("{name} {ms}: {} {:?} pause {} ms: cut {} delay {:?} {:?}", said.voice, said.text, said.pause_ms, outcome.cut, outcome.delay_ms, outcome.turns) }
            tally.add(&outcome);
        }
        let best = if with_judge { way.judged } else { name == "silence and grammar" };
        rows.extend(lines(name, ms, &tally, best));
        rows.iter().rev().take(3).rev().for_each(|r| outln!("{:<60} {:<28} {}", r.what, r.value, r.aim));
    }
    if let Some(project) = &args.publish {
        figures::publish(project, &figure(place, rows, all.len(), with_judge, latency)).map_err(Trouble::failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(name: &str, ms: u64, tally: &Tally, best: bool) -> Vec<Row> {
    let (of, cut) = tally.paused;
    let share = Row::share(format!("{ms} ms, {name}: utterances with a pause that were cut off"), cut, of).number("joined", tally.joined as f64);
    let share = if best && ms == 300 { share.aim("under 20 %", (cut as f64) < AIM * of as f64) } else { share };
    let left = cut.saturating_sub(tally.joined);
    vec![
        share,
        Row::told(format!("{ms} ms, {name}: the same in one breath; cut off for good, where the second half does not join"), format!("{} of {}; {left} of {of}", tally.whole.1, tally.whole.0)).number("whole_cut", tally.whole.1 as f64).number("left", left as f64),
        Row::told(format!("{ms} ms, {name}: last sample to end of turn, median / 95 %"), format!("{} / {} ms", tally.delay(0.5), tally.delay(0.95)))
            .number("median_ms", tally.delay(0.5) as f64).number("p95_ms", tally.delay(0.95) as f64).number("unheard", tally.unheard as f64),
    ]
}

fn figure(place: &Place, rows: Vec<Row>, count: usize, judge: bool, latency: Latency) -> Figure {
    Figure {
        name: "cut-offs".into(), title: "Turns that are ended too early, and the wait at their end".into(), command: "voxgate eval turns --publish .".into(), machine: figures::machine(&place.config.stt.model),
        method: format!(
            "{count} utterances: thirty with a thinking pause of 0.4 to 1.5 s in the middle, thirty in one breath, in six voices of three engines, through the real detector, recogniser and turn taking in virtual time; a recognition counts as {} ms, an opinion of the judge as {} ms.",
            latency.recognise_ms, latency.judge_ms
        ),
        rows,
        notes: vec![
            "The pause is the voice's own at a comma, drawn out: its tune goes on there. People also say um, and breathe; these do not.".into(),
            "A second half that begins within 1.2 s of the first joins its turn if nothing of an answer was heard by then; an agent that answers at once leaves less room for that.".into(),
            if judge { "The judge of turns only moves the silence of ordinary speech; consent and loosening wait for their 600 ms whatever it says.".into() } else { "Without the judge of turns: its model was not there.".into() },
        ],
    }
}
