//! A client of the protocol's beta, written out by hand, on a session of the gateway's own and on one with a provider.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::doors::http::{Socket, close_code, next, send, socket};
use crate::live::{Gateway, program};
use crate::provider::{Reply, Upstream};

/// Every event until this one, which is the last. None has a name or a shape that the beta does not know.
async fn until(client: &mut Socket, kind: &str) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = next(client).await;
        let name = event["type"].as_str().unwrap().to_string();
        assert!(!name.contains("output_audio.") && !name.contains("output_text.") && !name.contains("output_audio_transcript") && !name.starts_with("conversation.item.added") && name != "conversation.item.done", "{event}");
        assert!(!event.to_string().contains("output_modalities"), "{event}");
        events.push(event);
        if name == kind { return events }
    }
}

fn kinds(events: &[Value]) -> Vec<&str> { events.iter().map(|e| e["type"].as_str().unwrap()).collect() }

async fn by_header(gateway: &Gateway, model: &str) -> Socket {
    let mut request = format!("ws://{}/v1/realtime?model={model}", gateway.address).into_client_request().unwrap();
    request.headers_mut().insert("api-key", gateway.client.parse().unwrap());
    request.headers_mut().insert("openai-beta", "realtime=v1".parse().unwrap());
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

async fn begin(client: &mut Socket) {
    let created = next(client).await;
    assert_eq!((&created["type"], &created["session"]["modalities"], &created["session"]["input_audio_format"]), (&json!("session.created"), &json!(["text", "audio"]), &json!("pcm16")));
    let session = json!({
        "modalities": ["text", "audio"], "instructions": "Be brief.", "voice": "alloy", "input_audio_format": "pcm16", "output_audio_format": "pcm16", "input_audio_transcription": {"model": "whisper-1"},
        "turn_detection": {"type": "server_vad", "silence_duration_ms": 400}, "tools": [{"type": "function", "name": "light", "description": "d", "parameters": {"type": "object", "properties": {}}}], "temperature": 0.8, "max_response_output_tokens": 4096,
    });
    send(client, &json!({"type": "session.update", "session": session})).await;
    let updated = until(client, "session.updated").await.pop().unwrap();
    for field in ["modalities", "instructions", "voice", "output_audio_format", "input_audio_transcription", "tools", "max_response_output_tokens"] {
        assert_eq!(updated["session"][field], session[field], "{field}");
    }
    assert_eq!(updated["session"]["turn_detection"]["silence_duration_ms"], 400);
}

async fn says(client: &mut Socket, words: &str) {
    send(client, &json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}})).await;
    send(client, &json!({"type": "response.create", "response": {"modalities": ["text", "audio"]}})).await;
}

