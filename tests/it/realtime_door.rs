//! `/v1/realtime` over a real socket, in front of a conversation that the test plays by hand.

mod asks;
mod bad_frames;
mod manners;
pub(crate) mod sdk;
mod turns;
mod world;
