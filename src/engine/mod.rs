//! DECISIONS. (sign to come)
pub mod heard;
