//! A language model behind any OpenAI-compatible `/v1/chat/completions` server, local or not, streamed.
//!
//! Session makes one for all conversations; each response is one request, and dropping its future closes the connection, which
//! is how the server learns that nobody listens any more. The key goes to the configured address alone: redirects are not
//! followed, and it is never written anywhere. It keeps nothing of a conversation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::{Agent, AgentError, CallIds};
use crate::dialect::openai_chat::{Assembly, BadStream, error_in, request};
use crate::dialect::sse::SseReader;
use crate::engine::conversation::{AgentOutput, StepRequest};
use crate::secret::Secret;

/// Its name in the table.
pub const NAME: &str = "openai";

/// Longest body of an error or a model list, in bytes.
const BODY_BYTES: usize = 256 * 1024;
/// How long the end of the stream may take after the end of the response.
const AFTERWORD: Duration = Duration::from_secs(1);
/// How long the doctor waits for an answer.
const CHECK: Duration = Duration::from_secs(10);

/// Where the model is.
#[derive(Clone)]
pub struct Settings {
    /// Up to and with the version ("http://127.0.0.1:11434/v1").
    pub base_url: String,
    /// Name of the model, as the server knows it.
    pub model: String,
    /// Local servers need none.
    pub api_key: Option<String>,
    /// Plain http to another machine: off, because key and words would go in the open.
    pub allow_plain_http: bool,
    /// Time to connect.
    pub connect: Duration,
    /// Longest silence, before the first word and between two.
    pub idle: Duration,
}

impl Settings {
    /// A server and a model, without key, 5 s to connect, 60 s of silence.
    pub fn new(base_url: &str, model: &str) -> Settings {
        Settings {
            base_url: base_url.to_string(), model: model.to_string(), api_key: None, allow_plain_http: false,
            connect: Duration::from_secs(5), idle: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.api_key.is_some() { "set" } else { "none" };
        f.debug_struct("Settings").field("base_url", &shown(&self.base_url)).field("model", &self.model).field("api_key", &key).finish_non_exhaustive()
    }
}

/// See the file's head. Clones share one connection pool.
#[derive(Clone, Debug)]
pub struct OpenAi {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    base: Url,
    /// To take it out of what the server says.
    key: Option<Secret>,
    model: String,
    idle: Duration,
    ids: CallIds,
}

impl OpenAi {
    /// Checks the settings and makes the client; nothing is sent.
    ///
    /// # Errors
    /// [`AgentError::Config`] with a sentence about the setting that cannot work.
    pub fn new(settings: Settings) -> Result<OpenAi, AgentError> {
        let base = base_of(&settings)?;
        if settings.model.trim().is_empty() {
            return Err(AgentError::Config("no model is named".into()));
        }
        // One provider for the whole process; a second installation is refused and harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().connect_timeout(settings.connect).redirect(reqwest::redirect::Policy::none())
            .default_headers(headers(settings.api_key.as_deref())?);
        if is_loopback(&base) {
            // A proxy is for other machines.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|_| AgentError::Config("the HTTP client could not be made".into()))?;
        Ok(OpenAi { inner: Arc::new(Inner { client, base, key: settings.api_key.map(|k| k.trim().to_string()).filter(|k| !k.is_empty()).map(Secret::new), model: settings.model, idle: settings.idle, ids: CallIds::new() }) })
    }

    /// Calls the server and says in a sentence what it found, for the doctor and the first notice.
    ///
    /// # Errors
    /// [`AgentError`], whose text is that sentence then.
    pub async fn check(&self) -> Result<String, AgentError> {
        tokio::time::timeout(CHECK, self.inner.check()).await.unwrap_or(Err(AgentError::Silent(CHECK.as_secs())))
    }
}

impl Agent for OpenAi {
    fn name(&self) -> &str { NAME }

    fn step(&self, step: StepRequest, out: Sender<AgentOutput>) -> BoxFuture<'static, Result<(), AgentError>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.step(&step, &out).await })
    }
}

impl Inner {
    async fn step(&self, step: &StepRequest, out: &Sender<AgentOutput>) -> Result<(), AgentError> {
        let body = request(&self.model, step).to_string();
        let send = self.client.post(self.url("chat/completions")).header("content-type", "application/json").body(body).send();
        let response = self.patient(send).await?.map_err(|e| self.failed(&e))?;
        let response = self.accepted(response).await?;
        let Some(assembly) = self.read(response, out).await? else { return Ok(()) };
        if !assembly.is_finished() {
            return Err(AgentError::Cut);
        }
        for call in assembly.calls() {
            // Our own names: servers are known to give the same ones again in the next response.
            let output = AgentOutput::Call { id: self.ids.next(), tool: call.tool, arguments: call.arguments };
            if out.send(output).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Passes text on as it comes. `None` when nobody listens any more.
    async fn read(&self, response: Response, out: &Sender<AgentOutput>) -> Result<Option<Assembly>, AgentError> {
        let (mut stream, mut sse, mut assembly) = (response.bytes_stream(), SseReader::default(), Assembly::default());
        loop {
            let next = match assembly.is_finished() {
                // All is said; what may still come is a count of tokens and the end.
                true => tokio::time::timeout(AFTERWORD, stream.next()).await.unwrap_or(None),
                false => self.patient(stream.next()).await?,
            };
            let (events, ended) = match next {
                Some(Ok(chunk)) => (sse.push(&chunk).map_err(|_| AgentError::TooLong)?, false),
                Some(Err(_)) if !assembly.is_finished() => return Err(AgentError::Cut),
                Some(Err(_)) | None => (sse.finish().into_iter().collect(), true),
            };
            for data in events.iter().filter(|d| !d.trim().is_empty()) {
                let text = assembly.push(data).map_err(|e| self.bad_stream(e))?;
                if let Some(text) = text && out.send(AgentOutput::Text(text)).await.is_err() {
                    return Ok(None);
                }
            }
            if ended || (assembly.is_finished() && events.iter().any(|d| d.trim() == "[DONE]")) {
                return Ok(Some(assembly));
            }
        }
    }

    async fn accepted(&self, response: Response) -> Result<Response, AgentError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let message = self.body(response).await.ok().and_then(|b| error_in(&b)).unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason given").to_string());
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AgentError::Key,
            StatusCode::NOT_FOUND => AgentError::NotThere,
            StatusCode::TOO_MANY_REQUESTS => AgentError::Busy,
            other => AgentError::Refused { status: other.as_u16(), message: self.short(&message) },
        })
    }

