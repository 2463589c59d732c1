//! Conversations for the doors' tests: a driver of a few lines that folds real events and answers every command, and a
//! server around it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use voxgate::dialect::feral;
use voxgate::engine::authority::{By, Decide, Surface, UserAction};
use voxgate::engine::event::{Event, EventKind, ModeEvent, PendingApproval, Role};
use voxgate::engine::id::{ItemId, QuestionId};
use voxgate::engine::mode::{AskPolicy, Autonomy, Posture};
use voxgate::engine::plan::{PlanStatus, PlanVersion, Step};
use voxgate::engine::snapshot::Snapshot;
use voxgate::engine::tool::Effect;
use voxgate::server::auth::HeldKeys;
use voxgate::server::links::LinkCodes;
use voxgate::server::sockets::RealtimeQuery;
use voxgate::server::{Doors, Limits, serve};
use voxgate::session::handle::{Command, Declined, Done, Handle, MIRROR_QUEUE, MirrorItem, Subscription};
use voxgate::session::registry::{Conversations, Listed, OpenRefused, Which};

pub const OPERATOR: &str = "vgo_operator-token-of-the-tests";
pub const CLIENT: &str = "vgc_client-key-of-the-tests";

/// What came in, for assertions.
pub type Seen = Arc<Mutex<Vec<(Surface, String)>>>;

struct Driver {
    id: String,
    state: Snapshot,
    frames: Vec<MirrorItem>,
    mirrors: Vec<mpsc::Sender<MirrorItem>>,
    seen: Seen,
}

impl Driver {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        while let Some(command) = inbox.recv().await {
            match command {
                Command::Decide(action, reply) => { let _ = reply.send(self.decide(&action)); }
                Command::Chat(door, text, reply) => {
                    let surface = door.decide(Decide::StopTurn, "").by().surface;
                    self.seen.lock().unwrap().push((surface, format!("chat {text}")));
                    if text == "flood" { self.flood().await } else { self.say(&text, surface) }
                    let _ = reply.send(Ok(Done { code: "queued", message: "it will be answered".into() }));
                }
                Command::Snapshot(reply) => { let _ = reply.send(self.state.clone()); }
                Command::Subscribe(since, reply) => self.subscribe(since, reply),
                Command::Attach(_, reply) => { let _ = reply.send(Err(voxgate::session::handle::AttachRefused::Held("a test".into()))); }
                Command::Autonomy(_) => {}
                Command::Rest => return,
                Command::Close(reason) => {
                    self.happen(EventKind::Ended { reason });
                    return;
                }
            }
        }
    }

    fn happen(&mut self, kind: EventKind) {
        let event = Event { seq: self.state.seq + 1, at_ms: 1_800_000_000_000 + self.state.seq, kind };
        self.state.apply(&event);
        let text = feral::frame(&event, &self.state, &self.id, &format!("m{}", event.seq));
        let item = MirrorItem::Frame { seq: event.seq, text: text.into() };
        self.frames.push(item.clone());
        self.mirrors.retain(|mirror| mirror.try_send(item.clone()).is_ok());
    }

    fn say(&mut self, text: &str, surface: Surface) {
        let item = ItemId(format!("item_{}", self.state.seq));
        self.happen(EventKind::Transcript { role: Role::User, text: text.into(), item, utterance: None, for_agent: true, surface });
    }

    /// 400 frames of 64 KiB in one go: more than any queue and any socket buffer holds.
    async fn flood(&mut self) {
        for _ in 0..400 {
            self.say(&"x".repeat(64 * 1024), Surface::Chat);
            tokio::task::yield_now().await;
        }
    }

    fn subscribe(&mut self, since: Option<u64>, reply: oneshot::Sender<Subscription>) {
        let (sender, follow) = mpsc::channel(MIRROR_QUEUE);
        self.mirrors.push(sender);
        let resumed = since.is_some_and(|since| since <= self.state.seq);
        let after = |item: &&MirrorItem| matches!(item, MirrorItem::Frame { seq, .. } if Some(*seq) > since);
        let backlog = if resumed { self.frames.iter().filter(after).cloned().collect() } else { Vec::new() };
        let _ = reply.send(Subscription { snapshot: self.state.clone(), resumed, backlog, follow });
    }

    fn decide(&mut self, action: &UserAction) -> Result<Done, Declined> {
        self.seen.lock().unwrap().push((action.by().surface, format!("{:?}", action.decision())));
        let declined = |code, message: &str| Err(Declined { code, message: message.into() });
        match action.decision() {
            Decide::Enter { reason } => self.mode(Posture::Plan, reason, action.by(), None),
            Decide::Leave => self.mode(Posture::Default, "", action.by(), Some(false)),
            Decide::Approve { version: None, .. } if self.state.plans.len() > 1 => return declined("which_version", "say which version"),
            Decide::Approve { version, hash } => {
                let version = version.unwrap_or(1);
                let Some(plan) = self.state.version(version) else { return declined("no_such_version", "there is no such version") };
                if hash.as_ref().is_some_and(|hash| hash != &plan.hash) { return declined("plan_changed", "this is not the text you saw") }
                self.happen(EventKind::PlanDecided { version, status: PlanStatus::Approved, by: action.by().clone(), comments: String::new() });
                self.mode(Posture::Default, "", action.by(), Some(true));
            }
            Decide::AnswerTool { request, approve } => {
                let Some(waiting) = self.state.approvals.iter().find(|a| &a.request == request).cloned() else { return declined("no_such_request", "nothing waits") };
                let status = if *approve { "approved" } else { "denied" };
                self.happen(EventKind::ApprovalResolved { request: request.clone(), call: waiting.call, status, by: action.by().clone() });
            }
            _ => {}
        }
        Ok(Done { code: "ok", message: "done".into() })
    }

    fn mode(&mut self, posture: Posture, reason: &str, by: &By, approved: Option<bool>) {
        let epoch = self.state.stamp.epoch + 1;
        self.happen(EventKind::Mode(ModeEvent { posture, ask: AskPolicy::Ask, epoch, draining: 0, restored: false, reason: reason.into(), by: by.clone(), approved }));
    }
}

