//! MEASURING: simulated rooms and persons, cases with known answers, and the figures that are published.
//!
//! Called by the commands `eval` and `bench` alone. Uses the product's own rooms as they are: whatever is measured here is what
//! runs. Decides nothing and is never on the way of a conversation.

pub mod echo;
pub mod figures;
pub mod kept_voice;
pub mod loudspeaker;
pub mod person;
pub mod room;
pub mod corpora;
pub mod listen;
pub mod noise;
pub mod recall;
pub mod tally;
pub mod words;
pub mod turns;
