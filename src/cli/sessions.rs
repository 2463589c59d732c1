//! `voxgate sessions`: what conversations are kept, what is in them, and how to be rid of them.
//!
//! Reads and deletes through `store`; never writes into a log. Called by `main`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Subcommand;

use crate::dialect::record;
use crate::engine::event::{Event, EventKind, Role};
use crate::store::home::{Home, HomeLock};
use crate::store::log::{LogError, Replay, Sessions, Summary};
use crate::store::plan_mirror;
use crate::store::todo::TodoMirror;

/// What to do with the conversations that are kept.
#[derive(Clone, Debug, Subcommand)]
pub enum SessionsCommand {
    /// List them, the one that was used last first
    List,
    /// Print one as a person reads it: who said what, modes, plans, tool calls
    Show {
        /// Its id, as `sessions list` prints it
        id: String,
    },
    /// Print one whole, an event a line, as JSON
    Export {
        /// Its id, as `sessions list` prints it
        id: String,
    },
    /// Delete one, or all, for good: log, older log, damaged copies, recordings, todo list
    Wipe {
        /// Its id, as `sessions list` prints it
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Delete every conversation of this home
        #[arg(long)]
        all: bool,
    },
}

/// Carries the command out. Exit 0: done; 1: something failed, told on stderr.
pub fn run(command: SessionsCommand, home: &Home) -> ExitCode {
    let sessions = Sessions::of(home);
    let done = match command {
        SessionsCommand::List => known(&sessions).map(|list| listed(&list, &sessions)),
        SessionsCommand::Show { id } => sessions.read(&id).map(|replay| shown(&replay)).map_err(told),
        SessionsCommand::Export { id } => sessions.read(&id).map(|replay| exported(&replay)).map_err(told),
        SessionsCommand::Wipe { id, .. } => wipe(&sessions, home, id),
    };
    match done {
        Ok(text) => {
            super::out::put(format_args!("{text}"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn told(error: LogError) -> String {
    match error {
        LogError::Unknown(_) | LogError::BadId(_) => format!("{error}; `voxgate sessions list` shows those that are kept"),
        other => other.to_string(),
    }
}

/// A home that was never used keeps nothing.
fn known(sessions: &Sessions) -> Result<Vec<Summary>, String> {
    match sessions.list() {
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        list => list.map_err(told),
    }
}

fn listed(list: &[Summary], sessions: &Sessions) -> String {
    if list.is_empty() {
        return "No conversations are kept.\n".to_string();
    }
    let mut out = String::from("ID                          LAST USED (UTC)   MODE     TITLE\n");
    for s in list {
        let title = if s.title.is_empty() { "(nothing said)" } else { s.title.as_str() };
        let recorded = match sessions.recordings(&s.id).map_or(0, |files| files.len()) {
            0 => String::new(),
            1 => "  [recorded]".to_string(),
            n => format!("  [{n} recordings]"),
        };
        let mark = if s.damaged { "  [damaged]" } else { "" };
        let _ = writeln!(out, "{:<26}  {:<16}  {:<7}  {}{recorded}{mark}", s.id, minute(s.last_ms), s.mode, one_line(title));
    }
    out
}

fn exported(replay: &Replay) -> String {
    report_damage(replay);
    replay.events.iter().map(|event| record::encode(event) + "\n").collect()
}

fn report_damage(replay: &Replay) {
    if let Some(damage) = &replay.damage {
        eprintln!("{damage}");
    }
}

fn wipe(sessions: &Sessions, home: &Home, id: Option<String>) -> Result<String, String> {
    let list = known(sessions)?;
    if list.is_empty() && id.is_none() {
        return Ok("No conversations are kept.\n".to_string());
    }
    let ids = id.map_or_else(|| list.into_iter().map(|s| s.id).collect(), |id| vec![id]);
    let _lock = HomeLock::take(home, "sessions wipe").map_err(|e| format!("{e}; stop it first"))?;
    let (mut todo, warning) = TodoMirror::load(home);
    warning.iter().for_each(|w| eprintln!("{w}"));
    let mut files = 0;
    for id in &ids {
        files += sessions.wipe(id).map_err(told)?;
        plan_mirror::remove(&home.plans_dir(), id).map_err(|e| format!("{}: {e}", home.plans_dir().display()))?;
        todo.set(id, &[], 0).map_err(|e| format!("{}: {e}", home.todos_file().display()))?;
    }
    Ok(format!("{} {} deleted ({files} files).\n", ids.len(), if ids.len() == 1 { "conversation" } else { "conversations" }))
}

fn shown(replay: &Replay) -> String {
    report_damage(replay);
    let state = replay.snapshot();
    let title = if state.title.is_empty() { "(nothing said)" } else { state.title.as_str() };
    let mut out = format!("{}\n{}, begun {} UTC, {} events\n\n", one_line(title), replay.id, minute(replay.created_ms), state.seq);
    if replay.complete_after > 0 {
        let _ = writeln!(out, "Events up to {} were thinned out when the log grew too large.\n", replay.complete_after);
    }
    let mut names = HashMap::new();
    for event in &replay.events {
        if let Some(line) = line_of(event, &mut names) {
            let _ = writeln!(out, "{}  {}", &minute(event.at_ms)[11..], one_line(&line));
        }
    }
    out
}

/// The line of an event, for those a person reads. `names` remembers what calls are called.
pub(super) fn line_of<'a>(event: &'a Event, names: &mut HashMap<&'a str, &'a str>) -> Option<String> {
    Some(match &event.kind {
        EventKind::Started { how } => format!("-- {how} --"),
        EventKind::Mode(mode) => {
            let draining = if mode.draining > 0 { format!(", {} still running", mode.draining) } else { String::new() };
            format!("mode: {} (by {}, {}){draining}", mode.posture.word(), mode.by.actor(), mode.by.surface.word())
        }
        EventKind::Transcript { role, text, surface, .. } => match role {
            Role::User => format!("you ({}): {text}", surface.word()),
            Role::Assistant => format!("voxgate: {text}"),
        },
        EventKind::Presented(plan) => format!("plan {} presented: {} ({} steps)", plan.version, plan.title, plan.steps.len()),
        EventKind::PlanDecided { version, status, by, comments } => format!("plan {version} {} (by {}) {comments}", status.word(), by.surface.word()),
        EventKind::Comment(c) => format!("comment {} on plan {} ({}): {}", c.id, c.version, c.state.word(), c.text),
        EventKind::Continued { version, by } => format!("plan {version} continued (by {})", by.surface.word()),
        EventKind::Question(q) if q.outcome.is_empty() => format!("question ({}): {}", q.state.word(), q.text),
        EventKind::Question(q) => format!("question {}: {}", q.outcome, q.text),
        EventKind::ToolStart { call, display, .. } => {
            names.insert(&call.0, display);
            return None;
        }
        EventKind::ToolResult { call, tool, success, error, .. } => {
            let name = names.get(call.0.as_str()).copied().unwrap_or(tool);
            if *success { format!("tool {name}: done") } else { format!("tool {name}: {error}") }
        }
        EventKind::Notice { message, .. } => format!("notice: {message}"),
        EventKind::Ended { reason } => format!("-- ended: {reason} --"),
        EventKind::Still(_) | EventKind::Draft { .. } | EventKind::ApprovalRequested(_) | EventKind::ApprovalResolved { .. } | EventKind::Todo(_) | EventKind::Speech { .. }
        | EventKind::Voice(_) => return None,
    })
}

/// Text of others on a terminal: no line ends, no escape sequences.
pub(super) fn one_line(text: &str) -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() }

/// Unix milliseconds as `2026-11-30 15:39`, UTC.
pub(super) fn minute(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (year, month, day) = date(minutes / 1_440);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// Year, month and day of a count of days since 1970 (Gregorian, eras of 400 years that begin in March).
fn date(days: u64) -> (u64, u64, u64) {
    let from_era = days + 719_468;
    let (era, day) = (from_era / 146_097, from_era % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_year - (153 * march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::authority::Surface;
    use crate::engine::todo::{TodoItem, TodoStatus};

    #[test]
    fn days_are_dates() {
        assert_eq!([0, 59, 11_016, 20_787].map(date), [(1970, 1, 1), (1970, 3, 1), (2000, 2, 29), (2026, 11, 30)]);
        assert_eq!(minute(1_796_053_185_000), "2026-11-30 15:39");
    }

    #[test]
    fn a_conversation_is_shown_and_wiped() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        assert_eq!(known(&Sessions::of(&home))?, []);
        home.create()?;
        let sessions = Sessions::of(&home);
        let mut log = sessions.create("a1", 1_796_053_185_000)?;
        let said = EventKind::Transcript { role: Role::User, text: "hello\u{1b}[31m".into(), item: "i".into(), utterance: None, for_agent: true, surface: Surface::Voice };
        log.append(&Event { seq: 1, at_ms: 1_796_053_185_000, kind: said })?;
        drop(log);
        TodoMirror::load(&home).0.set("a1", &[TodoItem { id: "1".into(), content: "x".into(), status: TodoStatus::Pending }], 1)?;
        let list = listed(&known(&sessions)?, &sessions);
        assert!(list.contains("a1                          2026-11-30 15:39  default  hello [31m"), "{list}");
        assert!(shown(&sessions.read("a1")?).contains("15:39  you (voice): hello [31m\n"));
        assert_eq!(exported(&sessions.read("a1")?).lines().count(), 1);
        assert!(wipe(&sessions, &home, Some("b".into())).is_err_and(|e| e.contains("sessions list")));
        let held = HomeLock::take(&home, "serve")?;
        assert!(wipe(&sessions, &home, None).is_err_and(|e| e.contains("held by voxgate serve")));
        drop(held);
        sessions.new_recording("a1")?;
        assert!(listed(&known(&sessions)?, &sessions).contains("[31m  [recorded]"));
        assert_eq!(wipe(&sessions, &home, None)?, "1 conversation deleted (2 files).\n");
        assert!(TodoMirror::load(&home).0.get("a1").is_empty() && known(&sessions)?.is_empty());
        Ok(())
    }
}
