//! `voxgate talk --connect URL`: this machine's microphone and speaker are the headset of a gateway that runs elsewhere.
//!
//! Owns the connection: the key, the reconnecting, the loop between devices and socket. The sound itself is `connect/headset`'s.
//! Called by `talk`. Opens no doors and holds no home: the conversation, its log and its gate are the gateway's.

mod address;
mod headset;
mod impair;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::setup::{Place, Trouble, told_to_stop};
use super::talk::{EventsFile, FileEnds, PaceArg, TalkArgs, cards};
use crate::media::frame::{EAR_HZ, FRAME_MS, frame_len, samples_in};
use crate::secret::Secret;
use crate::session::card::Card;
use crate::session::clock::Stopwatch;
use crate::session::file::FileDevice;
use crate::store::home::holder;
use crate::store::keys::Keys;

pub use address::Address;
pub use headset::{Figures, Headset};
pub use impair::{Impair, Impairment};

/// How long a gateway may take to answer the door, or to take an event.
const PATIENCE: Duration = Duration::from_secs(10);
/// A gateway that says nothing this long, not even a ping (one comes every 15 s), is gone.
const SILENT: Duration = Duration::from_secs(45);
/// The first pause before it is tried again; each further one is twice as long, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(500);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// Tries after which a talk with files gives up; one with devices goes on until it is told to stop.
const TRIES_OF_FILES: u32 = 10;
/// After a file's end, quiet that ends the talk, and the most that is waited for it.
const QUIET_MS: u64 = 1_500;
/// See [`QUIET_MS`].
const TAIL_MS: u64 = 60_000;

type Socket = WebSocketStream<TcpStream>;

/// Where sound comes from and goes to.
enum Ends {
    Files { files: FileEnds, ms: u64, clock: Interval },
    Card(Box<Card>),
}

/// How one connection ended.
enum Ending {
    /// The microphone's file and everything it brought is over.
    Over,
    /// Somebody asked for it.
    Stopped,
    /// The gateway is gone, with its last words.
    Gone(String),
    /// It does not want this headset, and would not later.
    Refused(String),
}

/// Talks until the input is used up, the gateway refuses, or it is told to stop.
///
/// # Errors
/// [`Trouble`]: exit code 2 for a wrong address, key or file, 1 for what failed on the way.
pub async fn run(place: &Place, args: &TalkArgs, to: &str) -> Result<ExitCode, Trouble> {
    let mut address = Address::read(to).map_err(Trouble::wrong)?;
    address.join(if args.new { "new" } else { "last" }, false);
    if matches!(args.pace, PaceArg::Fast) {
        return Err(Trouble::wrong("--pace fast: a gateway elsewhere hears on the wall's clock; leave it out"));
    }
    let key = key(place, &address, args.key.as_deref())?;
    let mut ends = Ends::open(args).await?;
    let (mic_hz, speaker_hz) = ends.rates();
    let headset = Headset::new(mic_hz, speaker_hz, args.impair.unwrap_or_default()).map_err(Trouble::failed)?;
    let events = args.events.as_deref().map(EventsFile::create).transpose()?;
    let mut talk = Talk { headset, events, began: Stopwatch::start(), idle_ms: 0 };
    let held = talk.hold_on(&mut address, &key, &mut ends).await;
    talk.report(args.impair.is_some());
    ends.close()?;
    if let Some(events) = talk.events {
        events.finish()?;
    }
    held.map(|()| ExitCode::SUCCESS)
}

/// The key to show: the one that is given, else this home's own where the gateway is this home's.
fn key(place: &Place, address: &Address, given: Option<&str>) -> Result<Secret, Trouble> {
    if let Some(given) = given {
        let text = match given.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(Path::new(file)).map_err(|e| Trouble::wrong(format!("--key {given}: {e}")))?,
            None => given.to_string(),
        };
        return Ok(Secret::new(text.trim().to_string()));
    }
    let ours = holder(&place.home).map_err(Trouble::failed)?.filter(|holder| address.is(&holder.address));
    let unknown = || Trouble::wrong(format!(
        "the gateway at {} is not this home's; give its key with --key KEY or --key @FILE (a client's key is enough: keys/clients/default in its home)", address.authority()
    ));
    ours.ok_or_else(unknown)?;
    let keys = Keys::load_or_create(&place.home).map_err(Trouble::failed)?;
    keys.client().map(|(_, key)| key.clone()).ok_or_else(unknown)
}

