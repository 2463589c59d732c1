//! The house's order: imports follow the map, pure rooms stay pure, and what belongs in one place stands in one place.
//!
//! Reads the sources as text. A rule that a type or a lint can keep is kept there; here are the others. Each tolerated
//! exception stands beside its rule with its reason, and a failure lists every place at once.

use std::fs;
use std::path::{Path, PathBuf};

/// What each room may import, as ARCHITECTURE.md draws it: rooms, or single modules of a room. A room imports itself freely.
const MAP: &[(&str, &[&str])] = &[
    ("media", &[]),
    ("engine", &["media"]),
    ("dialect", &["engine"]),
    ("secret", &[]),
    ("audio", &["engine", "media"]),
    ("codec", &["media"]),
    ("listen", &["engine", "media"]),
    ("stt", &["engine", "media"]),
    ("tts", &["engine", "media"]),
    ("agent", &["engine", "media", "dialect", "secret"]),
    ("provider", &["secret"]),
    ("tools", &["engine", "media"]),
    // A line of the log is a dialect like any other: text in, text out.
    ("store", &["engine", "media", "dialect::record", "secret"]),
    ("models", &["media"]),
    ("session", &["agent", "audio", "codec", "dialect", "engine", "listen", "media", "secret", "store", "stt", "tools", "tts"]),
    // The door knows a conversation by its handle; a socket's sample rate, its packets and their order are the door's own matter.
    ("server", &["codec", "dialect", "engine", "media::jitter", "media::resample", "media::frame", "media::pace", "provider", "secret", "session::clock", "session::cost", "session::handle", "session::leg", "session::registry"]),
    // Settings name the modes and hide the keys; rooms get their part handed in and never import the tree.
    ("config", &["engine::mode", "engine::rules", "secret"]),
    // Measures the product with the product's own rooms; only commands call it.
    ("eval", ANY),
    ("cli", ANY),
    ("main", ANY),
    ("lib", &[]),
];
const ANY: &[&str] = &["*"];

/// Modules of engine that are not nouns but the decision itself: for the loop (and the commands that try it out) alone.
const DECIDERS: &[&str] = &["engine::session", "engine::input"];

const PURE: &[&str] = &["media", "engine", "dialect"];
/// Words that wait, open, ask the machine or read a clock.
const IMPURE: &[&str] = &[
    "tokio", "axum", "futures_util", "reqwest", "std::net", "std::fs", "std::env", "std::thread", "std::process", "std::io::stdin", "std::time", "async fn",
    "async move", ".await", "Instant::now", "SystemTime", "println!", "eprintln!", "tracing::", "metrics::", "rand::", "getrandom",
];

/// Who may start a task, a thread or a process beside session and server, which own tasks.
const SPAWNERS: &[(&str, &str)] = &[
    ("src/audio/device.rs", "a sound card's stream lives on a thread of its own, which the stream's handle ends"),
    ("src/stt/pool.rs", "the pool owns its workers"),
    ("src/stt/pool/process.rs", "the recogniser is a process, with one task that reads what it logs"),
    ("src/tools/runner.rs", "executors block; they run beside the loop and are awaited with their permit"),
    ("src/tts/hibari.rs", "synthesis computes; it runs beside the loop and is awaited"),
    ("src/tts/program.rs", "a voice that is a program is a process, killed when it is dropped"),
    ("src/eval/", "what measures owns what it starts until it ends"),
    ("src/cli/", "a command owns what it starts until it ends"),
];

/// Who may start a process.
const COMMANDS: &[(&str, &str)] = &[
    ("src/models/fetch.rs", "the package client brings models"),
    ("src/stt/pool/process.rs", "the recogniser"),
    ("src/tools/builtin/clock.rs", "`date` knows the local time zone"),
    ("src/tts/program.rs", "voices that are programs"),
    ("src/eval/", "voices that only measurements use are programs"),
    ("src/cli/", "doctor asks whether programs are there"),
];

