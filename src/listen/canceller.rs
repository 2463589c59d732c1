//! The echo canceller: takes what the loudspeaker plays out of what the microphone hears.
//!
//! Owns one AEC3 (sonora, pure Rust; measured 120 us per 10 ms) with an optional noise suppressor, and the cutting into its
//! blocks of 10 ms. Called by the hearing end of the loop on the device path. It finds the delay between the two by itself, up
//! to half a second. Never decides anything: what it leaves of an echo is judged above it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use sonora::config::{EchoCanceller, NoiseSuppression};
use sonora::{AudioProcessing, Config, StreamConfig};

use crate::media::frame::EAR_HZ;
use crate::media::level::rms_dbfs;

/// Samples in one of its blocks: 10 ms at 16 kHz.
pub const BLOCK: usize = 160;
/// Reference that may wait for the microphone; beyond it the oldest goes, as in a speaker that is fed and a microphone that died.
const WAITING_MAX: usize = 16_000;

/// See the file's head.
pub struct Canceller {
    inner: AudioProcessing,
    noise_suppression: bool,
    /// Reference that is shorter than a block.
    far: Vec<i16>,
    /// Microphone sound that is shorter than a block.
    near: Vec<i16>,
}

impl Canceller {
    /// One that has heard nothing. `noise_suppression`: steady noise is taken down too.
    pub fn new(noise_suppression: bool) -> Self {
        Self { inner: processing(noise_suppression), noise_suppression, far: Vec::new(), near: Vec::with_capacity(BLOCK * 4) }
    }

    /// Takes what is being played, mono i16 at 16 kHz, any number of samples; before the microphone's sound of the same time.
    pub fn reference(&mut self, samples: &[i16]) {
        self.far.extend_from_slice(samples);
        let excess = self.far.len().saturating_sub(WAITING_MAX);
        self.far.drain(..excess);
        let whole = self.far.len() / BLOCK * BLOCK;
        let mut played = [0i16; BLOCK];
        for block in self.far[..whole].chunks_exact(BLOCK) {
            // A block of the agreed length is never refused.
            let _ = self.inner.process_render_i16(block, &mut played);
        }
        self.far.drain(..whole);
    }

    /// Takes the microphone's sound, mono i16 at 16 kHz, and appends what is left of it to `out`, in whole blocks.
    pub fn microphone(&mut self, samples: &[i16], out: &mut Vec<i16>) {
        self.near.extend_from_slice(samples);
        let whole = self.near.len() / BLOCK * BLOCK;
        let mut clean = [0i16; BLOCK];
        for block in self.near[..whole].chunks_exact(BLOCK) {
            match self.inner.process_capture_i16(block, &mut clean) {
                Ok(()) => out.extend_from_slice(&clean),
                Err(_) => out.extend_from_slice(block),
            }
        }
        self.near.drain(..whole);
    }

    /// Another loudspeaker or microphone: what was learnt is forgotten.
    pub fn reset(&mut self) {
        self.inner = processing(self.noise_suppression);
        self.far.clear();
    }
}

/// Tells a person beside the loudspeaker from what the canceller leaves of the loudspeaker, by level alone.
///
/// Needed because in the first seconds, before the canceller has learnt the room, what it leaves has the rhythm of a voice, and
/// a detector of voices does not ask how loud it is.
#[derive(Debug)]
pub struct NearGate {
    /// Levels of what was played lately, in dBFS, a block of 10 ms each.
    played: VecDeque<f32>,
    /// What is left of an echo, relative to the loudest that was played lately, in dB.
    left_db: f32,
    /// Frames heard during playback that still belong to the learning.
    learning: u32,
}

/// How long the sound of a block may still be heard: the way through buffers and room, and its reverberation.
const HEARD_BLOCKS: usize = 70;
/// Quieter than this, nothing is played.
const SILENT_DBFS: f32 = -55.0;
/// What a canceller that knows nothing yet leaves.
const LEFT_AT_FIRST_DB: f32 = -26.0;
/// How much louder than what is left a person must be.
const MARGIN_DB: f32 = 8.0;
/// Where the bar may stand, relative to the loudest that was played lately. Measured in 36 simulated rooms: what is left of an
/// echo and is taken for a voice lies under -27 dB in 99 of 100 frames of the first seconds and under -35 dB later; a person
/// 18 dB quieter than the loudspeaker's own signal lies around -22 dB, one as loud as it around -11 dB.
const BAR_DB: RangeInclusive<f32> = -34.0..=-18.0;
/// Playback before the bar begins to come down, in frames of 20 ms: 2.5 s. Until then the canceller is learning the room.
const LEARNING_FRAMES: u32 = 125;
/// How fast what is taken to be left falls and rises then, in dB a frame: 4 dB and 15 dB a second.
const FALL_DB: f32 = 0.08;
const RISE_DB: f32 = 0.3;

