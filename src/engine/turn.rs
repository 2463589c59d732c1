//! Turn taking: when somebody speaks, when a turn is over, and what speech does to a voice that is playing.
//!
//! One pure state machine in virtual time. [`Ear`] makes utterances of frames, [`endpoint`] says how much silence ends one,
//! [`Listener`] is both with the looks in between (whoever only listens drives it alone, without an engine), and [`Floor`]
//! decides between a person and playback. Every timer is a field of [`EarSettings`]. Called by `engine/session` and by the
//! commands that measure; it knows no recogniser and no clock but the frames it is given.

mod ear;
pub mod endpoint;
mod floor;
mod listener;

pub use ear::{Ear, EarEvent, Utterance};
pub use floor::{Floor, Move, Words, words_over_playback};
pub use listener::{Closed, Listener, Told};

use super::id::Ms;
use super::language::Language;

/// Length of a frame.
pub const FRAME_MS: u64 = 20;
/// Sound kept before the first voiced frame. The detector may miss a whole first word: with 300 ms, "Exit plan mode" lost its "exit" in
/// a reverberant room and in a fan's noise, and 7 of 180 utterances began in the middle of speech; with 500 ms the latest onset found
/// ("Exit", 480 ms) was just inside. A further 100 ms show that nothing was said before.
pub const PRE_ROLL_MS: u64 = 600;
/// Sound kept after the last voiced frame.
pub const POST_ROLL_MS: u64 = 240;
/// Voice this long begins an utterance; shorter is a click.
pub const ONSET_MS: u64 = 60;
/// An utterance with less voice than this is thrown away.
pub const SHORTEST_MS: u64 = 100;
/// An utterance longer than this is cut: the recogniser takes 30 s.
pub const LONGEST_MS: u64 = 28_000;
/// Voice this long while nothing plays is told to the leg.
pub const TOLD_MS: u64 = 200;
/// At or below this a frame is digital silence, whatever the detector says: a muted microphone. (One bit of noise reads -90.)
pub const MUTED_DBFS: f32 = -92.0;
/// A level that moves less than this is a machine's, not a person's. Steady noise in 60 ms means moves by 2 dB; speech by 15, and
/// by 7 where it stands 5 dB over such noise.
pub const STEADY_DB: f32 = 4.0;
/// Voice without a pause for so long is looked at while it goes on, and again every [`EarSettings::stuck_ms`]: words that stay
/// the same mean that the detector is stuck.
pub const RUN_ON_MS: u64 = 6_000;
/// Most sound that a judge of turns is given: what Smart Turn was trained on.
pub const JUDGED_MS: u64 = 8_000;

/// One frame of microphone: 20 ms, whenever it arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Probability of voice, 0..=1.
    pub probability: f32,
    /// Level in dBFS.
    pub level_dbfs: f32,
}

/// Everything of turn taking that can be set. All times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarSettings {
    /// Voice probability that begins an utterance.
    pub on: f32,
    /// Voice probability that keeps it going.
    pub off: f32,
    /// Silence after which recognition begins, in the hope that nothing more comes; void when speech goes on. Recognition takes
    /// 280 to 570 ms, so its words are there when the silence is long enough for them.
    pub look_ms: u64,
    /// Silence that ends a turn of ordinary speech.
    pub silence_ms: u64,
    /// Silence after which a denial, a hold or "stop" counts.
    pub answer_silence_ms: u64,
    /// Silence that ends a complete command that loosens nothing.
    pub command_silence_ms: u64,
    /// Silence that consent and loosening wait for.
    pub loosen_silence_ms: u64,
    /// Silence that ends ordinary speech which the judge of turns takes for complete.
    pub complete_silence_ms: u64,
    /// Silence that ends what is plainly unfinished: "and", "the", "approve plan", or the judge of turns says so.
    pub unfinished_silence_ms: u64,
    /// From this probability on the judge's "complete" shortens the silence.
    pub complete_from: f32,
    /// Up to this probability the judge's "incomplete" lengthens it.
    pub unfinished_to: f32,
    /// Voice over playback that makes it hold its breath.
    pub duck_ms: u64,
    /// Time after that onset at which a look is taken although voice goes on, so that words can decide within 600 ms.
    pub early_look_ms: u64,
    /// Voice that stops playback without words, where playback cannot hold its breath: a socket's client has all of it.
    pub barge_in_ms: u64,
    /// Playback comes back this long after the end of the voice at the latest, when no words are known.
    pub false_interruption_ms: u64,
    /// Ordinary speech that begins this soon after the last is its second half, if nothing was answered yet.
    pub join_ms: u64,
    /// Voice of a level that does not move, and silence of frames that do not come, end an utterance after this.
    pub stuck_ms: u64,
    /// False: turns are committed by hand.
    pub automatic: bool,
    /// The language that is spoken: which words leave a sentence unfinished, and which sentences mean something.
    pub language: Language,
}

impl Default for EarSettings {
    fn default() -> Self {
        Self {
            on: 0.5, off: 0.35, look_ms: 100, silence_ms: 500, answer_silence_ms: 300, command_silence_ms: 320, loosen_silence_ms: 600, complete_silence_ms: 300,
            unfinished_silence_ms: 1_400, complete_from: 0.8, unfinished_to: 0.5, duck_ms: 60, early_look_ms: 320, barge_in_ms: 400, false_interruption_ms: 2_500,
            join_ms: 1_200, stuck_ms: 1_200, automatic: true, language: Language::English,
        }
    }
}

/// A second opinion on whether a turn is complete, from the sound alone.
pub trait TurnJudge: Send + Sync {
    /// Probability that the turn is complete, 0..=1. `sound`: mono i16, 16 kHz, at most [`JUDGED_MS`], ending a little after the
    /// last word. May compute for tens of milliseconds; is called where that is no harm.
    fn complete(&self, sound: &[i16]) -> f32;
}
