//! A client that sends exactly the bytes a test wants.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::fake::{OPERATOR, parsed};

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value { parsed(&self.body) }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// One request with these header lines; reads to the end of the connection.
pub async fn raw(address: SocketAddr, method: &str, path: &str, headers: &[String], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for header in headers { text += &format!("{header}\r\n") }
    if method == "POST" { text += &format!("content-length: {}\r\n", body.len()) }
    text += "\r\n";
    text += body;
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), read_answer(&mut stream, &mut bytes)).await.expect("an answer in time");
    let all = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Answer { status, head: head.into(), body: body.into() }
}

/// To the end of the answer: of its head where it is an upgrade, of its body where its length is told, else of the stream.
pub async fn read_answer(stream: &mut (impl tokio::io::AsyncRead + Unpin), bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = [0u8; 16 * 1024];
    loop {
        let n = stream.read(&mut buffer).await?;
        bytes.extend_from_slice(&buffer[..n]);
        if n == 0 || is_whole(bytes) { return Ok(()) }
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|text| text.parse::<usize>().ok());
    head.starts_with("http/1.1 101") || length.is_some_and(|length| bytes.len() >= end + 4 + length)
}

pub fn host(address: SocketAddr) -> String { format!("host: {address}") }
pub fn bearer(key: &str) -> String { format!("authorization: Bearer {key}") }

/// A request of the operator.
pub async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    raw(address, method, path, &[host(address), bearer(OPERATOR), "connection: close".into()], body).await
}

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a socket as a browser does.
pub async fn socket(address: SocketAddr, path: &str, protocol: &str, key: &str) -> (Socket, Response<Option<Vec<u8>>>) {
    let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
    let protocols = format!("{protocol}, openai-insecure-api-key.{key}");
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_str(&protocols).unwrap());
    tokio_tungstenite::connect_async(request).await.unwrap()
}

/// The operator's mirror of a conversation.
pub async fn mirror(address: SocketAddr, path: &str) -> Socket { socket(address, path, "voxgate.events", OPERATOR).await.0 }

/// The next text frame, parsed.
pub async fn next(socket: &mut Socket) -> Value {
    loop {
        match tokio::time::timeout(Duration::from_secs(10), socket.next()).await.expect("a frame in time") {
            Some(Ok(Message::Text(text))) => return parsed(&text),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            other => panic!("no frame but {other:?}"),
        }
    }
}

/// The next frame of this type.
pub async fn next_of(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let frame = next(socket).await;
        if frame["type"] == kind { return frame }
    }
}

pub async fn send(socket: &mut Socket, frame: &Value) { socket.send(Message::text(frame.to_string())).await.unwrap(); }

/// Reads to the close; its code, or 1006 where the connection just ended.
pub async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        match tokio::time::timeout(Duration::from_secs(20), socket.next()).await.expect("a close in time") {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return 1006,
        }
    }
}
