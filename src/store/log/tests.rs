//! Every cut, every flipped byte, two writers, a disk that refuses, a log that grew too large.

use std::io;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::chain::Chain;
use super::*;
use crate::engine::authority::{By, Surface};
use crate::engine::event::*;
use crate::engine::id::QuestionId;
use crate::engine::mode::{AskPolicy, Posture};
use crate::engine::plan::{PlanStatus, PlanVersion};
use crate::engine::snapshot::Snapshot;
use crate::engine::todo::{TodoItem, TodoStatus};
use crate::engine::tool::Effect;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn folder() -> io::Result<(TempDir, Sessions)> {
    let dir = tempfile::tempdir()?;
    let sessions = Sessions::at(dir.path());
    Ok((dir, sessions))
}

fn event(seq: u64, kind: EventKind) -> Event { Event { seq, at_ms: 1_000 + seq * 10, kind } }

fn notice(seq: u64) -> Event { event(seq, EventKind::Notice { code: "n".into(), message: format!("number {seq}") }) }

fn mode(seq: u64, posture: Posture) -> Event {
    let by = By::gateway();
    event(seq, EventKind::Mode(ModeEvent { posture, ask: AskPolicy::Ask, epoch: seq as u32, draining: 0, restored: false, reason: format!("r{seq}"), by, approved: None }))
}

fn said(seq: u64, text: &str) -> Event {
    event(seq, EventKind::Transcript { role: Role::User, text: text.into(), item: "i".into(), utterance: None, for_agent: true, surface: Surface::Voice })
}

fn plan(version: u32, status: PlanStatus) -> PlanVersion {
    PlanVersion { version, title: format!("Plan {version}"), summary: "Shop.".into(), hash: format!("{version:016}"), status, ..PlanVersion::default() }
}

fn waiting(request: &str) -> PendingApproval {
    PendingApproval {
        request: QuestionId(request.into()), call: "c1".into(), tool: "notes__add".into(), arguments: json!({"text": "milk", "much": 1.5}), effect: Effect::Files,
        reason: "May I?".into(), screen_only: false, created_ms: 1,
    }
}

/// One of nearly every kind.
fn many_kinds() -> Vec<EventKind> {
    let by = By::gateway;
    vec![
        EventKind::Started { how: "new" }, said(0, "what is in my notes?").kind, mode(0, Posture::Plan).kind, EventKind::Draft { steps: vec![] },
        EventKind::Presented(plan(1, PlanStatus::Waiting)), EventKind::PlanDecided { version: 1, status: PlanStatus::Approved, by: by(), comments: "fine".into() },
        EventKind::Continued { version: 1, by: by() }, EventKind::ApprovalRequested(waiting("q1")),
        EventKind::ApprovalResolved { request: QuestionId("q1".into()), call: "c1".into(), status: "approved", by: by() },
        EventKind::ToolStart { call: "c1".into(), tool: "notes__add".into(), arguments: json!({"text": "milk"}), display: "Notes: add".into() },
        EventKind::ToolResult { call: "c1".into(), tool: "notes__add".into(), success: true, error_code: String::new(), error: String::new(), output: json!({"id": 1}), latency_ms: 3 },
        EventKind::Todo(vec![TodoItem { id: "1".into(), content: "milk".into(), status: TodoStatus::Pending }]), EventKind::Voice(VoiceState::Speaking),
        EventKind::Notice { code: "n".into(), message: "a notice".into() }, EventKind::Ended { reason: "it is over".into() },
    ]
}

/// A log of at least 4 KiB whose last mode is plan, as its bytes and its events.
fn four_kib(sessions: &Sessions, id: &str) -> Result<(Vec<u8>, Vec<Event>), LogError> {
    let mut events = vec![mode(1, Posture::Default)];
    events.extend(many_kinds().into_iter().cycle().take(29).enumerate().map(|(n, kind)| event(n as u64 + 2, kind)));
    let mut log = sessions.create(id, 77)?;
    events.iter().try_for_each(|e| log.append(e))?;
    log.sync()?;
    let bytes = fs::read(log.path()).map_err(LogError::io(log.path()))?;
    assert!(bytes.len() >= 4096, "{}", bytes.len());
    Ok((bytes, events))
}

