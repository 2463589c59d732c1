//! OpenAI Realtime, GA shape: the server's side, client events in and server events out; and what a gateway in between sends on (`upstream`).
//!
//! Owns names, fields, limits and the effective session. Called by `server/realtime`. Never decides when an event is due
//! and never keeps a conversation: that is the door's part.

pub mod audio;
pub mod client;
pub mod error;
mod fields;
pub mod g711;
pub mod item;
pub mod peek;
pub mod response;
pub mod server;
pub mod session;
pub mod turns;
pub mod upstream;

#[cfg(test)]
mod tests;

/// Largest `audio` of one append or one `input_audio` part, in bytes of base64 text: 15 MiB, the limit the API states per event.
pub const AUDIO_MAX: usize = 15 * 1024 * 1024;
/// Longest text of one item, in characters (chosen: an hour of speech is about 50,000).
pub const TEXT_MAX: usize = 65_536;
/// Longest instructions, in characters (the limit published for this protocol).
pub const INSTRUCTIONS_MAX: usize = 16_384;
/// Most tools of a session (chosen).
pub const TOOLS_MAX: usize = 128;
/// Largest JSON of all tools together, in bytes (chosen, so that `session.updated` stays under 1 MiB).
pub const TOOLS_BYTES_MAX: usize = 256 * 1024;
/// Largest JSON of any other kept field, in bytes (chosen).
pub const KEPT_BYTES_MAX: usize = 32 * 1024;
/// Longest id a client may choose, in bytes (chosen: known clients use 17 to 36).
pub const ID_MAX: usize = 128;
