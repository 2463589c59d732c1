//! A chat client: it follows a conversation's mirror from its snapshot on, folds what it sees, and says and decides things.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::{Gateway, PATIENCE};
use crate::doors::http::{Socket, socket};

/// What a chat client shows, folded from the frames alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    pub seq: u64,
    pub plan_mode: bool,
    pub draining: u64,
    /// Version to status and hash.
    pub plans: BTreeMap<u64, (String, String)>,
    pub draft: Value,
    /// Id and state of the open question.
    pub question: Option<(String, String)>,
    pub approvals: Vec<String>,
    /// Role, text and item of each line.
    pub lines: Vec<(String, String, String)>,
    /// Call, tool and how it ended.
    pub calls: Vec<(String, String, Option<bool>)>,
    pub todo: Value,
    pub voice: String,
    pub ended: bool,
}

fn text(value: &Value) -> String { value.as_str().unwrap_or_default().to_string() }

fn each<T>(list: &Value, of: impl Fn(&Value) -> T) -> Vec<T> { list.as_array().into_iter().flatten().map(of).collect() }

impl Shown {
    /// Of a snapshot, as a mirror's first frame or `GET /v1/sessions/{id}` has it.
    pub fn of_snapshot(frame: &Value) -> Self {
        let p = &frame["payload"];
        assert_eq!(frame["type"], "snapshot");
        let line = |l: &Value| (text(&l["role"]), text(&l["text"]), text(&l["item_id"]));
        let call = |c: &Value| (text(&c["call_id"]), text(&c["tool"]), c["result"]["success"].as_bool());
        Self {
            seq: frame["seq"].as_u64().unwrap(), plan_mode: p["plan_mode"].as_bool().unwrap(), draining: p["draining"].as_u64().unwrap(),
            plans: each(&p["plans"], |p| (p["version"].as_u64().unwrap(), (text(&p["status"]), text(&p["hash"])))).into_iter().collect(),
            draft: p["draft"].clone(), question: question(&p["question"]), approvals: each(&p["approvals"], |a| text(&a["request_id"])),
            lines: each(&p["transcript"], line), calls: each(&p["tools"], call), todo: p["todo"].clone(),
            voice: text(&p["voice_state"]["state"]), ended: p["ended"].as_bool().unwrap(),
        }
    }

    /// One more frame. It must be the next.
    pub fn take(&mut self, frame: &Value) {
        assert_eq!(frame["seq"].as_u64(), Some(self.seq + 1), "the next event: {frame}");
        self.seq += 1;
        let p = &frame["payload"];
        match frame["type"].as_str().unwrap() {
            "plan_mode" => (self.plan_mode, self.draining) = (p["plan_mode"].as_bool().unwrap(), p["draining"].as_u64().unwrap()),
            "plan_review" if p["status"] == "draft" => self.draft = p["steps"].clone(),
            "plan_review" => { self.plans.insert(p["version"].as_u64().unwrap(), (text(&p["status"]), text(&p["hash"]))); }
            "question" => self.question = question(p).filter(|(_, state)| !["answered", "expired"].contains(&state.as_str())),
            "approval_request" => self.approvals.push(text(&p["request_id"])),
            "approval_resolved" => self.approvals.retain(|a| *a != text(&p["request_id"])),
            "transcript" => self.line((text(&p["role"]), text(&p["text"]), text(&p["item_id"]))),
            "tool_start" => self.calls.push((text(&p["call_id"]), text(&p["tool"]), None)),
            "tool_result" => {
                let call = self.calls.iter_mut().find(|c| c.0 == text(&p["call_id"])).expect("a result is of a call that began");
                assert!(call.2.replace(p["success"].as_bool().unwrap()).is_none(), "a call ends once: {frame}");
            }
            "todo_update" => self.todo = p["todos"].clone(),
            "voice_state" => self.voice = text(&p["state"]),
            "session_end" => self.ended = true,
            "notice" | "speech" | "plan_comment" => {}
            other => panic!("an event of an unknown type {other}: {frame}"),
        }
    }

    fn line(&mut self, line: (String, String, String)) {
        match self.lines.iter_mut().find(|l| l.2 == line.2 && l.0 == line.0) {
            Some(old) => *old = line,
            None => self.lines.push(line),
        }
    }
}

fn question(q: &Value) -> Option<(String, String)> { (!q.is_null()).then(|| (text(&q["id"]), text(&q["state"]))) }

/// What the client has seen, shared with the test.
#[derive(Default)]
pub struct Seen {
    pub shown: Shown,
    /// Every event, in order, over all connections.
    pub events: Vec<Value>,
    pub acks: Vec<Value>,
    /// Everything as it came over the wire, for looking for what must not be there.
    pub raw: String,
    pub connections: usize,
}

/// The client. Its task ends with it.
pub struct Chat {
    pub id: String,
    seen: Arc<Mutex<Seen>>,
    say: mpsc::UnboundedSender<Value>,
    task: tokio::task::JoinHandle<()>,
    messages: Mutex<u64>,
}

impl Drop for Chat {
    fn drop(&mut self) { self.task.abort() }
}

