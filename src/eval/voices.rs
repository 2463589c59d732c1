//! Who speaks the cases: synthetic voices of six engines, fixed halves for fitting and for judging, and the cache of their clips.
//!
//! Called by `eval::commands` and whoever else measures with speech. A voice that cannot be made is an error that names what
//! brings it, never a gap. Clips are mono i16 at 16 kHz with at most 40 ms of quiet at either end.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use misaki_rs::{G2P, Language};

use super::kept_voice::trimmed;
use super::piper::Piper;
use crate::config;
use crate::media::resample::resample_all;
use crate::media::wav;
use crate::models::{Store, sha256_hex};
use crate::tts::hibari::Hibari;

/// Samples a second of every clip.
pub const RATE_HZ: u32 = 16_000;
/// Part of every clip's key: raised when the way from a text to a clip changes.
const REVISION: &str = "1";
/// Samples a second of Kokoro.
const KOKORO_RATE_HZ: u32 = 24_000;
/// Kept out of everything that is fitted or judged here, for independent checks.
pub const RESERVED: &[&str] = &["am_fenrir", "am_puck", "af_bella", "bf_emma", "bm_george"];

/// What makes the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The product's own voice.
    Hibari,
    /// Piper's VITS, on rten, phonemes by espeak-ng.
    Piper,
    /// Kokoro-82M, by a Python program with onnxruntime.
    Kokoro,
    /// The flite program.
    Flite,
    /// The espeak-ng program: formants.
    Espeak,
    /// The festival program with an HTS voice.
    Festival,
}

/// What a voice is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Thresholds and spellings are chosen on these.
    Tune,
    /// Figures are told of these.
    Judge,
}

/// One voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voice {
    /// Its name in tables and in the cache.
    pub name: &'static str,
    /// What makes it.
    pub engine: Engine,
    /// What the engine calls it.
    pub key: &'static str,
    /// Its half.
    pub side: Side,
}

impl Voice {
    /// Neural voices sound like people; the old ones are a stress test.
    pub fn is_neural(&self) -> bool { matches!(self.engine, Engine::Hibari | Engine::Piper | Engine::Kokoro) }

    /// One voice each of three engines that are quick to make: what a short run uses.
    pub fn is_quick(&self) -> bool { ["hibari", "flite-slt", "espeak-us"].contains(&self.name) }
}

const fn voice(name: &'static str, engine: Engine, key: &'static str, side: Side) -> Voice { Voice { name, engine, key, side } }

/// Every voice. Hibari was distilled from Kokoro's af_heart, so both are in the same half.
pub const VOICES: &[Voice] = &[
    voice("hibari", Engine::Hibari, "", Side::Tune), voice("flite-slt", Engine::Flite, "slt", Side::Tune), voice("flite-kal16", Engine::Flite, "kal16", Side::Tune),
    voice("espeak-us", Engine::Espeak, "en-us", Side::Tune), voice("espeak-scotland", Engine::Espeak, "en-gb-scotland", Side::Tune),
    voice("espeak-us-f3", Engine::Espeak, "en-us+f3", Side::Tune), voice("kokoro-heart", Engine::Kokoro, "af_heart", Side::Tune),
    voice("kokoro-onyx", Engine::Kokoro, "am_onyx", Side::Tune),
    voice("piper-joe", Engine::Piper, "", Side::Judge), voice("flite-rms", Engine::Flite, "rms", Side::Judge), voice("flite-awb", Engine::Flite, "awb", Side::Judge),
    voice("espeak-gb", Engine::Espeak, "en-gb", Side::Judge), voice("espeak-us-m3", Engine::Espeak, "en-us+m3", Side::Judge),
    voice("festival-slt", Engine::Festival, "cmu_us_slt_arctic_hts", Side::Judge),
    voice("kokoro-michael", Engine::Kokoro, "am_michael", Side::Judge), voice("kokoro-isabella", Engine::Kokoro, "bf_isabella", Side::Judge),
];

/// The voices of these names; all where none is named.
///
/// # Errors
/// A sentence: the name that is none, or that is reserved.
pub fn choose(names: &[String]) -> Result<Vec<Voice>, String> {
    let reserved = |name: &&String| RESERVED.iter().any(|r| name.contains(r) || r.ends_with(name.trim_start_matches("kokoro-")));
    if let Some(name) = names.iter().find(reserved) {
        return Err(format!("{name} is kept out of every measurement here, for independent checks"));
    }
    if names.is_empty() { return Ok(VOICES.to_vec()) }
    let one = |name: &String| VOICES.iter().find(|v| v.name == name).copied();
    names.iter().map(|name| one(name).ok_or_else(|| format!("there is no voice {name}; there are: {}", VOICES.iter().map(|v| v.name).collect::<Vec<_>>().join(", ")))).collect()
}

/// Where what measures keeps its clips, transcripts and further voices: `$XDG_CACHE_HOME/voxgate/eval`.
///
/// # Errors
/// A sentence when neither variable is set.
pub fn cache_dir() -> Result<PathBuf, String> {
    config::cache_dir(&config::environment()).map(|c| c.join("eval")).ok_or_else(|| "no cache folder: set XDG_CACHE_HOME or HOME".into())
}

