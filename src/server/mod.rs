//! THE FRONT DOOR.

pub mod realtime;