/// What a client of the beta builds its picture of an answer from.
fn is_an_answer(events: &[Value]) -> String {
    let kinds = kinds(events);
    let at = |kind: &str| kinds.iter().position(|k| *k == kind).unwrap_or_else(|| panic!("no {kind} in {kinds:?}"));
    assert!(at("response.created") < at("response.output_item.added") && at("response.audio.delta") < at("response.audio.done"), "{kinds:?}");
    let created: Vec<&Value> = events.iter().filter(|e| e["type"] == "conversation.item.created").map(|e| &e["item"]).collect();
    assert!(created.iter().any(|item| item["role"] == "user") && created.iter().any(|item| item["role"] == "assistant"), "{created:?}");
    let done = &events.last().unwrap()["response"];
    let part = &done["output"][0]["content"][0];
    assert_eq!((&done["status"], &part["type"]), (&json!("completed"), &json!("audio")), "{done}");
    part["transcript"].as_str().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beta_client_talks_with_the_gateways_own_agent() {
    let gateway = Gateway::serve("[tts]\nkind = \"tone\"\n").await;
    let mut client = by_header(&gateway, "voxgate").await;
    begin(&mut client).await;
    says(&mut client, "What is in my notes?").await;
    assert!(!is_an_answer(&until(&mut client, "response.done").await).is_empty());
    // A mistake is told by the name that the client wrote.
    send(&mut client, &json!({"type": "session.update", "event_id": "mine", "session": {"input_audio_format": "mp3"}})).await;
    let error = until(&mut client, "error").await.pop().unwrap()["error"].clone();
    assert_eq!((&error["param"], &error["event_id"]), (&json!("session.input_audio_format"), &json!("mine")));
    // A browser says it by a subprotocol, and is answered with the other one alone.
    let (mut browser, response) = socket(gateway.address, "/v1/realtime?model=voxgate", "realtime, openai-beta.realtime-v1", &gateway.client).await;
    assert_eq!(response.headers()["sec-websocket-protocol"], "realtime");
    begin(&mut browser).await;
    // Whoever does not say it speaks GA.
    let (mut ga, _) = socket(gateway.address, "/v1/realtime?model=voxgate", "realtime", &gateway.client).await;
    assert_eq!(next(&mut ga).await["session"]["output_modalities"], json!(["audio"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beta_client_talks_with_a_provider_and_runs_its_own_tool() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::serve(&format!("{}[tts]\nkind = \"tone\"\n", upstream.config())).await;
    let mut client = by_header(&gateway, "far").await;
    begin(&mut client).await;
    let told = upstream.gets(0, "the session", |e| e["type"] == "session.update" && e["session"]["audio"]["output"]["voice"] == "alloy").await["session"].clone();
    assert_eq!((&told["type"], &told["modalities"], &told["temperature"]), (&json!("realtime"), &Value::Null, &Value::Null), "{told}");
    upstream.will(Reply::Speech("It is noon.", 5));
    says(&mut client, "What time is it?").await;
    let events = until(&mut client, "response.done").await;
    assert_eq!(is_an_answer(&events), "It is noon.");
    assert_eq!(events.iter().filter(|e| e["type"] == "response.audio.delta").count(), 5);

    upstream.will(Reply::Calls("", vec![("call_1", "light", json!({"on": true}))]));
    says(&mut client, "Light, please.").await;
    let events = until(&mut client, "response.done").await;
    assert!(events.iter().any(|e| e["type"] == "conversation.item.created" && e["item"]["call_id"] == "call_1"), "{:?}", kinds(&events));
    assert!(events.iter().any(|e| e["type"] == "response.function_call_arguments.done" && e["call_id"] == "call_1"));
    send(&mut client, &json!({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "call_1", "output": "on"}})).await;
    upstream.gets(0, "the output", |e| e["item"]["call_id"] == "call_1" && e["item"]["output"].as_str().is_some_and(|o| o.contains("on"))).await;
    // Sound goes through as it came.
    send(&mut client, &json!({"type": "input_audio_buffer.append", "audio": "AAAAAAAA"})).await;
    let began = std::time::Instant::now();
    while upstream.sound().is_empty() {
        assert!(began.elapsed() < crate::live::PATIENCE, "no sound");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(upstream.sound(), [0; 6]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_ends_its_sockets_and_its_secrets() {
    let gateway = Gateway::serve("[tts]\nkind = \"tone\"\n").await;
    let keys = async |arguments: &[&str]| {
        let out = program().arg("keys").args(arguments).env("VOXGATE_HOME", gateway.home()).output().await.unwrap();
        (out.status.success(), String::from_utf8(out.stdout).unwrap().trim().to_string())
    };
    let (true, key) = keys(&["add", "kitchen"]).await else { panic!("no key") };
    assert!(!keys(&["add", "kitchen"]).await.0, "the name is taken");
    let ask = async |key: &str| crate::doors::http::raw(gateway.address, "POST", "/v1/realtime/client_secrets", &[crate::doors::http::host(gateway.address), crate::doors::http::bearer(key), "connection: close".into()], "{}").await;
    // The gateway looks twice a second.
    let began = std::time::Instant::now();
    let secret = loop {
        let answer = ask(&key).await;
        if answer.status == 200 { break answer.json()["value"].as_str().unwrap().to_string() }
        assert!(began.elapsed() < crate::live::PATIENCE, "{}", answer.body);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    let mut sockets = Vec::new();
    for presented in [&key, &secret, &gateway.client] { sockets.push(socket(gateway.address, "/v1/realtime", "realtime", presented).await.0) }
    for socket in &mut sockets { next(socket).await; }
    let listed = keys(&["list"]).await.1;
    assert!(listed.contains("kitchen") && listed.contains("default") && !listed.contains(&key[4..]), "{listed}");
    assert!(keys(&["revoke", "kitchen"]).await.0 && !keys(&["revoke", "kitchen"]).await.0);
    for socket in &mut sockets[..2] { assert_eq!(close_code(socket).await, 1006, "cut") }
    assert_eq!((ask(&key).await.status, ask(&gateway.client).await.status), (401, 200));
    send(&mut sockets[2], &json!({"type": "session.update", "session": {"type": "realtime"}})).await;
    assert_eq!(next(&mut sockets[2]).await["type"], "session.updated", "nobody else's");
    assert!(!gateway.said().contains(&key[4..]), "no key in the log");
}
