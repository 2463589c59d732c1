//! The kinds of event in a record: one word, one writer arm and one reader arm each.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::nouns::*;
use super::{Folded, RecordError, opaque};
use crate::engine::authority::Surface;
use crate::engine::event::{EventKind, ModeEvent, Role, VoiceState};
use crate::engine::id::{CallId, ItemId, QuestionId, SpeechId, UtteranceId};
use crate::engine::mode::{AskPolicy, Mode, Posture};
use crate::engine::plan::PlanStatus;

/// The kind's word in the log.
pub(super) fn word(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Started { .. } => "started",
        EventKind::Mode(_) => "mode",
        EventKind::Still(_) => "mode_still",
        EventKind::Transcript { .. } => "transcript",
        EventKind::Draft { .. } => "draft",
        EventKind::Presented(_) => "presented",
        EventKind::PlanDecided { .. } => "plan_decided",
        EventKind::Comment(_) => "comment",
        EventKind::Continued { .. } => "plan_continued",
        EventKind::Question(_) => "question",
        EventKind::ApprovalRequested(_) => "approval_requested",
        EventKind::ApprovalResolved { .. } => "approval_resolved",
        EventKind::ToolStart { .. } => "tool_start",
        EventKind::ToolResult { .. } => "tool_result",
        EventKind::Todo(_) => "todo",
        EventKind::Speech { .. } => "speech",
        EventKind::Voice(_) => "voice",
        EventKind::Notice { .. } => "notice",
        EventKind::Ended { .. } => "ended",
    }
}

/// Adds the kind's fields.
pub(super) fn write(kind: &EventKind, map: &mut Map<String, Value>) {
    let fields = match kind {
        EventKind::Presented(plan) => return version_out(plan, map),
        EventKind::Question(question) => return question_out(question, map),
        EventKind::ApprovalRequested(pending) => return pending_out(pending, map),
        EventKind::Comment(comment) => return comment_out(comment, map),
        EventKind::Continued { version, by } => json!({"version": version, "by": by_out(by)}),
        EventKind::Started { how } => json!({"how": how}),
        EventKind::Mode(m) => json!({
            "posture": m.posture.word(), "ask": m.ask.word(), "epoch": m.epoch, "draining": m.draining, "restored": m.restored,
            "reason": m.reason, "by": by_out(&m.by), "approved": m.approved,
        }),
        EventKind::Still(mode) => json!({"mode": mode.map(Mode::word)}),
        EventKind::Transcript { role, text, item, utterance, for_agent, surface } => json!({
            "role": role_word(*role), "text": text, "item": item.0, "utterance": utterance.map(|u| u.0), "for_agent": for_agent,
            "surface": surface.word(),
        }),
        EventKind::Draft { steps } => json!({"steps": steps_out(steps)}),
        EventKind::PlanDecided { version, status, by, comments } => {
            json!({"version": version, "status": status.word(), "by": by_out(by), "comments": comments})
        }
        EventKind::ApprovalResolved { request, call, status, by } => {
            json!({"request": request.0, "call": call.0, "status": status, "by": by_out(by)})
        }
        EventKind::ToolStart { call, tool, arguments, display } => {
            json!({"call": call.0, "tool": tool, "arguments": opaque::pack(arguments), "display": display})
        }
        EventKind::ToolResult { call, tool, success, error_code, error, output, latency_ms } => json!({
            "call": call.0, "tool": tool, "success": success, "error_code": error_code, "error": error, "output": opaque::pack(output),
            "latency_ms": latency_ms,
        }),
        EventKind::Todo(items) => json!({"items": todo_out(items)}),
        EventKind::Speech { speech, text, heard_ms, total_ms } => {
            json!({"speech": speech.0, "text": text, "heard_ms": heard_ms, "total_ms": total_ms})
        }
        EventKind::Voice(state) => json!({"state": state.word()}),
        EventKind::Notice { code, message } => json!({"code": code, "message": message}),
        EventKind::Ended { reason } => json!({"reason": reason}),
    };
    if let Value::Object(fields) = fields {
        map.extend(fields);
    }
}

