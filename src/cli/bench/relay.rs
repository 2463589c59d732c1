//! `voxgate bench relay`: what a proxied session costs, beside a plain copy of bytes in the gateway's place.
//!
//! Four processes on one machine: this one; a load of clients, each sending and receiving 50 frames of sound a second; an echo that plays
//! the provider; and in the middle the gateway as it is served, or the plain copy, one after the other. Processor time is that of the
//! process in the middle alone. A frame that is relayed in one direction is an event.
#![allow(clippy::disallowed_methods, reason = "round trips are measured by the wall")]

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::{PublishArgs, show};
use crate::cli::setup::Trouble;
use crate::dialect::openai_realtime::peek::Peek;
use crate::eval::figures::{Figure, Row, machine};

/// How much is measured.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RelayArgs {
    /// Sessions at one time; several tables for several numbers (default 1, 10 and 50)
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub sessions: Vec<usize>,
    /// Seconds that are measured of each
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub secs: u64,
    /// One JSON object a number of sessions, and nothing else
    #[arg(long)]
    pub json: bool,
    /// A proxy to stand beside: litellm, from the Python in VOXGATE_PEER_PYTHON
    #[arg(long, value_name = "NAME")]
    pub peer: Option<String>,
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

/// One of the other processes; started by the command itself.
#[derive(clap::Args, Clone, Debug)]
pub struct PartArgs {
    /// load, echo or copy
    role: String,
    /// Where it connects to
    #[arg(long)]
    to: Option<SocketAddr>,
    /// Path and query of the socket
    #[arg(long, default_value = "/v1/realtime?model=bench")]
    path: String,
    /// Key of the client
    #[arg(long, default_value = "none")]
    key: String,
    #[arg(long, default_value_t = 1)]
    sessions: usize,
    #[arg(long, default_value_t = 10)]
    secs: u64,
}

/// Between two frames of a session.
const FRAME: Duration = Duration::from_millis(20);
/// Sound of a frame in base64: 20 ms of 16-bit samples at 24 kHz.
const FRAME_CHARS: usize = 1_280;
/// Frames are sent so long before anything is counted.
const WARM: Duration = Duration::from_secs(2);
/// New sessions a second.
const ARRIVALS: u64 = 100;
/// A round trip longer than this is not on time for 20 ms frames.
const LATE_US: u64 = 20_000;

const CPU_AIM: f64 = 1.5;
const ADDED_AIM_US: f64 = 100.0;
const ACTIVE_AIM_KIB: f64 = 256.0;

/// What stands in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Middle {
    Copy,
    Gateway { listens: bool },
    LiteLlm,
}

/// What came of one run.
#[derive(Clone, Debug, Default)]
struct Outcome {
    cpu_us_per_event: f64,
    /// The load's own account: round trips in microseconds, and how many frames came back in time.
    p50_us: f64,
    p99_us: f64,
    on_time: f64,
    rss_per_session_kib: f64,
}

/// Measures, prints, publishes.
///
/// # Errors
/// [`Trouble`] when a process does not start or a session does not stand.
pub fn run(args: &RelayArgs) -> Result<ExitCode, Trouble> {
    if args.peer.as_deref().is_some_and(|p| p != "litellm") {
        return Err(Trouble::wrong("--peer: the one that is known is litellm"));
    }
    let sessions = if args.sessions.is_empty() { vec![1, 10, 50] } else { args.sessions.clone() };
    let mut rows = Vec::new();
    for n in sessions {
        let (copy, gateway, listening) = (measure(Middle::Copy, n, args.secs)?, measure(Middle::Gateway { listens: false }, n, args.secs)?, measure(Middle::Gateway { listens: true }, n, args.secs)?);
        let peer = args.peer.as_ref().map(|_| measure(Middle::LiteLlm, n, args.secs)).transpose()?;
        if args.json {
            outln!("{}", json_of(n, args.secs, &copy, &gateway, &listening, peer.as_ref()));
        } else {
            rows.extend(rows_of(n, &copy, &gateway, &listening, peer.as_ref()));
        }
    }
    if args.json { return Ok(ExitCode::SUCCESS) }
    let figure = Figure {
        name: "relay".into(), title: "What a proxied session costs".into(), command: "voxgate bench relay --sessions 1,10,50,200 --publish .".into(), machine: machine("no recogniser"),
        method: format!("Clients, an echo as provider and the process in the middle share this machine; each session has 50 frames of 20 ms a second in each direction, {} s are measured. Processor time is that of the process in the middle. Added: round trip less that over a plain copy of bytes in the same run.", args.secs),
        rows, notes: vec!["The round trip holds the load's and the echo's own time; on a machine with few cores that is most of it.".into()],
    };
    show(&figure, &args.publish)?;
    Ok(ExitCode::SUCCESS)
}

