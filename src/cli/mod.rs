//! THE COMMANDS. Each a thin file that reads its arguments, calls a room and prints for a person.

#[macro_use]
pub mod out;

pub mod bench;
pub mod config_check;
pub mod connect;
pub mod devices;
pub mod doctor;
pub mod keys;
pub mod link;
pub mod log;
pub mod eval;
pub mod meter;
pub mod models;
pub mod prompts;
pub mod secure;
pub mod serve;
pub mod sessions;
pub mod setup;
pub mod talk;