/// Places that clippy.toml's bans do not hold for. Each says its reason in the file as well.
const ALLOWED_METHODS: &[(&str, &str)] = &[
    ("src/lib.rs", "unit tests look at the wall"),
    ("src/session/clock.rs", "the clock"),
    ("src/config.rs", "the environment"),
    ("src/audio/device/output.rs", "a reply that is sent once"),
    ("src/server/fresh.rs", "names made from the time, as UUID version 7 says"),
    ("src/server/links.rs", "codes of one use expire by the wall"),
    ("src/server/mirror.rs", "a silent client is let go by the wall"),
    ("src/server/realtime/proxy/line.rs", "a silent client is let go by the wall"),
    ("src/server/realtime/socket.rs", "a silent client is let go by the wall"),
    ("src/server/strikes.rs", "wrong keys are forgiven by the wall"),
    ("src/stt/pool.rs", "pauses before a restart"),
    ("src/stt/pool/process.rs", "the few variables a recogniser's process is given"),
    ("src/stt/whisper.rs", "a recognition is broken off by the wall"),
    ("src/tools/builtin/clock.rs", "the tool that tells the time"),
    ("src/tools/runner.rs", "calls an hour"),
    ("src/eval/", "measures by the wall"),
    ("src/cli/", "commands measure"),
    ("tests/", "tests look at the wall and are told by variables where programs are"),
];

/// Names of providers and engines, and where their code may name them: their own files, table rows, settings and commands.
const NAMES: &[(&str, &[&str])] = &[
    ("whisper", &["src/stt/", "src/models/"]),
    ("hibari", &["src/tts/hibari", "src/tts/mod.rs", "src/models/"]),
    ("espeak", &["src/tts/programs.rs", "src/tts/mod.rs"]),
    ("flite", &["src/tts/programs.rs", "src/tts/mod.rs"]),
    ("misaki", &["src/tts/hibari"]),
    ("earshot", &["src/listen/", "src/session/ear.rs"]),
    ("silero", &["src/listen/", "src/models/mod.rs"]),
    ("smart-turn", &["src/listen/", "src/models/mod.rs"]),
    ("pulseaudio", &["src/audio/device"]),
    // The wire's own names: paths, the subprotocol browsers send, the shape of a refusal.
    ("openai", &["src/agent/openai", "src/agent/mod.rs", "src/provider/openai.rs", "src/provider/azure.rs", "src/provider/xai.rs", "src/provider/mod.rs", "src/dialect/", "src/session/driver.rs", "src/server/realtime/", "src/server/auth.rs", "src/server/routes.rs", "src/server/problem.rs"]),
    ("gemini", &["src/dialect/", "src/provider/gemini.rs", "src/provider/vertex.rs", "src/provider/mod.rs", "src/server/realtime/proxy/"]),
    ("azure", &["src/provider/azure.rs", "src/provider/mod.rs"]),
    ("xai", &["src/provider/xai.rs", "src/provider/mod.rs"]),
    ("litellm", &[]),
];
/// Every name is at home where settings and commands are.
const NAMES_ANYWHERE: &[&str] = &["src/config", "src/cli/", "src/eval/", "src/main.rs"];

/// Files that are read: folders of the project and the files beside them.
const TOPS: &[&str] = &["src", "tests", "tools", "models", "docs", "scripts", "examples", ".ci", ".cargo"];
const NOT_OURS: &[&str] = &["node_modules", "target", "shots", "__pycache__"];

/// Versions below which a fault is known. A crate that is absent keeps its rule for the day it comes.
const FLOORS: &[(&str, &str, &str)] = &[
    ("tungstenite", "0.24.0", "RUSTSEC-2023-0065, and limits that can be set"),
    ("tracing-subscriber", "0.3.20", "RUSTSEC-2025-0055: escape sequences in logs"),
    ("rustls-webpki", "0.103.13", "RUSTSEC-2026-0049, 0098, 0099, 0104"),
    ("axum", "0.8.0", "RUSTSEC-2022-0055: limits of bodies"),
    ("hyper", "1.0.0", "half-open requests need its timer"),
    ("symphonia", "0.6.1", "panics on short files"),
    ("opusic-sys", "0.7.7", "carries libopus 1.6.1"),
];
const UNWANTED: &[(&str, &str)] = &[
    ("h2", "HTTP/1 only: no resets by the thousand"),
    ("audiopus_sys", "carries libopus 1.3"),
    ("openssl-sys", "rustls only"),
    ("native-tls", "rustls only"),
];

