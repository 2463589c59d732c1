//! Synthesised speech for tests: voices of four engines, and a listener that made none of it to judge what was said.
//!
//! Mono i16 at 16 kHz. What was said once lies under the target folder by voice and text, so only the first run waits for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use voxgate::engine::apart::apart;
use voxgate::engine::grammar::words_of;
use voxgate::eval::kept_voice::trimmed;
use voxgate::eval::piper::Piper;
use voxgate::media::resample::resample_all;
use voxgate::media::wav;
use voxgate::models::Store;
use voxgate::stt::{Job, PoolConfig, Recogniser, WhisperPool};
use voxgate::tts::hibari::Hibari;

/// Samples a second of all speech here.
pub const RATE_HZ: u32 = 16_000;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The product's own voice, on rten.
    Hibari,
    /// Piper's en_US-joe: a VITS model on rten, phonemes by espeak-ng.
    PiperJoe,
    /// The flite program's slt: unit selection.
    FliteSlt,
    /// The espeak-ng program: formants.
    Espeak,
}

/// How fast somebody speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Usual,
    /// A fifth slower, as one says again what was not understood.
    Slower,
}

impl Pace {
    fn stretch(self) -> f32 { if self == Pace::Slower { 1.2 } else { 1.0 } }
}

impl Speaker {
    pub fn name(self) -> &'static str {
        match self {
            Speaker::Hibari => "hibari",
            Speaker::PiperJoe => "piper-joe",
            Speaker::FliteSlt => "flite-slt",
            Speaker::Espeak => "espeak-en-us",
        }
    }

    /// The text, spoken, with no more than 40 ms of quiet at either end.
    pub fn say(self, text: &str) -> Vec<i16> { self.say_at(text, Pace::Usual) }

    /// As [`Speaker::say`], at this pace.
    pub fn say_at(self, text: &str, pace: Pace) -> Vec<i16> {
        let path = cache(self.name(), pace, text);
        if let Ok(bytes) = std::fs::read(&path) {
            return wav::parse(&bytes).expect("a sound of the cache").samples;
        }
        let (samples, rate_hz) = match self {
            Speaker::Hibari => hibari(text, pace),
            Speaker::PiperJoe => piper(text, pace.stretch()),
            Speaker::FliteSlt => flite(text, pace),
            Speaker::Espeak => espeak(text, pace),
        };
        let sound = trimmed(&resample_all(&samples, rate_hz, RATE_HZ));
        assert!(sound.len() > 1_600, "{} said nothing for {text:?}", self.name());
        keep(&path, &wav::write(RATE_HZ, &sound));
        sound
    }
}

/// `n` milliseconds of nothing.
pub fn quiet(ms: u64) -> Vec<i16> { vec![0; (ms * u64::from(RATE_HZ) / 1000) as usize] }

fn cache(voice: &str, pace: Pace, text: &str) -> PathBuf {
    let readable: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(40).collect();
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("speech").join(voice).join(format!("{readable}-{number:016x}-{pace:?}.wav"))
}

/// Whole or not at all: tests run beside each other.
fn keep(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("the cache's folder");
    let mut file = tempfile::NamedTempFile::new_in(folder).expect("a file in the cache");
    std::io::Write::write_all(&mut file, bytes).expect("room in the cache");
    file.persist(path).expect("a file in the cache");
}

/// The folder of all weights.
pub fn models_dir() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("VOXGATE_MODELS").unwrap_or_else(|| {
        let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        cache.expect("HOME is set").join("voxgate/models")
    })
}

/// A model's main file; a missing one fails the test with the command that brings it.
pub fn model(id: &str) -> PathBuf {
    Store::new(models_dir()).and_then(|store| store.main_file(id)).unwrap_or_else(|error| panic!("{error}"))
}

fn hibari(text: &str, pace: Pace) -> (Vec<i16>, u32) {
    static VOICES: [OnceLock<Hibari>; 2] = [const { OnceLock::new() }; 2];
    let load = || Hibari::load(model("hibari").parent().expect("a folder"), 1.0 / pace.stretch()).expect("the voice loads");
    let voice = VOICES[usize::from(pace == Pace::Slower)].get_or_init(load);
    let speech = voice.speak(text).expect("it speaks");
    (speech.samples, speech.rate_hz)
}

