//! WHAT IS THERE: the list of conversations, one conversation's state, the models, and how the gateway itself is. Reads
//! only, except that `POST /v1/sessions` begins a conversation. JSON of a conversation's state comes from `dialect`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Shared;
use super::auth::Operator;
use super::fresh::Fresh;
use super::problem::Problem;
use super::sockets::known_form;
use crate::dialect::feral;
use crate::session::cost;
use crate::session::handle::Handle;
use crate::session::registry::{Listed, Which};

/// `GET /healthz`: the process answers.
pub async fn healthz() -> Json<Value> { Json(json!({"status": "ok"})) }

/// `GET /readyz`: a conversation could begin now.
pub async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    match (shared.doors.ready)() {
        Ok(()) => Json(json!({"status": "ready"})).into_response(),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "not_ready", "missing": missing}))).into_response(),
    }
}

/// `GET /metrics`.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let recorder = shared.doors.metrics.as_ref()
        .ok_or_else(|| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_metrics", "figures are switched off"))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], recorder.render() + &cost::lines()).into_response())
}

/// `GET /v1/models`.
pub async fn models(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let data: Vec<Value> = shared.doors.models.iter()
        .map(|id| json!({"id": id, "object": "model", "created": 0, "owned_by": "voxgate"})).collect();
    Json(json!({"object": "list", "data": data}))
}

/// `GET /v1/sessions`, newest first.
pub async fn list(_: Operator, State(shared): State<Arc<Shared>>) -> Json<Value> {
    let sessions: Vec<Value> = shared.doors.conversations.list().await.iter().map(line).collect();
    Json(json!({"count": sessions.len(), "sessions": sessions}))
}

/// Times as everywhere on this wire: Unix milliseconds.
fn line(listed: &Listed) -> Value {
    json!({
        "id": listed.id, "title": listed.title, "started_ms": listed.started_ms, "last_event_ms": listed.last_ms,
        "mode": listed.mode, "attached": listed.attached, "running": listed.running,
    })
}

/// `POST /v1/sessions`.
pub async fn create(_: Operator, State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let handle = shared.doors.conversations.open(Which::New).await?;
    Ok((StatusCode::CREATED, Json(json!({"id": handle.id(), "session_id": handle.id()}))).into_response())
}

/// `GET /v1/sessions/{id}`: the frame a mirror starts with.
pub async fn one(_: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Result<Response, Problem> {
    let handle = find(&shared, &id).await?;
    let frame = feral::snapshot_frame(&handle.snapshot().await?, handle.id(), &Fresh::new().msg_id, false);
    Ok(([(CONTENT_TYPE, "application/json")], frame).into_response())
}

/// The conversation a path names: an id, or `last` where there is one.
pub(super) async fn find(shared: &Shared, id: &str) -> Result<Handle, Problem> {
    let id = match id {
        "last" => shared.doors.conversations.list().await.into_iter().next().map(|newest| newest.id).ok_or_else(|| Problem::unknown_session("last"))?,
        id => known_form(id)?,
    };
    Ok(shared.doors.conversations.open(Which::Id(id)).await?)
}
