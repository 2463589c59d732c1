//! The one integration binary.
#![cfg(feature = "gateway")]

#[cfg(feature = "whisper")]
mod hearing;
