//! REST CONTROL: plan mode, autonomy, approvals and the page's link, for the operator. Owns the order of "look, decide,
//! look again" and nothing else: what a decision means is the conversation's business, JSON of its state is `dialect`'s.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::response::{IntoResponse, Response};
use axum::Json;
use serde_json::{Value, json};

use super::Shared;
use super::auth::{Operator, peer_of, wrong};
use super::body::Fields;
use super::links::{CODE_LIFE, NoRandomness};
use super::problem::Problem;
use super::serve::Knock;
use super::sessions::find;
use crate::dialect::feral;
use crate::engine::authority::{Decide, OperatorDoor, Surface};
use crate::engine::event::PendingApproval;
use crate::engine::id::QuestionId;
use crate::engine::mode::Autonomy;
use crate::session::handle::Handle;
use crate::session::registry::Which;

/// Approvals listed when nothing else is asked for, and at most.
const APPROVALS: (usize, usize) = (100, 500);

impl Operator {
    /// The door of a REST call.
    pub(super) fn rest(self) -> Result<OperatorDoor, Problem> {
        self.door(Surface::Rest).ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "REST decides nothing here"))
    }
}

/// `GET /api/sessions/{id}/plan_mode`.
pub async fn plan_mode(_: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let handle = find(&shared, &id).await?;
    Ok(Json(describe(&handle).await?))
}

async fn describe(handle: &Handle) -> Result<Value, Problem> { Ok(feral::plan_mode_object(&handle.snapshot().await?, handle.id())) }

/// `POST /api/sessions/{id}/plan_mode` with `{enabled, reason?, approved?, version?, hash?}`.
///
/// An exit answers with `approved` and with the newest plan as it stood before.
pub async fn set_plan_mode(
    operator: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, fields: Fields,
) -> Result<Json<Value>, Problem> {
    let (enabled, approved) = (fields.bool("enabled")?, fields.maybe_bool("approved")?.unwrap_or(false));
    let (reason, hash, version) = (fields.maybe_text("reason")?.unwrap_or_default(), fields.maybe_text("hash")?, fields.maybe_version("version")?);
    let handle = find(&shared, &id).await?;
    let door = operator.rest()?;
    if enabled {
        handle.decide(door.decide(Decide::Enter { reason }, "")).await??;
        return Ok(Json(describe(&handle).await?));
    }
    let mut before = describe(&handle).await?;
    let decide = if approved { Decide::Approve { version, hash } } else { Decide::Leave };
    handle.decide(door.decide(decide, reason)).await??;
    let mut after = describe(&handle).await?;
    after["latest_plan"] = before["latest_plan"].take();
    after["approved"] = approved.into();
    Ok(Json(after))
}

/// `GET /api/autonomy`.
pub async fn autonomy(_: Operator, State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({"mode": shared.doors.conversations.autonomy().word()}))
}

/// `POST /api/autonomy` with `{mode}`. A failed write keeps the live change and says `persisted: false`.
pub async fn set_autonomy(_: Operator, State(shared): State<Arc<Shared>>, fields: Fields) -> Result<Json<Value>, Problem> {
    let to = Autonomy::from_word(&fields.text("mode")?).ok_or_else(|| Problem::field("mode", "must be strict, hybrid or loose"))?;
    let persisted = shared.doors.conversations.set_autonomy(to).await;
    Ok(Json(json!({"success": true, "mode": to.word(), "persisted": persisted})))
}