/// Replays bytes without a file.
fn of_bytes(bytes: &[u8]) -> Result<Replay, LogError> {
    scan::replay_from(&mut io::Cursor::new(bytes), bytes.len() as u64, Path::new("a.log"), Replay::empty("a"))
}

/// A short log that ends in plan mode, as its bytes and its events.
fn sample(sessions: &Sessions, id: &str) -> Result<(Vec<u8>, Vec<Event>), LogError> {
    let events = vec![
        event(1, EventKind::Started { how: "new" }), said(2, "what is in my notes?"), mode(3, Posture::Default), notice(4), mode(5, Posture::Plan), notice(6),
    ];
    let mut log = sessions.create(id, 77)?;
    events.iter().try_for_each(|e| log.append(e))?;
    log.sync()?;
    Ok((fs::read(log.path()).map_err(LogError::io(log.path()))?, events))
}

#[test]
fn what_was_written_is_read() -> Tested {
    let (_dir, sessions) = folder()?;
    let (_, events) = sample(&sessions, "a")?;
    let (mut log, replay) = sessions.open("a")?;
    assert_eq!((replay.created_ms, &replay.events, &replay.damage, replay.complete_after), (77, &events, &None, 0));
    assert!(replay.snapshot().in_plan() && !replay.must_plan());
    log.append(&notice(7))?;
    drop(log);
    assert_eq!(sessions.read("a")?.last_seq(), 7);
    assert!(matches!(sessions.create("a", 1), Err(LogError::Exists(_))));
    assert!(matches!(sessions.open("b"), Err(LogError::Unknown(_))));
    assert!(matches!(sessions.open("../a"), Err(LogError::BadId(_))));
    Ok(())
}

#[test]
fn cut_at_every_length_it_is_a_prefix_and_never_loosened() -> Tested {
    let (dir, sessions) = folder()?;
    let (bytes, events) = sample(&sessions, "a")?;
    for cut in 0..bytes.len() {
        let replay = of_bytes(&bytes[..cut])?;
        let kept = replay.events.len();
        assert_eq!(replay.events, events[..kept], "cut at {cut}");
        let torn_in_mode = replay.damage.is_some() && (kept == 4 || kept == 2);
        assert!(!torn_in_mode || replay.must_plan(), "cut at {cut}: {:?}", replay.damage);
        // Repairing waits for the disk; every eleventh length covers header, prefix, JSON and line end.
        if cut % 11 == 0 {
            fs::write(dir.path().join("a.log"), &bytes[..cut])?;
            let (mut log, opened) = sessions.open("a")?;
            assert_eq!(opened.events, replay.events);
            log.append(&notice(opened.last_seq() + 1))?;
            drop(log);
            let again = sessions.read("a")?;
            assert_eq!((again.events.len(), again.damage), (kept + 1, None), "cut at {cut}");
        }
    }
    Ok(())
}

#[test]
fn a_flipped_byte_is_found_and_plan_is_never_lost() -> Tested {
    let (dir, sessions) = folder()?;
    let (bytes, events) = sample(&sessions, "a")?;
    let path = dir.path().join("a.log");
    for (at, bit) in (0..bytes.len()).flat_map(|at| [0_u8, 1, 2, 3, 4, 5, 6, 7].map(|bit| (at, bit))) {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << bit;
        let replay = of_bytes(&bad)?;
        assert!(events.starts_with(&replay.events), "byte {at} bit {bit}");
        assert!(replay.damage.is_some(), "byte {at} bit {bit} went unseen");
        assert!(replay.must_plan() || replay.snapshot().in_plan(), "byte {at} bit {bit}: {:?}", replay.damage);
        if at % 40 == 0 {
            fs::write(&path, &bad)?;
            assert!(sessions.list()?[0].damaged, "byte {at} bit {bit}");
        }
    }
    Ok(())
}

