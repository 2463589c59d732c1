//! A voice whose sounds are kept on disk by voice and text, so that a measurement speaks each sentence once in its life.
//!
//! Called by the measuring commands. Wraps any voice; a sound that cannot be kept is spoken again.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use crate::media::level::{db_to_ratio, rms_dbfs, scale};
use crate::media::resample::resample_all;
use crate::media::wav;
use crate::tts::{Speech, TtsError, Voice};

/// See the file's head.
pub struct KeptVoice {
    voice: Arc<dyn Voice>,
    folder: PathBuf,
}

impl KeptVoice {
    /// Keeps the sounds of a voice under this folder.
    pub fn new(voice: Arc<dyn Voice>, folder: impl Into<PathBuf>) -> Self { Self { voice, folder: folder.into() } }

    fn file(&self, text: &str) -> PathBuf {
        let name: String = self.voice.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let digest = Sha256::digest(format!("{} {} {text}", self.voice.name(), self.voice.rate_hz()));
        let number: String = digest.iter().take(12).map(|b| format!("{b:02x}")).collect();
        self.folder.join(name).join(format!("{number}.wav"))
    }

    fn kept(&self, text: &str) -> Option<Speech> {
        let sound = wav::parse(&std::fs::read(self.file(text)).ok()?).ok()?;
        Some(Speech { samples: sound.samples, rate_hz: sound.rate_hz })
    }

    fn keep(&self, text: &str, speech: &Speech) {
        let file = self.file(text);
        let whole = file.with_extension("part");
        let _ = file.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(&whole, wav::write(speech.rate_hz, &speech.samples)).and_then(|()| std::fs::rename(&whole, &file));
    }
}

impl Voice for KeptVoice {
    fn rate_hz(&self) -> u32 { self.voice.rate_hz() }

    fn name(&self) -> &str { self.voice.name() }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        Box::pin(async move {
            if let Some(speech) = self.kept(&text) {
                return Ok(speech);
            }
            let speech = self.voice.synthesise(text.clone()).await?;
            self.keep(&text, &speech);
            Ok(speech)
        })
    }
}

/// A text as a person says it: 16 kHz, without silence at its ends but for 40 ms, its loud parts at `dbfs`.
///
/// # Errors
/// As the voice.
pub async fn spoken(voice: &dyn Voice, text: &str, dbfs: f32) -> Result<Vec<i16>, TtsError> {
    let speech = voice.synthesise(text.to_string()).await?;
    Ok(at_level(&resample_all(&speech.samples, speech.rate_hz, 16_000), dbfs))
}

/// A clip, mono i16 at 16 kHz, as [`spoken`] gives it.
pub fn at_level(clip: &[i16], dbfs: f32) -> Vec<i16> {
    let mut sound = trimmed(clip);
    if !sound.is_empty() {
        let gain = db_to_ratio(dbfs - active_dbfs(&sound));
        scale(&mut sound, gain);
    }
    sound
}

/// Without what is quieter than -46 dBFS at the ends of mono i16 at 16 kHz, but for 40 ms. Empty when nothing is louder.
pub fn trimmed(sound: &[i16]) -> Vec<i16> {
    let loud = |s: &i16| s.unsigned_abs() > 160;
    let (Some(first), Some(last)) = (sound.iter().position(loud), sound.iter().rposition(loud)) else { return Vec::new() };
    sound[first.saturating_sub(640)..(last + 640).min(sound.len())].to_vec()
}

/// Level of what sounds: of the windows of 20 ms that lie within 25 dB of the loudest, together.
pub fn active_dbfs(sound: &[i16]) -> f32 {
    let levels: Vec<f32> = sound.chunks(320).map(rms_dbfs).collect();
    let loudest = levels.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let active: Vec<i16> = sound.chunks(320).zip(&levels).filter(|(_, level)| **level > loudest - 25.0).flat_map(|(window, _)| window).copied().collect();
    rms_dbfs(&active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_that_of_what_sounds() {
        let sound = [vec![0i16; 6_400], vec![3_277; 6_400], vec![0; 6_400]].concat();
        assert!((active_dbfs(&sound) + 20.0).abs() < 0.1, "{}", active_dbfs(&sound));
    }
}
