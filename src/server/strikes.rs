//! Wrong keys, counted by peer, so that guessing gets slow answers and the log stays readable. `auth` counts here; a
//! right key is never refused by it, so nobody can lock somebody else out.
#![allow(clippy::disallowed_methods, reason = "wrong keys are forgiven by the wall")]

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong keys of one peer within [`WINDOW`] that are still answered one by one (chosen: a person's typing errors fit).
pub const STRIKES_MAX: u32 = 10;
/// How long they are remembered.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Peers remembered at one time; the oldest is forgotten first.
pub const PEERS_MAX: usize = 1_024;

/// What a wrong key means for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Say that the key is wrong.
    Refuse,
    /// Say that there were too many, and how many seconds to wait.
    Wait(u32),
}

/// See the file's head.
#[derive(Default)]
pub struct Strikes {
    peers: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl Strikes {
    /// Counts a wrong key. Logs the first of a peer and the one that is too many, nothing between or after.
    pub fn wrong_key(&self, peer: IpAddr) -> Strike { self.wrong_key_at(peer, Instant::now()) }

    fn wrong_key_at(&self, peer: IpAddr, now: Instant) -> Strike {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if !peers.contains_key(&peer) && peers.len() >= PEERS_MAX {
            make_room(&mut peers, now);
        }
        let entry = peers.entry(peer).or_insert((now, 0));
        if now.duration_since(entry.0) >= WINDOW {
            *entry = (now, 0);
        }
        entry.1 = entry.1.saturating_add(1);
        match entry.1 {
            1 => tracing::warn!(%peer, "a wrong key was presented"),
            n if n == STRIKES_MAX + 1 => tracing::warn!(%peer, "too many wrong keys; further ones get 429 and no line here"),
            _ => {}
        }
        if entry.1 <= STRIKES_MAX {
            return Strike::Refuse;
        }
        let left = WINDOW.saturating_sub(now.duration_since(entry.0));
        Strike::Wait(u32::try_from(left.as_secs()).unwrap_or(60) + 1)
    }
}

fn make_room(peers: &mut HashMap<IpAddr, (Instant, u32)>, now: Instant) {
    peers.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
    if peers.len() >= PEERS_MAX && let Some(oldest) = peers.iter().min_by_key(|(_, (since, _))| *since).map(|(peer, _)| *peer) {
        peers.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_wait_and_are_forgotten() {
        let (strikes, start) = (Strikes::default(), Instant::now());
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        for _ in 0..STRIKES_MAX { assert_eq!(strikes.wrong_key_at(one, start), Strike::Refuse); }
        assert_eq!(strikes.wrong_key_at(one, start), Strike::Wait(61));
        assert_eq!(strikes.wrong_key_at(two, start), Strike::Refuse);
        assert_eq!(strikes.wrong_key_at(one, start + WINDOW), Strike::Refuse);
    }

    #[test]
    fn the_list_of_peers_is_bounded() {
        let strikes = Strikes::default();
        for n in 0..3_000u32 { strikes.wrong_key(IpAddr::from(n.to_be_bytes())); }
        assert!(strikes.peers.lock().unwrap().len() <= PEERS_MAX);
    }
}