struct Source {
    /// From the project's folder, with `/`.
    path: String,
    text: String,
    /// The whole file is tests.
    is_test: bool,
}

fn root() -> PathBuf { Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf() }

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|e| e.expect("a folder's entry").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            walk(&path, into);
        } else if path.is_file() {
            into.push(path);
        }
    }
}

/// All text files of the project, in order.
fn all() -> Vec<Source> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root()).expect("the project's folder").map(|e| e.expect("an entry").path()).filter(|p| p.is_file() && !p.ends_with(".git")).collect();
    TOPS.iter().for_each(|top| walk(&root().join(top), &mut paths));
    paths.sort();
    let relative = |p: &Path| p.strip_prefix(root()).expect("inside").to_string_lossy().replace('\\', "/");
    let read = |p: &PathBuf| Some(Source { path: relative(p), text: String::from_utf8(fs::read(p).ok()?).ok()?, is_test: false });
    let mut sources: Vec<Source> = paths.iter().filter_map(read).collect();
    // A module of a file of tests is tests as well: a second look finds those.
    for _ in 0..2 {
        let tests: Vec<String> = sources.iter().flat_map(test_files).collect();
        let below = |s: &Source, t: &String| s.path == *t || s.path.starts_with(&format!("{}/", t.trim_end_matches(".rs")));
        sources.iter_mut().for_each(|s| s.is_test |= s.path.starts_with("tests/") || tests.iter().any(|t| below(s, t)));
    }
    sources
}

/// Files that a source declares as modules of tests: `#[cfg(test)] mod NAME;`, with or without a `#[path]`; all of a file of tests.
fn test_files(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let inside = if ["mod.rs", "lib.rs", "main.rs"].contains(&file) { folder.to_owned() } else { format!("{folder}/{}", file.trim_end_matches(".rs")) };
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let declared = |n: usize| {
        let end = (n + 1..lines.len()).find(|k| !lines[*k].starts_with("#[") && !lines[*k].starts_with("//"))?;
        let name = lines[end].strip_suffix(';')?.rsplit_once("mod ")?.1;
        let beside = lines[n..end].iter().find_map(|l| l.strip_prefix("#[path = \"")?.strip_suffix("\"]"));
        Some(beside.map_or_else(|| format!("{inside}/{name}.rs"), |path| format!("{folder}/{path}")))
    };
    let is_cfg = |line: &str| line.starts_with("#[cfg(test") || line.starts_with("#[cfg(all(test") || source.is_test && line.starts_with("#[");
    (0..lines.len()).filter(|n| is_cfg(lines[*n])).filter_map(declared).collect()
}

/// The product's Rust sources under these files and folders, without comments and without tests: path and text.
pub fn product(places: &[&str]) -> Vec<(String, String)> {
    let within = |path: &str| places.iter().any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let text = |s: &Source| s.code(true).into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    all().iter().filter(|s| s.path.ends_with(".rs") && !s.is_test && within(&s.path)).map(|s| (s.path.clone(), text(s))).collect()
}

/// The files of tests that belong to this source.
pub fn tests_of(path: &str) -> Vec<String> { all().iter().filter(|s| s.path == path).flat_map(test_files).collect() }

fn rust(under: &str) -> Vec<Source> {
    let found: Vec<_> = all().into_iter().filter(|s| s.path.starts_with(under) && s.path.ends_with(".rs")).collect();
    assert!(!found.is_empty(), "no sources under {under}");
    found
}

impl Source {
    fn room(&self) -> &str { self.path.trim_start_matches("src/").split('/').next().unwrap_or_default().trim_end_matches(".rs") }

    /// Numbered lines without comments. `product`: up to the tests at the end of the file, nothing of a file of tests.
    fn code(&self, product: bool) -> Vec<(usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = |n: &usize| lines[*n].trim() == "#[cfg(test)]" && lines.get(n + 1).is_some_and(|next| next.contains("mod ") && next.ends_with('{'));
        let end = match product {
            true if self.is_test => 0,
            true => (0..lines.len()).find(tests).unwrap_or(lines.len()),
            false => lines.len(),
        };
        lines[..end].iter().enumerate().map(|(n, line)| (n + 1, without_comment(line))).filter(|(_, line)| !line.trim().is_empty()).collect()
    }

