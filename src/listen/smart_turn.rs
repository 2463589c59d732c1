//! The judge of ends of turns: was that a finished sentence, or a pause inside one?
//!
//! Owns the run of the network (Smart Turn v3.2, 8 bit) on the last 8 s of sound. Called at a pause, off the loop: it
//! computes for about a tenth of a second on one thread. Knows nothing of words or timers and decides nothing: it is wrong
//! often enough (read speech that was cut at a clause may look whole) to move a timeout, not to replace it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use thiserror::Error;

use super::log_mel::{BANDS, FRAMES, LogMel};

/// What is answered when the network fails: no opinion.
const NO_OPINION: f32 = 0.5;

/// Why there is no judge.
#[derive(Debug, Error)]
pub enum SmartTurnError {
    /// The file cannot be read.
    #[error("the judge of turns' file {} cannot be read ({why}); `voxgate models get smart-turn` brings it", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
    /// The file is no such network.
    #[error("the judge of turns cannot be used: {why}")]
    Unusable {
        /// What the loader said.
        why: String,
    },
}

/// The judge, shared by all conversations: it runs on one thread of its own, one sound after the other. Holds about 20 MB.
pub struct SmartTurn {
    model: Model,
    input: NodeId,
    output: NodeId,
    threads: Arc<ThreadPool>,
    mel: Mutex<LogMel>,
}

impl SmartTurn {
    /// Loads the network from its file, unchecked: for files that a person names. The installed one is handed over as
    /// checked bytes, see [`SmartTurn::from_bytes`].
    ///
    /// # Errors
    /// [`SmartTurnError`].
    pub fn load(path: &Path) -> Result<Self, SmartTurnError> {
        let bytes = std::fs::read(path).map_err(|why| SmartTurnError::File { path: path.to_owned(), why })?;
        Self::from_bytes(bytes)
    }

    /// Loads the network from the bytes of its file.
    ///
    /// # Errors
    /// [`SmartTurnError::Unusable`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SmartTurnError> {
        let unusable = |why: String| SmartTurnError::Unusable { why };
        let model = Model::load(bytes).map_err(|e| unusable(e.to_string()))?;
        let input = model.node_id("input_features").map_err(|e| unusable(e.to_string()))?;
        let [output] = model.output_ids().try_into().map_err(|_| unusable(format!("it has {} outputs where one is expected", model.output_ids().len())))?;
        Ok(Self { input, output, model, threads: Arc::new(ThreadPool::with_num_threads(1)), mel: Mutex::new(LogMel::new()) })
    }

    /// Probability (0..=1) that the speaker is done, from mono i16 at 16 kHz. The last 8 s count; it should end a little
    /// (about 200 ms) after the last voice. 0.5 when the network fails, which is logged.
    pub fn complete(&self, sound_16k: &[i16]) -> f32 {
        let picture = self.mel.lock().unwrap_or_else(PoisonError::into_inner).picture(sound_16k);
        self.judge(picture).unwrap_or_else(|why| {
            tracing::warn!("the judge of turns failed: {why}");
            NO_OPINION
        })
    }

    fn judge(&self, picture: Vec<f32>) -> Result<f32, String> {
        let input = Value::from_shape(&[1, BANDS, FRAMES], picture).map_err(|e| e.to_string())?;
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let outputs = self.model.run(vec![(self.input, input.into())], &[self.output], Some(options)).map_err(|e| e.to_string())?;
        let first = outputs.into_iter().next().and_then(|o| o.into_tensor::<f32>()).ok_or("its answer is no f32")?;
        // The output is named "logits", and is a probability already.
        first.into_data().first().map(|p| p.clamp(0.0, 1.0)).filter(|p| p.is_finite()).ok_or_else(|| "its answer is empty".into())
    }
}
