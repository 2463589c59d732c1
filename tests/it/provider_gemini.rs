//! A scripted provider that speaks Gemini Live: what it answers is set beforehand, what it was sent is kept. It sends JSON in binary
//! frames, as the service does.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};

use crate::live::PATIENCE;
use crate::provider::Reply;

#[derive(Default)]
struct State {
    received: Vec<Value>,
    /// Samples of sound that came, and how loud the loudest was.
    samples: usize,
    loudest: u16,
    script: VecDeque<Reply>,
    out: Option<mpsc::UnboundedSender<Message>>,
    /// Counts up whenever what it says is to stop.
    turn: u64,
    speaking: bool,
    connections: usize,
    key: String,
    path: String,
    /// The next set-up is refused with this code.
    refuses: Option<u16>,
}

/// The provider. It ends with this value.
pub struct Far {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Far {
    fn drop(&mut self) { self.task.abort() }
}

impl Far {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(State::default())));
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await { tokio::spawn(serve(stream, shared.clone())); }
        });
        Self { address, state, task }
    }

    /// The row of the configuration that leads here.
    pub fn config(&self, model: &str) -> String { format!("[realtime]\nmodels = [\"far gemini http://{} {model}\"]\napi_key = \"far-secret-key\"\n", self.address) }

    pub fn will(&self, reply: Reply) { self.state.lock().unwrap().script.push_back(reply) }

    pub fn says(&self, frame: &Value) { self.raw(Message::binary(frame.to_string())) }

    pub fn raw(&self, message: Message) { self.state.lock().unwrap().out.as_ref().expect("somebody is there").send(message).unwrap() }

    /// The next set-up ends the connection with this code.
    pub fn refuses(&self, code: u16) { self.state.lock().unwrap().refuses = Some(code) }

    /// It has heard somebody: what it understood, then the answer that the script has next.
    pub fn answers_speech(&self, understood: &str) {
        self.says(&json!({"serverContent": {"inputTranscription": {"text": understood}}}));
        let mut state = self.state.lock().unwrap();
        let out = state.out.clone().expect("somebody is there");
        reply(&mut state, &self.state, &out);
    }

    pub fn received(&self) -> Vec<Value> { self.state.lock().unwrap().received.clone() }

    pub fn mark(&self) -> usize { self.state.lock().unwrap().received.len() }

    /// Samples of sound that came, and the loudest of them.
    pub fn sound(&self) -> (usize, u16) { let s = self.state.lock().unwrap(); (s.samples, s.loudest) }

    pub fn key(&self) -> (String, String) { let s = self.state.lock().unwrap(); (s.key.clone(), s.path.clone()) }

    pub fn connections(&self) -> usize { self.state.lock().unwrap().connections }

    pub async fn gets(&self, mark: usize, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(found) = self.received()[mark..].iter().find(|e| fits(e)) { return found.clone() }
            assert!(began.elapsed() < PATIENCE, "the provider never got {what}:\n{}", self.received()[mark..].iter().map(|e| format!("{e}\n")).collect::<String>());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What it was told it is, last.
    pub fn setup(&self) -> Value { self.received().iter().rev().find(|f| !f["setup"].is_null()).map(|f| f["setup"].clone()).unwrap_or_default() }

    /// Outputs of calls that came since: id and response.
    pub fn outputs(&self, mark: usize) -> Vec<(String, Value)> {
        self.received()[mark..].iter().filter_map(|f| f["toolResponse"]["functionResponses"].as_array().cloned()).flatten().map(|r| (r["id"].as_str().unwrap().to_string(), r["response"].clone())).collect()
    }
}

#[allow(clippy::result_large_err, reason = "the library's own shape")]
async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let seen = state.clone();
    let accepted = tokio_tungstenite::accept_hdr_async(stream, move |request: &Request, response: Response| {
        let mut state = seen.lock().unwrap();
        state.key = request.headers().get("x-goog-api-key").and_then(|v| v.to_str().ok()).unwrap_or_default().to_string();
        state.path = request.uri().to_string();
        Ok(response)
    }).await;
    let Ok(mut socket) = accepted else { return };
    let (out, mut frames) = mpsc::unbounded_channel::<Message>();
    {
        let mut state = state.lock().unwrap();
        state.out = Some(out.clone());
        state.connections += 1;
        state.turn += 1;
        state.speaking = false;
    }
    loop {
        tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => { let last = frame.is_close(); if socket.send(frame).await.is_err() || last { return } }
                None => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => took(&state, &out, &text),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
        }
    }
}

