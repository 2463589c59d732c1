//! Client secrets: asked for with a key, used as a browser and as a server does, for sockets and nothing else.

use serde_json::{Value, json};

use super::fake::{CLIENT, OPERATOR, World};
use super::http::{bearer, host, next, raw, socket};

async fn made(world: &World, path: &str, key: &str, body: &Value) -> super::http::Answer {
    raw(world.address, "POST", path, &[host(world.address), bearer(key), "connection: close".into()], &body.to_string()).await
}

/// Opens a socket with a Bearer key, as SDKs outside browsers do.
async fn bearer_socket(world: &World, path: &str, key: &str) -> Result<super::http::Socket, u16> {
    use tokio_tungstenite::tungstenite::{Error, client::IntoClientRequest};
    let mut request = format!("ws://{}{path}", world.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    match tokio_tungstenite::connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_secret_opens_sockets_with_its_session_and_nothing_else() {
    let world = World::start().await;
    for path in ["/v1/realtime/client_secrets", "/realtime/client_secrets", "/openai/v1/realtime/client_secrets", "/openai/realtime/client_secrets"] {
        let answer = made(&world, path, CLIENT, &json!({"session": {"type": "realtime", "model": "far", "instructions": "Be brief.", "tools": [{"type": "mcp", "server_url": "http://x"}]}, "expires_after": {"anchor": "created_at", "seconds": 60}})).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let made = answer.json();
        let (value, expires) = (made["value"].as_str().unwrap().to_string(), made["expires_at"].as_u64().unwrap());
        let now = voxgate::session::clock::unix_ms() / 1_000;
        assert!(value.starts_with("ek_") && (now + 50..=now + 60).contains(&expires), "{made}");
        assert_eq!((&made["session"]["model"], &made["session"]["tools"], &made["session"]["instructions"]), (&json!("far"), &json!([]), &json!("Be brief.")));
        // Twice, as a browser does and as a server does.
        let (mut browser, response) = socket(world.address, "/v1/realtime?model=far", "realtime", &value).await;
        assert_eq!(response.headers()["sec-websocket-protocol"], "realtime");
        let hello = next(&mut browser).await;
        assert_eq!((&hello["model"], &hello["session"]["instructions"]), (&json!("far"), &json!("Be brief.")));
        let mut server = bearer_socket(&world, "/openai/realtime", &value).await.unwrap();
        assert_eq!(next(&mut server).await["model"], "far", "the secret's, where the address names none");
        assert_eq!(bearer_socket(&world, "/v1/realtime?model=other", &value).await.err(), Some(400));
        for (method, path) in [("GET", "/v1/models"), ("POST", "/v1/realtime/client_secrets"), ("GET", "/v1/sessions"), ("POST", "/api/autonomy")] {
            let refused = raw(world.address, method, path, &[host(world.address), bearer(&value), "connection: close".into()], "{}").await;
            assert_eq!(refused.status, 403, "{path}");
        }
    }
    assert_eq!(bearer_socket(&world, "/v1/realtime", "ek_nobody-knows").await.err(), Some(401));
    world.stop().await;
}

#[tokio::test]
async fn it_takes_a_key_and_names_what_is_wrong() {
    let world = World::start().await;
    let path = "/v1/realtime/client_secrets";
    assert_eq!(raw(world.address, "POST", path, &[host(world.address), "connection: close".into()], "{}").await.status, 401);
    assert_eq!(made(&world, path, OPERATOR, &json!({})).await.status, 200, "a default session");
    for (body, param) in [
        (json!({"expires_after": {"seconds": 5}}), "expires_after"), (json!({"session": {"audio": {"output": {"speed": 9}}}}), "session"), (json!({"session": []}), "session"), (json!({"session": {"type": "transcription"}}), "session"),
    ] {
        let refused = made(&world, path, CLIENT, &body).await;
        assert_eq!((refused.status, refused.json()["error"]["param"].as_str().map(String::from)), (400, Some(param.into())), "{body}");
    }
    let azure = raw(world.address, "POST", path, &[host(world.address), format!("api-key: {CLIENT}"), "connection: close".into()], "{}").await;
    assert_eq!(azure.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn the_betas_shape_of_it() {
    let world = World::start().await;
    let answer = made(&world, "/v1/realtime/sessions", CLIENT, &json!({"model": "far", "modalities": ["text", "audio"], "voice": "marin", "input_audio_format": "pcm16", "temperature": 0.7})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let session = answer.json();
    assert_eq!((&session["modalities"], &session["voice"], &session["input_audio_format"], &session["model"]), (&json!(["text", "audio"]), &json!("marin"), &json!("pcm16"), &json!("far")));
    assert!(session["client_secret"]["expires_at"].is_u64());
    let (mut socket, _) = socket(world.address, "/v1/realtime", "realtime", session["client_secret"]["value"].as_str().unwrap()).await;
    assert_eq!(next(&mut socket).await["session"]["audio"]["output"]["voice"], "marin");
    world.stop().await;
}
