//! Writing a log: what waits for the disk and what must not, and what is done when the disk refuses.

use std::path::{Path, PathBuf};

use super::chain::Chain;
use super::disk::Disk;
use super::{LINE_MAX, LogError, PENDING_MAX, READ_MAX, SYNC_EVERY_MS, compact, scan};
use crate::dialect::record;
use crate::engine::event::{Event, EventKind};
use crate::engine::mode::Posture;

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
    /// Where the chain of checksums stands behind the last framed record.
    chain: Chain,
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
            disk, path, id: id.to_string(), length: 0, last_seq: 0, chain: Chain::Start, pending: Vec::new(), tail_dirty: false, unsynced_since: None, cap, rotate_at: cap,
        }
    }

    pub(super) fn continue_at(&mut self, length: u64, last_seq: u64, chain: Chain) {
        (self.length, self.last_seq, self.chain) = (length, last_seq, chain);
    }

    pub(super) fn write_header(&mut self, created_ms: u64) -> Result<(), LogError> {
        self.chain = Chain::Start;
        self.pending.extend_from_slice(self.chain.framed(&scan::header(&self.id, created_ms, 0)).as_bytes());
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

    /// Writes an event. When the disk refuses, the record waits in memory and goes first with the next one, with one exception: a
    /// mode that is not plan must not be found at the next start unless it was written in time, so a notice takes its number.
    ///
    /// # Errors
    /// [`LogError::Io`]: not on the disk yet. [`LogError::Lost`]: too much waits, this record is gone. [`LogError::Order`].
    pub fn append(&mut self, event: &Event) -> Result<(), LogError> {
        if event.seq <= self.last_seq {
            return Err(LogError::Order { last: self.last_seq, got: event.seq });
        }
        let (before, behind) = (self.chain, self.pending.len());
        self.keep(event)?;
        let written = self.write_pending(self.is_due(event));
        if written.is_err() && is_loose(&event.kind) {
            self.chain = before;
            self.pending.truncate(behind);
            self.keep(&Event { kind: not_written(), ..event.clone() })?;
        }
        self.last_seq = event.seq;
        written?;
        self.rotate_if_large();
        Ok(())
    }

    /// Frames an event and lets it wait for the disk.
    fn keep(&mut self, event: &Event) -> Result<(), LogError> {
        let json = record::encode(event);
        // Frame and end are not worth counting exactly.
        if json.len() > LINE_MAX || self.pending.len() + json.len() > PENDING_MAX.max(LINE_MAX) || self.length >= READ_MAX {
            return Err(LogError::Lost(event.seq));
        }
        self.pending.extend_from_slice(self.chain.framed(&json).as_bytes());
        self.unsynced_since.get_or_insert(event.at_ms);
        Ok(())
    }

    /// Hands everything to the disk and waits until it has it.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.is_behind() || self.unsynced_since.is_some() { self.write_pending(true) } else { Ok(()) }
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
            Ok((file, length, chain)) => {
                self.disk = Box::new(file);
                (self.length, self.chain) = (length, chain);
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

/// Kinds whose loss would change what may happen next, or hide what has happened: modes, plans, questions, approvals, calls.
fn must_sync(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Transcript { .. } | EventKind::Todo(_) | EventKind::Speech { .. } | EventKind::Voice(_) | EventKind::Notice { .. })
}

/// A mode that lets more through than plan.
fn is_loose(kind: &EventKind) -> bool { matches!(kind, EventKind::Mode(mode) if mode.posture != Posture::Plan) }

/// What stands for a looser mode that the disk refused.
fn not_written() -> EventKind {
    EventKind::Notice { code: "mode_not_written".into(), message: "A change of mode could not be written in time, so after a restart it does not hold.".into() }
}