    fn is_in(&self, places: &[(&str, &str)]) -> bool { places.iter().any(|(place, _)| self.path.starts_with(place)) }
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") { return "" }
    line.split(" // ").next().unwrap_or(line)
}

/// Fails with every place and the rule they break.
fn holds(rule: &str, broken: Vec<String>) { assert!(broken.is_empty(), "{rule}\n  {}\n", broken.join("\n  ")); }

/// Places of code where `wrong` finds something.
fn places(sources: &[Source], product: bool, wrong: impl Fn(&Source, &str) -> Option<String>) -> Vec<String> {
    let of = |s: &Source| -> Vec<String> { s.code(product).into_iter().filter_map(|(n, line)| Some(format!("{}:{n}: {}", s.path, wrong(s, line)?))).collect() };
    sources.iter().flat_map(of).collect()
}

/// Whether `word` stands in `line` as a word (its ends are no letters, digits or `_`).
fn names(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (first, last) = (word.chars().next(), word.chars().last());
    line.match_indices(word).any(|(at, _)| {
        !(part(first) && part(line[..at].chars().next_back())) && !(part(last) && part(line[at + word.len()..].chars().next()))
    })
}

/// `crate::a::b` and `voxgate::a::b` of a line, as `a::b` (`a::{` where a list follows).
fn imports(line: &str) -> Vec<String> {
    let of = |start: &str| -> Vec<String> {
        let after = line.match_indices(start).map(|(at, _)| &line[at + start.len()..]);
        after.map(|path| path.split("::").take(2).map(head).collect::<Vec<_>>().join("::")).collect()
    };
    [of("crate::"), of("voxgate::")].concat()
}

fn head(segment: &str) -> &str {
    if segment.starts_with('{') { return "{" }
    segment.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(segment)
}

fn may_import(room: &str, import: &str) -> bool {
    let allowed = MAP.iter().find(|(name, _)| *name == room).map_or(ANY, |(_, allowed)| allowed);
    let whole = import.split("::").next().unwrap_or_default();
    // What is no room is an item of the crate's root or a macro.
    if whole == room || !MAP.iter().any(|(name, _)| *name == whole) { return true }
    allowed == ANY || allowed.contains(&whole) || allowed.contains(&import)
}

#[test]
fn imports_follow_the_map() {
    let sources = rust("src/");
    let unknown: Vec<_> = sources.iter().filter(|s| !MAP.iter().any(|(room, _)| *room == s.room())).map(|s| s.path.clone()).collect();
    holds("each room stands in the map", unknown);
    holds("imports follow the map", places(&sources, false, |s, line| {
        imports(line).into_iter().find(|i| !may_import(s.room(), i)).map(|i| format!("{} does not import {i}", s.room()))
    }));
    holds("engine's decisions are the loop's", places(&sources, false, |s, line| {
        // What measures holds whole conversations of the product's own driver, with an engine in each.
        let own = ["engine", "session", "cli", "main", "eval"].contains(&s.room());
        imports(line).into_iter().find(|i| !own && DECIDERS.contains(&i.as_str())).map(|i| format!("{} does not import {i}", s.room()))
    }));
    holds("a room's sign reaches other rooms by crate::, where the map sees it", places(&sources, true, |s, line| {
        let top = s.path.matches('/').count() == 1 || s.path.ends_with("/mod.rs") && s.path.matches('/').count() == 2;
        (top && line.contains("super::") && !line.contains("(super)")).then(|| line.trim().to_owned())
    }));
}

#[test]
fn the_map_is_read_as_it_is_meant() {
    assert_eq!(imports("use crate::session::{handle, leg};"), ["session::{"]);
    assert_eq!(imports("let a: crate::engine::id::Ms = voxgate::media::wav();"), ["engine::id", "media::wav"]);
    assert!(may_import("server", "session::handle") && !may_import("server", "session::driver") && !may_import("server", "session::{"));
    assert!(may_import("engine", "media::{") && !may_import("media", "engine::id") && !may_import("tts", "stt::Job"));
    assert!(names("a tokio::b", "tokio") && !names("tokio_x", "tokio") && names("x.await?", ".await") && !names("mistokio", "tokio"));
}

