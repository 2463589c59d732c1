//! The echo canceller: takes what the loudspeaker plays out of what the microphone hears.
//!
//! Owns one AEC3 (sonora, pure Rust) with an optional noise suppressor, and the cutting into its blocks of 4 ms. Called by the
//! hearing end of the loop on the device path. It finds the delay between the two by itself, up to half a second. Never decides
//! anything: what it leaves of an echo is judged above it.
//!
//! It gives two sounds. For the detector of voices everything that may be echo is pushed down, and a person who speaks at the
//! same time with it. For the recogniser only what the adaptive filter knows to be echo is subtracted, which leaves some echo and
//! the person's words whole: measured, of short commands spoken over the voice at -12 dB the pushed-down sound kept every second.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use sonora::config::NoiseSuppression;
use sonora::high_pass_filter::HighPassFilter;
use sonora::{AudioProcessing, Config, StreamConfig};
use sonora_aec3::block::Block;
use sonora_aec3::block_processor::BlockProcessor;
use sonora_aec3::config::EchoCanceller3Config;

use crate::media::frame::EAR_HZ;
use crate::media::level::{rms_dbfs, round_to_i16};

/// Samples in a block of the noise suppressor and of the levels: 10 ms at 16 kHz.
pub const BLOCK: usize = 160;
/// Samples in a block of the canceller: 4 ms.
const STEP: usize = 64;
/// Reference that may wait; beyond it the oldest goes.
const WAITING_MAX: usize = 16_000;
/// Length of the adaptive filter in blocks: 104 ms of room. Its own default is half of that, made for the push-down behind it;
/// what the filter does not reach stays in the sound for the recogniser.
const FILTER_BLOCKS: usize = 26;
/// Samples at the ends of the scale: the microphone is overdriven, and the filter learns nothing from it.
const SATURATED: f32 = 32_700.0;

/// What was heard, without what was played. Both mono i16 at 16 kHz, in step and of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cleaned {
    /// For the detector of voices: no echo, whatever it costs.
    pub voice: Vec<i16>,
    /// For the recogniser: whole words, whatever is left of the echo.
    pub words: Vec<i16>,
}

/// See the file's head.
pub struct Canceller {
    processor: BlockProcessor,
    high_pass: HighPassFilter,
    suppressor: Option<AudioProcessing>,
    noise_suppression: bool,
    far_block: Block,
    near_block: Block,
    linear_block: Block,
    /// Reference and microphone sound that is shorter than a block.
    far: Vec<i16>,
    near: Vec<i16>,
    /// Sound for the recogniser that waits for the noise suppressor, and sound for the detector that waits for the same.
    unsuppressed: Vec<i16>,
    pushed: Vec<i16>,
    channel: Vec<Vec<f32>>,
}

impl Canceller {
    /// One that has heard nothing. `noise_suppression`: steady noise is taken down for the recogniser.
    pub fn new(noise_suppression: bool) -> Self {
        Self {
            processor: processor(), high_pass: HighPassFilter::new(EAR_HZ as i32, 1), suppressor: noise_suppression.then(suppressor), noise_suppression,
            far_block: Block::new(1, 1), near_block: Block::new(1, 1), linear_block: Block::new(1, 1),
            far: Vec::new(), near: Vec::new(), unsuppressed: Vec::new(), pushed: Vec::new(), channel: vec![vec![0.0; STEP]],
        }
    }

    /// Takes what is being played, mono i16 at 16 kHz, any number of samples; before the microphone's sound of the same time.
    pub fn reference(&mut self, samples: &[i16]) {
        self.far.extend_from_slice(samples);
        let excess = self.far.len().saturating_sub(WAITING_MAX);
        self.far.drain(..excess);
        let whole = self.far.len() / STEP * STEP;
        for block in self.far[..whole].chunks_exact(STEP) {
            self.far_block.view_mut(0, 0).iter_mut().zip(block).for_each(|(slot, s)| *slot = f32::from(*s));
            self.processor.buffer_render(&self.far_block);
        }
        self.far.drain(..whole);
    }

