//! The agent against a small server in the same process: streams cut anywhere, calls, refusals, silence, and an end in the middle.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap as Headers, StatusCode as Status};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::engine::conversation::Item;

/// What the server answers: status and chunks of the body, each sent by itself.
#[derive(Clone, Default)]
struct Script {
    status: u16,
    chunks: Vec<Vec<u8>>,
    /// After the chunks: end, break off, or say nothing more.
    then: Then,
    seen: Arc<Mutex<Vec<(Option<String>, String)>>>,
    dropped: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Then { #[default] End, Break, Hang }

struct OnDrop(Arc<AtomicBool>);
impl Drop for OnDrop { fn drop(&mut self) { self.0.store(true, Ordering::SeqCst); } }

async fn answer(State(script): State<Script>, headers: Headers, body: String) -> impl IntoResponse {
    let key = headers.get("authorization").map(|v| v.to_str().unwrap_or("?").to_string());
    script.seen.lock().expect("the test's lock").push((key, body));
    let guard = OnDrop(script.dropped.clone());
    let stream = futures_util::stream::unfold((script.chunks.clone().into_iter(), script.then, guard), |(mut chunks, then, guard)| async move {
        tokio::time::sleep(Duration::from_millis(3)).await;
        match (chunks.next(), then) {
            (Some(chunk), _) => Some((Ok(chunk), (chunks, then, guard))),
            (None, Then::End) => None,
            (None, Then::Break) => Some((Err(std::io::Error::other("broken")), (chunks, Then::End, guard))),
            (None, Then::Hang) => std::future::pending().await,
        }
    });
    (Status::from_u16(script.status).expect("a status"), Body::from_stream(stream))
}

async fn serve(script: Script) -> String {
    let models = get(|| async { axum::Json(json!({"data": [{"id": "small"}, {"id": "large"}]})) });
    let app = Router::new().route("/v1/chat/completions", post(answer)).route("/v1/models", models).with_state(script);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/v1")
}

fn script(status: u16, chunks: Vec<Vec<u8>>, then: Then) -> Script { Script { status, chunks, then, ..Script::default() } }

fn event(value: Value) -> String { format!("data: {value}\n\n") }
fn text(words: &str) -> String { event(json!({"choices": [{"delta": {"content": words}, "finish_reason": null}]})) }

fn asked() -> StepRequest {
    let items = vec![Item::User { id: "u".into(), text: "hello".into() }];
    StepRequest { turn: Default::default(), step: 0, items, tools: vec![], plan_mode: true, draft: vec![], approved: None, instructions: String::new() }
}

async fn run(settings: Settings) -> (Vec<AgentOutput>, Result<(), AgentError>) {
    let agent = OpenAi::new(settings).expect("settings that work");
    let (out, mut outputs) = mpsc::channel(64);
    let end = agent.step(asked(), out).await;
    let mut all = Vec::new();
    while let Some(output) = outputs.recv().await { all.push(output) }
    (all, end)
}

fn words(outputs: &[AgentOutput]) -> String {
    outputs.iter().filter_map(|o| if let AgentOutput::Text(t) = o { Some(t.as_str()) } else { None }).collect()
}

#[tokio::test]
async fn words_and_calls_come_through_however_the_stream_is_cut() {
    let call = |d: Value| event(json!({"choices": [{"delta": {"tool_calls": [d]}, "finish_reason": null}]}));
    let whole = [
        text("Ein "), text("Café."),
        call(json!({"index": 0, "id": "call_0", "function": {"name": "notes__add", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"text\":"}})),
        call(json!({"index": 1, "id": "call_1", "function": {"name": "clock__now", "arguments": "{}"}})),
        call(json!({"index": 0, "function": {"arguments": "\"é\"}"}})),
        event(json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})), "data: [DONE]\n\n".to_string(),
    ].concat().into_bytes();
    for size in [7, 64, whole.len()] {
        let server = script(200, whole.chunks(size).map(<[u8]>::to_vec).collect(), Then::Hang);
        let url = serve(server.clone()).await;
        let (outputs, end) = run(Settings { api_key: Some("sk-canary".into()), ..Settings::new(&url, "small") }).await;
        assert_eq!((words(&outputs).as_str(), end), ("Ein Café.", Ok(())), "chunks of {size}");
        let calls: Vec<_> = outputs.iter().filter_map(|o| if let AgentOutput::Call { id, tool, arguments } = o { Some((id, tool.as_str(), arguments.as_str())) } else { None }).collect();
        assert_eq!((calls[0].1, calls[0].2, calls[1].1, calls[1].2), ("notes__add", "{\"text\":\"é\"}", "clock__now", "{}"));
        assert!(calls[0].0 != calls[1].0 && calls[0].0.0 != "call_0", "names are our own");
        let seen = server.seen.lock().expect("the test's lock").clone();
        assert_eq!(seen[0].0.as_deref(), Some("Bearer sk-canary"));
        let body: Value = serde_json::from_str(&seen[0].1).expect("JSON");
        assert_eq!((&body["model"], &body["stream"], &body["messages"][1]["content"]), (&json!("small"), &json!(true), &json!("hello")));
    }
}

