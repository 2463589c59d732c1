//! The default voice: hibari, a small neural vocoder voice (American English, 24 kHz) run in this process.
//!
//! Owns the path from text to sound: pieces, phonemes, network, synthesis, levelling. One synthesis runs at a time, on a
//! blocking thread; 6 s of speech take about a tenth of a second. Called through the table of kinds. Never downloads.

mod dsp;
mod phonemes;
mod pieces;

use super::{Speech, TtsError, Voice, VoiceSettings, check_length};
use crate::media::level::{db_to_ratio, ratio_to_db, sample_from_f32};
use futures_util::future::{BoxFuture, FutureExt};
use phonemes::Phonemes;
use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Its name in the manifest of weights.
const MODEL: &str = "hibari";
/// Silence that stays at either end, in milliseconds.
const EDGE_MS: usize = 40;
/// Silence between two pieces of one text, in milliseconds (beside their edges).
const PAUSE_MS: usize = 120;
/// Level of a speech, rms in dBFS.
const LEVEL_DBFS: f32 = -20.0;
/// No sample goes over this, so that a loud syllable lowers the whole instead of clipping.
const PEAK: f32 = 0.89;
/// What is quieter than this counts as silence at the edges (-50 dBFS).
const SILENCE: f32 = 0.003;

/// What the network makes of a speed: (how much faster speech gets, the number it must be given). It rounds each sound to whole
/// frames, so it follows in steps; between 1.325 and 1.35 it jumps. Measured on three texts.
const PACES: [(f32, f32); 18] = [
    (0.5, 0.5), (0.6, 0.6), (0.7, 0.7), (0.8, 0.8), (0.894, 0.85), (0.954, 0.9), (1.0, 1.0), (1.032, 1.1), (1.06, 1.15), (1.105, 1.2), (1.148, 1.25),
    (1.198, 1.325), (1.471, 1.35), (1.565, 1.5), (1.681, 1.8), (1.819, 2.0), (1.966, 2.2), (2.042, 2.5),
];
/// A step in [`PACES`] wider than this is a jump: there is nothing between its ends.
const JUMP: f32 = 0.2;

/// The voice. Cheap to clone through `Arc`; the weights are shared.
pub struct Hibari {
    parts: Arc<Parts>,
    /// One synthesis at a time: a second would only slow the first.
    turn: Arc<Semaphore>,
}

struct Parts {
    model: Model,
    ids: NodeId,
    speed_in: NodeId,
    outputs: [NodeId; 6],
    threads: Arc<ThreadPool>,
    phonemes: Phonemes,
    speed: f32,
}

/// Loads the voice from `settings.model_dir` (about 0.4 s).
///
/// # Errors
/// [`TtsError::ModelMissing`] or [`TtsError::ModelUnusable`].
pub fn open(settings: &VoiceSettings) -> Result<Arc<dyn Voice>, TtsError> {
    Ok(Arc::new(Hibari::load(&settings.model_dir, settings.speed())?))
}

impl Hibari {
    /// Loads `hibari.onnx` and `vocab.json` from a folder, and `oov.onnx` with `oov.json` where they are there (without them,
    /// words that the lexicon lacks are spelled). `speed` 1.0 is the voice's own pace.
    ///
    /// # Errors
    /// [`TtsError::ModelMissing`] or [`TtsError::ModelUnusable`].
    pub fn load(dir: &Path, speed: f32) -> Result<Self, TtsError> {
        let path = dir.join("hibari.onnx");
        let model = load_model(&path)?;
        let unusable = |reason: String| TtsError::ModelUnusable { path: path.clone(), reason };
        let node = |name: &str| model.node_id(name).map_err(|e| unusable(e.to_string()));
        let (ids, speed_in) = (node("ids")?, node("speed")?);
        let outputs: [NodeId; 6] = model.output_ids().try_into()
            .map_err(|_| unusable(format!("it has {} outputs where 6 are expected", model.output_ids().len())))?;
        let parts = Parts {
            ids, speed_in, outputs, model, speed: network_speed(speed),
            threads: Arc::new(ThreadPool::with_num_threads(1)),
            phonemes: Phonemes::load(dir)?,
        };
        Ok(Self { parts: Arc::new(parts), turn: Arc::new(Semaphore::new(1)) })
    }

    /// Speaks on the calling thread. The same text gives the same samples.
    ///
    /// # Errors
    /// [`TtsError::TooLong`] or [`TtsError::Failed`].
    pub fn speak(&self, text: &str) -> Result<Speech, TtsError> {
        self.parts.speak(text)
    }
}

impl Voice for Hibari {
    fn rate_hz(&self) -> u32 {
        dsp::RATE_HZ
    }

    fn name(&self) -> &str {
        "hibari"
    }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        async move {
            let failed = |reason: String| TtsError::Failed { reason };
            let permit = self.turn.clone().acquire_owned().await.map_err(|e| failed(e.to_string()))?;
            let parts = self.parts.clone();
            // The permit goes along: giving up the future does not let a second synthesis in beside this one.
            let work = tokio::task::spawn_blocking(move || {
                let speech = parts.speak(&text);
                drop(permit);
                speech
            });
            work.await.map_err(|e| failed(format!("the synthesis ended early: {e}")))?
        }
        .boxed()
    }
}

