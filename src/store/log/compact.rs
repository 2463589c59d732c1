//! Rewriting a log that grew too large: the events its state needs stay, under their own numbers; the rest goes.
//!
//! The fold of what stays is the state as it was (up to notes about plans older than the 50 that a state keeps).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::chain::Chain;
use super::{LogError, scan};
use crate::dialect::record;
use crate::engine::conversation::ITEMS_MAX;
use crate::engine::event::{Event, EventKind, Role};
use crate::engine::id::CallId;
use crate::engine::mode::Posture;
use crate::engine::plan::VERSIONS_MAX;
use crate::engine::snapshot::{TRACE_MAX, TRANSCRIPT_MAX};
use crate::store::files;

/// Writes the short log beside the old one, keeps the old one as `ID.1.log`, puts the new one in its place. Answers the new
/// file, locked and open for appending, its length, and where its chain stands. At no moment is there no log.
pub(super) fn rewrite(path: &Path, id: &str) -> Result<(File, u64, Chain), LogError> {
    let fail = || LogError::io(path);
    let replay = scan::replay(path, id)?;
    let kept = needed(&replay.events);
    let fresh = files::beside(path, "new");
    let file = files::private_options().read(true).append(true).create(true).open(&fresh).map_err(fail())?;
    file.set_len(0).map_err(fail())?;
    super::lock(&file, id, path)?;
    let mut out = BufWriter::new(&file);
    let header = scan::header(id, replay.created_ms, replay.last_seq());
    let mut chain = Chain::Start;
    out.write_all(chain.framed(&header).as_bytes()).map_err(fail())?;
    for event in &kept {
        out.write_all(chain.framed(&record::encode(event)).as_bytes()).map_err(fail())?;
    }
    out.flush().map_err(fail())?;
    drop(out);
    file.sync_all().map_err(fail())?;
    let length = file.metadata().map_err(fail())?.len();
    keep_old(path).map_err(fail())?;
    fs::rename(&fresh, path).map_err(fail())?;
    files::sync_parent(path).map_err(fail())?;
    Ok((file, length, chain))
}

/// The old file under its second name, by a link (or a copy where there are no links), so that `path` never goes missing.
fn keep_old(path: &Path) -> std::io::Result<()> {
    let old = path.with_extension("1.log");
    match fs::remove_file(&old) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::hard_link(path, &old).or_else(|_| fs::copy(path, &old).map(drop))
}

/// The events the state needs, in order.
pub(super) fn needed(events: &[Event]) -> Vec<&Event> {
    let mut keep: HashSet<u64> = HashSet::new();
    keep.extend(events.first().map(|e| e.seq));
    keep.extend(events.last().map(|e| e.seq));
    keep.extend(events.iter().find(|e| is_title(&e.kind)).map(|e| e.seq));
    keep_modes(events, &mut keep);
    keep_newest(events, &mut keep, TRANSCRIPT_MAX, |k| matches!(k, EventKind::Transcript { .. }));
    keep_newest(events, &mut keep, ITEMS_MAX, is_item);
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Draft { .. }));
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Still(_)));
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Todo(_)));
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Voice(_)));
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Question(_)));
    keep_newest(events, &mut keep, 1, |k| matches!(k, EventKind::Started { .. } | EventKind::Ended { .. }));
    keep_calls(events, &mut keep);
    keep_plans(events, &mut keep);
    keep_comments(events, &mut keep);
    keep_approvals(events, &mut keep);
    events.iter().filter(|e| keep.contains(&e.seq)).collect()
}

fn keep_newest(events: &[Event], keep: &mut HashSet<u64>, most: usize, is: impl Fn(&EventKind) -> bool) {
    keep.extend(events.iter().rev().filter(|e| is(&e.kind)).take(most).map(|e| e.seq));
}

fn is_title(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Transcript { role: Role::User, for_agent: true, text, .. } if !text.is_empty())
}

/// Events that put an item into the agent's history.
fn is_item(kind: &EventKind) -> bool {
    use crate::engine::plan::PlanStatus::{Approved, ChangesRequested};
    match kind {
        EventKind::Transcript { for_agent, .. } => *for_agent,
        EventKind::ToolStart { .. } | EventKind::ToolResult { .. } | EventKind::Continued { .. } => true,
        EventKind::PlanDecided { status, .. } => matches!(status, Approved | ChangesRequested),
        _ => false,
    }
}

/// The newest word on the mode, the entry it goes back to, and the exit before that (the entry counts only after it).
fn keep_modes(events: &[Event], keep: &mut HashSet<u64>) {
    let (mut newest, mut entry, mut left) = (None, None, None);
    for event in events {
        if let EventKind::Mode(mode) = &event.kind {
            newest = Some(event.seq);
            match mode.posture {
                Posture::Plan => entry = entry.or(newest),
                Posture::Default => (entry, left) = (None, newest),
            }
        }
    }
    keep.extend(newest.into_iter().chain(entry).chain(left));
}

fn keep_calls(events: &[Event], keep: &mut HashSet<u64>) {
    let starts = events.iter().rev().filter_map(|e| match &e.kind {
        EventKind::ToolStart { call, .. } => Some((e.seq, call)),
        _ => None,
    });
    let (seqs, calls): (Vec<u64>, HashSet<&CallId>) = starts.take(TRACE_MAX).unzip();
    keep.extend(seqs);
    keep.extend(events.iter().filter(|e| matches!(&e.kind, EventKind::ToolResult { call, .. } if calls.contains(call))).map(|e| e.seq));
}

fn keep_plans(events: &[Event], keep: &mut HashSet<u64>) {
    let presented = events.iter().rev().filter_map(|e| match &e.kind {
        EventKind::Presented(plan) => Some((e.seq, plan.version)),
        _ => None,
    });
    let (seqs, versions): (Vec<u64>, HashSet<u32>) = presented.take(VERSIONS_MAX).unzip();
    keep.extend(seqs);
    keep.extend(events.iter().filter(|e| matches!(&e.kind, EventKind::PlanDecided { version, .. } if versions.contains(version))).map(|e| e.seq));
}

/// The first and the newest word on each comment: a state lists them in the order they were written.
fn keep_comments(events: &[Event], keep: &mut HashSet<u64>) {
    let of = |e: &Event| if let EventKind::Comment(c) = &e.kind { Some((e.seq, c.id)) } else { None };
    let (mut first, mut last) = (HashSet::new(), HashSet::new());
    keep.extend(events.iter().filter_map(of).filter(|(_, id)| first.insert(*id)).map(|(seq, _)| seq));
    keep.extend(events.iter().rev().filter_map(of).filter(|(_, id)| last.insert(*id)).map(|(seq, _)| seq));
}

/// What still waits, and the end of whatever is kept for another reason.
fn keep_approvals(events: &[Event], keep: &mut HashSet<u64>) {
    let resolved: HashSet<&str> = events.iter().filter_map(|e| match &e.kind {
        EventKind::ApprovalResolved { request, .. } => Some(request.0.as_str()),
        _ => None,
    }).collect();
    let mut settled = HashSet::new();
    for event in events {
        match &event.kind {
            EventKind::ApprovalRequested(p) if !resolved.contains(p.request.0.as_str()) => drop(keep.insert(event.seq)),
            EventKind::ApprovalRequested(p) if keep.contains(&event.seq) => drop(settled.insert(p.request.0.as_str())),
            EventKind::ApprovalResolved { request, .. } if settled.contains(request.0.as_str()) => drop(keep.insert(event.seq)),
            _ => {}
        }
    }
}
