//! The session log: one append-only file a conversation, each record with its length and checksum, replayed at start.
//!
//! Owns the files under `sessions/`. `session/driver` appends and replays; `sessions` commands read. It never interprets an
//! event beyond what repair and listing need; what a log means is the one fold, `Snapshot::apply`.
//!
//! A line is `LLLLLLLL H...H JSON\n`: the JSON's length and a checksum that binds it to the line before (see `chain`). The first line
//! is the header. One writer a file, kept by a lock on the file itself.

mod chain;
mod compact;
mod disk;
mod list;
mod recordings;
mod scan;
#[cfg(test)]
mod tests;
mod write;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use disk::Disk;
pub use list::Summary;
pub use scan::{Damage, DamageKind, Replay};
pub use write::SessionLog;

use super::{files, home::Home, ids};

/// Version of the file format that is written. Format 1, without a chain, is read and gone on with.
pub const FORMAT: u64 = 2;
/// A log larger than this is rewritten to what its state needs; the old file is kept once, as `ID.1.log`.
pub const CAP_BYTES: u64 = 64 << 20;
/// Longest record. Chosen: 16 times what a tool may answer, with room.
pub const LINE_MAX: usize = 16 << 20;
/// Largest file that is read at all; four times the cap.
pub const READ_MAX: u64 = 256 << 20;
/// Ordinary records wait at most this long for the disk, in milliseconds.
pub const SYNC_EVERY_MS: u64 = 200;
/// Records kept in memory while the disk refuses them, in bytes.
pub const PENDING_MAX: usize = 4 << 20;

/// Why a log could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The id could not be part of a file name, so no log has it.
    #[error("\"{0}\" is no conversation id")]
    BadId(String),
    /// No such log.
    #[error("there is no conversation {0}")]
    Unknown(String),
    /// A log with this id is there already.
    #[error("conversation {0} exists already")]
    Exists(String),
    /// Another writer holds it.
    #[error("the log of conversation {0} is being written by another process or task")]
    Held(String),
    /// A record is whole, but this program does not know it: a newer one wrote it. The file is untouched.
    #[error("{path}, byte {at}: {why}; the file was left as it is")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        at: u64,
        /// What is not known.
        why: String,
    },
    /// The disk refused. Records not yet written are kept in memory and written with the next one.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// So much waits for the disk that this record was not kept. The next replay shows the gap.
    #[error("the disk has refused for so long that event {0} could not be kept")]
    Lost(u64),
    /// A record's number does not follow the last one's.
    #[error("event {got} does not follow event {last}")]
    Order {
        /// Last number written.
        last: u64,
        /// Number given.
        got: u64,
    },
}

impl LogError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> LogError + use<> {
        let path = path.to_path_buf();
        move |source| LogError::Io { path, source }
    }
}

/// The folder of session logs.
#[derive(Clone, Debug)]
pub struct Sessions {
    dir: PathBuf,
    cap: u64,
}

impl Sessions {
    /// Those of a home.
    pub fn of(home: &Home) -> Self { Self::at(home.sessions_dir()) }

    /// Those in a folder, which must exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self { Self { dir: dir.into(), cap: CAP_BYTES } }

    /// With another size cap, in bytes.
    pub fn with_cap(self, cap: u64) -> Self { Self { cap, ..self } }

    /// Begins a log. `now_ms` is Unix milliseconds.
    ///
    /// # Errors
    /// [`LogError::Exists`], [`LogError::BadId`], [`LogError::Io`].
    pub fn create(&self, id: &str, now_ms: u64) -> Result<SessionLog, LogError> {
        let path = self.path(id)?;
        let made = files::private_options().read(true).append(true).create_new(true).open(&path);
        let file = match made {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(LogError::Exists(id.to_string())),
            made => made.map_err(LogError::io(&path))?,
        };
        lock(&file, id, &path)?;
        let mut log = SessionLog::begin(Box::new(file), path.clone(), id, self.cap);
        let begun = log.write_header(now_ms).and_then(|()| files::sync_parent(&path).map_err(LogError::io(&path)));
        if begun.is_err() {
            let _ = fs::remove_file(&path);
        }
        begun.map(|()| log)
    }

