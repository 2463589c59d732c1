//! (sign to come)

pub mod openai_chat;
pub mod sse;
