//! The one integration binary: real sockets, real components, whole conversations.

mod browser;
mod by_hand;
mod card;
mod doors;
mod headset_and_chat;
mod hearing;
mod live;
mod pulse;
mod realtime_door;
mod sdk_conversation;
mod secrets;
mod tools;
mod voice;
