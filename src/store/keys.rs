//! The two grades of key: the operator's token decides, a client's key only speaks and hears.
//!
//! Owns the files under `keys/`: `operator` and `clients/NAME`, one line each, 0600, made at the first start. A further
//! client gets a file of its own. `server::auth` asks; nothing here is ever printed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{files, home::Home, ids};
use crate::secret::Secret;

/// What a presented key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// REST control, mirror, page.
    Operator,
    /// `/v1/realtime` only.
    Client,
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or made.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A key that anybody could guess.
    #[error("{path} holds a key of {chars} characters, at least {KEY_CHARS_MIN} are needed; delete the file and a new one is made")]
    Short {
        /// Which.
        path: PathBuf,
        /// How long it is.
        chars: usize,
    },
    /// The machine gave no randomness.
    #[error(transparent)]
    NoRandomness(#[from] ids::NoRandomness),
}

/// Shortest key that is taken.
pub const KEY_CHARS_MIN: usize = 24;
/// Most client keys.
pub const CLIENTS_MAX: usize = 256;

/// All keys of a home.
#[derive(Clone, Debug)]
pub struct Keys {
    operator: Secret,
    clients: Vec<(String, Secret)>,
}

impl Keys {
    /// Reads the keys, and makes the operator's and one client's (`default`) when they are not there. Rights of others on
    /// the files are taken away.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn load_or_create(home: &Home) -> Result<Keys, KeysError> {
        let folder = home.keys_dir();
        let clients_dir = folder.join("clients");
        files::private_dir(&clients_dir).map_err(at(&clients_dir))?;
        let operator = read_or_make(&folder.join("operator"), "vgo_")?;
        let mut names = client_names(&clients_dir).map_err(at(&clients_dir))?;
        if names.is_empty() {
            names.push("default".to_string());
        }
        let clients = names.into_iter().map(|name| Ok((name.clone(), read_or_make(&clients_dir.join(&name), "vgc_")?))).collect::<Result<_, KeysError>>()?;
        Ok(Keys { operator, clients })
    }

    /// What a presented key may do; `None` for one that is none. Every key is compared, in constant time.
    pub fn grade(&self, presented: &str) -> Option<Grade> {
        let client = self.clients.iter().fold(false, |found, (_, key)| key.is(presented) | found);
        match (self.operator.is(presented), client) {
            (true, _) => Some(Grade::Operator),
            (_, true) => Some(Grade::Client),
            _ => None,
        }
    }

    /// The operator's token, for the commands that act for the operator on this machine.
    pub fn operator(&self) -> &Secret { &self.operator }

    /// The first client key and its name, for `link` and `doctor`.
    pub fn client(&self) -> Option<(&str, &Secret)> { self.clients.first().map(|(name, key)| (name.as_str(), key)) }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> KeysError + use<> {
    let path = path.to_path_buf();
    move |source| KeysError::Io { path, source }
}

fn read_or_make(path: &Path, prefix: &str) -> Result<Secret, KeysError> {
    let Some(bytes) = files::read_some(path, 4096).map_err(at(path))? else {
        let key = format!("{prefix}{}", ids::token()?);
        files::write_whole(path, format!("{key}\n").as_bytes()).map_err(at(path))?;
        return Ok(Secret::new(key));
    };
    if files::tighten(path, false).map_err(at(path))? {
        tracing::warn!(path = %path.display(), "others could read this key; they no longer can, but they may have read it");
    }
    let key = String::from_utf8_lossy(&bytes).trim().to_string();
    let chars = key.chars().count();
    if chars < KEY_CHARS_MIN { Err(KeysError::Short { path: path.to_path_buf(), chars }) } else { Ok(Secret::new(key)) }
}

fn client_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_str().map(str::to_string).filter(|n| ids::is_session_id(n));
        names.extend(name.filter(|_| entry.file_type().is_ok_and(|t| t.is_file())));
    }
    names.sort();
    names.truncate(CLIENTS_MAX);
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_graded() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let keys = Keys::load_or_create(&home)?;
        let again = Keys::load_or_create(&home)?;
        let client = again.client().ok_or("no client")?.1.expose().to_string();
        assert_eq!(keys.grade(again.operator().expose()), Some(Grade::Operator));
        assert_eq!(keys.grade(&client), Some(Grade::Client));
        for wrong in ["", "vgo_", &client[..client.len() - 1], &format!("{client} ")] {
            assert_eq!(keys.grade(wrong), None);
        }
        assert!(!format!("{keys:?}").contains(&client[4..]) && !format!("{keys:?}").contains(&keys.operator().expose()[4..]));
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn key_files_are_for_the_owner_alone_and_long_enough() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        Keys::load_or_create(&home)?;
        let file = home.keys_dir().join("operator");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
        Keys::load_or_create(&home)?;
        assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
        fs::write(&file, "short")?;
        assert!(matches!(Keys::load_or_create(&home), Err(KeysError::Short { chars: 5, .. })));
        Ok(())
    }
}
