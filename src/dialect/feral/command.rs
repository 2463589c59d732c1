//! The chat box's own commands: `/plan` and `/mode` and what may follow them. Everything else is talk.

use crate::engine::authority::Decide;
use crate::engine::mode::Mode;

/// Shown for a `/plan` line that fits nothing.
pub const USAGE: &str = "Use /plan (or /plan and what to plan), /plan off, /plan approve N, /plan changes and what to change, /plan dismiss, /plan review, /plan continue, /plan done, /plan status; /mode, or /mode and one of default, plan, bypass, autonomous.";

/// What a chat line asks of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatCommand {
    /// Enter plan mode.
    Enter {
        /// The words after the command; may be empty.
        reason: String,
        /// True when these words are also the next line for the agent, under plan mode.
        then_submit: bool,
    },
    /// Approve a plan version.
    Approve {
        /// Which; `None` is right only when exactly one waits.
        version: Option<u32>,
    },
    /// Leave plan mode; the plan is set aside.
    Leave,
    /// Say what mode this is.
    Status,
    /// A decision about the plan that needs no more than its verb: `changes ...`, `dismiss`, `review`, `continue`, `done`.
    Decide(Decide),
    /// Say the modes: which is on, which there are.
    Modes,
    /// Choose a mode.
    Mode(Mode),
    /// A `/plan` line that fits nothing: answer with [`USAGE`], change nothing.
    Usage,
}

/// Reads a chat line. `None`: it is no command, but talk ("plan", "/planner", "can you /plan this").
///
/// The first word must be `/plan`, in any case. A word that loosens (`off`, `approve`, ...) must stand alone or with its
/// number: "/plan cancel the order" is neither an exit nor a reason, it gets the usage line.
pub fn parse_chat_command(line: &str) -> Option<ChatCommand> {
    let line = line.trim();
    let (first, rest) = split_word(line);
    if first.eq_ignore_ascii_case("/mode") {
        return Some(if rest.is_empty() { ChatCommand::Modes } else { Mode::from_word(&rest.to_ascii_lowercase()).map_or(ChatCommand::Usage, ChatCommand::Mode) });
    }
    if !first.eq_ignore_ascii_case("/plan") {
        return None;
    }
    let (second, after) = split_word(rest);
    let command = match second.to_ascii_lowercase().as_str() {
        "" | "on" | "start" | "enter" => enter(after),
        "approve" | "accept" | "ok" => approve(after),
        "off" | "exit" | "cancel" | "stop" | "discard" if after.is_empty() => ChatCommand::Leave,
        "off" | "exit" | "cancel" | "stop" | "discard" => ChatCommand::Usage,
        "status" if after.is_empty() => ChatCommand::Status,
        "changes" => ChatCommand::Decide(Decide::RequestChanges { version: None, comments: after.to_string() }),
        "dismiss" if after.is_empty() => ChatCommand::Decide(Decide::Dismiss { version: None }),
        "review" if after.is_empty() => ChatCommand::Decide(Decide::BackToReview { version: None }),
        "continue" if after.is_empty() => ChatCommand::Decide(Decide::Continue { version: None }),
        "done" if after.is_empty() => ChatCommand::Decide(Decide::MarkDone { version: None }),
        "help" | "?" if after.is_empty() => ChatCommand::Usage,
        _ => enter(rest),
    };
    Some(command)
}

fn enter(reason: &str) -> ChatCommand { ChatCommand::Enter { reason: reason.to_string(), then_submit: !reason.is_empty() } }

fn approve(after: &str) -> ChatCommand {
    if after.is_empty() {
        return ChatCommand::Approve { version: None };
    }
    let number = after.strip_prefix(['v', 'V']).unwrap_or(after);
    match number.parse::<u32>() {
        Ok(version) if number.bytes().all(|b| b.is_ascii_digit()) => ChatCommand::Approve { version: Some(version) },
        _ => ChatCommand::Usage,
    }
}

fn split_word(text: &str) -> (&str, &str) {
    match text.find(char::is_whitespace) {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, ""),
    }
}