/// Reads the fields of the kind that `word` names.
pub(super) fn read(word: &str, map: &Map<String, Value>, folded: &mut Option<Folded>) -> Result<EventKind, RecordError> {
    let f = Fields::new(word, map);
    Ok(match word {
        "started" => EventKind::Started { how: f.word("how", |w| one_of(w, &["new", "resumed"]))? },
        "mode" => EventKind::Mode(mode_in(&f, folded)?),
        "mode_still" => EventKind::Still(f.maybe("mode", |f, name| f.word(name, Mode::from_word))?),
        "transcript" => transcript_in(&f)?,
        "draft" => EventKind::Draft { steps: steps_in(&f, "steps")? },
        "presented" => EventKind::Presented(version_in(&f)?),
        "plan_decided" => EventKind::PlanDecided {
            version: f.small("version")?,
            status: f.word("status", PlanStatus::from_word)?,
            by: by_in(&f.object("by")?)?,
            comments: f.text("comments")?,
        },
        "comment" => EventKind::Comment(comment_in(&f)?),
        "plan_continued" => EventKind::Continued { version: f.small("version")?, by: by_in(&f.object("by")?)? },
        "question" => EventKind::Question(question_in(&f)?),
        "approval_requested" => EventKind::ApprovalRequested(pending_in(&f)?),
        "approval_resolved" => EventKind::ApprovalResolved {
            request: QuestionId(f.text("request")?),
            call: CallId(f.text("call")?),
            status: f.word("status", |w| one_of(w, &["approved", "denied", "expired", "withdrawn"]))?,
            by: by_in(&f.object("by")?)?,
        },
        "tool_start" => EventKind::ToolStart {
            call: CallId(f.text("call")?), tool: f.text("tool")?, arguments: f.opaque("arguments")?, display: f.text("display")?,
        },
        "tool_result" => result_in(&f)?,
        "todo" => EventKind::Todo(todo_in(&f)?),
        "speech" => EventKind::Speech {
            speech: SpeechId(f.whole("speech")?), text: f.text("text")?, heard_ms: f.whole("heard_ms")?, total_ms: f.whole("total_ms")?,
        },
        "voice" => EventKind::Voice(f.word("state", VoiceState::from_word)?),
        "notice" => EventKind::Notice { code: f.text("code")?, message: f.text("message")? },
        "ended" => EventKind::Ended { reason: f.text("reason")? },
        other => return Err(RecordError::UnknownKind(other.to_string())),
    })
}

fn mode_in(f: &Fields<'_>, folded: &mut Option<Folded>) -> Result<ModeEvent, RecordError> {
    let (ask_word, posture_word) = (f.text("ask")?, f.text("posture")?);
    let ask = [AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse].into_iter().find(|a| a.word() == ask_word);
    let posture = [Posture::Default, Posture::Plan].into_iter().find(|p| p.word() == posture_word);
    if ask.is_none() {
        *folded = Some(Folded::Ask(ask_word));
    }
    if posture.is_none() {
        *folded = Some(Folded::Posture(posture_word));
    }
    Ok(ModeEvent {
        posture: posture.unwrap_or(Posture::Plan),
        ask: ask.unwrap_or(AskPolicy::Ask),
        epoch: f.small("epoch")?,
        draining: f.small("draining")?,
        restored: f.truth("restored")?,
        reason: f.text("reason")?,
        by: by_in(&f.object("by")?)?,
        approved: f.maybe("approved", Fields::truth)?,
    })
}

fn transcript_in(f: &Fields<'_>) -> Result<EventKind, RecordError> {
    Ok(EventKind::Transcript {
        role: f.word("role", |w| [Role::User, Role::Assistant].into_iter().find(|r| role_word(*r) == w))?,
        text: f.text("text")?,
        item: ItemId(f.text("item")?),
        utterance: f.maybe("utterance", Fields::whole)?.map(UtteranceId),
        for_agent: f.truth("for_agent")?,
        surface: f.word("surface", Surface::from_word)?,
    })
}

fn result_in(f: &Fields<'_>) -> Result<EventKind, RecordError> {
    Ok(EventKind::ToolResult {
        call: CallId(f.text("call")?),
        tool: f.text("tool")?,
        success: f.truth("success")?,
        error_code: f.text("error_code")?,
        error: f.text("error")?,
        output: f.opaque("output")?,
        latency_ms: f.whole("latency_ms")?,
    })
}

fn role_word(role: Role) -> &'static str { if role == Role::User { "user" } else { "assistant" } }

fn one_of(word: &str, known: &[&'static str]) -> Option<&'static str> { known.iter().copied().find(|k| *k == word) }
