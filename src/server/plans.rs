//! REST OF PLANS AND MODES: versions, differences, comments, decisions, and the list of modes of one conversation, for the operator.
//! Decides nothing itself: each body becomes one decision of the conversation, each answer is the state after it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Shared;
use super::auth::Operator;
use super::body::Fields;
use super::problem::Problem;
use super::sessions::find;
use crate::dialect::feral;
use crate::engine::authority::Decide;
use crate::engine::diff;
use crate::engine::mode::{MODES, Mode};
use crate::engine::snapshot::Snapshot;

/// `GET /api/sessions/{id}/plans`.
pub async fn list(_: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let handle = find(&shared, &id).await?;
    Ok(Json(feral::plans_object(&handle.snapshot().await?, handle.id())))
}

/// `GET /api/sessions/{id}/plans/difference?from=&to=`; without numbers the newest version and the one before it.
pub async fn difference(
    _: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, Problem> {
    let number = |name: &'static str| match query.get(name) {
        None => Ok(None),
        Some(text) => text.parse::<u32>().ok().filter(|n| *n > 0).map(Some).ok_or_else(|| Problem::field(name, "must be the number of a version, from 1 up")),
    };
    let (from, to) = (number("from")?, number("to")?);
    let state = find(&shared, &id).await?.snapshot().await?;
    let to = version(&state, to.unwrap_or(state.plan_count))?;
    let from = version(&state, from.unwrap_or(to.version.saturating_sub(1)))?;
    Ok(Json(feral::difference_object(&diff::between(from, to))))
}

fn version(state: &Snapshot, number: u32) -> Result<&crate::engine::plan::PlanVersion, Problem> {
    state.version(number).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no_such_version", format!("there is no plan {number}; the newest is {}", state.plan_count)))
}

/// `POST /api/sessions/{id}/plans` with `{decision, version?, hash?, comments?, mode?}`: approve, request_changes, dismiss,
/// back_to_review, continue, mark_done. What was decided already is answered with by whom and when, and is no error.
pub async fn decide(operator: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, fields: Fields) -> Result<Json<Value>, Problem> {
    let (version, hash, comments) = (fields.maybe_version("version")?, fields.maybe_text("hash")?, fields.maybe_text("comments")?.unwrap_or_default());
    let decide = match (fields.text("decision")?.as_str(), fields.maybe_text("mode")?) {
        ("approve", None) => Decide::Approve { version, hash },
        ("approve", Some(word)) => Decide::ApproveIn { version, hash, mode: mode_of(&word)? },
        ("request_changes", _) => Decide::RequestChanges { version, comments },
        ("dismiss", _) => Decide::Dismiss { version },
        ("back_to_review", _) => Decide::BackToReview { version },
        ("continue", _) => Decide::Continue { version },
        ("mark_done", _) => Decide::MarkDone { version },
        _ => return Err(Problem::field("decision", "must be approve, request_changes, dismiss, back_to_review, continue or mark_done")),
    };
    carry_out(operator, &shared, &id, decide, feral::plans_object).await
}

/// `POST /api/sessions/{id}/comments` with `{text, id?, version?, step?, quote?}`; an empty text takes comment `id` away.
pub async fn comment(operator: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, fields: Fields) -> Result<Json<Value>, Problem> {
    let decide = Decide::Comment {
        id: fields.maybe_version("id")?, version: fields.maybe_version("version")?, step: fields.maybe_version("step")?,
        quote: fields.maybe_text("quote")?.unwrap_or_default(), text: fields.text("text")?,
    };
    carry_out(operator, &shared, &id, decide, feral::plans_object).await
}

/// `GET /api/sessions/{id}/mode`.
pub async fn modes(_: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let handle = find(&shared, &id).await?;
    Ok(Json(feral::modes_object(&handle.snapshot().await?, handle.id())))
}

/// `POST /api/sessions/{id}/mode` with `{mode}`.
pub async fn set_mode(operator: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, fields: Fields) -> Result<Json<Value>, Problem> {
    let decide = Decide::Mode(mode_of(&fields.text("mode")?)?);
    carry_out(operator, &shared, &id, decide, feral::modes_object).await
}

fn mode_of(word: &str) -> Result<Mode, Problem> {
    Mode::from_word(word).ok_or_else(|| Problem::field("mode", &format!("must be one of {}", MODES.join(", "))))
}

async fn carry_out(operator: Operator, shared: &Shared, id: &str, decide: Decide, shown: fn(&Snapshot, &str) -> Value) -> Result<Json<Value>, Problem> {
    let handle = find(shared, id).await?;
    let done = handle.decide(operator.rest()?.decide(decide, "")).await??;
    let mut after = shown(&handle.snapshot().await?, handle.id());
    after["success"] = true.into();
    after["code"] = json!(done.code);
    after["message"] = done.message.into();
    Ok(Json(after))
}
