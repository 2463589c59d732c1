//! A FERAL client's REST calls and frames, replayed against the gateway: each fixture of tests/data/feral is a conversation of calls,
//! frames and what must come back, by shape. The agent says what the fixture holds; ears and voice are the silent ones.
//!
//! In a shape `<text>`, `<bool>`, `<int>`, `<number>`, `<null>`, `<object>`, `<list>`, `<uuid4>` and `<any>` stand for values of that kind, `|`
//! parts alternatives, `~words` wants a text that holds the words; anything else is meant as it stands. A field that a shape names
//! must be there; further ones may be.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use voxgate::agent::scripted::{Beat, Scripted};
use voxgate::cli::setup::Place;
use voxgate::config::Config;
use voxgate::engine::conversation::AgentOutput;
use voxgate::listen::vad::VadMaker;
use voxgate::server::serve;
use voxgate::session::parts::Parts;
use voxgate::store::home::Home;
use voxgate::tts::VoiceSettings;
use voxgate::{stt, tts};

use crate::doors::http::{Answer, Socket, bearer, host, next, raw, send, socket};

/// A gateway in this process whose agent follows a script.
pub struct World {
    pub address: SocketAddr,
    pub operator: String,
    _home: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl World {
    pub async fn start(steps: Vec<Vec<Beat>>) -> World {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(&file, "").unwrap();
        let config = Config::load(&file, true, &[], &[]).unwrap();
        let place = Place { variables: Vec::new(), home: Home::under(home.path()), config, models: home.path().join("no-models") };
        place.home.create().unwrap();
        let parts = Parts {
            recogniser: stt::start(stt::Settings::Scripted(Vec::new())).await.unwrap(), vad: VadMaker::default(), language: "en".into(), judge: None, judge_waits: false,
            voice: tts::open("tone", &VoiceSettings::default()).unwrap(), agent: Arc::new(Scripted::new(steps)), catalogue: place.catalogue().unwrap(), cleaning: Default::default(),
        };
        let hub = Arc::new(place.hub(parts));
        let doors = place.doors(hub, None).unwrap();
        let operator = std::fs::read_to_string(home.path().join("keys/operator")).unwrap().trim().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, doors, async move { let _ = stopped.await; }));
        World { address, operator, _home: home, stop: Some(stop), task }
    }

    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        raw(self.address, method, path, &[host(self.address), bearer(&self.operator), "connection: close".into()], body).await
    }

    pub async fn mirror(&self, which: &str) -> Socket { socket(self.address, &format!("/v1/sessions/{which}/events"), "voxgate.events", &self.operator).await.0 }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

/// What a fixture's agent does: steps of `{"say": words}` and `{"call": tool, "id": name, "arguments": {...}}`.
fn beats(agent: &Value) -> Vec<Vec<Beat>> {
    let beat = |b: &Value| match b["say"].as_str() {
        Some(text) => Beat::Out(AgentOutput::Text(text.into())),
        None => Beat::Out(AgentOutput::Call { id: b["id"].as_str().unwrap().into(), tool: b["call"].as_str().unwrap().into(), arguments: grown(&b["arguments"]).to_string() }),
    };
    agent.as_array().into_iter().flatten().map(|step| step.as_array().unwrap().iter().map(beat).collect()).collect()
}

/// `{"$times": [N, value]}` is a list of N values, `{"$long": N}` a text of N letters.
fn grown(value: &Value) -> Value {
    match value {
        Value::Object(map) if map.contains_key("$times") => {
            let n = map["$times"][0].as_u64().unwrap();
            (0..n).map(|i| json!(format!("{} {i}", map["$times"][1].as_str().unwrap()))).collect()
        }
        Value::Object(map) if map.contains_key("$long") => json!("x".repeat(map["$long"].as_u64().unwrap() as usize)),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), grown(v))).collect()),
        Value::Array(items) => items.iter().map(grown).collect(),
        plain => plain.clone(),
    }
}

