//! The folders of one installation, and the lock that says which process holds them.
//!
//! Under `VOXGATE_HOME` lie `config.toml`, `tools/`, `keys/` and `data/`; without it the XDG folders are used. The variables
//! are handed in by `config`, the one place that reads them.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files;

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// No variable says where.
    #[error("none of VOXGATE_HOME, XDG_CONFIG_HOME, XDG_DATA_HOME and HOME says where to keep files; set VOXGATE_HOME")]
    Nowhere,
    /// A folder cannot be made or entered.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds the data folder.
    #[error("{path} is held by {holder}")]
    Held {
        /// The data folder.
        path: PathBuf,
        /// Who it is.
        holder: Holder,
    },
}

/// The process that holds a data folder, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id; 0 when unknown.
    pub pid: u32,
    /// `serve`, `talk`, ...; empty when unknown.
    pub what: String,
    /// The page's or gateway's address; empty while it has none.
    pub address: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, self.address.as_str()) {
            (0, _) => write!(f, "another voxgate that is just starting or stopping"),
            (pid, "") => write!(f, "voxgate {} (process {pid})", self.what),
            (pid, address) => write!(f, "voxgate {} (process {pid}); join it at {address}", self.what),
        }
    }
}

/// Where everything lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
}

impl Home {
    /// Everything under one folder, as `VOXGATE_HOME` has it.
    pub fn under(root: impl AsRef<Path>) -> Home {
        Home { config: root.as_ref().to_path_buf(), data: root.as_ref().join("data") }
    }

    /// Finds the home by the variables `VOXGATE_HOME`, `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `HOME`. An empty variable counts
    /// as unset, and so does a relative XDG path (XDG base directory specification).
    ///
    /// # Errors
    /// [`HomeError::Nowhere`].
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Home, HomeError> {
        let path = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(root) = path("VOXGATE_HOME") {
            return Ok(Home::under(root));
        }
        let xdg = |name: &str, under_home: &str| {
            path(name).filter(|p| p.is_absolute()).or_else(|| path("HOME").map(|home| home.join(under_home))).map(|p| p.join("voxgate"))
        };
        let config = xdg("XDG_CONFIG_HOME", ".config").ok_or(HomeError::Nowhere)?;
        let data = xdg("XDG_DATA_HOME", ".local/share").ok_or(HomeError::Nowhere)?;
        Ok(Home { config, data })
    }

    /// Makes the folders that are missing, for the owner alone (0700).
    ///
    /// # Errors
    /// [`HomeError::Io`] with the folder that could not be made.
    pub fn create(&self) -> Result<(), HomeError> {
        for folder in [&self.config, &self.data, &self.keys_dir(), &self.sessions_dir(), &self.notes_dir(), &self.trash_dir()] {
            files::private_dir(folder).map_err(|source| HomeError::Io { path: folder.clone(), source })?;
        }
        files::tighten(&self.keys_dir(), true).map_err(|source| HomeError::Io { path: self.keys_dir(), source })?;
        Ok(())
    }

    /// `config.toml`, which may be absent.
    pub fn config_file(&self) -> PathBuf { self.config.join("config.toml") }
    /// Tool manifests of the operator's; may be absent.
    pub fn tools_dir(&self) -> PathBuf { self.config.join("tools") }
    /// Operator token and client keys.
    pub fn keys_dir(&self) -> PathBuf { self.config.join("keys") }
    /// What the gateway writes.
    pub fn data_dir(&self) -> &Path { &self.data }
    /// Session logs.
    pub fn sessions_dir(&self) -> PathBuf { self.data.join("sessions") }
    /// Notes of the notes tool.
    pub fn notes_dir(&self) -> PathBuf { self.data.join("notes") }
    /// Where deleted notes go.
    pub fn trash_dir(&self) -> PathBuf { self.data.join("trash") }
    /// The mirror of plans, a folder for each conversation.
    pub fn plans_dir(&self) -> PathBuf { self.data.join("plans") }
    /// The todo mirror.
    pub fn todos_file(&self) -> PathBuf { self.data.join("agent_todos.json") }
    /// What was set at run time.
    pub fn settings_file(&self) -> PathBuf { self.data.join("settings.json") }
}

