//! `voxgate talk --connect`: the headset of a gateway elsewhere, over Opus and a bad line.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use voxgate::media::wav;

use crate::live::chat::Chat;
use crate::live::{Gateway, home, program, sentence_file};
use crate::pulse;
use crate::sdk_conversation::notes;
use crate::speech::{Pace, RATE_HZ, Speaker, quiet};
use crate::voice::{transcribe, words};

/// How long one line may take to bring what it has to, on a busy machine.
const LINE: Duration = Duration::from_secs(25);

/// What is said, and what is said back.
const STEPS: &[(&str, &str)] = &[
    ("What's in my notes?", "no notes"),
    ("Add buy milk to my notes.", "milk to your notes?"),
    ("Yes, go ahead.", "i added"),
    ("Enter plan mode.", "plan mode is on"),
    ("Add buy eggs to my notes.", "nothing was changed"),
    ("Present the plan.", "plan one"),
    ("Approve plan one.", "confirm plan one"),
    ("Confirm plan one.", "to your notes?"),
    ("Yes, do it.", "added"),
    ("What mode are you in?", "plan mode is off"),
];

/// The seven steps of the main job, with 5 % of the packets lost both ways. Sound goes through a sound server on both sides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seven_steps_hold_over_opus_with_five_percent_lost() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = pulse::start(dir.path());
    let server = pulse::server(dir.path());
    let mut gateway = Gateway::serve("").await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let url = format!("ws://{}/v1/realtime?conversation={}", gateway.address, chat.id);
    let mut headset = program();
    headset.args(["talk", "--connect", &url, "--impair", "loss=5"]).env("VOXGATE_HOME", gateway.home()).env("PULSE_SERVER", &server);
    let headset = headset.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    chat.until("the headset has joined", |s| (s.shown.voice == "listening").then_some(())).await;

    for (line, answer) in STEPS { said_and_answered(&chat, &server, dir.path(), line, answer).await }
    let mark = chat.mark();
    say(&chat, &server, dir.path(), "What can I say?", Pace::Usual).await;
    chat.until("it reads what can be said", |s| (s.shown.voice == "speaking").then_some(())).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    say(&chat, &server, dir.path(), "Stop.", Pace::Usual).await;
    chat.event_after(mark, "it was cut", |e| e["type"] == "speech" && e["payload"]["heard_ms"].as_u64() < e["payload"]["total_ms"].as_u64()).await;

    let kept = notes(&gateway);
    assert!(kept.len() == 2 && kept.iter().any(|n| n.contains("milk")), "{kept:?}");
    assert!(!chat.look(|s| s.shown.plan_mode));
    let pid = headset.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = headset.wait_with_output().await.unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    println!("{told}");
    assert!(ended.status.success() && told.contains("on purpose: "), "{told}");
    let heard = String::from_utf8_lossy(&ended.stdout).to_lowercase();
    assert!(heard.contains("voxgate: plan mode is on") && heard.contains("you: enter plan mode"), "{heard}");
    let report = chat.event_after(0, "the packets' account", |e| e["type"] == "notice" && e["payload"]["code"] == "audio_packets").await;
    println!("{}", report["payload"]["message"]);
    gateway.says("listening on").await;
}

