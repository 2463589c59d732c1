//! Numbered frames put in order again: gaps are waited for a little and then told, doubles are dropped, what is late is counted.
//!
//! Owns the frames that wait and the counts. Called by the realtime door and `talk --connect`, which hand in the time. A frame that
//! is next leaves at once: only a gap costs time. Never reads a clock and never holds more than [`HELD_MAX`] frames.

use std::collections::BTreeMap;

/// How long a missing frame is waited for, in milliseconds. Chosen: reorder by a few frames is repaired, and speech does not wait longer.
pub const WAIT_MS: u64 = 80;
/// Most frames that wait behind a gap: more than [`WAIT_MS`] of the shortest frames bring in real time.
pub const HELD_MAX: usize = 64;
/// A number this far ahead of the next, or behind it, is another count and no gap: 2 s of 20 ms frames.
pub const JUMP: u64 = 100;

/// What became of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were handed in.
    pub received: u64,
    /// Frames that left in order.
    pub played: u64,
    /// Frames that were given up and told as lost.
    pub lost: u64,
    /// Frames that came after a later one and were still in time.
    pub reordered: u64,
    /// Frames that came twice.
    pub duplicates: u64,
    /// Frames that came after they had been given up.
    pub late: u64,
    /// Times the numbers began anew.
    pub jumps: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due<T> {
    /// The next frame.
    Frame(u64, T),
    /// This one never came. [`Jitter::following`] has the one after it, if that is here.
    Lost(u64),
}

/// See the file's head.
#[derive(Debug)]
pub struct Jitter<T> {
    next: Option<u64>,
    /// By number: when it came, and what it is.
    held: BTreeMap<u64, (u64, T)>,
    /// Which of the [`JUMP`] numbers before the next one were given up: bit 0 is the one right before it.
    given_up: u128,
    flushing: bool,
    counts: Counts,
}

impl<T> Jitter<T> {
    /// Nothing has come yet; the first number that comes is the first.
    pub fn new() -> Self { Self { next: None, held: BTreeMap::new(), given_up: 0, flushing: false, counts: Counts::default() } }

    /// Takes a frame that came at `now` (milliseconds of any clock that goes forward).
    pub fn push(&mut self, now: u64, number: u64, frame: T) {
        self.counts.received += 1;
        let next = *self.next.get_or_insert(number);
        if number.abs_diff(next) > JUMP {
            return self.begin_anew(now, number, frame);
        }
        if number < next {
            return self.came_after(next - number);
        }
        if self.held.contains_key(&number) {
            self.counts.duplicates += 1;
            return;
        }
        if self.held.last_key_value().is_some_and(|(last, _)| number < *last) {
            self.counts.reordered += 1;
        }
        self.held.insert(number, (now, frame));
    }

    /// A frame whose place is past: it was played before, or given up.
    fn came_after(&mut self, behind: u64) {
        let bit = 1u128 << (behind - 1).min(127);
        if self.given_up & bit == 0 {
            self.counts.duplicates += 1;
        } else {
            self.counts.late += 1;
            self.given_up &= !bit;
        }
    }

    /// The sender has begun to count anew. What waits belongs to before and is let go.
    fn begin_anew(&mut self, now: u64, number: u64, frame: T) {
        self.counts.jumps += 1;
        self.counts.lost += self.held.len() as u64;
        self.held.clear();
        self.given_up = 0;
        self.next = Some(number);
        self.held.insert(number, (now, frame));
    }

    /// The next thing that is due at `now`, if any: ask until there is none.
    pub fn pop(&mut self, now: u64) -> Option<Due<T>> {
        let next = self.next?;
        if self.held.is_empty() {
            self.flushing = false;
            return None;
        }
        if let Some((_, frame)) = self.held.remove(&next) {
            self.step(false);
            self.counts.played += 1;
            return Some(Due::Frame(next, frame));
        }
        if !self.flushing && self.held.len() < HELD_MAX && self.deadline().is_some_and(|at| now < at) {
            return None;
        }
        self.step(true);
        self.counts.lost += 1;
        Some(Due::Lost(next))
    }