/// One conversation as a client sees it.
struct Client<'a> {
    world: &'a World,
    socket: Socket,
    id: String,
    unread: VecDeque<Value>,
    /// What was kept by name, for later steps.
    kept: HashMap<String, String>,
    seq: Option<u64>,
}

impl Client<'_> {
    /// The next frame off the wire, its envelope checked (A1.1).
    async fn read(&mut self) -> Value {
        let frame = next(&mut self.socket).await;
        let envelope = json!({"msg_id": "<text>", "session_id": self.id, "timestamp_ms": "<int>", "hop": "brain", "type": "<text>", "payload": "<object>"});
        fits(&frame, &envelope, "envelope").unwrap_or_else(|why| panic!("{why}: {frame}"));
        if let Some(seq) = frame["seq"].as_u64() {
            assert!(self.seq.is_none_or(|last| seq == last + 1), "seq {:?} then {seq}: {frame}", self.seq);
            self.seq = Some(seq);
        }
        frame
    }

    /// The first frame of this type that no step has taken.
    async fn frame(&mut self, kind: &str) -> Value {
        if let Some(at) = self.unread.iter().position(|f| f["type"] == kind) { return self.unread.remove(at).unwrap() }
        loop {
            let frame = self.read().await;
            if frame["type"] == kind { return frame }
            self.unread.push_back(frame);
        }
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.replace("$ID", &self.id);
                for (name, kept) in &self.kept { text = text.replace(&format!("${name}"), kept) }
                Value::String(text)
            }
            Value::Array(items) => items.iter().map(|v| self.filled(v)).collect(),
            Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), self.filled(v))).collect::<Map<_, _>>()),
            plain => plain.clone(),
        }
    }

    async fn step(&mut self, step: &Value) -> Result<(), String> {
        let step = self.filled(step);
        let got = if let Some(rest) = step["rest"].as_str() {
            let (method, path) = rest.split_once(' ').unwrap();
            let answer = self.world.ask(method, path, &step.get("body").map_or(String::new(), |body| grown(body).to_string())).await;
            if u64::from(answer.status) != step["status"].as_u64().unwrap_or(200) { return Err(format!("status {}: {}", answer.status, answer.body)) }
            let got = answer.json();
            fits(&got, &step["answer"], "answer")?;
            got
        } else if let Some(message) = step.get("send") {
            let message = grown(message);
            send(&mut self.socket, &message).await;
            let (kind, shape) = if step.get("error").is_some() { ("error", &step["error"]) } else { ("ack", &step["ack"]) };
            let got = self.frame(kind).await;
            fits(&got["payload"], shape, kind)?;
            if got["payload"]["msg_id"] != message["msg_id"] { return Err(format!("it answers another message: {got}")) }
            got
        } else {
            let kind = step["frame"].as_str().unwrap();
            let got = self.frame(kind).await;
            fits(&got["payload"], &step["payload"], kind)?;
            got
        };
        for (name, at) in step["keep"].as_object().into_iter().flatten() {
            let value = got.pointer(at.as_str().unwrap()).ok_or_else(|| format!("nothing at {at}: {got}"))?;
            self.kept.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_string));
        }
        Ok(())
    }
}

