//! A voice of beeps: 60 ms a character, sound in words and silence between them.
//!
//! Owns nothing. Used by tests and by whoever needs a voice without weights: its length tells the text's, its gaps the words.

use super::{Speech, TtsError, Voice, VoiceSettings, check_length};
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::f32::consts::TAU;
use std::sync::Arc;

/// Samples a second.
pub const RATE_HZ: u32 = 24_000;
/// Length of one character at speed 1, in milliseconds.
pub const CHAR_MS: u32 = 60;

/// The voice of beeps.
pub struct Tone {
    /// Samples of one character.
    char_len: usize,
}

/// Makes it.
///
/// # Errors
/// Never.
pub fn open(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    Ok(Arc::new(Tone::new(settings.speed())))
}

impl Tone {
    /// A voice of this speed (1.0: 60 ms a character).
    pub fn new(speed: f32) -> Self {
        Self { char_len: ((RATE_HZ * CHAR_MS) as f32 / 1000.0 / speed) as usize }
    }

    fn speak(&self, text: &str) -> Vec<i16> {
        let mut samples = Vec::with_capacity(text.len() * self.char_len);
        for (place, word) in text.split_whitespace().enumerate() {
            if place > 0 {
                samples.resize(samples.len() + self.char_len, 0);
            }
            let length = word.chars().count() * self.char_len;
            let (hz, edge) = (300.0 + 40.0 * (place % 8) as f32, (RATE_HZ / 200) as usize);
            samples.extend((0..length).map(|n| {
                let soft = (n.min(length - n) as f32 / edge as f32).min(1.0);
                (4_600.0 * soft * (TAU * hz * n as f32 / RATE_HZ as f32).sin()) as i16
            }));
        }
        samples
    }
}

impl Voice for Tone {
    fn rate_hz(&self) -> u32 {
        RATE_HZ
    }

    fn name(&self) -> &str {
        "tone"
    }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        let speech = check_length(&text).map(|()| Speech { samples: self.speak(&text), rate_hz: RATE_HZ });
        ready(speech).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn length_follows_the_text() {
        let voice = Tone::new(1.0);
        let speech = voice.synthesise("one  three".into()).await.unwrap();
        assert_eq!(speech.samples.len(), 9 * 1440);
        assert!(speech.samples[3 * 1440..4 * 1440].iter().all(|s| *s == 0));
        assert!(crate::media::level::rms_dbfs(&speech.samples) > -22.0);
        assert!(voice.synthesise(" ".into()).await.unwrap().samples.is_empty());
        assert!(voice.synthesise("x".repeat(9_000)).await.is_err());
    }
}
