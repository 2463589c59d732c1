//! DECISIONS. `session::Engine` is a plain value: inputs change it, outputs are drained until it answers with its next deadline.
//!
//! It reads no clock, opens nothing, awaits nothing and cannot fail. `session/driver` is its only caller at run time.

pub mod apart;
pub mod authority;
pub mod comment;
pub mod conversation;
pub mod diff;
pub mod event;
pub mod facts;
pub mod gate;
pub mod grammar;
pub mod guard;
pub mod heard;
pub mod id;
pub mod input;
pub mod intent;
pub mod junk;
pub mod language;
pub mod mode;
pub mod plan;
pub mod plan_file;
pub mod readback;
pub mod rules;
pub mod segment;
pub mod session;
pub mod sentence;
pub mod snapshot;
pub mod stage;
pub mod todo;
pub mod tool;
pub mod turn;
