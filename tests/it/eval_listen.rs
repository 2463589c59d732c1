//! `voxgate eval listen` as it is run, and what the ear makes of noise and of a language that is pinned.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use voxgate::engine::grammar::{phrase_table, phrase_table_of};
use voxgate::engine::intent::followed_below;
use voxgate::engine::language::Language;
use voxgate::engine::turn::EarSettings;
use voxgate::eval::listen::{Listener, State};
use voxgate::eval::noise;
use voxgate::models::Store;
use voxgate::stt::{Job, Order, PoolConfig, Recogniser, Scripted, WhisperPool};

fn say(program: &str, arguments: &[&str]) {
    let out = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}; bring it with: apt-get install espeak-ng flite sox"));
    assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn voxgate(arguments: &[&str], home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_voxgate")).args(arguments).env("VOXGATE_HOME", home).output().expect("the binary runs")
}

fn lines(out: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&out.stdout).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

fn decisions(line: &Value) -> Vec<&str> { line["turns"].as_array().expect("turns").iter().filter_map(|t| t["decision"].as_str()).collect() }

#[test]
fn each_wav_is_a_line_in_order_and_an_unreadable_one_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    std::fs::create_dir(dir.path().join("deep")).unwrap();
    say("flite", &["-voice", "slt", "-t", "Enter plan mode.", "-o", &file("a.wav")]);
    // Nothing before the first sound: its words must not be lost.
    say("sox", &[&file("a.wav"), "-r", "48000", "-c", "6", "-e", "floating-point", "-b", "32", &file("deep/b.wav"), "silence", "1", "0", "1%"]);
    std::fs::write(file("c.wav"), b"no sound").unwrap();
    say("sox", &["-n", "-r", "8000", "-c", "1", &file("d.WAV"), "trim", "0", "1"]);
    let out = voxgate(&["eval", "listen", &file(""), "--json"], dir.path());
    let all = lines(&out);
    assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(all.iter().map(|l| l["file"].as_str().unwrap_or_default()).collect::<Vec<_>>(), ["a.wav", "c.wav", "d.WAV", "deep/b.wav"]);
    assert_eq!(decisions(&all[0]), ["enter"], "{}", all[0]);
    assert!(all[1]["error"].as_str().is_some_and(|why| why.contains("not a WAV")), "{}", all[1]);
    assert!(decisions(&all[2]).is_empty() && all[2]["error"].is_null(), "{}", all[2]);
    assert_eq!(decisions(&all[3]), ["enter"], "{}", all[3]);
    let turn = &all[0]["turns"][0];
    assert!(turn["start_ms"].as_u64() < turn["end_ms"].as_u64() && turn["text"].is_string(), "{turn}");
}

#[test]
fn the_state_decides_what_words_mean() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("no.wav").to_string_lossy().into_owned();
    say("flite", &["-voice", "slt", "-t", "No, don't do that.", "-o", &file]);
    for (state, wanted) in [("idle", "none"), ("question", "deny"), ("review", "none")] {
        let out = voxgate(&["eval", "listen", &file, "--json", "--state", state], dir.path());
        assert_eq!(decisions(&lines(&out)[0]), [wanted], "{state}: {}", String::from_utf8_lossy(&out.stdout));
    }
    let none = voxgate(&["eval", "listen", &dir.path().join("none").to_string_lossy()], dir.path());
    assert_eq!(none.status.code(), Some(2));
}

fn model(id: &str) -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache"))).expect("HOME is set").join("voxgate/models");
    Store::new(folder("VOXGATE_MODELS").unwrap_or_else(cache)).unwrap().main_file(id).unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn field_case_27_noise_is_no_turn_and_no_decision() {
    let table = phrase_table();
    let phrases = table.iter().map(|s| s.phrase.clone()).collect();
    let pool = WhisperPool::start(PoolConfig::new(env!("CARGO_BIN_EXE_voxgate"), model("whisper-tiny.en"), phrases)).await.unwrap_or_else(|e| panic!("{e}"));
    let listener = Listener { recogniser: &pool, table: &table, ear: EarSettings::default(), language: "en".into(), judge: None, vad: voxgate::listen::vad::VadMaker::default() };
    for (kind, name) in noise::KINDS.iter().enumerate() {
        for level in [-60.0, -30.0] {
            let turns = listener.turns_in(&noise::sound(kind, level, 5), noise::RATE_HZ, &State::ALL).await.unwrap();
            assert!(turns.iter().all(Vec::is_empty), "{name} at {level} dBFS: {turns:?}");
        }
    }
    pool.shutdown().await;
}

