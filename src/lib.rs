//! voxgate: a realtime voice agent gateway with one gate in front of every tool.
//!
//! The rooms in the order of the flow. Each opens with its own sign; ARCHITECTURE.md has the map and the rules.
#![warn(missing_docs)]
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "unit tests look at the wall"))]

/// Sound as numbers: frames, resampling, levels, playout accounting, WAV bytes. Pure.
pub mod media;
/// Decisions: turn taking, mode, gate, plan, spoken grammar, consent, events. Pure.
pub mod engine;
/// Wire languages: text in, text out. Pure.
pub mod dialect;

/// Sound cards and sound files as devices.
#[cfg(feature = "gateway")]
pub mod audio;
/// Sound on the wire: Opus packets, Ogg files.
#[cfg(feature = "gateway")]
pub mod codec;
/// Hearing: voice activity, the ring of recent sound, cutting utterances.
#[cfg(feature = "gateway")]
pub mod listen;
/// Speech to text.
#[cfg(feature = "gateway")]
pub mod stt;
/// Text to speech.
#[cfg(feature = "gateway")]
pub mod tts;
/// Agents: language models and the built-in commander.
#[cfg(feature = "gateway")]
pub mod agent;
/// Providers of realtime speech: who they are and how a connection to one is made.
#[cfg(feature = "gateway")]
pub mod provider;
/// What an agent may do, and the only way to do it.
#[cfg(feature = "gateway")]
pub mod tools;
/// Weights: where they come from, how they are checked.
#[cfg(feature = "gateway")]
pub mod models;
/// What lasts: session logs, settings, the todo mirror.
#[cfg(feature = "gateway")]
pub mod store;
/// The loop that turns decisions into deeds and deeds into inputs.
#[cfg(feature = "gateway")]
pub mod session;
/// The front door: `/v1/realtime`, mirrors, REST, the page.
#[cfg(feature = "gateway")]
pub mod server;
/// Measuring: simulated rooms and persons, cases with known answers, published figures.
#[cfg(feature = "gateway")]
pub mod eval;
/// One tree of every room's settings.
#[cfg(feature = "gateway")]
pub mod config;
/// A string that will not print itself.
#[cfg(feature = "gateway")]
pub mod secret;
/// The commands, each a thin file.
#[cfg(feature = "gateway")]
pub mod cli;