impl NearGate {
    /// One that has heard nothing.
    pub fn new() -> Self { Self { played: VecDeque::from([f32::NEG_INFINITY; HEARD_BLOCKS]), left_db: LEFT_AT_FIRST_DB, learning: LEARNING_FRAMES } }

    /// Takes what is played, mono i16 at 16 kHz.
    pub fn played(&mut self, samples: &[i16]) {
        for block in samples.chunks(BLOCK) {
            self.played.pop_front();
            self.played.push_back(rms_dbfs(block));
        }
    }

    /// Whether a cleaned frame of this level may be a person. `voice`: how likely the detector takes it for one.
    pub fn may_be_near(&mut self, level_dbfs: f32, voice: f32) -> bool {
        let loudest = self.played.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if loudest < SILENT_DBFS {
            return true;
        }
        let relative = level_dbfs - loudest;
        self.learning = self.learning.saturating_sub(1);
        if voice < 0.5 && self.learning == 0 {
            self.left_db += (relative - self.left_db).clamp(-FALL_DB, RISE_DB);
            self.left_db = self.left_db.clamp(BAR_DB.start() - MARGIN_DB, BAR_DB.end() - MARGIN_DB);
        }
        relative > self.left_db + MARGIN_DB
    }
}

impl Default for NearGate {
    fn default() -> Self { Self::new() }
}

fn processing(noise_suppression: bool) -> AudioProcessing {
    let config = Config {
        echo_canceller: Some(EchoCanceller::default()),
        noise_suppression: noise_suppression.then(NoiseSuppression::default),
        ..Config::default()
    };
    let stream = StreamConfig::new(EAR_HZ, 1);
    AudioProcessing::builder().config(config).capture_config(stream).render_config(stream).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something like speech: noise in syllables.
    fn babble(seconds: usize, seed: u32) -> Vec<i16> {
        let mut state = seed;
        let mut low = 0f32;
        (0..seconds * 16_000).map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = ((state >> 16) as f32 - 32_768.0) / 4.0;
            low += 0.3 * (noise - low);
            let syllable = (n as f32 * std::f32::consts::TAU * 4.0 / 16_000.0).sin().max(0.0);
            (low * syllable) as i16
        }).collect()
    }

    #[test]
    fn an_echo_is_taken_out_and_another_sound_is_kept() {
        let (far, near) = (babble(8, 1), babble(8, 99));
        let delay = 2_000;
        let mut canceller = Canceller::new(false);
        let mut out = Vec::new();
        for n in 0..far.len() / 320 {
            let at = n * 320;
            let heard: Vec<i16> = (at..at + 320).map(|i| {
                let echo = if i >= delay { far[i - delay] / 4 } else { 0 };
                if i >= 6 * 16_000 { echo + near[i] } else { echo }
            }).collect();
            canceller.reference(&far[at..at + 320]);
            canceller.microphone(&heard, &mut out);
        }
        assert_eq!(out.len(), far.len());
        let echo = rms_dbfs(&far) - 12.0;
        let left = rms_dbfs(&out[3 * 16_000..6 * 16_000]);
        assert!(left < echo - 20.0, "{left} dBFS are left of {echo}");
        let kept = rms_dbfs(&out[7 * 16_000..]) - rms_dbfs(&near[7 * 16_000..]);
        assert!(kept > -12.0, "the person is {kept} dB lower");
    }

    #[test]
    fn the_gate_lets_a_person_through_and_what_is_left_of_an_echo_not() {
        let mut gate = NearGate::new();
        assert!(gate.may_be_near(-60.0, 0.9), "nothing is played: whatever is heard is somebody");
        gate.played(&[3_277; 160]);
        assert!(!gate.may_be_near(-40.0, 0.9) && gate.may_be_near(-36.0, 0.9));
        // The canceller has learnt the room: even somebody far away is heard.
        for _ in 0..400 {
            gate.played(&[3_277; 320]);
            gate.may_be_near(-80.0, 0.1);
        }
        assert!(gate.may_be_near(-52.0, 0.9) && !gate.may_be_near(-56.0, 0.9));
        gate.played(&vec![0; 160 * HEARD_BLOCKS]);
        assert!(gate.may_be_near(-70.0, 0.9));
    }

    #[test]
    fn any_lengths_go_in_and_only_whole_blocks_come_out() {
        let (mut canceller, mut out) = (Canceller::new(true), Vec::new());
        for n in [0, 1, 159, 160, 7, 313] {
            canceller.reference(&vec![5; n]);
            canceller.microphone(&vec![9; n], &mut out);
            assert_eq!(out.len() % BLOCK, 0);
        }
        assert_eq!(out.len(), 640);
        canceller.reference(&vec![3; 100_000]);
        canceller.reset();
        assert!(canceller.far.is_empty());
    }
}
