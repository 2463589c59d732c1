//! Keys stay where they are: neither the log at its loudest, nor frames, nor the events file, nor what is stored holds one.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::live::chat::Chat;
use crate::live::headset::Headset;
use crate::live::{Gateway, home, program, sentence_file};

const API_KEY: &str = "canary-4b7e19c2-not-to-be-seen";

/// A model's server that refuses every key and repeats it, in every way servers are known to.
async fn telltale() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 64 * 1024];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            assert!(request.contains(API_KEY), "it gets the key");
            let status = ["401 Unauthorized", "400 Bad Request", "500 Internal Server Error"][n % 3];
            let body = json!({"error": {"message": format!("Incorrect API key provided: {API_KEY}.")}}).to_string();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-key: {API_KEY}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/v1")
}

fn config(url: &str) -> String { format!("[agent]\nkind = \"openai\"\nbase_url = \"{url}\"\nmodel = \"m\"\napi_key = \"{API_KEY}\"\n") }

/// Everything below a folder but the keys and the configuration themselves.
fn stored(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.file_name().and_then(|n| n.to_str()) {
            Some("keys" | "config.toml") => {}
            _ if entry.is_dir() => all.push_str(&stored(&entry)),
            _ => all.push_str(&String::from_utf8_lossy(&std::fs::read(&entry).unwrap())),
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_is_logged_shown_or_stored() {
    let url = telltale().await;
    let loud = [("RUST_LOG", "debug,hyper=trace,reqwest=trace,tungstenite=trace,tokio_tungstenite=trace,axum=trace,voxgate=trace".to_string())];
    let gateway = Gateway::run(&["serve", "--port", "0"], &config(&url), &loud).await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join(&gateway, &chat.id, json!({"type": "realtime"}), true).await;
    for n in 0..3 {
        let seen = chat.mark();
        chat.chat(&format!("Hello, number {n}.")).await;
        chat.event_after(seen, "the failure is told", |e| e["type"] == "notice" && e["payload"]["code"] == "agent_failed").await;
        headset.quiet().await;
    }
    let (operator, client) = (gateway.operator.clone(), gateway.client.clone());
    // Presented wrongly, too: with a letter more.
    let wrong = crate::doors::http::bearer(&format!("{operator}x"));
    let answer = crate::doors::http::raw(gateway.address, "GET", "/v1/sessions", &[crate::doors::http::host(gateway.address), wrong, "connection: close".into()], "").await;
    assert_eq!(answer.status, 401);
    let metrics = gateway.ask("GET", "/metrics", "").await.body;
    let frames = chat.look(|s| s.raw.clone());
    assert!(frames.contains("agent_failed"));
    drop((chat, headset));
    let folder = gateway.home().to_path_buf();
    let kept = stored(&folder);
    let (status, said) = gateway.end("-TERM").await;
    assert!(status.success() && said.contains("DEBUG"), "the log is loud: {said}");
    clean(&[("log", &said), ("frames", &frames), ("home", &kept), ("metrics", &metrics), ("answer", &answer.body)], &[&operator, &client, API_KEY]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_is_in_the_events_file() {
    let home = home(&config(&telltale().await));
    let folder = tempfile::tempdir().unwrap();
    let microphone = sentence_file(folder.path().join("mic.wav"), 300, "Tell me something about the weather.", 16_000);
    let events = folder.path().join("events.jsonl");
    let output = program().args(["talk", "--port", "0", "--pace", "fast", "--mic"]).arg(&microphone).arg("--speaker").arg(folder.path().join("out.wav"))
        .arg("--events").arg(&events).env("VOXGATE_HOME", home.path()).env("RUST_LOG", "debug").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "the agent failed, so the exit code says so: {said}");
    let events = std::fs::read_to_string(&events).unwrap();
    assert!(events.contains("agent_failed"), "{events}");
    let key = |name: &str| std::fs::read_to_string(home.path().join("keys").join(name)).unwrap().trim().to_string();
    clean(&[("log", &said), ("events", &events), ("home", &stored(home.path()))], &[&key("operator"), &key("clients/default"), API_KEY]);
}

fn clean(places: &[(&str, &String)], secrets: &[&str]) {
    for (place, text) in places {
        for secret in secrets {
            assert!(secret.len() > 20, "{secret}");
            let line = text.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "a key is in the {place}: {line:?}");
        }
    }
}