fn added(of: f64, raw: f64) -> f64 { (of - raw).max(0.0) }

fn json_of(n: usize, secs: u64, copy: &Outcome, gateway: &Outcome, listening: &Outcome, peer: Option<&Outcome>) -> Value {
    let mut all = json!({
        "sessions": n, "secs": secs, "cpu_us_per_event": gateway.cpu_us_per_event, "raw_cpu_us_per_event": copy.cpu_us_per_event,
        "cpu_ratio_to_raw": gateway.cpu_us_per_event / copy.cpu_us_per_event, "added_p50_us": added(gateway.p50_us, copy.p50_us), "added_p99_us": added(gateway.p99_us, copy.p99_us),
        "raw_p50_us": copy.p50_us, "raw_p99_us": copy.p99_us, "rss_per_session_kib": gateway.rss_per_session_kib, "on_time": gateway.on_time,
        "listening_cpu_us_per_event": listening.cpu_us_per_event, "listening_rss_per_session_kib": listening.rss_per_session_kib,
    });
    if let Some(peer) = peer {
        all["litellm_cpu_us_per_event"] = json!(peer.cpu_us_per_event);
        all["cpu_ratio_to_litellm"] = json!(gateway.cpu_us_per_event / peer.cpu_us_per_event);
        all["litellm_added_p50_us"] = json!(added(peer.p50_us, copy.p50_us));
    }
    all
}

fn rows_of(n: usize, copy: &Outcome, gateway: &Outcome, listening: &Outcome, peer: Option<&Outcome>) -> Vec<Row> {
    let what = |of: &str| format!("{n} session{}: {of}", if n == 1 { "" } else { "s" });
    let ratio = gateway.cpu_us_per_event / copy.cpu_us_per_event;
    let more = listening.cpu_us_per_event / gateway.cpu_us_per_event;
    let (p50, p99) = (added(gateway.p50_us, copy.p50_us), added(gateway.p99_us, copy.p99_us));
    let mut rows = vec![
        Row::told(what("processor time an event"), format!("{:.1} us; plain copy {:.1} us; {ratio:.2} times", gateway.cpu_us_per_event, copy.cpu_us_per_event)).number("us", gateway.cpu_us_per_event)
            .number("raw_us", copy.cpu_us_per_event).number("ratio", ratio).aim(format!("at most {CPU_AIM} times"), ratio <= CPU_AIM),
        Row::told(what("added to the round trip, median and 99 of 100"), format!("{p50:.0} us, {p99:.0} us (plain copy: {:.0} us, {:.0} us)", copy.p50_us, copy.p99_us)).number("p50_us", p50).number("p99_us", p99)
            .number("raw_p50_us", copy.p50_us).aim(format!("median at most {ADDED_AIM_US:.0} us"), p50 <= ADDED_AIM_US),
        Row::told(what("memory of an active session"), format!("{:.0} KiB", gateway.rss_per_session_kib)).number("kib", gateway.rss_per_session_kib).aim(format!("at most {ACTIVE_AIM_KIB:.0} KiB"), gateway.rss_per_session_kib <= ACTIVE_AIM_KIB),
        Row::told(what("frames back within 20 ms"), format!("{:.2} %", 100.0 * gateway.on_time)).number("on_time", gateway.on_time),
        Row::told(what("with the ear on, silent"), format!("{:.1} us an event, {more:.2} times", listening.cpu_us_per_event)).number("us", listening.cpu_us_per_event).number("ratio", more).aim("at most twice", more <= 2.0),
    ];
    if let Some(peer) = peer {
        let (share, aim) = (gateway.cpu_us_per_event / peer.cpu_us_per_event, if n >= 40 { 0.25 } else { 0.1 });
        rows.push(Row::told(what("beside LiteLLM"), format!("{:.0} us an event there, {share:.3} of it here; it adds {:.0} us", peer.cpu_us_per_event, added(peer.p50_us, copy.p50_us)))
            .number("litellm_us", peer.cpu_us_per_event).number("ratio", share).aim(format!("at most {aim}"), share <= aim));
    }
    rows
}

/// A process that ends with its owner.
struct Part(Child);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program with other arguments; thousands of sockets are open in it.
fn myself(arguments: &[String]) -> Result<Command, Trouble> {
    let program = std::env::current_exe().map_err(Trouble::failed)?;
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 60000 2>/dev/null || ulimit -n $(ulimit -H -n); exec \"$0\" \"$@\""]).arg(program).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}

