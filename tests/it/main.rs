//! The one integration binary.

mod voice;
