//! Who is refused, and how: the whole table with every kind of caller, and what a hostile peer may try.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use voxgate::server::Limits;
use voxgate::server::auth::Grade;
use voxgate::server::routes::ROUTES;

use super::fake::{CLIENT, OPERATOR, World};
use super::http::{ask, bearer, host, raw, socket};

fn filled(path: &str) -> String {
    path.replace("{file}", "app.js").replace("{id}", "s1").replace("{request}", "nothing").replace("{verdict}", "approve")
}

fn handshake() -> Vec<String> {
    ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="].map(String::from).to_vec()
}

/// Status of one route for one kind of caller.
async fn status(world: &World, route: &voxgate::server::routes::Route, extra: &[String], named: &str) -> u16 {
    let mut headers = vec![named.to_string()];
    headers.extend_from_slice(extra);
    if route.socket { headers.extend(handshake()) } else { headers.push("connection: close".into()) }
    raw(world.address, route.method, &filled(route.path), &headers, "").await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_with_every_caller() {
    for route in ROUTES {
        // A world of its own for each route, so that the wrong keys of one do not count for another.
        let world = World::start().await;
        let own = host(world.address);
        let at = |what: &str| format!("{} {} with {what}", route.method, route.path);
        // What the handler itself says to an empty, allowed request.
        let (ok, refused) = (|code: u16| ![401, 403, 429, 500].contains(&code) || (route.path == "/api/link" && code == 400), |code: u16| code);
        let none = status(&world, route, &[], &own).await;
        let bad = status(&world, route, &[bearer("wrong")], &own).await;
        let client = status(&world, route, &[bearer(CLIENT)], &own).await;
        let operator = status(&world, route, &[bearer(OPERATOR)], &own).await;
        match route.grade {
            Grade::Open => assert!([none, bad, client, operator].iter().all(|code| ok(*code)), "{}", at("any")),
            Grade::Local => assert_eq!((none, bad, client, operator), (200, 401, 403, 200), "{}", at("each")),
            Grade::Client => {
                assert_eq!((refused(none), refused(bad)), (401, 401), "{}", at("none or bad"));
                assert!(ok(client) && ok(operator), "{}: {client} {operator}", at("a key"));
            }
            Grade::Operator => {
                assert_eq!((none, bad, client), (401, 401, 403), "{}", at("less than the operator"));
                assert!(ok(operator), "{}: {operator}", at("the operator"));
            }
        }
        if route.socket {
            assert_eq!(operator, 101, "{}", at("the operator"));
        }
        let own_origin = format!("origin: http://{}", world.address);
        assert_eq!(status(&world, route, &[bearer(OPERATOR), own_origin], &own).await, operator, "{}", at("its own Origin"));
        for origin in ["origin: http://evil.example", "origin: null", "origin: http://evil.localhost"] {
            assert_eq!(status(&world, route, &[bearer(OPERATOR), origin.into()], &own).await, 403, "{}", at(origin));
        }
        let port = world.address.port();
        for name in ["evil.example".into(), format!("evil.example:{port}"), format!("localhost.:{port}"), "127.0.0.1:1".into()] {
            assert_eq!(status(&world, route, &[bearer(OPERATOR)], &format!("host: {name}")).await, 403, "{}", at(&name));
        }
        assert_eq!(status(&world, route, &[bearer(OPERATOR), own.clone()], &own).await, 403, "{}", at("two Hosts"));
        world.stop().await;
    }
}

#[tokio::test]
async fn refusals_have_the_shape_of_their_path() {
    let world = World::start().await;
    let a = world.address;
    let openai = raw(a, "GET", "/v1/sessions", &[host(a), "connection: close".into()], "").await.json();
    assert_eq!((openai["error"]["type"].as_str(), openai["error"]["code"].as_str()), (Some("invalid_request_error"), Some("missing_api_key")));
    let own = raw(a, "GET", "/api/autonomy", &[host(a), "connection: close".into()], "").await.json();
    assert_eq!((own["success"].as_bool(), own["error_code"].as_str()), (Some(false), Some("missing_api_key")));
    let missing = ask(a, "GET", "/v1/nothing/here", "").await;
    assert_eq!((missing.status, missing.json()["error"]["code"].as_str().map(String::from)), (404, Some("not_found".into())));
    let unknown = ask(a, "GET", "/v1/sessions/zzz", "").await;
    assert_eq!((unknown.status, unknown.json()["error"]["code"].as_str().map(String::from)), (404, Some("unknown_session".into())));
    let method = ask(a, "POST", "/v1/models", "").await;
    assert_eq!((method.status, method.header("allow")), (405, Some("GET,HEAD")));
    assert_eq!(method.json()["error"]["code"], "method_not_allowed");
    let plain = ask(a, "GET", "/v1/realtime", "").await;
    assert!(plain.status == 426 || plain.status == 400, "{}", plain.status);
    assert!(plain.json()["error"]["message"].as_str().unwrap().contains("WebSocket"));
    for id in ["..%2F..%2Fetc", "a%00b", "%ff", "a%20b"] {
        let status = ask(a, "GET", &format!("/v1/sessions/{id}"), "").await.status;
        assert!(status == 404 || status == 400, "{id}: {status}");
    }
    world.stop().await;
}

#[tokio::test]
async fn wrong_keys_are_slowed_down_and_right_ones_are_not() {
    let world = World::start().await;
    let a = world.address;
    let with = async |key: String| raw(a, "GET", "/v1/models", &[host(a), bearer(&key), "connection: close".into()], "").await;
    let mut codes = Vec::new();
    for n in 0..2_000 { codes.push(with(format!("wrong{n}")).await.status) }
    assert_eq!((&codes[..10], &codes[10..]), (&[401; 10][..], &[429; 1_990][..]));
    assert_eq!(with("again".into()).await.header("retry-after").map(|s| s.parse::<u32>().unwrap() <= 61), Some(true));
    assert_eq!(with(CLIENT.into()).await.status, 200);
    let code = raw(a, "POST", "/api/link", &[host(a), "connection: close".into()], r#"{"code":"guess"}"#).await;
    assert_eq!(code.status, 429, "codes are guessed no faster");
    world.stop().await;
}

#[tokio::test]
async fn a_socket_is_told_only_the_first_protocol() {
    let world = World::start().await;
    for (path, protocol, key) in [("/v1/realtime?model=m&conversation=s1", "realtime", CLIENT), ("/v1/sessions/s1/events", "voxgate.events", OPERATOR)] {
        let (_socket, answer) = socket(world.address, path, protocol, key).await;
        assert_eq!(answer.headers()["sec-websocket-protocol"], protocol);
        assert!(!format!("{answer:?}").contains(key));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_head_does_not_stay() {
    let world = World::with(|doors| doors.limits = Limits { head_timeout: Duration::from_millis(500), connections: 1_100, ..doors.limits }).await;
    let mut held = Vec::new();
    for n in 0..1_000 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        // Nothing, half a line, half a head.
        stream.write_all([&b""[..], b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: "][n % 3]).await.unwrap();
        held.push(stream);
    }
    let began = Instant::now();
    for mut stream in held {
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(6), stream.read_to_end(&mut rest)).await.expect("closed within 6 s");
    }
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(ask(world.address, "GET", "/healthz", "").await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn places_are_limited_and_given_back() {
    let world = World::with(|doors| doors.limits.connections = 2).await;
    let a = world.address;
    let first = super::http::mirror(a, "/v1/sessions/s1/events").await;
    let second = super::http::mirror(a, "/v1/sessions/s1/events").await;
    let third = raw(a, "GET", "/healthz", &[host(a), "connection: close".into()], "").await;
    assert_eq!((third.status, third.header("retry-after")), (503, Some("5")));
    drop((first, second));
    let mut status = 0;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        status = raw(a, "GET", "/healthz", &[host(a), "connection: close".into()], "").await.status;
        if status == 200 { break }
    }
    assert_eq!(status, 200);
    world.stop().await;
}

#[tokio::test]
async fn large_heads_and_bodies_are_refused() {
    let world = World::with(|doors| doors.limits.body_timeout = Duration::from_millis(300)).await;
    let a = world.address;
    let body = format!(r#"{{"mode":"{}"}}"#, "x".repeat(70_000));
    let large = ask(a, "POST", "/api/autonomy", &body).await;
    assert_eq!((large.status, large.json()["error_code"].as_str().map(String::from)), (413, Some("body_too_large".into())));
    let head = raw(a, "GET", "/healthz", &[host(a), format!("x-long: {}", "y".repeat(40_000))], "").await;
    assert_eq!(head.status, 431);
    let slow = raw(a, "GET", "/", &[host(a), "connection: close".into()], "").await;
    assert_eq!(slow.status, 200);
    let mut stream = TcpStream::connect(a).await.unwrap();
    let text = format!("POST /api/autonomy HTTP/1.1\r\n{}\r\n{}\r\ncontent-length: 50\r\nconnection: close\r\n\r\n{{\"mo", host(a), bearer(OPERATOR));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    world.stop().await;
}
