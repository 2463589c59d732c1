//! THE COMMANDS. Each a thin file that reads its arguments, calls a room and prints for a person.

pub mod config_check;
pub mod eval;
pub mod models;
pub mod sessions;
