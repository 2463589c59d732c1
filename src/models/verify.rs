//! Reads a model file and makes sure that it is what it should be, on the very bytes that are handed on.
//!
//! Owns hashing and the `FILE.sha256` that a conversion leaves beside its result. Called before every load. Never changes a file.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Head, ModelError, header};

/// A model file's bytes after the check, ready to be given to a loader.
#[derive(Debug)]
pub struct Checked {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
    /// True when the hash was compared with the one written at conversion; false for a person's own file.
    pub pinned: bool,
    /// What its head says.
    pub head: Head,
}

/// SHA-256 of some bytes as lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where the hash of a converted file is kept: `FILE.sha256`.
pub(super) fn hash_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    PathBuf::from(name)
}

/// Reads a ggml Whisper file and checks its structure, and its hash where one was written beside it.
///
/// # Errors
/// [`ModelError::NoFile`], [`ModelError::Missing`] when its folder belongs to a known model, [`ModelError::Damaged`],
/// [`ModelError::Header`] or [`ModelError::Io`].
pub fn read_checked(path: &Path) -> Result<Checked, ModelError> {
    let bytes = std::fs::read(path).map_err(|why| missing_or_io(path, why))?;
    let sha256 = sha256_hex(&bytes);
    let beside = hash_file(path);
    let pinned = match std::fs::read_to_string(&beside) {
        Ok(wanted) => {
            compare(path, wanted.trim(), &sha256)?;
            true
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => false,
        Err(why) => return Err(ModelError::Io { path: beside, why }),
    };
    let head = header::check(&bytes).map_err(|why| ModelError::Header { path: path.to_owned(), why })?;
    Ok(Checked { bytes, sha256, pinned, head })
}

/// An error about a file that names the command when the file belongs to a model we can bring.
fn missing_or_io(path: &Path, why: std::io::Error) -> ModelError {
    if why.kind() != std::io::ErrorKind::NotFound {
        return ModelError::Io { path: path.to_owned(), why };
    }
    let id = folder_name(path);
    match super::Manifest::built_in() {
        Ok(known) if known.model(&id).is_ok() => ModelError::Missing { id, path: path.to_owned() },
        _ => ModelError::NoFile { path: path.to_owned() },
    }
}

fn folder_name(path: &Path) -> String {
    path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Compares two hashes.
pub(super) fn compare(path: &Path, wanted: &str, found: &str) -> Result<(), ModelError> {
    if wanted == found {
        return Ok(());
    }
    let why = format!("sha256 {found}, wanted {wanted}");
    Err(ModelError::Damaged { id: folder_name(path), path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_lower_case_hex() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_missing_file_of_a_known_model_names_the_command() {
        let error = read_checked(Path::new("/nonexistent/whisper-tiny.en/ggml.bin")).unwrap_err().to_string();
        assert!(error.contains("voxgate models get whisper-tiny.en"), "{error}");
        let error = read_checked(Path::new("/nonexistent/mine/ggml.bin")).unwrap_err();
        assert!(matches!(error, ModelError::NoFile { .. }), "{error}");
    }

    #[test]
    fn a_hash_beside_the_file_is_binding_and_the_structure_always_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.bin");
        std::fs::write(&path, b"not a model").unwrap();
        assert!(matches!(read_checked(&path), Err(ModelError::Header { .. })));
        std::fs::write(hash_file(&path), "00").unwrap();
        assert!(matches!(read_checked(&path), Err(ModelError::Damaged { .. })));
    }
}
