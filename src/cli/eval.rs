//! `voxgate eval`: what the product's own judges and ears make of cases with known answers, and the figures that come of it.
//!
//! Called by `main`. One file a command; what they measure with stands in `eval/`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::setup::{Place, Trouble, logged};
use crate::eval::figures;

#[cfg(feature = "voice")]
pub mod echo;
pub mod kills;
pub mod listen;
mod listen_figures;
pub mod measured;
pub mod text;
pub mod turns;
#[cfg(all(feature = "voice", feature = "whisper"))]
pub mod commands;
pub mod utterances;
pub mod words;

/// Judge cases and print decisions or figures
#[derive(Clone, Debug, Subcommand)]
pub enum EvalCommand {
    /// What each sentence of a table would decide, by its words alone
    #[command(after_help = utterances::AFTER_HELP)]
    Utterances(utterances::UtterancesArgs),
    /// What the gateway makes of its own voice from a loudspeaker, and of a person over it
    #[cfg(feature = "voice")]
    Echo(echo::EchoArgs),
    /// What is heard in recordings, and what it would decide
    #[command(after_help = listen::AFTER_HELP)]
    Listen(listen::ListenArgs),
    /// How many words of recordings are heard wrong
    #[command(after_help = words::AFTER_HELP)]
    Words(measured::Measured),
    /// How often a turn is ended before its speaker is, and how long one waits at its end
    Turns(turns::TurnsArgs),
    /// Speak commands, consents, denials and near misses in many voices and places, and count what the ear makes of them
    #[cfg(all(feature = "voice", feature = "whisper"))]
    Commands(commands::CommandsArgs),
    /// How often ordinary English text would approve or loosen something, in every moment
    #[command(after_help = text::AFTER_HELP)]
    Text(text::TextArgs),
    /// Kill a gateway at random moments while it writes, and look whether anything it had told of is lost
    #[command(after_help = kills::AFTER_HELP)]
    Kills(kills::KillsArgs),
    /// Write docs/figures.md anew from the JSON files beside it
    Figures {
        /// The project's folder
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        project: PathBuf,
    },
}

/// Does what was asked. `place` finds home and settings, for the commands that need ears or a voice.
///
/// # Errors
/// [`Trouble`] that says what is missing or wrong.
pub fn run(command: EvalCommand, place: impl FnOnce() -> Result<Place, Trouble>) -> Result<ExitCode, Trouble> {
    match command {
        #[cfg(feature = "voice")]
        EvalCommand::Echo(args) => {
            let place = place()?;
            logged(echo::run(&place, &args))
        }
        EvalCommand::Utterances(args) => Ok(utterances::run(&args)),
        EvalCommand::Text(args) => text::run(&args, place),
        EvalCommand::Kills(args) => kills::run(&args, place),
        EvalCommand::Listen(args) => listen::run(&args, &place()?),
        EvalCommand::Words(args) => words::run(&args, &place()?),
        EvalCommand::Turns(args) => turns::run(&args, &place()?),
        #[cfg(all(feature = "voice", feature = "whisper"))]
        EvalCommand::Commands(args) => commands::run(&args, &place()?),
        EvalCommand::Figures { project } => {
            let page = figures::render(&figures::load(&project).map_err(Trouble::failed)?);
            let file = project.join("docs/figures.md");
            std::fs::write(&file, page).map_err(|e| Trouble::failed(format!("{}: {e}", file.display())))?;
            outln!("{}", file.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}
