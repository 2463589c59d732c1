//! WHAT THE AGENT MAY DO. Manifests say which tools there are, the catalogue lists them, the runner is the only way to run one.
//!
//! Session hands in a `Catalogue`, a gate and the folders; it asks `Catalogue::prepare` before the gate judges a call and
//! gives the permit to `ToolRunner::run`. Executors are private to this room and nothing here ever makes a permit.

mod arguments;
mod builtin;
mod catalogue;
mod client;
mod limits;
mod manifest;
mod reader;
mod runner;
mod wording;

pub use builtin::BuiltinContext;
pub use client::ClientTools;
pub use catalogue::{Catalogue, Described};
pub use limits::{OUTPUT_CHARS, OUTPUT_NODES, cap_output};
pub use reader::ManifestError;
pub use runner::{ToolRunner, refusal_outcome};