/// Says a line, once more and more slowly where it was not understood.
async fn said_and_answered(chat: &Chat, server: &str, dir: &Path, line: &str, answer: &str) {
    for pace in [Pace::Usual, Pace::Slower] {
        let mark = chat.mark();
        say(chat, server, dir, line, pace).await;
        let began = Instant::now();
        while began.elapsed() < LINE {
            if chat.look(|s| s.events[mark..].iter().any(|e| is_heard(e, answer))) { return }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("{line:?} did not bring {answer:?}");
    }
    let last = chat.look(|s| s.events.iter().rev().take(40).rev().map(|e| format!("{e}\n")).collect::<String>());
    panic!("{line:?} was said twice and did not bring {answer:?}:\n{last}");
}

/// A speech that was heard to its end, and has these words.
fn is_heard(event: &Value, words: &str) -> bool {
    let p = &event["payload"];
    event["type"] == "speech" && p["heard_ms"] == p["total_ms"] && p["text"].as_str().is_some_and(|text| text.to_lowercase().contains(words))
}

async fn say(chat: &Chat, server: &str, dir: &Path, text: &str, pace: Pace) {
    if text != "Stop." {
        chat.until("it has spoken", |s| (s.shown.voice == "listening").then_some(())).await;
        // As people do, who hear that it is over.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let line = text.to_string();
    let sound = tokio::task::spawn_blocking(move || [Speaker::Hibari.say_at(&line, pace), quiet(100)].concat()).await.unwrap();
    let file = dir.join("line.wav");
    std::fs::write(&file, wav::write(RATE_HZ, &sound)).unwrap();
    let played = tokio::process::Command::new("paplay").args(["-d", "micsink"]).arg(&file).env("PULSE_SERVER", server).status().await;
    assert!(played.expect("paplay (apt-get install pulseaudio-utils)").success());
}

/// Files as ends, a line that loses, moves and doubles, and a gateway that keeps the sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_over_a_bad_line_is_answered_and_the_sound_is_kept() {
    let gateway = Gateway::serve("[record]\nenabled = true\n").await;
    let file = |name: &str| gateway.home().join(name);
    sentence_file(file("in.wav"), 600, "What's in my notes?", 16_000);
    let mut talk = program();
    talk.args(["talk", "--connect", &format!("http://{}", gateway.address), "--new", "--impair", "loss=5,reorder=2,dup=2,seed=4", "--mic"]).arg(file("in.wav"));
    talk.arg("--speaker").arg(file("out.wav")).arg("--events").arg(file("ev.jsonl")).env("VOXGATE_HOME", gateway.home()).stdin(Stdio::null());
    let output = talk.output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    println!("{told}");
    assert!(output.status.success(), "{told}");
    let out = wav::parse(&std::fs::read(file("out.wav")).unwrap()).unwrap();
    let text = tokio::task::spawn_blocking(move || transcribe(&out.samples, out.rate_hz)).await.unwrap();
    assert_eq!(words(&text), words("You have no notes."));
    let events: Vec<Value> = std::fs::read_to_string(file("ev.jsonl")).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(events.iter().any(|e| e["event"]["type"] == "response.done") && events.iter().all(|e| e["event"]["type"] != "error"));
    let metrics = gateway.ask("GET", "/metrics", "").await.body;
    for fate in ["played", "lost"] { assert!(metrics.contains(&format!("voxgate_opus_packets_total{{fate=\"{fate}\"}}")), "{metrics}") }

    // A wrong key is refused in words; the gateway's own home needs none.
    let mut strange = program();
    strange.args(["talk", "--connect", &format!("ws://{}", gateway.address), "--key", "vgc_nobody", "--mic"]).arg(file("in.wav")).env("VOXGATE_HOME", gateway.home());
    let refused = strange.output().await.unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("does not take this key"), "{}", String::from_utf8_lossy(&refused.stderr));

    let id = events[0]["event"]["session"]["id"].as_str().unwrap().to_string();
    let kept = gateway.home().join(format!("data/sessions/{id}.1.opus"));
    let home = gateway.home().to_path_buf();
    // Its home is needed after it has ended.
    let safe = tempfile::tempdir().unwrap();
    copy(&home.join("data/sessions"), &safe.path().join("data/sessions"));
    let (status, said) = gateway.end("-INT").await;
    assert!(status.success() && !kept.exists(), "{said}");
    let open = safe.path().join(format!("data/sessions/{id}.1.opus"));
    assert!(std::fs::metadata(&open).unwrap().len() > 2_000, "what is written while it runs is there");
    let info = opusinfo(&open);
    assert!(info.contains("left: the microphone") || info.contains("COMMENT"), "{info}");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// What an independent reader says of a recording.
pub fn opusinfo(file: &Path) -> String {
    let output = std::process::Command::new("opusinfo").arg(file).output().expect("opusinfo (apt-get install opus-tools)");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A recording of a whole talk: closed, stereo, as long as the talk, listed, and gone with the conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_whole_listed_and_wiped() {
    let home = home("[record]\nenabled = true\n");
    let file = |name: &str| home.path().join(name);
    sentence_file(file("in.wav"), 600, "What's in my notes?", 16_000);
    let run = |args: &[&str]| { let mut p = program(); p.args(args).env("VOXGATE_HOME", home.path()).stdin(Stdio::null()); p };
    let mut talk = run(&["talk", "--pace", "fast", "--new", "--mic"]);
    talk.arg(file("in.wav")).arg("--speaker").arg(file("out.wav")).arg("--events").arg(file("ev.jsonl"));
    let output = talk.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(file("ev.jsonl")).unwrap().contains("is recorded on the gateway's machine"));
    let played = wav::parse(&std::fs::read(file("out.wav")).unwrap()).unwrap();
    let recording = std::fs::read_dir(file("data/sessions")).unwrap().map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "opus")).expect("a recording");
    let info = opusinfo(&recording);
    println!("{info}");
    assert!(info.contains("Channels: 2") && !info.to_lowercase().contains("warning") && !info.contains("ERROR"), "{info}");

    // Each side by itself: the question on the left, the answer on the right, in time with the files of the talk.
    let decoded = file("both.wav");
    let done = std::process::Command::new("opusdec").args(["--quiet", "--rate", "16000"]).arg(&recording).arg(&decoded).status();
    assert!(done.expect("opusdec (apt-get install opus-tools)").success());
    let mut reader = hound::WavReader::open(&decoded).unwrap();
    assert_eq!((reader.spec().channels, reader.spec().sample_rate), (2, 16_000));
    let both: Vec<i16> = reader.samples::<i16>().map(Result::unwrap).collect();
    let side = |n: usize| -> Vec<i16> { both.iter().skip(n).step_by(2).copied().collect() };
    let (left, right) = (side(0), side(1));
    let off = left.len() as i64 - played.samples.len() as i64;
    assert!(off.abs() < 16_000 / 10, "{off} samples longer than the talk");
    let begins = |sound: &[i16]| sound.iter().position(|s| s.unsigned_abs() > 500).unwrap() as i64;
    assert!((begins(&right) - begins(&played.samples)).abs() < 800, "{} {}", begins(&right), begins(&played.samples));
    let hear = |sound: Vec<i16>| tokio::task::spawn_blocking(move || transcribe(&sound, 16_000));
    assert_eq!(words(&hear(left).await.unwrap()), words("What's in my notes?"));
    assert_eq!(words(&hear(right).await.unwrap()), words("You have no notes."));

    let text = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text(run(&["sessions", "list"]).output().await.unwrap()).contains("[recorded]"));
    assert!(text(run(&["sessions", "wipe", "--all"]).output().await.unwrap()).contains("1 conversation deleted"));
    assert!(!recording.exists());
}

