//! Recordings lie beside their conversation's log as `ID.N.opus`, so that whatever is rid of the log is rid of them.

use std::fs::File;
use std::path::PathBuf;

use super::{LogError, Sessions};
use crate::store::files;

/// Most recordings of one conversation: one begins with each start of the gateway that it is heard in.
const RECORDINGS_MAX: usize = 1_000;

impl Sessions {
    /// A new file for the sound of a conversation, readable by the owner alone.
    ///
    /// # Errors
    /// [`LogError::BadId`], [`LogError::Io`].
    pub fn new_recording(&self, id: &str) -> Result<File, LogError> {
        self.path(id)?;
        for n in 1..=RECORDINGS_MAX {
            let path = self.dir.join(format!("{id}.{n}.opus"));
            match files::private_options().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(LogError::io(&path)(error)),
            }
        }
        Err(LogError::io(&self.dir)(std::io::Error::other("too many recordings of this conversation")))
    }

    /// The recordings of a conversation, oldest first.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn recordings(&self, id: &str) -> Result<Vec<PathBuf>, LogError> {
        let mut found: Vec<(u32, PathBuf)> = self.names()?.into_iter().filter_map(|name| {
            let n = name.strip_prefix(id)?.strip_prefix('.')?.strip_suffix(".opus")?.parse().ok()?;
            Some((n, self.dir.join(&name)))
        }).collect();
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_numbered_and_go_with_their_conversation() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let sessions = Sessions::at(dir.path());
        drop(sessions.create("a1", 1)?);
        drop(sessions.create("a", 1)?);
        for _ in 0..2 { sessions.new_recording("a1")?; }
        sessions.new_recording("a")?;
        assert!(sessions.new_recording("../x").is_err());
        let names = |id: &str| -> Vec<String> { sessions.recordings(id).unwrap().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect() };
        assert_eq!(names("a1"), ["a1.1.opus", "a1.2.opus"]);
        assert_eq!(names("a"), ["a.1.opus"]);
        assert_eq!(sessions.list()?.len(), 2);
        assert_eq!(sessions.wipe("a1")?, 3);
        assert_eq!((names("a1").len(), names("a").len()), (0, 1));
        Ok(())
    }
}