fn part(role: &str, more: &[String]) -> Result<(Part, impl Iterator<Item = String> + use<>), Trouble> {
    let arguments: Vec<String> = ["bench", "relay-part", role].iter().map(ToString::to_string).chain(more.iter().cloned()).collect();
    started(myself(&arguments)?)
}

fn started(mut command: Command) -> Result<(Part, impl Iterator<Item = String> + use<>), Trouble> {
    let mut child = command.spawn().map_err(Trouble::failed)?;
    let lines = BufReader::new(child.stdout.take().ok_or_else(|| Trouble::failed("no output"))?).lines().map_while(Result::ok);
    Ok((Part(child), lines))
}

fn word(lines: &mut impl Iterator<Item = String>, begins: &str) -> Result<String, Trouble> {
    lines.find_map(|l| l.strip_prefix(begins).map(|rest| rest.trim().to_string())).ok_or_else(|| Trouble::failed(format!("a part of the measurement ended before it said {begins:?}")))
}

fn measure(middle: Middle, sessions: usize, secs: u64) -> Result<Outcome, Trouble> {
    let (_echo, mut said) = part("echo", &[])?;
    let echo = word(&mut said, "at ")?;
    let home = std::env::temp_dir().join(format!("voxgate-relay-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&home);
    let (held, address, key) = match middle {
        Middle::Copy => {
            let (held, mut said) = part("copy", &["--to".into(), echo])?;
            (held, word(&mut said, "at ")?, "none".to_string())
        }
        Middle::Gateway { listens } => gateway(&home, &echo, listens)?,
        Middle::LiteLlm => litellm(&home, &echo)?,
    };
    let id = held.0.id();
    settled(id);
    let before = memory_kib(id);
    let (_load, mut said) = part("load", &["--to".into(), address, "--key".into(), key, "--sessions".into(), sessions.to_string(), "--secs".into(), secs.to_string()])?;
    word(&mut said, "measuring")?;
    let cpu = cpu_us(id);
    let told: Value = serde_json::from_str(&word(&mut said, "done ")?).map_err(Trouble::failed)?;
    let (used, after) = (cpu_us(id) - cpu, memory_kib(id));
    let _ = std::fs::remove_dir_all(&home);
    let number = |name: &str| told[name].as_f64().unwrap_or(0.0);
    let events = (number("sent") + number("received")).max(1.0);
    Ok(Outcome { cpu_us_per_event: used / events, p50_us: number("p50_us"), p99_us: number("p99_us"), on_time: number("on_time"), rss_per_session_kib: (after - before).max(0.0) / sessions as f64 })
}

/// The gateway as it is served, with the echo as its provider. No voice and no network of its own: neither is used here.
fn gateway(home: &Path, echo: &str, listens: bool) -> Result<(Part, String, String), Trouble> {
    std::fs::create_dir_all(home).map_err(Trouble::failed)?;
    let config = format!("[realtime]\nmodels = [\"bench openai http://{echo}/v1\"]\nlisten = {listens}\n[tts]\nkind = \"tone\"\n[limits]\nsessions = 1000\nclients = 10000\n");
    std::fs::write(home.join("config.toml"), config).map_err(Trouble::failed)?;
    let mut command = myself(&["serve".into(), "--port".into(), "0".into()])?;
    command.env("VOXGATE_HOME", home);
    let (held, mut said) = started(command)?;
    let address = word(&mut said, "listening on http://")?;
    let key = std::fs::read_to_string(home.join("keys/clients/default")).map_err(Trouble::failed)?;
    Ok((held, address, key.trim().to_string()))
}

/// The peer, as its own documentation sets it up for a realtime model.
fn litellm(home: &Path, echo: &str) -> Result<(Part, String, String), Trouble> {
    let python = std::env::vars().find(|(name, _)| name == "VOXGATE_PEER_PYTHON").map(|(_, value)| value);
    let python = python.ok_or_else(|| Trouble::wrong("--peer litellm: VOXGATE_PEER_PYTHON must name a Python that has litellm[proxy]"))?;
    std::fs::create_dir_all(home).map_err(Trouble::failed)?;
    let config = format!("model_list:\n  - model_name: bench\n    litellm_params: {{model: openai/bench, api_base: http://{echo}/v1, api_key: sk-upstream}}\n    model_info: {{mode: realtime}}\ngeneral_settings: {{master_key: os.environ/LITELLM_MASTER_KEY}}\n");
    let file = home.join("litellm.yaml");
    std::fs::write(&file, config).map_err(Trouble::failed)?;
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(Trouble::failed)?;
    let key = format!("sk-{:032x}", std::process::id());
    let program = Path::new(&python).with_file_name("litellm");
    let mut command = Command::new(program);
    command.args(["--config", &file.display().to_string(), "--host", "127.0.0.1", "--port", &free.port().to_string()]);
    command.envs([("LITELLM_MASTER_KEY", key.as_str()), ("LITELLM_LOCAL_MODEL_COST_MAP", "True"), ("LITELLM_TELEMETRY", "False"), ("LITELLM_LOG", "ERROR")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (held, _) = started(command)?;
    let began = Instant::now();
    while std::net::TcpStream::connect(free).is_err() {
        if began.elapsed() > Duration::from_secs(120) { return Err(Trouble::failed("litellm did not start within two minutes")) }
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(Duration::from_secs(3));
    Ok((held, free.to_string(), key))
}

/// Waits until a process has done what it does at its start.
fn settled(id: u32) {
    for _ in 0..60 {
        let before = cpu_us(id);
        std::thread::sleep(Duration::from_millis(500));
        if cpu_us(id) - before < 5_000.0 { return }
    }
}

/// Processor time of a process so far, in microseconds: its threads' own account, to the nanosecond.
fn cpu_us(id: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let ns: f64 = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("schedstat")).ok()?.split(' ').next()?.parse::<f64>().ok()).sum();
    ns / 1_000.0
}

fn memory_kib(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0.0)
}

/// One of the other processes.
///
/// # Errors
/// [`Trouble`] when it cannot listen or connect.
pub async fn run_part(args: &PartArgs) -> Result<ExitCode, Trouble> {
    match args.role.as_str() {
        "echo" => echo().await,
        "copy" => copy(args.to.ok_or_else(|| Trouble::wrong("--to is missing"))?).await,
        "load" => load(args, args.to.ok_or_else(|| Trouble::wrong("--to is missing"))?).await,
        _ => Err(Trouble::wrong("the roles are load, echo and copy")),
    }
}

async fn listening() -> Result<TcpListener, Trouble> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Trouble::failed)?;
    outln!("at {}", listener.local_addr().map_err(Trouble::failed)?);
    Ok(listener)
}

