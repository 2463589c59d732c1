//! Recorded speech of Debian packages: brought by `apt-get download`, unpacked beside the other things that can be brought again.
//!
//! Called by `eval listen --corpora` and `eval words`. Installs nothing, keeps nothing in the project; the packages' licences are
//! told in docs/hearing.md. Owns which files of a package are speech and in which language.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::audio::wav_file::MicFile;
use crate::media::wav;

/// What a recording holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// English speech.
    English,
    /// Speech in another language.
    Other,
    /// No speech: effects and music of games.
    Effects,
}

/// One package.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// Its name.
    pub package: &'static str,
    /// Part of the path of every recording in it that is used.
    under: &'static str,
    /// What a recording holds, by its path under the package.
    kind: fn(&str) -> Kind,
}

/// All of them. Sizes and licences: docs/hearing.md.
pub const SETS: &[Set] = &[
    Set { package: "pocketsphinx-testdata", under: "/test/data/", kind: |_| Kind::English },
    Set { package: "codec2-examples", under: "/codec2/wav/", kind: |_| Kind::English },
    Set { package: "asterisk-core-sounds-en-wav", under: "/sounds/", kind: |_| Kind::English },
    Set { package: "hedgewars-data", under: "/Data/", kind: hedgewars },
    Set { package: "klettres-data", under: "/klettres/", kind: klettres },
    Set { package: "tuxpaint-stamps-default", under: "/stamps/", kind: tuxpaint },
    Set { package: "asterisk-core-sounds-es-wav", under: "/sounds/", kind: |_| Kind::Other },
    Set { package: "asterisk-core-sounds-fr-wav", under: "/sounds/", kind: |_| Kind::Other },
    Set { package: "asterisk-core-sounds-it-wav", under: "/sounds/", kind: |_| Kind::Other },
    Set { package: "asterisk-core-sounds-ru-wav", under: "/sounds/", kind: |_| Kind::Other },
];

fn hedgewars(path: &str) -> Kind {
    let voice = path.split_once("/voices/").and_then(|(_, rest)| rest.split('/').next());
    match voice {
        None => Kind::Effects,
        Some(voice) if ["_es", "_pl", "_ru", "_uk"].iter().any(|end| voice.ends_with(end)) => Kind::Other,
        Some(_) => Kind::English,
    }
}

fn klettres(path: &str) -> Kind {
    if path.contains("/klettres/en/") || path.contains("/klettres/en_GB/") { Kind::English } else { Kind::Other }
}

/// "owl.ogg" is the sound of an owl, "owl_desc.ogg" its name in English, "owl_desc_fr.ogg" in French.
fn tuxpaint(path: &str) -> Kind {
    let stem = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or_default();
    let language = stem.rsplit('_').next().unwrap_or_default();
    let coded = stem.contains('_') && (language.len() == 2 || ["GB", "BR", "tw"].contains(&language));
    if stem.ends_with("_desc") || stem.ends_with("_en_GB") { Kind::English }
    else if coded && language.chars().all(|c| c.is_ascii_alphabetic()) { Kind::Other }
    else { Kind::Effects }
}

/// One recording.
#[derive(Clone, Debug)]
pub struct Clip {
    /// The package.
    pub set: &'static str,
    /// Its path under the package's folder.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds.
    pub kind: Kind,
}

/// Brings the packages that are not under `folder` yet.
///
/// # Errors
/// A sentence: which package could not be brought or unpacked, and what the program said.
pub fn fetch(folder: &Path, say: &mut dyn FnMut(&str)) -> Result<(), String> { bring(folder, SETS.iter().map(|set| set.package), say) }

