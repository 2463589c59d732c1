//! The models folder: what is there, bringing what is not, checking what is.
//!
//! Owns `<folder>/<id>/`. Two processes may bring the same model at once: a lock file makes one wait for the other, and files
//! appear under their names only when they are whole.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::manifest::{Conversion, Manifest, Model};
use super::verify::{compare, hash_file};
use super::{Kind, ModelError, fetch, sha256_hex, to_ggml};

/// A models folder.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    manifest: Manifest,
}

/// One line of `voxgate models list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name to use.
    pub id: String,
    /// What it is for.
    pub kind: Kind,
    /// A line for a person.
    pub about: String,
    /// Its licence.
    pub licence: String,
    /// True when it is brought without being named.
    pub default: bool,
    /// Bytes on the disk when it is there.
    pub bytes: u64,
    /// Whether it is there.
    pub state: State,
}

/// Whether a model is there, judged by names and lengths alone ([`Store::verify`] reads everything).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Every file has its length.
    Here,
    /// No file is there.
    Missing,
    /// Some are, or one has another length.
    Incomplete,
}

/// What [`Store::get`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: it was there and sound.
    AlreadyHere,
    /// Brought it.
    Brought,
}

impl Store {
    /// The store in that folder, which need not exist yet.
    ///
    /// # Errors
    /// [`ModelError::Manifest`] when the build is broken.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, ModelError> {
        Ok(Self { root: root.into(), manifest: Manifest::built_in()? })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything this build knows how to bring.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where a file of a model lies, if it is there with its length. Looks, does not read.
    ///
    /// # Errors
    /// [`ModelError::Unknown`], [`ModelError::Missing`] (its text names the command) or [`ModelError::Damaged`].
    pub fn path(&self, id: &str, file: &str) -> Result<PathBuf, ModelError> {
        let model = self.manifest.model(id)?;
        let path = self.folder(id).join(file);
        let pinned = model.installed().find(|(name, _, _)| *name == file).map(|(_, bytes, _)| bytes);
        match std::fs::metadata(&path) {
            Ok(found) if pinned.is_none_or(|bytes| bytes == found.len()) => Ok(path),
            Ok(found) => {
                let why = format!("{} bytes, wanted {}", found.len(), pinned.unwrap_or(0));
                Err(ModelError::Damaged { id: id.to_owned(), path, why })
            }
            Err(_) => Err(ModelError::Missing { id: id.to_owned(), path }),
        }
    }

    /// Where the file that a program loads lies: the ggml file of a listener, the network of a voice.
    ///
    /// # Errors
    /// As [`Store::path`].
    pub fn main_file(&self, id: &str) -> Result<PathBuf, ModelError> {
        let file = self.manifest.model(id)?.main_file().unwrap_or("model").to_owned();
        self.path(id, &file)
    }

    /// Reads a file of a model and checks it against its pinned hash (or the one written at conversion), on the bytes returned.
    ///
    /// # Errors
    /// As [`Store::path`], and [`ModelError::Io`].
    pub fn read(&self, id: &str, file: &str) -> Result<Vec<u8>, ModelError> {
        let path = self.path(id, file)?;
        let wanted = self.wanted_hash(id, file, &path)?;
        let bytes = std::fs::read(&path).map_err(ModelError::io(&path))?;
        compare(&path, &wanted, &sha256_hex(&bytes))?;
        Ok(bytes)
    }

    fn wanted_hash(&self, id: &str, file: &str, path: &Path) -> Result<String, ModelError> {
        let model = self.manifest.model(id)?;
        if let Some((_, _, Some(pinned))) = model.installed().find(|(name, _, _)| *name == file) {
            return Ok(pinned.to_owned());
        }
        let beside = hash_file(path);
        let text = std::fs::read_to_string(&beside).map_err(|why| ModelError::Damaged {
            id: id.to_owned(),
            path: path.to_owned(),
            why: format!("{}: {why}", beside.display()),
        })?;
        Ok(text.trim().to_owned())
    }

