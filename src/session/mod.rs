//! THE LOOP. The driver owns a conversation's engine and is the only one that turns its outputs into deeds.

pub mod handle;
pub mod leg;
pub mod registry;
