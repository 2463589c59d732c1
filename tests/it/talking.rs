//! A person who talks with `voxgate talk` by files: lines with pauses, said once more where they were not understood.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use voxgate::media::wav;

use crate::speech::{Pace, RATE_HZ, Speaker, quiet};

/// Longest wall time of one run: a guard against one that never ends, not a measure.
const PATIENCE: Duration = Duration::from_secs(240);
/// Quiet before the first line.
const BEFORE_MS: u64 = 1_000;
/// Most repeats of one person.
pub const REPEATS_MAX: usize = 4;

/// Something to say, how long to wait after it, and what must have come of it when the next is said.
pub struct Line {
    pub text: &'static str,
    /// Said after `text` and this many milliseconds, in the same breath.
    pub then: Option<(u64, &'static str)>,
    pub wait_ms: u64,
    /// How many lines' time the expectation looks at.
    pub reach: usize,
    pub expect: fn(&Window) -> Result<(), String>,
}

impl Line {
    pub const fn new(text: &'static str, wait_ms: u64, expect: fn(&Window) -> Result<(), String>) -> Line { Line { text, then: None, wait_ms, reach: 1, expect } }
    /// The expectation also looks at what the next line brings.
    pub const fn with_next(self) -> Line { Line { reach: 2, ..self } }
    /// Goes on in the same breath.
    pub const fn then(self, after_ms: u64, text: &'static str) -> Line { Line { then: Some((after_ms, text)), ..self } }

    fn sound(&self, speaker: Speaker, pace: Pace) -> Vec<i16> {
        let mut sound = speaker.say_at(self.text, pace);
        if let Some((after_ms, text)) = self.then {
            sound.extend(quiet(after_ms));
            sound.extend(speaker.say_at(text, pace));
        }
        sound
    }
}

/// An event of `--events`, its time counted from the beginning of the file.
#[derive(Clone, Debug)]
pub struct Event {
    pub at_ms: u64,
    pub kind: String,
    pub payload: Value,
}

impl Event {
    pub fn text(&self, field: &str) -> &str { self.payload[field].as_str().unwrap_or_default() }
    pub fn number(&self, field: &str) -> u64 { self.payload[field].as_u64().unwrap_or_default() }
    pub fn is(&self, field: &str, wanted: &str) -> bool { self.text(field) == wanted }
}

/// What happened between a line and the next, with all that was before it.
pub struct Window<'a> {
    pub before: &'a [Event],
    pub events: &'a [Event],
}

impl<'a> Window<'a> {
    pub fn all(&self, kind: &str) -> Vec<&'a Event> { self.events.iter().filter(|e| e.kind == kind).collect() }

    /// The last event of this kind that fits.
    pub fn need(&self, kind: &str, what: &str, fits: impl Fn(&Event) -> bool) -> Result<&'a Event, String> {
        self.events.iter().rev().find(|e| e.kind == kind && fits(e)).ok_or_else(|| format!("no {kind}: {what}"))
    }

    /// A speech that was heard to its end.
    pub fn spoken(&self, what: &str) -> Result<&'a Event, String> {
        self.need("speech", what, |e| e.text("text").contains(what) && e.number("heard_ms") == e.number("total_ms") && e.number("total_ms") > 0)
    }

    pub fn question(&self, kind: &str, state: &str) -> Result<&'a Event, String> {
        self.need("question", &format!("{kind} {state}"), |e| e.is("kind", kind) && e.is("state", state))
    }

    pub fn mode(&self, plan: bool) -> Result<&'a Event, String> { self.need("plan_mode", &format!("plan_mode {plan}"), |e| e.payload["plan_mode"] == plan) }

    pub fn ran(&self, tool: &str) -> usize { self.events.iter().filter(|e| e.kind == "tool_result" && e.is("tool", tool) && e.payload["success"] == true).count() }

    pub fn ran_once(&self, tool: &str) -> Result<(), String> { if self.ran(tool) == 1 { Ok(()) } else { Err(format!("{tool} ran {} times", self.ran(tool))) } }

    pub fn ran_never(&self, tool: &str) -> Result<(), String> { if self.ran(tool) == 0 { Ok(()) } else { Err(format!("{tool} ran {} times", self.ran(tool))) } }
}

/// One run of `voxgate talk` with files.
pub struct Run {
    pub home: tempfile::TempDir,
    pub events: Vec<Event>,
    pub mic: Vec<i16>,
    pub speaker: Vec<i16>,
}

impl Run {
    pub fn speeches(&self) -> impl Iterator<Item = &Event> { self.events.iter().filter(|e| e.kind == "speech") }

