//! From words to the network's numbers.
//!
//! Owns the lexicon (misaki: embedded, no other program), the predictor of unknown words and the alphabet. Called by `hibari`.
//! Never leaves a word out: what is in no lexicon is predicted, what cannot be predicted is spelled.

use super::super::TtsError;
use super::{MODEL, load_model};
use misaki_rs::fallback::{Fallback, FallbackError};
use misaki_rs::{G2P, Language};
use rten::{Model, Value};
use std::collections::HashMap;
use std::path::Path;

/// Most phonemes that the network speaks well at once.
const MAX_PHONEMES: usize = 400;
/// Said in place of a word in a script that has no letters here.
const UNSAYABLE: &str = "\u{2c8}\u{28c}nn\u{2c8}On w\u{2c8}\u{25c}\u{279}d";

/// Text to ids.
pub struct Phonemes {
    g2p: G2P,
    alphabet: HashMap<char, i32>,
}

impl Phonemes {
    /// Reads the alphabet, and the predictor where it is there.
    ///
    /// # Errors
    /// [`TtsError::ModelMissing`] or [`TtsError::ModelUnusable`].
    pub fn load(dir: &Path) -> Result<Self, TtsError> {
        let path = dir.join("vocab.json");
        let json = read_json(&path)?;
        let alphabet = json.as_object().into_iter().flatten()
            .filter_map(|(k, v)| Some((k.chars().next()?, i32::try_from(v.as_i64()?).ok()?)))
            .collect::<HashMap<char, i32>>();
        if alphabet.is_empty() {
            return Err(TtsError::ModelUnusable { path, reason: "it holds no alphabet".into() });
        }
        let unknown = Unknown { predictor: Predictor::load(dir)? };
        Ok(Self { g2p: G2P::with_fallback(Language::EnglishUS, Some(Box::new(unknown))), alphabet })
    }

    /// The ids of a piece, with the pads at either end; more than one list where it has too many phonemes. None where nothing is sayable.
    ///
    /// # Errors
    /// [`TtsError::Failed`] when the lexicon gives up.
    pub fn ids(&self, text: &str) -> Result<Vec<Vec<i32>>, TtsError> {
        // Square brackets would be read as pronunciation marks by the lexicon.
        let text = text.replace(['[', ']'], " ");
        let (phonemes, _) = self.g2p.g2p(&text).map_err(|e| TtsError::Failed { reason: e.to_string() })?;
        let known: Vec<(bool, i32)> = phonemes.chars().filter_map(|c| Some((c == ' ', *self.alphabet.get(&c)?))).collect();
        if !phonemes.chars().any(char::is_alphabetic) {
            return Ok(Vec::new());
        }
        let mut lists = Vec::new();
        let mut rest = known.as_slice();
        while !rest.is_empty() {
            let mut at = rest.len().min(MAX_PHONEMES);
            if at < rest.len() {
                at = rest[..at].iter().rposition(|(space, _)| *space).filter(|&i| i > 0).unwrap_or(at);
            }
            lists.push(std::iter::once(0).chain(rest[..at].iter().map(|(_, id)| *id)).chain([0]).collect());
            rest = &rest[at..];
        }
        Ok(lists)
    }
}

