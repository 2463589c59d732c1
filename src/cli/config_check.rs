//! `voxgate config`: whether the configuration is right, what is in force, and an example of every key.
//!
//! Calls `config` and prints; changes nothing. Called by `main`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::config::{self, Config, Flag};
use crate::store::home::Home;

/// What to do with the configuration.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read it and tell every mistake; print what differs from the defaults
    Check {
        /// Print every key, also those at their default
        #[arg(long)]
        all: bool,
    },
    /// Print an example with every key, its unit and its default
    Example,
}

/// Carries the command out. `file` is the `--config` argument. Exit 0: it is right; 2: it is not, told on stderr.
pub fn run(command: ConfigCommand, home: &Home, file: Option<&Path>, variables: &[(String, String)], flags: &[Flag]) -> ExitCode {
    let text = match command {
        ConfigCommand::Example => Ok(config::example()),
        ConfigCommand::Check { all } => check(home, file, variables, flags, all),
    };
    match text {
        Ok(text) => {
            super::out::put(format_args!("{text}"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn check(home: &Home, file: Option<&Path>, variables: &[(String, String)], flags: &[Flag], all: bool) -> Result<String, String> {
    let path = file.map_or_else(|| home.config_file(), PathBuf::from);
    let config = Config::load(&path, file.is_none(), variables, flags).map_err(|e| e.to_string())?;
    let from = if path.exists() { format!("{} is right.", path.display()) } else { format!("{} is not there; defaults and variables hold.", path.display()) };
    let defaults = Config::default().shown();
    let lines: Vec<String> = config.shown().into_iter().zip(defaults).filter(|(now, default)| all || now != default).map(|((key, value), _)| format!("{key} = {value}")).collect();
    let rest = if lines.is_empty() { "Everything is at its default.".to_string() } else { lines.join("\n") };
    Ok(format!("{from}\n{rest}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_shows_what_differs_and_hides_keys() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        let told = |all| check(&home, None, &[], &[], all);
        assert!(told(false)?.ends_with("Everything is at its default.\n"));
        std::fs::write(home.config_file(), "[agent]\napi_key = \"canary\"\n[server]\nport = 0\n")?;
        assert!(told(false)?.ends_with("is right.\nserver.port = 0\nagent.api_key = \"***\"\n"));
        assert!(told(true)?.contains("listen.silence_ms = 500"));
        std::fs::write(home.config_file(), "[server]\nprt = 0\n")?;
        assert!(told(false).is_err_and(|e| e.contains("config.toml:2: server.prt is no known key; did you mean server.port?")));
        Ok(())
    }
}
