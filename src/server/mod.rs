//! THE FRONT DOOR: `/v1/realtime`, the mirror, REST and the page, for whoever may come in. Owns sockets, keys' checks and
//! the shape of refusals; `cli` opens it with `serve`. It decides nothing about a conversation: it hands people's words
//! and decisions to a `Handle` of session and shows what comes back.
//!
//! The way of a request: `serve` (a place, time limits) -> `routes` (Host, Origin, then the route's grade by `auth`) ->
//! a handler (`rest`, `sessions`, `mirror`, `sockets`, `page`) -> `problem` (the body of a refusal).

pub mod auth;
pub mod links;
mod body;
mod ephemeral;
mod fresh;
pub mod metrics;
mod mirror;
mod origin;
mod page;
mod plans;
mod problem;
pub mod realtime;
mod rest;
pub mod routes;
mod serve;
mod sessions;
pub mod sockets;
mod strikes;
pub mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::session::registry::Conversations;
use auth::{Key, Keys};
use ephemeral::Secrets;
use links::LinkCodes;
use origin::Allowed;
pub use serve::{Stage, serve};
use sockets::Wire;
use strikes::Strikes;
use tls::Secure;

/// Sizes, counts and times of the doors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time, sockets among them.
    pub connections: usize,
    /// Until a request's head must be whole; also how long an idle kept-alive connection stays.
    pub head_timeout: Duration,
    /// Until a request's body must be whole.
    pub body_timeout: Duration,
    /// Largest body of a REST request, in bytes.
    pub body_max: usize,
    /// Largest message of a mirror's client, in bytes.
    pub mirror_message_max: usize,
    /// Largest message of a realtime client that is read at all, in bytes: the protocol allows 15 MiB of base64 in one
    /// append, and the wire wants to read what is a little too large in order to refuse it with words.
    pub realtime_message_max: usize,
    /// Between two pings on a mirror's socket.
    pub ping: Duration,
    /// A mirror that has been silent this long, pongs included, is gone.
    pub silence: Duration,
    /// Until a frame must have been taken by a mirror's socket.
    pub send_timeout: Duration,
    /// For sockets and requests to end by themselves at shutdown.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(5),
            body_max: 64 * 1024,
            mirror_message_max: 64 * 1024,
            realtime_message_max: 24 * 1024 * 1024,
            ping: Duration::from_secs(15),
            silence: Duration::from_secs(45),
            send_timeout: Duration::from_secs(5),
            grace: Duration::from_secs(5),
        }
    }
}

/// Says whether the gateway can hold a conversation now; the error is what is still missing, as a sentence.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// All that the doors need.
pub struct Doors {
    /// The conversations of this process.
    pub conversations: Arc<dyn Conversations>,
    /// Who may come in.
    pub keys: Arc<dyn Keys>,
    /// The page's one-use codes; kept by the caller too, who prints the first.
    pub links: Arc<LinkCodes>,
    /// What speaks on `/v1/realtime`.
    pub wire: Arc<dyn Wire>,
    /// Renders `/metrics`; without it the path answers 503.
    pub metrics: Option<PrometheusHandle>,
    /// For `/readyz`.
    pub ready: Readiness,
    /// What `?model=` may name, for `/v1/models`.
    pub models: Vec<String>,
    /// More names this gateway answers to, as a browser writes them in Host.
    pub hosts: Vec<String>,
    /// More origins whose pages may use it.
    pub origins: Vec<String>,
    /// The second listener, which speaks TLS.
    pub secure: Option<Secure>,
    /// Sizes, counts and times.
    pub limits: Limits,
}

impl Doors {
    /// Doors with nothing but what must be there: always ready, no metrics, no further names, default limits.
    pub fn new(conversations: Arc<dyn Conversations>, keys: Arc<dyn Keys>, wire: Arc<dyn Wire>) -> Self {
        Self {
            conversations, keys, wire,
            links: Arc::default(),
            metrics: None,
            ready: Arc::new(|| Ok(())),
            models: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            secure: None,
            limits: Limits::default(),
        }
    }
}

/// What every handler can reach.
pub(crate) struct Shared {
    doors: Doors,
    allowed: Allowed,
    /// `https://NAME:PORT` of the second listener.
    secure_url: Option<String>,
    strikes: Strikes,
    secrets: Secrets,
    /// Keys were added or revoked: whoever holds a socket looks whether its own still is one.
    keys_changed: watch::Sender<()>,
    stage: watch::Receiver<Stage>,
}

impl Shared {
    fn new(doors: Doors, local: SocketAddr, secure: Option<&Secure>, stage: watch::Receiver<Stage>) -> Self {
        let mut allowed = Allowed::new(local, &doors.hosts, &doors.origins);
        if let Some(secure) = secure {
            allowed.secured(secure.listener.local_addr().map_or(0, |at| at.port()), &secure.names, &doors.hosts);
        }
        let secure_url = secure.map(|secure| secure.url.clone());
        Self { doors, allowed, secure_url, strikes: Strikes::default(), secrets: Secrets::default(), keys_changed: watch::channel(()).0, stage }
    }

    /// Ready when this key is no longer one; never for whoever came without.
    async fn revoked(&self, key: Option<Key>) {
        let Some(Key(key)) = key else { return std::future::pending().await };
        let mut changes = self.keys_changed.subscribe();
        while self.doors.keys.stands(&key) {
            if changes.changed().await.is_err() { return std::future::pending().await }
        }
    }

    fn look_at_keys(&self) {
        if self.doors.keys.refresh() { self.keys_changed.send_replace(()); }
    }

    fn upkeep(&self) {
        if let Some(metrics) = &self.doors.metrics {
            metrics.run_upkeep();
        }
    }
}