#[test]
fn pure_rooms_wait_for_nothing_and_ask_nobody() {
    let sources: Vec<_> = rust("src/").into_iter().filter(|s| PURE.contains(&s.room())).collect();
    holds("pure rooms name nothing that waits, opens or reads a clock", places(&sources, true, |_, line| {
        IMPURE.iter().find(|word| names(line, word)).map(|word| format!("names {word}"))
    }));
    let inner: Vec<_> = sources.into_iter().filter(|s| s.room() != "dialect").collect();
    holds("JSON shapes live at the edge", places(&inner, false, |_, line| {
        ["Serialize", "Deserialize"].iter().find(|word| names(line, word)).map(|word| format!("names {word}"))
    }));
}

#[test]
fn only_authenticated_doors_vouch_for_a_person() {
    holds("OperatorDoor::vouch is for server and cli, which know who knocked", places(&rust("src/"), true, |s, line| {
        let own = ["server", "cli"].contains(&s.room()) || s.path == "src/engine/authority.rs";
        (!own && names(line, "vouch")).then(|| "vouches".to_owned())
    }));
}

#[test]
fn only_the_gate_makes_a_permit() {
    holds("a Permit is written out in engine/gate.rs alone", places(&rust("src/"), false, |s, line| {
        (s.path != "src/engine/gate.rs" && line.contains("Permit {") && !line.contains("-> Permit {")).then(|| line.trim().to_owned())
    }));
    let gate = rust("src/engine/gate.rs").remove(0).text;
    let (before, _) = gate.split_once("pub struct Permit").expect("the Permit's declaration");
    let derived = before.lines().rev().take_while(|line| line.starts_with(['#', '/']) || line.is_empty()).find(|line| line.starts_with("#[derive"));
    let again = ["Clone", "Copy", "Default"].iter().find(|word| derived.is_some_and(|d| d.contains(**word)) || gate.contains(&format!("{word} for Permit")));
    assert_eq!(again, None, "a Permit is used once");
}

#[test]
fn whoever_starts_something_is_known() {
    holds("tasks, threads and processes are started where somebody ends them", places(&rust("src/"), true, |s, line| {
        let own = ["session", "server"].contains(&s.room()) || s.is_in(SPAWNERS);
        let starts = ["spawn(", "spawn_blocking(", "spawn_local("].iter().any(|call| names(line, call)) && !line.contains("fn spawn");
        (!own && starts).then(|| line.trim().to_owned())
    }));
    holds("processes are started in few places", places(&rust("src/"), true, |s, line| {
        (!s.is_in(COMMANDS) && names(line, "Command::new")).then(|| line.trim().to_owned())
    }));
}

#[test]
fn standard_output_has_one_way() {
    holds("a command writes with outln! or cli::out::put: println! panics when its reader has gone", places(&rust("src/"), true, |_, line| {
        (names(line, "println!") || names(line, "print!")).then(|| line.trim().to_owned())
    }));
}

#[test]
fn a_provider_is_named_in_its_own_place() {
    holds("a provider's name stands in its own file, its table row, settings, commands and the docs", places(&rust("src/"), true, |s, line| {
        let lower = line.to_lowercase();
        let at_home = |homes: &[&str]| homes.iter().chain(NAMES_ANYWHERE).any(|home| s.path.starts_with(home));
        let strange = NAMES.iter().find(|(name, homes)| lower.contains(name) && !at_home(homes) && !line.contains("feature ="));
        strange.map(|(name, _)| format!("names {name}: {}", line.trim()))
    }));
}

