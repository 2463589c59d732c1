//! A gateway that is killed at random moments while it writes: what it had told of must be in its log, plan must still be plan, and
//! no call may run twice.
//!
//! Called by `voxgate eval kills`. One process writes (the product's own hub, driver, gate and log, with an agent that needs no model
//! and no ears) and prints each frame that a mirror would get; this one reads them, kills the writer with a signal that cannot be
//! caught, and compares the log with what it read. The next writer goes on with the same conversation.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::beds::Dice;
use crate::dialect::{feral, record};
use crate::engine::authority::{Decide, OperatorDoor};
use crate::engine::mode::Mode;
use crate::engine::snapshot::Snapshot;
use crate::session::handle::{Handle, MirrorItem};
use crate::session::hub::Hub;
use crate::session::registry::{Conversations as _, Which};
use crate::store::log::{DamageKind, Replay, Sessions};

/// A conversation is killed so often before the next one begins.
const A_CONVERSATION: usize = 25;
/// A kill comes at most this long after the writer's first frame, in microseconds; some come before it.
const AFTER_US: u32 = 120_000;
const BEFORE_US: u32 = 60_000;
/// For a writer to say its first word, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of all kills.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kills {
    /// Kills.
    pub kills: usize,
    /// Of those, before the writer had said anything.
    pub early: usize,
    /// Frames that had been sent and were compared with the log.
    pub told: usize,
    /// Of those, not in the log or otherwise than they were told.
    pub lost: usize,
    /// Records in a log that nobody had been told of yet; they follow what was told.
    pub ahead: usize,
    /// Logs whose last record was half written.
    pub torn: usize,
    /// Logs that were damaged in another way, or no longer began as they had begun.
    pub damaged: usize,
    /// Times that plan mode was on before the kill.
    pub planned: usize,
    /// Of those, times that it was off afterwards.
    pub loosened: usize,
    /// Calls that ran.
    pub ran: usize,
    /// Calls that ran more than once.
    pub twice: usize,
    /// What was wrong, a line each.
    pub wrong: Vec<String>,
}

impl Kills {
    /// Nothing was lost, loosened, damaged or done twice.
    pub fn is_right(&self) -> bool { self.wrong.is_empty() && self.lost + self.loosened + self.damaged + self.twice == 0 }

    fn say(&mut self, what: String) { if self.wrong.len() < 20 { self.wrong.push(what) } }
}

/// Kills a writer `count` times. `program` is this product, `folder` an empty folder for its home.
///
/// # Errors
/// A sentence: the writer cannot be started or says nothing.
pub fn kill(program: &Path, folder: &Path, count: usize, seed: u64) -> Result<Kills, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::write(folder.join("config.toml"), "[stt]\nkind = \"scripted\"\n[tts]\nkind = \"tone\"\n[listen]\nvad = \"earshot\"\n").map_err(told)?;
    let (mut found, mut dice, mut going) = (Kills::default(), Dice::new(seed), None);
    for n in 0..count {
        if n % A_CONVERSATION == 0 { going = None }
        let writer = Writer { program, folder, id: going.as_ref().map(|g: &Going| g.id.clone()), seed: dice.roll() };
        let frames = writer.run_until_killed(&mut dice)?;
        found.kills += 1;
        let Some(id) = frames.first().and_then(|f| f["session_id"].as_str()).map(str::to_string).or_else(|| going.as_ref().map(|g| g.id.clone())) else {
            found.early += 1;
            continue;
        };
        if frames.is_empty() { found.early += 1 }
        let replay = Sessions::at(folder.join("data/sessions")).read(&id).map_err(|e| e.to_string())?;
        compare(&replay, &frames, going.as_ref(), &mut found);
        going = Some(Going { in_plan: replay.must_plan() || replay.snapshot().in_plan(), records: replay.events.iter().map(record::encode).collect(), id });
    }
    count_notes(folder, &mut found);
    Ok(found)
}

/// A conversation between two kills, as its log had it.
struct Going {
    id: String,
    in_plan: bool,
    records: Vec<String>,
}

struct Writer<'a> {
    program: &'a Path,
    folder: &'a Path,
    id: Option<String>,
    seed: u64,
}

