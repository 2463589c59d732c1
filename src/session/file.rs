//! A file as microphone and a file as speaker: the same driver on the microphone's own clock.
//!
//! The clock is the microphone's sample count. It stands still while a recognition, a response or a synthesis is under way,
//! so that a slow machine stretches the wall time and never the conversation.

use std::time::Duration;

use super::clock::Clock;
use super::driver::Driver;
use crate::media::frame::{FRAME_MS, samples_in};

/// After the input, silence is heard at most this long.
const TAIL_MS: u64 = 60_000;
/// Silence after everything has ended, so that the last words are not cut off.
const COAST_MS: u64 = 200;

/// How fast a file's clock may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Never ahead of the wall.
    Real,
    /// As fast as the machine can.
    Fast,
}

/// What a conversation with files is run with.
#[derive(Clone, Copy, Debug)]
pub struct FileRun {
    /// See [`Pace`].
    pub pace: Pace,
    /// False: the clock never stands still (latency figures).
    pub stand_still: bool,
}

/// Sound in and out of a conversation held with files.
pub trait FileDevice: Send {
    /// Rate of both.
    fn rate_hz(&self) -> u32;
    /// The microphone may hear the speaker (a simulated room): the echo canceller is put between them. Two files never do.
    fn echoes(&self) -> bool { false }
    /// Microphone samples from `from` to `to`; fewer at the end, none after it. What it answers may depend on all that the
    /// speaker got before.
    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16>;
    /// Length of the microphone's sound in samples. It may end earlier than it said before.
    fn length(&self) -> u64;
    /// Speaker samples, in step with the microphone.
    ///
    /// # Errors
    /// A sentence about what could not be written.
    fn speaker(&mut self, samples: &[i16]) -> Result<(), String>;
}

impl Driver {
    /// Holds the conversation until the file is used up and everything has ended.
    ///
    /// # Errors
    /// What went wrong on the way, as a sentence.
    pub async fn run_file(mut self, device: &mut dyn FileDevice, run: FileRun) -> Result<(), String> {
        self.clock = Clock::samples();
        let rate = device.rate_hz();
        self.attach_device("a file", rate, rate, device.echoes());
        let mut quiet_ms = 0;
        let mut speaker = Vec::new();
        loop {
            tokio::task::yield_now().await;
            self.take_ready();
            if self.is_closing() {
                break;
            }
            if run.stand_still && self.holds_clock() {
                self.wait(Duration::from_millis(50)).await;
                continue;
            }
            if run.pace == Pace::Real {
                let ahead = self.clock.ahead();
                if ahead > Duration::from_millis(1) {
                    self.wait(ahead).await;
                    continue;
                }
            }
            let now = self.clock.now();
            let (from, to) = (samples_in(now, rate), samples_in(now + FRAME_MS, rate));
            let over = from >= device.length();
            if over {
                let busy = self.engine.is_busy() || self.holds_clock() || !self.mouth.is_silent();
                quiet_ms = if busy { 0 } else { quiet_ms + FRAME_MS };
                let tail = now.saturating_sub(device.length() * 1000 / u64::from(rate));
                if quiet_ms > COAST_MS || tail >= TAIL_MS {
                    break;
                }
            }
            let mut sound = device.microphone(from, to);
            sound.resize((to - from) as usize, 0);
            speaker.clear();
            self.mouth.pull(sound.len(), &mut speaker);
            device.speaker(&speaker)?;
            self.sound_out(&speaker, rate);
            self.clock.advance(FRAME_MS);
            self.sound_in(&sound);
            self.input(crate::engine::input::Input::Tick);
            self.take_ready();
            self.settle_mouth();
        }
        self.input(crate::engine::input::Input::End { reason: "the microphone's file has ended".into() });
        self.finish().await;
        match self.failed.take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}