fn flite(text: &str, pace: Pace) -> (Vec<i16>, u32) {
    let file = tempfile::Builder::new().suffix(".wav").tempfile().expect("a file");
    let stretch = format!("duration_stretch={:.2}", pace.stretch());
    let done = Command::new("flite").args(["-voice", "slt", "--setf", &stretch, "-t", text, "-o"]).arg(file.path()).status();
    assert!(done.is_ok_and(|status| status.success()), "flite cannot speak; bring it with: apt-get install flite");
    let sound = wav::parse(&std::fs::read(file.path()).expect("flite's file")).expect("flite's sound");
    (sound.samples, sound.rate_hz)
}

fn espeak(text: &str, pace: Pace) -> (Vec<i16>, u32) {
    let words_a_minute = format!("{:.0}", 160.0 / pace.stretch());
    let sound = wav::parse(&espeak_ng(&["-v", "en-us", "-s", &words_a_minute, "--stdout", text])).expect("espeak-ng's sound");
    (sound.samples, sound.rate_hz)
}

fn espeak_ng(args: &[&str]) -> Vec<u8> {
    let done = Command::new("espeak-ng").args(args).stderr(Stdio::inherit()).output();
    match done {
        Ok(output) if output.status.success() => output.stdout,
        other => panic!("espeak-ng cannot be run ({other:?}); bring it with: apt-get install espeak-ng"),
    }
}

/// Piper's voice, loaded once.
fn piper(text: &str, stretch: f32) -> (Vec<i16>, u32) {
    static JOE: OnceLock<Piper> = OnceLock::new();
    let joe = JOE.get_or_init(|| Piper::load(&model("piper-joe")).unwrap_or_else(|e| panic!("{e}")));
    joe.speak(text, stretch).unwrap_or_else(|e| panic!("{e}"))
}

/// A listener that shares nothing with the one under test but its kind: Whisper base, in a process of its own.
pub struct Judge {
    runtime: tokio::runtime::Runtime,
    pool: WhisperPool,
}

impl Judge {
    pub fn new() -> Judge {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let config = PoolConfig::new(env!("CARGO_BIN_EXE_voxgate"), model("whisper-base"), Vec::new());
        let pool = runtime.block_on(WhisperPool::start(config)).unwrap_or_else(|error| panic!("{error}"));
        Judge { runtime, pool }
    }

    /// What it writes of a sound at this rate.
    pub fn hears(&self, sound: &[i16], rate_hz: u32) -> String {
        // The product's voice says the same text with the same samples, in every conversation: those are judged once.
        static KNOWN: Mutex<BTreeMap<(u32, Vec<i16>), String>> = Mutex::new(BTreeMap::new());
        let key = (rate_hz, sound.to_vec());
        if let Some(text) = KNOWN.lock().expect("no test has failed in here").get(&key) {
            return text.clone();
        }
        let text = self.listen(sound, rate_hz);
        KNOWN.lock().expect("no test has failed in here").insert(key, text.clone());
        text
    }

    fn listen(&self, sound: &[i16], rate_hz: u32) -> String {
        let padded: Arc<[i16]> = [quiet(250), resample_all(sound, rate_hz, RATE_HZ), quiet(400)].concat().into();
        let job = Job { score: false, ..Job::new(padded) };
        self.runtime.block_on(self.pool.recognise(job)).unwrap_or_else(|error| panic!("{error}")).text
    }
}

/// Words that are to be compared: without marks, digits as words; "by" counts as "buy", which sounds the same.
pub fn compared(text: &str) -> Vec<String> {
    words_of(&text.replace('-', " ")).into_iter().map(|w| if w == "by" { "buy".into() } else { w }).collect()
}

#[test]
fn word_errors_are_counted() {
    let errors = |a: &str, b: &str| apart(&compared(a), &compared(b));
    assert_eq!([errors("Plan 1 waits.", "plan one waits"), errors("a b c", "a c"), errors("a b", "a x b y"), errors("", "a"), errors("a b c", "x y z")], [0, 1, 2, 1, 3]);
}

#[test]
fn every_voice_speaks_and_the_judge_understands_it() {
    let judge = Judge::new();
    for speaker in [Speaker::Hibari, Speaker::PiperJoe, Speaker::FliteSlt, Speaker::Espeak] {
        let text = "The train to the city leaves at ten in the morning.";
        let heard = judge.hears(&speaker.say(text), RATE_HZ);
        let errors = apart(&compared(text), &compared(&heard));
        println!("{}: {heard}", speaker.name());
        // The formant voice is the hardest to understand and carries no test of its own.
        assert!(errors <= if speaker == Speaker::Espeak { 4 } else { 2 }, "{}: {heard}", speaker.name());
    }
}
