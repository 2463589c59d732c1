//! PROVIDERS OF REALTIME SPEECH: services that hear and speak themselves, behind a socket. Who they are, where, and how a connection to
//! one is made.
//!
//! A kind says how its address and its key are written (`KINDS`, one file and one row each); what is spoken on the socket is a dialect,
//! what goes through it is the door's. Called by `server/realtime`. Keeps no conversation and no socket.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, error::UrlError};

use crate::secret::Secret;

mod azure;
mod gemini;
mod openai;
mod vertex;
mod xai;

/// The kinds there are.
pub const KINDS: &[Kind] = &[openai::KIND, azure::KIND, xai::KIND, gemini::KIND, vertex::KIND];

/// Until a connection must stand.
const CONNECT: Duration = Duration::from_secs(10);
/// Largest message of a provider: an item with its sound can have many megabytes.
const MESSAGE_MAX: usize = 32 * 1024 * 1024;
/// Read buffer of a socket, in bytes.
const READ_BUFFER: usize = 8 * 1024;

/// What a provider can do, so that nothing is assumed of one that cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A response can be cancelled.
    pub cancels: bool,
    /// What of an answer was not heard can be cut out of its memory.
    pub truncates: bool,
    /// Items can be put in and taken out.
    pub edits: bool,
    /// It can be told not to answer by itself when a turn ends.
    pub lets_go_of_turns: bool,
    /// A session's longest life in minutes; 0: not known.
    pub session_minutes: u32,
}

/// What is spoken on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI Realtime (GA), and what is near it.
    OpenAiRealtime,
    /// Gemini Live (BidiGenerateContent).
    GeminiLive,
}

/// One kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in settings.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where it is, unless settings say something else; empty: they must.
    pub url: &'static str,
    /// What it speaks.
    pub dialect: Dialect,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Path and query under the root of its API.
    path: fn(model: &str) -> String,
    /// The header that carries the key.
    key: fn(key: &str) -> (&'static str, String),
    /// The session object as this provider wants it, from GA's.
    pub session: fn(serde_json::Value) -> serde_json::Value,
}

/// One provider as it is set up.
#[derive(Clone, Debug)]
pub struct Provider {
    /// What clients call it (`?model=`).
    pub name: String,
    /// Its kind.
    pub kind: &'static Kind,
    /// Root of its API (`https://…/v1`, `ws://127.0.0.1:9140/v1`).
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// Its key.
    pub key: Option<Secret>,
    /// What is said to it is heard by the gateway as well.
    pub listens: bool,
}

/// The kind of this name.
pub fn kind(name: &str) -> Option<&'static Kind> { KINDS.iter().find(|kind| kind.name == name) }

/// Why there is no connection. Texts are for people; no key is ever in one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The settings cannot work.
    #[error("the provider is not set up right: {0}")]
    Settings(String),
    /// Nothing answers.
    #[error("the provider at {0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// It does not take the key.
    #[error("the provider refuses the key (HTTP {0})")]
    Key(u16),
    /// It has had too many requests, or the account is used up.
    #[error("the provider has had too many requests (HTTP 429)")]
    Busy,
    /// It said something else.
    #[error("the provider refused the connection (HTTP {0})")]
    Refused(u16),
    /// It took too long.
    #[error("the provider did not answer within {0} seconds")]
    Late(u64),
}

impl ConnectError {
    /// Trying again can help.
    pub fn retry(&self) -> bool {
        match self {
            Self::Settings(_) | Self::Key(_) => false,
            Self::Refused(status) => *status >= 500,
            Self::Unreachable(..) | Self::Busy | Self::Late(_) => true,
        }
    }
}

/// Bytes in both directions, plain or encrypted.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// An open connection.
pub type Socket = WebSocketStream<Box<dyn Io>>;

