//! What people set at run time and expect to find again: the autonomy level. One small file, written whole.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{files, home::Home};
use crate::engine::mode::Autonomy;

const VERSION: u64 = 1;
const BYTES_MAX: u64 = 64 << 10;

/// The file and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    path: PathBuf,
    autonomy: Option<Autonomy>,
}

impl Settings {
    /// Reads the settings. A file that cannot be read is put aside, autonomy is `strict` then, and the second value says so
    /// in a sentence: what somebody had tightened is never loosened by a broken file.
    pub fn load(home: &Home) -> (Settings, Option<String>) {
        let path = home.settings_file();
        match read(&path) {
            Ok(autonomy) => (Settings { path, autonomy }, None),
            Err(why) => {
                let kept = files::set_aside(&path).map(|p| format!("; it was moved to {}", p.display())).unwrap_or_default();
                let warning = format!("{} cannot be read ({why}){kept}; autonomy is strict until somebody sets it", path.display());
                (Settings { path, autonomy: Some(Autonomy::Strict) }, Some(warning))
            }
        }
    }

    /// The level somebody set; `None` when nobody has, so that the configured one holds.
    pub fn autonomy(&self) -> Option<Autonomy> { self.autonomy }

    /// Sets the level and writes it down. The value in memory holds either way.
    ///
    /// # Errors
    /// What the system says when it could not be written; the old file is whole then.
    pub fn set_autonomy(&mut self, to: Autonomy) -> io::Result<()> {
        self.autonomy = Some(to);
        let text = json!({"version": VERSION, "autonomy": to.word()}).to_string();
        files::write_whole(&self.path, format!("{text}\n").as_bytes())
    }
}

fn read(path: &std::path::Path) -> Result<Option<Autonomy>, String> {
    let Some(bytes) = files::read_some(path, BYTES_MAX).map_err(|e| e.to_string())? else { return Ok(None) };
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    if value["version"] != VERSION {
        return Err(format!("it has version {}, this program reads version {VERSION}", value["version"]));
    }
    match &value["autonomy"] {
        Value::Null => Ok(None),
        given => given.as_str().and_then(Autonomy::from_word).map(Some).ok_or_else(|| format!("autonomy is {given}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_found_again_and_a_broken_file_is_strict() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let (mut settings, warning) = Settings::load(&home);
        assert_eq!((settings.autonomy(), warning), (None, None));
        settings.set_autonomy(Autonomy::Loose)?;
        assert_eq!(Settings::load(&home).0.autonomy(), Some(Autonomy::Loose));
        for broken in ["", "{", "[]", r#"{"version":9}"#, r#"{"version":1,"autonomy":"wild"}"#] {
            std::fs::write(home.settings_file(), broken)?;
            let (settings, warning) = Settings::load(&home);
            assert_eq!(settings.autonomy(), Some(Autonomy::Strict));
            assert!(warning.is_some_and(|w| w.contains("damaged-")) && !home.settings_file().exists());
        }
        Ok(())
    }

    #[test]
    fn a_failed_write_keeps_the_live_change_and_says_so() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path().join("gone"));
        let (mut settings, _) = Settings::load(&home);
        assert!(settings.set_autonomy(Autonomy::Strict).is_err());
        assert_eq!(settings.autonomy(), Some(Autonomy::Strict));
        Ok(())
    }
}
