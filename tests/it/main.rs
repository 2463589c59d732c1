//! The one integration binary: real sockets, real components, whole conversations.

mod doors;
mod hearing;
mod realtime_door;
mod tools;
mod utterances;
mod voice;
