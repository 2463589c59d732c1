//! A bad line on purpose: packets dropped, moved and doubled by a seed, so that the same line is bad in the same way every time.
//!
//! Owns the dice. Called on both directions of `talk --connect --impair`, because a TCP connection loses nothing by itself.

use std::str::FromStr;

/// How bad.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairment {
    /// Percent of packets that never come.
    pub loss: f64,
    /// Percent of packets that come one to three packets later.
    pub reorder: f64,
    /// Percent of packets that come twice.
    pub dup: f64,
    /// Which bad line.
    pub seed: u64,
}

impl FromStr for Impairment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut this = Self { seed: 1, ..Self::default() };
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not NAME=NUMBER"))?;
            let place = match name.trim() {
                "loss" => &mut this.loss,
                "reorder" => &mut this.reorder,
                "dup" => &mut this.dup,
                "seed" => {
                    this.seed = value.trim().parse().map_err(|_| format!("seed: \"{value}\" is no whole number"))?;
                    continue;
                }
                other => return Err(format!("\"{other}\" is none of loss, reorder, dup and seed")),
            };
            *place = value.trim().parse().ok().filter(|n| (0.0..=100.0).contains(n)).ok_or_else(|| format!("{name}: \"{value}\" is no percentage from 0 to 100"))?;
        }
        Ok(this)
    }
}

/// One direction of a bad line.
pub struct Impair<T> {
    how: Impairment,
    dice: u64,
    /// What is moved: how many packets pass it first, and it.
    held: Vec<(u32, T)>,
    /// What was done: dropped, moved, doubled.
    pub did: [u64; 3],
}

impl<T: Clone> Impair<T> {
    /// `direction` sets the two directions of a line apart.
    pub fn new(how: Impairment, direction: u64) -> Self { Self { how, dice: how.seed.wrapping_mul(2).wrapping_add(direction), held: Vec::new(), did: [0; 3] } }

    /// Puts a packet on the line; answers with what comes out of it now.
    pub fn push(&mut self, packet: T) -> Vec<T> {
        let mut out = Vec::new();
        let (lost, moved, twice) = (self.rolls(self.how.loss), self.rolls(self.how.reorder), self.rolls(self.how.dup));
        let passes = 1 + (self.next() % 3) as u32;
        for (did, what) in self.did.iter_mut().zip([lost, !lost && moved, !lost && twice]) { *did += u64::from(what) }
        if !lost && twice { out.push(packet.clone()) }
        if !lost && !moved { out.push(packet.clone()) }
        self.held.iter_mut().for_each(|(left, _)| *left = left.saturating_sub(1));
        let over: Vec<(u32, T)> = self.held.extract_if(.., |(left, _)| *left == 0).collect();
        out.extend(over.into_iter().map(|(_, packet)| packet));
        if !lost && moved { self.held.push((passes, packet)) }
        out
    }

    /// What is still on the line.
    pub fn flush(&mut self) -> Vec<T> { self.held.drain(..).map(|(_, packet)| packet).collect() }

    fn rolls(&mut self, percent: f64) -> bool { ((self.next() >> 11) as f64) < percent / 100.0 * (1u64 << 53) as f64 }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.dice ^ self.dice >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(how: &str, direction: u64) -> (Vec<u32>, [u64; 3]) {
        let mut line = Impair::new(how.parse().unwrap(), direction);
        let mut out: Vec<u32> = (0..10_000).flat_map(|n| line.push(n)).collect();
        out.extend(line.flush());
        (out, line.did)
    }

    #[test]
    fn a_line_is_as_bad_as_it_is_told_to_be() {
        let (out, did) = line("loss=5,reorder=1,dup=2", 0);
        assert!((400..600).contains(&did[0]) && (60..140).contains(&did[1]) && (140..260).contains(&did[2]), "{did:?}");
        let mut once = out.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len() as u64, 10_000 - did[0]);
        let furthest = out.iter().enumerate().map(|(at, n)| (*n as i64 - at as i64).abs()).max().unwrap();
        assert!(out.windows(2).any(|w| w[0] > w[1]) && furthest < 700);
        assert_eq!(line("", 0).0, (0..10_000).collect::<Vec<_>>());
        assert!(line("loss=100", 0).0.is_empty());
    }

    #[test]
    fn the_same_seed_is_the_same_line_and_directions_differ() {
        assert_eq!(line("loss=5,seed=3", 0), line("loss=5,seed=3", 0));
        assert_ne!(line("loss=5,seed=3", 0), line("loss=5,seed=3", 1));
        assert_ne!(line("loss=5,seed=3", 0), line("loss=5,seed=4", 0));
    }

    #[test]
    fn what_is_no_impairment_is_said() {
        for bad in ["loss", "loss=x", "loss=101", "loss=-1", "loss=NaN", "jitter=3", "seed=1.5"] { assert!(bad.parse::<Impairment>().is_err(), "{bad}") }
    }
}
