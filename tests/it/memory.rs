//! Memory over many interruptions: two thousand in one conversation through the real loop, detector and playback.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use voxgate::cli::setup::Place;
use voxgate::engine::heard::Heard;
use voxgate::session::file::{FileDevice, FileRun, Pace};
use voxgate::session::parts::Parts;
use voxgate::session::registry::Which;
use voxgate::stt::{Job, Recogniser, SttError};
use voxgate::tts::tone::Tone;

use crate::speech::{RATE_HZ, Speaker, quiet};

const BARGE_INS: u64 = 2_000;
/// Set in the process that has the measurement to itself.
const ALONE: &str = "VOXGATE_TEST_ALONE";
/// What may come and go.
const SLACK_KIB: u64 = 5 * 1024;

/// Hears the same question in everything.
struct Always;

impl Recogniser for Always {
    fn recognise(&self, _: Job) -> BoxFuture<'_, Result<Heard, SttError>> { ready(Ok(Heard::text_only("What mode are you in?"))).boxed() }
}

/// A person who asks anew while the answer is being said, and again.
struct Impatient {
    round: Vec<i16>,
    /// Resident memory in KiB at a quarter and at the end.
    resident: [u64; 2],
}

impl FileDevice for Impatient {
    fn rate_hz(&self) -> u32 { RATE_HZ }
    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> {
        let round = self.round.len() as u64;
        for (slot, at) in [(0, BARGE_INS / 4), (1, BARGE_INS)] {
            if from / round == at && self.resident[slot] == 0 { self.resident[slot] = resident_kib() }
        }
        (from..to.min(self.length())).map(|n| self.round[(n % round) as usize]).collect()
    }
    fn length(&self) -> u64 { self.round.len() as u64 * (BARGE_INS + 1) }
    fn speaker(&mut self, _: &[i16]) -> Result<(), String> { Ok(()) }
}

fn resident_kib() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").expect("the kernel's account");
    told.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4
}

#[test]
fn field_case_47_two_thousand_barge_ins_leave_memory_flat() {
    if std::env::var_os(ALONE).is_some() {
        return alone();
    }
    // Other tests of this process come and go; their memory is not meant.
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), "[plan]\npersist = \"memory\"\n").unwrap();
    let this = std::env::current_exe().expect("this program");
    let done = Command::new(this).args(["--exact", "memory::field_case_47_two_thousand_barge_ins_leave_memory_flat", "--nocapture"]).env(ALONE, "1").env("VOXGATE_HOME", home.path()).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    println!("{told}");
    assert!(done.status.success() && told.contains("KiB at the end"), "{told}");
}

fn alone() {
    let place = Place::find(None, &[]).unwrap_or_else(|e| panic!("{e}"));
    let catalogue = place.catalogue().unwrap_or_else(|e| panic!("{e}"));
    let agent = place.agent(&catalogue).unwrap_or_else(|e| panic!("{e}"));
    let parts = Parts { recogniser: Arc::new(Always), language: "en".into(), judge: None, judge_waits: false, vad: voxgate::listen::vad::VadMaker::default(), cleaning: voxgate::session::parts::Cleaning::default(), voice: Arc::new(Tone::new(1.0)), agent, catalogue };
    let mut person = Impatient { round: [Speaker::FliteSlt.say("What mode are you in?"), quiet(800)].concat(), resident: [0; 2] };
    let cut = Arc::new(AtomicU64::new(0));
    let counter = cut.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let hub = place.hub(parts);
        let (driver, _handle) = hub.make(Which::New).unwrap_or_else(|e| panic!("{e}"));
        let driver = driver.with_sink(Box::new(move |line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("an event");
            let number = |name: &str| event["payload"][name].as_u64().unwrap_or_default();
            if event["type"] == "speech" && number("heard_ms") < number("total_ms") { counter.fetch_add(1, Ordering::Relaxed); }
        }));
        driver.run_file(&mut person, FileRun { pace: Pace::Fast, stand_still: true }).await.unwrap_or_else(|e| panic!("{e}"));
    });
    let [quarter, end] = person.resident;
    let cut = cut.load(Ordering::Relaxed);
    println!("{cut} answers were cut off; {quarter} KiB after a quarter of them, {end} KiB at the end");
    assert!(cut >= BARGE_INS * 95 / 100, "only {cut} answers were cut off");
    assert!(end.abs_diff(quarter) < SLACK_KIB, "{quarter} KiB, then {end} KiB");
}