/// Makes clips and keeps them.
pub struct Clips {
    folder: PathBuf,
    models: PathBuf,
    hibari: OnceLock<Hibari>,
    piper: OnceLock<Piper>,
}

impl Clips {
    /// Clips kept under `folder`, made with the weights in `models`.
    pub fn new(folder: &Path, models: &Path) -> Self {
        Self { folder: folder.into(), models: models.into(), hibari: OnceLock::new(), piper: OnceLock::new() }
    }

    /// A text in a voice, from the cache where it is there.
    ///
    /// # Errors
    /// A sentence that names what is missing and the command that brings it.
    pub fn say(&self, voice: &Voice, text: &str) -> Result<Vec<i16>, String> {
        let path = self.path(voice, text);
        if let Ok(bytes) = std::fs::read(&path) {
            return wav::parse(&bytes).map(|w| w.samples).map_err(|e| format!("{}: {e}", path.display()));
        }
        if voice.engine == Engine::Kokoro {
            self.bring(&[(*voice, text.to_owned())])?;
            let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            return wav::parse(&bytes).map(|w| w.samples).map_err(|e| format!("{}: {e}", path.display()));
        }
        let (samples, rate_hz) = match voice.engine {
            Engine::Hibari => self.hibari()?.speak(text).map(|s| (s.samples, s.rate_hz)).map_err(|e| e.to_string())?,
            Engine::Piper => self.piper()?.speak(text, 1.0)?,
            Engine::Flite => program("flite", &["-voice", voice.key, "-t", text, "-o", OUT], "flite")?,
            Engine::Espeak => program("espeak-ng", &["-v", voice.key, "-s", "160", "-w", OUT, "--", text], "espeak-ng")?,
            Engine::Festival => festival(voice.key, text)?,
            Engine::Kokoro => return Err("a clip of Kokoro is brought before it is asked for".into()),
        };
        self.keep(&path, &samples, rate_hz)
    }

    /// Makes what is not there yet of Kokoro's, in one run of its program. Tells how many it made.
    ///
    /// # Errors
    /// A sentence: the program or its weights are missing (and what brings them), or it failed.
    pub fn bring(&self, wanted: &[(Voice, String)]) -> Result<usize, String> {
        let missing: Vec<_> = wanted.iter().filter(|(v, t)| v.engine == Engine::Kokoro && !self.path(v, t).is_file()).collect();
        if missing.is_empty() { return Ok(0) }
        let home = kokoro_dir()?;
        let python = home.join("bin/python");
        if !python.is_file() || !home.join("kokoro.onnx").is_file() {
            return Err(format!("Kokoro is not here; bring it with: scripts/prepare eval {}", home.display()));
        }
        let mut child = Command::new(&python).arg("-c").arg(KOKORO).arg(&home).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|e| format!("{}: {e}", python.display()))?;
        let (Some(mut asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else { return Err("Kokoro has no pipes".into()) };
        let mut answers = BufReader::new(answers).lines();
        let scratch = tempdir()?;
        let mut spellers = Spellers::new(&self.models)?;
        for (voice, text) in &missing {
            if RESERVED.contains(&voice.key) { return Err(format!("{} is reserved", voice.key)) }
            let file = scratch.join("out.wav");
            let ids = spellers.ids(text, voice.key.starts_with('b'))?;
            let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            writeln!(asks, "{}\t{}\t{ids}", voice.key, file.display()).and_then(|()| asks.flush()).map_err(|e| format!("Kokoro: {e}"))?;
            match answers.next() {
                Some(Ok(line)) if line == "ok" => {}
                other => return Err(format!("Kokoro did not speak {text:?}: {other:?}; bring it anew with: scripts/prepare eval {}", home.display())),
            }
            let sound = std::fs::read(&file).map_err(|e| e.to_string()).and_then(|b| wav::parse(&b).map_err(|e| e.to_string()))?;
            self.keep(&self.path(voice, text), &sound.samples, KOKORO_RATE_HZ)?;
        }
        drop(asks);
        let _ = child.wait();
        let _ = std::fs::remove_dir_all(&scratch);
        Ok(missing.len())
    }

    fn hibari(&self) -> Result<&Hibari, String> {
        if self.hibari.get().is_none() {
            let file = self.model("hibari")?;
            let loaded = Hibari::load(file.parent().unwrap_or(Path::new(".")), 1.0).map_err(|e| e.to_string())?;
            let _ = self.hibari.set(loaded);
        }
        self.hibari.get().ok_or_else(|| "the voice is not loaded".into())
    }

    fn piper(&self) -> Result<&Piper, String> {
        if self.piper.get().is_none() {
            let _ = self.piper.set(Piper::load(&self.model("piper-joe")?)?);
        }
        self.piper.get().ok_or_else(|| "the voice is not loaded".into())
    }

    fn model(&self, id: &str) -> Result<PathBuf, String> { Store::new(&self.models).and_then(|s| s.main_file(id)).map_err(|e| e.to_string()) }

    fn path(&self, voice: &Voice, text: &str) -> PathBuf {
        let readable: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(40).collect();
        let key = sha256_hex([REVISION, voice.name, voice.key, text].join("\n").as_bytes());
        self.folder.join("clips").join(voice.name).join(format!("{readable}-{}.wav", &key[..16]))
    }

    fn keep(&self, path: &Path, samples: &[i16], rate_hz: u32) -> Result<Vec<i16>, String> {
        let sound = trimmed(&resample_all(samples, rate_hz, RATE_HZ));
        if sound.len() < 1_600 { return Err(format!("{} said nothing", path.display())) }
        let told = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(told)?;
        // Whole or not at all: another run may write the same clip.
        let own = path.with_extension(format!("{}.part", std::process::id()));
        std::fs::write(&own, wav::write(RATE_HZ, &sound)).and_then(|()| std::fs::rename(&own, path)).map_err(told)?;
        Ok(sound)
    }
}

/// Where `scripts/prepare eval` puts Kokoro: `$VOXGATE_KOKORO`, else `kokoro` beside the clips.
fn kokoro_dir() -> Result<PathBuf, String> {
    let given = config::variable(&config::environment(), "VOXGATE_KOKORO").filter(|v| !v.is_empty());
    given.map_or_else(|| Ok(cache_dir()?.join("kokoro")), |dir| Ok(dir.into()))
}

/// Reads "voice, file, ids" lines, writes each sound, answers "ok".
const KOKORO: &str = include_str!("kokoro.py");

/// Misaki's American and British readings in Kokoro's alphabet, which is hibari's.
struct Spellers {
    readers: [G2P; 2],
    alphabet: serde_json::Map<String, serde_json::Value>,
}

impl Spellers {
    fn new(models: &Path) -> Result<Self, String> {
        let file = Store::new(models).and_then(|s| s.main_file("hibari")).map_err(|e| e.to_string())?.with_file_name("vocab.json");
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}; bring it with: voxgate models get hibari", file.display()))?;
        let alphabet = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { readers: [G2P::new(Language::EnglishUS), G2P::new(Language::EnglishGB)], alphabet })
    }

    fn ids(&mut self, text: &str, british: bool) -> Result<Vec<i64>, String> {
        let (phonemes, _) = self.readers[usize::from(british)].g2p(text).map_err(|e| e.to_string())?;
        let ids: Vec<i64> = phonemes.chars().filter_map(|c| self.alphabet.get(&c.to_string())?.as_i64()).collect();
        if ids.is_empty() { Err(format!("{text:?} has no phonemes")) } else { Ok(ids) }
    }
}

