//! The stock `openai` Python client at the door: it speaks, hears, interrupts and truncates, and finds nothing out of order.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use voxgate::engine::id::UtteranceId;
use voxgate::media::wav;
use voxgate::session::leg::{LegEnd, LegInput, LegOutput};

use super::world::{Driver, World, tone};

/// Longest wait for a Python and its imports on a busy machine.
const STARTS: Duration = Duration::from_secs(60);

/// Where the client is installed: `VOXGATE_SDK_PYTHON`, or `target/sdk` in the project's folder.
pub(crate) fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("VOXGATE_SDK_PYTHON").map_or(root.join("target/sdk/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "the openai client is not installed at {}; run: python3 -m venv target/sdk && target/sdk/bin/pip install -r tests/sdk/requirements.txt \
         (or set VOXGATE_SDK_PYTHON to a Python that has it)",
        python.display()
    );
    python
}

async fn talk(address: &str, folder: &Path, more: &[&str]) -> (Output, Value) {
    let report = folder.join("report.json");
    let output = Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/talk_client.py"))
        .args(["--url", &format!("http://{address}/v1"), "--key", "test", "--json"])
        .arg(&report)
        .args(more)
        .output()
        .await
        .unwrap();
    let report = std::fs::read_to_string(&report).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output, serde_json::from_str(&report).unwrap())
}

/// Half a second of a tone and a little silence on either side, at 16 kHz: the client has to resample it.
fn write_utterance(path: &Path) {
    let mut samples = vec![0i16; 3_200];
    samples.extend(tone(16_000, 500));
    samples.extend(vec![0i16; 1_600]);
    std::fs::write(path, wav::write(16_000, &samples)).unwrap();
}

/// A conversation whose ear is a level: a loud stretch is an utterance, 300 ms of quiet end it, and each is answered by a second and a
/// half of sound. It answers a truncation by nothing and remembers it.
async fn play(mut driver: Driver) -> (u64, Vec<u64>) {
    let mut by_hand = false;
    let (mut at_ms, mut loud, mut quiet_ms, mut turns, mut cuts) = (0u64, false, 0u64, 0u64, Vec::new());
    while let Some(input) = driver.input.recv().await {
        match input {
            LegInput::Turns(turns) => by_hand = !turns.automatic,
            LegInput::Audio(_) if by_hand => {}
            LegInput::Audio(piece) => {
                let ms = piece.len() as u64 / 16;
                let peak = piece.iter().map(|s| s.unsigned_abs()).max().unwrap_or(0);
                at_ms += ms;
                quiet_ms = if peak > 2_000 { 0 } else { quiet_ms + ms };
                let item = format!("item_u{turns}");
                if peak > 2_000 && !loud {
                    loud = true;
                    driver.say(LegOutput::SpeechStarted { utterance: UtteranceId(turns), at_ms, item: item.as_str().into() }).await;
                } else if loud && quiet_ms >= 300 {
                    loud = false;
                    driver.say(LegOutput::SpeechStopped { utterance: UtteranceId(turns), at_ms, item: item.as_str().into() }).await;
                    understand(&driver, turns, &item).await;
                    answer(&driver, turns).await;
                    turns += 1;
                }
            }
            LegInput::Truncate { audio_end_ms, .. } => cuts.push(audio_end_ms),
            LegInput::Commit { item } => {
                understand(&driver, turns, &item.0).await;
                turns += 1;
            }
            LegInput::CreateResponse => answer(&driver, turns - 1).await,
            _ => {}
        }
    }
    (turns, cuts)
}

async fn understand(driver: &Driver, turn: u64, item: &str) {
    driver.say(LegOutput::Committed { item: item.into() }).await;
    driver.say(LegOutput::UserTranscript { item: item.into(), text: Some(format!("utterance {turn}")) }).await;
}

async fn answer(driver: &Driver, turn: u64) {
    driver.turn_began(turn).await;
    driver.begin(turn, &format!("item_a{turn}"), Some(turn)).await;
    driver.text(turn, &format!("This is answer {turn}.")).await;
    driver.sound(turn, 1_500).await;
    driver.end(turn, LegEnd::Completed).await;
    driver.turn_ended(turn, LegEnd::Completed).await;
}

#[tokio::test]
async fn the_stock_client_speaks_interrupts_and_goes_on() {
    let mut world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    write_utterance(&folder.path().join("say.wav"));
    let steps = json!([
        {"wav": "say.wav", "wait_for": {"type": "response.done", "contains": "answer 0"}},
        {"wav": "say.wav", "wait_for": {"type": "conversation.item.input_audio_transcription.completed", "matches": "utterance \\d"}},
        {"wav": "say.wav", "during": true, "wait_for": [{"contains": "no such thing"}, {"contains": "ANSWER 3"}], "tries": 2, "settle": 0.5},
    ]);
    let steps_file = folder.path().join("steps.json");
    std::fs::write(&steps_file, steps.to_string()).unwrap();
    let address = world.address.clone();
    let speaker = folder.path().join("heard.wav");
    let more = ["--chunk-ms", "20", "--settle", "3", "--steps", steps_file.to_str().unwrap(), "--speaker", speaker.to_str().unwrap()];
    let client = talk(&address, folder.path(), &more);
    let played = async { play(world.driver_within(STARTS).await).await };
    let ((output, report), (turns, cuts)) = tokio::join!(client, played);
    assert!(output.status.success(), "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&report["order_errors"], &report["errors"], &report["repeats"]), (&json!([]), &json!([]), &json!(1)));
    assert_eq!((turns, report["session_id"].as_str()), (4, Some("conv_1")));
    assert_eq!(report["heard"][3]["text"], "utterance 3");
    // The third thing was said into the second answer: the client stopped there, and the gateway learned where.
    let cut = report["truncated"][0]["audio_end_ms"].as_u64().unwrap();
    assert!(cuts.len() == 1 && cuts[0] == cut && (300..1_500).contains(&cut), "{cuts:?} {report:#}");
    assert_eq!(report["played"][1]["cut_at_ms"], json!(cut));
    assert_eq!(report["played"][0]["played_ms"], json!(1_500));
    assert!(report["late_ms"].as_u64().unwrap() < 1_000, "{report:#}");
    assert!(std::fs::metadata(speaker).unwrap().len() > 48_000);
}

#[tokio::test]
async fn the_stock_client_takes_its_turns_by_hand() {
    let mut world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    write_utterance(&folder.path().join("say.wav"));
    let wav = folder.path().join("say.wav");
    let address = world.address.clone();
    let more = ["--chunk-ms", "100", "--manual", "--settle", "3", "--wav", wav.to_str().unwrap()];
    let client = talk(&address, folder.path(), &more);
    let played = async { play(world.driver_within(STARTS).await).await };
    let ((output, report), (turns, _)) = tokio::join!(client, played);
    assert!(output.status.success(), "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((turns, &report["responses"][0]["text"]), (1, &json!("This is answer 0.")));
}
