//! What was recognised once is kept, by the sound and the model: a second run takes seconds.
//!
//! Owns a folder of small JSON files. Called by the walk. Never judges.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::heard::{Heard, PhraseScore};

#[derive(Serialize, Deserialize)]
struct Page {
    text: String,
    free_ll: f32,
    tokens: u32,
    no_speech: f32,
    #[serde(default)]
    clipped: bool,
    scores: Vec<(u16, f32)>,
}

/// See the file's head.
pub struct Kept {
    folder: PathBuf,
    model: String,
}

impl Kept {
    /// The words of this model under `folder`.
    ///
    /// # Errors
    /// A sentence: the folder cannot be made.
    pub fn open(folder: &Path, model: &str) -> Result<Self, String> {
        // The table of phrases is part of what is kept: another one gives other scores.
        let table = crate::engine::grammar::phrase_table();
        let phrases = table.iter().flat_map(|s| s.phrase.spellings.iter()).fold(OFFSET, |h, s| hash(h, s.as_bytes()));
        let model: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { folder: folder.to_path_buf(), model: format!("{model}-{phrases:016x}") })
    }

    fn file(&self, kind: &str, sound: &[i16]) -> PathBuf {
        let number = sound.iter().fold(OFFSET, |h, s| hash(h, &s.to_le_bytes()));
        self.folder.join(format!("{kind}-{number:016x}-{}.json", sound.len()))
    }

    /// The words of a sound, if they are known.
    pub fn heard(&self, sound: &[i16]) -> Option<Heard> {
        let page: Page = serde_json::from_str(&std::fs::read_to_string(self.file(&self.model, sound)).ok()?).ok()?;
        let scores = page.scores.into_iter().map(|(id, ll)| PhraseScore { id, ll }).collect();
        Some(Heard { text: page.text, free_ll: page.free_ll, tokens: page.tokens, no_speech: page.no_speech, clipped: page.clipped, scores })
    }

    /// Keeps the words of a sound.
    ///
    /// # Errors
    /// A sentence: it cannot be written.
    pub fn keep(&self, sound: &[i16], heard: &Heard) -> Result<(), String> {
        let scores = heard.scores.iter().map(|s| (s.id, s.ll)).collect();
        let page = Page { text: heard.text.clone(), free_ll: heard.free_ll, tokens: heard.tokens, no_speech: heard.no_speech, clipped: heard.clipped, scores };
        let file = self.file(&self.model, sound);
        let text = serde_json::to_string(&page).map_err(|e| e.to_string())?;
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
    }

    /// The judge's opinion of a sound, known or asked for.
    pub fn judged(&self, sound: &[i16], ask: impl FnOnce() -> f32) -> f32 {
        let file = self.file("judge", sound);
        if let Some(known) = std::fs::read_to_string(&file).ok().and_then(|t| t.trim().parse().ok()) {
            return known;
        }
        let complete = ask();
        let _ = std::fs::write(&file, complete.to_string());
        complete
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(seed: u64, bytes: &[u8]) -> u64 { bytes.iter().fold(seed, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)) }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), "a/model").unwrap();
        let heard = Heard { text: "No.".into(), free_ll: -1.5, tokens: 3, no_speech: 0.1, clipped: true, scores: vec![PhraseScore { id: 4, ll: -2.0 }] };
        assert_eq!(kept.heard(&[1, 2, 3]), None);
        kept.keep(&[1, 2, 3], &heard).unwrap();
        assert_eq!((kept.heard(&[1, 2, 3]), kept.heard(&[1, 2])), (Some(heard), None));
        assert_eq!((kept.judged(&[1], || 0.25), kept.judged(&[1], || 0.75)), (0.25, 0.25));
    }
}
