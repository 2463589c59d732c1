//! `voxgate bench hearing`: processor time of one silent and one speaking conversation at real pace, this process and the
//! recognisers it started, and how many of them a core carries.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::person::{Line, Marks, Person, Said};
use super::{Bench, PublishArgs, show};
use crate::cli::setup::{Place, Trouble};
use crate::eval::figures::{Figure, Row, machine};
use crate::session::clock::Stopwatch;
use crate::session::file::{FileDevice, FileRun, Pace};
use crate::session::registry::Which;

/// How the cost is measured.
#[derive(Args, Clone, Debug)]
pub struct HearingArgs {
    /// Seconds of each conversation
    #[arg(long, default_value_t = 40)]
    pub seconds: u64,
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

/// What a person who never stops says.
const LINES: [(Line, &str); 4] = [
    (Line::Ordinary, "What's in my notes?"), (Line::Command, "What mode are you in?"), (Line::Command, "Enter plan mode."), (Line::Ordinary, "Please tell me what time it is."),
];
/// The aim for a silent conversation.
const SILENT: f64 = 0.01;
/// Clock ticks a second that `/proc` counts in; the same on every Linux.
const TICKS: f64 = 100.0;

/// Measures, prints, publishes.
///
/// # Errors
/// [`Trouble`] when ears or voice cannot be started, or a conversation breaks.
pub async fn run(place: &Place, args: &HearingArgs) -> Result<ExitCode, Trouble> {
    let bench = Bench::of(place, place.config.stt.threads)?;
    let parts = bench.place.parts().await?;
    let voice = parts.voice.clone();
    let hub = bench.place.hub(parts);
    settle().await;
    let mut shares = Vec::new();
    for (what, kind) in [("silence", Kind::Silence), ("a quiet room (noise of -66 dBFS)", Kind::Room), ("somebody who speaks whenever the answer has ended", Kind::Talk)] {
        eprintln!("voxgate: {what}, {} s", args.seconds);
        let lines = match kind {
            Kind::Talk => talk(&*voice, args.seconds).await?,
            _ => Vec::new(),
        };
        let (driver, _handle) = hub.make(Which::New).map_err(Trouble::failed)?;
        let mut device = Limited { inner: Person::new(lines, Marks::default()), silent: kind == Kind::Silence, until: args.seconds * 16_000 };
        let (before, watch) = (spent(), Stopwatch::start());
        driver.run_file(&mut device, FileRun { pace: Pace::Real, stand_still: false }).await.map_err(Trouble::failed)?;
        shares.push((what, (spent() - before) / watch.elapsed().as_secs_f64()));
    }
    hub.close("measured").await;
    let rows = shares.iter().map(|(what, share)| {
        let row = Row::told(*what, format!("{:.2} % of a core, {:.0} conversations a core", share * 100.0, 1.0 / share.max(1e-4)));
        let row = row.number("share", *share).number("a_core", 1.0 / share.max(1e-4));
        if what.starts_with("somebody") { row } else { row.aim("at most 1 % of a core", *share <= SILENT) }
    });
    let figure = Figure {
        name: "hearing-cost".into(),
        title: "What hearing costs".into(),
        command: "voxgate bench hearing --publish .".into(),
        machine: machine(&place.config.stt.model),
        method: format!("Processor time over wall time of one conversation of {} s at real pace: this process with its threads, and the recogniser's process.", args.seconds),
        rows: rows.collect(),
        notes: vec!["Somebody who speaks is answered in the default voice, which is part of the cost; so is every recognition.".into()],
    };
    show(&figure, &args.publish)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until what is rendered at the start has been rendered: a second of the processor nearly unused, at most half a minute.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(3)).await;
    for _ in 0..30 {
        let before = spent();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if spent() - before <= 0.02 {
            return;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Silence,
    Room,
    Talk,
}

/// Enough lines for the whole time: an exchange takes more than three seconds.
async fn talk(voice: &dyn crate::tts::Voice, seconds: u64) -> Result<Vec<Said>, Trouble> {
    let mut lines = Vec::new();
    for n in 0..(seconds / 3 + 1) as usize {
        let (line, text) = LINES[n % LINES.len()];
        lines.push(Said::new(voice, line, text).await?);
    }
    Ok(lines)
}

/// A person's device that ends after a while, whatever is still to be said.
struct Limited {
    inner: Person,
    silent: bool,
    until: u64,
}

impl FileDevice for Limited {
    fn rate_hz(&self) -> u32 { self.inner.rate_hz() }
    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> {
        if self.silent || from >= self.until { vec![0; (to - from) as usize] } else { self.inner.microphone(from, to) }
    }
    fn length(&self) -> u64 { self.until }
    fn speaker(&mut self, samples: &[i16]) -> Result<(), String> { self.inner.speaker(samples) }
}

/// Seconds of processor that this process and its children have used, those that ended included.
fn spent() -> f64 {
    let own = std::process::id().to_string();
    let ticks = |pid: &str, parent: Option<&str>| -> f64 {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0.0 };
        // The name may hold spaces; what follows its bracket does not.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
        if parent.is_some_and(|p| fields.get(1) != Some(&p)) {
            return 0.0;
        }
        // utime, stime, and those of children that were waited for.
        (11..15).filter_map(|n| fields.get(n)?.parse::<f64>().ok()).sum()
    };
    let children = std::fs::read_dir("/proc").into_iter().flatten().filter_map(|e| e.ok()?.file_name().into_string().ok());
    let children: f64 = children.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).map(|pid| ticks(&pid, Some(&own))).sum();
    (ticks(&own, None) + children) / TICKS
}
