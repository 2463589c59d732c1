//! `voxgate eval kills`: a gateway is killed at random moments while it writes, and its log is compared with what it had told.
//!
//! Prints a table, publishes the figure `kills`. Touches no conversation of the person's: the killed gateways have a home of their own.

use std::process::ExitCode;

use crate::cli::bench::{PublishArgs, show};
use crate::cli::setup::{Place, Trouble, logged};
use crate::engine::authority::{OperatorDoor, Surface};
use crate::eval::figures::{Figure, Row, machine};
use crate::eval::kills::{Kills, Scratch, kill, write};
use crate::session::registry::Which;

/// For `--help`.
pub const AFTER_HELP: &str = "Each gateway enters and leaves plan mode, presents, comments, approves and runs tools as fast as it can, and is killed by a signal\n\
    that cannot be caught. Then every frame it had sent must be in its log as it was sent, plan must still be plan, and no call may have run\n\
    twice; the next gateway goes on with the same conversation. Ends with 1 when anything was lost, loosened or done twice.\n\n\
    Example:\n  voxgate eval kills --count 500 --publish .";

/// How often.
#[derive(clap::Args, Clone, Debug)]
pub struct KillsArgs {
    /// Kills
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub count: usize,
    /// Begins the order of deeds and moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// For itself: the process that is killed, with the conversation it goes on with
    #[arg(long, value_name = "ID", hide = true)]
    pub writer: Option<String>,
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

/// Kills, compares, prints. Exit 0: nothing was lost; 1: something was.
///
/// # Errors
/// [`Trouble`]: the gateway cannot be started.
pub fn run(args: &KillsArgs, place: impl FnOnce() -> Result<Place, Trouble>) -> Result<ExitCode, Trouble> {
    if let Some(which) = &args.writer {
        let place = place()?;
        return logged(written(place, which.clone(), args.seed));
    }
    let program = std::env::current_exe().map_err(|e| Trouble::failed(format!("this program cannot find itself: {e}")))?;
    let scratch = Scratch::new().map_err(Trouble::failed)?;
    let found = kill(&program, scratch.path(), args.count, args.seed).map_err(Trouble::failed)?;
    show(&figure(&found), &args.publish)?;
    found.wrong.iter().for_each(|line| outln!("{line}"));
    Ok(if found.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn written(place: Place, which: String, seed: u64) -> Result<ExitCode, Trouble> {
    let _lock = place.hold("eval kills")?;
    let hub = place.hub(place.parts().await?);
    let door = OperatorDoor::vouch(Surface::Chat).ok_or_else(|| Trouble::failed("the chat decides nothing here"))?;
    let which = if which == "new" { Which::New } else { Which::Id(which) };
    write(&hub, which, door, seed).await.map(|()| ExitCode::SUCCESS).map_err(Trouble::failed)
}

fn figure(found: &Kills) -> Figure {
    let zero = |what: &str, count: usize, of: usize| Row::share(what, count, of).aim("0", count == 0);
    let rows = vec![
        Row::told("kills while it wrote", format!("{} ({} before its first frame)", found.kills, found.early)).number("kills", found.kills as f64),
        zero("frames it had sent: lost, or otherwise in the log", found.lost, found.told),
        zero("plan mode on before the kill: off afterwards", found.loosened, found.planned),
        zero("logs damaged otherwise than by a half written last record", found.damaged, found.kills),
        zero("calls that ran twice", found.twice, found.ran),
        Row::told("half written last records, told and put aside", found.torn.to_string()).number("torn", found.torn as f64),
        Row::told("records written and not yet told of", found.ahead.to_string()).number("ahead", found.ahead as f64),
    ];
    Figure {
        name: "kills".into(), title: "Killed while it writes".into(), command: "voxgate eval kills --count 500 --publish .".into(), machine: machine("no ears, no voice"),
        method: "The product's own hub, driver, gate and log in a process that is killed (SIGKILL) up to 120 ms after its first frame; the next one goes on with the same conversation.".into(),
        rows, notes: vec!["A kill ends the process, not the machine: what a disk does with its cache when the power fails is not in this figure.".to_owned()],
    }
}
