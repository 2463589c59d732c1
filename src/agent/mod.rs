//! AGENTS. What answers a person: a language model, or the built-in commander that needs none.
//!
//! Session gives an agent everything it may know in one `StepRequest` and reads what it says and wants from a channel. An
//! agent runs no tool, decides nothing about modes, and holds no state of the conversation. A new kind is a new file and a
//! row in `KINDS`.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::Sender;

use crate::engine::conversation::{AgentOutput, StepRequest};

pub mod commander;
pub mod openai;
pub mod scripted;
mod wording;

/// The kinds there are: name and what it is.
pub const KINDS: &[(&str, &str)] = &[
    (commander::NAME, "sentences choose the tool, answers are made from results; needs no model and no network"),
    (openai::NAME, "any OpenAI-compatible /v1/chat/completions server, local or not"),
    (scripted::NAME, "says and calls what a script holds; for tests and for showing a fault again"),
];

/// One thing that answers.
pub trait Agent: Send + Sync {
    /// Its kind, as in [`KINDS`].
    fn name(&self) -> &str;

    /// One response to what `request` ends with. Text and calls go to `out` as they come, in order; the future ends when the
    /// response has. Dropping it cancels the response. A receiver that has gone ends it without an error.
    fn step(&self, request: StepRequest, out: Sender<AgentOutput>) -> BoxFuture<'static, Result<(), AgentError>>;
}

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The operator's settings.
    Operator,
    /// The network or the machine between.
    Network,
    /// The model's server.
    Upstream,
}

/// Why a response did not come to its end. What was sent before stays said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The settings cannot work.
    #[error("The language model is not set up right: {0}.")]
    Config(String),
    /// Nothing answers at the address.
    #[error("The language model at {0} cannot be reached.")]
    Unreachable(String),
    /// The server did not take the key.
    #[error("The language model's server refuses the key.")]
    Key,
    /// The server does not know the model or the path.
    #[error("The language model's server does not know this model or address.")]
    NotThere,
    /// Too many requests, or the account is used up.
    #[error("The language model's server asks to wait.")]
    Busy,
    /// Any other refusal.
    #[error("The language model's server answered with an error ({status}): {message}")]
    Refused {
        /// HTTP status, or 200 when the error came in the stream.
        status: u16,
        /// Its words, at most 200 characters.
        message: String,
    },
    /// Nothing came for too long.
    #[error("The language model has said nothing for {0} seconds.")]
    Silent(u64),
    /// The stream broke off.
    #[error("The language model's answer broke off.")]
    Cut,
    /// What came is not the protocol.
    #[error("The language model's answer could not be read: {0}.")]
    BadReply(String),
    /// More came than is taken.
    #[error("The language model's answer is too long.")]
    TooLong,
}

impl AgentError {
    /// Who is to blame.
    pub fn party(&self) -> Party {
        match self {
            AgentError::Config(_) | AgentError::Key | AgentError::NotThere => Party::Operator,
            AgentError::Unreachable(_) | AgentError::Cut => Party::Network,
            _ => Party::Upstream,
        }
    }

    /// Whether the same request may do better in a while.
    pub fn retry(&self) -> bool {
        match self {
            AgentError::Refused { status, .. } => *status >= 500,
            AgentError::Unreachable(_) | AgentError::Busy | AgentError::Silent(_) | AgentError::Cut => true,
            _ => false,
        }
    }

    /// Stable code for notices and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::Config(_) => "agent_config", AgentError::Unreachable(_) => "agent_unreachable", AgentError::Key => "agent_key",
            AgentError::NotThere => "agent_not_there", AgentError::Busy => "agent_busy", AgentError::Refused { .. } => "agent_refused",
            AgentError::Silent(_) => "agent_silent", AgentError::Cut => "agent_cut", AgentError::BadReply(_) => "agent_bad_reply",
            AgentError::TooLong => "agent_too_long",
        }
    }
}

/// Names for calls that no other run of the gateway gives, so that a restored history and a new response never share one.
#[derive(Debug)]
struct CallIds {
    prefix: String,
    next: std::sync::atomic::AtomicU64,
}

impl CallIds {
    fn new() -> CallIds { CallIds { prefix: ulid::Ulid::generate().to_string().to_lowercase(), next: Default::default() } }

    fn next(&self) -> crate::engine::id::CallId {
        let n = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        crate::engine::id::CallId(format!("call_{}_{n}", self.prefix))
    }
}