#[test]
fn every_byte_of_four_kib_flipped_and_every_length_cut() -> Tested {
    let (_dir, sessions) = folder()?;
    let (bytes, events) = four_kib(&sessions, "a")?;
    let whole = of_bytes(&bytes)?;
    assert!(whole.snapshot().in_plan() && whole.damage.is_none() && whole.events == events);
    let strict = |replay: &Replay, seen: usize, what: &dyn Fn() -> String| {
        assert!(events.starts_with(&replay.events), "{}", what());
        let mut left = Snapshot::default();
        events[..replay.events.len()].iter().for_each(|e| left.apply(e));
        // What is believed folds as it did when it was written; where plan may have been in what is not, plan it is.
        assert!(replay.must_plan() || replay.snapshot() == left, "{}", what());
        let lost_plan = events[replay.events.len()..].iter().take(seen).any(|e| matches!(&e.kind, EventKind::Mode(m) if m.posture == Posture::Plan));
        assert!(replay.must_plan() || replay.snapshot().in_plan() || !lost_plan || replay.damage.is_none(), "{}", what());
    };
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            let replay = of_bytes(&bad)?;
            assert!(replay.damage.is_some() && replay.must_plan() | replay.snapshot().in_plan(), "byte {at} bit {bit}: {:?}", replay.damage);
            strict(&replay, usize::MAX, &|| format!("byte {at} bit {bit}"));
        }
    }
    for cut in 0..bytes.len() {
        // Of what was cut off, a part of one record is there to judge by; what came after it left no trace.
        strict(&of_bytes(&bytes[..cut])?, 1, &|| format!("cut at {cut}"));
    }
    Ok(())
}