impl Ends {
    async fn open(args: &TalkArgs) -> Result<Self, Trouble> {
        if let Some(files) = FileEnds::open(args)? {
            let mut clock = interval(Duration::from_millis(FRAME_MS));
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            return Ok(Self::Files { files, ms: 0, clock });
        }
        Ok(Self::Card(Box::new(cards(args).await?)))
    }

    fn rates(&self) -> (u32, u32) {
        match self {
            Self::Files { files, .. } => (files.rate_hz(), files.rate_hz()),
            Self::Card(card) => (EAR_HZ, card.speaker.rate_hz()),
        }
    }

    /// The next 20 ms of the microphone, in its own time. Safe to drop and ask again.
    async fn next_frame(&mut self) -> Vec<i16> {
        match self {
            Self::Card(card) => {
                let sound = card.mic.next_frame().await;
                card.heard(sound.len());
                sound
            }
            Self::Files { files, ms, clock } => {
                clock.tick().await;
                let rate = files.rate_hz();
                let (from, to) = (samples_in(*ms, rate), samples_in(*ms + FRAME_MS, rate));
                *ms += FRAME_MS;
                let mut sound = files.microphone(from, to);
                sound.resize((to - from) as usize, 0);
                sound
            }
        }
    }

    /// Keeps the speaker fed: a file in step with its microphone, a device as it plays.
    fn play(&mut self, headset: &mut Headset, frame: usize) -> Result<(), String> {
        let mut sound = Vec::new();
        match self {
            Self::Files { files, .. } => {
                headset.pull(frame, &mut sound);
                files.speaker(&sound)
            }
            Self::Card(card) => {
                card.passed(FRAME_MS);
                while card.is_due() {
                    sound.clear();
                    headset.pull(frame_len(card.speaker.rate_hz()), &mut sound);
                    card.speaker.write(&sound);
                }
                while let Some(news) = card.mic.news().or_else(|| card.speaker.news()) {
                    if !news.message.is_empty() { eprintln!("voxgate: {}", news.message) }
                }
                Ok(())
            }
        }
    }

    /// Milliseconds since the microphone's file ended; none while it lasts, and for devices.
    fn over_ms(&self) -> Option<u64> {
        match self {
            Self::Files { files, ms, .. } => ms.checked_sub(files.length() * 1000 / u64::from(files.rate_hz().max(1))),
            Self::Card(_) => None,
        }
    }

    fn is_files(&self) -> bool { matches!(self, Self::Files { .. }) }

    fn close(self) -> Result<(), Trouble> {
        match self {
            Self::Files { files, .. } => files.close().map_err(Trouble::failed),
            Self::Card(_) => Ok(()),
        }
    }
}

struct Talk {
    headset: Headset,
    events: Option<EventsFile>,
    began: Stopwatch,
    idle_ms: u64,
}

impl Talk {
    /// Holds the conversation over as many connections as it takes.
    async fn hold_on(&mut self, address: &mut Address, key: &Secret, ends: &mut Ends) -> Result<(), Trouble> {
        let stop = told_to_stop();
        tokio::pin!(stop);
        let (mut tries, mut known) = (0, false);
        loop {
            let opened = tokio::select! { opened = open(address, key) => opened, () = &mut stop => return Ok(()) };
            let why = match opened {
                Ok(mut socket) => {
                    eprintln!("voxgate: {} at {}; Ctrl-C ends", if known { "connected again" } else { "connected" }, address.authority());
                    (tries, known) = (0, true);
                    let ending = tokio::select! {
                        ending = self.hold(address, &mut socket, ends) => ending,
                        () = &mut stop => Ending::Stopped,
                    };
                    let _ = timeout(Duration::from_secs(1), socket.close(None)).await;
                    match ending {
                        Ending::Over | Ending::Stopped => return Ok(()),
                        Ending::Refused(why) => return Err(Trouble::failed(why)),
                        Ending::Gone(why) => why,
                    }
                }
                Err(Ending::Gone(why)) if known => why,
                Err(Ending::Gone(why) | Ending::Refused(why)) => return Err(Trouble::failed(why)),
                Err(_) => return Ok(()),
            };
            self.headset.reset();
            tries += 1;
            if ends.is_files() && tries > TRIES_OF_FILES {
                return Err(Trouble::failed(format!("{why}; given up after {TRIES_OF_FILES} tries")));
            }
            let pause = (PAUSE * 2u32.saturating_pow(tries - 1)).min(PAUSE_MAX);
            eprintln!("voxgate: {why}; trying again in {:.1} s. What is said until then is not heard", pause.as_secs_f32());
            tokio::select! {
                () = self.wait_out(ends, pause) => {}
                () = &mut stop => return Ok(()),
            }
        }
    }

