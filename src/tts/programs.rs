//! Voices that are programs: flite (16 kHz, small, a little mechanical) and espeak-ng (22.05 kHz, robotic, many languages). They
//! need no weights, so they are also who speaks when the default voice cannot.
//!
//! Owns their arguments. Called through the table of kinds. They run as programs of their own, never linked.

use super::program::Program;
use super::{Speech, TtsError, Voice, VoiceSettings, check_length};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// espeak-ng's own pace, in words a minute.
const PACE: f32 = 165.0;

/// A voice that is a program.
pub struct Spoken {
    name: String,
    rate_hz: u32,
    program: Program,
}

/// flite; `settings.voice` is one of its voices (`flite -lv`), `slt` by default.
///
/// # Errors
/// Never: a missing program is told at the first text.
pub fn flite(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    let voice = or(&settings.voice, "slt");
    let stretch = format!("duration_stretch={:.3}", 1.0 / settings.speed());
    let args = ["-voice", voice, "--setf", &stretch, "-f", "/dev/stdin"].map(str::to_owned).to_vec();
    // It appends sentence by sentence to its file, which a pipe cannot do.
    let program = Program { name: "flite".into(), args, file_after: Some("-o"), package: "flite" };
    Ok(Arc::new(Spoken { name: format!("flite {voice}"), rate_hz: 16_000, program }))
}

/// espeak-ng; `settings.voice` is one of its languages or variants (`espeak-ng --voices`), `en-us` by default.
///
/// # Errors
/// Never: a missing program is told at the first text.
pub fn espeak(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    let voice = or(&settings.voice, "en-us");
    let pace = format!("{:.0}", PACE * settings.speed());
    let args = ["-v", voice, "-s", &pace, "--stdin", "--stdout"].map(str::to_owned).to_vec();
    let program = Program { name: "espeak-ng".into(), args, file_after: None, package: "espeak-ng" };
    Ok(Arc::new(Spoken { name: format!("espeak {voice}"), rate_hz: 22_050, program }))
}

fn or<'a>(given: &'a str, otherwise: &'a str) -> &'a str { if given.is_empty() { otherwise } else { given } }

impl Voice for Spoken {
    fn rate_hz(&self) -> u32 { self.rate_hz }

    fn name(&self) -> &str { &self.name }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        async move {
            check_length(&text)?;
            self.program.speak(&text).await.map(|s| s.at_rate(self.rate_hz))
        }
        .boxed()
    }
}
