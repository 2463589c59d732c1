//! WHAT LASTS. The folders of a home and who holds them, session logs, settings, keys, the mirrors of todo lists and plans.
//!
//! Plain blocking file work, called by `session`, `server` and the commands. The log is the fact; settings, todo mirror
//! and keys are small files written whole. It decides nothing: what a log means is `engine::snapshot`'s one fold.
//! It reads no clock and no environment: times and variables are handed in.

pub mod certificate;
mod files;
pub mod home;
pub mod ids;
pub mod keys;
pub mod log;
pub mod plan_mirror;
pub mod settings;
pub mod todo;
