//! Wrong keys, counted by address, so that guessing gets slow answers and the log stays readable. `auth` counts here; a
//! right key is never refused or slowed by it, so nobody can lock somebody else out.
//!
//! The first few are answered at once, each further one later than the last, and from the eleventh on with 429 and the time to wait,
//! which doubles each time it was not kept to. An address of IPv6 counts as its network of 64 bits: whoever has one has them all.
#![allow(clippy::disallowed_methods, reason = "wrong keys are forgiven by the wall")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong keys of one address within its time that are still answered one by one (chosen: a person's typing errors fit).
pub const STRIKES_MAX: u32 = 10;
/// How long they are remembered at first; it doubles up to sixteen times that.
pub const WINDOW: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 4;
/// Addresses remembered at one time; the oldest is forgotten first.
pub const PEERS_MAX: usize = 1_024;
/// Wrong keys that are answered at once, the first delay, and the longest: who guesses waits, who mistyped hardly notices.
const AT_ONCE: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// What a wrong key means for its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Say that the key is wrong, after so long.
    Refuse(Duration),
    /// Say that there were too many, and how many seconds to wait.
    Wait(u32),
}

#[derive(Clone, Copy)]
struct Record {
    since: Instant,
    strikes: u32,
    doublings: u32,
}

impl Record {
    fn window(&self) -> Duration { WINDOW * 2u32.pow(self.doublings) }
    fn is_over(&self, now: Instant) -> bool { now.duration_since(self.since) >= self.window() }
}

/// See the file's head.
#[derive(Default)]
pub struct Strikes {
    peers: Mutex<HashMap<IpAddr, Record>>,
}

impl Strikes {
    /// Counts a wrong key. Logs the first of an address and the one that is too many, nothing between or after.
    pub fn wrong_key(&self, peer: IpAddr) -> Strike { self.wrong_key_at(peer, Instant::now()) }

    fn wrong_key_at(&self, peer: IpAddr, now: Instant) -> Strike {
        let peer = counted_as(peer);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if !peers.contains_key(&peer) && peers.len() >= PEERS_MAX {
            make_room(&mut peers, now);
        }
        let record = peers.entry(peer).or_insert(Record { since: now, strikes: 0, doublings: 0 });
        if record.is_over(now) {
            let doublings = if record.strikes > STRIKES_MAX { (record.doublings + 1).min(DOUBLINGS_MAX) } else { 0 };
            *record = Record { since: now, strikes: 0, doublings };
        }
        record.strikes = record.strikes.saturating_add(1);
        match record.strikes {
            1 => tracing::warn!(%peer, "a wrong key was presented"),
            n if n == STRIKES_MAX + 1 => tracing::warn!(%peer, "too many wrong keys; further ones get 429 and no line here"),
            _ => {}
        }
        if record.strikes <= STRIKES_MAX {
            return Strike::Refuse(delay(record.strikes));
        }
        let left = record.window().saturating_sub(now.duration_since(record.since));
        Strike::Wait(u32::try_from(left.as_secs()).unwrap_or(60) + 1)
    }
}

fn delay(strikes: u32) -> Duration {
    match strikes.checked_sub(AT_ONCE + 1) {
        Some(n) => (FIRST_DELAY * 2u32.pow(n.min(10))).min(LONGEST_DELAY),
        None => Duration::ZERO,
    }
}

fn counted_as(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip => ip,
    }
}

fn make_room(peers: &mut HashMap<IpAddr, Record>, now: Instant) {
    peers.retain(|_, record| !record.is_over(now));
    if peers.len() >= PEERS_MAX && let Some(oldest) = peers.iter().min_by_key(|(_, record)| record.since).map(|(peer, _)| *peer) {
        peers.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_wait_longer_each_time_and_are_forgotten() {
        let (strikes, start) = (Strikes::default(), Instant::now());
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        let delays: Vec<u128> = (0..STRIKES_MAX).map(|_| match strikes.wrong_key_at(one, start) { Strike::Refuse(delay) => delay.as_millis(), Strike::Wait(_) => panic!("too early") }).collect();
        assert_eq!(delays, [0, 0, 0, 50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(strikes.wrong_key_at(one, start), Strike::Wait(61));
        assert_eq!(strikes.wrong_key_at(two, start), Strike::Refuse(Duration::ZERO));
        // It came again when it was let, and too often again: twice the time, and so on up to sixteen times.
        let (mut at, mut waits) = (start, Vec::new());
        for n in 0..6u32 {
            at += WINDOW * 2u32.pow(n.min(DOUBLINGS_MAX));
            assert_eq!(strikes.wrong_key_at(one, at), Strike::Refuse(Duration::ZERO));
            for _ in 1..STRIKES_MAX { strikes.wrong_key_at(one, at); }
            waits.push(strikes.wrong_key_at(one, at));
        }
        assert_eq!(waits, [121, 241, 481, 961, 961, 961].map(Strike::Wait));
        // A time in which it kept quiet forgives.
        at += WINDOW * 16;
        strikes.wrong_key_at(one, at);
        at += WINDOW * 16;
        for _ in 0..STRIKES_MAX { strikes.wrong_key_at(one, at); }
        assert_eq!(strikes.wrong_key_at(one, at), Strike::Wait(61));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_a_mapped_one_is_what_it_maps() {
        let of = |text: &str| counted_as(text.parse().unwrap()).to_string();
        assert_eq!([of("2001:db8:1:2:aaaa::1"), of("2001:db8:1:2::9"), of("2001:db8:1:3::9"), of("::ffff:10.0.0.1"), of("::1")], ["2001:db8:1:2::", "2001:db8:1:2::", "2001:db8:1:3::", "10.0.0.1", "::1"]);
    }

    #[test]
    fn the_list_of_peers_is_bounded() {
        let strikes = Strikes::default();
        for n in 0..3_000u32 { strikes.wrong_key(IpAddr::from(n.to_be_bytes())); }
        assert!(strikes.peers.lock().unwrap().len() <= PEERS_MAX);
    }
}
