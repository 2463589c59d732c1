//! THE MIRROR: one socket that shows a conversation from its snapshot on, in order, and takes the person's words and
//! decisions. Owns the socket and its clocks; follows a [`Handle`]. The frames come ready from the driver; what people
//! send is read by `dialect::feral` and answered by one `ack` each.
//!
//! It never lets a reader hold anybody up: a send that is not taken in time, or a queue that ran over, ends the mirror,
//! which comes back with `?since=`.
#![allow(clippy::disallowed_methods, reason = "a silent client is let go by the wall")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::auth::{EVENTS_PROTOCOL, Operator};
use super::fresh::Fresh;
use super::problem::Problem;
use super::serve::{Knock, Stage, reached};
use super::sessions::find;
use super::sockets::limited;
use super::{Limits, Shared, metrics};
use crate::dialect::feral::{self, Deed};
use crate::engine::authority::{OperatorDoor, Surface};
use crate::session::handle::{Declined, Done, Gone, Handle, MirrorItem, Subscription};
use crate::session::registry::Which;

/// A client's message of up to this many times the limit is read to its end, so that the close reaches it; a larger one
/// is cut off where it stands.
const READ_PAST: usize = 4;
/// For a peer to answer our close before the connection is dropped.
const GOODBYE: Duration = Duration::from_secs(2);

/// `GET /v1/sessions/{id}/events?since=SEQ`; the id may be `last` or `new`.
pub async fn upgrade(
    operator: Operator, State(shared): State<Arc<Shared>>, Path(id): Path<String>, Query(query): Query<HashMap<String, String>>,
    Extension(knock): Extension<Knock>, upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let since = match query.get("since") {
        None => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| Problem::field("since", "must be the seq of an event, a whole number"))?),
    };
    let handle = match id.as_str() {
        "new" => shared.doors.conversations.open(Which::New).await?,
        "last" => shared.doors.conversations.open(Which::Last).await?,
        id => find(&shared, id).await?,
    };
    let subscription = handle.subscribe(since).await?;
    let door = operator.door(Surface::Screen).ok_or_else(|| Problem::field("id", "cannot be decided on"))?;
    let (limits, stage) = (shared.doors.limits, shared.stage.clone());
    let upgrade = limited(upgrade, limits.mirror_message_max * READ_PAST).protocols([EVENTS_PROTOCOL]);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _kept = (knock, metrics::mirror());
        let mut mirror = Mirror { socket, handle, door, limits, stage };
        let end = mirror.run(subscription).await;
        mirror.leave(end).await;
    }))
}

/// Why a mirror's socket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The other end closed it, or the connection broke.
    Left,
    /// The conversation has ended.
    Ended,
    /// The server goes.
    Closing,
    /// It did not read fast enough.
    Slow,
    /// Nothing came for too long.
    Dead,
    /// It sent more than one message may hold.
    Oversize,
    /// It broke the WebSocket protocol.
    Broken,
}

impl End {
    /// Close code and words; `None` where there is nobody to tell.
    fn close(self) -> Option<(u16, &'static str)> {
        match self {
            End::Left | End::Dead => None,
            End::Ended => Some((close_code::NORMAL, "the conversation has ended")),
            End::Closing => Some((close_code::AWAY, "the gateway is closing")),
            End::Slow => Some((close_code::AGAIN, "too slow; come back with ?since=")),
            End::Oversize => Some((close_code::SIZE, "a message may have 64 KiB at most")),
            End::Broken => Some((close_code::PROTOCOL, "not a WebSocket message")),
        }
    }

    fn evicted(self) -> Option<&'static str> {
        match self {
            End::Slow => Some("slow"),
            End::Dead => Some("dead"),
            End::Oversize => Some("oversize"),
            _ => None,
        }
    }
}

struct Mirror {
    socket: WebSocket,
    handle: Handle,
    door: OperatorDoor,
    limits: Limits,
    stage: watch::Receiver<Stage>,
}

impl Mirror {
    /// From the snapshot to the reason for the end.
    async fn run(&mut self, subscription: Subscription) -> End {
        match self.follow(subscription).await { Ok(never) => match never {}, Err(end) => end }
    }

