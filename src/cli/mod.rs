//! THE COMMANDS. (sign to come)

pub mod models;
//! THE COMMANDS. Each a thin file that reads its arguments, calls a room and prints for a person.

pub mod config_check;
pub mod sessions;
