//! When a device is opened, opened again, or another one in its place: the decision alone.
//!
//! Owns what is open, what failed and how long to wait. Called by [`super::keeper`] every [`TICK_MS`]. Pure: it is told what
//! should be open and what happened, and counts ticks instead of reading a clock.

/// Milliseconds between two ticks.
pub const TICK_MS: u64 = 100;
/// A stream that lived this long was a good one: what fails after that is a new failure. 5 s.
const GOOD_TICKS: u32 = 50;
/// Longest wait between two tries: 5 s.
const WAIT_MAX: u32 = 50;

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// This device is to be opened; the stream that is open, if one is, stays until then.
    Open(String),
    /// Nothing is open and there is nothing to open. Said once until something was open again.
    Gone,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Keeping {
    on: Option<String>,
    /// What was last tried.
    tried: Option<String>,
    /// Tries in a row that came to nothing.
    failures: u32,
    /// Ticks until the next try.
    wait: u32,
    /// Ticks since the stream was opened.
    age: u32,
    gone: bool,
}

impl Keeping {
    /// This device is open.
    pub fn new(on: &str) -> Self {
        Self { on: Some(on.to_owned()), tried: None, failures: 0, wait: 0, age: 0, gone: false }
    }

    /// Time passes; `wanted` is what should be open as things are now (`None`: nothing can be).
    pub fn tick(&mut self, wanted: Option<&str>) -> Deed {
        self.wait = self.wait.saturating_sub(1);
        self.age = self.age.saturating_add(u32::from(self.on.is_some()));
        let Some(wanted) = wanted else {
            if self.on.is_some() || self.gone { return Deed::Nothing }
            self.gone = true;
            return Deed::Gone;
        };
        if self.on.as_deref() == Some(wanted) {
            return Deed::Nothing;
        }
        // Another device than the one that failed is tried at once.
        let new = self.tried.as_deref() != Some(wanted);
        if self.wait > 0 && !new {
            return Deed::Nothing;
        }
        self.failures = if new { 0 } else { self.failures };
        self.tried = Some(wanted.to_owned());
        Deed::Open(wanted.to_owned())
    }

    /// It is open.
    pub fn opened(&mut self, id: &str) {
        (self.on, self.age, self.gone) = (Some(id.to_owned()), 0, false);
    }

    /// It did not open.
    pub fn failed(&mut self) {
        self.back_off();
    }

    /// The open stream broke, or gave nothing for a second. The first time it is opened again at once.
    pub fn lost(&mut self) {
        let Some(was) = self.on.take() else { return };
        if self.age >= GOOD_TICKS {
            (self.failures, self.wait, self.tried) = (0, 0, None);
        } else {
            self.tried = Some(was);
            self.back_off();
        }
    }

    fn back_off(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.wait = (1u32 << self.failures.min(8)).min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: &str) -> Deed { Deed::Open(id.into()) }

    /// Ticks with this wish until something is to be done; how many.
    fn until_deed(keeping: &mut Keeping, wanted: Option<&str>, most: u32) -> (u32, Deed) {
        (1..=most).map(|n| (n, keeping.tick(wanted))).find(|(_, d)| *d != Deed::Nothing).unwrap_or((most, Deed::Nothing))
    }

    #[test]
    fn a_lost_device_is_replaced_at_once_and_taken_again_when_it_returns() {
        let mut keeping = Keeping::new("headset");
        for round in 0..100 {
            assert_eq!(until_deed(&mut keeping, Some("headset"), 60), (60, Deed::Nothing));
            keeping.lost();
            let (ticks, deed) = until_deed(&mut keeping, Some("built-in"), 10);
            assert_eq!((ticks, deed), (1, open("built-in")), "round {round}");
            keeping.opened("built-in");
            assert_eq!(until_deed(&mut keeping, Some("built-in"), 60), (60, Deed::Nothing));
            assert_eq!(until_deed(&mut keeping, Some("headset"), 10), (1, open("headset")), "round {round}");
            keeping.opened("headset");
        }
    }

    #[test]
    fn one_that_does_not_open_is_tried_ever_more_seldom() {
        let mut keeping = Keeping::new("a");
        until_deed(&mut keeping, Some("a"), 60);
        keeping.lost();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let (ticks, deed) = until_deed(&mut keeping, Some("a"), 100);
            assert_eq!(deed, open("a"));
            keeping.failed();
            waits.push(ticks);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 50, 50, 50, 50, 50, 50]);
        // What is new is tried at once all the same.
        assert_eq!(until_deed(&mut keeping, Some("b"), 100), (1, open("b")));
    }

    #[test]
    fn one_that_breaks_as_soon_as_it_is_open_is_no_tight_loop() {
        let mut keeping = Keeping::new("a");
        let opens = (0..600).filter(|_| {
            let opens = keeping.tick(Some("a")) != Deed::Nothing;
            if opens { keeping.opened("a") }
            keeping.lost();
            opens
        }).count();
        assert!((10..25).contains(&opens), "{opens} in a minute");
    }

    #[test]
    fn a_stream_that_lives_is_kept_while_the_next_is_opened_or_nothing_can_be_asked() {
        let mut keeping = Keeping::new("a");
        assert_eq!(until_deed(&mut keeping, None, 60), (60, Deed::Nothing));
        assert_eq!(keeping.tick(Some("b")), open("b"));
        keeping.failed();
        assert_eq!(keeping.tick(Some("a")), Deed::Nothing, "the old one still plays");
        keeping.lost();
        assert_eq!(until_deed(&mut keeping, None, 9), (1, Deed::Gone));
        assert_eq!(until_deed(&mut keeping, None, 60), (60, Deed::Nothing), "said once");
        assert_eq!(keeping.tick(Some("a")), open("a"));
    }
}
