//! The two sockets of a proxied session: frames in, frames out, the provider's connection made and made again, and how it all ends.
#![allow(clippy::disallowed_methods, reason = "a silent client is let go by the wall")]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::future::BoxFuture;
use futures_util::{Sink, Stream, StreamExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::tungstenite;

use super::super::RealtimeQuery;
use super::super::seam::Seam;
use super::super::socket::{clip, tag};
use super::Proxy;
use crate::provider::{ConnectError, Dialect, Provider, Socket};
use crate::session::handle::{Handle, LegPort};
use crate::session::leg::{LegInput, LegSpec};

/// Largest message a client may send, in bytes.
const MESSAGE_MAX: usize = super::super::MESSAGE_MAX;
/// Bytes that may wait for a client that reads slowly.
const WAITING_MAX: usize = 8 * 1024 * 1024;
/// Frames that may wait for a provider that reads slowly; then the client is not read.
const UPSTREAM_WAITING_MAX: usize = 256;
/// How long one side may take no frame at all while some wait.
const STUCK: Duration = Duration::from_secs(20);
/// A ping goes out this often.
const PING: Duration = Duration::from_secs(15);
/// A client that sends nothing for this long, not even a pong, is gone.
const SILENT: Duration = Duration::from_secs(45);
/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);
/// Tries in a row to get a lost provider back, and the wait before the first; it doubles each time.
const TRIES_MAX: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// A connection that stood so long was well: the next loss begins with new tries.
const HEALTHY: Duration = Duration::from_secs(20);
/// A provider that is away longer than this is missed aloud.
const MISSED: Duration = Duration::from_secs(2);
/// Before a provider's limit the connection is replaced: from here on between turns, and then in any case.
const RENEW_FIRST: Duration = Duration::from_secs(150);
const RENEW_LAST: Duration = Duration::from_secs(20);
/// Copies of sound that wait for the conversation; the oldest go.
const COPIES_MAX: usize = 128;

/// How it ends.
enum Ending {
    /// The client closed, or its connection broke.
    Left,
    /// The gateway closes, with this code and reason.
    Close(u16, String),
}

/// Holds the conversation between this socket and the provider until either lets go.
pub async fn run(socket: WebSocket, handle: Handle, query: RealtimeQuery, provider: Arc<Provider>, seam: Seam) {
    let spec = LegSpec { name: "realtime client".into(), displaceable: true, hears: provider.listens, speaks: true, remote: true };
    let mut proxy = Proxy::new(handle.id(), &tag(), query.model.as_deref().filter(|m| !m.is_empty()).map(clip), provider.kind, provider.listens);
    if provider.kind.dialect == Dialect::GeminiLive { proxy.live = Some(super::Live::new(handle.id(), &tag(), &provider.model)) }
    if query.plan { proxy.inputs.push_back(LegInput::Text { item: "item_plan".into(), text: "/plan".into() }) }
    let begun = query.session.as_ref().map_or(Ok(()), |session| proxy.begin_with(session));
    let connecting = Some(connect(&provider, Duration::ZERO));
    let mut line = Line { client: Side::new(socket), seam, upstream: None, provider, heard: Instant::now(), connecting, tries: 0, away: None, since: Instant::now() };
    let ending = match handle.attach(spec).await {
        _ if begun.is_err() => Ending::Close(1008, begun.unwrap_err().message),
        Ok(port) => line.hold(&mut proxy, port).await,
        Err(refused) => Ending::Close(1008, refused.to_string()),
    };
    line.part(&mut proxy, ending).await;
}

/// A socket with what is written to it, flushed when there is no more to write.
struct Side<S> {
    socket: S,
    unflushed: bool,
    moved: Instant,
}

impl<S> Side<S> {
    fn new(socket: S) -> Self { Self { socket, unflushed: false, moved: Instant::now() } }

