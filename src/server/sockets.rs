//! THE WAY TO `/v1/realtime`: everything before the first event of the protocol. Owns the query, the choice of the
//! subprotocol and of the conversation, and the socket's limits; what is spoken on the socket is a [`Wire`]'s.

use std::future::Future;
use std::sync::Arc;

use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::Extension;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::auth::{Key, REALTIME_PROTOCOL};
use super::ephemeral::Grant;
use super::problem::Problem;
use super::realtime::Speaks;
use super::serve::{Knock, Stage, reached};
use super::{Shared, metrics};
use crate::session::handle::Handle;
use crate::session::registry::Which;

/// Read buffer of a socket, in bytes. The default of 128 KiB is what made an idle socket dear.
pub(super) const READ_BUFFER: usize = 4 * 1024;
/// Bytes collected before a socket is written to.
pub(super) const WRITE_BUFFER: usize = 4 * 1024;
/// Most bytes that wait to be written to a socket: one large message.
pub(super) const WRITE_MAX: usize = 32 * 1024 * 1024;

/// What the address of a realtime socket says, for the [`Wire`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealtimeQuery {
    /// `?model=`, as clients insist on naming one.
    pub model: Option<String>,
    /// `?conversation=`: the conversation to join, or `last`. Already opened when the wire gets it.
    pub conversation: Option<String>,
    /// `?mode=plan`: the client wants the conversation in plan mode before anything else happens.
    pub plan: bool,
    /// The session it begins with, in the shape of a `session.update`: what its client secret stands for.
    pub session: Option<Value>,
    /// What its client speaks.
    pub speaks: Speaks,
}

/// The address as it is read here.
#[derive(serde::Deserialize)]
pub(super) struct Address {
    #[serde(alias = "deployment")]
    model: Option<String>,
    conversation: Option<String>,
    /// The mode it begins in: `plan`, and no other.
    mode: Option<String>,
    /// A side band of a call elsewhere; there are none here.
    call_id: Option<String>,
}

/// What speaks the realtime protocol on an upgraded socket, until that is closed. Any
/// `async fn(WebSocket, Handle, RealtimeQuery)` is one.
pub trait Wire: Send + Sync + 'static {
    /// Holds the conversation over this socket.
    fn run(&self, socket: WebSocket, handle: Handle, query: RealtimeQuery) -> BoxFuture<'static, ()>;
}

impl<F, Running> Wire for F
where
    F: Fn(WebSocket, Handle, RealtimeQuery) -> Running + Send + Sync + 'static,
    Running: Future<Output = ()> + Send + 'static,
{
    fn run(&self, socket: WebSocket, handle: Handle, query: RealtimeQuery) -> BoxFuture<'static, ()> { Box::pin(self(socket, handle, query)) }
}

/// `GET /v1/realtime` and its other paths.
pub(super) async fn upgrade(
    State(shared): State<Arc<Shared>>, Query(address): Query<Address>, Extension(knock): Extension<Knock>, grant: Option<Extension<Arc<Grant>>>,
    key: Option<Extension<Key>>, headers: HeaderMap, upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    if address.call_id.is_some() {
        return Err(Problem::field("call_id", "names a call of another service; this gateway has none"));
    }
    let plan = begins_in_plan(address.mode.as_deref())?;
    let (model, session) = begins_with(address.model, grant.as_deref().map(Arc::as_ref))?;
    let speaks = Speaks::of(&headers);
    let which = match address.conversation.as_deref() {
        None | Some("new") => Which::New,
        Some("last") => Which::Last,
        Some(id) => Which::Id(known_form(id)?),
    };
    let handle = shared.doors.conversations.open(which).await?;
    let query = RealtimeQuery { model, conversation: address.conversation, plan, session, speaks };
    let (wire, mut stage) = (Arc::clone(&shared.doors.wire), shared.stage.clone());
    let key = key.map(|key| key.0);
    let upgrade = limited(upgrade, shared.doors.limits.realtime_message_max).protocols([REALTIME_PROTOCOL]);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _kept = (knock, metrics::realtime_socket());
        tokio::select! {
            () = wire.run(socket, handle, query) => {}
            () = reached(&mut stage, Stage::Over) => {}
            () = shared.revoked(key) => tracing::info!("the key of a socket was revoked; the socket is cut"),
        }
    }))
}

/// Model and session of a socket: those of its secret, which may not be used for another model.
fn begins_with(model: Option<String>, grant: Option<&Grant>) -> Result<(Option<String>, Option<Value>), Problem> {
    let model = model.filter(|model| !model.is_empty());
    match grant {
        Some(Grant { model: Some(granted), .. }) if model.as_ref().is_some_and(|model| model != granted) => Err(Problem::field("model", "is not the one that this client secret is for")),
        Some(grant) => Ok((model.or_else(|| grant.model.clone()), Some(grant.session.clone()))),
        None => Ok((model, None)),
    }
}

/// What a client may ask for at the start: plan mode, which only tightens. Looser modes are chosen by a person on a screen.
fn begins_in_plan(mode: Option<&str>) -> Result<bool, Problem> {
    match mode {
        None | Some("" | "default") => Ok(false),
        Some("plan") => Ok(true),
        Some(_) => Err(Problem::field("mode", "may be plan; a client begins no looser mode, a person chooses it on a screen")),
    }
}

/// All limits of a socket. A message is also limited as a frame: a header that claims more ends the socket at once.
pub(super) fn limited(upgrade: WebSocketUpgrade, message_max: usize) -> WebSocketUpgrade {
    upgrade.read_buffer_size(READ_BUFFER).write_buffer_size(WRITE_BUFFER).max_write_buffer_size(WRITE_MAX)
        .max_message_size(message_max).max_frame_size(message_max)
}

/// An id as this gateway could have given it out; anything else is unknown without asking anybody.
pub(super) fn known_form(id: &str) -> Result<String, Problem> {
    let fits = !id.is_empty() && id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if fits { Ok(id.to_string()) } else { Err(Problem::new(StatusCode::NOT_FOUND, "unknown_session", "there is no conversation with such an id")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_d19_a_client_may_begin_in_plan_mode_and_in_nothing_looser() {
        assert_eq!([begins_in_plan(None), begins_in_plan(Some("default")), begins_in_plan(Some("plan"))], [Ok(false), Ok(false), Ok(true)]);
        for loose in ["bypass", "autonomous", "custom", "Plan", "bypassPermissions", "nonsense"] {
            assert!(begins_in_plan(Some(loose)).is_err_and(|p| p.field == Some("mode") && p.status == StatusCode::BAD_REQUEST), "{loose}");
        }
    }
}
