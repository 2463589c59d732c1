//! The pinned list of weights: what `models/manifest.toml` says, as values.
//!
//! Owns the shape of the manifest. Called by the store and the downloader. Never touches the disk: the file is compiled in.

use serde::Deserialize;

use super::ModelError;

/// The text of `models/manifest.toml`, compiled in so that a binary alone knows what it needs.
const MANIFEST: &str = include_str!("../../models/manifest.toml");

/// All models this build knows how to bring.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// One entry a model, in the order of the file.
    #[serde(rename = "model")]
    pub models: Vec<Model>,
}

/// One model: where it comes from and what ends up in its folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name a person uses, and the folder's name.
    pub id: String,
    /// What it is for.
    pub kind: Kind,
    /// A line for `voxgate models list`.
    pub about: String,
    /// The licence its package declares.
    pub licence: String,
    /// True when `voxgate models get` without a name brings it.
    pub default: bool,
    /// A public address of the same model, for machines that cannot use packages.
    pub hub: Option<String>,
    /// The files it is made of.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// How the sources become the installed file, where they are not it themselves.
    pub convert: Option<Conversion>,
}

/// What a model is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Speech to text.
    Whisper,
    /// Text to speech.
    Voice,
    /// Hearing beside the words: what is speech, and when a turn ends.
    Ear,
}

/// One pinned file, the concatenation of its parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The file's name in the model's folder (when kept) and in a `--from` folder.
    pub name: String,
    /// True when this is an installed file, false when it only feeds the conversion.
    #[serde(default)]
    pub keep: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole file, lower-case hex.
    pub sha256: String,
    /// Where the bytes lie, in order.
    pub parts: Vec<Part>,
}

/// One file inside one wheel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Package name.
    pub package: String,
    /// Exact version.
    pub version: String,
    /// Path inside the wheel.
    pub path: String,
}

/// A conversion from a CTranslate2 Whisper model to a ggml file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// Name of the source with the weights.
    pub weights: String,
    /// Name of the source with the vocabulary.
    pub tokenizer: String,
    /// Name of the file that is written.
    pub to: String,
    /// How the matrices are stored.
    pub encoding: super::Encoding,
    /// Length of the written file in bytes.
    pub bytes: u64,
    /// SHA-256 seen where the conversion was tried. Informative: another maths library may differ in the last bit of the mel table.
    pub expected_sha256: String,
}

impl Manifest {
    /// Reads the manifest that was compiled in.
    ///
    /// # Errors
    /// [`ModelError::Manifest`] when the build carries a broken one (a unit test keeps that from happening).
    pub fn built_in() -> Result<Self, ModelError> {
        toml::from_str(MANIFEST).map_err(|error| ModelError::Manifest { why: error.to_string() })
    }

    /// The model of that name.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] with all the names there are.
    pub fn model(&self, id: &str) -> Result<&Model, ModelError> {
        self.models.iter().find(|model| model.id == id).ok_or_else(|| ModelError::Unknown {
            id: id.to_owned(),
            known: self.models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl Model {
    /// The installed files as name, length and (for files that are not converted) pinned SHA-256.
    pub fn installed(&self) -> impl Iterator<Item = (&str, u64, Option<&str>)> {
        let converted = self.convert.iter().map(|convert| (convert.to.as_str(), convert.bytes, None));
        let kept = self.sources.iter().filter(|source| source.keep);
        converted.chain(kept.map(|source| (source.name.as_str(), source.bytes, Some(source.sha256.as_str()))))
    }

    /// The file a program loads: the converted one, else the first kept one.
    pub fn main_file(&self) -> Option<&str> {
        self.installed().next().map(|(name, _, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_manifest_is_whole() {
        let manifest = Manifest::built_in().unwrap();
        assert!(manifest.models.iter().filter(|model| model.default).count() >= 2);
        for model in &manifest.models {
            assert!(model.main_file().is_some(), "{} installs nothing", model.id);
            assert!(!model.id.contains(['/', '\\']) && !model.id.starts_with('.'), "{} is a folder's name", model.id);
            for source in &model.sources {
                assert_eq!(source.sha256.len(), 64, "{}", source.name);
                assert!(!source.parts.is_empty() && source.bytes > 0, "{}", source.name);
                assert!(!source.name.contains('/'), "{}", source.name);
            }
            if let Some(convert) = &model.convert {
                for needed in [&convert.weights, &convert.tokenizer] {
                    assert!(model.sources.iter().any(|source| &source.name == needed), "{needed}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let manifest = Manifest::built_in().unwrap();
        let text = manifest.model("whisper-huge").unwrap_err().to_string();
        assert!(text.contains("whisper-huge") && text.contains("whisper-tiny.en") && text.contains("hibari"), "{text}");
    }
}
