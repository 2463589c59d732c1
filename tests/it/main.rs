//! The one integration binary.
#[cfg(feature = "gateway")]
mod doors;