    /// Reads every file of a model and compares its hash. Returns name and SHA-256 of each.
    ///
    /// # Errors
    /// The first thing that is wrong, as [`Store::read`].
    pub fn verify(&self, id: &str) -> Result<Vec<(String, String)>, ModelError> {
        let model = self.manifest.model(id)?;
        let names = model.installed().map(|(name, _, _)| name.to_owned()).collect::<Vec<_>>();
        names.into_iter().map(|name| Ok((name.clone(), sha256_hex(&self.read(id, &name)?)))).collect()
    }

    /// All models with their state.
    pub fn list(&self) -> Vec<Listing> {
        self.manifest.models.iter().map(|model| Listing {
            id: model.id.clone(),
            kind: model.kind,
            about: model.about.clone(),
            licence: model.licence.clone(),
            default: model.default,
            bytes: model.installed().map(|(_, bytes, _)| bytes).sum(),
            state: self.state(model),
        }).collect()
    }

    fn state(&self, model: &Model) -> State {
        let total = model.installed().count();
        let here = model.installed().filter(|(name, _, _)| self.path(&model.id, name).is_ok()).count();
        let any = model.installed().any(|(name, _, _)| self.folder(&model.id).join(name).exists());
        match here {
            _ if here == total => State::Here,
            0 if !any => State::Missing,
            _ => State::Incomplete,
        }
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// Brings a model unless it is there and sound. `progress` gets a line for a person at each step.
    ///
    /// # Errors
    /// Any [`ModelError`] but `Missing`; what was there before stays as it was.
    pub fn get(&self, id: &str, progress: &mut dyn FnMut(&str)) -> Result<Outcome, ModelError> {
        self.get_from(id, None, progress)
    }

    /// As [`Store::get`], but takes wheels or plain source files out of a folder instead of downloading.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn get_from(&self, id: &str, from: Option<&Path>, progress: &mut dyn FnMut(&str)) -> Result<Outcome, ModelError> {
        let model = self.manifest.model(id)?;
        let folder = self.folder(id);
        std::fs::create_dir_all(&folder).map_err(ModelError::io(&folder))?;
        let _lock = lock(&folder, id, progress)?;
        if self.verify(id).is_ok() {
            return Ok(Outcome::AlreadyHere);
        }
        let work = Workshop::open(&folder)?;
        let from = match from {
            Some(from) => from,
            None => {
                fetch::download(model, &work.0, progress)?;
                &work.0
            }
        };
        self.install(model, from, &work, progress)?;
        Ok(Outcome::Brought)
    }

    fn install(&self, model: &Model, from: &Path, work: &Workshop, progress: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        let folder = self.folder(&model.id);
        for source in model.sources.iter().filter(|source| source.keep) {
            progress(&format!("{}: checking {}", model.id, source.name));
            work.place(&folder, &source.name, &fetch::read_source(source, from)?)?;
        }
        if let Some(convert) = &model.convert {
            let bytes = convert_model(model, convert, from, progress)?;
            let hash = sha256_hex(&bytes);
            if hash != convert.expected_sha256 {
                progress(&format!("{}: the result differs in rounding from the one this was tried with", model.id));
            }
            // The hash first: a file without its hash would be taken for damaged, a hash without its file for missing.
            let beside = hash_file(Path::new(&convert.to));
            work.place(&folder, &beside.to_string_lossy(), hash.as_bytes())?;
            work.place(&folder, &convert.to, &bytes)?;
        }
        progress(&format!("{}: ready in {}", model.id, folder.display()));
        Ok(())
    }
}

fn convert_model(
    model: &Model, convert: &Conversion, from: &Path, progress: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, ModelError> {
    let source = |name: &str| {
        let found = model.sources.iter().find(|source| source.name == name);
        let source = found.ok_or_else(|| ModelError::Manifest { why: format!("{} has no source {name}", model.id) })?;
        fetch::read_source(source, from)
    };
    progress(&format!("{}: checking the weights", model.id));
    let (weights, tokenizer) = (source(&convert.weights)?, source(&convert.tokenizer)?);
    progress(&format!("{}: converting to {}", model.id, convert.to));
    let failed = |why| ModelError::Convert { id: model.id.clone(), why };
    let bytes = to_ggml(&weights, &String::from_utf8_lossy(&tokenizer), convert.encoding).map_err(failed)?;
    super::check_header(&bytes).map_err(|why| ModelError::Header { path: PathBuf::from(&convert.to), why })?;
    Ok(bytes)
}

/// Waits until this process alone may change the folder. The lock goes with the returned file, also when the process dies.
fn lock(folder: &Path, id: &str, progress: &mut dyn FnMut(&str)) -> Result<File, ModelError> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(ModelError::io(&path))?;
    if file.try_lock().is_err() {
        progress(&format!("{id}: another process is bringing it; waiting"));
        file.lock().map_err(ModelError::io(&path))?;
    }
    Ok(file)
}