    fn step(&mut self, given_up: bool) {
        self.next = self.next.map(|next| next.saturating_add(1));
        self.given_up = self.given_up << 1 | u128::from(given_up);
    }

    /// When [`Jitter::pop`] has something to give without another frame: a gap's time is over.
    pub fn deadline(&self) -> Option<u64> { self.held.values().map(|(at, _)| *at).min().map(|at| at.saturating_add(WAIT_MS)) }

    /// The frame that follows what [`Jitter::pop`] gave last, if it is here.
    pub fn following(&self) -> Option<&T> { self.next.and_then(|next| self.held.get(&next)).map(|(_, frame)| frame) }

    /// Nothing more comes for what waits: gaps are not waited for until everything that is here has left.
    pub fn flush(&mut self) { self.flushing = true }

    /// Forgets what waits. The count of numbers goes on.
    pub fn clear(&mut self) {
        if let Some((last, _)) = self.held.last_key_value() {
            self.next = Some(last.saturating_add(1));
        }
        self.held.clear();
        self.given_up = 0;
        self.flushing = false;
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize { self.held.len() }

    /// What became of the frames so far.
    pub fn counts(&self) -> Counts { self.counts }
}

impl<T> Default for Jitter<T> {
    fn default() -> Self { Self::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drained(jitter: &mut Jitter<u64>, now: u64) -> Vec<Due<u64>> { std::iter::from_fn(|| jitter.pop(now)).collect() }

    #[test]
    fn frames_in_order_never_wait() {
        let mut jitter = Jitter::new();
        for n in 7..107 {
            jitter.push(n * 20, n, n);
            assert_eq!(drained(&mut jitter, n * 20), [Due::Frame(n, n)]);
        }
        assert_eq!((jitter.counts().played, jitter.deadline()), (100, None));
    }

    #[test]
    fn what_changed_places_is_put_back() {
        let mut jitter = Jitter::new();
        for n in [0, 2, 3] { jitter.push(n * 20, n, n) }
        assert_eq!(drained(&mut jitter, 60), [Due::Frame(0, 0)]);
        jitter.push(70, 1, 1);
        assert_eq!(drained(&mut jitter, 70), [Due::Frame(1, 1), Due::Frame(2, 2), Due::Frame(3, 3)]);
        assert_eq!((jitter.counts().reordered, jitter.counts().lost), (1, 0));
    }

    #[test]
    fn a_gap_is_given_up_in_time_and_the_frame_after_it_is_at_hand() {
        let mut jitter = Jitter::new();
        jitter.push(0, 0, 0);
        jitter.push(60, 3, 3);
        assert_eq!(drained(&mut jitter, 60), [Due::Frame(0, 0)]);
        assert_eq!(jitter.deadline(), Some(60 + WAIT_MS));
        assert_eq!(jitter.pop(59 + WAIT_MS), None);
        assert_eq!((jitter.pop(60 + WAIT_MS), jitter.following()), (Some(Due::Lost(1)), None));
        assert_eq!((jitter.pop(60 + WAIT_MS), jitter.following()), (Some(Due::Lost(2)), Some(&3)));
        assert_eq!(jitter.pop(60 + WAIT_MS), Some(Due::Frame(3, 3)));
        // One comes late, one twice.
        jitter.push(200, 2, 2);
        jitter.push(200, 2, 2);
        jitter.push(200, 3, 3);
        let counts = jitter.counts();
        assert_eq!((counts.lost, counts.late, counts.duplicates, jitter.pop(300)), (2, 1, 2, None));
    }

    #[test]
    fn a_sender_that_counts_anew_is_followed() {
        let mut jitter = Jitter::new();
        for n in [5_000, 5_001, 0, 1, u64::MAX, 9_000] { jitter.push(0, n, n) }
        assert_eq!(drained(&mut jitter, 0), [Due::Frame(9_000, 9_000)]);
        assert_eq!(jitter.counts().jumps, 3);
    }

    #[test]
    fn flushed_frames_leave_and_gaps_are_told() {
        let mut jitter = Jitter::new();
        for n in [0, 2, 4] { jitter.push(0, n, n) }
        jitter.flush();
        assert_eq!(drained(&mut jitter, 0), [Due::Frame(0, 0), Due::Lost(1), Due::Frame(2, 2), Due::Lost(3), Due::Frame(4, 4)]);
        jitter.push(0, 6, 6);
        assert_eq!(jitter.pop(0), None);
        jitter.clear();
        jitter.push(0, 7, 7);
        assert_eq!(jitter.pop(0), Some(Due::Frame(7, 7)));
    }

    proptest! {
        /// Whatever comes in whatever order: numbers leave in steps of one but for jumps, nothing twice, memory stays bounded, and every
        /// frame is accounted for.
        #[test]
        fn order_and_account_hold(steps in prop::collection::vec((0u64..400, 0u64..60, 0u64..3), 0..400)) {
            let mut jitter = Jitter::new();
            let (mut now, mut last, mut played, mut lost) = (0, None::<u64>, 0, 0);
            for (number, gap, how) in steps {
                now += gap;
                let before = jitter.counts().jumps;
                jitter.push(now, number, number);
                if how == 0 { jitter.flush() }
                let jumped = jitter.counts().jumps > before;
                for (n, due) in drained(&mut jitter, now).into_iter().enumerate() {
                    let number = match due { Due::Frame(number, _) => { played += 1; number } Due::Lost(number) => { lost += 1; number } };
                    prop_assert!(jumped && n == 0 || last.is_none_or(|l| number == l + 1), "{last:?} then {number}");
                    last = Some(number);
                }
                prop_assert!(jitter.waiting() < HELD_MAX);
                prop_assert!(jitter.waiting() == 0 || jitter.deadline().is_some_and(|at| at > now && at <= now + WAIT_MS));
            }
            let c = jitter.counts();
            prop_assert_eq!(c.played, played);
            prop_assert!(c.lost >= lost);
            let let_go = c.lost - lost;
            prop_assert_eq!(c.received, c.played + c.duplicates + c.late + let_go + jitter.waiting() as u64);
        }

        /// A stream that loses, doubles and moves frames by at most three places comes out in order, with exactly the lost ones told.
        #[test]
        fn an_impaired_stream_is_mended(lost in prop::collection::btree_set(1u64..199, 0..30), moved in prop::collection::vec(0u64..4, 200), twice in prop::collection::btree_set(0u64..200, 0..30)) {
            let mut arrivals: Vec<(u64, u64)> = (0..200u64).filter(|n| !lost.contains(n)).flat_map(|n| {
                let at = if n == 0 { 0 } else { (n + moved[n as usize]) * 20 };
                std::iter::once((at, n)).chain(twice.contains(&n).then_some((at + 5, n)))
            }).collect();
            arrivals.sort();
            let mut jitter = Jitter::new();
            let mut out = Vec::new();
            for (at, n) in arrivals {
                jitter.push(at, n, n);
                out.extend(drained(&mut jitter, at));
            }
            jitter.flush();
            out.extend(drained(&mut jitter, 10_000));
            let frames: Vec<u64> = out.iter().filter_map(|d| if let Due::Frame(n, _) = d { Some(*n) } else { None }).collect();
            let told: Vec<u64> = out.iter().filter_map(|d| if let Due::Lost(n) = d { Some(*n) } else { None }).collect();
            prop_assert_eq!(frames, (0..200).filter(|n| !lost.contains(n)).collect::<Vec<_>>());
            prop_assert_eq!(told, lost.into_iter().filter(|n| *n < 199).collect::<Vec<_>>());
        }
    }
}
