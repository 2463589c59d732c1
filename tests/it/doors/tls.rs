//! The port with TLS: HTTPS and sockets from a real client, and everything that is no TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use voxgate::server::Limits;
use voxgate::server::tls::{Secure, settings};
use voxgate::store::{certificate, home::Home};

use super::fake::{CLIENT, OPERATOR, World, parsed};
use super::http::{Answer, ask, read_answer};

struct Locked {
    world: World,
    address: SocketAddr,
    certificate: String,
    _home: tempfile::TempDir,
}

impl Locked {
    async fn start() -> Locked {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        home.create().unwrap();
        let names = ["localhost", "127.0.0.1"].map(String::from).to_vec();
        let own = certificate::load_or_make(&home, &names, voxgate::session::clock::unix_ms() / 1_000).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let settings = settings(own.certificate.as_bytes(), own.key.expose().as_bytes()).unwrap();
        let secure = Secure { listener, settings, names, url: format!("https://localhost:{}", address.port()) };
        let world = World::with(|doors| {
            doors.secure = Some(secure);
            doors.limits = Limits { head_timeout: Duration::from_secs(1), ..doors.limits };
        }).await;
        Locked { world, address, certificate: own.certificate, _home: dir }
    }

    /// A client that trusts this certificate and no other.
    async fn connect(&self, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name.to_string()).unwrap(), stream).await
    }

    async fn request(&self, head: &str, body: &str) -> Answer {
        let mut stream = self.connect("localhost").await.unwrap();
        stream.write_all(format!("{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        read_answer(&mut stream, &mut bytes).await.unwrap();
        let all = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        Answer { status: head[9..12].parse().unwrap(), head: head.into(), body: body.into() }
    }
}

#[tokio::test]
async fn https_and_wss_by_the_certificates_names() {
    let locked = Locked::start().await;
    let port = locked.address.port();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let answer = locked.request(&format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\norigin: https://{host}"), "").await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.body);
    }
    let strange = locked.request(&format!("GET /healthz HTTP/1.1\r\nhost: evil.example:{port}"), "").await;
    assert!(strange.status == 403 && strange.body.contains("host_refused"), "{}", strange.body);
    let plain = locked.request(&format!("GET /healthz HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://localhost:{port}"), "").await;
    assert!(plain.status == 403 && plain.body.contains("origin_refused"), "{}", plain.body);

    for name in ["localhost", "127.0.0.1"] {
        let stream = locked.connect(name).await.unwrap();
        let mut request = format!("wss://{name}:{port}/v1/realtime?model=m").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", format!("realtime, openai-insecure-api-key.{CLIENT}").parse().unwrap());
        let (mut socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "realtime");
        use futures_util::{SinkExt, StreamExt};
        let Some(Ok(Message::Text(hello))) = socket.next().await else { panic!("no hello") };
        assert_eq!(parsed(&hello)["model"], "m");
        let large = "x".repeat(300_000);
        socket.send(Message::text(large.clone())).await.unwrap();
        let Some(Ok(Message::Text(echo))) = socket.next().await else { panic!("no echo") };
        assert_eq!(echo.as_str(), large);
        socket.close(None).await.unwrap();
    }
    assert!(locked.connect("gate.lan").await.is_err(), "a name the certificate is not for");
    locked.world.stop().await;
}

#[tokio::test]
async fn both_links_are_told_and_either_uses_the_code_up() {
    let locked = Locked::start().await;
    let made = ask(locked.world.address, "POST", "/api/link/new", "").await.json();
    let code = made["code"].as_str().unwrap();
    assert_eq!(made["secure_url"], format!("https://localhost:{}/#code={code}", locked.address.port()));
    assert_eq!(made["url"], format!("http://{}/#code={code}", locked.world.address));
    let host = format!("host: localhost:{}", locked.address.port());
    let traded = locked.request(&format!("POST /api/link HTTP/1.1\r\n{host}"), &format!("{{\"code\": \"{code}\"}}")).await;
    assert_eq!(traded.status, 200, "{}", traded.body);
    assert_eq!(ask(locked.world.address, "POST", "/api/link", &format!("{{\"code\": \"{code}\"}}")).await.status, 401);
    let there = locked.request(&format!("POST /api/link/new HTTP/1.1\r\n{host}\r\nauthorization: Bearer {OPERATOR}"), "").await.json();
    assert!(there["url"].as_str().unwrap().starts_with("https://localhost:"), "{there}");
    locked.world.stop().await;
}

#[tokio::test]
async fn plain_http_is_told_where_it_is_and_garbage_is_let_go() {
    let locked = Locked::start().await;
    let answer = super::http::raw(locked.address, "GET", "/healthz", &[super::http::host(locked.address)], "").await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("https://"), "{}", answer.body);
    let hello_and_nothing: &[u8] = &[0x16, 3, 1, 2, 0];
    for garbage in [&b"\0\0\0\0"[..], b"\xff\xfe\xfd", b"ssh-2.0-x\r\n", hello_and_nothing, &[0x16; 4096], &[0x16, 3, 1, 255, 255, 1, 2, 3], b""] {
        let mut stream = TcpStream::connect(locked.address).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        let mut rest = Vec::new();
        // Whatever comes is short: a TLS alert or nothing. A peer that says no more is let go in the time of a request's head.
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok() && rest.len() < 64, "{garbage:?}: {rest:?}");
    }
    // A plain client of the other port gets no TLS.
    let mut stream = TcpStream::connect(locked.world.address).await.unwrap();
    stream.write_all(&[0x16; 600]).await.unwrap();
    let mut rest = Vec::new();
    assert!(tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.is_ok());
    assert_eq!(locked.request(&format!("GET /healthz HTTP/1.1\r\nhost: localhost:{}", locked.address.port()), "").await.status, 200, "and it still serves");
    locked.world.stop().await;
}

#[tokio::test]
async fn half_handshakes_keep_nobody_out() {
    let locked = Locked::start().await;
    let mut silent = Vec::new();
    for _ in 0..80 {
        let mut stream = TcpStream::connect(locked.address).await.unwrap();
        stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
        silent.push(stream);
    }
    let host = format!("GET /healthz HTTP/1.1\r\nhost: localhost:{}", locked.address.port());
    assert!(locked.connect("localhost").await.is_ok(), "somebody else gets in at once");
    assert_eq!(locked.request(&host, "").await.status, 200);
    drop(silent);
    locked.world.stop().await;
}
