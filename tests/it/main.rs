//! The one integration binary.

#[cfg(feature = "gateway")]
mod realtime_door;