/// Held for as long as a process uses the data folder. Dropping it, or dying, lets go.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl HomeLock {
    /// Takes the data folder for this process. `what` is the command (`serve`, `talk`). The folder must exist.
    ///
    /// # Errors
    /// [`HomeError::Held`] says who has it; [`HomeError::Io`].
    pub fn take(home: &Home, what: &str) -> Result<HomeLock, HomeError> {
        let path = home.data.join("lock");
        let io = |source| HomeError::Io { path: path.clone(), source };
        let mut file = files::private_options().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(HomeError::Held { path: home.data.clone(), holder: read_holder(&mut file) }),
            Err(fs::TryLockError::Error(e)) => return Err(io(e)),
        }
        let holder = Holder { pid: std::process::id(), what: what.to_string(), address: String::new() };
        let mut lock = HomeLock { file, path, holder };
        lock.write()?;
        Ok(lock)
    }

    /// Says where others can join, once that is known.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn set_address(&mut self, address: &str) -> Result<(), HomeError> {
        self.holder.address = address.to_string();
        self.write()
    }

    fn write(&mut self) -> Result<(), HomeError> {
        let text = json!({"pid": self.holder.pid, "what": self.holder.what, "address": self.holder.address}).to_string();
        let written = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).and_then(|_| self.file.write_all(text.as_bytes()));
        written.map_err(|source| HomeError::Io { path: self.path.clone(), source })
    }
}

/// Who holds the data folder now; `None` when nobody does.
///
/// # Errors
/// [`HomeError::Io`].
pub fn holder(home: &Home) -> Result<Option<Holder>, HomeError> {
    let path = home.data.join("lock");
    let io = |source| HomeError::Io { path: path.clone(), source };
    let mut file = match File::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(io)?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(fs::TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file))),
        Err(fs::TryLockError::Error(e)) => Err(io(e)),
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let _ = file.take(4096).read_to_string(&mut text);
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let word = |name: &str| value[name].as_str().unwrap_or("").to_string();
    Holder { pid: value["pid"].as_u64().and_then(|p| u32::try_from(p).ok()).unwrap_or(0), what: word("what"), address: word("address") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(list: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let list: Vec<(String, String)> = list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        move |name| list.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone())
    }

    #[test]
    fn a_home_is_found_by_the_variables() -> Result<(), HomeError> {
        let home = Home::find(vars(&[("VOXGATE_HOME", "/v"), ("HOME", "/h")]))?;
        assert_eq!((home.config_file(), home.sessions_dir()), ("/v/config.toml".into(), "/v/data/sessions".into()));
        let home = Home::find(vars(&[("VOXGATE_HOME", ""), ("HOME", "/h"), ("XDG_DATA_HOME", "/d"), ("XDG_CONFIG_HOME", "rel")]))?;
        assert_eq!((home.keys_dir(), home.todos_file()), ("/h/.config/voxgate/keys".into(), "/d/voxgate/agent_todos.json".into()));
        assert!(matches!(Home::find(vars(&[("XDG_DATA_HOME", "/d")])), Err(HomeError::Nowhere)));
        Ok(())
    }

    #[test]
    fn the_second_process_says_who_holds_it() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        assert_eq!(holder(&home)?, None);
        let mut lock = HomeLock::take(&home, "serve")?;
        let early = HomeLock::take(&home, "talk").map(drop).map_err(|e| e.to_string());
        assert!(early.is_err_and(|e| e.contains(&format!("held by voxgate serve (process {})", std::process::id()))));
        lock.set_address("http://127.0.0.1:8710")?;
        let late = HomeLock::take(&home, "talk").map(drop).map_err(|e| e.to_string());
        assert!(late.is_err_and(|e| e.ends_with("join it at http://127.0.0.1:8710")));
        assert_eq!(holder(&home)?.map(|h| h.what), Some("serve".into()));
        drop(lock);
        assert!(HomeLock::take(&home, "talk").is_ok());
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_for_the_owner_alone() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path().join("new"));
        home.create()?;
        home.create()?;
        for folder in [home.keys_dir(), home.sessions_dir(), home.data_dir().to_path_buf(), home.notes_dir(), home.trash_dir()] {
            assert_eq!(fs::metadata(&folder)?.permissions().mode() & 0o777, 0o700, "{}", folder.display());
        }
        Ok(())
    }
}
