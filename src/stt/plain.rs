//! Whisper as its own library would transcribe: full context, its own fallbacks, no scores.
//!
//! Owns nothing that runs in a conversation: measurements put it beside the product's path (`recogniser --plain`, hidden).
//! Called by the recogniser's own process alone.

use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters, WhisperState};

use super::MAX_SAMPLES;
use super::whisper::EngineError;
use crate::engine::heard::Heard;

/// A loaded model.
pub struct Plain {
    state: WhisperState,
    threads: usize,
}

impl Plain {
    /// Loads a model out of bytes that were checked.
    ///
    /// # Errors
    /// [`EngineError`] when the native library refuses it.
    pub fn load(model: &[u8], threads: usize) -> Result<Self, EngineError> {
        let mut parameters = WhisperContextParameters::new();
        parameters.use_gpu(false).flash_attn(false);
        let context = WhisperContext::new_from_buffer_with_params(model, parameters)?;
        Ok(Self { state: context.create_state()?, threads: threads.clamp(1, 64) })
    }

    /// Transcribes with the library's defaults for greedy sampling: five candidates where the temperature is raised, no limit on
    /// context or tokens.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn hear(&mut self, samples: &[i16], language: &str) -> Result<Heard, EngineError> {
        let sound: Vec<f32> = samples.iter().take(MAX_SAMPLES).map(|sample| f32::from(*sample) / 32_768.0).collect();
        let mut parameters = FullParams::new(SamplingStrategy::Greedy { best_of: 5 });
        parameters.set_language(Some(language));
        parameters.set_n_threads(self.threads as i32);
        parameters.set_no_context(true);
        parameters.set_print_progress(false);
        parameters.set_print_realtime(false);
        parameters.set_print_special(false);
        parameters.set_print_timestamps(false);
        self.state.full(parameters, &sound)?;
        let mut text = String::new();
        for segment in self.state.as_iter() {
            text.push_str(&segment.to_str_lossy()?);
        }
        Ok(Heard::text_only(text.trim()))
    }
}