/// Fifty commands of one word.
const WORDS: [&str; 50] = [
    "Yes", "No", "Stop", "Continue", "Next", "Back", "Help", "Wait", "Cancel", "Repeat", "Again", "Enough", "Quiet", "Louder", "Slower", "Faster", "Open", "Close", "Start", "End",
    "Go", "Pause", "Play", "Mute", "Save", "Delete", "Undo", "Redo", "Send", "Read", "Write", "List", "Show", "Hide", "Up", "Down", "Left", "Right", "In", "Out", "On", "Off", "One",
    "Two", "Three", "More", "Less", "Done", "Okay", "Never",
];

/// Notes in which language it was asked to listen.
struct Asked(std::sync::Mutex<Vec<String>>, Scripted);

impl Recogniser for Asked {
    fn recognise(&self, job: Job) -> futures_util::future::BoxFuture<'_, Result<voxgate::engine::heard::Heard, voxgate::stt::SttError>> {
        self.0.lock().unwrap().push(job.language.clone());
        self.1.recognise(job)
    }
}

#[tokio::test]
async fn field_case_28_fifty_short_words_never_change_the_language() {
    let asked = Asked(std::sync::Mutex::new(Vec::new()), Scripted::new(WORDS));
    let listener = Listener { recogniser: &asked, table: &[], ear: EarSettings::default(), language: "de".into(), judge: None, vad: voxgate::listen::vad::VadMaker::default() };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.wav").to_string_lossy().into_owned();
    say("flite", &["-voice", "slt", "-t", "Continue.", "-o", &file]);
    let (samples, rate) = voxgate::eval::corpora::decode(Path::new(&file)).unwrap();
    let mut said = Vec::new();
    for _ in WORDS {
        said.extend(listener.turns(&samples, rate, State::Idle).await.unwrap().into_iter().map(|t| t.heard.text));
    }
    assert_eq!(said, WORDS);
    assert!(asked.0.lock().unwrap().iter().all(|language| language == "de"));
    // A model of many languages that is told "en" writes Latin letters, however short the word.
    let pool = WhisperPool::start(PoolConfig::new(env!("CARGO_BIN_EXE_voxgate"), model("whisper-base"), Vec::new())).await.unwrap_or_else(|e| panic!("{e}"));
    for word in ["Continue.", "No.", "Wait."] {
        say("flite", &["-voice", "slt", "-t", word, "-o", &file]);
        let (samples, rate) = voxgate::eval::corpora::decode(Path::new(&file)).unwrap();
        let samples = voxgate::media::resample::resample_all(&samples, rate, 16_000);
        let job = Job { score: false, order: Order::default(), ..Job::new(samples) };
        let text = pool.recognise(job).await.unwrap().text;
        assert!(!text.is_empty() && text.is_ascii(), "{word}: {text}");
    }
    pool.shutdown().await;
}

#[tokio::test]
async fn field_case_29_german_answers_are_decided_on_the_sound() {
    let table = phrase_table_of(Language::German);
    let margins = table.iter().map(|s| followed_below(s.meaning.class())).collect();
    let phrases = table.iter().map(|s| s.phrase.clone()).collect();
    let config = PoolConfig { margins, ..PoolConfig::new(env!("CARGO_BIN_EXE_voxgate"), model("whisper-base"), phrases) };
    let pool = WhisperPool::start(config).await.unwrap_or_else(|e| panic!("{e}"));
    let listener = Listener { recogniser: &pool, table: &table, ear: EarSettings::default(), language: "de".into(), judge: None, vad: voxgate::listen::vad::VadMaker::default() };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.wav").to_string_lossy().into_owned();
    // Each sentence in a variant of the voice whose words the model writes: it is an old voice, and many of its clips are written as others.
    let cases = [
        ("Ja, mach das.", "de+f3", "140", State::Question, "approve"), ("Ja, mach weiter.", "de+m3", "140", State::Question, "approve"), ("Ja.", "de+f3", "140", State::Question, "neither"),
        ("Nein.", "de+f2", "150", State::Question, "deny"), ("Ja, mach das nicht.", "de+f3", "140", State::Question, "deny"), ("Mach das nicht.", "de+f3", "140", State::Question, "deny"),
        ("Moment.", "de+f3", "140", State::Question, "hold"), ("Ja, mach das.", "de+f3", "140", State::Idle, "none"), ("Starte den Planmodus.", "de", "150", State::Idle, "enter"),
        // Written as a sentence near to consent, and scored like one.
        ("Ja, warte.", "de+f2", "150", State::Question, "neither"),
    ];
    let mut wrong = Vec::new();
    for (text, voice, speed, state, wanted) in cases {
        say("espeak-ng", &["-v", voice, "-s", speed, "-w", &file, text]);
        let (samples, rate) = voxgate::eval::corpora::decode(Path::new(&file)).unwrap();
        let turns = listener.turns(&samples, rate, state).await.unwrap();
        let decided: Vec<_> = turns.iter().map(|t| t.decision.name()).collect();
        if decided != [wanted] { wrong.push(format!("{text} in {}: {decided:?}, should be {wanted}: {turns:?}", state.name())) }
    }
    pool.shutdown().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
