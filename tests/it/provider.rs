//! A scripted provider that speaks OpenAI Realtime (GA): what it answers is set beforehand, what it was sent is kept.

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

use crate::live::PATIENCE;

/// One answer to a `response.create`.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Words with so many deltas of 20 ms.
    Speech(&'static str, usize),
    /// The same, a delta every 20 ms until it is cancelled.
    Slow(&'static str),
    /// Calls: id, tool, arguments. Words before them, if any.
    Calls(&'static str, Vec<(&'static str, &'static str, Value)>),
    /// Events as they are; `$R` stands for the response's id.
    Raw(Vec<Value>),
}

#[derive(Default)]
struct State {
    received: Vec<Value>,
    audio: Vec<u8>,
    frames: Vec<String>,
    script: VecDeque<Reply>,
    out: Option<mpsc::UnboundedSender<Message>>,
    ids: u64,
    active: Option<String>,
    connections: usize,
    key: String,
    path: String,
    /// It answers nothing by itself, not even the beginning.
    mute: bool,
}

/// The provider. It ends with this value.
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) { self.task.abort() }
}

impl Upstream {
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
    pub fn config(&self) -> String { format!("[realtime]\nmodels = [\"far openai http://{}/v1 far-model\"]\napi_key = \"sk-far-secret\"\n", self.address) }

    pub fn will(&self, reply: Reply) { self.state.lock().unwrap().script.push_back(reply) }

    /// An event of its own accord.
    pub fn says(&self, event: Value) { self.raw(Message::text(with_id(event).to_string())) }

    pub fn raw(&self, message: Message) { self.state.lock().unwrap().out.as_ref().expect("somebody is there").send(message).unwrap() }

