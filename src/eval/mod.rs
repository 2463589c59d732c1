//! MEASURING: simulated rooms and persons, cases with known answers, and the figures that are published.
//!
//! Called by the commands `eval` and `bench` alone. Uses the product's own rooms as they are: whatever is measured here is what
//! runs. Decides nothing and is never on the way of a conversation.

pub mod beds;
pub mod cases;
pub mod clips;
#[cfg(feature = "voice")]
pub mod commands;
pub mod corpora;
pub mod echo;
pub mod figures;
pub mod kept_voice;
pub mod kills;
pub mod listen;
pub mod loudspeaker;
pub mod noise;
pub mod person;
#[cfg(feature = "voice")]
pub mod piper;
pub mod recall;
#[cfg(feature = "voice")]
pub mod report;
pub mod room;
pub mod tally;
pub mod text;
pub mod turns;
#[cfg(feature = "voice")]
pub mod voices;
pub mod words;
