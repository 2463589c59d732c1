//! One tree of every room's settings, read once at start; every mistake is reported, not only the first.
//!
//! Owns the keys, their defaults and their checks (`keys` is the table), and is the one place that reads the environment.
//! `main` and the commands call it and translate: rooms never import it. It opens nothing but the file it is given.
//!
//! Later wins: defaults, `OPENAI_API_KEY` and `OPENAI_BASE_URL`, the file, `VOXGATE_SECTION__KEY` variables, flags.
#![allow(clippy::disallowed_methods, reason = "this is the place that reads the environment")]

mod keys;
mod load;
mod mistakes;
mod nearest;
#[cfg(test)]
mod tests;
mod tree;
mod value;

use std::path::{Path, PathBuf};

pub use keys::example;
pub use mistakes::{ConfigErrors, Mistake, Place};
pub use tree::{
    AgentConfig, AudioConfig, AutonomyConfig, Config, LimitsConfig, ListenConfig, LooseModes, Persist, PlanConfig, ServerConfig, SttConfig, ToolsConfig, TtsConfig, VoiceConfig,
    VoiceExit,
};


/// Largest configuration file, in bytes. Chosen: a hundred times a file that sets everything.
const FILE_MAX: u64 = 1 << 20;

/// A command-line flag that sets a key (`--base-url URL` sets `agent.base_url`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// As typed, for mistakes.
    pub name: &'static str,
    /// The key.
    pub key: &'static str,
    /// Its value as text.
    pub value: String,
}

/// The process's variables; those that are not text are left out.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// A look-up in a list of variables, as `store::home::Home::find` takes it.
pub fn variable(variables: &[(String, String)], name: &str) -> Option<String> {
    variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
}

/// Where model weights lie: `VOXGATE_MODELS`, else `voxgate/models` in the XDG cache. `None` when no variable says.
pub fn models_dir(variables: &[(String, String)]) -> Option<PathBuf> {
    let given = variable(variables, "VOXGATE_MODELS").filter(|v| !v.is_empty()).map(PathBuf::from);
    given.or_else(|| cache_dir(variables).map(|cache| cache.join("models")))
}

/// Where everything lies that can be brought again: `voxgate` in the XDG cache. `None` when no variable says.
pub fn cache_dir(variables: &[(String, String)]) -> Option<PathBuf> {
    let path = |name: &str| variable(variables, name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = path("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| path("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("voxgate"))
}

impl Config {
    /// Reads the configuration. `file` may be absent only when `may_be_absent` (the home's own file, not one somebody named).
    ///
    /// # Errors
    /// [`ConfigErrors`] with every mistake of every source.
    pub fn load(file: &Path, may_be_absent: bool, variables: &[(String, String)], flags: &[Flag]) -> Result<Config, ConfigErrors> {
        let name = file.display().to_string();
        match read_file(file) {
            Ok(text) => load::load(Some((&name, &text)), variables, flags),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && may_be_absent => load::load(None, variables, flags),
            Err(e) => Err(ConfigErrors::one(Place::WholeFile(name), e.to_string())),
        }
    }

    /// Reads a configuration from text. `name` stands for the file in mistakes.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn from_text(name: &str, text: &str, variables: &[(String, String)], flags: &[Flag]) -> Result<Config, ConfigErrors> {
        load::load(Some((name, text)), variables, flags)
    }

    /// Every key with its value as TOML, secrets hidden, in the order of the example.
    pub fn shown(&self) -> Vec<(&'static str, String)> { keys::KEYS.iter().map(|key| (key.path, (key.show)(self))).collect() }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, format!("it is larger than {FILE_MAX} bytes")));
    }
    Ok(text)
}