/// Whether a value has a shape; where not, at which place and why.
fn fits(value: &Value, shape: &Value, at: &str) -> Result<(), String> {
    let no = || Err(format!("{at} is {value} and not {shape}"));
    match shape {
        Value::Null => if value.is_null() || !at.contains('.') { Ok(()) } else { no() },
        Value::Object(fields) => {
            let Some(object) = value.as_object() else { return no() };
            fields.iter().try_for_each(|(name, shape)| match object.get(name) {
                Some(value) => fits(value, shape, &format!("{at}.{name}")),
                None => Err(format!("{at} has no {name}: {value}")),
            })
        }
        Value::Array(shapes) => {
            let Some(items) = value.as_array() else { return no() };
            match shapes.as_slice() {
                // One shape is that of every item.
                [each] => if items.is_empty() { no() } else { items.iter().enumerate().try_for_each(|(n, item)| fits(item, each, &format!("{at}.{n}"))) },
                _ => if items.len() == shapes.len() { items.iter().zip(shapes).enumerate().try_for_each(|(n, (item, shape))| fits(item, shape, &format!("{at}.{n}"))) } else { no() },
            }
        }
        Value::String(text) => match (text.strip_prefix('~'), text.strip_prefix('<').and_then(|t| t.strip_suffix('>'))) {
            (Some(words), _) => if value.as_str().is_some_and(|v| v.contains(words)) { Ok(()) } else { no() },
            (_, Some(kinds)) => if kinds.split('|').any(|kind| is(value, kind)) { Ok(()) } else { no() },
            _ => if value == shape { Ok(()) } else { no() },
        },
        _ => if value == shape { Ok(()) } else { no() },
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "text" => value.is_string(), "bool" => value.is_boolean(), "int" => value.is_u64(), "number" => value.is_number(), "null" => value.is_null(),
        "object" => value.is_object(), "list" => value.is_array(), "any" => true,
        "uuid4" => value.as_str().is_some_and(|t| t.len() == 36 && t.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && t.as_bytes()[14] == b'4'),
        other => panic!("{other} is no kind of value"),
    }
}

async fn replay(name: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/feral/{name}.json"));
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let world = World::start(beats(&fixture["agent"])).await;
    let mut socket = world.mirror("new").await;
    let snapshot = next(&mut socket).await;
    fits(&snapshot["payload"], &fixture["snapshot"], "snapshot").unwrap_or_else(|why| panic!("{name}: {why}"));
    let id = snapshot["session_id"].as_str().unwrap().to_string();
    let other = world.ask("POST", "/v1/sessions", "").await.json()["id"].as_str().unwrap().to_string();
    let mut client = Client { world: &world, socket, id, unread: VecDeque::new(), kept: HashMap::from([("OTHER".to_string(), other)]), seq: snapshot["seq"].as_u64() };
    for (n, step) in fixture["steps"].as_array().unwrap().iter().enumerate() {
        if let Err(why) = client.step(step).await {
            panic!("{name}, step {n} ({step}): {why}\nunread: {:#?}", client.unread);
        }
    }
    drop(client);
    world.stop().await;
}

macro_rules! fixtures {
    ($($test:ident $name:literal;)*) => {
        $(#[tokio::test] async fn $test() { replay($name).await })*

        #[test]
        fn every_fixture_is_replayed() {
            let mut there: Vec<String> = std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/feral")).unwrap()
                .map(|e| e.unwrap().file_name().to_string_lossy().trim_end_matches(".json").to_string()).collect();
            there.sort();
            let mut replayed = [$($name),*];
            replayed.sort_unstable();
            assert_eq!(there, replayed);
        }
    };
}

fixtures! {
    plan_mode_over_rest_a1_2 "plan_mode_rest";
    plan_mode_frames_a1_3 "plan_mode_frames";
    a_plan_from_submission_to_approval_a1_5 "plan_life";
    the_gates_refusal_and_the_trace_a1_4_a1_7 "refusal_and_trace";
    autonomy_and_approvals_a1_8 "approvals";
    chat_commands_a1_6 "chat_commands";
    refusals_over_rest "bad_rest";
    refusals_over_frames "bad_frames";
    what_an_agent_submits_wrongly "bad_plans";
}

#[test]
fn shapes_are_compared_as_they_are_meant() {
    assert!(fits(&json!({"a": 1, "b": [1, 2]}), &json!({"a": "<int>", "b": ["<int>"]}), "x").is_ok());
    for (value, shape) in [(json!({"a": 1}), json!({"b": 1})), (json!({"a": "1"}), json!({"a": "<int>"})), (json!([]), json!(["<int>"])), (json!("a b"), json!("~c")), (json!({"a": 1}), json!({"a": null}))] {
        assert!(fits(&value, &shape, "x").is_err(), "{value} {shape}");
    }
    assert!(fits(&json!({"a": null}), &json!({"a": "<number|null>"}), "x").is_ok());
}
