//! The doors over real sockets on port 0, with conversations whose driver is a few lines.

mod ephemeral;
mod fake;
pub mod http;
mod mirror;
mod refusals;
mod rest;
mod tls;
mod weight;
