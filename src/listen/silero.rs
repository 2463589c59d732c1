//! The second opinion on what is speech: the Silero network, 32 ms at a time, with its memory.
//!
//! Owns the run of the network. Called by the detector (`vad`), which decides when to ask. Never thresholds. One run takes
//! about 0.3 ms; a run at every window would be 1 % of a core, so it is asked only where its word can change something.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use thiserror::Error;

/// Samples of one window: 32 ms at 16 kHz.
pub const WINDOW: usize = 512;
/// Samples of the window before that the network sees again.
const CONTEXT: usize = 64;
/// Numbers that the network remembers: two layers' worth of 128.
const STATE: usize = 256;

/// Why there is no second opinion.
#[derive(Debug, Error)]
pub enum SileroError {
    /// The file cannot be read.
    #[error("the detector's file {} cannot be read ({why}); `voxgate models get silero` brings it", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
    /// The file is no such network.
    #[error("the detector cannot be used: {why}")]
    Unusable {
        /// What the loader said.
        why: String,
    },
    /// It did not compute.
    #[error("the detector failed: {why}")]
    Failed {
        /// What went wrong.
        why: String,
    },
}

/// The weights, shared by all streams.
pub struct SileroModel {
    model: Model,
    input: NodeId,
    state_in: NodeId,
    outputs: [NodeId; 2],
    threads: Arc<ThreadPool>,
}

impl SileroModel {
    /// Loads the network from its file, unchecked: for files that a person names.
    ///
    /// # Errors
    /// [`SileroError`].
    pub fn load(path: &Path) -> Result<Arc<Self>, SileroError> {
        let bytes = std::fs::read(path).map_err(|why| SileroError::File { path: path.to_owned(), why })?;
        Self::from_bytes(bytes)
    }

    /// Loads the network from the bytes of its file (a few milliseconds).
    ///
    /// # Errors
    /// [`SileroError::Unusable`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Arc<Self>, SileroError> {
        let unusable = |why: String| SileroError::Unusable { why };
        let model = Model::load(bytes).map_err(|e| unusable(e.to_string()))?;
        let node = |name: &str| model.node_id(name).map_err(|e| unusable(e.to_string()));
        let (input, state_in, outputs) = (node("input")?, node("state")?, [node("output")?, node("stateN")?]);
        Ok(Arc::new(Self { input, state_in, outputs, model, threads: Arc::new(ThreadPool::with_num_threads(1)) }))
    }

    fn run(&self, window: Vec<f32>, state: Vec<f32>) -> Result<(f32, Vec<f32>), SileroError> {
        let failed = |why: String| SileroError::Failed { why };
        let input = Value::from_shape(&[1, window.len()], window).map_err(|e| failed(e.to_string()))?;
        let state = Value::from_shape(&[2, 1, STATE / 2], state).map_err(|e| failed(e.to_string()))?;
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let inputs = vec![(self.input, input.into()), (self.state_in, state.into())];
        let outputs = self.model.run(inputs, &self.outputs, Some(options)).map_err(|e| failed(e.to_string()))?;
        let mut tensors = outputs.into_iter().map(|o| o.into_tensor::<f32>().map(|t| t.into_data()));
        let mut next = || tensors.next().flatten().ok_or_else(|| failed("an output is no f32".into()));
        let (probability, state) = (next()?, next()?);
        match probability.first() {
            Some(p) if p.is_finite() && state.len() == STATE => Ok((p.clamp(0.0, 1.0), state)),
            _ => Err(failed("an output has another shape".into())),
        }
    }
}

/// One stream's ear.
pub struct Silero {
    model: Arc<SileroModel>,
    state: Vec<f32>,
    context: [f32; CONTEXT],
}

impl Silero {
    /// An ear that has heard nothing.
    pub fn new(model: Arc<SileroModel>) -> Self {
        Self { model, state: vec![0.0; STATE], context: [0.0; CONTEXT] }
    }

    /// Probability (0..=1) that this window, which follows the last one given, holds speech. Mono i16 at 16 kHz.
    ///
    /// # Errors
    /// [`SileroError::Failed`]; its memory is then as before.
    pub fn push(&mut self, window: &[i16; WINDOW]) -> Result<f32, SileroError> {
        let mut input = Vec::with_capacity(CONTEXT + WINDOW);
        input.extend_from_slice(&self.context);
        input.extend(window.iter().map(|s| f32::from(*s) / 32_768.0));
        self.context.copy_from_slice(&input[WINDOW..]);
        let (probability, state) = self.model.run(input, self.state.clone())?;
        self.state = state;
        Ok(probability)
    }

    /// The weights, for another ear.
    pub fn model(&self) -> Arc<SileroModel> { self.model.clone() }

    /// Forgets the past.
    pub fn reset(&mut self) {
        self.state.fill(0.0);
        self.context.fill(0.0);
    }
}
