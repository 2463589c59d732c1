//! The binary: reads the command line and hands over to the rooms.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use voxgate::cli::models::ModelsCommand;

#[derive(Parser)]
#[command(name = "voxgate", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List, bring and check the speech models
    Models {
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// The recogniser's process; started by voxgate itself
    #[cfg(feature = "whisper")]
    #[command(hide = true)]
    Recogniser(voxgate::stt::child::ChildArgs),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Models { command } => match voxgate::cli::models::run(command, &models_dir()) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("voxgate: {error}");
                ExitCode::FAILURE
            }
        },
        #[cfg(feature = "whisper")]
        Command::Recogniser(args) => voxgate::stt::child::run_child(&args, |path| {
            let checked = voxgate::models::read_checked(path).map_err(|error| error.to_string())?;
            eprintln!("{} sha256 {} ({})", path.display(), checked.sha256, if checked.pinned { "known" } else { "own file" });
            Ok(checked.bytes)
        }),
    }
}

/// `VOXGATE_MODELS`, else `voxgate/models` in the XDG cache.
fn models_dir() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("VOXGATE_MODELS").unwrap_or_else(|| {
        let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        cache.unwrap_or_else(|| PathBuf::from(".cache")).join("voxgate/models")
    })
}
