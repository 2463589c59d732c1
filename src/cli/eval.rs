//! `voxgate eval`: what the product's own judges and ears make of cases with known answers, and the figures that come of it.
//!
//! Called by `main`. One file a command; what they measure with stands in `eval/`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::setup::Trouble;
use crate::eval::figures;

pub mod listen;
mod listen_figures;
pub mod measured;
pub mod utterances;
pub mod words;

pub use utterances::moment_of;

/// Judge cases and print decisions or figures
#[derive(Clone, Debug, Subcommand)]
pub enum EvalCommand {
    /// What each sentence of a table would decide, by its words alone
    #[command(after_help = utterances::AFTER_HELP)]
    Utterances(utterances::UtterancesArgs),
    /// What is heard in recordings, and what it would decide
    #[command(after_help = listen::AFTER_HELP)]
    Listen(listen::ListenArgs),
    /// How many words of recordings are heard wrong
    #[command(after_help = words::AFTER_HELP)]
    Words(measured::Measured),
    /// Write docs/figures.md anew from the JSON files beside it
    Figures {
        /// The project's folder
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        project: PathBuf,
    },
}

/// Does what was asked; `config` is the configuration file that was named.
///
/// # Errors
/// [`Trouble`] that says what is missing or wrong.
pub fn run(command: EvalCommand, config: Option<&Path>) -> Result<ExitCode, Trouble> {
    match command {
        EvalCommand::Utterances(args) => Ok(utterances::run(&args)),
        EvalCommand::Listen(args) => listen::run(&args, config),
        EvalCommand::Words(args) => words::run(&args, config),
        EvalCommand::Figures { project } => {
            let page = figures::render(&figures::load(&project).map_err(Trouble::failed)?);
            let file = project.join("docs/figures.md");
            std::fs::write(&file, page).map_err(|e| Trouble::failed(format!("{}: {e}", file.display())))?;
            println!("{}", file.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}