#[tokio::test]
async fn refusals_say_who_and_whether_to_try_again_and_never_the_key() {
    for (status, error, retry) in [
        (401, AgentError::Key, false), (404, AgentError::NotThere, false), (429, AgentError::Busy, true),
        (500, AgentError::Refused { status: 500, message: "no … for you".into() }, true),
        (400, AgentError::Refused { status: 400, message: "no … for you".into() }, false),
        (302, AgentError::Refused { status: 302, message: "no … for you".into() }, false),
    ] {
        let body = json!({"error": {"message": "no sk-canary\n for you"}}).to_string().into_bytes();
        let url = serve(script(status, vec![body], Then::End)).await;
        let settings = Settings { api_key: Some("sk-canary".into()), ..Settings::new(&url, "small") };
        assert!(!format!("{settings:?} {:?}", OpenAi::new(settings.clone())).contains("canary"));
        let (outputs, end) = run(settings).await;
        let got = end.expect_err("a refusal");
        assert_eq!((&got, got.retry(), outputs.len()), (&error, retry, 0));
        assert!(!got.to_string().contains("canary"));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_or_falls_silent_is_an_error_and_its_calls_are_none() {
    let call = event(json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "n__a", "arguments": "{}"}}]}}]}));
    let chunks = vec![text("Half a ").into_bytes(), call.into_bytes()];
    for (then, error) in [(Then::End, AgentError::Cut), (Then::Break, AgentError::Cut), (Then::Hang, AgentError::Silent(0))] {
        let url = serve(script(200, chunks.clone(), then)).await;
        let (outputs, end) = run(Settings { idle: Duration::from_millis(150), ..Settings::new(&url, "small") }).await;
        assert_eq!((words(&outputs).as_str(), outputs.len(), end), ("Half a ", 1, Err(error)));
    }
    for (body, want) in [("data: {oops\n\n".to_string(), "bad_reply"), (event(json!({"error": {"message": "overloaded"}})), "refused"), ("<html>hello</html>".into(), "cut")] {
        let url = serve(script(200, vec![body.into_bytes()], Then::End)).await;
        let (_, end) = run(Settings::new(&url, "small")).await;
        assert!(end.expect_err("an error").code().ends_with(want), "{want}");
    }
}

#[tokio::test]
async fn a_server_that_forgets_the_end_is_not_waited_for() {
    let chunks = vec![text("Hi.").into_bytes(), event(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})).into_bytes()];
    for then in [Then::Hang, Then::Break, Then::End] {
        let url = serve(script(200, chunks.clone(), then)).await;
        let (outputs, end) = run(Settings::new(&url, "small")).await;
        assert_eq!((words(&outputs).as_str(), end), ("Hi.", Ok(())));
    }
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let server = script(200, vec![text("Once upon").into_bytes()], Then::Hang);
    let url = serve(server.clone()).await;
    let agent = OpenAi::new(Settings::new(&url, "small")).expect("settings that work");
    let (out, mut outputs) = mpsc::channel(4);
    let mut step = agent.step(asked(), out);
    tokio::select! { _ = &mut step => panic!("it must not end"), first = outputs.recv() => assert_eq!(first, Some(AgentOutput::Text("Once upon".into()))) }
    drop(step);
    for _ in 0..400 {
        if server.dropped.load(Ordering::SeqCst) { return }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the server was not told");
}

#[tokio::test]
async fn the_doctor_hears_a_sentence() {
    let url = serve(script(200, vec![], Then::End)).await;
    let check = |model: &'static str, url: String| async move { OpenAi::new(Settings::new(&url, model)).expect("settings").check().await };
    assert!(check("small", url.clone()).await.is_ok_and(|s| s.contains("small is there")));
    assert!(check("huge", url.clone()).await.is_ok_and(|s| s.contains("does not list huge; it lists small, large")));
    assert!(check("small", url.replace("/v1", "/v2")).await.is_ok_and(|s| s.contains("could not be checked")));
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let down = check("small", format!("http://{closed}/v1")).await.expect_err("nobody is there");
    assert_eq!(down, AgentError::Unreachable(format!("http://{closed}")));
}

#[test]
fn settings_that_cannot_work_are_told() {
    let try_url = |url: &str| OpenAi::new(Settings { api_key: Some("sk-canary".into()), ..Settings::new(url, "m") });
    for url in ["", "nonsense", "ftp://127.0.0.1/", "http://example.com/v1", "http://10.0.0.1/v1", "https://me:secret@example.com/v1", "http://localhost.example.com/"] {
        let error = try_url(url).expect_err(url);
        assert!(matches!(&error, AgentError::Config(_)) && !error.to_string().contains("secret"), "{error}");
    }
    for url in ["http://127.0.0.1:1/v1", "http://[::1]:1/v1", "http://localhost:1/v1/", "https://api.example.com/v1"] {
        try_url(url).expect(url);
    }
    assert!(OpenAi::new(Settings { allow_plain_http: true, ..Settings::new("http://10.0.0.1/v1", "m") }).is_ok());
    assert!(OpenAi::new(Settings::new("http://127.0.0.1/v1", " ")).is_err());
    assert!(OpenAi::new(Settings { api_key: Some("a\nb".into()), ..Settings::new("http://127.0.0.1/v1", "m") }).is_err());
}