impl Parts {
    fn speak(&self, text: &str) -> Result<Speech, TtsError> {
        check_length(text)?;
        let mut sound: Vec<f32> = Vec::new();
        for piece in pieces::split(text) {
            for ids in self.phonemes.ids(piece)? {
                let spoken = self.synthesise(&ids, seed(piece))?;
                let spoken = trimmed(&spoken);
                if spoken.is_empty() {
                    continue;
                }
                if !sound.is_empty() {
                    sound.resize(sound.len() + PAUSE_MS * dsp::RATE_HZ as usize / 1000, 0.0);
                }
                sound.extend_from_slice(spoken);
            }
        }
        Ok(Speech { samples: levelled(&sound), rate_hz: dsp::RATE_HZ })
    }

    fn synthesise(&self, ids: &[i32], seed: u64) -> Result<Vec<f32>, TtsError> {
        let failed = |reason: String| TtsError::Failed { reason };
        let input = Value::from_shape(&[1, ids.len()], ids.to_vec()).map_err(|e| failed(e.to_string()))?;
        let speed = Value::from_shape(&[1], vec![self.speed]).map_err(|e| failed(e.to_string()))?;
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let inputs = vec![(self.ids, input.into()), (self.speed_in, speed.into())];
        let outputs = self.model.run(inputs, &self.outputs, Some(options)).map_err(|e| failed(e.to_string()))?;
        let mut planes = Vec::with_capacity(6);
        for output in outputs {
            let tensor = output.into_tensor::<f32>().ok_or_else(|| failed("an output is not f32".into()))?;
            planes.push(tensor.into_data());
        }
        let planes: [Vec<f32>; 6] = planes.try_into().map_err(|_| failed("outputs are missing".into()))?;
        dsp::synthesise(&planes, seed).map_err(|e| failed(e.to_string()))
    }
}

fn load_model(path: &Path) -> Result<Model, TtsError> {
    if !path.is_file() {
        return Err(TtsError::ModelMissing { path: path.into(), model: MODEL });
    }
    Model::load_file(path).map_err(|e| TtsError::ModelUnusable { path: path.into(), reason: e.to_string() })
}

/// The number that makes the network speak `wanted` times as fast, as near as it can.
fn network_speed(wanted: f32) -> f32 {
    for [(slow, low), (fast, high)] in PACES.array_windows() {
        if wanted <= *fast {
            let share = ((wanted - slow) / (fast - slow)).clamp(0.0, 1.0);
            let jump = fast - slow > JUMP;
            return if jump { if share < 0.5 { *low } else { *high } } else { low + share * (high - low) };
        }
    }
    PACES[PACES.len() - 1].1
}

/// A number for the noise of a piece: the same text always sounds the same (FNV-1a).
fn seed(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Without the silence beyond the edges.
fn trimmed(sound: &[f32]) -> &[f32] {
    let edge = EDGE_MS * dsp::RATE_HZ as usize / 1000;
    let Some(first) = sound.iter().position(|s| s.abs() > SILENCE) else { return &[] };
    let last = sound.iter().rposition(|s| s.abs() > SILENCE).unwrap_or(first);
    &sound[first.saturating_sub(edge)..(last + 1 + edge).min(sound.len())]
}

/// As i16 at [`LEVEL_DBFS`], lowered where a peak would clip.
fn levelled(sound: &[f32]) -> Vec<i16> {
    let energy: f64 = sound.iter().map(|s| f64::from(*s) * f64::from(*s)).sum();
    let rms = ratio_to_db((energy / sound.len().max(1) as f64).sqrt());
    let peak = sound.iter().fold(1e-6f32, |p, s| p.max(s.abs()));
    let gain = db_to_ratio(LEVEL_DBFS - rms).min(PEAK / peak);
    sound.iter().map(|s| sample_from_f32(s * gain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::{peak, rms_dbfs};

    #[test]
    fn a_speed_is_translated_for_the_network() {
        assert_eq!([0.3, 0.5, 0.8, 1.0, 1.25, 1.4, 9.0].map(network_speed), [0.5, 0.5, 0.8, 1.0, 1.325, 1.35, 2.5]);
        assert!((1.21..1.25).contains(&network_speed(1.13)));
    }

    #[test]
    fn edges_and_level() {
        let mut sound = vec![0.0f32; 24_000];
        for n in 6_000..12_000 {
            sound[n] = 0.02 * (n as f32 * 0.3).sin();
        }
        let cut = trimmed(&sound);
        assert!((7_900..=7_920).contains(&cut.len()), "{}", cut.len());
        assert!(trimmed(&[0.0; 500]).is_empty() && levelled(&[]).is_empty());
        assert!((rms_dbfs(&levelled(cut)) + 20.0).abs() < 0.2);
        let mut click = vec![0.01f32; 24_000];
        click[5] = 1.0;
        assert!(peak(&levelled(&click)) <= 29_200);
    }

    #[test]
    fn missing_weights_name_the_command() {
        let Err(e) = Hibari::load(Path::new("/nonexistent"), 1.0) else { panic!("nothing is there") };
        assert!(e.to_string().contains("voxgate models get hibari"), "{e}");
    }
}
