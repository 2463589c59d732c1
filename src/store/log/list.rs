//! One line about a log without holding it in memory: only the records a list shows are decoded.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::READ_MAX;
use super::chain::{Chain, Line};
use super::scan::{Piece, next_piece};
use crate::dialect::record;
use crate::engine::event::{Event, EventKind, Role};
use crate::engine::mode::Posture;
use crate::engine::plan::clip;

/// One conversation of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// First words a person said to the agent, at most 80 characters; empty when nobody has spoken.
    pub title: String,
    /// Unix milliseconds of its birth.
    pub started_ms: u64,
    /// Unix milliseconds of its last event; its birth when there is none.
    pub last_ms: u64,
    /// What it would be opened in: `plan` or `default` (a loosened mode is never restored).
    pub mode: &'static str,
    /// Number of its last event.
    pub last_seq: u64,
    /// Part of it cannot be read; opening it says what.
    pub damaged: bool,
}

/// What a log says of itself. A log that cannot be read at all is an empty, damaged line.
pub(super) fn summary(path: &Path, id: &str) -> Summary {
    let mut found = Summary { id: id.to_string(), mode: Posture::Default.word(), ..Summary::default() };
    let whole = read(path, &mut found).unwrap_or(false);
    found.damaged = !whole;
    if found.damaged {
        found.mode = Posture::Plan.word();
    }
    found.last_ms = found.last_ms.max(found.started_ms);
    found
}

/// `Some(true)` when every line was sound.
fn read(path: &Path, found: &mut Summary) -> Option<bool> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > READ_MAX {
        return None;
    }
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut buffer, mut last, mut first, mut chain) = (Vec::new(), None, true, Chain::Start);
    let whole = loop {
        let Piece::Line(line) = next_piece(&mut reader, &mut buffer, &mut chain).ok()? else { break !first };
        match line {
            Line::Json(json) if first => found.started_ms = serde_json::from_str::<serde_json::Value>(&json).ok()?["created_ms"].as_u64()?,
            Line::Json(json) | Line::Unended(json) => {
                note(&json, found);
                last = Some(json);
            }
            Line::Torn(start) => break !record::could_be_mode(&start),
            Line::Corrupt => break false,
        }
        first = false;
    };
    if let Some(event) = last.and_then(|json| decoded(&json)) {
        found.last_ms = event.at_ms;
        found.last_seq = event.seq;
    }
    Some(whole)
}

fn note(json: &str, found: &mut Summary) {
    let is = |kind: &str| json.contains(&format!("\"kind\":\"{kind}\""));
    if is("mode") {
        if let Some(EventKind::Mode(mode)) = decoded(json).map(|e| e.kind) {
            found.mode = mode.posture.word();
        }
    } else if found.title.is_empty()
        && is("transcript")
        && let Some(EventKind::Transcript { role: Role::User, for_agent: true, text, .. }) = decoded(json).map(|e| e.kind)
    {
        found.title = clip(&text, 80);
    }
}

fn decoded(json: &str) -> Option<Event> { record::decode(json).ok().map(|d| d.event) }