    /// Time without a gateway: devices go on, unheard; a file stands still.
    async fn wait_out(&mut self, ends: &mut Ends, pause: Duration) {
        let over = sleep(pause);
        tokio::pin!(over);
        if ends.is_files() {
            return over.await;
        }
        loop {
            let frame = tokio::select! { () = &mut over => return, frame = ends.next_frame() => frame };
            let _ = ends.play(&mut self.headset, frame.len());
        }
    }

    fn now(&self) -> u64 { self.began.elapsed().as_millis() as u64 }

    async fn hold(&mut self, address: &mut Address, socket: &mut Socket, ends: &mut Ends) -> Ending {
        if let Err(gone) = send(socket, Headset::hello()).await {
            return gone;
        }
        let mut heard = Stopwatch::start();
        // A file goes on where it stood: the time without a gateway is not made up for.
        if let Ends::Files { clock, .. } = ends { clock.reset() }
        loop {
            let due = tokio::select! {
                message = socket.next() => {
                    heard = Stopwatch::start();
                    match message {
                        Some(Ok(Message::Text(text))) => match self.event(address, &text) { Ok(due) => due, Err(ending) => return ending },
                        Some(Ok(Message::Close(frame))) => return closed(frame.map(|f| (u16::from(f.code), f.reason.to_string()))),
                        Some(Ok(_)) => Vec::new(),
                        Some(Err(error)) => return Ending::Gone(format!("the connection to the gateway broke ({error})")),
                        None => return Ending::Gone("the gateway has closed the connection".into()),
                    }
                }
                frame = ends.next_frame() => {
                    let due = self.headset.hear(&frame);
                    self.headset.poll(self.now());
                    if let Err(why) = ends.play(&mut self.headset, frame.len()) { return Ending::Refused(why) }
                    if self.is_over(ends) { return Ending::Over }
                    due
                }
            };
            for event in due {
                if let Err(gone) = send(socket, event).await { return gone }
            }
            if heard.elapsed() > SILENT {
                return Ending::Gone("the gateway has said nothing for 45 seconds".into());
            }
        }
    }

    fn is_over(&mut self, ends: &Ends) -> bool {
        let Some(over_ms) = ends.over_ms() else { return false };
        self.idle_ms = if self.headset.is_idle() { self.idle_ms + FRAME_MS } else { 0 };
        self.idle_ms.min(over_ms) > QUIET_MS || over_ms > TAIL_MS
    }

    /// One event of the gateway: what is due in return, or the end.
    fn event(&mut self, address: &mut Address, text: &str) -> Result<Vec<String>, Ending> {
        let event: Value = serde_json::from_str(text).map_err(|error| Ending::Refused(format!("this is no gateway: it sent something that is not JSON ({error})")))?;
        let word = |field: &str| event[field].as_str().unwrap_or_default();
        match word("type") {
            "session.created" => {
                if let Some(id) = event["session"]["id"].as_str() {
                    eprintln!("voxgate: conversation {id}");
                    address.join(id, true);
                }
            }
            "conversation.item.input_audio_transcription.completed" if !word("transcript").is_empty() => outln!("you: {}", plain(word("transcript"))),
            "response.output_audio_transcript.done" => outln!("voxgate: {}", plain(word("transcript"))),
            "error" => {
                let error = &event["error"];
                let message = plain(error["message"].as_str().unwrap_or("it does not say what"));
                if error["param"].as_str().is_some_and(|param| param.starts_with("session.audio")) {
                    return Err(Ending::Refused(format!("the gateway does not speak Opus: {message}")));
                }
                eprintln!("voxgate: the gateway says: {message}");
            }
            _ => {}
        }
        self.write_down(&event);
        Ok(self.headset.take(self.now(), &event))
    }

    /// Every event but the sound itself, a line each, with the time it came.
    fn write_down(&mut self, event: &Value) {
        let at_ms = self.now();
        if let Some(events) = self.events.as_mut().filter(|_| event["type"] != "response.output_audio.delta") {
            events.line(&serde_json::json!({"at_ms": at_ms, "event": event}).to_string());
        }
    }