async fn copy(to: SocketAddr) -> Result<ExitCode, Trouble> {
    let listener = listening().await?;
    while let Ok((mut from, _)) = listener.accept().await {
        let _ = from.set_nodelay(true);
        tokio::spawn(async move {
            let Ok(mut there) = TcpStream::connect(to).await else { return };
            let _ = there.set_nodelay(true);
            let _ = tokio::io::copy_bidirectional(&mut from, &mut there).await;
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn quick() -> WebSocketConfig { WebSocketConfig::default().write_buffer_size(0).read_buffer_size(8 * 1024) }

/// A provider whose one answer never ends: every frame of sound comes back in it.
async fn echo() -> Result<ExitCode, Trouble> {
    let listener = listening().await?;
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let Ok(mut socket) = tokio_tungstenite::accept_async_with_config(stream, Some(quick())).await else { return };
            let response = json!({"id": "resp_echo", "object": "realtime.response", "status": "in_progress", "output": []});
            let item = json!({"id": "item_echo", "object": "realtime.item", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
            let part = json!({"type": "audio", "transcript": ""});
            let opening = [
                json!({"type": "session.created", "event_id": "e1", "session": {"id": "sess_echo", "object": "realtime.session", "type": "realtime"}}),
                json!({"type": "response.created", "event_id": "e2", "response": response}),
                json!({"type": "response.output_item.added", "event_id": "e3", "response_id": "resp_echo", "output_index": 0, "item": item}),
                json!({"type": "response.content_part.added", "event_id": "e4", "response_id": "resp_echo", "item_id": "item_echo", "output_index": 0, "content_index": 0, "part": part}),
            ];
            for event in opening { if socket.send(Message::text(event.to_string())).await.is_err() { return } }
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                let Some((sound, stamp)) = Peek::at(&text).and_then(|p| Some((p.text("audio")?, p.text("event_id")?))) else { continue };
                let delta = format!("{{\"type\":\"response.output_audio.delta\",\"event_id\":\"{stamp}\",\"response_id\":\"resp_echo\",\"item_id\":\"item_echo\",\"output_index\":0,\"content_index\":0,\"delta\":\"{sound}\"}}");
                if socket.send(Message::text(delta)).await.is_err() { return }
            }
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// What the load counts.
#[derive(Default)]
struct Account {
    counting: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
    trips_us: Mutex<Vec<u32>>,
}

async fn load(args: &PartArgs, to: SocketAddr) -> Result<ExitCode, Trouble> {
    let (account, began) = (Arc::new(Account::default()), Instant::now());
    let mut sessions = Vec::new();
    for n in 0..args.sessions {
        let mut request = format!("ws://{to}{}", args.path).into_client_request().map_err(Trouble::failed)?;
        let value = format!("Bearer {}", args.key).parse().map_err(|_| Trouble::wrong("--key holds characters that no header can carry"))?;
        request.headers_mut().insert("authorization", value);
        let stream = TcpStream::connect(to).await.map_err(Trouble::failed)?;
        let _ = stream.set_nodelay(true);
        let (mut socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(quick())).await.map_err(|e| Trouble::failed(format!("session {n}: {e}")))?;
        // The echo's answer must have begun, so that its sound is somebody's.
        let stands = async { while let Some(Ok(message)) = socket.next().await { if message.to_text().is_ok_and(|t| t.contains("response.content_part.added")) { return true } } false };
        if !tokio::time::timeout(Duration::from_secs(30), stands).await.unwrap_or(false) { return Err(Trouble::failed(format!("session {n} does not stand"))) }
        sessions.push(socket);
        tokio::time::sleep(Duration::from_millis(1_000 / ARRIVALS)).await;
    }
    let until = Instant::now() + WARM + Duration::from_secs(args.secs) + Duration::from_millis(200);
    let mut tasks = tokio::task::JoinSet::new();
    for (n, socket) in sessions.into_iter().enumerate() {
        let (mut sink, mut stream) = socket.split();
        let (sender, reader) = (account.clone(), account.clone());
        tasks.spawn(async move {
            tokio::time::sleep(FRAME.mul_f64((n % 20) as f64 / 20.0)).await;
            let mut tick = tokio::time::interval(FRAME);
            let silence = "A".repeat(FRAME_CHARS);
            while Instant::now() < until {
                tick.tick().await;
                // The time of sending is the event's name, which the echo gives back.
                let stamp = began.elapsed().as_nanos() as u64;
                if sink.send(Message::text(format!("{{\"type\":\"input_audio_buffer.append\",\"event_id\":\"{stamp}\",\"audio\":\"{silence}\"}}"))).await.is_err() { return }
                if sender.counting.load(Ordering::Relaxed) { sender.sent.fetch_add(1, Ordering::Relaxed); }
            }
        });
        tasks.spawn(async move {
            let mut trips = Vec::new();
            while let Ok(Some(Ok(message))) = tokio::time::timeout_at((until + Duration::from_millis(500)).into(), stream.next()).await {
                let Message::Text(text) = message else { continue };
                let Some(sent) = Peek::at(&text).filter(|p| p.text("delta").is_some()).and_then(|p| p.text("event_id")?.parse::<u64>().ok()) else { continue };
                if reader.counting.load(Ordering::Relaxed) {
                    reader.received.fetch_add(1, Ordering::Relaxed);
                    trips.push((began.elapsed().as_nanos() as u64).saturating_sub(sent).div_ceil(1_000).min(u64::from(u32::MAX)) as u32);
                }
            }
            reader.trips_us.lock().await.append(&mut trips);
        });
    }
    tokio::time::sleep(WARM).await;
    account.counting.store(true, Ordering::Relaxed);
    outln!("measuring");
    tokio::time::sleep(Duration::from_secs(args.secs)).await;
    account.counting.store(false, Ordering::Relaxed);
    let (sent, received) = (account.sent.load(Ordering::Relaxed), account.received.load(Ordering::Relaxed));
    // The sessions stand until the one who measures has looked; what is waited for here is over by then.
    while tasks.join_next().await.is_some() {}
    let mut trips = std::mem::take(&mut *account.trips_us.lock().await);
    trips.sort_unstable();
    let at = |share: f64| trips.get(((trips.len() as f64 * share) as usize).min(trips.len().saturating_sub(1))).copied().unwrap_or(0);
    let on_time = trips.iter().filter(|t| u64::from(**t) <= LATE_US).count() as f64 / (sent.max(1)) as f64;
    outln!("done {}", json!({"sent": sent, "received": received, "p50_us": at(0.5), "p99_us": at(0.99), "on_time": on_time.min(1.0)}));
    Ok(ExitCode::SUCCESS)
}
