//! One socket's loop: frames in, frames out, pings, limits and the way it ends.
#![allow(clippy::disallowed_methods, reason = "a silent client is let go by the wall")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::RealtimeQuery;
use super::door::Door;
use super::proxy;
use super::seam::Seam;
use crate::dialect::openai_realtime::error::BadEvent;
use crate::provider::Provider;
use crate::session::handle::{Handle, LegPort};
use crate::session::leg::{LegInput, LegOutput, LegSpec};

/// Largest message a client may send, in bytes: 15 MiB of base64 with room to spare. More is closed with 1009.
pub const MESSAGE_MAX: usize = 20 * 1024 * 1024;
/// Where reading itself stops. A little more than [`MESSAGE_MAX`], so that a message just over it can be read, and refused politely.
const READ_MAX: usize = 24 * 1024 * 1024;
/// Frames between the loop and the writer.
const WRITER_QUEUE: usize = 64;
/// Bytes that may wait for a client that reads slowly: about two minutes of speech.
const WAITING_MAX: usize = 8 * 1024 * 1024;
/// How long a client may take no frame at all while some wait.
const STUCK: Duration = Duration::from_secs(20);
/// A ping goes out this often.
const PING: Duration = Duration::from_secs(15);
/// A client that sends nothing for this long, not even a pong, is gone.
const SILENT: Duration = Duration::from_secs(45);
/// Sound that is packed at once, as parts of a second: 200 ms, which take about 3 ms.
const PIECES_A_SECOND: u32 = 5;
/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Sets the limits of this door on an upgrade. Compression is never offered: base64 of sound does not shrink.
pub fn limit(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.max_message_size(READ_MAX).max_frame_size(READ_MAX)
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// The client closed, or its connection broke.
    Left,
    /// The gateway closes, with this code and reason.
    Close(u16, String),
    /// The same, for a client that does not read: what still waits is not sent.
    Drop(u16, String),
}

/// Attaches the socket to the conversation and serves it until either lets go. A model that is a provider's goes there.
pub async fn run(socket: WebSocket, handle: Handle, query: RealtimeQuery, providers: Arc<[Arc<Provider>]>) {
    let provider = providers.iter().find(|p| Some(p.name.as_str()) == query.model.as_deref()).cloned();
    let seam = Seam::new(query.speaks);
    if let Some(provider) = provider {
        return proxy::run(socket, handle, query, provider, seam).await;
    }
    let (sink, stream) = socket.split();
    let (frames, inbox) = mpsc::channel(WRITER_QUEUE);
    let (stop, stopped) = mpsc::channel(1);
    let writer = tokio::spawn(write(sink, inbox, stopped));
    let spec = LegSpec { name: "realtime client".into(), displaceable: true, hears: true, speaks: true, remote: false };
    let mut line = Line { stream, frames, seam, heard: Instant::now(), moved: Instant::now() };
    let mut door = Door::new(handle.id(), &tag(), query.model.as_deref().filter(|model| !model.is_empty()).map(clip));
    if query.plan {
        // As if the client had typed it before anything else: the one thing about the mode that a client may say.
        door.inputs.push_back(LegInput::Text { item: "item_plan".into(), text: "/plan".into() });
    }
    let begun = query.session.as_ref().map_or(Ok(()), |session| door.begin_with(session));
    let ending = match handle.attach(spec).await {
        _ if begun.is_err() => Ending::Close(1008, begun.unwrap_err().message),
        Ok(port) => line.serve(&mut door, port).await,
        Err(refused) => {
            while door.next_frame().is_some() {}
            Ending::Close(1008, refused.to_string())
        }
    };
    tracing::debug!(conversation = handle.id(), ?ending, "realtime socket ends");
    line.part(door, ending, stop, writer).await;
}

/// A model's name is echoed, so it is kept short.
pub(super) fn clip(model: &str) -> &str {
    let end = model.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 128).last();
    &model[..end.unwrap_or(0)]
}

