//! Sound cards that vanish, come back and are no longer the default, in the middle of a conversation; and how devices are listed.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::live::chat::Chat;
use crate::live::{Gateway, sentence_file};
use crate::pulse::{self, pactl};
use crate::talking::{finished, voxgate};

/// Waits for a notice about a device with these words; how long it took. Whether it is said to be gone or only no longer the
/// default depends on which of the two was seen first.
async fn told(chat: &Chat, mark: usize, words: &str) -> u128 {
    let began = Instant::now();
    let fits = |e: &Value| e["type"] == "notice" && e["payload"]["code"] == "device" && e["payload"]["message"].as_str().unwrap().contains(words);
    let notice = chat.event_after(mark, words, fits).await;
    println!("{} ms: {}", began.elapsed().as_millis(), notice["payload"]["message"]);
    began.elapsed().as_millis()
}

/// Asks by voice at this sink, and is answered to the end.
async fn asks(chat: &Chat, dir: &Path, sink: &str) {
    let mark = chat.mark();
    let question = sentence_file(dir.join("question.wav"), 300, "What's in my notes?", 48_000);
    pulse::play(dir, sink, &question).await;
    let answer = chat.event_after(mark, "the answer was heard", |e| e["type"] == "speech").await;
    assert!(answer["payload"]["text"].as_str().unwrap().contains("no notes") && answer["payload"]["heard_ms"] == answer["payload"]["total_ms"], "{answer}");
}

/// Field case 43: an unplugged headset stops all sound without an error, and the next default is not followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_case_43_a_device_that_vanishes_is_replaced_told_and_taken_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _daemon = pulse::start(dir);
    // A telephone's headset beside the usual card: another rate.
    pactl(dir, &["load-module", "module-null-sink", "sink_name=other", "rate=16000", "channels=2"]);
    pactl(dir, &["load-module", "module-null-sink", "sink_name=othersink", "rate=16000", "channels=1"]);
    pactl(dir, &["load-module", "module-remap-source", "source_name=othermic", "master=othersink.monitor"]);
    pactl(dir, &["set-default-source", "othermic"]);
    let mut talk = Gateway::run(&["talk", "--port", "0", "--mic", "mic"], "", &[("PULSE_SERVER", pulse::server(dir))]).await;
    talk.says("voxgate: speak").await;
    let chat = Chat::follow(&talk, "last", false).await;

    // Nobody named a speaker: the default is followed.
    let mark = chat.mark();
    pactl(dir, &["set-default-sink", "other"]);
    let default_ms = told(&chat, mark, "no longer").await;

    // The microphone that was named goes away: the default one is taken.
    let mark = chat.mark();
    let module = pactl(dir, &["list", "short", "modules"]).lines().find(|l| l.contains("source_name=mic ")).unwrap().split('\t').next().unwrap().to_string();
    pactl(dir, &["unload-module", &module]);
    let gone_ms = told(&chat, mark, "icrophone is now Remapped Monitor of Null Output (othermic)").await;
    asks(&chat, dir, "othersink").await;

    // It comes back, and so is taken again.
    let mark = chat.mark();
    pactl(dir, &["load-module", "module-remap-source", "source_name=mic", "master=micsink.monitor"]);
    let back_ms = told(&chat, mark, "icrophone is now Remapped Monitor of Null Output (mic)").await;

    // The speaker goes away in its turn.
    let mark = chat.mark();
    let module = pactl(dir, &["list", "short", "modules"]).lines().find(|l| l.contains("sink_name=other ")).unwrap().split('\t').next().unwrap().to_string();
    pactl(dir, &["unload-module", &module]);
    let speaker_ms = told(&chat, mark, "peaker is now Null Output (speaker)").await;
    asks(&chat, dir, "micsink").await;

    println!("told after: default changed {default_ms} ms, microphone gone {gone_ms} ms, back {back_ms} ms, speaker gone {speaker_ms} ms");
    // A second on a machine that is free; a busy one may take longer to open, not to notice.
    assert!([default_ms, gone_ms, back_ms, speaker_ms].iter().all(|ms| *ms < 5_000));
    chat.agrees(&talk).await;
    let metrics = talk.ask("GET", "/metrics", "").await.body;
    assert!(metrics.lines().any(|l| l.starts_with("voxgate_device_reopened_total")), "{metrics}");
    drop(chat);
    let (status, said) = talk.end("-INT").await;
    assert!(status.success(), "{status}: {said}");
}

#[test]
fn devices_are_listed_by_name_and_nothing_else_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = pulse::start(dir.path());
    let list = |server: &str, more: &[(&str, &str)]| {
        let output = finished(voxgate(dir.path()).arg("devices").env("PULSE_SERVER", server).envs(more.iter().copied()));
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (ok, out, err) = list(&pulse::server(dir.path()), &[]);
    assert!(ok && err.is_empty() && out.starts_with("PulseAudio\n"), "{out}{err}");
    assert!(out.lines().any(|l| l.starts_with(" * mic ")) && out.lines().any(|l| l.starts_with(" * speaker ")) && out.contains(" Hz"), "{out}");
    // Without a server ALSA is asked, whose plugins complain on stderr of every card that is not there.
    let (_, out, err) = list("unix:/nowhere/pulse", &[]);
    println!("{out}");
    assert!(err.is_empty(), "{err}");
    let output = finished(voxgate(dir.path()).args(["talk", "--speaker", "NULL"]).env("PULSE_SERVER", pulse::server(dir.path())));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("could be any of") && said.contains("speaker (") && said.contains("micsink ("), "{said}");
}

#[test]
fn without_a_device_no_conversation_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let models = dir.path().join("no-models").display().to_string();
    let deaf = [("PULSE_SERVER", "unix:/nowhere/pulse"), ("ALSA_CONFIG_PATH", "/dev/null"), ("PIPEWIRE_REMOTE", "/nowhere/pipewire"), ("VOXGATE_MODELS", &models)];
    let output = finished(voxgate(dir.path()).arg("talk").envs(deaf));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("microphone") && said.contains("--mic FILE.wav") && !said.contains("models get"), "{said}");
    let sessions = dir.path().join("data/sessions");
    assert!(std::fs::read_dir(&sessions).map_or(0, Iterator::count) == 0, "something was begun in {}", sessions.display());
}