    /// Writes what `next` gives for as long as the socket takes it. Ready when all is written and flushed, or when it broke.
    fn write<M, E>(&mut self, cx: &mut Context<'_>, next: &mut dyn FnMut() -> Option<M>) -> Poll<Result<(), E>>
    where
        S: Sink<M, Error = E> + Unpin,
    {
        let mut socket = Pin::new(&mut self.socket);
        loop {
            match socket.as_mut().poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
            let Some(message) = next() else { break };
            self.moved = Instant::now();
            self.unflushed = true;
            if let Err(error) = socket.as_mut().start_send(message) { return Poll::Ready(Err(error)) }
        }
        if self.unflushed {
            match socket.as_mut().poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.unflushed = false;
                    self.moved = Instant::now();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

struct Line {
    client: Side<WebSocket>,
    seam: Seam,
    upstream: Option<Side<Socket>>,
    provider: Arc<Provider>,
    heard: Instant,
    /// A connection that is being made.
    connecting: Option<BoxFuture<'static, Result<Socket, ConnectError>>>,
    /// Connections that were tried in a row.
    tries: u32,
    /// Since when the provider is away; and whether that was said.
    away: Option<(Instant, bool)>,
    since: Instant,
}

impl Line {
    async fn hold(&mut self, proxy: &mut Proxy, port: LegPort) -> Ending {
        let LegPort { input, mut output } = port;
        let began = Instant::now();
        let now = || began.elapsed().as_millis() as u64;
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut pinged, mut pings) = (Instant::now(), VecDeque::new());
        loop {
            if let Some((code, reason)) = proxy.ending() { return Ending::Close(code, reason) }
            if let Some(why) = proxy.lost.take() {
                if let Some(ending) = self.lose(proxy, now(), &why) { return ending }
            }
            proxy.catch_up(now());
            if proxy.client_waiting() > WAITING_MAX { return Ending::Close(1013, "this client reads too slowly".into()) }
            trim(&mut proxy.inputs);
            let to_client = proxy.client_waiting() > 0 || self.seam.waits() || !pings.is_empty() || self.client.unflushed;
            let gap = proxy.deadline().map(|at| Duration::from_millis(at.saturating_sub(now())));
            let reads_client = proxy.upstream_waiting() < UPSTREAM_WAITING_MAX && proxy.inputs.len() < COPIES_MAX;
            tokio::select! {
                biased;
                came = poll_fn(|cx| poll_sockets(cx, &mut self.client, &mut self.seam, &mut self.upstream, proxy, &mut pings, reads_client)) => match came {
                    Came::ClientGone => return Ending::Left,
                    Came::ProviderGone(why) => proxy.lost = Some(why),
                    Came::Provider(frame) => {
                        proxy.provider(now(), frame);
                        if proxy.may_begin() && self.away.is_some() { self.away = None }
                    }
                    Came::Client(message) => {
                        self.heard = Instant::now();
                        match message {
                            Message::Text(ref text) if text.len() > MESSAGE_MAX => return Ending::Close(1009, format!("a message may have at most {MESSAGE_MAX} bytes")),
                            Message::Text(text) => self.seam.client(text, &mut |event| proxy.client(now(), event.into())),
                            Message::Binary(_) => return Ending::Close(1003, "events are text frames".into()),
                            Message::Ping(_) | Message::Pong(_) => {}
                            Message::Close(_) => return Ending::Left,
                        }
                    }
                },
                place = input.reserve(), if !proxy.inputs.is_empty() => match (place, proxy.inputs.pop_front()) {
                    (Ok(place), Some(input)) => place.send(input),
                    _ => return Ending::Close(1011, "this conversation has ended".into()),
                },
                said = output.recv() => match said {
                    Some(said) => if let Some(reason) = proxy.leg(now(), said) { return Ending::Close(1008, reason) },
                    None => return Ending::Close(1011, "this conversation has ended".into()),
                },
                made = async { match &mut self.connecting { Some(made) => made.await, None => std::future::pending().await } } => {
                    self.connecting = None;
                    match made {
                        Ok(socket) => {
                            if let Some(mut old) = self.upstream.replace(Side::new(socket)) {
                                // The new one takes over: what the old one was told of is told to it.
                                tokio::spawn(async move { let _ = timeout(GOODBYE / 2, old.socket.close(None)).await; });
                                proxy.disconnected(now());
                            }
                            self.since = Instant::now();
                            proxy.connected(now());
                        }
                        // One that was to take over; the old one still holds.
                        Err(error) if self.upstream.is_some() => {
                            tracing::info!(provider = %self.provider.name, %error, "no second connection to the provider yet");
                            self.again();
                        }
                        Err(error) => {
                            tracing::warn!(provider = %self.provider.name, %error, "no connection to the provider");
                            if !error.retry() || self.tries >= TRIES_MAX { return Ending::Close(if error.retry() { 1013 } else { 1011 }, error.to_string()) }
                            self.again();
                        }
                    }
                }
                () = sleep(gap.unwrap_or(Duration::MAX)), if gap.is_some() => proxy.tick(now()),
                _ = ticks.tick() => {
                    self.renew(proxy, now());
                    if let Some((_, told @ false)) = self.away.as_mut().filter(|(since, _)| since.elapsed() > MISSED) {
                        *told = true;
                        proxy.away();
                    }
                    if self.heard.elapsed() > SILENT && reads_client { return Ending::Close(1001, "nothing was heard from this client for 45 seconds".into()) }
                    if to_client && self.client.moved.elapsed() > STUCK { return Ending::Close(1013, "this client reads too slowly".into()) }
                    if pinged.elapsed() >= PING {
                        pinged = Instant::now();
                        pings.push_back(Message::Ping(Bytes::new()));
                    }
                }
            }
        }
    }

    /// The provider is gone. Unless it wants nobody back, it is tried again. `None`: that is under way.
    fn lose(&mut self, proxy: &mut Proxy, now: u64, why: &str) -> Option<Ending> {
        let code = why.split(' ').next().and_then(|c| c.parse::<u16>().ok());
        // Policy and the codes that a service makes up for itself say that trying again is no use.
        if code.is_some_and(|c| c == 1008 || (4_000..5_000).contains(&c) || c == 1007 && proxy.is_refused()) {
            return Some(Ending::Close(1011, format!("the provider ended the session ({why})")));
        }
        if self.connecting.is_some() { return None }
        tracing::info!(provider = %self.provider.name, why, "the provider is gone");
        metrics::counter!("voxgate_provider_losses_total").increment(1);
        self.upstream = None;
        proxy.disconnected(now);
        if self.since.elapsed() > HEALTHY { self.tries = 0 }
        if self.tries >= TRIES_MAX { return Some(Ending::Close(1013, format!("the provider is gone and does not come back ({why})"))) }
        self.away.get_or_insert((Instant::now(), false));
        self.again();
        None
    }

    /// Where the provider's connection is about to end, or cannot be told what it has to know, another one is made while it still stands,
    /// between turns if there is time for that.
    fn renew(&mut self, proxy: &Proxy, now: u64) {
        if self.upstream.is_none() || self.connecting.is_some() { return }
        let life = Duration::from_secs(60 * u64::from(self.provider.kind.capabilities.session_minutes));
        let old = !life.is_zero() && (self.since.elapsed() > life.saturating_sub(RENEW_LAST) || self.since.elapsed() > life.saturating_sub(RENEW_FIRST) && proxy.is_between_turns());
        if old || proxy.wants_renewal(now) {
            tracing::info!(provider = %self.provider.name, old, "another connection to the provider is made");
            metrics::counter!("voxgate_provider_renewals_total").increment(1);
            self.connecting = Some(connect(&self.provider, Duration::ZERO));
        }
    }

    /// Tries the provider once more, after a wait that grows and is never the same for many who lost it together.
    fn again(&mut self) {
        let wait = FIRST_WAIT * 2u32.pow(self.tries.min(6));
        let mut dice = [0u8; 1];
        let _ = getrandom::fill(&mut dice);
        self.tries += 1;
        self.connecting = Some(connect(&self.provider, wait.mul_f32(0.75 + f32::from(dice[0]) / 512.0)));
    }

    /// Says goodbye on both sides.
    async fn part(mut self, proxy: &mut Proxy, ending: Ending) {
        if let Some(mut upstream) = self.upstream.take() {
            let _ = timeout(GOODBYE / 2, upstream.socket.close(None)).await;
        }
        let Ending::Close(code, reason) = ending else { return };
        tracing::debug!(code, %reason, "proxied session ends");
        let goodbye = async {
            while let Some(frame) = self.seam.next(&mut || next_of(proxy)) {
                if self.client.socket.send(Message::Text(frame)).await.is_err() { return }
            }
            let end = (0..=reason.len().min(123)).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
            let _ = self.client.socket.send(Message::Close(Some(CloseFrame { code, reason: reason[..end].into() }))).await;
            while let Some(Ok(_)) = self.client.socket.next().await {}
        };
        let _ = timeout(GOODBYE, goodbye).await;
    }
}

fn connect(provider: &Arc<Provider>, after: Duration) -> BoxFuture<'static, Result<Socket, ConnectError>> {
    let provider = Arc::clone(provider);
    Box::pin(async move {
        sleep(after).await;
        provider.connect().await
    })
}

/// Copies of sound that nobody takes are dropped, oldest first, and counted; everything else waits.
fn trim(inputs: &mut VecDeque<LegInput>) {
    while inputs.len() >= COPIES_MAX {
        let Some(at) = inputs.iter().position(|i| matches!(i, LegInput::Audio(_))) else { return };
        inputs.remove(at);
        metrics::counter!("voxgate_proxy_sound_unheard_total").increment(1);
    }
}

/// What a session writes is text; what is not would end the client's socket and is left out.
fn next_of(proxy: &mut Proxy) -> Option<Utf8Bytes> { std::iter::from_fn(|| proxy.next_client()).find_map(|frame| Utf8Bytes::try_from(frame).ok()) }

fn tungstenite_text(frame: Bytes) -> Option<tungstenite::Message> { tungstenite::Utf8Bytes::try_from(frame).ok().map(tungstenite::Message::Text) }

/// What came of both sockets.
enum Came {
    ClientGone,
    ProviderGone(String),
    Client(Message),
    Provider(Bytes),
}

/// Writes what waits for either side, then reads what is there: the provider first, whose sound is waited for.
fn poll_sockets(cx: &mut Context<'_>, client: &mut Side<WebSocket>, seam: &mut Seam, upstream: &mut Option<Side<Socket>>, proxy: &mut Proxy, pings: &mut VecDeque<Message>, reads_client: bool) -> Poll<Came> {
    if proxy.client_waiting() > 0 || seam.waits() || !pings.is_empty() || client.unflushed {
        let written = client.write(cx, &mut || pings.pop_front().or_else(|| seam.next(&mut || next_of(proxy)).map(Message::Text)));
        if let Poll::Ready(Err(_)) = written { return Poll::Ready(Came::ClientGone) }
    }
    if let Some(side) = upstream {
        if proxy.upstream_waiting() > 0 || side.unflushed {
            let written = side.write(cx, &mut || proxy.next_upstream().and_then(tungstenite_text));
            if let Poll::Ready(Err(error)) = written { return Poll::Ready(Came::ProviderGone(error.to_string())) }
        }
        // A client that takes nothing holds the provider up, up to a measure.
        let message = if proxy.client_waiting() + proxy.deferred_waiting() < WAITING_MAX / 2 { Pin::new(&mut side.socket).poll_next(cx) } else { Poll::Pending };
        match message {
            Poll::Ready(Some(Ok(tungstenite::Message::Text(text)))) => return Poll::Ready(Came::Provider(text.into())),
            Poll::Ready(Some(Ok(tungstenite::Message::Binary(bytes)))) => return Poll::Ready(Came::Provider(bytes)),
            Poll::Ready(Some(Ok(tungstenite::Message::Close(frame)))) => {
                return Poll::Ready(Came::ProviderGone(frame.map_or_else(|| "without a reason".to_string(), |f| format!("{} {}", u16::from(f.code), f.reason))));
            }
            // Its pings are answered by the socket itself, with the next thing that is written.
            Poll::Ready(Some(Ok(_))) => {
                side.unflushed = true;
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Came::ProviderGone(error.to_string())),
            Poll::Ready(None) => return Poll::Ready(Came::ProviderGone("its connection ended".into())),
            Poll::Pending => {}
        }
    }
    if reads_client {
        match Pin::new(&mut client.socket).poll_next(cx) {
            Poll::Ready(Some(Ok(message))) => return Poll::Ready(Came::Client(message)),
            Poll::Ready(None | Some(Err(_))) => return Poll::Ready(Came::ClientGone),
            Poll::Pending => {}
        }
    }
    Poll::Pending
}
