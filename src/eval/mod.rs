//! MEASURING: simulated rooms and persons, cases with known answers, and the figures that are published.
//!
//! Called by the commands `eval` and `bench` alone. Uses the product's own rooms as they are: whatever is measured here is what
//! runs. Decides nothing and is never on the way of a conversation.

pub mod cases;
pub mod clips;
#[cfg(feature = "voice")]
pub mod commands;
pub mod figures;
pub mod noise;
#[cfg(feature = "voice")]
mod piper;
#[cfg(feature = "voice")]
pub mod report;
#[cfg(feature = "voice")]
pub mod voices;
