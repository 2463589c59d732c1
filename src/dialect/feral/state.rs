//! State as clients see it: the plan-mode object of REST and frames, plans, questions, approvals, and the snapshot frame.

use serde_json::{Map, Value, json};

use super::{Head, by_object, role_word, seconds};
use crate::engine::comment::Comment;
use crate::engine::diff::{Change, Difference};
use crate::engine::event::{PendingApproval, Question};
use crate::engine::mode::{MODES, Mode};
use crate::engine::plan::{PlanVersion, Step};
use crate::engine::snapshot::{Line, Snapshot, Trace};
use crate::engine::todo::TodoItem;

/// What `GET /api/sessions/{id}/plan_mode` answers and a `plan_mode` frame carries. `entered_at` is in Unix seconds.
pub fn plan_mode_object(state: &Snapshot, session_id: &str) -> Value {
    let (current, pending) = state.modes();
    json!({
        "session_id": session_id,
        "plan_mode": state.in_plan(),
        "entered_at": state.entered_ms.map_or(Value::Null, seconds),
        "reason": state.entered_reason,
        "entered_by": state.entered_by.as_ref().map_or("", |by| by.actor()),
        "plan_count": state.plan_count,
        "latest_plan": state.newest().map_or(Value::Null, plan_object),
        "draining": state.draining,
        "restored": state.restored,
        "persisted": true,
        "by": state.entered_by.as_ref().map_or(Value::Null, by_object),
        "epoch": state.stamp.epoch,
        "modes": {"available": MODES, "current": current.word(), "pending": pending.map(Mode::word)},
    })
}

/// One version as `plan_review` and `latest_plan` show it. Times are in Unix seconds; `decided` says who brought it to where it
/// stands, on which surface and with what words, and is null before anybody has.
pub fn plan_object(plan: &PlanVersion) -> Value {
    json!({
        "version": plan.version, "hash": plan.hash, "title": plan.title, "summary": plan.summary, "steps": steps_object(&plan.steps),
        "open_questions": plan.open_questions, "risks": plan.risks, "submitted_at": if plan.presented_ms == 0 { Value::Null } else { seconds(plan.presented_ms) },
        "status": plan.status.word(), "approve": "approve",
        "decided": plan.decided.as_ref().map(|d| json!({"by": by_object(&d.by), "at": seconds(d.at_ms)})),
        "completion": if plan.done.is_empty() { Value::Null } else { plan.done.as_str().into() },
    })
}

/// The list of modes with what each does, the one in force, the one that was chosen and waits for the response under way, and the axes behind it: what `GET /api/sessions/{id}/mode` answers.
pub fn modes_object(state: &Snapshot, session_id: &str) -> Value {
    let (current, pending) = state.modes();
    json!({
        "session_id": session_id, "current": current.word(), "pending": pending.map(Mode::word), "posture": state.stamp.posture.word(), "ask": state.ask.word(),
        "modes": Mode::LIST.iter().map(|m| json!({"id": m.word(), "description": m.about()})).collect::<Value>(),
    })
}

/// The same in a line of a chat.
pub fn modes_line(state: &Snapshot) -> String {
    let (current, pending) = state.modes();
    let pending = pending.map_or(String::new(), |p| format!(" {} was chosen and holds once the answer under way has ended.", p.word()));
    format!("The mode is {}. {}{pending} There are {}.", current.word(), current.about(), MODES.join(", "))
}

/// Every kept version, the comments on them, and which one waits or is carried out.
pub fn plans_object(state: &Snapshot, session_id: &str) -> Value {
    json!({
        "session_id": session_id, "plan_count": state.plan_count, "plans": state.plans.iter().map(plan_object).collect::<Value>(),
        "comments": state.comments.iter().map(comment_object).collect::<Value>(), "waiting": state.waiting().map(|p| p.version), "approved": state.approved().map(|p| p.version),
        "activity": state.approved().map(|_| if state.is_active() { "implementing" } else { "paused" }),
    })
}

/// One comment.
pub fn comment_object(comment: &Comment) -> Value {
    json!({
        "id": comment.id, "version": comment.version, "step": comment.step, "quote": comment.quote, "text": comment.text, "state": comment.state.word(),
        "by": by_object(&comment.by),
    })
}

/// What changed from one version to another: `steps` holds `{change, from?, to?}` with step numbers from 1, in the order of the
/// newer version.
pub fn difference_object(difference: &Difference) -> Value {
    let steps: Value = difference.steps.iter().map(|change| match change {
        Change::Same(a, b) => json!({"change": "same", "from": a, "to": b}),
        Change::Other(a, b) => json!({"change": "changed", "from": a, "to": b}),
        Change::Gone(a) => json!({"change": "removed", "from": a}),
        Change::New(b) => json!({"change": "added", "to": b}),
    }).collect();
    json!({"from": difference.from, "to": difference.to, "summary_changed": difference.summary, "remarks_changed": difference.remarks, "steps": steps})
}