    async fn body(&self, response: Response) -> Result<Value, AgentError> {
        let (mut stream, mut bytes) = (response.bytes_stream(), Vec::new());
        while let Some(chunk) = self.patient(stream.next()).await? {
            bytes.extend_from_slice(&chunk.map_err(|_| AgentError::Cut)?);
            if bytes.len() > BODY_BYTES {
                return Err(AgentError::TooLong);
            }
        }
        serde_json::from_slice(&bytes).map_err(|_| AgentError::BadReply("it is no JSON".into()))
    }

    async fn check(&self) -> Result<String, AgentError> {
        let response = self.client.get(self.url("models")).send().await.map_err(|e| self.failed(&e))?;
        let place = shown(self.base.as_str());
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            return Ok(format!("The language model's server at {place} answers; it does not list its models, so {} could not be checked.", self.model));
        }
        let list = self.accepted(response).await?;
        let list = self.body(list).await?;
        let ids: Vec<&str> = list["data"].as_array().into_iter().flatten().filter_map(|m| m["id"].as_str()).collect();
        if ids.contains(&self.model.as_str()) {
            return Ok(format!("The language model {} is there, at {place}.", self.model));
        }
        let some = ids.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        Ok(format!("The language model's server at {place} answers, but does not list {}; it lists {}.", self.model, if some.is_empty() { "none" } else { &some }))
    }

    /// Waits no longer than the idle time.
    async fn patient<T>(&self, what: impl Future<Output = T>) -> Result<T, AgentError> {
        tokio::time::timeout(self.idle, what).await.map_err(|_| AgentError::Silent(self.idle.as_secs()))
    }

    fn failed(&self, error: &reqwest::Error) -> AgentError {
        if error.is_connect() || error.is_timeout() { AgentError::Unreachable(shown(self.base.as_str())) } else { AgentError::Cut }
    }

    fn bad_stream(&self, error: BadStream) -> AgentError {
        match error {
            BadStream::TooLong => AgentError::TooLong,
            BadStream::Error(message) => AgentError::Refused { status: 200, message: self.short(&message) },
            BadStream::Malformed(why) => AgentError::BadReply(self.short(&why)),
        }
    }

    /// [`short`] without the key that was sent, whatever it looks like.
    fn short(&self, message: &str) -> String {
        match &self.key {
            Some(key) => short(&message.replace(key.expose(), "…")),
            None => short(message),
        }
    }

    fn url(&self, path: &str) -> String { format!("{}/{path}", self.base.as_str().trim_end_matches('/')) }
}

fn base_of(settings: &Settings) -> Result<Url, AgentError> {
    let bad = |why: &str| AgentError::Config(format!("base_url {} {why}", shown(&settings.base_url)));
    let base = Url::parse(settings.base_url.trim()).map_err(|_| bad("is no address; write one like http://127.0.0.1:11434/v1"))?;
    if !base.username().is_empty() || base.password().is_some() {
        return Err(bad("holds a name or password; use the key's own setting"));
    }
    match base.scheme() {
        "https" => Ok(base),
        "http" if settings.allow_plain_http || is_loopback(&base) => Ok(base),
        "http" => Err(bad("would send words and key in the open to another machine; use https, or allow plain http")),
        _ => Err(bad("is neither http nor https")),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn headers(key: Option<&str>) -> Result<HeaderMap, AgentError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key.map(str::trim).filter(|k| !k.is_empty()) {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| AgentError::Config("the key holds characters that no key holds".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// An address without what may be secret in it.
fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or("?"), url.port().map(|p| format!(":{p}")).unwrap_or_default()),
        Err(_) => "(not an address)".into(),
    }
}

/// One line of at most 200 characters. A server may repeat what it was sent, so nothing that looks like a key stays in it.
fn short(message: &str) -> String {
    let words = message.split_whitespace().map(|w| if w.contains("sk-") || w.len() > 60 { "…" } else { w });
    words.collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
