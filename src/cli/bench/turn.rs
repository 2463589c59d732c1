//! `voxgate bench turn`: a conversation at real pace, on the real loop with the real recogniser and voice, its clock never
//! standing still; the wall's times of what happened against the known ends of the words.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::person::{Line, Mark, Marks, Person, Said};
use super::{Bench, PublishArgs, show};
use crate::cli::setup::{Place, Trouble};
use crate::config::Config;
use crate::eval::figures::{Figure, Row, machine};
use crate::media::frame::EAR_FRAME;
use crate::session::file::{FileRun, Pace};
use crate::session::registry::Which;

/// How the turn is measured.
#[derive(Args, Clone, Debug)]
pub struct TurnArgs {
    /// Conversations with each number of threads; each has two lines of the commands' class and one or two of the others
    #[arg(long, default_value_t = 4)]
    pub runs: usize,
    /// Threads of the recogniser, each measured for itself
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    pub threads: Vec<u32>,
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

impl Default for TurnArgs {
    fn default() -> Self { Self { runs: 4, threads: vec![1, 2], publish: PublishArgs::default() } }
}

/// What is said in each conversation, and how the ends of these lines are waited for.
const SCRIPT: &[(Line, &str)] = &[
    (Line::Command, "Enter plan mode."),
    (Line::Ordinary, "What's in my notes?"),
    (Line::Loosening, "Exit plan mode."),
    (Line::Consent, "Yes, go ahead."),
    (Line::Ordinary, "Remember to buy milk."),
    (Line::Answer, "No."),
];
/// The aim after an endpoint, and for the first sample after the decision.
const DECIDED_MS: f64 = 150.0;
const SAMPLE_MS: f64 = 100.0;

/// One line's times, in milliseconds.
struct Times {
    /// From the end of the words to the last frame the detector took for voice.
    hangover: f64,
    /// From the end of the words to the decision.
    decided: f64,
    /// From the decision to the first sample.
    sample: Option<f64>,
    /// From the end of the words to plan mode being told, for the line that asks for it.
    planned: Option<f64>,
}

/// Measures, prints, publishes.
///
/// # Errors
/// [`Trouble`] when ears or voice cannot be started, or a conversation breaks.
pub async fn run(place: &Place, args: &TurnArgs) -> Result<ExitCode, Trouble> {
    let mut found: BTreeMap<(u32, Line), Vec<Times>> = BTreeMap::new();
    let (mut lost, mut said) = (0, 0);
    for &threads in &args.threads {
        for run in 0..args.runs.max(1) {
            eprintln!("voxgate: {threads} of threads, conversation {} of {}", run + 1, args.runs.max(1));
            let times = converse(place, threads).await?;
            said += SCRIPT.len();
            lost += SCRIPT.len() - times.len();
            for (line, times) in times {
                found.entry((threads, line)).or_default().push(times);
            }
        }
    }
    let mut rows = Vec::new();
    for line in [Line::Command, Line::Answer, Line::Loosening, Line::Consent, Line::Ordinary] {
        for &threads in &args.threads {
            if let Some(times) = found.get(&(threads, line)) {
                rows.extend(rows_of(line, threads, times, endpoint_ms(line, &place.config)));
            }
        }
    }
    let figure = Figure {
        name: "turn-latency".into(),
        title: "From the end of the words to the first sample out".into(),
        command: "voxgate bench turn --publish .".into(),
        machine: machine(&place.config.stt.model),
        method: format!(
            "{said} lines in the default voice, in conversations at real pace through the real loop, recogniser and voice. An endpoint is the silence its class waits for, \
             counted from the last frame that the detector took for voice; decisions are counted from there, samples from the decision. p50 and p95."
        ),
        rows,
        notes: vec![format!("{lost} of {said} lines got no decision of their own within 8 s."), "The gate turns before anything is written or told: from the decision of \"enter plan mode\" on no call that changes something begins.".into(), "The first sample may be that of a sign (a short tone) before the words.".into()],
    };
    show(&figure, &args.publish)?;
    Ok(ExitCode::SUCCESS)
}

/// The silence that a line of this class is waited for.
fn endpoint_ms(line: Line, config: &Config) -> f64 {
    let listen = &config.listen;
    f64::from(match line {
        Line::Answer => listen.answer_silence_ms,
        Line::Loosening | Line::Consent => listen.consent_silence_ms,
        Line::Command => listen.command_silence_ms,
        Line::Ordinary => listen.silence_ms,
    })
}

async fn converse(place: &Place, threads: u32) -> Result<Vec<(Line, Times)>, Trouble> {
    let bench = Bench::of(place, threads)?;
    let parts = bench.place.parts().await?;
    let mut lines = Vec::new();
    for (line, text) in SCRIPT {
        lines.push(Said::new(&*parts.voice, *line, text).await?);
    }
    let hangovers: Vec<f64> = lines.iter().map(|said| hangover(said, &parts)).collect();
    let hub = bench.place.hub(parts);
    let (driver, _handle) = hub.make(Which::New).map_err(Trouble::failed)?;
    let marks = Marks::default();
    let sink = marks.clone();
    let driver = driver.with_sink(Box::new(move |frame| sink.frame(frame)));
    let mut person = Person::new(lines, marks.clone());
    driver.run_file(&mut person, FileRun { pace: Pace::Real, stand_still: false }).await.map_err(Trouble::failed)?;
    hub.close("measured").await;
    Ok(timed(&marks.take(), &hangovers))
}

/// How long after the words' end the detector still hears voice.
fn hangover(said: &Said, parts: &crate::session::parts::Parts) -> f64 {
    let mut vad = parts.vad.make();
    let mut sound = vec![0i16; 8_000];
    sound.extend_from_slice(&said.sound);
    sound.extend([0i16; 16_000]);
    let last = sound.chunks(EAR_FRAME).enumerate().filter(|(_, frame)| vad.push(frame).probability >= 0.35).last();
    last.map_or(0.0, |(n, _)| ((n + 1) * EAR_FRAME) as f64 / 16.0 - (8_000 + said.end) as f64 / 16.0)
}

/// The decision of a line is the first after its words; its first sample the first after that, before the next line.
fn timed(marks: &[(Duration, Mark)], hangovers: &[f64]) -> Vec<(Line, Times)> {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let mut out = Vec::new();
    for (n, (at, mark)) in marks.iter().enumerate() {
        let Mark::Words(line) = mark else { continue };
        let rest: Vec<&(Duration, Mark)> = marks[n + 1..].iter().take_while(|(_, m)| !matches!(m, Mark::Words(_))).collect();
        let Some((decided, _)) = rest.iter().find(|(_, m)| matches!(m, Mark::Decided(_))) else { continue };
        let sample = rest.iter().find(|(when, m)| *m == Mark::FirstSample && when >= decided).map(|(when, _)| ms(*when) - ms(*decided));
        let asks = SCRIPT[*line].0 == Line::Command;
        let planned = rest.iter().find(|(_, m)| asks && *m == Mark::Planned).map(|(when, _)| ms(*when) - ms(*at));
        out.push((SCRIPT[*line].0, Times { hangover: hangovers[*line], decided: ms(*decided) - ms(*at), sample, planned }));
    }
    out
}

fn rows_of(line: Line, threads: u32, times: &[Times], endpoint: f64) -> Vec<Row> {
    let who = match line {
        Line::Command => "a command that tightens",
        Line::Answer => "a denial while a question is open",
        Line::Loosening => "a command that loosens",
        Line::Consent => "consent",
        Line::Ordinary => "ordinary speech",
    };
    let threads_told = if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") };
    let told = |stage: &str, values: Vec<f64>, aim: Option<f64>| {
        let (p50, p95) = (percentile(&values, 0.5), percentile(&values, 0.95));
        let row = Row::told(format!("{who}, {threads_told}: {stage}"), format!("{p50:.0} ms, {p95:.0} ms (n = {})", values.len()));
        let row = row.number("p50_ms", p50).number("p95_ms", p95).number("n", values.len() as f64);
        // The aims are for a recogniser with two free threads and the classes that decide; the rest stands beside them.
        match aim {
            Some(aim) if threads == 2 && line != Line::Ordinary => row.aim(format!("at most {aim:.0} ms"), p50 <= aim),
            _ => row,
        }
    };
    let after = |t: &Times| t.decided - t.hangover - endpoint;
    let effect = |t: &Times| t.planned.map(|p| p - t.hangover - endpoint);
    let mut rows = vec![
        told("end of the words to the decision", times.iter().map(|t| t.decided).collect(), None),
        told(&format!("decision after its endpoint ({endpoint:.0} ms of silence)"), times.iter().map(after).collect(), Some(DECIDED_MS)),
        told("first sample after the decision", times.iter().filter_map(|t| t.sample).collect(), Some(SAMPLE_MS)),
    ];
    if line == Line::Command {
        rows.push(told("enter to effect: plan mode told after its endpoint (the gate turns before that)", times.iter().filter_map(effect).collect(), Some(DECIDED_MS)));
    }
    rows
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((sorted.len().saturating_sub(1)) as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_belong_to_the_line_before_them() {
        let at = |ms: u64, mark| (Duration::from_millis(ms), mark);
        let marks = [
            at(1_000, Mark::Words(0)), at(1_500, Mark::Decided("a".into())), at(1_510, Mark::Planned), at(1_580, Mark::FirstSample),
            at(4_000, Mark::Words(1)), at(6_000, Mark::Words(5)), at(6_400, Mark::Decided("no".into())),
        ];
        let found = timed(&marks, &[100.0; 6]);
        let seen: Vec<(Line, f64, Option<f64>)> = found.iter().map(|(l, t)| (*l, t.decided.round(), t.sample.map(f64::round))).collect();
        assert_eq!(seen, [(Line::Command, 500.0, Some(80.0)), (Line::Answer, 400.0, None)]);
        assert_eq!(found[0].1.planned.map(f64::round), Some(510.0));
        assert_eq!((percentile(&[3.0, 1.0, 2.0], 0.5), percentile(&[3.0, 1.0, 2.0], 0.95), percentile(&[], 0.5)), (2.0, 3.0, 0.0));
    }
}