/// `GET /api/approvals?session_id=&limit=`: calls that wait for a person, oldest first.
pub async fn approvals(
    _: Operator, State(shared): State<Arc<Shared>>, Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, Problem> {
    let limit = match query.get("limit") {
        None => APPROVALS.0,
        Some(text) => text.parse().ok().filter(|n| (1..=APPROVALS.1).contains(n)).ok_or_else(|| Problem::field("limit", "must be a whole number from 1 to 500"))?,
    };
    let mut waiting = waiting(&shared).await;
    if let Some(session) = query.get("session_id") {
        waiting.retain(|(handle, _)| handle.id() == session);
    }
    waiting.sort_by_key(|(_, approval)| approval.created_ms);
    waiting.truncate(limit);
    let approvals: Vec<Value> = waiting.iter().map(|(handle, approval)| feral::approval_object(approval, handle.id())).collect();
    Ok(Json(json!({"count": approvals.len(), "approvals": approvals})))
}

/// What waits in the conversations that run; one that rests in the store has nothing waiting.
async fn waiting(shared: &Shared) -> Vec<(Handle, PendingApproval)> {
    let mut all = Vec::new();
    for listed in shared.doors.conversations.list().await.into_iter().filter(|listed| listed.running) {
        let Ok(handle) = shared.doors.conversations.open(Which::Id(listed.id)).await else { continue };
        let Ok(snapshot) = handle.snapshot().await else { continue };
        all.extend(snapshot.approvals.into_iter().map(|approval| (handle.clone(), approval)));
    }
    all
}

/// `POST /api/approvals/{request}/approve|reject` with `{session_id?, hash?}`: the conversation it should be of, and the hash of the call
/// that was seen.
pub async fn decide_approval(
    operator: Operator, State(shared): State<Arc<Shared>>, Path((request, verdict)): Path<(String, String)>, fields: Fields,
) -> Result<Json<Value>, Problem> {
    let approve = match verdict.as_str() {
        "approve" => true,
        "reject" => false,
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", "a request is answered by approve or reject")),
    };
    let expected = fields.maybe_text("session_id")?;
    let (handle, approval) = waiting(&shared).await.into_iter().find(|(_, approval)| approval.request.0 == request).ok_or_else(resolved)?;
    if expected.is_some_and(|session| session != handle.id()) {
        return Err(Problem::new(StatusCode::CONFLICT, "session_mismatch", "this request belongs to another conversation"));
    }
    if fields.maybe_text("hash")?.is_some_and(|hash| hash != approval.hash()) {
        return Err(Problem::new(StatusCode::CONFLICT, feral::OTHER_ARGUMENTS.0, feral::OTHER_ARGUMENTS.1));
    }
    let answer = Decide::AnswerTool { request: QuestionId(request.clone()), approve };
    let done = handle.decide(operator.rest()?.decide(answer, "")).await?.map_err(|declined| match declined.code {
        "already_decided" => resolved(),
        _ => Problem::from(declined),
    })?;
    // Somebody was quicker: what was answered is not what was asked for here.
    if done.code == "already" {
        return Err(Problem { message: done.message, ..resolved() });
    }
    Ok(Json(json!({
        "success": true, "status": if approve { "approved" } else { "rejected" }, "request_id": request,
        "session_id": handle.id(), "tool_name": approval.tool, "summary": done.message,
    })))
}

fn resolved() -> Problem { Problem::new(StatusCode::NOT_FOUND, "no_such_request", "no call waits under this id; it may be decided already") }

/// `POST /api/link` with `{code}`: the page's code for a token.
pub async fn trade_link(State(shared): State<Arc<Shared>>, request: Request) -> Result<Json<Value>, Problem> {
    use axum::extract::FromRequest as _;
    let peer = peer_of(&request)?;
    let code = Fields::from_request(request, &shared).await?.text("code")?;
    match shared.doors.links.trade(&code)? {
        Some(token) => Ok(Json(json!({"token": token}))),
        None => Err(wrong(&shared, peer, "wrong_code", "this link has been used or is older than a minute; `voxgate link` prints another")),
    }
}

/// `POST /api/link/new`: another code, for `voxgate link`.
pub async fn new_link(_: Operator, State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let code = shared.doors.links.issue()?;
    let scheme = if request.extensions().get::<Knock>().is_some_and(|knock| knock.secure.is_some()) { "https" } else { "http" };
    let url = format!("{scheme}://{host}/#code={code}");
    // The same code: whichever of the two is opened first uses it up.
    let secure = shared.secure_url.as_ref().map(|secure| format!("{secure}/#code={code}"));
    Ok((StatusCode::CREATED, Json(json!({"code": code, "expires_in_s": CODE_LIFE.as_secs(), "url": url, "secure_url": secure}))).into_response())
}

impl From<NoRandomness> for Problem {
    fn from(error: NoRandomness) -> Self { Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_randomness", error.to_string()) }
}