    /// It hears somebody, and closes the turn.
    pub fn hears(&self, item: &str) {
        self.says(json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": item}));
        self.closes(item);
    }

    pub fn closes(&self, item: &str) {
        self.says(json!({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 500, "item_id": item}));
        self.says(json!({"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": null}));
        for kind in ["added", "done"] {
            self.says(json!({"type": format!("conversation.item.{kind}"), "previous_item_id": null, "item": {"id": item, "type": "message", "role": "user", "status": "completed", "content": [{"type": "input_audio", "transcript": null}]}}));
        }
    }

    /// What came so far, sound apart.
    pub fn received(&self) -> Vec<Value> { self.state.lock().unwrap().received.clone() }

    pub fn mark(&self) -> usize { self.state.lock().unwrap().received.len() }

    pub fn sound(&self) -> Vec<u8> { self.state.lock().unwrap().audio.clone() }

    pub fn frames(&self) -> Vec<String> { self.state.lock().unwrap().frames.clone() }

    pub fn key(&self) -> (String, String) { let s = self.state.lock().unwrap(); (s.key.clone(), s.path.clone()) }

    pub fn connections(&self) -> usize { self.state.lock().unwrap().connections }

    /// Waits until something came after `mark`.
    pub async fn gets(&self, mark: usize, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(found) = self.received()[mark..].iter().find(|e| fits(e)) { return found.clone() }
            assert!(began.elapsed() < PATIENCE, "the provider never got {what}:\n{}", self.received()[mark..].iter().map(|e| format!("{e}\n")).collect::<String>());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn count(&self, mark: usize, kind: &str) -> usize { self.received()[mark..].iter().filter(|e| e["type"] == kind).count() }

    /// The session as it was told it last.
    pub fn session(&self) -> Value { self.received().iter().rev().find(|e| e["type"] == "session.update").map(|e| e["session"].clone()).unwrap_or_default() }
}

fn with_id(mut event: Value) -> Value {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    if event["event_id"].is_null() { event["event_id"] = json!(format!("event_up_{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))) }
    event
}

#[allow(clippy::result_large_err, reason = "the library's own shape")]
async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let seen = state.clone();
    let accepted = tokio_tungstenite::accept_hdr_async(stream, move |request: &Request, response: Response| {
        let mut state = seen.lock().unwrap();
        state.key = request.headers().get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default().to_string();
        state.path = request.uri().to_string();
        Ok(response)
    }).await;
    let Ok(mut socket) = accepted else { return };
    let (out, mut frames) = mpsc::unbounded_channel::<Message>();
    {
        let mut state = state.lock().unwrap();
        state.out = Some(out.clone());
        state.connections += 1;
        state.active = None;
        if !state.mute { tell(&out, json!({"type": "session.created", "session": {"id": "sess_far", "object": "realtime.session", "model": "far-model", "type": "realtime"}})) }
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

fn tell(out: &mpsc::UnboundedSender<Message>, event: Value) { let _ = out.send(Message::text(with_id(event).to_string())); }

fn took(shared: &Arc<Mutex<State>>, out: &mpsc::UnboundedSender<Message>, text: &str) {
    let event: Value = serde_json::from_str(text).expect("a gateway sends JSON");
    let mut state = shared.lock().unwrap();
    if event["type"] == "input_audio_buffer.append" {
        state.audio.extend(BASE64.decode(event["audio"].as_str().unwrap()).unwrap());
        state.frames.push(text.to_string());
        return;
    }
    state.received.push(event.clone());
    if state.mute { return }
    match event["type"].as_str().unwrap() {
        "session.update" => tell(out, json!({"type": "session.updated", "session": event["session"]})),
        "conversation.item.create" => {
            let mut item = event["item"].clone();
            state.ids += 1;
            if item["id"].is_null() { item["id"] = json!(format!("item_far_{}", state.ids)) }
            item["status"] = json!("completed");
            for kind in ["added", "done"] { tell(out, json!({"type": format!("conversation.item.{kind}"), "previous_item_id": null, "item": item})) }
        }
        "conversation.item.delete" => tell(out, json!({"type": "conversation.item.deleted", "item_id": event["item_id"]})),
        "conversation.item.truncate" => tell(out, json!({"type": "conversation.item.truncated", "item_id": event["item_id"], "content_index": 0, "audio_end_ms": event["audio_end_ms"]})),
        "conversation.item.retrieve" => tell(out, json!({"type": "conversation.item.retrieved", "item": {"id": event["item_id"], "type": "message", "role": "assistant", "content": []}})),
        "input_audio_buffer.commit" => {
            state.ids += 1;
            let item = format!("item_far_{}", state.ids);
            tell(out, json!({"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": null}));
            for kind in ["added", "done"] { tell(out, json!({"type": format!("conversation.item.{kind}"), "previous_item_id": null, "item": {"id": item, "type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": null}]}})) }
        }
        "input_audio_buffer.clear" => tell(out, json!({"type": "input_audio_buffer.cleared"})),
        "response.create" => respond(&mut state, shared.clone(), out.clone(), &event),
        "response.cancel" => match state.active.take() {
            Some(id) => done(out, &id, "cancelled", json!({"type": "cancelled", "reason": "client_cancelled"}), Vec::new(), &Value::Null),
            None => tell(out, json!({"type": "error", "error": {"type": "invalid_request_error", "code": "response_cancel_not_active", "message": "Cancellation failed: no active response found", "event_id": event["event_id"]}})),
        },
        _ => {}
    }
}

fn done(out: &mpsc::UnboundedSender<Message>, id: &str, status: &str, details: Value, output: Vec<Value>, metadata: &Value) {
    let usage = json!({"total_tokens": 30, "input_tokens": 10, "output_tokens": 20, "input_token_details": {"text_tokens": 10, "audio_tokens": 0}, "output_token_details": {"text_tokens": 5, "audio_tokens": 15}});
    tell(out, json!({"type": "response.done", "response": {"id": id, "object": "realtime.response", "status": status, "status_details": details, "output": output, "usage": usage, "metadata": metadata, "conversation_id": "conv_far", "output_modalities": ["audio"]}}));
    tell(out, json!({"type": "rate_limits.updated", "rate_limits": []}));
}

fn respond(state: &mut State, shared: Arc<Mutex<State>>, out: mpsc::UnboundedSender<Message>, event: &Value) {
    if let Some(active) = &state.active {
        tell(&out, json!({"type": "error", "error": {"type": "invalid_request_error", "code": "conversation_already_has_active_response", "message": format!("Conversation already has an active response in progress: {active}."), "event_id": event["event_id"]}}));
        return;
    }
    state.ids += 1;
    let (n, metadata) = (state.ids, event["response"]["metadata"].clone());
    let id = format!("resp_far_{n}");
    state.active = Some(id.clone());
    let created = json!({"type": "response.created", "response": {"id": id, "object": "realtime.response", "status": "in_progress", "status_details": null, "output": [], "usage": null, "metadata": metadata, "conversation_id": "conv_far", "output_modalities": ["audio"]}});
    tell(&out, created);
    match state.script.pop_front().unwrap_or(Reply::Speech("All right.", 2)) {
        Reply::Speech(words, deltas) => {
            let item = speech(&out, &id, n, 0, words, deltas);
            state.active = None;
            done(&out, &id, "completed", Value::Null, vec![item], &metadata);
        }
        Reply::Slow(words) => {
            let item = format!("item_far_{n}_0");
            open(&out, &id, &item, 0);
            tell(&out, json!({"type": "response.output_audio_transcript.delta", "response_id": id, "item_id": item, "output_index": 0, "content_index": 0, "delta": words}));
            tokio::spawn(async move {
                while shared.lock().unwrap().active.as_deref() == Some(id.as_str()) {
                    delta(&out, &id, &item, 0);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        Reply::Calls(words, calls) => {
            let mut output = Vec::new();
            if !words.is_empty() { output.push(speech(&out, &id, n, 0, words, 2)) }
            for (call, tool, arguments) in calls {
                let index = output.len();
                let item = json!({"id": format!("item_far_{n}_{index}"), "object": "realtime.item", "type": "function_call", "status": "in_progress", "call_id": call, "name": tool, "arguments": ""});
                let mut whole = item.clone();
                (whole["status"], whole["arguments"]) = (json!("completed"), json!(arguments.to_string()));
                let at = |kind: &str| json!({"type": kind, "response_id": id, "item_id": item["id"], "output_index": index, "call_id": call});
                tell(&out, json!({"type": "response.output_item.added", "response_id": id, "output_index": index, "item": item}));
                tell(&out, json!({"type": "conversation.item.added", "previous_item_id": null, "item": item}));
                let mut more = at("response.function_call_arguments.delta");
                more["delta"] = json!(arguments.to_string());
                tell(&out, more);
                let mut end = at("response.function_call_arguments.done");
                (end["name"], end["arguments"]) = (json!(tool), json!(arguments.to_string()));
                tell(&out, end);
                tell(&out, json!({"type": "conversation.item.done", "previous_item_id": null, "item": whole}));
                tell(&out, json!({"type": "response.output_item.done", "response_id": id, "output_index": index, "item": whole}));
                output.push(whole);
            }
            state.active = None;
            done(&out, &id, "completed", Value::Null, output, &metadata);
        }
        Reply::Raw(events) => {
            state.active = None;
            for event in events { tell(&out, serde_json::from_str(&event.to_string().replace("$R", &id)).unwrap()) }
        }
    }
}

fn open(out: &mpsc::UnboundedSender<Message>, id: &str, item: &str, index: usize) {
    let message = json!({"id": item, "object": "realtime.item", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    tell(out, json!({"type": "response.output_item.added", "response_id": id, "output_index": index, "item": message}));
    tell(out, json!({"type": "conversation.item.added", "previous_item_id": null, "item": message}));
    tell(out, json!({"type": "response.content_part.added", "response_id": id, "item_id": item, "output_index": index, "content_index": 0, "part": {"type": "audio", "transcript": ""}}));
}

fn delta(out: &mpsc::UnboundedSender<Message>, id: &str, item: &str, index: usize) {
    let sound = BASE64.encode([1u8; 960]);
    tell(out, json!({"type": "response.output_audio.delta", "response_id": id, "item_id": item, "output_index": index, "content_index": 0, "delta": sound}));
}

fn speech(out: &mpsc::UnboundedSender<Message>, id: &str, n: u64, index: usize, words: &str, deltas: usize) -> Value {
    let item = format!("item_far_{n}_{index}");
    open(out, id, &item, index);
    let at = |kind: &str| json!({"type": kind, "response_id": id, "item_id": item, "output_index": index, "content_index": 0});
    let with = |kind: &str, name: &str, value: Value| { let mut e = at(kind); e[name] = value; e };
    tell(out, with("response.output_audio_transcript.delta", "delta", json!(words)));
    for _ in 0..deltas { delta(out, id, &item, index) }
    tell(out, at("response.output_audio.done"));
    tell(out, with("response.output_audio_transcript.done", "transcript", json!(words)));
    tell(out, with("response.content_part.done", "part", json!({"type": "audio", "transcript": words})));
    let whole = json!({"id": item, "object": "realtime.item", "type": "message", "status": "completed", "role": "assistant", "content": [{"type": "output_audio", "transcript": words}]});
    tell(out, json!({"type": "conversation.item.done", "previous_item_id": null, "item": whole}));
    tell(out, json!({"type": "response.output_item.done", "response_id": id, "output_index": index, "item": whole}));
    whole
}