    /// When a speech began to sound: with a whole frame of 20 ms. Its event comes at the end of the frame that holds its last sample.
    pub fn began_ms(speech: &Event) -> u64 { speech.at_ms.saturating_sub(speech.number("heard_ms")) / 20 * 20 }

    /// Output between two times.
    pub fn played(&self, from_ms: u64, to_ms: u64) -> &[i16] {
        let at = |ms: u64| ((ms * u64::from(RATE_HZ) / 1000) as usize).min(self.speaker.len());
        &self.speaker[at(from_ms)..at(to_ms.max(from_ms))]
    }

    /// The texts of all notes.
    pub fn notes(&self) -> Vec<String> {
        let folder = self.home.path().join("data/notes");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).expect("the notes").map(|f| f.expect("a note").path()).collect();
        files.sort();
        files.iter().map(|f| std::fs::read_to_string(f).expect("a note").to_lowercase()).collect()
    }

    /// Who said what, for a failed test.
    pub fn told(&self) -> String {
        let line = |e: &Event| match e.kind.as_str() {
            "transcript" => format!("{}: {}", e.text("role"), e.text("text")),
            "question" => format!("question {} {} {}", e.text("kind"), e.text("state"), e.text("outcome")),
            "plan_mode" => format!("plan_mode {}", e.payload["plan_mode"]),
            "tool_result" => format!("{} {} {}", e.text("tool"), e.payload["success"], e.text("outcome_code")),
            "notice" => format!("notice {}", e.text("message")),
            other => other.to_string(),
        };
        let shown = self.events.iter().filter(|e| e.kind != "voice_state" && e.kind != "speech");
        shown.map(|e| format!("{:7.2} {}\n", e.at_ms as f64 / 1000.0, line(e))).collect()
    }
}

/// The binary under test in this home, without what the caller's own variables would change.
pub fn voxgate(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_voxgate"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VOXGATE_")) {
        command.env_remove(name);
    }
    command.env("VOXGATE_HOME", home).env("VOXGATE_MODELS", crate::speech::models_dir()).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs to the end; one that never ends is ended and fails the test.
