//! `voxgate log`: one conversation's log as evidence, record by record, and whether it is what was written.
//!
//! Reads through `store` and never writes, also while a gateway writes the same file. Called by `main`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use super::sessions::{line_of, minute, one_line};
use crate::engine::authority::By;
use crate::engine::event::EventKind;
use crate::store::home::Home;
use crate::store::log::{LogError, Replay, Sessions};

/// What to do with a log.
#[derive(Clone, Debug, Subcommand)]
pub enum LogCommand {
    /// Print every record with its number: what happened, who decided it, by what words, on which surface, which version and hash
    #[command(after_help = EXITS)]
    Show {
        /// A conversation's id (`voxgate sessions list`), or a file
        #[arg(value_name = "SESSION|FILE")]
        which: String,
    },
    /// Say whether the log is whole: its chain of checksums, its numbers, its end
    #[command(after_help = EXITS)]
    Verify {
        /// A conversation's id (`voxgate sessions list`), or a file
        #[arg(value_name = "SESSION|FILE")]
        which: String,
    },
}

const EXITS: &str = "Ends with 0 when the log is whole, 1 when part of it is damaged or missing (what can be believed is still shown), 2 when it cannot be\n\
    read at all: it is not there, another version wrote it, or it is no log.";

/// Carries the command out. Exit 0: whole; 1: damaged; 2: not read.
pub fn run(command: &LogCommand, home: &Home) -> ExitCode {
    let (LogCommand::Show { which } | LogCommand::Verify { which }) = command;
    match replay_of(which, home) {
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
        Ok(replay) => {
            let text = match command { LogCommand::Show { .. } => shown(&replay), LogCommand::Verify { .. } => verdict(&replay) };
            super::out::put(format_args!("{text}"));
            for trouble in troubles(&replay) { eprintln!("{trouble}") }
            if is_whole(&replay) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

/// An id of this home first; else what is a file.
fn replay_of(which: &str, home: &Home) -> Result<Replay, String> {
    match Sessions::of(home).read(which) {
        Ok(replay) => return Ok(replay),
        Err(LogError::Unknown(_) | LogError::BadId(_)) => {}
        Err(error) => return Err(error.to_string()),
    }
    let file = Path::new(which);
    if !file.is_file() {
        return Err(format!("{which} is neither a conversation of this home nor a file; `voxgate sessions list` shows the conversations"));
    }
    let replay = Sessions::read_file(file).map_err(|error| error.to_string())?;
    if replay.id.is_empty() { Err(format!("{which} is no log: its first line is no header of one")) } else { Ok(replay) }
}

fn is_whole(replay: &Replay) -> bool { replay.damage.is_none() && replay.folded.is_empty() }

fn troubles(replay: &Replay) -> Vec<String> {
    let damage = replay.damage.iter().map(ToString::to_string);
    damage.chain(replay.folded.iter().map(|folded| format!("a word of a mode record is not known to this program: {folded}"))).collect()
}

fn verdict(replay: &Replay) -> String {
    let mut out = String::new();
    let state = replay.snapshot();
    let mode = if replay.must_plan() || state.in_plan() { "plan mode" } else { "default mode (a looser one is never restored)" };
    let how = match (is_whole(replay), replay.format()) {
        (false, _) => "DAMAGED",
        (true, 1) => "whole (format 1: each record checked for itself, no chain)",
        (true, _) => "whole",
    };
    let _ = writeln!(out, "{}: {how}", replay.id);
    let thinned = if replay.complete_after > 0 { format!(", thinned out up to event {}", replay.complete_after) } else { String::new() };
    let _ = writeln!(out, "  records   {} believed, the last is event {}{thinned}", replay.events.len(), replay.last_seq());
    let _ = writeln!(out, "  format    {}", replay.format());
    if !replay.head().is_empty() {
        let _ = writeln!(out, "  last link {}", replay.head());
    }
    let _ = writeln!(out, "  opens in  {mode}");
    out
}

fn shown(replay: &Replay) -> String {
    let mut out = format!("{}, begun {} UTC, format {}\n", replay.id, minute(replay.created_ms), replay.format());
    let mut names = HashMap::new();
    for event in &replay.events {
        let line = line_of(event, &mut names).or_else(|| quiet_line(&event.kind)).unwrap_or_default();
        let _ = writeln!(out, "{:>6}  {}:{:02}  {}{}", event.seq, minute(event.at_ms), event.at_ms / 1_000 % 60, one_line(&line), one_line(&evidence(&event.kind)));
    }
    out
}

/// Kinds that the story of a conversation leaves out.
fn quiet_line(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Draft { steps } => format!("draft of {} steps", steps.len()),
        EventKind::ApprovalRequested(p) => format!("approval {} asked for: {} {}", p.request.0, p.tool, p.arguments),
        EventKind::ApprovalResolved { request, status, .. } => format!("approval {} {status}", request.0),
        EventKind::ToolStart { call, tool, arguments, .. } => format!("call {}: {tool} {arguments}", call.0),
        EventKind::Todo(items) => format!("todo list of {}", items.len()),
        EventKind::Speech { text, heard_ms, total_ms, .. } => format!("said, {heard_ms} of {total_ms} ms heard: {text}"),
        EventKind::Voice(state) => format!("voice {}", state.word()),
        _ => return None,
    })
}

/// What a decision rests on.
fn evidence(kind: &EventKind) -> String {
    match kind {
        EventKind::Mode(mode) => {
            let reason = if mode.reason.is_empty() { String::new() } else { format!(", reason {:?}", mode.reason) };
            format!(" [epoch {}, ask {}{reason}{}]", mode.epoch, mode.ask.word(), who(&mode.by))
        }
        EventKind::Presented(plan) => format!(" [hash {}]", plan.hash),
        EventKind::PlanDecided { by, .. } | EventKind::Continued { by, .. } => format!(" [{}]", who(by).trim_start_matches(", ")),
        EventKind::ApprovalRequested(pending) => format!(" [hash {}, effect {}]", pending.hash(), pending.effect.word()),
        EventKind::ApprovalResolved { by, .. } => format!(" [{}]", who(by).trim_start_matches(", ")),
        EventKind::Question(question) => question.by.as_ref().map(|by| format!(" [{}]", who(by).trim_start_matches(", "))).unwrap_or_default(),
        EventKind::ToolResult { call, .. } => format!(" [call {}]", call.0),
        _ => String::new(),
    }
}

fn who(by: &By) -> String {
    let utterance = by.utterance.map(|u| format!(", utterance {}", u.0)).unwrap_or_default();
    let words = if by.words.is_empty() { String::new() } else { format!(", words {:?}", by.words) };
    format!(", by {} on {}{utterance}{words}", by.actor(), by.surface.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::authority::Surface;
    use crate::engine::event::{Event, ModeEvent};
    use crate::engine::mode::{AskPolicy, Posture};

    type Tested = Result<(), Box<dyn std::error::Error>>;

    fn home() -> Result<(tempfile::TempDir, Home), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let mut log = Sessions::of(&home).create("a1", 1_796_053_185_000)?;
        let by = By { surface: Surface::Chat, utterance: None, words: "/plan a look\u{7}".into() };
        let mode = ModeEvent { posture: Posture::Plan, ask: AskPolicy::Ask, epoch: 1, draining: 0, restored: false, reason: "a look".into(), by, approved: None };
        log.append(&Event { seq: 1, at_ms: 1_796_053_185_000, kind: EventKind::Started { how: "new" } })?;
        log.append(&Event { seq: 2, at_ms: 1_796_053_187_000, kind: EventKind::Mode(mode) })?;
        Ok((dir, home))
    }

    #[test]
    fn a_whole_log_is_shown_with_who_decided_and_verified() -> Tested {
        let (_dir, home) = home()?;
        let replay = replay_of("a1", &home)?;
        let text = shown(&replay);
        assert!(text.contains("     2  2026-11-30 15:39:47  mode: plan (by user, chat) [epoch 1, ask ask, reason \"a look\", by user on chat, words \"/plan a look\\u{7}\"]"), "{text}");
        let told = verdict(&replay);
        assert!(is_whole(&replay) && told.starts_with("a1: whole\n") && told.contains(&replay.head()) && told.contains("opens in  plan mode"), "{told}");
        Ok(())
    }

    #[test]
    fn damage_is_told_and_what_is_no_log_is_refused() -> Tested {
        let (dir, home) = home()?;
        let file = home.sessions_dir().join("a1.log");
        let mut bytes = std::fs::read(&file)?;
        let at = bytes.len() - 30;
        bytes[at] ^= 4;
        let copy = dir.path().join("copy.log");
        std::fs::write(&copy, &bytes)?;
        let replay = replay_of(&copy.display().to_string(), &home)?;
        assert!(!is_whole(&replay) && verdict(&replay).starts_with("a1: DAMAGED\n") && troubles(&replay)[0].contains("plan mode is on to be safe"), "{}", verdict(&replay));
        std::fs::write(&copy, "hello\n")?;
        assert!(replay_of(&copy.display().to_string(), &home).is_err_and(|e| e.contains("is no log")));
        std::fs::write(&copy, "9 {\"voxgate_log\":9,\"id\":\"a1\"}\n")?;
        assert!(replay_of(&copy.display().to_string(), &home).is_err_and(|e| e.contains("has format 9")));
        assert!(replay_of("nothing", &home).is_err_and(|e| e.contains("sessions list")));
        Ok(())
    }
}
