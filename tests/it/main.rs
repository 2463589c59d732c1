//! The one integration binary: real sockets, real components, whole conversations.
#![allow(clippy::disallowed_methods, reason = "tests look at the wall and are told by variables where programs are")]

mod bad_input;
mod barge_in;
mod browser;
mod by_hand;
mod card;
mod card_seven;
mod connect;
mod conversation;
mod devices_gone;
mod doors;
mod ears;
mod eval_listen;
mod fuzz_sound;
mod fuzz;
mod eval_commands;
mod headset_and_chat;
mod hearing;
mod ledger;
mod live;
mod loudspeaker;
mod memory;
mod pulse;
mod realtime_door;
mod refused_by_voice;
mod restart;
mod sdk_conversation;
mod secrets;
mod sound_bad;
mod speech;
mod talking;
mod tidy;
mod tools;
mod utterances;
mod voice;
mod wordings;
