//! The flite program as a voice: 16 kHz, small and quick.
//!
//! Owns its arguments. Called through the table of kinds. Never needs weights.

use super::program::Program;
use super::{Speech, TtsError, Voice, VoiceSettings, check_length};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// Samples a second of the voices slt, rms, awb and kal16.
const RATE_HZ: u32 = 16_000;

/// The voice.
pub struct Flite {
    name: String,
    program: Program,
}

/// Makes it; `settings.voice` is one of flite's (`flite -lv`), `slt` by default.
///
/// # Errors
/// Never: a missing program is told at the first text.
pub fn open(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    let voice = if settings.voice.is_empty() { "slt" } else { &settings.voice };
    let stretch = format!("duration_stretch={:.3}", 1.0 / settings.speed());
    let args = ["-voice", voice, "--setf", &stretch, "-f", "/dev/stdin"].map(str::to_owned).to_vec();
    // flite appends sentence by sentence to its file, which a pipe cannot do.
    let program = Program { name: "flite".into(), args, file_after: Some("-o"), package: "flite" };
    Ok(Arc::new(Flite { name: format!("flite {voice}"), program }))
}

impl Voice for Flite {
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
