//! WIRE LANGUAGES. Text in, text out: what is spoken with clients, providers and the session log.
//!
//! Pure: no I/O, no clock, no async. Engine nouns come in and go out; JSON shapes live here and nowhere deeper.

pub mod feral;
pub mod record;