pub fn finished(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("voxgate starts");
    let pid = child.id();
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ended = done.clone();
    let guard = std::thread::spawn(move || {
        let begun = Instant::now();
        while !ended.load(std::sync::atomic::Ordering::Acquire) {
            if begun.elapsed() > PATIENCE {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    });
    let output = child.wait_with_output().expect("voxgate ends");
    done.store(true, std::sync::atomic::Ordering::Release);
    assert!(!guard.join().expect("the guard ends"), "voxgate did not end:\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

pub fn read_events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).expect("the events");
    let values: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect();
    let zero = values.first().and_then(|v| v["timestamp_ms"].as_u64()).expect("a first event");
    let seqs: Vec<u64> = values.iter().filter_map(|v| v["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "seq has a gap: {seqs:?}");
    let event = |v: Value| Event { at_ms: v["timestamp_ms"].as_u64().unwrap_or(zero) - zero, kind: v["type"].as_str().unwrap_or_default().into(), payload: v["payload"].clone() };
    values.into_iter().map(event).collect()
}

/// Holds a conversation with this sound as the microphone, in a home of its own. `prepare` may put files into it.
pub fn talk(mic: &[i16], prepare: impl Fn(&Path)) -> Run { talk_with(mic, &[], prepare) }

/// As [`talk`], with further arguments.
pub fn talk_with(mic: &[i16], arguments: &[&str], prepare: impl Fn(&Path)) -> Run {
    let home = tempfile::tempdir().expect("a folder");
    prepare(home.path());
    let file = |name: &str| home.path().join(name);
    std::fs::write(file("in.wav"), wav::write(RATE_HZ, mic)).expect("the microphone's file");
    let mut command = voxgate(home.path());
    command.args(["talk", "--pace", "fast", "--new"]).arg("--mic").arg(file("in.wav")).arg("--speaker").arg(file("out.wav")).arg("--events").arg(file("ev.jsonl")).args(arguments);
    let output = finished(&mut command);
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(file("out.wav")).expect("the speaker's file");
    let out = wav::parse(&bytes).expect("the speaker's file");
    assert_eq!((out.rate_hz, out.truncated, out.notes.len(), u16::from_le_bytes([bytes[22], bytes[23]]), u16::from_le_bytes([bytes[34], bytes[35]])), (RATE_HZ, false, 0, 1, 16), "mono i16 at the microphone's rate");
    let events = read_events(&file("ev.jsonl"));
    Run { home, events, mic: mic.to_vec(), speaker: out.samples }
}

/// Where a line was said.
#[derive(Clone, Copy, Debug)]
struct Said {
    line: usize,
    /// Of its first sample.
    from_ms: u64,
}

/// A conversation that was held to its end.
pub struct Held {
    pub run: Run,
    pub repeated: Vec<&'static str>,
}

fn window<'a>(events: &'a [Event], said: &[Said], line: usize, reach: usize) -> Window<'a> {
    let start_of = |n: usize| said.iter().find(|s| s.line == n).map_or(u64::MAX, |s| s.from_ms);
    let (from, to) = (start_of(line), start_of(line + reach));
    let at = |ms: u64| events.partition_point(|e| e.at_ms < ms);
    Window { before: &events[..at(from)], events: &events[at(from)..at(to)] }
}

/// Says the lines; `unheard` names those that this voice is known not to be understood at, however often it says them (they are
/// still said twice, and what was heard is printed). The first that brought nothing is said once more, right after and more slowly; then all is held again from the beginning.
pub fn hold(speaker: Speaker, script: &[Line], unheard: &[&str], prepare: impl Fn(&Path)) -> Held { hold_with(speaker, script, unheard, REPEATS_MAX, &[], prepare) }

/// As [`hold`], with so many repeats at most and further arguments.
pub fn hold_with(speaker: Speaker, script: &[Line], unheard: &[&str], repeats_max: usize, arguments: &[&str], prepare: impl Fn(&Path)) -> Held {
    // How often a line is said, and how long the person lets the voice finish before saying it again.
    let mut again: Vec<Option<u64>> = vec![None; script.len()];
    loop {
        let (mic, said) = recorded(speaker, script, &again);
        let run = talk_with(&mic, arguments, &prepare);
        let given_up = |n: usize| again[n].is_some() && unheard.contains(&script[n].text);
        let wrong = |n: usize, line: &Line| (line.expect)(&window(&run.events, &said, n, line.reach)).err();
        let failed = script.iter().enumerate().filter(|(n, _)| !given_up(*n)).find_map(|(n, line)| wrong(n, line).map(|why| (n, why)));
        for (n, line) in script.iter().enumerate().filter(|(n, _)| given_up(*n)) {
            let heard: Vec<&str> = window(&run.events, &said, n, 1).all("transcript").into_iter().filter(|e| e.is("role", "user")).map(|e| e.text("text")).collect();
            println!("{}: {:?} was heard as {heard:?}", speaker.name(), line.text);
        }
        let repeated: Vec<&'static str> = again.iter().zip(script).filter(|(a, _)| a.is_some()).map(|(_, l)| l.text).collect();
        let Some((n, why)) = failed else {
            println!("{}: {} repeats {repeated:?}", speaker.name(), repeated.len());
            return Held { run, repeated };
        };
        println!("{}: {:?} brought nothing ({why})", speaker.name(), script[n].text);
        assert!(again[n].is_none(), "{}: {:?} was said twice: {why}\n{}", speaker.name(), script[n].text, run.told());
        assert!(repeated.len() < repeats_max, "{}: more than {repeats_max} repeats; now {:?}: {why}\n{}", speaker.name(), script[n].text, run.told());
        again[n] = Some(unfinished_ms(&run.events, &said, n));
    }
}

/// How much of what was being said was cut off by the line after this one: a person would have waited for its end.
fn unfinished_ms(events: &[Event], said: &[Said], line: usize) -> u64 {
    let Some(next) = said.iter().find(|s| s.line == line + 1) else { return 0 };
    let cut = events.iter().filter(|e| e.kind == "speech" && e.at_ms > next.from_ms && Run::began_ms(e) < next.from_ms);
    cut.map(|e| Run::began_ms(e) + e.number("total_ms") + 1_000 - next.from_ms).max().unwrap_or(0)
}

fn recorded(speaker: Speaker, script: &[Line], again: &[Option<u64>]) -> (Vec<i16>, Vec<Said>) {
    let mut mic = quiet(BEFORE_MS);
    let mut said = Vec::new();
    for (n, line) in script.iter().enumerate() {
        let times = std::iter::once((0, Pace::Usual)).chain(again[n].map(|extra_ms| (extra_ms, Pace::Slower)));
        for (extra_ms, pace) in times {
            let sound = line.sound(speaker, pace);
            mic.extend(quiet(extra_ms));
            // Whole frames: what follows sounds the same to the ear whether something was repeated before it or not.
            mic.resize(mic.len().next_multiple_of(RATE_HZ as usize / 50), 0);
            said.push(Said { line: n, from_ms: mic.len() as u64 * 1000 / u64::from(RATE_HZ) });
            mic.extend_from_slice(&sound);
            mic.extend(quiet(line.wait_ms));
        }
    }
    (mic, said)
}
