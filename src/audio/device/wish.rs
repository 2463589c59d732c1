//! Which device should be open as things are now: the one that was named where it is there, else the system's default.
//!
//! Owns a connection to the sound system for asking. Called by the keeper a few times a second.

use super::{Kind, chosen, default_device, devices, host, id_of, is_pulse, name_of};
use cpal::Host;

/// What PulseAudio calls the ear that it keeps at a speaker: opened as a microphone it hears the voice itself.
const MONITOR: &str = ".monitor";
/// A system that is loud and slow to ask is asked at every tenth call only while nothing is open: every 3 s.
const SELDOM: u32 = 10;

/// See the file's head.
pub(super) struct Wish {
    kind: Kind,
    name: Option<String>,
    host: Option<Host>,
    /// Only where asking is cheap and quiet: PulseAudio answers in well under a millisecond; ALSA opens every card it can think of.
    asks: bool,
    /// A monitor was chosen by a person, so it is one that they want.
    monitors: bool,
    /// Calls that were not asked on.
    skipped: u32,
}

impl Wish {
    /// `first`: the id of what is open at the beginning.
    pub(super) fn new(kind: Kind, name: Option<&str>, first: &str) -> Self {
        let host = host();
        Self { kind, name: name.map(str::to_owned), asks: is_pulse(&host), host: Some(host), monitors: first.ends_with(MONITOR), skipped: 0 }
    }

    /// The id of the device that should be open; `on` is the one that is. `None` when there is none, or nobody to ask.
    pub(super) fn now(&mut self, on: Option<&str>) -> Option<String> {
        if let (false, Some(on)) = (self.asks, on) {
            self.skipped = 0;
            return Some(on.to_owned());
        }
        self.skipped += 1;
        if !self.asks && self.skipped % SELDOM != 1 {
            return None;
        }
        // A server that has gone leaves a dead connection behind; and nothing else is asked in its place.
        let host = match self.host.take() {
            Some(host) => host,
            None => Some(host()).filter(|host| !self.asks || is_pulse(host))?,
        };
        let found = self.among(&host);
        if found.is_some() { self.host = Some(host) }
        found
    }

    fn among(&self, host: &Host) -> Option<String> {
        if let Some(name) = &self.name {
            let all = devices(host, self.kind);
            let known: Vec<(String, String)> = all.iter().map(|d| (id_of(d), name_of(d))).collect();
            if let Ok(Some(at)) = chosen(&known, name) {
                return Some(known[at].0.clone());
            }
        }
        let id = default_device(host, self.kind).map(|d| id_of(&d))?;
        (self.monitors || !id.ends_with(MONITOR)).then_some(id)
    }
}