/// As [`fetch`], for packages by their names.
pub(super) fn bring<'a>(folder: &Path, packages: impl IntoIterator<Item = &'a str>, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let debs = folder.join("debs");
    std::fs::create_dir_all(&debs).map_err(|e| format!("{}: {e}", debs.display()))?;
    for package in packages {
        let target = folder.join(package);
        if target.join("usr").is_dir() {
            continue;
        }
        say(&format!("bringing {package}"));
        let is_it = |name: &str| name.starts_with(&format!("{package}_")) && name.ends_with(".deb");
        let found = || std::fs::read_dir(&debs).ok()?.filter_map(Result::ok).map(|e| e.path()).find(|p| p.file_name().is_some_and(|n| is_it(&n.to_string_lossy())));
        if found().is_none() {
            run(Command::new("apt-get").arg("download").arg(package).current_dir(&debs))?;
        }
        let deb = found().ok_or_else(|| format!("apt-get download {package} brought no package"))?;
        // Unpacked beside and then renamed, so that a half unpacked one is not taken for whole.
        let half = folder.join(format!("{package}.part"));
        let _ = std::fs::remove_dir_all(&half);
        run(Command::new("dpkg").arg("-x").arg(&deb).arg(&half))?;
        let _ = std::fs::remove_dir_all(&target);
        std::fs::rename(&half, &target).map_err(|e| format!("{}: {e}", target.display()))?;
    }
    Ok(())
}

/// Runs a program; what it wrote on stderr is told when it fails.
pub(super) fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = format!("{command:?}");
    let out = command.output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() { Ok(out.stdout) } else { Err(format!("{name}: {}", String::from_utf8_lossy(&out.stderr).trim())) }
}

/// Every recording of the packages under `folder`: English first, and within a kind in an order that mixes packages and folders,
/// always the same, so that the first hour is a sample of the whole.
pub fn clips(folder: &Path) -> Vec<Clip> {
    let mut all = Vec::new();
    for set in SETS {
        let root = folder.join(set.package);
        let mut open = vec![root.clone()];
        while let Some(here) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&here) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
                let sound = path.extension().is_some_and(|x| x.eq_ignore_ascii_case("wav") || x.eq_ignore_ascii_case("ogg"));
                if kind.is_dir() {
                    open.push(path);
                } else if kind.is_file() && sound && format!("/{name}").contains(set.under) {
                    all.push(Clip { set: set.package, kind: (set.kind)(&name), name, path });
                }
            }
        }
    }
    all.sort_by_cached_key(|clip| (clip.kind, mixed(&clip.name), clip.name.clone()));
    all
}

/// FNV-1a: the same order on every machine.
fn mixed(text: &str) -> u64 { text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) }

/// The sound of a recording, mono i16, and its rate. What is no WAV is decoded by sox.
///
/// # Errors
/// A sentence.
pub fn decode(path: &Path) -> Result<(Vec<i16>, u32), String> {
    if path.extension().is_some_and(|x| x.eq_ignore_ascii_case("wav")) {
        let file = MicFile::open(path).map_err(|e| e.to_string())?;
        return Ok((file.between(0, file.length()).to_vec(), file.rate_hz()));
    }
    let bytes = run(Command::new("sox").arg("-V1").arg(path).args(["-t", "wav", "-b", "16", "-"]))?;
    let wav = wav::parse(&bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((wav.samples, wav.rate_hz))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_told_apart_by_their_names() {
        assert_eq!(hedgewars("usr/share/games/hedgewars/Data/Sounds/voices/British/Amazing.ogg"), Kind::English);
        assert_eq!(hedgewars("usr/share/games/hedgewars/Data/Sounds/voices/Default_es/Amazing.ogg"), Kind::Other);
        assert_eq!(hedgewars("usr/share/games/hedgewars/Data/Music/main.ogg"), Kind::Effects);
        assert_eq!(klettres("usr/share/klettres/en_GB/alpha/a.ogg"), Kind::English);
        assert_eq!(klettres("usr/share/klettres/nds/alpha/a.ogg"), Kind::Other);
        let stamps = [("owl.ogg", Kind::Effects), ("owl_desc.ogg", Kind::English), ("7_en_GB.ogg", Kind::English), ("owl_desc_fr.ogg", Kind::Other), ("lettuce_desc_pt_BR.wav", Kind::Other), ("Washing-machine.ogg", Kind::Effects)];
        for (name, kind) in stamps { assert_eq!(tuxpaint(&format!("stamps/{name}")), kind, "{name}") }
    }
}
