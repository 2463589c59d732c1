//! Engine nouns inside a record: who, plan steps and versions, questions, approvals, todo items. Both directions side by side.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::{RecordError, opaque};
use crate::engine::authority::{By, Surface};
use crate::engine::comment::{Comment, CommentState};
use crate::engine::event::{PendingApproval, Question, QuestionKind, QuestionState};
use crate::engine::id::{CallId, QuestionId, UtteranceId};
use crate::engine::plan::{KeptCall, PlanStatus, PlanVersion, Step};
use crate::engine::todo::{TodoItem, TodoStatus};
use crate::engine::tool::{CallHash, Effect};

pub(super) fn by_out(by: &By) -> Value {
    json!({"surface": by.surface.word(), "utterance": by.utterance.map(|u| u.0), "words": by.words})
}

pub(super) fn by_in(f: &Fields<'_>) -> Result<By, RecordError> {
    Ok(By {
        surface: f.word("surface", Surface::from_word)?,
        utterance: f.maybe("utterance", Fields::whole)?.map(UtteranceId),
        words: f.text("words")?,
    })
}

fn hash_out(hash: &CallHash) -> String { hash.iter().map(|b| format!("{b:02x}")).collect() }

fn hash_in(f: &Fields<'_>) -> Result<CallHash, RecordError> {
    let text = f.text("hash")?;
    let bad = || f.wrong("hash", "is not 64 hex digits");
    if text.len() != 64 || !text.is_ascii() {
        return Err(bad());
    }
    let mut hash = CallHash::default();
    for (n, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).map_err(|_| bad())?;
    }
    Ok(hash)
}

fn kept_out(kept: &KeptCall) -> Value {
    json!({"tool": kept.tool, "arguments": opaque::pack(&kept.arguments), "hash": hash_out(&kept.hash)})
}

fn kept_in(f: &Fields<'_>) -> Result<KeptCall, RecordError> {
    Ok(KeptCall { tool: f.text("tool")?, arguments: f.opaque("arguments")?, hash: hash_in(f)? })
}

fn step_out(step: &Step) -> Value {
    json!({"title": step.title, "detail": step.detail, "tools": step.tools, "kept": step.kept.as_ref().map(kept_out)})
}

fn step_in(f: &Fields<'_>) -> Result<Step, RecordError> {
    Ok(Step {
        title: f.text("title")?,
        detail: f.text("detail")?,
        tools: f.texts("tools")?,
        kept: f.maybe("kept", |f, name| kept_in(&f.object(name)?))?,
    })
}

pub(super) fn steps_out(steps: &[Step]) -> Value { steps.iter().map(step_out).collect() }

pub(super) fn steps_in(f: &Fields<'_>, field: &str) -> Result<Vec<Step>, RecordError> { f.objects(field, step_in) }

pub(super) fn version_out(plan: &PlanVersion, map: &mut Map<String, Value>) {
    map.insert("version".into(), plan.version.into());
    map.insert("title".into(), plan.title.as_str().into());
    map.insert("summary".into(), plan.summary.as_str().into());
    map.insert("steps".into(), steps_out(&plan.steps));
    map.insert("open_questions".into(), json!(plan.open_questions));
    map.insert("risks".into(), json!(plan.risks));
    map.insert("hash".into(), plan.hash.as_str().into());
    map.insert("status".into(), plan.status.word().into());
}

pub(super) fn version_in(f: &Fields<'_>) -> Result<PlanVersion, RecordError> {
    Ok(PlanVersion {
        version: f.small("version")?,
        title: f.text("title")?,
        summary: f.text("summary")?,
        steps: steps_in(f, "steps")?,
        open_questions: f.texts("open_questions")?,
        risks: f.texts("risks")?,
        hash: f.text("hash")?,
        status: f.word("status", PlanStatus::from_word)?,
        ..PlanVersion::default()
    })
}

pub(super) fn comment_out(c: &Comment, map: &mut Map<String, Value>) {
    map.insert("id".into(), c.id.into());
    map.insert("version".into(), c.version.into());
    map.insert("step".into(), json!(c.step));
    map.insert("quote".into(), c.quote.as_str().into());
    map.insert("text".into(), c.text.as_str().into());
    map.insert("state".into(), c.state.word().into());
    map.insert("by".into(), by_out(&c.by));
}

pub(super) fn comment_in(f: &Fields<'_>) -> Result<Comment, RecordError> {
    Ok(Comment {
        id: f.small("id")?,
        version: f.small("version")?,
        step: f.maybe("step", Fields::small)?,
        quote: f.text("quote")?,
        text: f.text("text")?,
        state: f.word("state", CommentState::from_word)?,
        by: by_in(&f.object("by")?)?,
    })
}

pub(super) fn question_out(q: &Question, map: &mut Map<String, Value>) {
    map.insert("id".into(), q.id.0.as_str().into());
    map.insert("about".into(), q.kind.word().into());
    map.insert("text".into(), q.text.as_str().into());
    map.insert("version".into(), json!(q.version));
    map.insert("call".into(), json!(q.call.as_ref().map(|c| &c.0)));
    map.insert("screen_only".into(), q.screen_only.into());
    map.insert("state".into(), q.state.word().into());
    map.insert("outcome".into(), q.outcome.as_str().into());
    map.insert("by".into(), q.by.as_ref().map_or(Value::Null, by_out));
}

pub(super) fn question_in(f: &Fields<'_>) -> Result<Question, RecordError> {
    Ok(Question {
        id: QuestionId(f.text("id")?),
        kind: f.word("about", QuestionKind::from_word)?,
        text: f.text("text")?,
        version: f.maybe("version", Fields::small)?,
        call: f.maybe("call", Fields::text)?.map(CallId),
        screen_only: f.truth("screen_only")?,
        state: f.word("state", QuestionState::from_word)?,
        outcome: f.text("outcome")?,
        by: f.maybe("by", |f, name| by_in(&f.object(name)?))?,
    })
}

pub(super) fn pending_out(p: &PendingApproval, map: &mut Map<String, Value>) {
    map.insert("request".into(), p.request.0.as_str().into());
    map.insert("call".into(), p.call.0.as_str().into());
    map.insert("tool".into(), p.tool.as_str().into());
    map.insert("arguments".into(), opaque::pack(&p.arguments));
    map.insert("effect".into(), p.effect.word().into());
    map.insert("reason".into(), p.reason.as_str().into());
    map.insert("screen_only".into(), p.screen_only.into());
    map.insert("created_ms".into(), p.created_ms.into());
}

pub(super) fn pending_in(f: &Fields<'_>) -> Result<PendingApproval, RecordError> {
    Ok(PendingApproval {
        request: QuestionId(f.text("request")?),
        call: CallId(f.text("call")?),
        tool: f.text("tool")?,
        arguments: f.opaque("arguments")?,
        effect: f.word("effect", Effect::from_word)?,
        reason: f.text("reason")?,
        screen_only: f.truth("screen_only")?,
        created_ms: f.whole("created_ms")?,
    })
}

pub(super) fn todo_out(items: &[TodoItem]) -> Value {
    items.iter().map(|i| json!({"id": i.id, "content": i.content, "status": i.status.word()})).collect()
}

pub(super) fn todo_in(f: &Fields<'_>) -> Result<Vec<TodoItem>, RecordError> {
    f.objects("items", |f| Ok(TodoItem { id: f.text("id")?, content: f.text("content")?, status: f.word("status", TodoStatus::from_word)? }))
}
