//! The one integration binary: real sockets, real components, whole conversations.

mod barge_in;
mod conversation;
mod doors;
mod hearing;
mod realtime_door;
mod refused_by_voice;
mod speech;
mod talking;
mod tools;
mod voice;
