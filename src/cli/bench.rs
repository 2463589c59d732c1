//! `voxgate bench`: how long the stages of a turn take on this machine, and what hearing costs it. Figures of one run stand
//! beside each other; they are never compared with those of another machine.
//!
//! Called by `main`. One file a command, and `person`, the speaker of both.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::setup::{Place, Trouble};
use crate::eval::figures::{Figure, publish};
use crate::store::home::Home;

pub mod gate;
pub mod hearing;
pub mod person;
pub mod relay;
pub mod turn;

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// From the end of the words to the first sample of the answer, by stage, in a whole conversation at real pace
    Turn(turn::TurnArgs),
    /// How long the gate takes for a verdict
    Gate(gate::GateArgs),
    /// What a conversation costs the processor, silent and speaking, the recogniser's process included
    Hearing(hearing::HearingArgs),
    /// What a proxied session costs, beside a plain copy of bytes
    Relay(relay::RelayArgs),
    /// One of the processes of `relay`
    #[command(hide = true)]
    RelayPart(relay::PartArgs),
}

/// Where a figure goes beside the screen.
#[derive(Args, Clone, Debug, Default)]
pub struct PublishArgs {
    /// Write the figure into docs/figures of this project folder as well
    #[arg(long, value_name = "FOLDER")]
    pub publish: Option<PathBuf>,
}

/// Measures and prints a table.
///
/// # Errors
/// [`Trouble`] when ears or voice cannot be started.
pub async fn run(place: &Place, command: Option<BenchCommand>) -> Result<ExitCode, Trouble> {
    match command.unwrap_or_else(|| BenchCommand::Turn(turn::TurnArgs::default())) {
        BenchCommand::Turn(args) => turn::run(place, &args).await,
        BenchCommand::Gate(args) => gate::run(&args),
        BenchCommand::Hearing(args) => hearing::run(place, &args).await,
        BenchCommand::Relay(args) => tokio::task::spawn_blocking(move || relay::run(&args)).await.map_err(Trouble::failed)?,
        BenchCommand::RelayPart(args) => relay::run_part(&args).await,
    }
}

/// Prints a figure, and publishes it where that was asked for.
pub(super) fn show(figure: &Figure, to: &PublishArgs) -> Result<(), Trouble> {
    outln!("{} on {}", figure.title, figure.machine);
    for row in &figure.rows {
        let met = match row.met { Some(true) => "met", Some(false) => "MISSED", None => "" };
        outln!("  {:<72} {:<44} {} {met}", row.what, row.value, row.aim);
    }
    figure.notes.iter().for_each(|note| outln!("  ({note})"));
    match &to.publish {
        Some(project) => publish(project, figure).map_err(Trouble::failed),
        None => Ok(()),
    }
}

/// A home for one measurement, gone with it, so that no conversation of the person's is touched.
struct Bench {
    place: Place,
    folder: PathBuf,
}

impl Bench {
    fn of(place: &Place, threads: u32) -> Result<Self, Trouble> {
        let folder = std::env::temp_dir().join(format!("voxgate-bench-{}-{threads}", std::process::id()));
        let home = Home::find(|name| (name == "VOXGATE_HOME").then(|| folder.display().to_string())).map_err(Trouble::failed)?;
        home.create().map_err(Trouble::failed)?;
        let mut config = place.config.clone();
        config.stt.threads = threads;
        Ok(Self { place: Place { variables: place.variables.clone(), home, config, models: place.models.clone() }, folder })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
