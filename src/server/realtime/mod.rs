//! `/v1/realtime`: a socket that speaks the OpenAI Realtime GA dialect becomes a leg of a conversation.
//!
//! Owns the mapping between client events, leg inputs, leg outputs and server events, and the socket's manners (limits, pings,
//! close codes). Called by the routes once a socket is upgraded and authenticated. Decides nothing: turns, answers, commands and
//! questions are the conversation's.
//!
//! - `socket` carries frames in and out and is the only part that waits;
//! - `door` is the state of one socket; `asks` carries out client events, `tells` writes what the conversation says;
//! - `seam` translates for a client that speaks another dialect than GA;
//! - `proxy` is the other kind of session: a provider hears and answers, and the gateway stands between;
//! - `ear` turns appended sound into 16 kHz (`packets`: of Opus), `voice` a speech into deltas, `items` remembers what was named.

mod agreed;
mod asks;
mod door;
mod ear;
mod items;
mod packets;
mod proxy;
mod seam;
mod socket;
mod tells;
mod voice;

#[cfg(test)]
mod tests;

pub use agreed::agree;
pub use crate::dialect::openai_realtime::error::BadEvent;
pub use seam::Speaks;
pub use socket::{MESSAGE_MAX, limit, run};

/// What the address of the socket says.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct RealtimeQuery {
    /// The model, as clients insist on naming one. Echoed in the session.
    #[serde(default)]
    pub model: Option<String>,
    /// The conversation to join; none starts a new one. Read by the routes, which open it.
    #[serde(default)]
    pub conversation: Option<String>,
    /// The conversation begins in plan mode, or goes on in it.
    #[serde(default)]
    pub plan: bool,
    /// The session it begins with, in the shape of a `session.update`. Not the address's to say.
    #[serde(skip)]
    pub session: Option<serde_json::Value>,
    /// What the client speaks.
    #[serde(skip)]
    pub speaks: Speaks,
}