/// The fake registry. `s1` is there from the start, with two plan versions and one call that waits; `s2` is empty.
pub struct Fake {
    open: Mutex<BTreeMap<String, Handle>>,
    autonomy: Mutex<Autonomy>,
    pub seen: Seen,
}

impl Fake {
    fn new() -> Arc<Self> {
        let fake = Arc::new(Self { open: Mutex::default(), autonomy: Mutex::default(), seen: Seen::default() });
        fake.begin("s1", |driver| {
            driver.happen(EventKind::Started { how: "new" });
            driver.say("what is in my notes", Surface::Chat);
            for n in 1..=2 { driver.happen(EventKind::Presented(plan(n))) }
            driver.happen(EventKind::ApprovalRequested(waiting_call()));
        });
        fake.begin("s2", |driver| driver.happen(EventKind::Started { how: "new" }));
        fake
    }

    fn begin(&self, id: &str, prepare: impl FnOnce(&mut Driver)) -> Handle {
        let (handle, inbox) = Handle::channel(id);
        let mut driver = Driver { id: id.into(), state: Snapshot::default(), frames: vec![], mirrors: vec![], seen: Arc::clone(&self.seen) };
        prepare(&mut driver);
        tokio::spawn(driver.run(inbox));
        self.open.lock().unwrap().insert(id.into(), handle.clone());
        handle
    }

    fn known(&self, id: &str) -> Option<Handle> { self.open.lock().unwrap().get(id).cloned() }
}

fn plan(version: u32) -> PlanVersion {
    PlanVersion {
        version, title: format!("Plan {version}"), summary: "Shop.".into(), steps: vec![Step { title: "Buy eggs".into(), ..Step::default() }],
        open_questions: vec![], risks: vec![], hash: format!("{version:016}"), status: PlanStatus::Waiting, ..PlanVersion::default()
    }
}

fn waiting_call() -> PendingApproval {
    PendingApproval {
        request: QuestionId("q1".into()), call: "c1".into(), tool: "notes__add".into(), arguments: json!({"text": "milk"}), effect: Effect::Files,
        reason: "Add milk to your notes?".into(), screen_only: false, created_ms: 1_800_000_000_500,
    }
}

impl Conversations for Fake {
    fn open(&self, which: Which) -> BoxFuture<'_, Result<Handle, OpenRefused>> {
        Box::pin(async move {
            match which {
                Which::Id(id) => self.known(&id).ok_or(OpenRefused::Unknown(id)),
                Which::Last => self.known("s2").ok_or(OpenRefused::Unknown("last".into())),
                Which::New => {
                    let count = self.open.lock().unwrap().len();
                    if count >= 40 { Err(OpenRefused::Full(count)) } else { Ok(self.begin(&format!("n{count}"), |_| {})) }
                }
            }
        })
    }

    fn list(&self) -> BoxFuture<'_, Vec<Listed>> {
        let line = |id: &String| Listed { id: id.clone(), title: "t".into(), started_ms: 1, last_ms: 2, mode: "default".into(), attached: 0, running: true };
        let lines = self.open.lock().unwrap().keys().rev().map(line).collect();
        Box::pin(async move { lines })
    }

    fn autonomy(&self) -> Autonomy { *self.autonomy.lock().unwrap() }

    fn set_autonomy(&self, to: Autonomy) -> BoxFuture<'_, bool> {
        *self.autonomy.lock().unwrap() = to;
        Box::pin(async { false })
    }
}

/// A running server.
pub struct World {
    pub address: SocketAddr,
    pub fake: Arc<Fake>,
    pub links: Arc<LinkCodes>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl World {
    pub async fn start() -> World { World::with(|_| {}).await }

    pub async fn with(change: impl FnOnce(&mut Doors)) -> World {
        let fake = Fake::new();
        let keys = Arc::new(HeldKeys::new(OPERATOR, [CLIENT]));
        let mut doors = Doors::new(fake.clone(), keys, Arc::new(echo));
        doors.metrics = Some(metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder().handle());
        doors.models = vec!["voxgate".into()];
        doors.limits = Limits { grace: Duration::from_secs(3), ..Limits::default() };
        change(&mut doors);
        let links = Arc::clone(&doors.links);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, doors, async move { let _ = stopped.await; }));
        World { address, fake, links, stop: Some(stop), task: Some(task) }
    }

    pub fn seen(&self) -> Vec<(Surface, String)> { self.fake.seen.lock().unwrap().clone() }

    pub fn ask_to_stop(&mut self) { drop(self.stop.take()); }

    /// Ends the server and waits until it has ended.
    pub async fn stop(mut self) {
        self.ask_to_stop();
        self.task.take().unwrap().await.unwrap();
    }
}

/// The wire of the tests: says what it was given, then echoes.
async fn echo(mut socket: axum::extract::ws::WebSocket, handle: Handle, query: RealtimeQuery) {
    let mut hello = json!({"conversation": handle.id(), "model": query.model});
    if let Some(session) = query.session { hello["session"] = session }
    let hello = hello.to_string();
    let _ = socket.send(axum::extract::ws::Message::Text(hello.into())).await;
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, axum::extract::ws::Message::Text(_)) && socket.send(message).await.is_err() { return }
    }
}

pub fn parsed(text: &str) -> Value { serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")) }