impl Provider {
    /// Opens a connection.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self) -> Result<Socket, ConnectError> {
        tokio::time::timeout(CONNECT, self.open()).await.unwrap_or(Err(ConnectError::Late(CONNECT.as_secs())))
    }

    /// The request that opens it: address, key and nothing else that would name a client.
    fn request(&self) -> Result<Request, ConnectError> {
        let bad = |why: String| ConnectError::Settings(why);
        let root = self.url.trim_end_matches('/');
        let root = root.strip_prefix("http").map_or_else(|| root.to_string(), |rest| format!("ws{rest}"));
        let mut request = format!("{root}{}", (self.kind.path)(&self.model)).into_client_request().map_err(|e| bad(format!("{root} is no address ({e})")))?;
        if let Some(key) = &self.key {
            let (name, value) = (self.kind.key)(key.expose());
            let mut value = HeaderValue::from_str(&value).map_err(|_| bad("its key holds characters that no header can carry".into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    async fn open(&self) -> Result<Socket, ConnectError> {
        let request = self.request()?;
        let uri = request.uri().clone();
        let tls = uri.scheme_str() == Some("wss");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let unreachable = |why: String| ConnectError::Unreachable(host.clone(), why);
        let plain = TcpStream::connect((host.as_str(), port)).await.map_err(|e| unreachable(e.to_string()))?;
        let _ = plain.set_nodelay(true);
        let stream: Box<dyn Io> = if tls { encrypted(plain, &host).await.map_err(unreachable)? } else { Box::new(plain) };
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX)).read_buffer_size(READ_BUFFER).write_buffer_size(0);
        match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(WsError::Http(answer)) => Err(match answer.status() {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ConnectError::Key(answer.status().as_u16()),
                StatusCode::TOO_MANY_REQUESTS => ConnectError::Busy,
                status => ConnectError::Refused(status.as_u16()),
            }),
            Err(WsError::Url(UrlError::UnsupportedUrlScheme)) => Err(ConnectError::Settings(format!("{} begins with neither http nor ws", self.url))),
            Err(error) => Err(unreachable(error.to_string())),
        }
    }
}

/// The certificates of this machine decide whom to believe.
async fn encrypted(stream: TcpStream, host: &str) -> Result<Box<dyn Io>, String> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().and_then(|b| b.with_platform_verifier()).map_err(|e| e.to_string())?.with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(host.to_string()).map_err(|e| e.to_string())?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    connector.connect(name, stream).await.map(|s| Box::new(s) as Box<dyn Io>).map_err(|e| e.to_string())
}

/// A model's name in a query.
fn in_query(text: &str) -> String {
    text.bytes().map(|b| if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The session object as it is.
fn as_it_is(session: serde_json::Value) -> serde_json::Value { session }

fn bearer(key: &str) -> (&'static str, String) { ("authorization", format!("Bearer {key}")) }

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(kind_name: &str, url: &str) -> Provider {
        Provider { name: "voice".into(), kind: kind(kind_name).unwrap(), url: url.into(), model: "model one".into(), key: Some(Secret::new("sk-secret")), listens: true }
    }

    #[test]
    fn each_kind_writes_its_address_and_its_key() {
        let request = provider("openai", "https://example.org/v1/").request().unwrap();
        assert_eq!(request.uri(), "wss://example.org/v1/realtime?model=model%20one");
        assert_eq!(request.headers()["authorization"], "Bearer sk-secret");
        assert!(request.headers().get("openai-beta").is_none());
        let request = provider("azure", "https://one.openai.azure.com/openai/v1").request().unwrap();
        assert_eq!((request.uri().path(), request.headers()["api-key"].as_bytes()), ("/openai/v1/realtime", &b"sk-secret"[..]));
        assert!(request.headers().get("authorization").is_none());
        let request = provider("xai", "ws://127.0.0.1:1/v1").request().unwrap();
        assert_eq!(request.uri(), "ws://127.0.0.1:1/v1/realtime?model=model%20one");
        assert!(!format!("{request:?}").contains("sk-secret"));
    }

    #[tokio::test]
    async fn nobody_there_is_said_without_the_key() {
        let error = provider("openai", "http://127.0.0.1:1/v1").connect().await.err().unwrap();
        assert!(error.retry() && !error.to_string().contains("sk-secret"), "{error}");
        assert!(matches!(provider("openai", "not an address").connect().await, Err(ConnectError::Settings(_))));
    }
}
