//! The two grades of key: the operator's token decides, a client's key only speaks and hears.
//!
//! Owns the files under `keys/`: `operator` and `clients/NAME`, one line each, 0600. The operator's and the client `default` are made at
//! the first start and lie there as they are, for the commands of this machine. A further client gets a file of its own that holds the
//! SHA-256 of its key and no more: the key has 256 random bits, so nothing slower is needed. `server::auth` asks; nothing here is printed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

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
    /// Another client has this name.
    #[error("there is a client {0} already; revoke it first, or take another name")]
    Taken(String),
    /// A name that cannot be a file's.
    #[error("{0:?} is no name for a client: use 1 to 64 letters, digits, - and _, a letter or digit first")]
    BadName(String),
    /// As many as there may be.
    #[error("there are {CLIENTS_MAX} clients already; revoke one that is not needed")]
    TooMany,
    /// The machine gave no randomness.
    #[error(transparent)]
    NoRandomness(#[from] ids::NoRandomness),
}

/// Shortest key that is taken.
pub const KEY_CHARS_MIN: usize = 24;
/// Most client keys.
pub const CLIENTS_MAX: usize = 256;

/// What a file begins with that holds a digest.
const HASHED: &str = "sha256:";

/// A client and its key, or what is kept of it.
#[derive(Clone, Debug)]
struct Client {
    name: String,
    digest: [u8; 32],
    /// The key itself, where it lies on this machine.
    key: Option<Secret>,
    added_s: Option<u64>,
}

/// A client as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Unix seconds at which it was added, where that is known.
    pub added_s: Option<u64>,
    /// Its key lies on this machine, for the machine's own commands.
    pub kept: bool,
}

/// All keys of a home.
#[derive(Clone, Debug)]
pub struct Keys {
    operator: Secret,
    clients: Vec<Client>,
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
        let clients = names.into_iter().map(|name| client(&clients_dir, name)).collect::<Result<_, KeysError>>()?;
        Ok(Keys { operator, clients })
    }

    /// Reads the clients again, as they were added and revoked meanwhile. The operator's token stays what it was.
    ///
    /// # Errors
    /// [`KeysError`]; the keys are as before then.
    pub fn reload(&mut self, home: &Home) -> Result<(), KeysError> {
        let clients_dir = home.keys_dir().join("clients");
        let names = client_names(&clients_dir).map_err(at(&clients_dir))?;
        let read = |name: String| match client_file(&clients_dir, &name) {
            // Revoked between the list and the look.
            Ok(None) => None,
            Ok(Some(client)) => Some(Ok(client)),
            Err(error) => Some(Err(error)),
        };
        self.clients = names.into_iter().filter_map(read).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// When a client was added or revoked last, in Unix milliseconds; `None` where the system does not say.
    pub fn changed_ms(home: &Home) -> Option<u64> {
        let changed = fs::metadata(home.keys_dir().join("clients")).and_then(|m| m.modified()).ok()?;
        changed.duration_since(std::time::UNIX_EPOCH).ok().map(|age| age.as_millis() as u64)
    }

    /// Makes a key for a client of this name. It is told here and kept nowhere. `now_s` is Unix seconds.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn add(home: &Home, name: &str, now_s: u64) -> Result<Secret, KeysError> {
        if !ids::is_session_id(name) { return Err(KeysError::BadName(name.to_string())) }
        let clients_dir = home.keys_dir().join("clients");
        files::private_dir(&clients_dir).map_err(at(&clients_dir))?;
        let names = client_names(&clients_dir).map_err(at(&clients_dir))?;
        if names.iter().any(|n| n == name) { return Err(KeysError::Taken(name.to_string())) }
        if names.len() >= CLIENTS_MAX { return Err(KeysError::TooMany) }
        let key = format!("vgc_{}", ids::token()?);
        let path = clients_dir.join(name);
        let digest: String = digest(&key).iter().map(|byte| format!("{byte:02x}")).collect();
        files::write_whole(&path, format!("{HASHED}{digest} added={now_s}\n").as_bytes()).map_err(at(&path))?;
        Ok(Secret::new(key))
    }

    /// Takes a client's key away. False: there is no such client.
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn revoke(home: &Home, name: &str) -> Result<bool, KeysError> {
        if !ids::is_session_id(name) { return Ok(false) }
        let path = home.keys_dir().join("clients").join(name);
        match fs::remove_file(&path).and_then(|()| files::sync_parent(&path)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(at(&path)(e)),
        }
    }

    /// The clients, by name.
    pub fn list(&self) -> Vec<Listed> {
        self.clients.iter().map(|c| Listed { name: c.name.clone(), added_s: c.added_s, kept: c.key.is_some() }).collect()
    }

    /// What a presented key may do; `None` for one that is none. Every key is compared, in constant time.
    pub fn grade(&self, presented: &str) -> Option<Grade> {
        let client = self.stands(&digest(presented));
        match (self.operator.is(presented), client) {
            (true, _) => Some(Grade::Operator),
            (_, true) => Some(Grade::Client),
            _ => None,
        }
    }

    /// The client's key whose SHA-256 this is is one. Every key is compared, in constant time.
    pub fn stands(&self, digest: &[u8; 32]) -> bool { self.clients.iter().fold(false, |found, client| found | bool::from(client.digest.ct_eq(digest))) }

    /// The operator's token, for the commands that act for the operator on this machine.
    pub fn operator(&self) -> &Secret { &self.operator }

    /// The first client key that lies on this machine and its name, for the machine's own commands.
    pub fn client(&self) -> Option<(&str, &Secret)> { self.clients.iter().find_map(|c| c.key.as_ref().map(|key| (c.name.as_str(), key))) }
}

