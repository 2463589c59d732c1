//! The one integration binary: real sockets, real components, whole conversations.
#![allow(clippy::disallowed_methods, reason = "tests look at the wall and are told by variables where programs are")]

mod barge_in;
mod conversation;
mod doors;
mod hearing;
mod realtime_door;
mod tidy;
mod refused_by_voice;
mod speech;
mod talking;
mod tools;
mod utterances;
mod voice;
