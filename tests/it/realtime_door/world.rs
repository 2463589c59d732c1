//! A bare route with the door on it, a client, and the other end of the leg.

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State, WebSocketUpgrade};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use voxgate::engine::id::{SpeechId, TurnId, UtteranceId};
use voxgate::server::realtime::{RealtimeQuery, limit, run};
use voxgate::session::handle::{AttachRefused, Command, Handle, LegPort};
use voxgate::session::leg::{LegEnd, LegInput, LegOutput};

/// Longest wait for anything that should be there.
pub const SOON: Duration = Duration::from_secs(5);

/// The conversation's end of the leg.
pub struct Driver {
    pub input: mpsc::Receiver<LegInput>,
    output: mpsc::Sender<LegOutput>,
}

/// A client.
pub struct Client {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// A door, ready for one client.
pub struct World {
    pub address: String,
    legs: mpsc::Receiver<Driver>,
}

async fn upgrade(State(handle): State<Handle>, Query(query): Query<RealtimeQuery>, ws: WebSocketUpgrade) -> axum::response::Response {
    limit(ws).on_upgrade(move |socket| run(socket, handle, query, std::sync::Arc::from([])))
}

impl World {
    pub async fn new() -> Self { Self::with(None).await }

    /// A conversation that refuses every leg, where `refuse` says so.
    pub async fn with(refuse: Option<AttachRefused>) -> Self {
        let (handle, mut commands) = Handle::channel("conv_1");
        let (legs_in, legs) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Some(command) = commands.recv().await {
                let Command::Attach(spec, reply) = command else { continue };
                assert!(spec.hears && spec.speaks && spec.displaceable);
                if let Some(refused) = refuse.clone() {
                    let _ = reply.send(Err(refused));
                    continue;
                }
                let (input, input_end) = mpsc::channel(256);
                let (output_end, output) = mpsc::channel(256);
                let _ = reply.send(Ok(LegPort { input, output }));
                let _ = legs_in.send(Driver { input: input_end, output: output_end }).await;
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let app = Router::new().route("/v1/realtime", get(upgrade)).with_state(handle);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, legs }
    }

    pub async fn connect(&self, query: &str) -> Client {
        let (socket, _) = connect_async(format!("ws://{}/v1/realtime{query}", self.address)).await.unwrap();
        Client { socket }
    }

    pub async fn driver(&mut self) -> Driver { self.driver_within(SOON).await }

    /// The same, for a client that takes its time to start.
    pub async fn driver_within(&mut self, wait: Duration) -> Driver {
        timeout(wait, self.legs.recv()).await.expect("a leg in time").unwrap()
    }

    /// A client whose `session.created` has been read, and the driver behind it.
    pub async fn pair() -> (Client, Driver) {
        let mut world = Self::new().await;
        let mut client = world.connect("?model=gpt-realtime").await;
        let driver = world.driver().await;
        assert_eq!(client.next().await["type"], "session.created");
        (client, driver)
    }
}

impl Client {
    pub async fn send(&mut self, event: Value) { self.send_text(event.to_string()).await; }

    pub async fn send_text(&mut self, text: String) { self.socket.send(Message::Text(text.into())).await.unwrap(); }

