//! The one integration binary: real sockets, real components.

mod hearing;
mod voice;
//! The one integration binary.

mod tools;
#[cfg(feature = "gateway")]
mod realtime_door;
#[cfg(feature = "gateway")]
mod doors;