fn digest(key: &str) -> [u8; 32] { Sha256::digest(key.as_bytes()).into() }

/// The client of this name, made where it is not there.
fn client(folder: &Path, name: String) -> Result<Client, KeysError> {
    if let Some(client) = client_file(folder, &name)? { return Ok(client) }
    let key = read_or_make(&folder.join(&name), "vgc_")?;
    Ok(Client { name, digest: digest(key.expose()), key: Some(key), added_s: None })
}

/// The client of this name, if there is one.
fn client_file(folder: &Path, name: &str) -> Result<Option<Client>, KeysError> {
    let path = folder.join(name);
    let Some(bytes) = files::read_some(&path, 4096).map_err(at(&path))? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some(hashed) = text.trim().strip_prefix(HASHED) else {
        let key = read_or_make(&path, "vgc_")?;
        return Ok(Some(Client { name: name.to_string(), digest: digest(key.expose()), key: Some(key), added_s: None }));
    };
    let mut words = hashed.split_whitespace();
    let digest = words.next().and_then(unhex).ok_or_else(|| KeysError::Short { path: path.clone(), chars: hashed.len() })?;
    let added_s = words.find_map(|word| word.strip_prefix("added=")).and_then(|n| n.parse().ok());
    Ok(Some(Client { name: name.to_string(), digest, key: None, added_s }))
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() { return None }
    let mut out = [0; 32];
    for (at, byte) in out.iter_mut().enumerate() { *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()? }
    Some(out)
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

    #[test]
    fn a_named_client_is_kept_as_a_digest_until_it_is_revoked() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let mut keys = Keys::load_or_create(&home)?;
        let desk = Keys::add(&home, "desk", 1_800_000_000)?;
        assert_eq!(keys.grade(desk.expose()), None, "until it looks again");
        keys.reload(&home)?;
        assert_eq!(keys.grade(desk.expose()), Some(Grade::Client));
        let file = fs::read_to_string(home.keys_dir().join("clients/desk"))?;
        assert!(file.starts_with("sha256:") && !file.contains(&desk.expose()[4..]), "{file}");
        let list = keys.list();
        assert_eq!(list.iter().map(|l| (l.name.as_str(), l.added_s, l.kept)).collect::<Vec<_>>(), [("default", None, true), ("desk", Some(1_800_000_000), false)]);
        assert_eq!(keys.client().map(|(name, _)| name), Some("default"), "the one whose key is here");
        assert!(matches!(Keys::add(&home, "desk", 0), Err(KeysError::Taken(_))));
        for bad in ["", "../operator", "a/b", "a b", "operator\n"] {
            assert!(matches!(Keys::add(&home, bad, 0), Err(KeysError::BadName(_))) && !Keys::revoke(&home, bad)?, "{bad:?}");
        }
        assert!(Keys::revoke(&home, "desk")? && !Keys::revoke(&home, "desk")?);
        keys.reload(&home)?;
        assert_eq!(keys.grade(desk.expose()), None);
        assert_ne!(Keys::add(&home, "desk", 0)?.expose(), desk.expose(), "the same name is another key");
        fs::write(home.keys_dir().join("clients/odd"), "sha256:12")?;
        assert!(keys.reload(&home).is_err() && keys.list().len() == 1, "what cannot be read changes nothing");
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