/// The gateway goes away and comes back: the headset says so, joins the same conversation, and counts on. Another headset takes its
/// place: it lets go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_goes_away_is_joined_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let home = home("");
    std::fs::write(home.path().join("in.wav"), wav::write(16_000, &vec![0; 16_000 * 60])).unwrap();
    std::fs::write(home.path().join("key"), "vgc_some_key_of_a_client\n").unwrap();
    let key = format!("@{}", home.path().join("key").display());
    let mut talk = program();
    talk.args(["talk", "--connect", &format!("localhost:{}", address.port()), "--key", &key, "--mic"]).arg(home.path().join("in.wav"));
    let talk = talk.env("VOXGATE_HOME", home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let mut packets = Vec::new();
    for visit in 0..2 {
        let (stream, _) = listener.accept().await.unwrap();
        let mut asked = String::new();
        #[allow(clippy::result_large_err)]
        let look = |request: &Request, mut response: Response| {
            asked = request.uri().to_string();
            assert_eq!(request.headers()["authorization"], "Bearer vgc_some_key_of_a_client");
            response.headers_mut().insert("sec-websocket-protocol", "realtime".parse().unwrap());
            Ok(response)
        };
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, look).await.unwrap();
        assert!(asked.starts_with("/v1/realtime?model=voxgate&conversation=") && asked.ends_with(["last", "abc"][visit]), "{asked}");
        socket.send(Message::text(json!({"type": "session.created", "event_id": "e", "session": {"id": "abc"}}).to_string())).await.unwrap();
        let mut taken = 0;
        while taken < 10 {
            let Some(Ok(Message::Text(text))) = socket.next().await else { continue };
            let event: Value = serde_json::from_str(&text).unwrap();
            if event["type"] == "input_audio_buffer.append" {
                packets.push(event["event_id"].as_str().unwrap().to_string());
                taken += 1;
            } else {
                assert_eq!(event["session"]["audio"]["output"]["format"], json!({"type": "audio/opus", "rate": 48_000}));
            }
        }
        if visit == 1 {
            let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code: 1008.into(), reason: "another client has taken this conversation's microphone".into() };
            socket.close(Some(frame)).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        }
    }
    let ended = tokio::time::timeout(Duration::from_secs(30), talk.wait_with_output()).await.expect("it ends").unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("trying again in 0.5 s") && told.contains("connected again") && told.contains("another client"), "{told}");
    assert!(packets.windows(2).all(|w| w[0] < w[1]) && packets[0] == "pkt_000000", "{packets:?}");
}

/// What cannot work is said at once, and nothing is sent to another machine in the clear.
#[tokio::test]
async fn another_machine_and_wrong_arguments_are_refused_in_words() {
    let home = home("");
    std::fs::write(home.path().join("in.wav"), wav::write(16_000, &[0; 1_600])).unwrap();
    let mic = home.path().join("in.wav").display().to_string();
    for (args, code, words) in [
        (vec!["--connect", "ws://192.0.2.7:8710"], 2, "another machine"),
        (vec!["--connect", "wss://127.0.0.1"], 2, "no TLS yet"),
        (vec!["--connect", "ws://127.0.0.1:99999"], 2, "no address"),
        (vec!["--connect", "ws://127.0.0.1:9"], 2, "--key"),
        (vec!["--connect", "ws://127.0.0.1:9", "--key", "k"], 1, "no gateway answers at 127.0.0.1:9"),
        (vec!["--connect", "ws://127.0.0.1:9", "--key", "k", "--pace", "fast"], 2, "wall"),
        (vec!["--connect", "ws://127.0.0.1:9", "--impair", "loss=many"], 2, "percentage"),
        (vec!["--impair", "loss=5"], 2, "--connect"),
        (vec!["--connect", "ws://127.0.0.1:9", "--port", "1"], 2, "cannot be used with"),
    ] {
        let output = program().arg("talk").args(&args).args(["--mic", &mic]).env("VOXGATE_HOME", home.path()).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && told.contains(words), "{args:?}: {:?} {told}", output.status);
    }
}
