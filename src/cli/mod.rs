//! THE COMMANDS. (sign to come)

pub mod models;