/// A folder for unfinished files inside the model's folder (so that a rename stays on one file system), removed at the end.
struct Workshop(PathBuf);

impl Workshop {
    fn open(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(".work");
        // The lock is ours, so one that is already there was left by a process that died.
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(ModelError::io(&path))?;
        }
        std::fs::create_dir(&path).map_err(ModelError::io(&path))?;
        Ok(Self(path))
    }

    /// Writes a file whole, then gives it its name.
    fn place(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ModelError> {
        let unfinished = self.0.join(format!("{name}.part"));
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&unfinished, folder.join(name))
        };
        write().map_err(ModelError::io(&unfinished))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::manifest::{Part, Source};

    fn store(root: &Path, bytes: &[u8]) -> Store {
        let source = Source {
            name: "v.onnx".into(),
            keep: true,
            bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
            parts: vec![Part { package: "p".into(), version: "1".into(), path: "v".into() }],
        };
        let model = Model {
            id: "voice".into(),
            kind: Kind::Voice,
            about: "a test".into(),
            licence: "none".into(),
            default: false,
            hub: None,
            sources: vec![source],
            convert: None,
        };
        Store { root: root.to_owned(), manifest: Manifest { models: vec![model] } }
    }

    #[test]
    fn a_model_is_missing_then_brought_then_found() {
        let (root, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(from.path().join("v.onnx"), b"weights").unwrap();
        let store = store(root.path(), b"weights");
        assert_eq!(store.list()[0].state, State::Missing);
        let error = store.path("voice", "v.onnx").unwrap_err().to_string();
        assert!(error.contains("voxgate models get voice"), "{error}");
        let mut lines = Vec::new();
        let mut get = || store.get_from("voice", Some(from.path()), &mut |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(get(), Outcome::Brought);
        assert_eq!(get(), Outcome::AlreadyHere);
        assert!(!lines.is_empty());
        assert_eq!(store.list()[0].state, State::Here);
        assert_eq!(store.read("voice", "v.onnx").unwrap(), b"weights");
        assert!(!root.path().join("voice/.work").exists());
    }

    #[test]
    fn damage_is_seen_and_mended() {
        let (root, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(from.path().join("v.onnx"), b"weights").unwrap();
        let store = store(root.path(), b"weights");
        store.get_from("voice", Some(from.path()), &mut |_| ()).unwrap();
        let path = root.path().join("voice/v.onnx");
        std::fs::write(&path, b"weightz").unwrap();
        assert!(matches!(store.verify("voice"), Err(ModelError::Damaged { .. })));
        std::fs::write(&path, b"weight").unwrap();
        assert!(matches!(store.path("voice", "v.onnx"), Err(ModelError::Damaged { .. })));
        assert_eq!(store.list()[0].state, State::Incomplete);
        assert_eq!(store.get_from("voice", Some(from.path()), &mut |_| ()).unwrap(), Outcome::Brought);
        assert!(store.verify("voice").is_ok());
    }

    #[test]
    fn wrong_bytes_are_never_installed() {
        let (root, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(from.path().join("v.onnx"), b"other!!").unwrap();
        let store = store(root.path(), b"weights");
        assert!(matches!(store.get_from("voice", Some(from.path()), &mut |_| ()), Err(ModelError::Package { .. })));
        assert!(!root.path().join("voice/v.onnx").exists());
    }

    #[test]
    fn many_at_once_bring_it_once() {
        let (root, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(from.path().join("v.onnx"), b"weights").unwrap();
        let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let one = || store(root.path(), b"weights").get_from("voice", Some(from.path()), &mut |_| ()).unwrap();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|each| each.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Brought).count(), 1);
    }
}
