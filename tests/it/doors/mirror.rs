//! The mirror: from the snapshot on without gap, words and decisions answered, and every way a socket ends.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::Message;
use voxgate::engine::authority::Surface;
use voxgate::server::Limits;

use super::fake::{CLIENT, OPERATOR, World};
use super::http::{Socket, ask, close_code, mirror, next, next_of, send, socket};

const S1: &str = "/v1/sessions/s1/events";

#[tokio::test]
async fn a_snapshot_first_then_every_event() {
    let world = World::start().await;
    let mut one = mirror(world.address, S1).await;
    let shot = next(&mut one).await;
    assert_eq!((shot["type"].as_str(), shot["seq"].as_u64(), shot["payload"]["resumed"].as_bool()), (Some("snapshot"), Some(5), Some(false)));
    send(&mut one, &json!({"type": "chat", "msg_id": "a", "payload": {"text": "hello"}})).await;
    let (mut frame, mut ack) = (None, None);
    while frame.is_none() || ack.is_none() {
        let got = next(&mut one).await;
        if got["type"] == "ack" { ack = Some(got) } else { frame = Some(got) }
    }
    let (frame, ack) = (frame.unwrap(), ack.unwrap());
    assert_eq!((frame["seq"].as_u64(), frame["payload"]["text"].as_str()), (Some(6), Some("hello")));
    assert_eq!(ack["payload"], json!({"msg_id": "a", "ok": true, "code": "queued", "message": "it will be answered"}));
    assert_eq!(ack["session_id"], "s1");
    assert!(ack.get("seq").is_none());
    send(&mut one, &json!({"type": "mode", "msg_id": "b", "payload": {"posture": "plan"}})).await;
    assert_eq!(next_of(&mut one, "plan_mode").await["payload"]["by"]["surface"], "screen");
    assert_eq!(world.seen().iter().map(|(surface, _)| *surface).collect::<Vec<_>>(), [Surface::Chat, Surface::Screen]);
    world.stop().await;
}

#[tokio::test]
async fn it_goes_on_where_it_was() {
    let world = World::start().await;
    let mut again = mirror(world.address, &format!("{S1}?since=2")).await;
    assert_eq!(next(&mut again).await["payload"]["resumed"], true);
    for seq in 3..=5 { assert_eq!(next(&mut again).await["seq"], seq) }
    let mut ahead = mirror(world.address, &format!("{S1}?since=99")).await;
    assert_eq!(next(&mut ahead).await["payload"]["resumed"], false);
    assert_eq!(ask(world.address, "GET", "/v1/sessions/last", "").await.json()["session_id"], "s2");
    let mut last = mirror(world.address, "/v1/sessions/last/events").await;
    assert_eq!(next(&mut last).await["session_id"], "s2");
    let mut new = mirror(world.address, "/v1/sessions/new/events").await;
    assert_eq!(next(&mut new).await["session_id"], "n2");
    world.stop().await;
}

/// W9: 200 disconnections at odd places, while somebody talks: no gap, no duplicate, and the state at the end is the server's.
#[tokio::test]
async fn two_hundred_disconnections_lose_nothing() {
    let world = World::start().await;
    let mut talker = mirror(world.address, S1).await;
    let (mut seq, mut chance) = (5u64, 7u32);
    for n in 0..200 {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for _ in 0..chance >> 30 { send(&mut talker, &json!({"type": "chat", "payload": {"text": format!("line {n}")}})).await }
        let mut socket = mirror(world.address, &format!("{S1}?since={seq}")).await;
        let shot = next(&mut socket).await;
        assert_eq!(shot["payload"]["resumed"], true);
        let there = shot["payload"]["seq"].as_u64().unwrap();
        let stop_at = seq + (there - seq) * u64::from(chance >> 16 & 3) / 3;
        while seq < stop_at {
            assert_eq!(next(&mut socket).await["seq"], seq + 1);
            seq += 1;
        }
    }
    let mut last = mirror(world.address, &format!("{S1}?since={seq}")).await;
    let there = next(&mut last).await["payload"]["seq"].as_u64().unwrap();
    while seq < there { seq += 1; assert_eq!(next(&mut last).await["seq"], seq) }
    assert_eq!(ask(world.address, "GET", "/v1/sessions/s1", "").await.json()["seq"], seq);
    assert!(seq > 200, "{seq}");
    world.stop().await;
}

