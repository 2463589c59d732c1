//! Reading a log: the longest valid prefix, what is wrong behind it, and putting that out of the way.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::chain::{Chain, LINE_BYTES, Line, is_known_shape};
use super::{FORMAT, LogError, READ_MAX};
use crate::dialect::record::{self, Folded};
use crate::engine::event::Event;
use crate::engine::snapshot::Snapshot;
use crate::store::files;

/// A log as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The conversation.
    pub id: String,
    /// Unix milliseconds of its birth; 0 when the header could not be read.
    pub created_ms: u64,
    /// In order.
    pub events: Vec<Event>,
    /// Every event after this number is there; before it only those that the state needs. 0: all are there.
    pub complete_after: u64,
    /// What could not be read, if anything.
    pub damage: Option<Damage>,
    /// Words of a mode record that this version does not know and that were folded to the strict side.
    pub folded: Vec<Folded>,
    /// Where the chain of checksums stands behind the last record that is believed.
    pub(super) chain: Chain,
}

impl Replay {
    /// `id` may be empty: then the header says it.
    pub(super) fn empty(id: &str) -> Self {
        Self { id: id.to_string(), created_ms: 0, events: Vec::new(), complete_after: 0, damage: None, folded: Vec::new(), chain: Chain::Start }
    }

    /// Version of the file's format.
    pub fn format(&self) -> u64 { self.chain.format() }

    /// The last link of the chain of checksums in hex, which names everything before it; empty for a log of format 1.
    pub fn head(&self) -> String { self.chain.head() }

    /// The fold of all events.
    pub fn snapshot(&self) -> Snapshot {
        let mut state = Snapshot::default();
        self.events.iter().for_each(|event| state.apply(event));
        state
    }

    /// Number of the last event; 0 for none.
    pub fn last_seq(&self) -> u64 { self.events.last().map_or(0, |e| e.seq) }

    /// True when what was lost may have been the order to plan: whoever opens the conversation then puts it in plan mode and
    /// says why, whatever the fold says.
    pub fn must_plan(&self) -> bool { self.damage.as_ref().is_some_and(|d| d.may_hide_plan) }
}

/// What could not be read of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong.
    pub kind: DamageKind,
    /// Where the readable part ends, in bytes.
    pub at: u64,
    /// How many bytes lie behind it.
    pub lost_bytes: u64,
    /// A change to plan mode may be among what was lost.
    pub may_hide_plan: bool,
    /// Where the unreadable part was copied; `None` when nothing was cut off (or nobody has repaired it yet).
    pub copy: Option<PathBuf>,
}

/// Kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The last record is not whole: the program or the machine stopped while it was written.
    Torn,
    /// A record is not what was written. Everything from there on is not believed.
    Corrupt,
    /// The header is not readable, so nothing of the file is believed.
    Header,
    /// Numbers are missing in between: the disk had refused. What follows the gap is used.
    Gap,
    /// The file is larger than any log may be; nothing of it is believed.
    TooLarge,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            DamageKind::Torn => write!(f, "the last {} bytes of the log are half a record", self.lost_bytes)?,
            DamageKind::Corrupt => write!(f, "the log is damaged from byte {} on, {} bytes are not believed", self.at, self.lost_bytes)?,
            DamageKind::Header => write!(f, "the log's first line is damaged, so nothing in it is believed")?,
            DamageKind::Gap => write!(f, "the log misses events that the disk had refused")?,
            DamageKind::TooLarge => write!(f, "the log has {} bytes, more than any log may have, so nothing in it is believed", self.lost_bytes)?,
        }
        if let Some(copy) = &self.copy {
            write!(f, "; a copy is in {}", copy.display())?;
        }
        if self.may_hide_plan { write!(f, "; plan mode is on to be safe") } else { Ok(()) }
    }
}

/// The header's JSON.
pub(super) fn header(id: &str, created_ms: u64, compacted_to: u64) -> String {
    json!({"voxgate_log": FORMAT, "id": id, "created_ms": created_ms, "compacted_to": compacted_to}).to_string()
}

/// What was read.
pub(super) enum Piece {
    /// A line.
    Line(Line),
    /// The end of the file.
    End,
}

/// Reads the next line. `buffer` is reused; `chain` moves on with every whole record.
pub(super) fn next_piece(reader: &mut impl BufRead, buffer: &mut Vec<u8>, chain: &mut Chain) -> io::Result<Piece> {
    buffer.clear();
    if reader.by_ref().take(LINE_BYTES).read_until(b'\n', buffer)? == 0 {
        return Ok(Piece::End);
    }
    let ended = buffer.last() == Some(&b'\n');
    let line = &buffer[..buffer.len() - usize::from(ended)];
    Ok(Piece::Line(chain.judge(line, ended)))
}

/// Reads a whole log without changing it.
pub(super) fn replay(path: &Path, id: &str) -> Result<Replay, LogError> {
    let file = File::open(path).map_err(LogError::io(path))?;
    let length = file.metadata().map_err(LogError::io(path))?.len();
    let mut replay = Replay::empty(id);
    if length > READ_MAX {
        replay.damage = Some(Damage { kind: DamageKind::TooLarge, at: 0, lost_bytes: length, may_hide_plan: true, copy: None });
        return Ok(replay);
    }
    replay_from(&mut BufReader::with_capacity(1 << 16, file), length, path, replay)
}

