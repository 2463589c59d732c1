//! From a case to what the recogniser gets: the clip in its noise or room, cut as the product's ear cuts it.
//!
//! Called by `eval::commands`. Pure but for the clips it is handed. Everything is decided by the trial's seed.

use super::beds::{Dice, active_rms, babble, fan, pink, rms, room};
use crate::engine::turn::{EarSettings, FRAME_MS, ONSET_MS, POST_ROLL_MS, PRE_ROLL_MS, SHORTEST_MS};
use crate::listen::vad::Vad;

/// Part of what is kept of a trial: raised when the same trial would sound or be cut differently. The ear's own constants are in it.
pub const REVISION: u64 = 2 + 1_000 * PRE_ROLL_MS.abs_diff(300) + 1_000_000 * POST_ROLL_MS.abs_diff(240) + 1_000_000_000 * ONSET_MS.abs_diff(60);

/// What a clip is heard in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A quiet room: the microphone's own noise at -65 dBFS.
    Clean,
    /// People and keyboards, the speech this many dB above them.
    Babble(i32),
    /// A fan, likewise.
    Fan(i32),
    /// A room of 0.5 s reverberation, the direct sound 3 dB over it, noise 20 dB below the speech.
    Room,
}

impl Place {
    /// For tables.
    pub fn name(self) -> String {
        match self { Place::Clean => "clean".into(), Place::Babble(db) => format!("babble {db} dB"), Place::Fan(db) => format!("fan {db} dB"), Place::Room => "room".into() }
    }
}

/// Puts a clip into its place: 0.7 to 1 s of the place alone, the clip at -30 to -18 dBFS, 0.9 s more. `others` is speech of other
/// people, for babble. Mono i16, 16 kHz.
pub fn staged(clip: &[i16], place: Place, others: &[f32], seed: u64) -> Vec<i16> {
    let mut dice = Dice::new(seed);
    let level = 10f32.powf(dice.between(-30.0, -18.0) / 20.0);
    let before = dice.between(11_200.0, 16_000.0) as usize;
    let dry: Vec<f32> = clip.iter().map(|s| f32::from(*s) / 32_768.0).collect();
    let gain = level / active_rms(&dry).max(1e-6);
    let mut speech: Vec<f32> = dry.iter().map(|s| s * gain).collect();
    if place == Place::Room { speech = room(&mut dice, &speech, 0.5, 3.0) }
    let total = before + speech.len() + 14_400;
    let (mut bed, over_db) = match place {
        Place::Clean => (pink(&mut dice, total), None),
        Place::Babble(db) => (babble(&mut dice, others, 5, total), Some(db)),
        Place::Fan(db) => (fan(&mut dice, total), Some(db)),
        Place::Room => (pink(&mut dice, total), Some(20)),
    };
    let loud = over_db.map_or(10f32.powf(-65.0 / 20.0), |db| level * 10f32.powf(-(db as f32) / 20.0)) / rms(&bed).max(1e-9);
    bed.iter_mut().for_each(|s| *s *= loud);
    bed[before..].iter_mut().zip(&speech).for_each(|(b, s)| *b += s);
    bed.iter().map(|s| (s * 32_767.0).clamp(-32_768.0, 32_767.0) as i16).collect()
}

/// The utterances that the product's ear would cut out of a sound: a fresh detector, its thresholds, its pre-roll and post-roll, an
/// end after `silence_ms`.
pub fn cut(sound: &[i16], silence_ms: u64, vad: &mut dyn Vad) -> Vec<Vec<i16>> {
    let settings = EarSettings::default();
    let (mut run, mut open, mut spans) = (0u64, None::<(u64, u64, u64)>, Vec::new());
    let end = sound.len() as u64 / 16;
    for (n, frame) in sound.chunks_exact(320).enumerate() {
        let (start, now) = (n as u64 * FRAME_MS, (n as u64 + 1) * FRAME_MS);
        let likely = vad.push(frame).probability;
        match &mut open {
            None => {
                run = if likely >= settings.on { run + FRAME_MS } else { 0 };
                if run >= ONSET_MS { open = Some((now - run, now, run)) }
            }
            Some((_, last, voiced)) if likely >= settings.off => (*last, *voiced) = (now, *voiced + FRAME_MS),
            Some((began, last, voiced)) if start >= *last + silence_ms => {
                if *voiced >= SHORTEST_MS { spans.push((*began, *last)) }
                (open, run) = (None, 0);
            }
            Some(_) => {}
        }
    }
    if let Some((began, last, voiced)) = open && voiced >= SHORTEST_MS { spans.push((began, last)) }
    let slice = |(began, last): (u64, u64)| sound[began.saturating_sub(PRE_ROLL_MS) as usize * 16..(last + POST_ROLL_MS).min(end) as usize * 16].to_vec();
    spans.into_iter().map(slice).collect()
}

/// Without the front, as when the ear opened too late: the sound begins where `rest_samples` of speech are left, with nothing
/// before it. Mono i16, 16 kHz, as [`cut`] would hand it on.
pub fn clipped(sound: &[i16], clip_samples: usize, rest_samples: usize) -> Vec<i16> {
    // The clip ends 0.9 s before the end; a word less than the rest is never left, a breath more may be.
    let end = sound.len().saturating_sub(14_400);
    let from = end.saturating_sub(rest_samples.min(clip_samples));
    sound[from.min(sound.len())..(end + 3_840).min(sound.len())].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_as_far_below_the_speech_as_the_place_says() {
        let clip: Vec<i16> = (0..16_000).map(|n| ((n as f32 * 0.2).sin() * 8_000.0) as i16).collect();
        for (place, db) in [(Place::Fan(10), 10.0), (Place::Fan(5), 5.0)] {
            let sound = staged(&clip, place, &[], 3);
            let float = |part: &[i16]| part.iter().map(|s| f32::from(*s)).collect::<Vec<_>>();
            let (alone, both) = (rms(&float(&sound[..11_000])), rms(&float(&sound[16_500..26_000])));
            let over = 10.0 * ((both * both - alone * alone) / (alone * alone)).log10();
            assert!((over - db).abs() < 2.0, "{place:?}: {over}");
        }
        assert_eq!(staged(&clip, Place::Room, &[], 5), staged(&clip, Place::Room, &[], 5));
    }

    #[test]
    fn silence_is_cut_into_nothing() { assert!(cut(&vec![0; 48_000], 500, &mut crate::listen::vad::EarshotVad::new()).is_empty()) }
}
