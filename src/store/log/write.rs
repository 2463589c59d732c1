//! Writing a log: what waits for the disk and what must not, and what is done when the disk refuses.

use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::{LINE_MAX, LogError, PENDING_MAX, READ_MAX, SYNC_EVERY_MS, compact, scan};
use crate::dialect::record;
use crate::engine::event::{Event, EventKind};

/// The one writer of a log. Dropping it lets the lock go.
///
/// Mode, plan, question and approval records are on the disk when `append` answers; others at most 200 ms later, which the
/// owner sees to by calling [`SessionLog::sync`] when it has been quiet ([`SessionLog::unsynced_since`]).
pub struct SessionLog {
    disk: Box<dyn Disk>,
    path: PathBuf,
    id: String,
    /// Bytes known to be good.
    length: u64,
    last_seq: u64,
    /// Framed records the disk has not taken.
    pending: Vec<u8>,
    /// Bytes behind `length` may be there and must go first.
    tail_dirty: bool,
    unsynced_since: Option<u64>,
    cap: u64,
    rotate_at: u64,
}

impl std::fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLog").field("path", &self.path).field("length", &self.length).field("last_seq", &self.last_seq).finish_non_exhaustive()
    }
}

impl SessionLog {
    pub(super) fn begin(disk: Box<dyn Disk>, path: PathBuf, id: &str, cap: u64) -> Self {
        Self {
            disk, path, id: id.to_string(), length: 0, last_seq: 0, pending: Vec::new(), tail_dirty: false, unsynced_since: None, cap, rotate_at: cap,
        }
    }

    pub(super) fn continue_at(&mut self, length: u64, last_seq: u64) {
        self.length = length;
        self.last_seq = last_seq;
    }

    pub(super) fn write_header(&mut self, created_ms: u64) -> Result<(), LogError> {
        self.pending.extend_from_slice(scan::framed(&scan::header(&self.id, created_ms, 0)).as_bytes());
        self.write_pending(true)
    }

    /// The conversation.
    pub fn id(&self) -> &str { &self.id }

    /// The file.
    pub fn path(&self) -> &Path { &self.path }

    /// True while the disk has not taken everything: records wait in memory.
    pub fn is_behind(&self) -> bool { !self.pending.is_empty() }

    /// Time of the oldest record that the disk may not have yet, in Unix milliseconds as the events carry it.
    pub fn unsynced_since(&self) -> Option<u64> { self.unsynced_since }

    /// Writes an event that holds whether it can be written or not (a tightening, something that was said). When the disk
    /// refuses, the record waits in memory and goes first with the next one.
    ///
    /// # Errors
    /// [`LogError::Io`]: not on the disk yet. [`LogError::Lost`]: too much waits, this record is gone. [`LogError::Order`].
    pub fn append(&mut self, event: &Event) -> Result<(), LogError> {
        let line = self.line_of(event)?;
        if self.pending.len() + line.len() > PENDING_MAX.max(LINE_MAX) || self.length >= READ_MAX {
            return Err(LogError::Lost(event.seq));
        }
        self.pending.extend_from_slice(line.as_bytes());
        self.last_seq = event.seq;
        self.unsynced_since.get_or_insert(event.at_ms);
        self.write_pending(self.is_due(event))?;
        self.rotate_if_large();
        Ok(())
    }

    /// Writes an event that must not hold unless it is written (a loosening): when the disk refuses, nothing of it stays,
    /// neither in memory nor in the file, and its number is free again.
    ///
    /// # Errors
    /// As [`SessionLog::append`]; the caller then does not apply the event.
    pub fn append_first(&mut self, event: &Event) -> Result<(), LogError> {
        let line = self.line_of(event)?;
        if self.is_behind() {
            self.write_pending(true)?;
        }
        self.pending.extend_from_slice(line.as_bytes());
        if let Err(error) = self.write_pending(true) {
            self.pending.clear();
            return Err(error);
        }
        self.last_seq = event.seq;
        self.rotate_if_large();
        Ok(())
    }

    /// Hands everything to the disk and waits until it has it.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.is_behind() || self.unsynced_since.is_some() { self.write_pending(true) } else { Ok(()) }
    }

    fn line_of(&self, event: &Event) -> Result<String, LogError> {
        if event.seq <= self.last_seq {
            return Err(LogError::Order { last: self.last_seq, got: event.seq });
        }
        let json = record::encode(event);
        if json.len() > LINE_MAX { Err(LogError::Lost(event.seq)) } else { Ok(scan::framed(&json)) }
    }

    fn is_due(&self, event: &Event) -> bool {
        must_sync(&event.kind) || self.unsynced_since.is_some_and(|since| event.at_ms.saturating_sub(since) >= SYNC_EVERY_MS)
    }

    /// On failure the file is cut back to what it was, so that nothing half written lies before the next record and nothing
    /// that was reported as refused is found at the next start.
    fn write_pending(&mut self, sync: bool) -> Result<(), LogError> {
        let tried = self.try_write(sync);
        if tried.is_err() {
            self.tail_dirty = self.disk.cut(self.length).is_err();
        }
        tried.map_err(LogError::io(&self.path))
    }

    fn try_write(&mut self, sync: bool) -> std::io::Result<()> {
        if self.tail_dirty {
            self.disk.cut(self.length)?;
            self.tail_dirty = false;
        }
        self.disk.add(&self.pending)?;
        if sync {
            self.disk.sync()?;
            self.unsynced_since = None;
        }
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// A rewrite that fails leaves the old file in use and is tried again a quarter of the cap later.
    fn rotate_if_large(&mut self) {
        if self.length < self.rotate_at {
            return;
        }
        match compact::rewrite(&self.path, &self.id) {
            Ok((file, length)) => {
                self.disk = Box::new(file);
                self.length = length;
                self.unsynced_since = None;
                self.rotate_at = self.cap.max(length + self.cap / 4);
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the session log could not be rewritten");
                self.rotate_at = self.length + self.cap / 4;
            }
        }
    }
}

/// Kinds whose loss would change what may happen next.
fn must_sync(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Mode(_) | EventKind::Still(_) | EventKind::Draft { .. } | EventKind::Presented(_) | EventKind::PlanDecided { .. } | EventKind::Comment(_) | EventKind::Continued { .. } | EventKind::Question(_)
            | EventKind::ApprovalRequested(_) | EventKind::ApprovalResolved { .. } | EventKind::Started { .. } | EventKind::Ended { .. }
    )
}
