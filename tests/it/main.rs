//! The one integration binary: real sockets, real components, whole conversations.

mod bad_input;
mod barge_in;
mod conversation;
mod doors;
mod hearing;
mod realtime_door;
mod refused_by_voice;
mod restart;
mod speech;
mod talking;
mod tools;
mod voice;