    async fn follow(&mut self, subscription: Subscription) -> Result<std::convert::Infallible, End> {
        let Subscription { snapshot, resumed, backlog, follow: mut items } = subscription;
        self.say(feral::snapshot_frame(&snapshot, self.handle.id(), &Fresh::new().msg_id, resumed)).await?;
        drop(snapshot);
        for item in backlog {
            self.say(text_of(item)).await?;
        }
        let mut heard = Instant::now();
        let mut pings = interval_at(heard + self.limits.ping, self.limits.ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                item = items.recv() => match item {
                    Some(item) => self.say(text_of(item)).await?,
                    None => return Err(self.why_closed().await),
                },
                message = self.socket.recv() => {
                    heard = Instant::now();
                    self.take(message).await?;
                }
                _ = pings.tick() => {
                    if heard.elapsed() >= self.limits.silence {
                        return Err(End::Dead);
                    }
                    self.send(Message::Ping(Default::default())).await?;
                }
                () = reached(&mut self.stage, Stage::Closing) => return Err(End::Closing),
            }
        }
    }

    /// The driver let go of this mirror: because it is over, or because the mirror fell behind.
    async fn why_closed(&mut self) -> End {
        match self.handle.snapshot().await {
            Ok(snapshot) if !snapshot.ended => End::Slow,
            _ => End::Ended,
        }
    }

    async fn take(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        match message {
            None => Err(End::Left),
            Some(Ok(Message::Text(text))) if text.len() > self.limits.mirror_message_max => Err(End::Oversize),
            Some(Ok(Message::Binary(bytes))) if bytes.len() > self.limits.mirror_message_max => Err(End::Oversize),
            Some(Ok(Message::Text(text))) => self.answer(&text).await,
            Some(Ok(Message::Binary(_))) => self.ack(None, false, "not_text", "messages are JSON texts").await,
            // The socket answers pings and closes by itself, while it is read: nothing may be sent after a close.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Close(_))) => {
                let _ = timeout(GOODBYE, self.read_out()).await;
                Err(End::Left)
            }
            Some(Err(error)) => Err(of_error(&error)),
        }
    }

    /// Carries one message of the person out and answers it.
    async fn answer(&mut self, text: &str) -> Result<(), End> {
        let message = match feral::parse_inbound(text) {
            Ok(message) => message,
            Err(bad) => {
                let fresh = Fresh::new();
                return self.say(feral::bad_message(fresh.head(self.handle.id()), &bad)).await;
            }
        };
        let reply_to = message.msg_id.as_deref();
        if message.session_id.as_deref().is_some_and(|id| id != self.handle.id()) {
            return self.ack(reply_to, false, "session_mismatch", "this socket belongs to another conversation").await;
        }
        match self.carry_out(message.deed).await.map_err(|Gone| End::Ended)? {
            Ok(Done { code, message }) => self.ack(reply_to, true, code, &message).await,
            Err(Declined { code, message }) => self.ack(reply_to, false, code, &message).await,
        }
    }

    async fn carry_out(&mut self, deed: Deed) -> Result<Result<Done, Declined>, Gone> {
        if let Deed::Answer { request, hash, .. } = &deed {
            // A request keeps its call for its whole life, so what is true here is true when it is answered.
            let waiting = self.handle.snapshot().await?;
            if waiting.approvals.iter().any(|a| a.request == *request && a.hash() != *hash) {
                let (code, message) = feral::OTHER_ARGUMENTS;
                return Ok(Err(Declined { code, message: message.into() }));
            }
        }
        match (deed.decision(), deed) {
            (Some(decide), _) => self.handle.decide(self.door.decide(decide, "")).await,
            (None, Deed::Chat { text }) => self.handle.chat(self.door.as_surface(Surface::Chat), text).await,
            (None, _) => Ok(Err(Declined { code: "unknown_deed", message: "this gateway cannot do that".into() })),
        }
    }

    async fn ack(&mut self, reply_to: Option<&str>, ok: bool, code: &str, message: &str) -> Result<(), End> {
        let fresh = Fresh::new();
        let frame = feral::ack(fresh.head(self.handle.id()), reply_to, ok, code, message);
        self.say(frame).await
    }

    async fn say(&mut self, text: impl Into<axum::extract::ws::Utf8Bytes>) -> Result<(), End> { self.send(Message::Text(text.into())).await }

    /// Sends, and flushes into the connection, within the time a reader has.
    async fn send(&mut self, message: Message) -> Result<(), End> {
        match timeout(self.limits.send_timeout, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Left),
            Err(_) => Err(End::Slow),
        }
    }

    /// To the end of the stream.
    async fn read_out(&mut self) { while let Some(Ok(_)) = self.socket.recv().await {} }

    /// Says why, and reads on until the other end has closed too: a socket dropped before that ends uncleanly.
    async fn leave(mut self, end: End) {
        if let Some(reason) = end.evicted() {
            metrics::mirror_evicted(reason);
            tracing::info!(session = self.handle.id(), reason, "a mirror was let go");
        }
        let Some((code, reason)) = end.close() else { return };
        let goodbye = async {
            self.socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await.ok()?;
            self.read_out().await;
            if end == End::Oversize || end == End::Broken {
                // The rest of what it sent lies unread; a connection dropped now would take the close frame with it.
                tokio::time::sleep(GOODBYE).await;
            }
            Some(())
        };
        let _ = timeout(GOODBYE, goodbye).await;
    }
}

fn text_of(item: MirrorItem) -> String {
    match item { MirrorItem::Frame { text, .. } | MirrorItem::Passing(text) => text.to_string() }
}

/// What a failed read means. The limit's error is known by its words, because axum hides its type.
fn of_error(error: &axum::Error) -> End {
    let words = error.to_string();
    if words.contains("Space limit exceeded") {
        End::Oversize
    } else if words.contains("WebSocket protocol error") || words.contains("UTF-8") {
        End::Broken
    } else {
        End::Left
    }
}