fn read_json(path: &Path) -> Result<serde_json::Value, TtsError> {
    if !path.is_file() {
        return Err(TtsError::ModelMissing { path: path.into(), model: MODEL });
    }
    let unusable = |reason: String| TtsError::ModelUnusable { path: path.into(), reason };
    let text = std::fs::read_to_string(path).map_err(|e| unusable(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| unusable(e.to_string()))
}

/// What is done with words that the lexicon lacks.
struct Unknown {
    predictor: Option<Predictor>,
}

impl Fallback for Unknown {
    fn phonemize(&self, word: &str) -> Result<String, FallbackError> {
        let has_vowel = word.to_lowercase().contains(['a', 'e', 'i', 'o', 'u', 'y']) || !word.is_ascii();
        let predicted = self.predictor.as_ref().filter(|_| has_vowel).and_then(|p| p.predict(word));
        Ok(predicted.unwrap_or_else(|| spell(word)))
    }
}

/// A small network that was trained on readings of rare words: characters in, phonemes out (repeats and blanks to be dropped).
struct Predictor {
    model: Model,
    letters: HashMap<char, i32>,
    phonemes: Vec<String>,
    longest: usize,
}

impl Predictor {
    fn load(dir: &Path) -> Result<Option<Self>, TtsError> {
        let (path, table) = (dir.join("oov.onnx"), dir.join("oov.json"));
        if !path.is_file() || !table.is_file() {
            return Ok(None);
        }
        let json = read_json(&table)?;
        let list = |key: &str| json[key].as_array().into_iter().flatten().filter_map(|v| v.as_str()).collect::<Vec<_>>();
        let letters = list("in").iter().zip(1..).filter_map(|(s, id)| Some((s.chars().next()?, id))).collect();
        let phonemes = list("out").into_iter().map(str::to_owned).collect();
        let longest = json["maxlen"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(24);
        Ok(Some(Self { model: load_model(&path)?, letters, phonemes, longest }))
    }

    fn predict(&self, word: &str) -> Option<String> {
        let ids: Vec<i32> = word.chars().filter_map(|c| self.letters.get(&c).copied()).take(self.longest).collect();
        // A word of which letters would be lost is better spelled.
        if ids.is_empty() || ids.len() < word.chars().filter(|c| c.is_alphanumeric()).count() {
            return None;
        }
        let input = Value::from_shape(&[1, ids.len()], ids).ok()?;
        let output = self.model.run_one(input.into(), None).ok()?.into_tensor::<i32>()?;
        let (mut said, mut previous) = (String::new(), 0);
        for id in output.into_data() {
            if id != previous && id > 0 {
                said.push_str(self.phonemes.get(id as usize - 1)?);
            }
            previous = id;
        }
        said.chars().any(char::is_alphabetic).then_some(said)
    }
}

/// Letter by letter. A word without a letter that has a name here is said to be unknown.
fn spell(word: &str) -> String {
    let names: Vec<&str> = word.chars().filter_map(letter).collect();
    if !names.is_empty() {
        names.join(" ")
    } else if word.chars().any(char::is_alphanumeric) {
        UNSAYABLE.into()
    } else {
        String::new()
    }
}

fn letter(c: char) -> Option<&'static str> {
    Some(match c.to_ascii_lowercase() {
        'a' => "ˈA", 'b' => "bˈi", 'c' => "sˈi", 'd' => "dˈi", 'e' => "ˈi", 'f' => "ˈɛf", 'g' => "ʤˈi", 'h' => "ˈAʧ",
        'i' => "ˈI", 'j' => "ʤˈA", 'k' => "kˈA", 'l' => "ˈɛl", 'm' => "ˈɛm", 'n' => "ˈɛn", 'o' => "ˈO", 'p' => "pˈi",
        'q' => "kjˈu", 'r' => "ˈɑɹ", 's' => "ˈɛs", 't' => "tˈi", 'u' => "jˈu", 'v' => "vˈi", 'w' => "dˈʌbᵊlju",
        'x' => "ˈɛks", 'y' => "wˈI", 'z' => "zˈi", '0' => "zˈɪɹO", '1' => "wˈʌn", '2' => "tˈu", '3' => "θɹˈi",
        '4' => "fˈɔɹ", '5' => "fˈIv", '6' => "sˈɪks", '7' => "sˈɛvən", '8' => "ˈAt", '9' => "nˈIn",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_spelled_never_dropped() {
        let unknown = Unknown { predictor: None };
        assert_eq!(unknown.phonemize("Xq7").unwrap(), "ˈɛks kjˈu sˈɛvən");
        assert_eq!(unknown.phonemize("\u{4f60}\u{597d}").unwrap(), UNSAYABLE);
        assert_eq!(unknown.phonemize("~").unwrap(), "");
    }
}