    /// Opens a log for writing and replays it. What cannot be read is copied beside it (`.damaged-N`), cut off, and reported
    /// in [`Replay::damage`].
    ///
    /// # Errors
    /// [`LogError::Unknown`], [`LogError::Held`], [`LogError::Foreign`], [`LogError::Io`].
    pub fn open(&self, id: &str) -> Result<(SessionLog, Replay), LogError> {
        let path = self.path(id)?;
        regular(&path, id)?;
        let file = files::private_options().read(true).append(true).open(&path).map_err(LogError::io(&path))?;
        lock(&file, id, &path)?;
        let mut replay = scan::replay(&path, id)?;
        let created_ms = replay.created_ms;
        scan::repair(&file, &path, &mut replay)?;
        let length = file.metadata().map_err(LogError::io(&path))?.len();
        let mut log = SessionLog::begin(Box::new(file), path, id, self.cap);
        log.continue_at(length, replay.last_seq(), replay.chain);
        if length == 0 {
            log.write_header(created_ms)?;
        }
        Ok((log, replay))
    }

    /// Replays a log without touching it, also while another process writes it.
    ///
    /// # Errors
    /// [`LogError::Unknown`], [`LogError::Foreign`], [`LogError::Io`].
    pub fn read(&self, id: &str) -> Result<Replay, LogError> {
        let path = self.path(id)?;
        regular(&path, id)?;
        scan::replay(&path, id)
    }

    /// Replays any file as a log, wherever it lies and whatever it is called, without touching it; its header says whose it is.
    ///
    /// # Errors
    /// [`LogError::Foreign`], [`LogError::Io`].
    pub fn read_file(path: &Path) -> Result<Replay, LogError> { scan::replay(path, "") }

    /// What is there, the one with the newest event first. Logs that cannot be read are listed as damaged.
    ///
    /// # Errors
    /// [`LogError::Io`] when the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Summary>, LogError> {
        let mut found: Vec<Summary> = self.ids()?.iter().map(|id| list::summary(&self.dir.join(format!("{id}.log")), id)).collect();
        found.sort_by(|a, b| (b.last_ms, &b.id).cmp(&(a.last_ms, &a.id)));
        Ok(found)
    }

    /// Deletes everything kept of a conversation. Answers how many files that were.
    ///
    /// # Errors
    /// [`LogError::Held`] while it is being written, [`LogError::Unknown`], [`LogError::Io`].
    pub fn wipe(&self, id: &str) -> Result<usize, LogError> {
        let path = self.path(id)?;
        regular(&path, id)?;
        let file = File::open(&path).map_err(LogError::io(&path))?;
        lock(&file, id, &path)?;
        let mut gone = 0;
        for name in self.names()?.iter().filter(|name| name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'))) {
            fs::remove_file(self.dir.join(name)).map_err(LogError::io(&path))?;
            gone += 1;
        }
        files::sync_parent(&path).map_err(LogError::io(&path))?;
        Ok(gone)
    }

    /// Ids of all conversations, in order of birth.
    fn ids(&self) -> Result<Vec<String>, LogError> {
        let named = self.names()?.into_iter().filter_map(|name| name.strip_suffix(".log").map(str::to_string));
        Ok(named.filter(|id| ids::is_session_id(id)).collect())
    }

    fn names(&self) -> Result<Vec<String>, LogError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(LogError::io(&self.dir))? {
            let entry = entry.map_err(LogError::io(&self.dir))?;
            names.extend(entry.file_name().to_str().map(str::to_string));
        }
        names.sort();
        Ok(names)
    }

    fn path(&self, id: &str) -> Result<PathBuf, LogError> {
        if !ids::is_session_id(id) {
            return Err(LogError::BadId(id.chars().take(80).collect()));
        }
        Ok(self.dir.join(format!("{id}.log")))
    }
}

/// A log is a plain file; a link in its place leads who knows where.
fn regular(path: &Path, id: &str) -> Result<(), LogError> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(LogError::Io { path: path.to_path_buf(), source: io::Error::other("this is not a plain file") }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(LogError::Unknown(id.to_string())),
        Err(e) => Err(LogError::io(path)(e)),
    }
}

fn lock(file: &File, id: &str, path: &Path) -> Result<(), LogError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => Err(LogError::Held(id.to_string())),
        Err(fs::TryLockError::Error(e)) => Err(LogError::io(path)(e)),
    }
}
