//! `voxgate talk` on sound cards: a question that is played into one sink is answered at the other.

use std::process::Command;
use std::time::Duration;

use voxgate::media::wav;

use crate::live::{Gateway, sentence_file};
use crate::pulse;
use crate::voice::{transcribe, words};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_at_one_sink_is_answered_at_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = pulse::start(dir.path());
    let server = pulse::server(dir.path());
    let mut talk = Gateway::run(&["talk", "--port", "0"], "", &[("PULSE_SERVER", server.clone())]).await;
    talk.says("voxgate: microphone").await;
    talk.says("voxgate: speak").await;
    let chat = crate::live::chat::Chat::follow(&talk, "last", false).await;

    let heard = dir.path().join("heard.wav");
    let mut recorder = Command::new("parecord")
        .args(["-d", "speaker.monitor", "--file-format=wav", "--format=s16le", "--rate=48000", "--channels=1", "--latency-msec=20"]).arg(&heard)
        .env("PULSE_SERVER", &server).spawn().expect("parecord (apt-get install pulseaudio-utils)");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let question = sentence_file(dir.path().join("question.wav"), 300, "What's in my notes?", 48_000);
    let played = tokio::process::Command::new("paplay").args(["-d", "micsink"]).arg(&question).env("PULSE_SERVER", &server).status().await;
    assert!(played.expect("paplay (apt-get install pulseaudio-utils)").success());
    let answer = chat.event_after(0, "the answer was heard", |e| e["type"] == "speech").await;
    println!("{}", answer["payload"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap().success());
    recorder.wait().unwrap();

    let sound = wav::parse(&std::fs::read(&heard).unwrap()).unwrap();
    let text = tokio::task::spawn_blocking(move || transcribe(&sound.samples, sound.rate_hz)).await.unwrap();
    println!("heard at the speaker: {text}");
    assert_eq!(words(&text), words("You have no notes."));
    chat.agrees(&talk).await;
    chat.look(|s| assert_eq!(s.shown.calls.len(), 1));
    drop(chat);
    let (status, said) = talk.end("-INT").await;
    assert!(status.success(), "{status}: {said}");
}
