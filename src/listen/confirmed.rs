//! The detector of two opinions: earshot keeps watch at hardly any cost and wakes the network, whose word then counts.
//!
//! Owns when the network is asked. Called as any [`Vad`]. Never thresholds for the engine.
//!
//! Why: earshot alone, with its own second opinion (`voicing`), misses three of four short utterances in white noise 5 dB below
//! the voice and takes melodies, organs, sirens and mains hum for speech for as long as they sound; the network did neither
//! (470 utterances of 10 synthetic voices, 33 minutes of noises at -20, -30 and -40 dBFS). The network at every window costs
//! 1 % of a core; woken by earshot it costs that while there is sound worth hearing, and nothing in a quiet room.

use std::collections::VecDeque;
use std::sync::Arc;

use super::silero::{self, Silero, SileroModel};
use super::vad::{Vad, VadFrame};
use crate::media::level::rms_dbfs;

/// Samples of earshot's window: 16 ms at 16 kHz, half of the network's.
const WINDOW: usize = 256;
/// From this much of earshot's on the network is awake. It answers 0.16 to digital silence; speech reached 0.3 in every case.
const WAKE: f32 = 0.25;
/// Windows of earshot without cause after which the network sleeps: 1 s.
const AWAKE: u32 = 62;
/// Windows of the network that it hears of the past when it wakes (192 ms): without them it needs as long to warm up.
const RECALLED: usize = 6;

/// See the file's head.
pub struct ConfirmedVad {
    watch: Box<earshot::Detector>,
    network: Silero,
    /// Windows since earshot saw cause; [`AWAKE`] is asleep.
    calm: u32,
    /// The window of the network that is filling, and whole ones before it, oldest first.
    filling: [i16; silero::WINDOW],
    filled: usize,
    past: VecDeque<[i16; silero::WINDOW]>,
    /// Cause was seen in the window that is filling.
    cause: bool,
    /// The network's last word.
    said: f32,
    /// The network has failed: earshot is believed alone.
    alone: bool,
    asked: u64,
}

impl ConfirmedVad {
    /// A detector that has heard nothing.
    pub fn new(model: Arc<SileroModel>) -> Self {
        Self {
            watch: Box::default(), network: Silero::new(model), calm: AWAKE, filling: [0; silero::WINDOW], filled: 0,
            past: VecDeque::with_capacity(RECALLED + 1), cause: false, said: 0.0, alone: false, asked: 0,
        }
    }

    /// How many windows (32 ms each) the network was asked about, for figures of cost.
    pub fn asked(&self) -> u64 { self.asked }

    /// A window of earshot's is whole: the one that ends at `filled`.
    fn half(&mut self) -> f32 {
        let mut window = [0i16; WINDOW];
        window.copy_from_slice(&self.filling[self.filled - WINDOW..self.filled]);
        let likely = self.watch.predict_i16(&window).clamp(0.0, 1.0);
        self.cause |= likely >= WAKE;
        if self.filled == silero::WINDOW {
            self.whole();
        }
        if self.alone { likely } else { self.said }
    }

    fn whole(&mut self) {
        let slept = self.calm >= AWAKE;
        self.calm = if std::mem::take(&mut self.cause) { 0 } else { (self.calm + 2).min(AWAKE) };
        self.filled = 0;
        if self.calm >= AWAKE {
            self.said = 0.0;
        } else {
            if slept {
                self.wake();
            }
            let window = self.filling;
            self.ask(&window);
        }
        if self.past.len() == RECALLED {
            self.past.pop_front();
        }
        self.past.push_back(self.filling);
    }

    /// The network hears the recent past before the present.
    fn wake(&mut self) {
        self.network.reset();
        for window in std::mem::take(&mut self.past) {
            self.ask(&window);
        }
    }

    fn ask(&mut self, window: &[i16; silero::WINDOW]) {
        if self.alone {
            return;
        }
        self.asked += 1;
        match self.network.push(window) {
            Ok(said) => self.said = said,
            Err(error) => {
                tracing::warn!(%error, "the second opinion on voice is gone; the first is believed alone");
                self.alone = true;
            }
        }
    }
}

impl Vad for ConfirmedVad {
    fn push(&mut self, frame: &[i16]) -> VadFrame {
        let mut highest: Option<f32> = None;
        for &sample in frame {
            self.filling[self.filled] = sample;
            self.filled += 1;
            if self.filled % WINDOW == 0 {
                let p = self.half();
                highest = Some(highest.map_or(p, |h| h.max(p)));
            }
        }
        VadFrame { probability: highest.unwrap_or(self.said), level_dbfs: rms_dbfs(frame) }
    }

    fn reset(&mut self) {
        *self = Self::new(self.network.model());
    }
}