/// A random word for this socket's ids.
pub(super) fn tag() -> String {
    let mut bytes = [0u8; 6];
    if getrandom::fill(&mut bytes).is_err() {
        // Without a random source ids only have to differ between sockets of one process.
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        bytes[..4].copy_from_slice(&NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_be_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The two directions of the socket.
struct Line {
    stream: SplitStream<WebSocket>,
    frames: mpsc::Sender<Message>,
    seam: Seam,
    /// The client last sent something.
    heard: Instant,
    /// The writer last took a frame, or none waited.
    moved: Instant,
}

impl Line {
    async fn serve(&mut self, door: &mut Door, port: LegPort) -> Ending {
        let LegPort { input, output } = port;
        let ending = self.hold(door, &input, output).await;
        if let Some(farewell) = door.farewell() {
            // A conversation that takes no more has its figures on the metrics alone.
            let _ = input.try_send(farewell);
        }
        ending
    }

    async fn hold(&mut self, door: &mut Door, input: &mpsc::Sender<LegInput>, mut output: mpsc::Receiver<LegOutput>) -> Ending {
        let began = Instant::now();
        let now = || began.elapsed().as_millis() as u64;
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pinged = Instant::now();
        let mut pieces = VecDeque::new();
        loop {
            let has_frames = door.has_frames() || self.seam.waits();
            if !has_frames {
                self.moved = Instant::now();
            }
            if door.waiting_bytes() > WAITING_MAX || self.moved.elapsed() > STUCK {
                return Ending::Drop(1013, "this client reads too slowly".into());
            }
            let gap = door.deadline().map(|at| Duration::from_millis(at.saturating_sub(now())));
            tokio::select! {
                // Nothing is read while the conversation has not taken what was read before: the client's own connection fills up.
                message = self.stream.next(), if door.inputs.is_empty() => {
                    self.heard = Instant::now();
                    if let Some(ending) = take(door, &mut self.seam, now(), message) {
                        return ending;
                    }
                }
                place = input.reserve(), if !door.inputs.is_empty() => match (place, door.inputs.pop_front()) {
                    (Ok(place), Some(input)) => {
                        self.heard = Instant::now();
                        place.send(input);
                    }
                    _ => return ending_of(door, now(), output),
                },
                said = next_said(&mut pieces, &mut output, door.packs()) => match said.map(|said| door.leg(now(), said)) {
                    Some(None) => {}
                    Some(Some(reason)) => return Ending::Close(1008, reason),
                    None => return gone(),
                },
                place = self.frames.reserve(), if has_frames => match (place, self.seam.next(&mut || next_of(door))) {
                    (Ok(place), Some(frame)) => {
                        self.moved = Instant::now();
                        place.send(Message::Text(frame));
                    }
                    // All that waited is nothing in the client's dialect.
                    (Ok(_), None) => {}
                    (Err(_), _) => return Ending::Left,
                },
                () = tokio::time::sleep(gap.unwrap_or(Duration::MAX)), if gap.is_some() && door.inputs.is_empty() => door.listen(now()),
                _ = ticks.tick() => {
                    door.tick(now());
                    if door.inputs.is_empty() && self.heard.elapsed() > SILENT {
                        return Ending::Drop(1001, "nothing was heard from this client for 45 seconds".into());
                    }
                    if pinged.elapsed() >= PING {
                        pinged = Instant::now();
                        // A full queue has frames in it, which show a dead connection as well as a ping does.
                        let _ = self.frames.try_send(Message::Ping(Default::default()));
                    }
                }
            }
        }
    }

    /// Says goodbye and reads on until the other side has answered, which is what makes a close clean.
    async fn part(
        self,
        mut door: Door,
        ending: Ending,
        stop: mpsc::Sender<CloseFrame>,
        writer: tokio::task::JoinHandle<()>,
    ) {
        let Line { mut stream, frames, mut seam, .. } = self;
        let abort = writer.abort_handle();
        let goodbye = async {
            match ending {
                Ending::Left => drop(frames),
                Ending::Drop(code, reason) => {
                    let _ = stop.try_send(close_frame(code, &reason));
                }
                Ending::Close(code, reason) => {
                    while let Some(frame) = seam.next(&mut || next_of(&mut door)) {
                        let _ = frames.send(Message::Text(frame)).await;
                    }
                    let _ = frames.send(Message::Close(Some(close_frame(code, &reason)))).await;
                    drop(frames);
                }
            }
            let _ = writer.await;
            while let Some(Ok(_)) = stream.next().await {}
        };
        if timeout(GOODBYE, goodbye).await.is_err() {
            abort.abort();
        }
    }
}

/// The next thing that is said. Where sound is packed, a sentence comes in pieces: its first packets go out while the others are made.
async fn next_said(pieces: &mut VecDeque<LegOutput>, output: &mut mpsc::Receiver<LegOutput>, packed: bool) -> Option<LegOutput> {
    if !pieces.is_empty() {
        tokio::task::yield_now().await;
        return pieces.pop_front();
    }
    match output.recv().await {
        Some(LegOutput::Audio { speech, samples, rate_hz }) if packed => {
            let length = (rate_hz / PIECES_A_SECOND).max(1) as usize;
            pieces.extend(samples.chunks(length).map(|piece| LegOutput::Audio { speech, samples: piece.to_vec(), rate_hz }));
            match pieces.pop_front() {
                Some(first) => Some(first),
                None => Some(LegOutput::Audio { speech, samples, rate_hz }),
            }
        }
        said => said,
    }
}

fn next_of(door: &mut Door) -> Option<Utf8Bytes> { door.next_frame().map(Utf8Bytes::from) }

/// One message of the client.
fn take(door: &mut Door, seam: &mut Seam, now: u64, message: Option<Result<Message, axum::Error>>) -> Option<Ending> {
    match message {
        Some(Ok(Message::Text(text))) if text.len() > MESSAGE_MAX => Some(too_long()),
        Some(Ok(Message::Text(text))) => {
            seam.client(text, &mut |event| door.client(now, &event));
            None
        }
        Some(Ok(Message::Binary(bytes))) if bytes.len() > MESSAGE_MAX => Some(too_long()),
        Some(Ok(Message::Binary(_))) => {
            door.refuse(&BadEvent::new("invalid_json", "Events are text frames; a binary frame was not read."));
            None
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
        Some(Ok(Message::Close(_))) | None => Some(Ending::Left),
        Some(Err(error)) => Some(broken(&error)),
    }
}

fn too_long() -> Ending { Ending::Close(1009, format!("a message may have at most {MESSAGE_MAX} bytes")) }

/// What a failed read means. The library under the socket is private to it, so its words are read.
fn broken(error: &axum::Error) -> Ending {
    let text = error.to_string();
    match text.as_str() {
        t if t.contains("too long") => too_long(),
        t if t.contains("UTF-8") || t.contains("utf-8") => Ending::Close(1007, "text frames are UTF-8".into()),
        t if t.contains("protocol error") && !t.contains("without closing") => Ending::Close(1002, "not a WebSocket frame".into()),
        _ => Ending::Left,
    }
}

/// The conversation takes no more input: it may have said why.
fn ending_of(door: &mut Door, now: u64, mut said: mpsc::Receiver<LegOutput>) -> Ending {
    while let Ok(output) = said.try_recv() {
        if let Some(reason) = door.leg(now, output) {
            return Ending::Close(1008, reason);
        }
    }
    gone()
}

fn gone() -> Ending { Ending::Close(1011, "this conversation has ended".into()) }

/// A reason may have 123 bytes.
fn close_frame(code: u16, reason: &str) -> CloseFrame {
    let end = (0..=reason.len().min(123)).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    CloseFrame { code, reason: reason[..end].into() }
}

/// The writer: sends what comes, until there is no more or it is told to stop.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut inbox: mpsc::Receiver<Message>, mut stopped: mpsc::Receiver<CloseFrame>) {
    loop {
        let sent = tokio::select! {
            biased;
            Some(frame) = stopped.recv() => {
                let _ = timeout(GOODBYE / 2, sink.send(Message::Close(Some(frame)))).await;
                return;
            }
            message = inbox.recv() => match message {
                Some(message) => send_or_stop(&mut sink, message, &mut stopped).await,
                None => return,
            },
        };
        if !sent {
            return;
        }
    }
}

/// Sends one frame. False when the connection is broken, or when the order to stop came first and was carried out.
async fn send_or_stop(
    sink: &mut SplitSink<WebSocket, Message>,
    message: Message,
    stopped: &mut mpsc::Receiver<CloseFrame>,
) -> bool {
    let frame = tokio::select! {
        biased;
        Some(frame) = stopped.recv() => frame,
        sent = sink.send(message) => return sent.is_ok(),
    };
    let _ = timeout(GOODBYE / 2, sink.send(Message::Close(Some(frame)))).await;
    false
}
