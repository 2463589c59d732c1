//! THE ACCEPT LOOP: sockets in, requests to the router, an end that waits. Owns the listener, the connections' tasks and
//! the places; `cli` calls [`serve`]. Knows nothing of what is served.
//!
//! It is a loop of its own because the framework's has no time limit for a request's head and no limit of connections.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::tls::Greeter;
use super::{Doors, Limits, Shared, metrics, routes};

/// Longest head of a request, in bytes (a browser's has about 700).
const HEAD_MAX: usize = 16 * 1024;
/// Most header lines of a request.
const HEADERS_MAX: usize = 64;
/// How often the metrics recorder tidies its samples.
const UPKEEP: Duration = Duration::from_secs(5);

/// How often it is looked whether keys were added or revoked.
const KEYS: Duration = Duration::from_millis(500);

/// Where the server stands, for tasks that outlive their request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Serving.
    Open,
    /// Nobody new comes in; sockets say goodbye.
    Closing,
    /// Time is up; what is left ends where it stands.
    Over,
}

/// Waits for that stage or a later one. A server that is gone without a word is over.
pub(super) async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

/// What the accept loop knows of a connection; rides in every request's extensions.
#[derive(Clone)]
pub struct Knock {
    /// The other end.
    pub peer: SocketAddr,
    /// Our own end of a connection with TLS: the address that its client named or was led to.
    pub secure: Option<SocketAddr>,
    /// Its place among the connections. A socket that outlives its request keeps a copy.
    _place: Arc<OwnedSemaphorePermit>,
}

/// Serves `doors` on `listener`, and with TLS on the second one if there is one, until `shutdown` is ready; then says goodbye to all sockets and waits for them, at most
/// `limits.grace`. When it returns, nothing of it runs any more, except sockets of tasks that ignore [`Stage::Over`].
pub async fn serve(listener: TcpListener, mut doors: Doors, shutdown: impl Future<Output = ()>) {
    let local = match listener.local_addr() {
        Ok(local) => local,
        Err(error) => return tracing::error!(%error, "the listening socket has no address; nothing is served"),
    };
    let limits = doors.limits;
    let (stage, watching) = watch::channel(Stage::Open);
    let secure = doors.secure.take();
    let shared = Arc::new(Shared::new(doors, local, secure.as_ref(), watching));
    let (secure, greeter) = secure.map(|s| (s.listener, Greeter::new(s.settings, limits.head_timeout))).unzip();
    let router = routes::router(&shared);
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut upkeep = tokio::time::interval(UPKEEP);
    let mut keys = tokio::time::interval(KEYS);
    keys.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => welcome(stream, peer, None, &places, &router, &shared, &mut connections),
                Err(error) => rest_after(&error).await,
            },
            accepted = next_secure(secure.as_ref()) => match accepted {
                Ok((stream, peer)) => welcome(stream, peer, greeter.clone(), &places, &router, &shared, &mut connections),
                Err(error) => rest_after(&error).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = upkeep.tick() => shared.upkeep(),
            _ = keys.tick() => shared.look_at_keys(),
        }
    }
    drop((listener, secure));
    end(&stage, limits, &places, connections).await;
}

async fn next_secure(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Gives the newcomer a place and a task, or says that all are taken.
fn welcome(stream: TcpStream, peer: SocketAddr, greeter: Option<Greeter>, places: &Arc<Semaphore>, router: &Router, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        metrics::connection_refused();
        if greeter.is_some() { return }
        // Into the socket's empty buffer; a peer that cannot take it gets the closed connection alone.
        let _ = stream.try_write(b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n");
        return;
    };
    let _ = stream.set_nodelay(true);
    let secure = greeter.as_ref().and_then(|_| stream.local_addr().ok());
    let knock = Knock { peer, secure, _place: Arc::new(place) };
    let (router, stage, limits) = (router.clone(), shared.stage.clone(), shared.doors.limits);
    connections.spawn(async move {
        let Some(greeter) = greeter else { return converse(stream, knock, router, stage, limits).await };
        let mut closing = stage.clone();
        tokio::select! {
            greeted = greeter.greet(stream, peer) => match greeted {
                Some(stream) => converse(stream, knock, router, stage, limits).await,
                None => metrics::handshake_failed(),
            },
            () = reached(&mut closing, Stage::Closing) => {}
        }
    });
}

/// One connection, from its first byte to its last or to its upgrade.
async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, knock: Knock, router: Router, mut stage: watch::Receiver<Stage>, limits: Limits) {
    let _open = metrics::connection();
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(knock.clone());
        hyper::service::Service::call(&inner, request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = reached(&mut stage, Stage::Closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Goodbye to everybody: politely first, then without waiting.
async fn end(stage: &watch::Sender<Stage>, limits: Limits, places: &Arc<Semaphore>, mut connections: JoinSet<()>) {
    stage.send_replace(Stage::Closing);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let everybody_left = async {
        while connections.join_next().await.is_some() {}
        let _ = places.acquire_many(all).await;
    };
    if tokio::time::timeout(limits.grace, everybody_left).await.is_err() {
        tracing::info!("some connections did not end in time and are cut");
        stage.send_replace(Stage::Over);
        connections.shutdown().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), places.acquire_many(all)).await;
    }
}

/// Out of file handles and the like: waiting a little lets others go. A peer that hung up first is no reason to wait.
async fn rest_after(error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(500)).await;
}