/// Steps, counted from 1. `call` is the refused call that an approval makes again, shown so that nobody approves it unseen.
pub(super) fn steps_object(steps: &[Step]) -> Value {
    steps.iter().enumerate().map(|(n, step)| json!({
        "index": n + 1, "title": step.title, "detail": step.detail, "tools": step.tools,
        "call": step.kept.as_ref().map(|kept| json!({"tool": kept.tool, "args": kept.arguments})),
    })).collect()
}

/// A question, open or settled.
pub fn question_object(question: &Question) -> Value {
    let mut map = Map::new();
    map.insert("id".into(), question.id.0.as_str().into());
    map.insert("kind".into(), question.kind.word().into());
    map.insert("text".into(), question.text.as_str().into());
    if let Some(call) = &question.call {
        map.insert("request_id".into(), question.id.0.as_str().into());
        map.insert("call_id".into(), call.0.as_str().into());
    }
    if let Some(version) = question.version {
        map.insert("version".into(), version.into());
    }
    map.insert("screen_only".into(), question.screen_only.into());
    map.insert("state".into(), question.state.word().into());
    if !question.outcome.is_empty() {
        map.insert("outcome".into(), question.outcome.as_str().into());
    }
    if let Some(by) = &question.by {
        map.insert("by".into(), by_object(by));
    }
    Value::Object(map)
}

/// One entry of `GET /api/approvals` and of the snapshot. `created_at` is in Unix seconds.
pub fn approval_object(pending: &PendingApproval, session_id: &str) -> Value {
    json!({
        "request_id": pending.request.0, "session_id": session_id, "call_id": pending.call.0, "tool_name": pending.tool, "args": pending.arguments,
        "safety_level": "confirm", "effect": pending.effect.word(), "reason": pending.reason, "screen_only": pending.screen_only,
        "hash": pending.hash(), "created_at": seconds(pending.created_ms), "expires_at": seconds(pending.expires_ms()), "status": "pending",
    })
}

/// Payload of `approval_request`.
pub(super) fn approval_request(pending: &PendingApproval, session_id: &str) -> Value {
    json!({
        "request_id": pending.request.0, "session_id": session_id, "call_id": pending.call.0, "tool": pending.tool, "args": pending.arguments,
        "permission_tier": "confirm", "effect": pending.effect.word(), "reason": pending.reason, "screen_only": pending.screen_only,
        "hash": pending.hash(), "created_at": seconds(pending.created_ms), "expires_at": seconds(pending.expires_ms()),
    })
}

/// The todo list.
pub fn todo_object(items: &[TodoItem]) -> Value {
    items.iter().map(|i| json!({"id": i.id, "content": i.content, "status": i.status.word()})).collect()
}

/// The first frame a mirror gets. Its payload is the plan-mode object and beside it everything else that is shown;
/// `resumed` says that the frames after the client's `since` follow, so that nothing has to be drawn anew.
pub fn snapshot_frame(state: &Snapshot, session_id: &str, msg_id: &str, resumed: bool) -> String {
    let mut payload = plan_mode_object(state, session_id);
    payload["modes"]["posture"] = state.stamp.posture.word().into();
    payload["modes"]["ask"] = state.ask.word().into();
    for (name, value) in [
        ("seq", state.seq.into()),
        ("title", state.title.as_str().into()),
        ("started_ms", state.started_ms.into()),
        ("last_ms", state.last_ms.into()),
        ("plans", state.plans.iter().map(plan_object).collect()),
        ("comments", state.comments.iter().map(comment_object).collect()),
        ("draft", steps_object(&state.draft)),
        ("question", state.question.as_ref().map_or(Value::Null, question_object)),
        ("approvals", state.approvals.iter().map(|a| approval_object(a, session_id)).collect()),
        ("todo", todo_object(&state.todo)),
        ("transcript", state.transcript.iter().map(line_object).collect()),
        ("tools", state.trace.iter().map(trace_object).collect()),
        ("voice_state", json!({"state": state.voice.word(), "mode": "chained"})),
        ("ended", state.ended.into()),
        ("resumed", resumed.into()),
    ] {
        payload[name] = value;
    }
    Head { session_id, msg_id, at_ms: state.last_ms }.frame("snapshot", payload, Some(state.seq))
}

fn line_object(line: &Line) -> Value {
    json!({
        "seq": line.seq, "timestamp_ms": line.at_ms, "text": line.text, "role": role_word(line.role), "is_partial": false, "item_id": line.item.0,
        "previous_item_id": null, "for_agent": line.for_agent, "surface": line.surface.word(),
    })
}

fn trace_object(trace: &Trace) -> Value {
    let ended = trace.ended.as_ref().map(|end| json!({"success": end.success, "error_code": end.error_code, "error": end.error}));
    json!({
        "call_id": trace.call.0, "tool": trace.tool, "display_name": trace.display,
        "args_preview": crate::engine::plan::clip(&trace.arguments.to_string(), super::ARGS_PREVIEW_CHARS), "result": ended,
    })
}
