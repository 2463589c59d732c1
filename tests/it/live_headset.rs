//! A headset on `/v1/realtime`: a microphone that never stops, a loudspeaker that keeps account, and the events that came.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::{Gateway, PATIENCE, sentence};
use crate::doors::http::{Socket, socket};

const RATE: u32 = 24_000;
const CHUNK: Duration = Duration::from_millis(40);
const CHUNK_SAMPLES: usize = 960;

#[derive(Default)]
struct State {
    events: Vec<Value>,
    plays_until: Option<Instant>,
    /// Samples that were spoken and have not been sent.
    unsent: usize,
}

/// The headset. Its task ends with it.
pub struct Headset {
    state: Arc<Mutex<State>>,
    messages: mpsc::UnboundedSender<Value>,
    microphone: mpsc::UnboundedSender<Vec<i16>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Headset {
    fn drop(&mut self) { self.task.abort() }
}

impl Headset {
    /// Joins a conversation with a client's key. `held`: it sends sound only while somebody speaks, as a held button does.
    pub async fn join(gateway: &Gateway, conversation: &str, session: Value, held: bool) -> Headset { Self::join_model(gateway, "voxgate", conversation, session, held).await }

    /// The same with another model.
    pub async fn join_model(gateway: &Gateway, model: &str, conversation: &str, session: Value, held: bool) -> Headset {
        let path = format!("/v1/realtime?model={model}&conversation={conversation}");
        let socket = socket(gateway.address, &path, "realtime", &gateway.client).await.0;
        let state = Arc::new(Mutex::new(State::default()));
        let (messages, outbox) = mpsc::unbounded_channel();
        let (microphone, sounds) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(socket, state.clone(), outbox, sounds, held));
        let headset = Headset { state, messages, microphone, task };
        headset.tell(json!({"type": "session.update", "session": session}));
        headset.event_after(0, "session.updated", |e| e["type"] == "session.updated").await;
        headset
    }

    pub fn tell(&self, message: Value) { self.messages.send(message).unwrap() }

    pub fn mark(&self) -> usize { self.state.lock().unwrap().events.len() }

    /// Speaks; returns when the last sample has been sent.
    pub async fn say(&self, text: &str) {
        let sound = sentence(text, RATE);
        self.state.lock().unwrap().unsent += sound.len();
        self.microphone.send(sound).unwrap();
        self.until(&format!("{text:?} is sent"), |s| (s.unsent == 0).then_some(())).await;
    }

    /// Waits until nothing plays any more, and a breath longer, as people do before they answer.
    pub async fn quiet(&self) {
        self.until("quiet", |s| s.plays_until.is_none_or(|at| Instant::now() > at + Duration::from_millis(700)).then_some(())).await;
    }

    pub async fn event_after(&self, mark: usize, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.until(what, |s| s.events[mark..].iter().find(|e| fits(e)).cloned()).await
    }

    /// Waits for an answer with these words, spoken or written ("by" counts as "buy"); its text.
    pub async fn answer_after(&self, mark: usize, words: &str) -> String {
        self.until(&format!("an answer with {words:?}"), |s| s.events[mark..].iter().filter_map(said).find(|t| t.to_lowercase().replace("by ", "buy ").contains(words))).await
    }

    pub fn all_after(&self, mark: usize) -> Vec<Value> { self.state.lock().unwrap().events[mark..].to_vec() }

    pub fn count_after(&self, mark: usize, kind: &str) -> usize { self.state.lock().unwrap().events[mark..].iter().filter(|e| e["type"] == kind).count() }

    async fn until<T>(&self, what: &str, of: impl Fn(&State) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = of(&self.state.lock().unwrap()) { return found }
            if began.elapsed() > PATIENCE || self.task.is_finished() {
                let last: String = self.state.lock().unwrap().events.iter().rev().take(40).rev().map(|e| format!("{e}\n")).collect();
                panic!("not in time: {what}. The last events:\n{last}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The words of a whole answer.
fn said(event: &Value) -> Option<String> {
    if event["type"] != "response.done" { return None }
    let part = &event["response"]["output"][0]["content"][0];
    part["transcript"].as_str().or(part["text"].as_str()).map(str::to_string)
}

async fn run(
    mut socket: Socket, state: Arc<Mutex<State>>, mut outbox: mpsc::UnboundedReceiver<Value>, mut sounds: mpsc::UnboundedReceiver<Vec<i16>>, held: bool,
) {
    let mut ticks = tokio::time::interval(CHUNK);
    let mut waiting: Vec<i16> = Vec::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                while let Ok(sound) = sounds.try_recv() { waiting.extend(sound) }
                if held && waiting.is_empty() { continue }
                let mut chunk: Vec<i16> = waiting.drain(..waiting.len().min(CHUNK_SAMPLES)).collect();
                let spoken = chunk.len();
                chunk.resize(CHUNK_SAMPLES, 0);
                let bytes: Vec<u8> = chunk.iter().flat_map(|s| s.to_le_bytes()).collect();
                let append = json!({"type": "input_audio_buffer.append", "audio": BASE64.encode(bytes)});
                socket.send(Message::text(append.to_string())).await.expect("sound is sent");
                state.lock().unwrap().unsent -= spoken;
            }
            message = outbox.recv() => match message {
                Some(message) => socket.send(Message::text(message.to_string())).await.expect("an event is sent"),
                None => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => took(&mut state.lock().unwrap(), serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            }
        }
    }
}

fn took(state: &mut State, mut event: Value) {
    if event["type"] == "response.output_audio.delta" {
        let bytes = BASE64.decode(event["delta"].as_str().unwrap()).unwrap().len();
        let begins = state.plays_until.map_or_else(Instant::now, |at| at.max(Instant::now()));
        state.plays_until = Some(begins + Duration::from_micros(bytes as u64 / 2 * 1_000_000 / u64::from(RATE)));
        event["delta"] = json!(bytes);
    }
    assert_ne!(event["type"], "error", "{event}");
    state.events.push(event);
}
