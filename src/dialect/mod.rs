//! WIRE LANGUAGES. Text in, text out: what is spoken with clients, providers and the session log.
//!
//! Pure: no I/O, no clock, no async. Engine nouns come in and go out; JSON shapes live here and nowhere deeper.

pub mod feral;
pub mod record;
//! (sign to come)

pub mod openai_chat;
pub mod sse;
//! WIRE LANGUAGES. Each dialect turns text into typed values and typed values into text, and says by name what is wrong with a text.
//!
//! Pure: no sockets, no clock, no runtime. Called by the doors and by agents; decides nothing about a conversation.

pub mod openai_realtime;
