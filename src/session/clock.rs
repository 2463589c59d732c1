//! The conversation's clock: the wall for live devices, the microphone's sample count for files. The only place that reads the time.

#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::engine::id::Ms;

/// Unix milliseconds now.
pub fn unix_ms() -> u64 { SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64 }

/// Milliseconds since the conversation began.
#[derive(Debug)]
pub enum Clock {
    /// Runs by itself.
    Wall(Instant),
    /// Moves when the driver has fed a frame.
    Samples {
        /// Milliseconds fed so far.
        ms: Ms,
        /// When it began, for `--pace real`.
        began: Instant,
    },
}

impl Clock {
    /// A running clock.
    pub fn wall() -> Self { Clock::Wall(Instant::now()) }

    /// A clock that is moved by hand.
    pub fn samples() -> Self { Clock::Samples { ms: 0, began: Instant::now() } }

    /// Now.
    pub fn now(&self) -> Ms {
        match self {
            Clock::Wall(began) => began.elapsed().as_millis() as Ms,
            Clock::Samples { ms, .. } => *ms,
        }
    }

    /// Moves a clock of samples.
    pub fn advance(&mut self, by: Ms) {
        if let Clock::Samples { ms, .. } = self { *ms += by }
    }

    /// How far the wall is behind this clock: what `--pace real` waits. The time it stood still is not made up for.
    pub fn ahead(&mut self) -> Duration {
        let Clock::Samples { ms, began } = self else { return Duration::ZERO };
        let real = began.elapsed();
        let fed = Duration::from_millis(*ms);
        if real > fed + Duration::from_millis(40) {
            // It stood still; begin anew from here, so that it does not run to catch up.
            *began = Instant::now().checked_sub(fed).unwrap_or(*began);
        }
        fed.saturating_sub(real)
    }

    /// How long until engine time `at`.
    pub fn until(&self, at: Ms) -> Duration { Duration::from_millis(at.saturating_sub(self.now())) }
}

/// How long ago something was, on the wall.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self { Self(Instant::now()) }
    /// Since the start.
    pub fn elapsed(&self) -> Duration { self.0.elapsed() }
}
