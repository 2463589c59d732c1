//! How sockets end, and what they may not do.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use voxgate::engine::id::SpeechId;
use voxgate::session::handle::AttachRefused;
use voxgate::session::leg::LegOutput;

use super::world::{SOON, World, append, tone};

#[tokio::test]
async fn a_displaced_leg_is_closed_with_the_reason_after_what_was_said() {
    let (mut client, driver) = World::pair().await;
    driver.speak(1, "said", None, "Goodbye.").await;
    driver.say(LegOutput::Closed { reason: "another client has taken this conversation over".into() }).await;
    while client.next().await["type"] != "rate_limits.updated" {}
    assert_eq!(client.closed().await, (1008, "another client has taken this conversation over".into()));
    // A clean end: the client's answer is read, and the connection closes after it.
    assert!(timeout(SOON, client.socket.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_long_reason_is_cut_at_a_letter() {
    let (mut client, driver) = World::pair().await;
    driver.say(LegOutput::Closed { reason: "é".repeat(100) }).await;
    assert_eq!(client.closed().await, (1008, "é".repeat(61)));
}

#[tokio::test]
async fn a_conversation_that_is_held_or_gone_says_so() {
    let world = World::with(Some(AttachRefused::Held("microphone of this machine".into()))).await;
    let (code, reason) = world.connect("").await.closed().await;
    assert!(code == 1008 && reason.starts_with("microphone of this machine is already"), "{code} {reason}");
    let (mut client, driver) = World::pair().await;
    drop(driver);
    assert_eq!(client.closed().await, (1011, "this conversation has ended".into()));
}

#[tokio::test]
async fn a_client_that_leaves_lets_the_leg_go() {
    let (mut client, mut driver) = World::pair().await;
    client.socket.close(None).await.unwrap();
    assert!(timeout(SOON, driver.input.recv()).await.unwrap().is_none());
    let (client, mut driver) = World::pair().await;
    drop(client);
    assert!(timeout(SOON, driver.input.recv()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_message_over_twenty_mebibytes_is_closed_with_1009() {
    let (mut client, _driver) = World::pair().await;
    client.socket.send(Message::Text("x".repeat(20 * 1024 * 1024 + 1).into())).await.unwrap();
    assert_eq!(client.closed().await.0, 1009);
}

#[tokio::test]
async fn a_frame_that_claims_more_than_there_is_memory_is_dropped_at_once() {
    let mut world = World::new().await;
    let mut stream = tokio::net::TcpStream::connect(&world.address).await.unwrap();
    let ask = format!(
        "GET /v1/realtime HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        world.address
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut driver = world.driver().await;
    let mut head = vec![0; 1_024];
    let n = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..n]).to_lowercase();
    assert!(head.starts_with("http/1.1 101") && !head.contains("sec-websocket-extensions"), "{head}");
    // FIN and text, masked, a length of 2^62.
    stream.write_all(&[0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]).await.unwrap();
    assert!(timeout(SOON, driver.input.recv()).await.unwrap().is_none(), "the leg is let go");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let (mut client, mut driver) = World::pair().await;
    let flood = tokio::spawn(async move {
        driver.begin(1, "said", None).await;
        let sound = LegOutput::Audio { speech: SpeechId(1), samples: tone(24_000, 1_000), rate_hz: 24_000 };
        // Ten minutes of speech at once: far more than a socket and the door hold together.
        for _ in 0..600 {
            driver.say(sound.clone()).await;
            if driver.input.is_closed() {
                break;
            }
        }
        timeout(Duration::from_secs(10), driver.input.recv()).await.expect("the leg is let go").is_none()
    });
    // `say` panics once the other end is gone, which is what this waits for as well.
    let gone = timeout(Duration::from_secs(15), flood).await.unwrap();
    assert!(gone.is_err() || gone.unwrap());
    // What the socket still held may be read; then it ends.
    while let Ok(Some(Ok(_))) = timeout(SOON, client.socket.next()).await {}
}

#[tokio::test]
async fn a_conversation_that_takes_nothing_holds_the_client_up_and_loses_nothing() {
    let (mut client, mut driver) = World::pair().await;
    // 400 pieces: more than the leg's queue holds. The client is held up, not cut off.
    for _ in 0..400 {
        client.send(append(100)).await;
    }
    let mut pieces = 0;
    while pieces < 400 {
        assert!(matches!(driver.next().await, voxgate::session::leg::LegInput::Audio(_)));
        pieces += 1;
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn two_sockets_never_share_an_id() {
    let mut world = World::new().await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..2 {
        let mut client = world.connect("").await;
        let driver = world.driver().await;
        driver.turn_began(1).await;
        let created = client.expect("session.created").await;
        assert_eq!(created["session"]["id"], json!("conv_1"));
        let response = client.expect("response.created").await;
        assert!(ids.insert(created["event_id"].to_string()) && ids.insert(response["response"]["id"].to_string()));
    }
}