#[tokio::test]
async fn every_message_is_answered_once() {
    let world = World::start().await;
    let mut socket = mirror(world.address, S1).await;
    next(&mut socket).await;
    for (message, code) in [
        (json!({"type": "plan_decision", "msg_id": "1", "payload": {"decision": "approve", "version": 7}}), "no_such_version"),
        (json!({"type": "plan_decision", "msg_id": "2", "payload": {"decision": "approve", "version": 1, "hash": "ffff"}}), "plan_changed"),
        (json!({"type": "approval_decision", "msg_id": "3", "payload": {"request_id": "q9", "decision": "approve"}}), "no_such_request"),
        (json!({"type": "chat", "session_id": "s2", "msg_id": "4", "payload": {"text": "hi"}}), "session_mismatch"),
    ] {
        send(&mut socket, &message).await;
        let ack = next_of(&mut socket, "ack").await;
        assert_eq!((ack["payload"]["ok"].as_bool(), ack["payload"]["code"].as_str()), (Some(false), Some(code)));
        assert_eq!(ack["payload"]["msg_id"], message["msg_id"]);
    }
    for (message, field) in [(r#"{"type":"chat","payload":{}}"#, "payload.text"), ("{nonsense", "message"), (r#"{"type":"sing"}"#, "type")] {
        socket.send(Message::text(message)).await.unwrap();
        let error = next_of(&mut socket, "error").await;
        assert_eq!((error["payload"]["code"].as_u64(), error["payload"]["field"].as_str()), (Some(1003), Some(field)));
    }
    socket.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(next_of(&mut socket, "ack").await["payload"]["code"], "not_text");
    send(&mut socket, &json!({"type": "approval_decision", "msg_id": "5", "payload": {"request_id": "q1", "decision": "approve"}})).await;
    assert_eq!(next_of(&mut socket, "approval_resolved").await["payload"]["status"], "approved");
    world.stop().await;
}

#[tokio::test]
async fn a_client_key_gets_no_mirror_and_a_bad_since_is_named() {
    let world = World::start().await;
    let refused = super::http::raw(world.address, "GET", S1, &[super::http::host(world.address), super::http::bearer(CLIENT), "connection: close".into()], "").await;
    assert_eq!(refused.status, 403);
    let mut headers = vec![super::http::host(world.address), super::http::bearer(OPERATOR)];
    headers.extend(["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="].map(String::from));
    let since = super::http::raw(world.address, "GET", &format!("{S1}?since=x"), &headers, "").await;
    assert_eq!((since.status, since.json()["error"]["param"].as_str().map(String::from)), (400, Some("since".into())));
    world.stop().await;
}

#[tokio::test]
async fn a_large_message_closes_1009() {
    let world = World::start().await;
    for size in [64 * 1024 + 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 1] {
        let mut socket = mirror(world.address, S1).await;
        next(&mut socket).await;
        socket.send(Message::text("x".repeat(size))).await.unwrap();
        assert_eq!(close_code(&mut socket).await, 1009, "{size}");
    }
    let mut fits = mirror(world.address, S1).await;
    next(&mut fits).await;
    let padding = " ".repeat(64 * 1024 - 60);
    fits.send(Message::text(format!(r#"{{"type":"chat","payload":{{"text":"fits"}}}}{padding}"#))).await.unwrap();
    assert_eq!(next_of(&mut fits, "ack").await["payload"]["ok"], true);
    world.stop().await;
}

fn tcp(socket: &mut Socket) -> &mut tokio::net::TcpStream {
    match socket.get_mut() { MaybeTlsStream::Plain(stream) => stream, _ => panic!("plain") }
}

#[tokio::test]
async fn a_header_that_claims_too_much_and_fragments_without_end() {
    let world = World::start().await;
    let mut huge = mirror(world.address, S1).await;
    next(&mut huge).await;
    let mut header = vec![0x81, 0xff];
    header.extend((1u64 << 62).to_be_bytes());
    header.extend([0; 4]);
    tcp(&mut huge).write_all(&header).await.unwrap();
    assert!([1002, 1006, 1009].contains(&close_code(&mut huge).await));
    let mut pieces = mirror(world.address, S1).await;
    next(&mut pieces).await;
    // 1,000 fragments of 1,000 bytes that never end: masked with zeros, the first is a text, none is final.
    let mut piece = vec![0x01, 0x80 | 126, 0x03, 0xe8, 0, 0, 0, 0];
    piece.extend([b'a'; 1_000]);
    for _ in 0..1_000 {
        if tcp(&mut pieces).write_all(&piece).await.is_err() { break }
        piece[0] = 0x00;
    }
    assert_eq!(close_code(&mut pieces).await, 1009);
    world.stop().await;
}

/// W5: a client that never reads is let go, and another one does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_let_go() {
    let world = World::with(|doors| doors.limits.send_timeout = Duration::from_millis(500)).await;
    let mut stuck = Vec::new();
    for _ in 0..10 { stuck.push(mirror(world.address, S1).await) }
    let (mut flooder, mut other) = (mirror(world.address, S1).await, mirror(world.address, "/v1/sessions/s2/events").await);
    next(&mut other).await;
    send(&mut flooder, &json!({"type": "chat", "payload": {"text": "flood"}})).await;
    let mut delays = Vec::new();
    for n in 0..60 {
        let sent = Instant::now();
        send(&mut other, &json!({"type": "chat", "msg_id": n.to_string(), "payload": {"text": "still there"}})).await;
        next_of(&mut other, "ack").await;
        delays.push(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    delays.sort();
    println!("ack beside ten stuck mirrors: median {:?}, slowest {:?}", delays[30], delays[59]);
    // Room for a loaded machine; what must not happen is a wait for the stuck ones, which take 500 ms each.
    assert!(delays[30] < Duration::from_millis(50) && delays[59] < Duration::from_millis(400), "{delays:?}");
    // The one that reads, only too late, gets its reason.
    assert_eq!(close_code(&mut flooder).await, 1013);
    // Their tasks have ended although their sockets are open: nothing is left to wait for.
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(other);
    let began = Instant::now();
    world.stop().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    drop(stuck);
}

/// W8: a peer that is silent, pongs too, is gone.
#[tokio::test]
async fn who_does_not_answer_pings_is_gone() {
    let world = World::with(|doors| {
        doors.limits = Limits { ping: Duration::from_millis(100), silence: Duration::from_millis(300), connections: 1, ..doors.limits };
    }).await;
    let mut alive = mirror(world.address, S1).await;
    let until = Instant::now() + Duration::from_millis(900);
    let mut pings = 0;
    while let Ok(Some(Ok(message))) = tokio::time::timeout(until.saturating_duration_since(Instant::now()), alive.next()).await {
        pings += usize::from(message.is_ping());
    }
    assert!(pings >= 5, "{pings}");
    send(&mut alive, &json!({"type": "chat", "payload": {"text": "here"}})).await;
    next_of(&mut alive, "ack").await;
    // Now it reads no more, and so answers no ping; its place is the only one.
    let mut status = 503;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let answer = ask(world.address, "GET", "/healthz", "").await;
        status = answer.status;
        if status == 200 { break }
    }
    assert_eq!(status, 200);
    world.stop().await;
}

#[tokio::test]
async fn the_end_of_a_conversation_and_of_the_server_are_told() {
    use voxgate::session::registry::{Conversations, Which};
    let mut world = World::start().await;
    let (mut ended, mut left, mut realtime) =
        (mirror(world.address, S1).await, mirror(world.address, "/v1/sessions/s2/events").await, socket(world.address, "/v1/realtime?conversation=s2", "realtime", CLIENT).await.0);
    next(&mut ended).await;
    next(&mut left).await;
    assert_eq!(next(&mut realtime).await["conversation"], "s2");
    world.fake.open(Which::Id("s1".into())).await.unwrap().close("the test is over").await;
    assert_eq!(next(&mut ended).await["type"], "session_end");
    assert_eq!(close_code(&mut ended).await, 1000);
    // A client that closes gets its close back, in the middle of talk too.
    for n in 0..50 {
        let mut leaving = mirror(world.address, "/v1/sessions/s2/events").await;
        next(&mut leaving).await;
        send(&mut left, &json!({"type": "chat", "payload": {"text": format!("talk {n}")}})).await;
        send(&mut left, &json!({"type": "chat", "payload": {"text": "and more"}})).await;
        leaving.close(None).await.unwrap();
        let rest: Vec<_> = leaving.collect().await;
        assert!(rest.iter().all(Result::is_ok) && matches!(rest.last(), Some(Ok(Message::Close(_)))), "{n}: {rest:?}");
    }
    world.ask_to_stop();
    assert_eq!(close_code(&mut left).await, 1001);
    world.stop().await;
    assert_eq!(close_code(&mut realtime).await, 1006, "a wire that does not end is cut after the grace");
}

#[tokio::test]
async fn a_realtime_socket_gets_its_conversation() {
    let world = World::start().await;
    let (mut named, _) = socket(world.address, "/v1/realtime?model=voxgate&conversation=s1", "realtime", CLIENT).await;
    assert_eq!(next(&mut named).await, json!({"conversation": "s1", "model": "voxgate"}));
    let (mut new, _) = socket(world.address, "/openai/v1/realtime", "realtime", OPERATOR).await;
    assert_eq!(next(&mut new).await["conversation"], "n2");
    let mut headers = vec![super::http::host(world.address), super::http::bearer(CLIENT)];
    headers.extend(["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="].map(String::from));
    for (query, status) in [("conversation=zzz", 404), ("conversation=../x", 404), ("call_id=rtc_1", 400)] {
        let answer = super::http::raw(world.address, "GET", &format!("/realtime?{query}"), &headers, "").await;
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    world.stop().await;
}
