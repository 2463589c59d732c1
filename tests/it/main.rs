//! The one integration binary: real sockets, real components, whole conversations.
#![allow(clippy::disallowed_methods, reason = "tests look at the wall and are told by variables where programs are")]

mod bad_input;
mod barge_in;
mod browser;
mod by_hand;
mod card;
mod conversation;
mod doors;
mod eval_commands;
mod headset_and_chat;
mod hearing;
mod live;
mod pulse;
mod realtime_door;
mod refused_by_voice;
mod restart;
mod sdk_conversation;
mod secrets;
mod speech;
mod talking;
mod tidy;
mod tools;
mod utterances;
mod voice;