#[test]
fn exceptions_from_the_bans_are_listed() {
    let allowing = |s: &Source| s.text.contains("clippy::disallowed_methods");
    let strangers = rust("").into_iter().filter(|s| allowing(s) && !s.is_in(ALLOWED_METHODS)).map(|s| s.path);
    holds("a place that clippy.toml does not hold for is listed here, with its reason", strangers.collect());
    holds("the environment is read by config and the places listed", places(&rust("src/"), true, |s, line| {
        let reads = ["env::var", "env::vars", "env::var_os", "env::vars_os", "env::set_var", "env::remove_var"].iter().any(|call| names(line, call));
        (reads && !s.is_in(ALLOWED_METHODS)).then(|| line.trim().to_owned())
    }));
    holds("the clock is read by session/clock.rs and the places listed", places(&rust("src/"), true, |s, line| {
        let reads = ["Instant::now", "SystemTime::now"].iter().any(|call| names(line, call));
        (reads && !s.is_in(ALLOWED_METHODS)).then(|| line.trim().to_owned())
    }));
    holds("channels are bounded", places(&rust("src/"), false, |_, line| line.contains("unbounded").then(|| line.trim().to_owned())));
}

#[test]
fn files_say_what_they_are_and_nothing_is_skipped() {
    let silent = rust("").into_iter().filter(|s| !s.text.starts_with("//!")).map(|s| s.path);
    holds("each file opens with its sign", silent.collect());
    holds("no sign is still to come", rust("src/").into_iter().filter(|s| s.text.contains("to come)")).map(|s| s.path).collect());
    holds("no test is set aside", places(&rust(""), false, |s, line| {
        (s.path != "tests/it/tidy.rs" && line.contains("#[ignore")).then(|| line.trim().to_owned())
    }));
    holds("no code is unsafe", places(&rust("src/"), false, |_, line| (names(line, "unsafe") || line.contains("allow(unsafe_code)")).then(|| line.trim().to_owned())));
}

#[test]
fn texts_name_no_registry_and_no_machine() {
    let dotted = |parts: &[&str]| parts.join(".");
    let hosts = [dotted(&["crates", "io"]), dotted(&["pypi", "org"]), dotted(&["pythonhosted", "org"]), dotted(&["npmjs", "org"]), dotted(&["npmjs", "com"]), dotted(&["deb", "debian", "org"])];
    let folders: Vec<String> = ["root", "work", "home"].iter().map(|name| format!("/{name}/")).collect();
    let ours = all().into_iter().filter(|s| s.path != "Cargo.lock");
    let broken = ours.flat_map(|s| {
        let line_of = |(n, line): (usize, &str)| {
            let line = line.replace("/home/jane/", "");
            hosts.iter().chain(&folders).find(|word| line.contains(word.as_str())).map(|word| format!("{}:{}: {word}", s.path, n + 1))
        };
        s.text.lines().enumerate().filter_map(line_of).collect::<Vec<_>>()
    });
    holds("texts name no registry's host and no folder of one machine", broken.collect());
}

fn version(text: &str) -> Vec<u64> { text.split(['-', '+']).next().unwrap_or_default().split('.').map(|n| n.parse().unwrap_or(0)).collect() }

/// Name and version of each crate in Cargo.lock.
fn locked() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let value = |block: &str, key: &str| block.lines().find_map(|l| l.strip_prefix(key)).map(|v| v.trim_matches('"').to_owned());
    text.split("[[package]]").filter_map(|block| Some((value(block, "name = ")?, value(block, "version = ")?))).collect()
}

/// Advisories are not at hand where tests run, so the known ones stand here as floors. What is not listed is not covered.
#[test]
fn dependencies_are_past_their_known_faults() {
    let crates = locked();
    assert!(crates.len() > 100, "Cargo.lock is read");
    let low = FLOORS.iter().flat_map(|(name, floor, why)| {
        let below = crates.iter().filter(move |(n, v)| n == name && version(v) < version(floor));
        below.map(move |(n, v)| format!("{n} {v} is below {floor}: {why}")).collect::<Vec<_>>()
    });
    holds("dependencies are past their known faults", low.collect());
    let unwanted = UNWANTED.iter().filter(|(name, _)| crates.iter().any(|(n, _)| n == name)).map(|(name, why)| format!("{name}: {why}"));
    holds("some crates are not wanted", unwanted.collect());
    let early = crates.iter().filter(|(n, v)| n.starts_with("rustls") && v.contains('-')).map(|(n, v)| format!("{n} {v}"));
    holds("TLS comes from released versions", early.collect());
}
