//! `voxgate eval`: what the product's own judges and ears make of cases with known answers, and the figures that come of it.
//!
//! Called by `main`. One file a command; what they measure with stands in `eval/`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::setup::Trouble;
use crate::eval::figures;

#[cfg(all(feature = "voice", feature = "whisper"))]
pub mod commands;
pub mod utterances;

pub use utterances::moment_of;

/// Judge cases and print decisions or figures
#[derive(Clone, Debug, Subcommand)]
pub enum EvalCommand {
    /// What each sentence of a table would decide, by its words alone
    #[command(after_help = utterances::AFTER_HELP)]
    Utterances(utterances::UtterancesArgs),
    /// Speak commands, consents, denials and near misses in many voices and places, and count what the ear makes of them
    #[cfg(all(feature = "voice", feature = "whisper"))]
    Commands(commands::CommandsArgs),
    /// Write docs/figures.md anew from the JSON files beside it
    Figures {
        /// The project's folder
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        project: PathBuf,
    },
}

/// Does what was asked.
///
/// # Errors
/// [`Trouble`] that says what is missing or wrong.
pub fn run(command: EvalCommand) -> Result<ExitCode, Trouble> {
    match command {
        EvalCommand::Utterances(args) => Ok(utterances::run(&args)),
        #[cfg(all(feature = "voice", feature = "whisper"))]
        EvalCommand::Commands(args) => commands::run(&args),
        EvalCommand::Figures { project } => {
            let page = figures::render(&figures::load(&project).map_err(Trouble::failed)?);
            let file = project.join("docs/figures.md");
            std::fs::write(&file, page).map_err(|e| Trouble::failed(format!("{}: {e}", file.display())))?;
            println!("{}", file.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}
