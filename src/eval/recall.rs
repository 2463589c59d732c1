//! A recogniser that remembers: what was once heard in a sound, by this model with these parameters, is read from a file.
//!
//! Called by the measurements that hear hours of speech. The name of the file holds a hash of everything that may change an
//! answer: model, phrases, margins and the sources of the recogniser itself. A run that was stopped goes on where it was.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::engine::heard::{Heard, PhraseScore};
use crate::stt::{Job, Recogniser, SttError};

/// Everything of the program that makes a transcript or a score; a change here makes old answers void.
const SOURCES: &[&str] = &[include_str!("../stt/whisper.rs"), include_str!("../stt/plain.rs"), include_str!("../stt/trie.rs"), include_str!("../stt/transcript.rs"), include_str!("../engine/heard.rs")];

/// What a set of answers depends on, beside the sounds.
#[derive(Clone, Debug)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// `model`: the file that hears; `rest`: the phrases and whatever else it was told, in any stable form.
    ///
    /// # Errors
    /// A sentence: the model cannot be read.
    pub fn of(model: &Path, rest: &str) -> Result<Self, String> {
        let bytes = fs::read(model).map_err(|e| format!("{}: {e}", model.display()))?;
        let mut hash = Sha256::new();
        for part in [bytes.as_slice(), rest.as_bytes()].into_iter().chain(SOURCES.iter().map(|s| s.as_bytes())) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Ok(Self(hex(&hash.finalize())))
    }
}

fn hex(bytes: &[u8]) -> String { bytes.iter().take(16).map(|b| format!("{b:02x}")).collect() }

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    of: String,
    text: String,
    ll: f32,
    tokens: u32,
    no_speech: f32,
    #[serde(default)]
    clipped: bool,
    scores: Vec<(u16, f32)>,
}

/// See the file's head.
pub struct Recall {
    inner: Arc<dyn Recogniser>,
    known: Mutex<HashMap<String, Heard>>,
    file: Mutex<File>,
}

impl Recall {
    /// Answers from `folder`; what is not there is asked of `inner` and written down.
    ///
    /// # Errors
    /// A sentence: which file cannot be used.
    pub fn open(folder: &Path, fingerprint: &Fingerprint, inner: Arc<dyn Recogniser>) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let path: PathBuf = folder.join(format!("{}.jsonl", fingerprint.0));
        let told = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(told)?;
        // A line that a killed run left half written is not read; what follows begins on a line of its own.
        let lines = BufReader::new(&file).lines().map_while(Result::ok).filter_map(|l| serde_json::from_str::<Line>(&l).ok());
        let known = lines.map(|l| (l.of.clone(), l.heard())).collect();
        file.write_all(b"\n").map_err(told)?;
        Ok(Self { inner, known: Mutex::new(known), file: Mutex::new(file) })
    }

    fn keep(&self, of: String, heard: &Heard) {
        let line = Line { of: of.clone(), text: heard.text.clone(), ll: heard.free_ll, tokens: heard.tokens, no_speech: heard.no_speech, clipped: heard.clipped, scores: heard.scores.iter().map(|s| (s.id, s.ll)).collect() };
        if let Ok(text) = serde_json::to_string(&line) {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            // What cannot be kept is heard again next time.
            let _ = file.write_all((text + "\n").as_bytes());
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(of, heard.clone());
    }
}

impl Line {
    fn heard(self) -> Heard {
        let scores = self.scores.into_iter().map(|(id, ll)| PhraseScore { id, ll }).collect();
        Heard { text: self.text, free_ll: self.ll, tokens: self.tokens, no_speech: self.no_speech, clipped: self.clipped, scores }
    }
}

fn key(job: &Job) -> String {
    let mut hash = Sha256::new();
    hash.update([u8::from(job.score)]);
    hash.update(job.language.as_bytes());
    for sample in job.heard_samples() {
        hash.update(sample.to_le_bytes());
    }
    hex(&hash.finalize())
}

impl Recogniser for Recall {
    fn recognise(&self, job: Job) -> BoxFuture<'_, Result<Heard, SttError>> {
        async move {
            let key = key(&job);
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
            if let Some(heard) = known {
                return Ok(heard);
            }
            let heard = self.inner.recognise(job).await?;
            self.keep(key, &heard);
            Ok(heard)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stt::Scripted;

    #[tokio::test]
    async fn a_sound_is_heard_once() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        std::fs::write(&model, b"weights").unwrap();
        let (one, other) = (Fingerprint::of(&model, "a").unwrap(), Fingerprint::of(&model, "b").unwrap());
        let heard = Heard { text: "No.".into(), free_ll: -1.5, tokens: 2, no_speech: 0.25, clipped: true, scores: vec![PhraseScore { id: 3, ll: -2.0 }] };
        let open = |fingerprint, answers: Vec<Heard>| Recall::open(folder.path(), fingerprint, Arc::new(Scripted::answering(answers.into_iter().map(Ok)))).unwrap();
        let job = || Job::new(vec![1, 2, 3]);
        assert_eq!(open(&one, vec![heard.clone()]).recognise(job()).await.unwrap(), heard);
        let again = open(&one, vec![Heard::text_only("other")]);
        assert_eq!(again.recognise(job()).await.unwrap(), heard);
        assert_eq!(again.recognise(Job { score: false, ..job() }).await.unwrap().text, "other");
        assert_eq!(open(&other, vec![]).recognise(job()).await.unwrap(), Heard::default());
    }
}
