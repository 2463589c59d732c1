//! THE LOOP. The driver owns a conversation's engine and is the only one that turns its outputs into deeds.
//!
//! `handle` and `leg` are what doors see, `registry` finds and opens conversations, `driver` runs one, `file` and `card` are the
//! devices of this machine, `ear` and `mouth` the ends of sound, `mirrors` everyone who watches, `clock` the only reader of time.

pub mod clock;
pub mod driver;
pub mod ear;
pub mod card;
pub mod file;
pub mod handle;
pub mod hub;
pub mod leg;
mod mirrors;
mod mouth;
pub mod parts;
pub mod registry;
