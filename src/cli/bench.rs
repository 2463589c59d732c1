//! `voxgate bench`: how long the stages of a turn take on this machine. Figures of one run stand beside each other; they are
//! never compared with those of another machine.

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;

use super::setup::{Place, Trouble};
use crate::engine::grammar::phrase_table;
use crate::engine::intent::{Moment, decide};
use crate::media::resample::resample_all;
use crate::session::clock::Stopwatch;
use crate::stt::Job;

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// From the end of the words to the first sample of the answer: recognition, decision, synthesis
    Turn {
        /// How often each sentence is measured
        #[arg(long, default_value_t = 5)]
        runs: usize,
    },
}

/// Sentences of every class; the default voice says them.
const SENTENCES: [&str; 6] = ["Enter plan mode.", "What mode are you in?", "Approve plan one.", "Yes, go ahead.", "No.", "What's in my notes?"];
/// What is answered.
const ANSWER: &str = "Plan mode is on. I can look, but I change nothing until you approve a plan.";

/// Measures and prints a table.
///
/// # Errors
/// [`Trouble`] when ears or voice cannot be started.
pub async fn run(place: &Place, command: Option<BenchCommand>) -> Result<ExitCode, Trouble> {
    let BenchCommand::Turn { runs } = command.unwrap_or(BenchCommand::Turn { runs: 5 });
    let parts = place.parts().await?;
    let table = phrase_table();
    println!("{:<26} {:>8} {:>22} {:>22}  heard", "sentence", "sound", "recognition ms", "decision us");
    let mut all = Vec::new();
    for sentence in SENTENCES {
        let sound = parts.voice.synthesise(sentence.to_string()).await.map_err(Trouble::failed)?;
        let mut samples = vec![0i16; 4_800];
        samples.extend(resample_all(&sound.samples, sound.rate_hz, 16_000));
        samples.extend([0i16; 4_800]);
        let ms = samples.len() / 16;
        let (mut hearing, mut deciding, mut text) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..runs.max(1) {
            let watch = Stopwatch::start();
            let heard = parts.recogniser.recognise(Job::new(samples.clone())).await.map_err(Trouble::failed)?;
            hearing.push(watch.elapsed());
            let watch = Stopwatch::start();
            let decision = decide(&heard, &table, &Moment { in_plan: true, waiting: Some(1), ..Moment::default() });
            deciding.push(watch.elapsed());
            text = format!("{} -> {}", heard.text, decision.name());
        }
        println!("{sentence:<26} {:>5} ms {:>22} {:>22}  {text}", ms, spread(&mut hearing, 1e3), spread(&mut deciding, 1e6));
        all.extend(hearing);
    }
    let mut speaking = Vec::new();
    let mut length = Duration::ZERO;
    for n in 0..runs.max(1) {
        // Another sentence each time: short prompts are kept by the voice's cache.
        let watch = Stopwatch::start();
        let sound = parts.voice.synthesise(format!("{ANSWER} Number {n}.")).await.map_err(Trouble::failed)?;
        speaking.push(watch.elapsed());
        length = Duration::from_secs_f64(sound.samples.len() as f64 / f64::from(sound.rate_hz));
    }
    println!("\nall recognitions: {} ms;  synthesis of {:.1} s of speech: {} ms (min/median/max)", spread(&mut all, 1e3), length.as_secs_f64(), spread(&mut speaking, 1e3));
    println!("silence that ends a turn: {} ms; consent and loosening wait for {} ms", place.config.listen.silence_ms, place.config.listen.consent_silence_ms);
    Ok(ExitCode::SUCCESS)
}

/// Minimum, median and maximum.
fn spread(times: &mut [Duration], scale: f64) -> String {
    times.sort();
    let at = |i: usize| times.get(i).map_or(0.0, |t| t.as_secs_f64() * scale);
    format!("{:.0}/{:.0}/{:.0}", at(0), at(times.len() / 2), at(times.len().saturating_sub(1)))
}
