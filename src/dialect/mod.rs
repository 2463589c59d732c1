//! WIRE LANGUAGES. Each dialect turns text into typed values and typed values into text, and says by name what is wrong with a text.
//!
//! Pure: no sockets, no clock, no runtime. Called by the doors and by agents; decides nothing about a conversation.

pub mod openai_realtime;