#[test]
fn a_record_taken_out_put_in_or_moved_breaks_the_chain() -> Tested {
    let (_dir, sessions) = folder()?;
    let (bytes, events) = four_kib(&sessions, "a")?;
    let (other, _) = sample(&sessions, "b")?;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let foreign = other.split_inclusive(|b| *b == b'\n').nth(3).ok_or("no line")?;
    let mut changed: Vec<(usize, Vec<&[u8]>)> = Vec::new();
    for at in 1..lines.len() - 1 {
        let (mut out, mut twice, mut moved, mut put) = (lines.clone(), lines.clone(), lines.clone(), lines.clone());
        out.remove(at);
        twice.insert(at, lines[at]);
        moved.swap(at, at + 1);
        put[at] = foreign;
        changed.extend([(at, out), (at + 1, twice), (at, moved), (at, put)]);
    }
    for (at, lines) in changed {
        let replay = of_bytes(&lines.concat())?;
        assert!(replay.must_plan() && replay.events == events[..at - 1], "line {at}: {:?}", replay.damage);
    }
    // An edit that keeps its own checksum of the old kind would have gone unseen; this one does not.
    let text = String::from_utf8(bytes)?.replacen(r#""posture":"plan""#, r#""posture":"deflt""#, 1);
    assert!(of_bytes(text.as_bytes())?.must_plan());
    Ok(())
}

#[test]
fn a_log_of_the_first_format_is_read_and_gone_on_with() -> Tested {
    let (dir, sessions) = folder()?;
    let mut single = Chain::Single;
    let header = json!({"voxgate_log": 1, "id": "a", "created_ms": 77, "compacted_to": 0}).to_string();
    let events = [said(1, "hello"), mode(2, Posture::Plan)];
    let lines: Vec<String> = std::iter::once(header).chain(events.iter().map(record_of)).map(|json| single.framed(&json)).collect();
    fs::write(dir.path().join("a.log"), lines.concat())?;
    let (mut log, replay) = sessions.open("a")?;
    assert_eq!((replay.format(), replay.created_ms, replay.damage.clone(), replay.head()), (1, 77, None, String::new()));
    assert!(replay.snapshot().in_plan());
    log.append(&notice(3))?;
    drop(log);
    let replay = sessions.read("a")?;
    assert_eq!((replay.format(), replay.last_seq(), replay.damage), (1, 3, None));
    let (_, new) = (sessions.create("b", 1)?, sessions.read("b")?);
    assert_eq!((new.format(), new.head().len()), (FORMAT, 32));
    Ok(())
}

fn record_of(event: &Event) -> String { crate::dialect::record::encode(event) }

#[test]
fn a_posture_nobody_knows_is_plan_and_an_ask_policy_nobody_knows_is_ask() -> Tested {
    let (dir, sessions) = folder()?;
    let mut chain = Chain::Start;
    let strange = record_of(&mode(1, Posture::Default)).replace(r#""posture":"default""#, r#""posture":"wild""#).replace(r#""ask":"ask""#, r#""ask":"never""#);
    fs::write(dir.path().join("a.log"), chain.framed(&scan::header("a", 1, 0)) + &chain.framed(&strange))?;
    let (_, replay) = sessions.open("a")?;
    assert!(replay.snapshot().in_plan() && replay.snapshot().ask == AskPolicy::Ask && !replay.folded.is_empty(), "{replay:?}");
    Ok(())
}

#[test]
fn any_file_is_read_as_a_log_and_says_whose_it_is() -> Tested {
    let (dir, sessions) = folder()?;
    let (_, events) = sample(&sessions, "a")?;
    let copy = dir.path().join("some copy");
    fs::copy(dir.path().join("a.log"), &copy)?;
    let replay = Sessions::read_file(&copy)?;
    assert_eq!((replay.id.as_str(), replay.events, replay.damage), ("a", events, None));
    assert!(matches!(Sessions::read_file(&dir.path().join("none")), Err(LogError::Io { .. })));
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_full_disk_is_told_and_what_waits_is_bounded() -> Tested {
    let full = fs::OpenOptions::new().write(true).open("/dev/full")?;
    let mut log = SessionLog::begin(Box::new(full), PathBuf::from("/dev/full"), "a", CAP_BYTES);
    let told = |error: LogError| matches!(&error, LogError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull) && error.to_string().contains("/dev/full");
    assert!(log.write_header(1).is_err_and(told));
    // What was half written cannot be taken back on a device: the next attempts fail at that.
    let told = |error: LogError| matches!(&error, LogError::Io { .. }) && error.to_string().contains("/dev/full");
    for seq in 1..20 {
        assert!(log.append(&mode(seq, if seq % 2 == 0 { Posture::Default } else { Posture::Plan })).is_err_and(told));
    }
    assert!(log.is_behind() && log.sync().is_err_and(told));
    Ok(())
}

#[test]
fn what_is_not_believed_is_kept_beside() -> Tested {
    let (dir, sessions) = folder()?;
    let (mut bytes, events) = sample(&sessions, "a")?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 2;
    fs::write(dir.path().join("a.log"), &bytes)?;
    assert!(sessions.list()?[0].damaged);
    let (log, replay) = sessions.open("a")?;
    let damage = replay.damage.clone().ok_or("no damage")?;
    assert_eq!(damage.kind, DamageKind::Corrupt);
    assert!(damage.to_string().contains("plan mode is on to be safe"));
    assert_eq!(fs::read(damage.copy.ok_or("no copy")?)?, bytes[damage.at as usize..]);
    assert!(events.starts_with(&replay.events) && replay.events.len() < events.len());
    drop(log);
    assert_eq!(sessions.read("a")?.damage, None);
    assert_eq!(sessions.wipe("a")?, 2);
    assert_eq!(fs::read_dir(dir.path())?.count(), 0);
    Ok(())
}

#[test]
fn odd_files_are_refused_or_replaced_never_believed() -> Tested {
    let (dir, sessions) = folder()?;
    let path = dir.path().join("a.log");
    for rubbish in ["", "\n", "hello", "hello\nworld\n", &"x".repeat(100_000)] {
        fs::write(&path, rubbish)?;
        let (mut log, replay) = sessions.open("a")?;
        assert_eq!((replay.events.len(), replay.damage.as_ref().map(|d| d.kind), replay.must_plan()), (0, Some(DamageKind::Header), true));
        log.append(&notice(1))?;
        drop(log);
        assert_eq!(sessions.read("a")?.last_seq(), 1);
    }
    let frames = |lines: &[&str]| { let mut chain = Chain::Start; lines.iter().map(|json| chain.framed(json)).collect::<String>() };
    let newer = r#"{"voxgate_log":3,"id":"a"}"#;
    let later = [frames(&[newer]), format!("3 {newer} another shape\n"), frames(&[r#"{"voxgate_log":1,"id":"a"}"#])];
    let strange = [&scan::header("a", 1, 0), r#"{"v":1,"seq":1,"at":1,"kind":"flip"}"#];
    for (file, why) in later.iter().zip(["has format 3", "has format 3", "has format 1"]).chain([(&frames(&strange), "unknown kind of event \"flip\"")]) {
        fs::write(&path, file)?;
        let error = sessions.open("a").err().ok_or("opened")?;
        assert!(matches!(error, LogError::Foreign { .. }) && error.to_string().contains(why), "{error}");
        assert_eq!(&fs::read_to_string(&path)?, file, "it was touched");
    }
    File::create(&path)?.set_len(1 << 30)?;
    assert_eq!(sessions.read("a")?.damage.map(|d| d.kind), Some(DamageKind::TooLarge));
    #[cfg(unix)]
    {
        fs::remove_file(&path)?;
        std::os::unix::fs::symlink(dir.path().join("b.log"), &path)?;
        assert!(matches!(sessions.open("a"), Err(LogError::Io { .. })));
    }
    Ok(())
}

#[test]
fn numbers_that_are_missing_are_a_gap_and_force_plan() -> Tested {
    let (_dir, sessions) = folder()?;
    let mut log = sessions.create("a", 1)?;
    log.append(&notice(1))?;
    log.append(&notice(4))?;
    assert!(matches!(log.append(&notice(4)), Err(LogError::Order { last: 4, got: 4 })));
    drop(log);
    let replay = sessions.read("a")?;
    assert_eq!((replay.last_seq(), replay.must_plan()), (4, true));
    assert_eq!(replay.damage.map(|d| (d.kind, d.lost_bytes)), Some((DamageKind::Gap, 0)));
    Ok(())
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() -> Tested {
    let (_dir, sessions) = folder()?;
    let log = sessions.create("a", 1)?;
    assert!(matches!(sessions.open("a"), Err(LogError::Held(_))));
    assert!(matches!(sessions.wipe("a"), Err(LogError::Held(_))));
    assert_eq!(sessions.read("a")?.events.len(), 0);
    drop(log);
    assert!(sessions.open("a").is_ok());
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_log_is_for_its_owner_alone() -> Tested {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, sessions) = folder()?;
    let log = sessions.create("a", 1)?;
    assert_eq!(fs::metadata(log.path())?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

#[test]
fn a_list_shows_the_newest_first() -> Tested {
    let (_dir, sessions) = folder()?;
    sample(&sessions, "a")?;
    sessions.create("b", 9_000)?;
    let list = sessions.list()?;
    assert_eq!(list.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    let a = Summary { id: "a".into(), title: "what is in my notes?".into(), started_ms: 77, last_ms: 1_060, mode: "plan", last_seq: 6, damaged: false };
    assert_eq!(list[1], a);
    Ok(())
}

/// No space left, input/output error.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// A disk in memory that refuses from a chosen deed on.
#[derive(Clone, Default)]
struct Shaky(Arc<Mutex<ShakyState>>);

#[derive(Default)]
struct ShakyState {
    bytes: Vec<u8>,
    fail_add: bool,
    fail_sync: bool,
    fail_cut: bool,
    syncs: usize,
}

impl Shaky {
    fn with<T>(&self, deed: impl FnOnce(&mut ShakyState) -> T) -> T { deed(&mut self.0.lock().unwrap_or_else(|e| e.into_inner())) }
}

impl Disk for Shaky {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with(|s| {
            let most = if s.fail_add { bytes.len() / 2 } else { bytes.len() };
            s.bytes.extend_from_slice(&bytes[..most]);
            if s.fail_add { Err(io::Error::from_raw_os_error(ENOSPC)) } else { Ok(()) }
        })
    }
    fn sync(&mut self) -> io::Result<()> {
        self.with(|s| {
            s.syncs += 1;
            if s.fail_sync { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
        })
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.with(|s| if s.fail_cut { Err(io::Error::other("read-only")) } else { s.bytes.truncate(length as usize); Ok(()) })
    }
}

fn shaky_log() -> Result<(SessionLog, Shaky), LogError> {
    let disk = Shaky::default();
    let mut log = SessionLog::begin(Box::new(disk.clone()), PathBuf::from("nowhere/a.log"), "a", CAP_BYTES);
    log.write_header(1)?;
    Ok((log, disk))
}

fn replayed(disk: &Shaky) -> Result<Replay, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("a.log"), disk.with(|s| s.bytes.clone()))?;
    Ok(Sessions::at(dir.path()).read("a")?)
}

#[test]
fn what_a_full_disk_refused_is_written_when_there_is_room_again() -> Tested {
    let (mut log, disk) = shaky_log()?;
    log.append(&notice(1))?;
    disk.with(|s| s.fail_add = true);
    assert!(matches!(log.append(&mode(2, Posture::Plan)), Err(LogError::Io { .. })));
    assert!(log.is_behind());
    assert_eq!(replayed(&disk)?.last_seq(), 1);
    disk.with(|s| s.fail_cut = true);
    assert!(log.append(&notice(3)).is_err());
    disk.with(|s| (s.fail_add, s.fail_cut) = (false, false));
    log.append(&notice(4))?;
    let replay = replayed(&disk)?;
    assert_eq!((replay.events, replay.damage), (vec![notice(1), mode(2, Posture::Plan), notice(3), notice(4)], None));
    Ok(())
}

#[test]
fn a_looser_mode_that_could_not_be_written_in_time_is_never_found() -> Tested {
    for (fail_add, fail_sync) in [(true, false), (false, true)] {
        let (mut log, disk) = shaky_log()?;
        log.append(&mode(1, Posture::Plan))?;
        disk.with(|s| (s.fail_add, s.fail_sync) = (fail_add, fail_sync));
        assert!(log.append(&mode(2, Posture::Default)).is_err());
        assert!(log.is_behind() && replayed(&disk)?.snapshot().in_plan());
        disk.with(|s| (s.fail_add, s.fail_sync) = (false, false));
        log.append(&notice(3))?;
        let replay = replayed(&disk)?;
        assert!(replay.snapshot().in_plan() && replay.damage.is_none() && replay.last_seq() == 3, "{replay:?}");
        assert!(matches!(&replay.events[1].kind, EventKind::Notice { code, .. } if code == "mode_not_written"));
    }
    Ok(())
}

#[test]
fn what_matters_is_synced_at_once_and_the_rest_soon() -> Tested {
    let (mut log, disk) = shaky_log()?;
    let syncs = || disk.with(|s| s.syncs);
    let start = syncs();
    log.append(&notice(1))?;
    log.append(&notice(20))?;
    assert_eq!((syncs(), log.unsynced_since()), (start, Some(1_010)));
    log.append(&notice(21))?;
    assert_eq!((syncs(), log.unsynced_since()), (start + 1, None));
    log.append(&notice(22))?;
    log.append(&mode(23, Posture::Plan))?;
    assert_eq!((syncs(), log.unsynced_since()), (start + 2, None));
    log.append(&notice(24))?;
    log.sync()?;
    log.sync()?;
    assert_eq!(syncs(), start + 3);
    // Modes, plans, questions, approvals and dispatch wait for the disk; talk does not.
    let mut seq = 25;
    for kind in many_kinds() {
        let (before, waits) = (syncs(), !matches!(kind, EventKind::Transcript { .. } | EventKind::Todo(_) | EventKind::Speech { .. } | EventKind::Voice(_) | EventKind::Notice { .. }));
        log.append(&Event { seq, at_ms: 2_000, kind: kind.clone() })?;
        assert_eq!(syncs() > before, waits, "{kind:?}");
        seq += 1;
        log.sync()?;
    }
    Ok(())
}

#[test]
fn what_waits_for_the_disk_is_bounded() -> Tested {
    let (mut log, disk) = shaky_log()?;
    disk.with(|s| s.fail_add = true);
    let big = |seq| event(seq, EventKind::Notice { code: "n".into(), message: "x".repeat(1 << 20) });
    let lost = (1..40).map(|n| log.append(&big(n))).filter(|r| matches!(r, Err(LogError::Lost(_)))).count();
    assert!((20..30).contains(&lost), "{lost}");
    Ok(())
}

#[test]
fn a_large_log_is_rewritten_to_what_its_state_needs() -> Tested {
    let (dir, sessions) = folder()?;
    let sessions = sessions.with_cap(200_000);
    let mut log = sessions.create("a", 5)?;
    let mut state = Snapshot::default();
    for seq in 1..=5_000 {
        let next = match seq {
            1 => event(1, EventKind::Started { how: "new" }),
            9 => said(9, "the very first words"),
            30 => mode(30, Posture::Plan),
            n if n % 50 == 0 => said(n, "more words"),
            n => notice(n),
        };
        state.apply(&next);
        log.append(&next)?;
    }
    log.sync()?;
    let length = fs::metadata(log.path())?.len();
    assert!(length < 210_000 && dir.path().join("a.1.log").exists(), "{length}");
    drop(log);
    let (mut log, replay) = sessions.open("a")?;
    assert_eq!(replay.damage, None);
    assert!(replay.complete_after > 1_000 && replay.last_seq() == 5_000);
    assert_eq!(replay.snapshot(), state);
    log.append(&notice(5_001))?;
    assert_eq!(sessions.list()?.len(), 1, "the old file is no conversation of its own");
    drop(log);
    assert_eq!(sessions.wipe("a")?, 2);
    Ok(())
}

/// A history whose ids meet each other.
fn history() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..14_u8, 0..6_u32), 1..900).prop_map(|picks| {
        let mut presented = 0;
        picks.into_iter().enumerate().map(|(n, (pick, x))| {
            let seq = n as u64 + 1;
            let id = || format!("x{x}");
            let kind = match pick {
                0 | 1 => return mode(seq, if x < 3 { Posture::Plan } else { Posture::Default }),
                2 => return said(seq, "words"),
                3 => EventKind::Draft { steps: vec![] },
                // A state keeps 50 versions; beyond that, old decisions lose their note.
                4 if presented < 50 => {
                    presented += 1;
                    EventKind::Presented(PlanVersion { version: presented, title: id(), summary: id(), steps: vec![], open_questions: vec![], risks: vec![], hash: id(), status: PlanStatus::Waiting, ..PlanVersion::default() })
                }
                5 => EventKind::PlanDecided { version: presented.saturating_sub(x), status: if x < 2 { PlanStatus::Approved } else { PlanStatus::Dismissed }, by: By::gateway(), comments: id() },
                6 => EventKind::ApprovalRequested(PendingApproval {
                    request: QuestionId(format!("q{n}")), call: id().as_str().into(), tool: id(), arguments: json!({}), effect: Effect::Files, reason: id(), screen_only: false, created_ms: 1,
                }),
                7 => EventKind::ApprovalResolved { request: QuestionId(format!("q{}", n.saturating_sub(x as usize))), call: "c".into(), status: "denied", by: By::gateway() },
                8 => EventKind::ToolStart { call: format!("c{n}").as_str().into(), tool: id(), arguments: json!({"n": n}), display: id() },
                9 => EventKind::ToolResult { call: format!("c{}", n.saturating_sub(x as usize)).as_str().into(), tool: id(), success: true, error_code: id(), error: id(), output: json!(n), latency_ms: 1 },
                10 => EventKind::Todo(vec![TodoItem { id: id(), content: id(), status: TodoStatus::Pending }]),
                11 => EventKind::Voice(VoiceState::Speaking),
                12 if x == 0 => EventKind::Ended { reason: id() },
                12 => EventKind::Started { how: "resumed" },
                _ => return notice(seq),
            };
            event(seq, kind)
        }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn what_stays_folds_to_the_same_state(events in history()) {
        let fold = |list: &mut dyn Iterator<Item = &Event>| {
            let mut state = Snapshot::default();
            list.for_each(|e| state.apply(e));
            state
        };
        let kept = compact::needed(&events);
        prop_assert_eq!(fold(&mut kept.iter().copied()), fold(&mut events.iter()));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let mut reader = io::Cursor::new(bytes);
        let mut buffer = Vec::new();
        let mut chain = Chain::Start;
        while let Ok(piece) = scan::next_piece(&mut reader, &mut buffer, &mut chain) {
            if matches!(piece, scan::Piece::End) { break }
        }
    }
}
