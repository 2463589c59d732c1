//! The espeak-ng program as a voice: 22,050 Hz, robotic, nearly instant, many languages.
//!
//! Owns its arguments. Called through the table of kinds. Runs as a program of its own, never linked.

use super::program::Program;
use super::{Speech, TtsError, Voice, VoiceSettings, check_length};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// Samples a second.
const RATE_HZ: u32 = 22_050;
/// Its own pace, in words a minute.
const PACE: f32 = 165.0;

/// The voice.
pub struct Espeak {
    name: String,
    program: Program,
}

/// Makes it; `settings.voice` is one of its languages or variants (`espeak-ng --voices`), `en-us` by default.
///
/// # Errors
/// Never: a missing program is told at the first text.
pub fn open(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    let voice = if settings.voice.is_empty() { "en-us" } else { &settings.voice };
    let pace = format!("{:.0}", PACE * settings.speed());
    let args = ["-v", voice, "-s", &pace, "--stdin", "--stdout"].map(str::to_owned).to_vec();
    let program = Program { name: "espeak-ng".into(), args, file_after: None, package: "espeak-ng" };
    Ok(Arc::new(Espeak { name: format!("espeak {voice}"), program }))
}

impl Voice for Espeak {
    fn rate_hz(&self) -> u32 {
        RATE_HZ
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        async move {
            check_length(&text)?;
            self.program.speak(&text).await.map(|s| s.at_rate(RATE_HZ))
        }
        .boxed()
    }
}