/// Reads a log of `length` bytes from wherever it comes. `path` is for errors.
pub(super) fn replay_from(reader: &mut impl BufRead, length: u64, path: &Path, mut replay: Replay) -> Result<Replay, LogError> {
    let mut buffer = Vec::new();
    let mut at = 0;
    let mut first = true;
    loop {
        let believed = replay.chain;
        let piece = next_piece(reader, &mut buffer, &mut replay.chain).map_err(LogError::io(path))?;
        let damaged = |kind, may_hide_plan| Some(Damage { kind, at, lost_bytes: length.saturating_sub(at), may_hide_plan, copy: None });
        let line = match piece {
            Piece::End if first => { replay.damage = damaged(DamageKind::Header, true); return Ok(replay) }
            Piece::End => return Ok(replay),
            Piece::Line(line) => line,
        };
        let found = match line {
            Line::Json(json) if first => match read_header(&json, path, &mut replay)? {
                true => None,
                false => damaged(DamageKind::Header, true),
            },
            _ if first => {
                refuse_another_format(&buffer, path)?;
                damaged(DamageKind::Header, true)
            }
            Line::Torn(start) => damaged(DamageKind::Torn, record::could_be_mode(&start)),
            Line::Corrupt => damaged(DamageKind::Corrupt, true),
            Line::Json(json) | Line::Unended(json) => take(&json, at, length, path, &mut replay)?,
        };
        if found.is_some() {
            (replay.damage, replay.chain) = (found, believed);
            return Ok(replay);
        }
        at += buffer.len() as u64;
        first = false;
    }
}

/// Adds an event. A number that steps back is damage; one that steps over is a gap and reading goes on.
fn take(json: &str, at: u64, length: u64, path: &Path, replay: &mut Replay) -> Result<Option<Damage>, LogError> {
    let decoded = record::decode(json).map_err(|e| LogError::Foreign { path: path.to_path_buf(), at, why: e.to_string() })?;
    let (seq, last) = (decoded.event.seq, replay.last_seq());
    if seq <= last {
        return Ok(Some(Damage { kind: DamageKind::Corrupt, at, lost_bytes: length.saturating_sub(at), may_hide_plan: true, copy: None }));
    }
    if seq > last + 1 && seq > replay.complete_after + 1 {
        replay.damage = Some(Damage { kind: DamageKind::Gap, at, lost_bytes: 0, may_hide_plan: true, copy: None });
    }
    replay.folded.extend(decoded.folded);
    replay.events.push(decoded.event);
    Ok(None)
}

/// False when the line is no header of this conversation.
fn read_header(json: &str, path: &Path, replay: &mut Replay) -> Result<bool, LogError> {
    let value: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    let Some(version) = value["voxgate_log"].as_u64() else { return Ok(false) };
    if version != replay.chain.format() {
        return Err(another_format(version, path));
    }
    replay.created_ms = value["created_ms"].as_u64().unwrap_or(0);
    replay.complete_after = value["compacted_to"].as_u64().unwrap_or(0);
    let Some(id) = value["id"].as_str() else { return Ok(false) };
    if replay.id.is_empty() {
        replay.id = id.to_string();
    }
    Ok(id == replay.id)
}

/// A first line of a shape that is not known here, and that names a version: a newer program wrote the file, and it is left alone.
fn refuse_another_format(line: &[u8], path: &Path) -> Result<(), LogError> {
    const MARK: &[u8] = b"\"voxgate_log\":";
    let found = line.windows(MARK.len()).position(|w| w == MARK).filter(|_| !is_known_shape(line));
    let digits: String = found.map(|at| line[at + MARK.len()..].iter().take(9).map(|b| char::from(*b)).take_while(char::is_ascii_digit).collect()).unwrap_or_default();
    match digits.parse::<u64>() {
        Ok(version) if version > FORMAT => Err(another_format(version, path)),
        _ => Ok(()),
    }
}

fn another_format(version: u64, path: &Path) -> LogError {
    LogError::Foreign { path: path.to_path_buf(), at: 0, why: format!("the log has format {version}, this program reads formats 1 to {FORMAT}; open it with the program that wrote it") }
}

/// Copies what was not believed beside the log and cuts it off; mends a missing line end. `file` is the locked log.
pub(super) fn repair(file: &File, path: &Path, replay: &mut Replay) -> Result<(), LogError> {
    let fail = || LogError::io(path);
    if let Some(damage) = replay.damage.as_mut().filter(|d| d.kind != DamageKind::Gap) {
        if damage.lost_bytes > 0 {
            let copy = files::aside_name(path);
            copy_from(path, damage.at, &copy).map_err(fail())?;
            damage.copy = Some(copy);
        }
        file.set_len(damage.at).map_err(fail())?;
        file.sync_all().map_err(fail())?;
        return files::sync_parent(path).map_err(fail());
    }
    end_last_line(file).map_err(fail())
}

fn copy_from(path: &Path, at: u64, to: &Path) -> io::Result<()> {
    let mut from = File::open(path)?;
    from.seek(SeekFrom::Start(at))?;
    let mut copy = files::private_options().write(true).create(true).truncate(true).open(to)?;
    io::copy(&mut from, &mut copy)?;
    copy.sync_all()
}

fn end_last_line(mut file: &File) -> io::Result<()> {
    use std::io::Write;
    let mut last = [0];
    if file.seek(SeekFrom::End(-1)).is_ok() && file.read(&mut last)? == 1 && last[0] != b'\n' {
        file.write_all(b"\n")?;
        file.sync_all()?;
    }
    Ok(())
}