impl Chat {
    /// Follows a conversation (`new`, `last` or an id). With `restless` it drops its connection again and again and resumes.
    pub async fn follow(gateway: &Gateway, which: &str, restless: bool) -> Chat {
        let mut socket = gateway.mirror(&format!("/v1/sessions/{which}/events")).await;
        let snapshot = frame(&mut socket).await.expect("a snapshot");
        let id = text(&snapshot["session_id"]);
        let seen = Arc::new(Mutex::new(Seen { shown: Shown::of_snapshot(&snapshot), raw: snapshot.to_string(), connections: 1, ..Seen::default() }));
        let (say, inbox) = mpsc::unbounded_channel();
        let follower = Follower { address: gateway.address, key: gateway.operator.clone(), id: id.clone(), seen: seen.clone(), inbox, chance: 1 };
        let task = tokio::spawn(follower.run(socket, restless));
        Chat { id, seen, say, task, messages: Mutex::default() }
    }

    pub fn look<T>(&self, of: impl FnOnce(&Seen) -> T) -> T {
        assert!(!self.task.is_finished(), "the chat client has failed; see above");
        of(&self.seen.lock().unwrap())
    }

    /// How many events it has seen: a mark for [`Self::event_after`].
    pub fn mark(&self) -> usize { self.look(|s| s.events.len()) }

    /// Waits until this is so.
    pub async fn until<T>(&self, what: &str, of: impl Fn(&Seen) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = self.look(&of) { return found }
            if began.elapsed() > PATIENCE {
                let last = self.look(|s| s.events.iter().rev().take(25).rev().map(|e| format!("{e}\n")).collect::<String>());
                panic!("not in time: {what}. The last events:\n{last}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// The first event after the mark that fits.
    pub async fn event_after(&self, mark: usize, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.until(what, |s| s.events[mark..].iter().find(|e| fits(e)).cloned()).await
    }

    /// Sends a message and waits for its answer's payload.
    pub async fn send(&self, kind: &str, payload: Value) -> Value {
        let n = { let mut n = self.messages.lock().unwrap(); *n += 1; *n };
        let msg_id = format!("m{n}");
        self.say.send(json!({"type": kind, "msg_id": msg_id, "payload": payload})).unwrap();
        self.until(&format!("an answer to {kind} {payload}"), |s| s.acks.iter().find(|a| a["payload"]["msg_id"] == msg_id.as_str()).map(|a| a["payload"].clone())).await
    }

    pub async fn chat(&self, text: &str) -> Value { self.send("chat", json!({"text": text})).await }

    /// Waits until the gateway's own state is what was folded here, and nothing more comes for a moment.
    pub async fn agrees(&self, gateway: &Gateway) {
        let began = Instant::now();
        loop {
            let there = Shown::of_snapshot(&gateway.ask("GET", &format!("/v1/sessions/{}", self.id), "").await.json());
            let here = self.look(|s| s.shown.clone());
            if here == there { return }
            assert!(here.seq != there.seq && began.elapsed() < PATIENCE, "the fold differs\n here: {here:#?}\nthere: {there:#?}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}

struct Follower {
    address: SocketAddr,
    key: String,
    id: String,
    seen: Arc<Mutex<Seen>>,
    inbox: mpsc::UnboundedReceiver<Value>,
    chance: u32,
}

impl Follower {
    fn roll(&mut self, below: u32) -> u32 {
        self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.chance >> 16) % below
    }

    async fn run(mut self, mut socket: Socket, restless: bool) {
        let mut left = if restless { 3 } else { u32::MAX };
        loop {
            while left > 0 {
                tokio::select! {
                    message = self.inbox.recv() => match message {
                        Some(message) => socket.send(Message::text(message.to_string())).await.expect("the message is sent"),
                        None => return,
                    },
                    frame = frame(&mut socket) => {
                        let frame = frame.expect("the mirror stays open");
                        left -= u32::from(self.take(frame) && restless);
                    }
                }
            }
            // Half of them leave politely, the others just hang up.
            if self.roll(2) == 0 { let _ = socket.close(None).await; }
            drop(socket);
            tokio::time::sleep(std::time::Duration::from_millis(u64::from(self.roll(1_500)))).await;
            socket = self.resume().await;
            left = self.roll(9);
        }
    }

    async fn resume(&mut self) -> Socket {
        let since = self.seen.lock().unwrap().shown.seq;
        let path = format!("/v1/sessions/{}/events?since={since}", self.id);
        let mut again = socket(self.address, &path, "voxgate.events", &self.key).await.0;
        let snapshot = frame(&mut again).await.expect("a snapshot");
        assert_eq!(snapshot["payload"]["resumed"], true, "{path}: {snapshot}");
        self.seen.lock().unwrap().connections += 1;
        again
    }

    /// True for an event.
    fn take(&mut self, frame: Value) -> bool {
        let mut seen = self.seen.lock().unwrap();
        seen.raw.push_str(&frame.to_string());
        if frame["type"] == "ack" {
            seen.acks.push(frame);
        } else if frame.get("seq").is_some() {
            seen.shown.take(&frame);
            seen.events.push(frame);
            return true;
        }
        false
    }
}

async fn frame(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => return None,
        }
    }
}