impl Writer<'_> {
    /// Every whole frame it sent before it was killed.
    fn run_until_killed(&self, dice: &mut Dice) -> Result<Vec<Value>, String> {
        let mut command = Command::new(self.program);
        command.args(["eval", "kills", "--writer", self.id.as_deref().unwrap_or("new"), "--seed", &self.seed.to_string()]);
        command.env("VOXGATE_HOME", self.folder).env("VOXGATE_MODELS", self.folder.join("no-models")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", self.program.display()))?;
        let out = child.stdout.take().ok_or("the writer has no output")?;
        let (heard, first) = mpsc::sync_channel(1);
        let reader = std::thread::spawn(move || {
            let mut lines = Vec::new();
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|n| n > 0) {
                // What the kill cut in the middle was not told.
                if line.ends_with('\n') { lines.extend(serde_json::from_str::<Value>(&line)) }
                line.clear();
                let _ = heard.try_send(());
            }
            lines
        });
        let roll = dice.roll();
        if roll % 6 == 0 {
            std::thread::sleep(Duration::from_micros(u64::from((roll >> 8) as u32 % BEFORE_US)));
        } else {
            if first.recv_timeout(PATIENCE).is_err() {
                let _ = child.kill();
                return Err(format!("the writer said nothing within {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_micros(u64::from((roll >> 8) as u32 % AFTER_US)));
        }
        child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
        reader.join().map_err(|_| "the writer's frames could not be read".to_string())
    }
}

fn compare(replay: &Replay, frames: &[Value], before: Option<&Going>, found: &mut Kills) {
    match replay.damage.as_ref().map(|d| d.kind) {
        None => {}
        Some(DamageKind::Torn) => found.torn += 1,
        Some(kind) => { found.damaged += 1; found.say(format!("{}: {kind:?}", replay.id)); }
    }
    let records: Vec<String> = replay.events.iter().map(record::encode).collect();
    if let Some(before) = before {
        if !records.starts_with(&before.records) {
            found.damaged += 1;
            found.say(format!("{}: it no longer begins as it did", replay.id));
        }
        // The first frame is the snapshot of the restored conversation.
        if before.in_plan && let Some(snapshot) = frames.first() {
            found.planned += 1;
            if snapshot["payload"]["plan_mode"] != true {
                found.loosened += 1;
                found.say(format!("{}: plan mode was gone after the restart", replay.id));
            }
        }
    }
    let written = frames_of(replay);
    let (mut last, mut in_plan) = (0, None);
    for frame in frames.iter().filter(|f| f["seq"].is_u64() && f["type"] != "snapshot") {
        let seq = frame["seq"].as_u64().unwrap_or(0);
        found.told += 1;
        last = last.max(seq);
        if frame["type"] == "plan_mode" { in_plan = frame["payload"]["plan_mode"].as_bool() }
        let same = written.get(&seq).is_some_and(|w| w["type"] == frame["type"] && w["payload"] == frame["payload"]);
        if !same {
            found.lost += 1;
            found.say(format!("{}: event {seq} was told as {} and the log has {}", replay.id, frame, written.get(&seq).unwrap_or(&Value::Null)));
        }
    }
    if !frames.is_empty() { found.ahead += replay.last_seq().saturating_sub(last.max(frames[0]["seq"].as_u64().unwrap_or(0))) as usize }
    let later_mode = replay.events.iter().any(|e| e.seq > last && matches!(e.kind, crate::engine::event::EventKind::Mode(_)));
    if in_plan == Some(true) && !later_mode && !replay.must_plan() && !replay.snapshot().in_plan() {
        found.loosened += 1;
        found.say(format!("{}: plan mode was told and is not in the log", replay.id));
    }
}

/// The frames that the log's events had.
fn frames_of(replay: &Replay) -> HashMap<u64, Value> {
    let mut state = Snapshot::default();
    replay.events.iter().map(|event| {
        state.apply(event);
        (event.seq, serde_json::from_str(&feral::frame(event, &state, &replay.id, "")).unwrap_or(Value::Null))
    }).collect()
}

/// Every note has words of its own: one that is there twice was written twice.
fn count_notes(folder: &Path, found: &mut Kills) {
    let mut notes: HashMap<String, usize> = HashMap::new();
    for file in std::fs::read_dir(folder.join("data/notes")).into_iter().flatten().filter_map(Result::ok) {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        *notes.entry(text.trim().to_string()).or_default() += 1;
    }
    found.ran = notes.values().sum();
    for (text, n) in notes.into_iter().filter(|(text, n)| *n > 1 && !text.is_empty()) {
        found.twice += 1;
        found.say(format!("the note {text:?} was written {n} times"));
    }
}

/// The writer's side: holds a conversation, decides and asks for things without an end, and prints every frame.
///
/// # Errors
/// A sentence: the conversation cannot be opened, or nobody reads.
pub async fn write(hub: &Hub, which: Which, door: OperatorDoor, seed: u64) -> Result<(), String> {
    let handle = hub.open(which).await.map_err(|e| e.to_string())?;
    let mut mirror = handle.subscribe(None).await.map_err(|e| e.to_string())?;
    print(&feral::snapshot_frame(&mirror.snapshot, handle.id(), "", false))?;
    let told = async {
        loop {
            match mirror.follow.recv().await {
                Some(MirrorItem::Frame { text, .. }) => print(&text)?,
                Some(MirrorItem::Passing(_)) => {}
                None => return Err("the conversation has ended".to_string()),
            }
        }
    };
    tokio::select! { end = told => end, end = busy(&handle, door, seed) => end }
}

fn print(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| e.to_string())
}

/// One deed after the other; questions that come of them are answered one way or the other.
async fn busy(handle: &Handle, door: OperatorDoor, seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    for n in 0u64.. {
        let deed = match dice.roll() % 12 {
            0 | 1 => Err(format!("/plan look at number {n}")),
            2 => Err("/plan off".to_string()),
            3..=5 => Err(format!("Add thing {seed} {n} to my notes.")),
            6 => Err("Present the plan.".to_string()),
            7 => Ok(Decide::Approve { version: None, hash: None }),
            8 => Ok(Decide::RequestChanges { version: None, comments: format!("shorter, {n}") }),
            9 => Ok(Decide::Comment { id: None, version: None, step: Some(1), quote: String::new(), text: format!("why {n}?") }),
            10 => Ok(Decide::Mode(if n % 2 == 0 { Mode::Bypass } else { Mode::Default })),
            _ => Ok(Decide::Dismiss { version: None }),
        };
        // Most of these are declined at one moment or another; that is part of it.
        let _ = match deed {
            Err(line) => handle.chat(door, line).await.map_err(|e| e.to_string())?,
            Ok(decide) => handle.decide(door.decide(decide, "")).await.map_err(|e| e.to_string())?,
        };
        let state = handle.snapshot().await.map_err(|e| e.to_string())?;
        for waiting in state.approvals {
            let answer = Decide::AnswerTool { request: waiting.request, approve: dice.roll() % 3 != 0 };
            let _ = handle.decide(door.decide(answer, "")).await.map_err(|e| e.to_string())?;
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// A folder for the homes of killed writers, gone with it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A fresh one.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("voxgate-kills-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path { &self.0 }
}

impl Drop for Scratch {
    fn drop(&mut self) { let _ = std::fs::remove_dir_all(&self.0); }
}
