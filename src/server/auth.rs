//! WHO IS THERE: keys, the two grades, and the guard in front of every route. Owns the only place where a presented key
//! is compared; the router puts `guard` before each route, handlers get a `Caller` or an `Operator`.
//!
//! A key comes as `Authorization: Bearer`, as `api-key`, or from a browser's socket as the subprotocol
//! `openai-insecure-api-key.KEY` beside `realtime` or `voxgate.events`. Never from a URL; never into a log or an answer.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::Shared;
use super::ephemeral::Grant;
use super::metrics;
use super::problem::Problem;
use super::routes::Route;
use super::serve::Knock;
use super::strikes::Strike;
use crate::engine::authority::{OperatorDoor, Surface};

/// Subprotocol of the mirror's socket.
pub const EVENTS_PROTOCOL: &str = "voxgate.events";
/// Subprotocol of `/v1/realtime`.
pub const REALTIME_PROTOCOL: &str = "realtime";
/// What a browser puts before its key in the list of subprotocols.
const KEY_PROTOCOL: &str = "openai-insecure-api-key.";

/// SHA-256 of a secret. Equal lengths, so that a comparison takes the same time for every key.
pub type Digest = [u8; 32];

/// SHA-256 of these bytes.
pub fn digest(bytes: &[u8]) -> Digest { Sha256::digest(bytes).into() }

/// What doors need of the keys. Implementations compare in constant time.
pub trait Keys: Send + Sync + 'static {
    /// This is the operator's token.
    fn operator(&self, presented: &[u8]) -> bool;
    /// This is a client's key.
    fn client(&self, presented: &[u8]) -> bool;
    /// The client's key of this digest is still one.
    fn stands(&self, key: &Digest) -> bool;
    /// Looks whether keys were added or revoked. True: they were. Called twice a second.
    fn refresh(&self) -> bool { false }
}

/// Keys held in memory, as digests.
pub struct HeldKeys {
    operator: Digest,
    clients: Vec<Digest>,
}

impl HeldKeys {
    /// An operator's token and any number of client keys. Empty texts are no keys and match nothing.
    pub fn new<'a>(operator: &str, clients: impl IntoIterator<Item = &'a str>) -> Self {
        let clients = clients.into_iter().filter(|key| !key.is_empty()).map(|key| digest(key.as_bytes())).collect();
        Self { operator: digest(operator.as_bytes()), clients }
    }
}

impl Keys for HeldKeys {
    fn operator(&self, presented: &[u8]) -> bool {
        !presented.is_empty() && bool::from(self.operator.ct_eq(&digest(presented)))
    }

    fn client(&self, presented: &[u8]) -> bool {
        self.stands(&digest(presented))
    }

    fn stands(&self, key: &Digest) -> bool { self.clients.iter().fold(false, |found, known| found | bool::from(known.ct_eq(key))) }
}

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Nothing.
    Open,
    /// The operator's token, or a direct connection from this machine without any key.
    Local,
    /// A client's key or the operator's token.
    Client,
    /// The operator's token.
    Operator,
}

/// Who was let in, as far as a key said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No key was asked for.
    Nobody,
    /// A client's key.
    Client,
    /// A secret that a client asked for: good for sockets of `/v1/realtime` alone.
    Secret,
    /// The operator's token, or a page's.
    Operator,
}

/// The client's key that let a request in, as its digest; rides in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub Digest);

/// Who a request is let in for, and by what.
struct Admitted {
    caller: Caller,
    key: Option<Key>,
    grant: Option<Arc<Grant>>,
}

impl Admitted {
    fn as_caller(caller: Caller) -> Self { Self { caller, key: None, grant: None } }
}

/// Proof for handlers that the guard has seen the operator's credential.
#[derive(Clone, Copy, Debug)]
pub struct Operator(());

impl Operator {
    /// The door by which decisions of this surface come in; `None` for a surface that decides nothing.
    pub fn door(self, surface: Surface) -> Option<OperatorDoor> { OperatorDoor::vouch(surface) }
}

/// A handler that asks for it stays shut when its row in the table is wrong.
impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match parts.extensions.get::<Caller>() {
            Some(Caller::Operator) => Ok(Operator(())),
            _ => Err(not_operator()),
        }
    }
}

/// The middleware before each route: lets the caller in under the route's grade or refuses with 401, 403 or 429.
pub(super) async fn guard(State((shared, route)): State<(Arc<Shared>, &'static Route)>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&shared, route, &request) {
        Ok(Admitted { caller, key, grant }) => {
            request.extensions_mut().insert(caller);
            if let Some(key) = key { request.extensions_mut().insert(key); }
            if let Some(grant) = grant { request.extensions_mut().insert(grant); }
            next.run(request).await
        }
        Err(problem) => {
            metrics::refused(problem.code);
            problem.into_response()
        }
    };
    response.extensions_mut().insert(route);
    response
}

