//! The one integration binary: real sockets, real components.

mod hearing;
mod voice;