    fn report(&self, impaired: bool) {
        let f = self.headset.figures();
        eprintln!("voxgate: {} packets sent, {} received; of these {} were lost and made up for, {} out of order, {} twice, {} too late", f.sent, f.came, f.lost, f.reordered, f.duplicates, f.late);
        if impaired {
            let [[lost, moved, twice], [lost_in, moved_in, twice_in]] = f.impaired;
            eprintln!("voxgate: on purpose: {lost} dropped, {moved} moved, {twice} doubled on the way out; {lost_in}, {moved_in}, {twice_in} on the way in");
        }
    }
}

/// A line for a terminal.
fn plain(text: &str) -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() }

async fn send(socket: &mut Socket, event: String) -> Result<(), Ending> {
    match timeout(PATIENCE, socket.send(Message::text(event))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(SocketError::ConnectionClosed | SocketError::AlreadyClosed | SocketError::Protocol(_) | SocketError::Io(_))) => Err(Ending::Gone("the gateway has closed the connection".into())),
        Ok(Err(error)) => Err(Ending::Gone(format!("the connection to the gateway broke ({error})"))),
        Err(_) => Err(Ending::Gone("the gateway takes nothing any more".into())),
    }
}

/// What a close means. A microphone that another has taken is not taken back: two headsets would fight over it.
fn closed(frame: Option<(u16, String)>) -> Ending {
    let (code, reason) = frame.unwrap_or((1005, String::new()));
    let taken = code == 1008 && (reason.contains("another client") || reason.contains("already in this conversation"));
    match (taken, reason.as_str()) {
        (true, _) => Ending::Refused(format!("the gateway lets this headset go: {reason}")),
        (false, "") => Ending::Gone(format!("the gateway has closed the connection ({code})")),
        (false, _) => Ending::Gone(format!("the gateway has closed the connection: {reason}")),
    }
}

/// One try.
async fn open(address: &Address, key: &Secret) -> Result<Socket, Ending> {
    let strange = |why: String| Ending::Refused(why);
    let mut request = address.url().into_client_request().map_err(|error| strange(format!("{}: {error}", address.authority())))?;
    let bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| strange("the key has characters that no key has".into()))?;
    request.headers_mut().insert("authorization", bearer);
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("realtime"));
    let gone = || Ending::Gone(format!("no gateway answers at {}", address.authority()));
    let mut stream = None;
    for socket in address.sockets() {
        if let Ok(Ok(open)) = timeout(PATIENCE, TcpStream::connect(socket)).await {
            stream = Some(open);
            break;
        }
    }
    let stream = stream.ok_or_else(gone)?;
    let _ = stream.set_nodelay(true);
    match timeout(PATIENCE, client_async(request, stream)).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(SocketError::Http(answer))) => Err(refusal(answer.status().as_u16(), answer.body().as_deref().unwrap_or_default(), address)),
        Ok(Err(error)) => Err(Ending::Gone(format!("what answers at {} does not speak as a gateway does ({error})", address.authority()))),
        Err(_) => Err(gone()),
    }
}

/// The door said no.
fn refusal(status: u16, body: &[u8], address: &Address) -> Ending {
    let said: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let said = said["error"]["message"].as_str().or(said["message"].as_str()).map(|m| format!(": {}", plain(m))).unwrap_or_default();
    let at = address.authority();
    match status {
        401 | 403 => Ending::Refused(format!("the gateway at {at} does not take this key{said}")),
        404 => Ending::Refused(format!("the gateway at {at} does not know this conversation{said}")),
        429 | 500.. => Ending::Gone(format!("the gateway at {at} has no place now ({status}){said}")),
        _ => Ending::Refused(format!("the gateway at {at} refuses ({status}){said}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(matches!(closed(Some((1008, "another client has taken this conversation's microphone".into()))), Ending::Refused(_)));
        assert!(matches!(closed(Some((1008, "the conversation was closed".into()))), Ending::Gone(_)));
        assert!(matches!(closed(None), Ending::Gone(_)));
        let address = Address::read("127.0.0.1").unwrap();
        let told = |status, body: &str| match refusal(status, body.as_bytes(), &address) { Ending::Refused(why) => (false, why), Ending::Gone(why) => (true, why), _ => (true, String::new()) };
        assert_eq!(told(401, r#"{"error":{"message":"who are you"}}"#), (false, "the gateway at 127.0.0.1:8710 does not take this key: who are you".into()));
        assert!(!told(404, "").0 && told(503, "").0 && !told(400, "").0);
    }
}
