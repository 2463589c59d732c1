//! A gateway that is killed and started again, a second one on the same folder, and a recogniser that dies under it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};
use voxgate::media::resample::resample_all;

use crate::speech::{RATE_HZ, Speaker, quiet};
use crate::talking::{finished, voxgate};

/// A guard against waiting for ever, not a measure.
const PATIENCE: Duration = Duration::from_secs(60);

/// `voxgate serve` on a free port.
struct Gateway {
    child: Child,
    url: String,
    operator: String,
    client: String,
}

impl Gateway {
    fn start(home: &Path) -> Gateway {
        let mut child = voxgate(home).args(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("voxgate starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its stdout")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_string();
        let key = |name: &str| std::fs::read_to_string(home.join("keys").join(name)).expect("a key").trim().to_string();
        Gateway { child, url, operator: key("operator"), client: key("clients/default") }
    }

    fn address(&self) -> &str { self.url.trim_start_matches("http://") }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(self.address()).expect("a connection");
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", self.address(), self.operator, body.len());
        stream.write_all(head.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn plan_mode(&self, id: &str) -> Value { self.ask("GET", &format!("/api/sessions/{id}/plan_mode"), &Value::Null).1 }

    fn set_plan_mode(&self, id: &str, on: bool) {
        let (status, answer) = self.ask("POST", &format!("/api/sessions/{id}/plan_mode"), &json!({"enabled": on, "reason": "a test"}));
        assert!(status == 200 && answer["plan_mode"] == on, "{status} {answer}");
    }

    fn socket(&self, path: &str, protocol: &str, key: &str) -> Socket {
        let mut request = format!("ws://{}{path}", self.address()).into_client_request().expect("a request");
        let protocols = HeaderValue::from_str(&format!("{protocol}, openai-insecure-api-key.{key}")).expect("a header");
        request.headers_mut().insert("sec-websocket-protocol", protocols);
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Socket(client(request, stream).expect("a socket").0)
    }

    fn mirror(&self, id: &str) -> Socket { self.socket(&format!("/v1/sessions/{id}/events"), "voxgate.events", &self.operator) }

    /// The processes it has started.
    fn children(&self) -> Vec<u32> {
        let mine = format!("PPid:\t{}\n", self.child.id());
        let numbers = std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        numbers.filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&mine))).collect()
    }

    /// As a crash would end it; what it has started must not outlive it.
    fn kill(mut self) {
        let children = self.children();
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
        let begun = Instant::now();
        while children.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            assert!(begun.elapsed() < PATIENCE, "{children:?} outlive their gateway");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn send(&mut self, frame: &Value) { self.0.send(Message::text(frame.to_string())).expect("it is sent") }

    fn chat(&mut self, text: &str) { self.send(&json!({"type": "chat", "payload": {"text": text}})) }

    fn next(&mut self) -> Value {
        loop {
            match self.0.read().expect("a frame in time") {
                Message::Text(text) => return serde_json::from_str(&text).expect("a frame is JSON"),
                Message::Close(why) => panic!("closed: {why:?}"),
                _ => {}
            }
        }
    }

    /// Reads to the first frame that fits; answers all that were read.
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        let mut read = Vec::new();
        loop {
            let frame = self.next();
            let found = fits(&frame);
            read.push(frame);
            if found { return read }
            assert!(begun.elapsed() < PATIENCE, "not among {read:?}");
        }
    }
}

fn is(frame: &Value, kind: &str, field: &str, wanted: impl Into<Value>) -> bool { frame["type"] == kind && frame["payload"][field] == wanted.into() }

