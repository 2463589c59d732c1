//! What lasts: a gateway killed while it writes, a disk that is full under a conversation, and the log as evidence on the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::talking::{finished, voxgate};
use crate::tidy::tests_of;

/// Exit code, stdout, stderr.
fn ended(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = finished(voxgate(home).args(args));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A conversation of a few lines by files and without ears, its id and its log.
fn a_conversation(home: &Path) -> (String, std::path::PathBuf) {
    std::fs::write(home.join("config.toml"), "[stt]\nkind = \"scripted\"\n[tts]\nkind = \"tone\"\n[plan]\nstart = \"plan\"\n").expect("a file");
    let mic = home.join("mic.wav");
    std::fs::write(&mic, voxgate::media::wav::write(16_000, &vec![0; 16_000])).expect("a file");
    let (code, _, error) = ended(home, &["talk", "--mic", &mic.display().to_string(), "--pace", "fast"]);
    assert_eq!(code, Some(0), "{error}");
    let log = std::fs::read_dir(home.join("data/sessions")).expect("a folder").map(|e| e.expect("an entry").path()).find(|p| p.extension().is_some_and(|x| x == "log")).expect("a log");
    (log.file_stem().expect("a name").to_string_lossy().into_owned(), log)
}

#[test]
fn a_log_is_shown_and_verified_and_damage_has_its_exit_code() {
    let home = tempfile::tempdir().expect("a folder");
    let (id, log) = a_conversation(home.path());
    let (code, shown, _) = ended(home.path(), &["log", "show", &id]);
    assert!(code == Some(0) && shown.contains("mode: plan (by gateway, gateway)") && shown.contains("epoch"), "{shown}");
    let (code, told, _) = ended(home.path(), &["log", "verify", &id]);
    assert!(code == Some(0) && told.starts_with(&format!("{id}: whole\n")) && told.contains("last link") && told.contains("opens in  plan mode"), "{told}");
    // Any file will do, and one that was edited is told apart.
    let bytes = std::fs::read(&log).expect("a log");
    let copy = home.path().join("copy.log").display().to_string();
    let edited = String::from_utf8(bytes.clone()).expect("text").replacen("\"posture\":\"plan\"", "\"posture\":\"deft\"", 1);
    assert_ne!(edited.as_bytes(), bytes);
    std::fs::write(&copy, &edited).expect("a file");
    let (code, told, error) = ended(home.path(), &["log", "verify", &copy]);
    assert!(code == Some(1) && told.contains("DAMAGED") && told.contains("opens in  plan mode") && error.contains("damaged from byte"), "{told}{error}");
    std::fs::write(&copy, &bytes[..bytes.len() - 7]).expect("a file");
    assert_eq!(ended(home.path(), &["log", "show", &copy]).0, Some(1));
    std::fs::write(&copy, "3 {\"voxgate_log\":3,\"id\":\"x\"}\n").expect("a file");
    let (code, _, error) = ended(home.path(), &["log", "verify", &copy]);
    assert!(code == Some(2) && error.contains("has format 3") && error.contains("the program that wrote it"), "{error}");
    let (code, _, error) = ended(home.path(), &["log", "show", "nobody"]);
    assert!(code == Some(2) && error.contains("sessions list"), "{error}");
    // The conversation whose log another version wrote is refused, and the file is as it was.
    std::fs::copy(&copy, &log).expect("a copy");
    let (code, _, error) = ended(home.path(), &["sessions", "show", &id]);
    assert!(code == Some(1) && error.contains("has format 3"), "{error}");
    assert_eq!(std::fs::read(&log).expect("a log"), std::fs::read(&copy).expect("a copy"));
}

#[test]
fn forty_kills_lose_nothing_that_was_told() {
    let home = tempfile::tempdir().expect("a folder");
    let (code, told, error) = ended(home.path(), &["eval", "kills", "--count", "40"]);
    println!("{told}");
    assert_eq!(code, Some(0), "{told}{error}");
    let frames: usize = told.lines().find(|l| l.contains("frames it had sent")).and_then(|l| l.split("of ").nth(1)?.split(')').next()?.trim().parse().ok()).expect("a count");
    assert!(frames > 500, "{told}");
}

/// The tree's own words, cut into utterances: a short form of the million that `voxgate eval text` brings.
#[test]
fn the_words_of_the_project_loosen_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = ["ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-APACHE"].map(|name| root.join(name)).into();
    let subjects = tell_the_sentences();
    let rooms = ["src/engine", "src/server", "src/session", "src/media"];
    files.extend(rooms.iter().flat_map(|room| std::fs::read_dir(root.join(room)).expect("a folder")).map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|x| x == "rs") && !subjects.contains(p)));
    let names: Vec<String> = files.iter().map(|p| p.display().to_string()).collect();
    let home = tempfile::tempdir().expect("a folder");
    let (code, told, error) = ended(home.path(), &[&["eval", "text"][..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    println!("{told}");
    assert_eq!(code, Some(0), "{told}{error}");
    let words: usize = told.lines().find(|l| l.trim_start().starts_with("words of text")).and_then(|l| l.split_whitespace().nth(3)?.parse().ok()).expect("a count");
    assert!(words > 30_000, "{told}");
}

/// Files whose subject is the very sentences that loosen, with their tests.
fn tell_the_sentences() -> Vec<PathBuf> {
    let named = ["grammar", "intent", "language", "readback", "sentence", "turn"].map(|name| format!("src/engine/{name}.rs"));
    let tests: Vec<String> = named.iter().flat_map(|path| tests_of(path)).collect();
    named.into_iter().chain(tests).map(|path| Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).collect()
}

/// The disk takes nothing more under a running conversation: plan holds at once and says `persisted: false`, a loosening does not
/// happen, and a restart is in plan mode.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_plan_and_says_that_it_is_not_written() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[stt]\nkind = \"scripted\"\n[tts]\nkind = \"tone\"\n").expect("a file");
    // A limit on the size of files stands for the full disk: writing beyond it fails, as long as its signal is ignored.
    let (mut writer, told) = limited(home.path(), 24);
    let frames: Vec<Value> = std::io::BufRead::lines(told).map_while(Result::ok).filter_map(|l| serde_json::from_str(&l).ok()).take(4_000).collect();
    let _ = writer.kill();
    let _ = writer.wait();
    let unwritten: Vec<&Value> = frames.iter().filter(|f| f["payload"]["persisted"] == false).collect();
    assert!(unwritten.len() > 20, "{} of {}", unwritten.len(), frames.len());
    // Once nothing can be written, no frame says that plan mode is off and holds: each loosening is followed by plan.
    let first = frames.iter().position(|f| f["payload"]["persisted"] == false).expect("one");
    let modes: Vec<bool> = frames[first..].iter().filter(|f| f["type"] == "plan_mode").filter_map(|f| f["payload"]["plan_mode"].as_bool()).collect();
    assert!(modes.windows(2).all(|w| w[0] || w[1]), "{modes:?}");
    assert!(frames[first..].iter().any(|f| f["type"] == "notice" && f["payload"]["code"] == "log_failed"), "nobody was told");
    let id = frames[0]["session_id"].as_str().expect("an id");
    let (code, verdict, error) = ended(home.path(), &["log", "verify", id]);
    assert!(matches!(code, Some(0 | 1)), "{verdict}{error}");
    let planned = frames[..first].iter().rev().find(|f| f["type"] == "plan_mode").is_some_and(|f| f["payload"]["plan_mode"] == true);
    assert!(!planned || verdict.contains("opens in  plan mode"), "{verdict}");
}

#[cfg(target_os = "linux")]
fn limited(home: &Path, kib: u32) -> (std::process::Child, std::io::BufReader<std::process::ChildStdout>) {
    let program = voxgate(home).get_program().to_owned();
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" eval kills --writer new --seed 7");
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).arg(program).env("VOXGATE_HOME", home).env("VOXGATE_MODELS", home.join("none"));
    let mut child = command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().expect("bash starts");
    let out = std::io::BufReader::new(child.stdout.take().expect("its stdout"));
    (child, out)
}

#[test]
fn the_gates_verdict_is_measured() {
    let home = tempfile::tempdir().expect("a folder");
    let (code, told, error) = ended(home.path(), &["bench", "gate"]);
    println!("{told}");
    assert!(code == Some(0) && told.contains("slowest verdict, median"), "{told}{error}");
}