fn admit(shared: &Shared, route: &Route, request: &Request) -> Result<Admitted, Problem> {
    let grade = route.grade;
    if grade == Grade::Open {
        return Ok(Admitted::as_caller(Caller::Nobody));
    }
    let peer = peer_of(request)?;
    let Some(key) = presented(request.headers()) else {
        return if grade == Grade::Local && is_direct_local(peer, request.headers()) { Ok(Admitted::as_caller(Caller::Nobody)) } else { Err(no_key()) };
    };
    let grant = shared.secrets.find(key).filter(|grant| grant.by.is_none_or(|by| shared.doors.keys.stands(&by)));
    let admitted = if shared.doors.keys.operator(key) || shared.doors.links.holds(key) {
        Admitted::as_caller(Caller::Operator)
    } else if shared.doors.keys.client(key) {
        Admitted { key: Some(Key(digest(key))), ..Admitted::as_caller(Caller::Client) }
    } else if let Some(grant) = grant {
        Admitted { caller: Caller::Secret, key: grant.by.map(Key), grant: Some(grant) }
    } else {
        return Err(wrong(shared, peer, "invalid_api_key", "this key is not known here"));
    };
    match (grade, admitted.caller) {
        (Grade::Operator | Grade::Local, Caller::Client | Caller::Secret) => Err(not_operator()),
        (Grade::Client, Caller::Secret) if !route.socket => Err(only_sockets()),
        _ => Ok(admitted),
    }
}

fn only_sockets() -> Problem { Problem::new(StatusCode::FORBIDDEN, "not_a_key", "a client secret opens a socket of /v1/realtime and nothing else; this needs a client's key") }

/// Counts a wrong key or code of this peer, and says so.
pub(super) fn wrong(shared: &Shared, peer: SocketAddr, code: &'static str, message: &str) -> Problem {
    match shared.strikes.wrong_key(peer.ip()) {
        Strike::Refuse(delay) => Problem { delay, ..Problem::new(StatusCode::UNAUTHORIZED, code, message) },
        Strike::Wait(seconds) => Problem {
            retry_after_s: Some(seconds),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_wrong_keys", "too many wrong keys came from this address; wait and try again")
        },
    }
}

fn no_key() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "missing_api_key", "send a key as `Authorization: Bearer KEY`; a browser's socket sends it as the subprotocol openai-insecure-api-key.KEY")
}

fn not_operator() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "not_operator", "a client's key speaks and hears on /v1/realtime only; this needs the operator's token")
}

/// Where the connection comes from. The accept loop always says; without it nobody is let in.
pub(super) fn peer_of(request: &Request) -> Result<SocketAddr, Problem> {
    request.extensions().get::<Knock>().map(|knock| knock.peer)
        .ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "the peer's address is not known"))
}

/// From this machine, and not handed on by a proxy that runs here.
fn is_direct_local(peer: SocketAddr, headers: &HeaderMap) -> bool {
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name));
    peer.ip().is_loopback() && !forwarded
}

/// The key that was presented, from the first place that holds one. A place that is there but malformed counts as an
/// empty key, which is wrong: it must not make way for another place.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        return Some(bearer(value.as_bytes()).unwrap_or_default());
    }
    if let Some(value) = headers.get("api-key") {
        return Some(value.as_bytes());
    }
    let speaks_ours = subprotocols(headers).any(|name| name == REALTIME_PROTOCOL || name == EVENTS_PROTOCOL);
    subprotocols(headers).find_map(|name| name.strip_prefix(KEY_PROTOCOL)).filter(|_| speaks_ours).map(str::as_bytes)
}

fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(',')).map(str::trim)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn key_in(list: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        presented(&headers).map(|key| String::from_utf8_lossy(key).into_owned())
    }

    #[test]
    fn a_key_has_three_places() {
        assert_eq!(key_in(&[]), None);
        assert_eq!(key_in(&[("authorization", "Bearer abc")]).as_deref(), Some("abc"));
        assert_eq!(key_in(&[("authorization", "bearer  abc ")]).as_deref(), Some("abc"));
        assert_eq!(key_in(&[("authorization", "Basic abc"), ("api-key", "x")]).as_deref(), Some(""), "malformed is wrong, not absent");
        assert_eq!(key_in(&[("authorization", "Bearer a"), ("api-key", "b")]).as_deref(), Some("a"));
        assert_eq!(key_in(&[("api-key", "b")]).as_deref(), Some("b"));
        assert_eq!(key_in(&[("sec-websocket-protocol", "realtime, openai-insecure-api-key.k1")]).as_deref(), Some("k1"));
        assert_eq!(key_in(&[("sec-websocket-protocol", "voxgate.events"), ("sec-websocket-protocol", "openai-insecure-api-key.k2")]).as_deref(), Some("k2"));
        assert_eq!(key_in(&[("sec-websocket-protocol", "chat, openai-insecure-api-key.k3")]), None);
    }

    #[test]
    fn empty_keys_match_nothing() {
        let keys = HeldKeys::new("", ["", "c"]);
        assert!(!keys.operator(b"") && !keys.client(b"") && keys.client(b"c") && !keys.operator(b"c"));
    }
}