fn signal(name: &str, pid: u32) { assert!(Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs").success()) }

fn exported(home: &Path, id: &str) -> Vec<Value> {
    let output = finished(voxgate(home).args(["sessions", "export", id]));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

#[test]
fn plan_mode_outlives_a_kill_and_is_announced_before_anything_runs() {
    let home = tempfile::tempdir().expect("a folder");
    let gateway = Gateway::start(home.path());
    let new = |gateway: &Gateway| gateway.mirror("new").next()["session_id"].as_str().expect("an id").to_string();
    let (planning, left) = (new(&gateway), new(&gateway));
    gateway.set_plan_mode(&left, true);
    gateway.set_plan_mode(&left, false);
    gateway.set_plan_mode(&planning, true);
    let asked = a_question_is_left_open(&gateway, &left);
    gateway.kill();

    let gateway = Gateway::start(home.path());
    let state = gateway.plan_mode(&planning);
    assert!(state["plan_mode"] == true && state["restored"] == true && state["reason"] == "a test", "{state}");
    let state = gateway.plan_mode(&left);
    assert!(state["plan_mode"] == false && state["modes"]["current"] == "default", "{state}");

    let mut mirror = gateway.mirror(&planning);
    let first = mirror.next();
    assert!(is(&first, "snapshot", "plan_mode", true) && first["payload"]["restored"] == true, "{first}");
    mirror.chat("What's in my notes?");
    let read = mirror.until(|f| f["type"] == "tool_result");
    assert!(is(read.last().expect("a frame"), "tool_result", "success", true), "{read:?}");
    let seqs: Vec<u64> = std::iter::once(&first).chain(&read).filter_map(|f| f["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "{seqs:?}");
    mirror.chat("Add buy milk to my notes.");
    mirror.until(|f| is(f, "tool_result", "error_code", "plan_mode_blocked"));
    let log = exported(home.path(), &planning);
    let at = |fits: &dyn Fn(&Value) -> bool| log.iter().position(fits).unwrap_or_else(|| panic!("{log:?}"));
    let (resumed, restored, ran) = (at(&|e| e["how"] == "resumed"), at(&|e| e["kind"] == "mode" && e["restored"] == true), at(&|e| e["kind"] == "tool_start"));
    assert!(resumed < restored && restored < ran, "{resumed} {restored} {ran}");
    the_open_question_has_expired(&gateway, home.path(), &left, &asked);
    a_second_process_says_who_holds_the_folder(&gateway, home.path());
    told_to_stop(gateway);
    let list = finished(voxgate(home.path()).args(["sessions", "list"])).stdout;
    let list = String::from_utf8_lossy(&list);
    assert!(list.contains(&planning) && list.contains(&left) && !list.contains("damaged"), "{list}");
}

/// Answers the request's id.
fn a_question_is_left_open(gateway: &Gateway, id: &str) -> String {
    let mut mirror = gateway.mirror(id);
    mirror.chat("Add buy bread to my notes.");
    let read = mirror.until(|f| f["type"] == "approval_request");
    read.last().and_then(|f| f["payload"]["request_id"].as_str()).expect("an id").to_string()
}

/// A call that waited when the gateway died is answered once, as expired, and nobody can approve it any more.
fn the_open_question_has_expired(gateway: &Gateway, home: &Path, id: &str, request: &str) {
    let (status, answer) = gateway.ask("POST", &format!("/api/approvals/{request}/approve"), &json!({}));
    assert_eq!((status, &answer["error_code"]), (404, &json!("no_such_request")), "{answer}");
    let snapshot = gateway.mirror(id).next();
    assert!(snapshot["payload"]["approvals"] == json!([]) && !snapshot["payload"]["question"]["state"].as_str().is_some_and(|s| s == "asked" || s == "heard"), "{snapshot}");
    let results: Vec<Value> = exported(home, id).into_iter().filter(|e| e["kind"] == "tool_result").collect();
    assert!(results.len() == 1 && results[0]["error_code"] == "expired", "{results:?}");
    assert_eq!(std::fs::read_dir(home.join("data/notes")).expect("a folder").count(), 0);
}

fn a_second_process_says_who_holds_the_folder(gateway: &Gateway, home: &Path) {
    for command in [&["talk"][..], &["serve", "--port", "0"], &["sessions", "wipe", "--all"]] {
        let output = finished(voxgate(home).args(command));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let holder = format!("voxgate serve (process {})", gateway.child.id());
        assert!(output.status.code() == Some(1) && said.contains(&holder) && said.contains(&gateway.url), "{command:?}: {said}");
    }
}

/// A polite stop ends everything, the recogniser's process too.
fn told_to_stop(mut gateway: Gateway) {
    let children = gateway.children();
    assert!(!children.is_empty());
    signal("-TERM", gateway.child.id());
    assert_eq!(gateway.child.wait().expect("it ends").code(), Some(0));
    // What was told to end may need a moment to be gone from the list of processes.
    let alive = || children.iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect::<Vec<_>>();
    let until = Instant::now() + Duration::from_secs(10);
    while !alive().is_empty() && Instant::now() < until { std::thread::sleep(Duration::from_millis(50)) }
    assert!(alive().is_empty(), "{:?} still run", alive());
}

#[test]
fn a_recogniser_that_dies_is_told_and_replaced_and_the_conversation_lives() {
    let home = tempfile::tempdir().expect("a folder");
    let gateway = Gateway::start(home.path());
    let mut mirror = gateway.mirror("new");
    let id = mirror.next()["session_id"].as_str().expect("an id").to_string();
    let mut microphone = gateway.socket(&format!("/v1/realtime?conversation={id}"), "realtime", &gateway.client);
    mirror.until(|f| is(f, "voice_state", "state", "listening"));
    let [recogniser] = gateway.children()[..] else { panic!("one recogniser: {:?}", gateway.children()) };
    // It is held still, so that it dies with an utterance in its hands.
    signal("-STOP", recogniser);
    speak(&mut microphone, "What mode are you in?");
    mirror.until(|f| is(f, "voice_state", "state", "processing"));
    signal("-KILL", recogniser);
    let read = mirror.until(|f| is(f, "notice", "code", "hearing_failed"));
    let message = read.last().expect("a frame")["payload"]["message"].as_str().unwrap_or_default().to_string();
    assert!(message.contains("restarted"), "{message}");
    mirror.until(|f| f["type"] == "speech" && f["payload"]["text"].as_str().is_some_and(|t| t.contains("say it once more")));
    speak(&mut microphone, "What mode are you in?");
    let read = mirror.until(|f| f["type"] == "speech");
    assert!(read.iter().any(|f| is(f, "transcript", "role", "user")) && read.last().expect("a frame")["payload"]["text"].as_str().is_some_and(|t| t.starts_with("Plan mode is off")), "{read:?}");
    let now = gateway.children();
    assert!(now.len() == 1 && now[0] != recogniser, "{now:?}");
}

/// Appends speech and a second of silence, all at once: a busy machine then cannot tear holes into it.
fn speak(microphone: &mut Socket, text: &str) {
    let sound = resample_all(&[quiet(300), Speaker::FliteSlt.say(text), quiet(1_200)].concat(), RATE_HZ, 24_000);
    for piece in sound.chunks(2_400) {
        let bytes: Vec<u8> = piece.iter().flat_map(|s| s.to_le_bytes()).collect();
        microphone.send(&json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(bytes)}));
    }
}
