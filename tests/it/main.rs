//! The one integration binary.

mod tools;