/// Stands for the file that a program is to write.
const OUT: &str = "\0out";

fn program(name: &str, args: &[&str], package: &str) -> Result<(Vec<i16>, u32), String> {
    let scratch = tempdir()?;
    let file = scratch.join("out.wav");
    let args: Vec<&std::ffi::OsStr> = args.iter().map(|a| if *a == OUT { file.as_os_str() } else { std::ffi::OsStr::new(*a) }).collect();
    let done = Command::new(name).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let sound = match done {
        Ok(status) if status.success() => std::fs::read(&file).map_err(|e| e.to_string()).and_then(|b| wav::parse(&b).map_err(|e| e.to_string())),
        Ok(status) => Err(status.to_string()),
        Err(e) => Err(e.to_string()),
    };
    let _ = std::fs::remove_dir_all(&scratch);
    sound.map(|s| (s.samples, s.rate_hz)).map_err(|e| format!("{name} cannot speak ({e}); bring it with: apt-get install {package}"))
}

fn festival(voice: &str, text: &str) -> Result<(Vec<i16>, u32), String> {
    let scratch = tempdir()?;
    let file = scratch.join("text");
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let choose = format!("(voice_{voice})");
    let sound = program("text2wave", &["-eval", &choose, "-o", OUT, &file.to_string_lossy()], "festival festvox-us-slt-hts");
    let _ = std::fs::remove_dir_all(&scratch);
    sound
}

fn tempdir() -> Result<PathBuf, String> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let path = std::env::temp_dir().join(format!("voxgate-eval-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_share_out_the_engines_and_no_reserved_voice_is_in_them() {
        let of = |side| VOICES.iter().filter(move |v| v.side == side);
        for side in [Side::Tune, Side::Judge] {
            let engines: std::collections::HashSet<_> = of(side).map(|v| v.engine).collect();
            assert!(of(side).count() >= 8 && engines.len() >= 4, "{side:?}");
        }
        assert!(VOICES.iter().all(|v| !RESERVED.contains(&v.key)));
        for name in ["am_puck", "kokoro-emma", "kokoro-af_bella"] {
            assert!(choose(&[name.to_owned()]).is_err_and(|e| e.contains("independent")), "{name}");
        }
        assert!(choose(&["parrot".to_owned()]).is_err_and(|e| e.contains("hibari, ")));
    }
}