fn tell(out: &mpsc::UnboundedSender<Message>, frame: &Value) { let _ = out.send(Message::binary(frame.to_string())); }

fn took(shared: &Arc<Mutex<State>>, out: &mpsc::UnboundedSender<Message>, text: &str) {
    let frame: Value = serde_json::from_str(text).expect("a gateway sends JSON");
    assert_eq!(frame.as_object().map(serde_json::Map::len), Some(1), "one key a frame: {frame}");
    let mut state = shared.lock().unwrap();
    if let Some(sound) = frame["realtimeInput"]["audio"]["data"].as_str() {
        assert_eq!(frame["realtimeInput"]["audio"]["mimeType"], "audio/pcm;rate=16000");
        let bytes = BASE64.decode(sound).unwrap();
        state.samples += bytes.len() / 2;
        let loudest = bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]]).unsigned_abs()).max().unwrap_or(0);
        state.loudest = state.loudest.max(loudest);
        return;
    }
    state.received.push(frame.clone());
    if !frame["setup"].is_null() {
        if let Some(code) = state.refuses.take() {
            let _ = out.send(Message::Close(Some(CloseFrame { code: CloseCode::from(code), reason: "no".into() })));
            return;
        }
        tell(out, &json!({"setupComplete": {}}));
        tell(out, &json!({"sessionResumptionUpdate": {"newHandle": format!("handle_{}", state.connections), "resumable": true}}));
    } else if !frame["toolResponse"].is_null() {
        reply(&mut state, shared, out);
    } else if !frame["clientContent"].is_null() {
        if std::mem::take(&mut state.speaking) {
            state.turn += 1;
            tell(out, &json!({"serverContent": {"interrupted": true}}));
            tell(out, &json!({"serverContent": {"turnComplete": true}}));
        }
        if frame["clientContent"]["turnComplete"] == true { reply(&mut state, shared, out) }
    }
}

fn sound(words: &str) -> Value {
    let mut content = json!({"modelTurn": {"role": "model", "parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": BASE64.encode([1u8; 960])}}]}});
    if !words.is_empty() { content["outputTranscription"] = json!({"text": words}) }
    json!({"serverContent": content})
}

fn ends(out: &mpsc::UnboundedSender<Message>) {
    tell(out, &json!({"serverContent": {"generationComplete": true}}));
    tell(out, &json!({"serverContent": {"turnComplete": true}, "usageMetadata": {"promptTokenCount": 10, "responseTokenCount": 20, "totalTokenCount": 30}}));
}

fn reply(state: &mut State, shared: &Arc<Mutex<State>>, out: &mpsc::UnboundedSender<Message>) {
    match state.script.pop_front().unwrap_or(Reply::Speech("All right.", 2)) {
        Reply::Speech(words, deltas) => {
            for n in 0..deltas { tell(out, &sound(if n == 0 { words } else { "" })) }
            ends(out);
        }
        Reply::Slow(words) => {
            tell(out, &sound(words));
            (state.turn, state.speaking) = (state.turn + 1, true);
            let (turn, shared, out) = (state.turn, shared.clone(), out.clone());
            tokio::spawn(async move {
                while shared.lock().unwrap().turn == turn {
                    tell(&out, &sound(""));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        Reply::Calls(words, calls) => {
            if !words.is_empty() { tell(out, &sound(words)) }
            let calls: Vec<Value> = calls.into_iter().map(|(id, name, args)| json!({"id": id, "name": name, "args": args})).collect();
            tell(out, &json!({"toolCall": {"functionCalls": calls}}));
        }
        Reply::Raw(frames) => for frame in frames { tell(out, &frame) },
    }
}