    /// Takes the microphone's sound, mono i16 at 16 kHz, and appends what is left of it, in whole blocks of 10 ms.
    pub fn microphone(&mut self, samples: &[i16], out: &mut Cleaned) {
        self.near.extend_from_slice(samples);
        let whole = self.near.len() / STEP * STEP;
        let near = std::mem::take(&mut self.near);
        near[..whole].chunks_exact(STEP).for_each(|block| self.step(block));
        self.near = near;
        self.near.drain(..whole);
        let ready = self.pushed.len() / BLOCK * BLOCK;
        out.voice.extend(self.pushed.drain(..ready));
        match &mut self.suppressor {
            Some(suppressor) => {
                let mut quiet = [0i16; BLOCK];
                for block in self.unsuppressed[..ready].chunks_exact(BLOCK) {
                    match suppressor.process_capture_i16(block, &mut quiet) {
                        Ok(()) => out.words.extend_from_slice(&quiet),
                        // A block of the agreed length is never refused.
                        Err(_) => out.words.extend_from_slice(block),
                    }
                }
            }
            None => out.words.extend_from_slice(&self.unsuppressed[..ready]),
        }
        self.unsuppressed.drain(..ready);
    }

    fn step(&mut self, block: &[i16]) {
        let channel = &mut self.channel[0];
        channel.iter_mut().zip(block).for_each(|(slot, s)| *slot = f32::from(*s));
        let saturated = channel.iter().any(|x| x.abs() >= SATURATED);
        self.high_pass.process_channels(&mut self.channel);
        self.near_block.view_mut(0, 0).copy_from_slice(&self.channel[0]);
        // Before anything was played nothing is done to either.
        self.linear_block.view_mut(0, 0).copy_from_slice(&self.channel[0]);
        self.processor.process_capture(false, saturated, Some(&mut self.linear_block), &mut self.near_block);
        self.pushed.extend(self.near_block.view(0, 0).iter().map(|x| round_to_i16(*x)));
        self.unsuppressed.extend(self.linear_block.view(0, 0).iter().map(|x| round_to_i16(*x)));
    }

    /// Another loudspeaker or microphone: what was learnt is forgotten.
    pub fn reset(&mut self) { *self = Self::new(self.noise_suppression) }
}

fn processor() -> BlockProcessor {
    let mut config = EchoCanceller3Config::default();
    config.filter.export_linear_aec_output = true;
    config.filter.refined.length_blocks = FILTER_BLOCKS;
    config.filter.coarse.length_blocks = FILTER_BLOCKS;
    BlockProcessor::new(&config, EAR_HZ as usize, 1, 1)
}

fn suppressor() -> AudioProcessing {
    let config = Config { noise_suppression: Some(NoiseSuppression::default()), ..Config::default() };
    let stream = StreamConfig::new(EAR_HZ, 1);
    AudioProcessing::builder().config(config).capture_config(stream).render_config(stream).build()
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
        let mut out = Cleaned::default();
        for n in 0..far.len() / 320 {
            let at = n * 320;
            let heard: Vec<i16> = (at..at + 320).map(|i| {
                let echo = if i >= delay { far[i - delay] / 4 } else { 0 };
                if i >= 6 * 16_000 { echo + near[i] } else { echo }
            }).collect();
            canceller.reference(&far[at..at + 320]);
            canceller.microphone(&heard, &mut out);
        }
        assert_eq!((out.voice.len(), out.words.len()), (far.len(), far.len()));
        let echo = rms_dbfs(&far) - 12.0;
        let left = |sound: &[i16]| rms_dbfs(&sound[3 * 16_000..6 * 16_000]) - echo;
        assert!(left(&out.voice) < -25.0 && left(&out.words) < -10.0, "{} and {} dB are left", left(&out.voice), left(&out.words));
        let kept = |sound: &[i16]| rms_dbfs(&sound[7 * 16_000..]) - rms_dbfs(&near[7 * 16_000..]);
        assert!(kept(&out.voice) > -12.0 && kept(&out.words).abs() < 2.0, "the person is {} and {} dB lower", kept(&out.voice), kept(&out.words));
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
        let (mut canceller, mut out) = (Canceller::new(true), Cleaned::default());
        for n in [0, 1, 159, 160, 7, 313] {
            canceller.reference(&vec![5; n]);
            canceller.microphone(&vec![9; n], &mut out);
            assert_eq!((out.voice.len() % BLOCK, out.words.len()), (0, out.voice.len()));
        }
        assert!((480..=640).contains(&out.voice.len()), "{}", out.voice.len());
        canceller.reference(&vec![3; 100_000]);
        canceller.reset();
        assert!(canceller.far.is_empty());
    }
}