    /// The next event.
    pub async fn next(&mut self) -> Value {
        loop {
            match timeout(SOON, self.socket.next()).await.expect("an event in time") {
                Some(Ok(Message::Text(text))) => {
                    let event: Value = serde_json::from_str(&text).unwrap();
                    assert!(event["event_id"].as_str().is_some_and(|id| !id.is_empty()), "every event has an id: {event}");
                    return event;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("expected an event, got {other:?}"),
            }
        }
    }

    /// The next event, which has this type.
    pub async fn expect(&mut self, kind: &str) -> Value {
        let event = self.next().await;
        assert_eq!(event["type"], kind, "{event}");
        event
    }

    /// The next events, which have these types.
    pub async fn expect_all(&mut self, kinds: &[&str]) -> Vec<Value> {
        let mut events = Vec::new();
        for kind in kinds {
            events.push(self.expect(kind).await);
        }
        events
    }

    /// Sends, and reads the `error` that must come of it.
    pub async fn refused(&mut self, event: Value) -> Value {
        let shown = event.to_string();
        self.send(event).await;
        let error = self.next().await;
        assert_eq!(error["type"], "error", "{shown} -> {error}");
        error["error"].clone()
    }

    /// True when the session still answers.
    pub async fn assert_alive(&mut self) {
        self.send(json!({"type": "session.update", "session": {"type": "realtime"}})).await;
        self.expect("session.updated").await;
    }

    /// Reads until the other side closes: code and reason.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            match timeout(Duration::from_secs(30), self.socket.next()).await.expect("a close in time") {
                Some(Ok(Message::Close(Some(frame)))) => return (frame.code.into(), frame.reason.to_string()),
                Some(Ok(Message::Close(None))) => return (CloseCode::Status.into(), String::new()),
                Some(Ok(_)) => {}
                other => panic!("expected a close frame, got {other:?}"),
            }
        }
    }
}

impl Driver {
    pub async fn say(&self, output: LegOutput) { self.output.send(output).await.unwrap(); }

    pub async fn next(&mut self) -> LegInput { timeout(SOON, self.input.recv()).await.expect("an input in time").expect("an open leg") }

    /// The next input that is not sound or a notice.
    pub async fn next_word(&mut self) -> LegInput {
        loop {
            match self.next().await {
                LegInput::Audio(_) | LegInput::Notice { .. } => {}
                other => return other,
            }
        }
    }

    /// A whole utterance, its item and its words.
    pub async fn hear(&self, item: &str, words: &str) {
        self.say(LegOutput::SpeechStarted { utterance: UtteranceId(1), at_ms: 480, item: item.into() }).await;
        self.say(LegOutput::SpeechStopped { utterance: UtteranceId(1), at_ms: 1_980, item: item.into() }).await;
        self.say(LegOutput::Committed { item: item.into() }).await;
        self.say(LegOutput::UserTranscript { item: item.into(), text: Some(words.into()) }).await;
    }

    pub async fn begin(&self, speech: u64, item: &str, turn: Option<u64>) {
        self.say(LegOutput::SpeechBegan { speech: SpeechId(speech), item: item.into(), turn: turn.map(TurnId) }).await;
    }

    pub async fn text(&self, speech: u64, text: &str) {
        self.say(LegOutput::Text { speech: SpeechId(speech), text: text.into() }).await;
    }

    /// So many milliseconds of a tone at 24 kHz.
    pub async fn sound(&self, speech: u64, ms: usize) {
        self.say(LegOutput::Audio { speech: SpeechId(speech), samples: tone(24_000, ms), rate_hz: 24_000 }).await;
    }

    pub async fn end(&self, speech: u64, end: LegEnd) { self.say(LegOutput::SpeechEnded { speech: SpeechId(speech), end }).await; }

    /// A whole speech: words, sound, end.
    pub async fn speak(&self, speech: u64, item: &str, turn: Option<u64>, words: &str) {
        self.begin(speech, item, turn).await;
        self.text(speech, words).await;
        self.sound(speech, 100).await;
        self.end(speech, LegEnd::Completed).await;
    }

    pub async fn turn_began(&self, turn: u64) { self.say(LegOutput::TurnBegan { turn: TurnId(turn) }).await; }

    pub async fn turn_ended(&self, turn: u64, end: LegEnd) { self.say(LegOutput::TurnEnded { turn: TurnId(turn), end }).await; }
}

/// 1 kHz at about -12 dB.
pub fn tone(rate_hz: usize, ms: usize) -> Vec<i16> {
    let step = std::f64::consts::TAU * 1_000.0 / rate_hz as f64;
    (0..rate_hz * ms / 1_000).map(|at| ((at as f64 * step).sin() * 8_000.0) as i16).collect()
}

pub fn base64_pcm(samples: &[i16]) -> String {
    STANDARD.encode(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>())
}

/// An append of so many milliseconds at 24 kHz.
pub fn append(ms: usize) -> Value { json!({"type": "input_audio_buffer.append", "audio": base64_pcm(&tone(24_000, ms))}) }
