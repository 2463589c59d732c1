//! WIRE LANGUAGES. Each dialect turns text into typed values and typed values into text, and says by name what is wrong with a text.
//!
//! Pure: no I/O, no clock, no async. Engine nouns come in and go out; JSON shapes live here and nowhere deeper.

pub mod feral;
pub mod gemini_live;
pub mod openai_beta;
pub mod openai_chat;
pub mod openai_realtime;
pub mod record;
pub mod sse;
