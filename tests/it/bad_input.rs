//! Bad input and what it gets: a message that says what to do, and its exit code; odd sound files are converted or refused.

use std::path::Path;

use voxgate::media::resample::resample_all;
use voxgate::media::wav;

use crate::speech::{RATE_HZ, Speaker, quiet};
use crate::talking::{finished, read_events, voxgate};

/// Exit code and what was written to stderr.
fn ended(home: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = finished(voxgate(home).args(args).envs(variables.iter().copied()));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn told(what: &str, got: &(Option<i32>, String), code: i32, parts: &[&str]) {
    assert!(got.0 == Some(code) && parts.iter().all(|part| got.1.contains(part)), "{what}: exit {:?}, wanted {code} and {parts:?}:\n{}", got.0, got.1);
    assert!(!got.1.contains("panicked"), "{what}: {}", got.1);
}

fn put(home: &Path, name: &str, bytes: &[u8]) -> String {
    let path = home.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path.display().to_string()
}

#[test]
fn every_mistake_of_a_configuration_is_told_at_once_with_its_line() {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), "config.toml", b"[server]\nprot = 1\nport = \"many\"\n\n[stt]\nworkers = -3\n");
    for command in [&["serve"][..], &["talk"], &["config", "check"], &["doctor"]] {
        let got = ended(dir.path(), command, &[]);
        told(&format!("{command:?}"), &got, 2, &["config.toml:2:", "prot", "config.toml:3:", "port", "config.toml:6:", "workers"]);
    }
    let got = ended(dir.path(), &["serve", "--config", "/nowhere/config.toml"], &[]);
    told("a file that was named and is not there", &got, 2, &["/nowhere/config.toml"]);
    put(dir.path(), "config.toml", b"");
    told("a variable", &ended(dir.path(), &["serve"], &[("VOXGATE_SERVER__PORT", "99999")]), 2, &["VOXGATE_SERVER__PORT"]);
    told("an argument", &ended(dir.path(), &["talk", "--pace", "slow"], &[]), 2, &["slow", "real"]);
}

#[test]
fn a_missing_model_names_the_command_that_brings_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let mic = put(dir.path(), "mic.wav", &wav::write(RATE_HZ, &quiet(500)));
    let models = dir.path().join("none").display().to_string();
    let missing = [("VOXGATE_MODELS", models.as_str())];
    told("talk", &ended(dir.path(), &["talk", "--mic", &mic, "--pace", "fast"], &missing), 1, &["voxgate models get"]);
    told("serve", &ended(dir.path(), &["serve", "--port", "0"], &missing), 1, &["voxgate models get whisper-tiny.en"]);
    let named = [("VOXGATE_STT__MODEL", "/nowhere/own.bin")];
    told("a file of one's own", &ended(dir.path(), &["serve", "--port", "0"], &named), 1, &["stt.model", "/nowhere/own.bin"]);
}

#[test]
fn a_file_that_is_no_sound_and_a_place_that_cannot_be_written_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let good = wav::write(RATE_HZ, &quiet(500));
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty.wav", b"", "0 bytes"), ("text.wav", b"this is a poem about a river", "not a WAV"), ("head.wav", &good[..20], "no format"),
        ("silent.wav", &good[..44], "no sound"), ("noise.wav", &[0xff; 3_000], "not a WAV"),
    ];
    for (name, bytes, part) in cases {
        let mic = put(dir.path(), name, bytes);
        told(name, &ended(dir.path(), &["talk", "--mic", &mic, "--pace", "fast"], &[]), 2, &[name, part]);
    }
    let mut compressed = good.clone();
    compressed[20] = 0x55;
    let mic = put(dir.path(), "mp3.wav", &compressed);
    told("a codec", &ended(dir.path(), &["talk", "--mic", &mic, "--pace", "fast"], &[]), 2, &["mp3.wav", "ffmpeg"]);
    told("missing", &ended(dir.path(), &["talk", "--mic", "/nowhere/mic.wav"], &[]), 2, &["/nowhere/mic.wav", "no such file"]);
    let mic = put(dir.path(), "mic.wav", &good);
    told("no folder", &ended(dir.path(), &["talk", "--mic", &mic, "--speaker", "/nowhere/out.wav"], &[]), 2, &["/nowhere/out.wav"]);
    let folder = dir.path().display().to_string();
    told("a folder", &ended(dir.path(), &["talk", "--mic", &mic, "--speaker", &folder], &[]), 2, &["folder"]);
    told("events", &ended(dir.path(), &["talk", "--mic", &mic, "--events", "/nowhere/ev.jsonl", "--pace", "fast"], &[]), 2, &["/nowhere/ev.jsonl"]);
    told("a speaker's file alone", &ended(dir.path(), &["talk", "--speaker", "out.wav"], &[]), 2, &["--mic"]);
    // A full disk is told at the end and the exit code says so.
    told("a full disk", &ended(dir.path(), &["talk", "--mic", &mic, "--speaker", "/dev/full", "--pace", "fast"], &[]), 1, &["/dev/full"]);
}

#[test]
fn a_taken_port_and_a_machine_without_sound_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    told("serve", &ended(dir.path(), &["serve", "--port", &port], &[]), 1, &[&port, "taken", "--port"]);
    told("an address", &ended(dir.path(), &["serve", "--address", "0.0.0.0"], &[]), 2, &["server.address", "127.0.0.1"]);
    let deaf = [("PULSE_SERVER", "unix:/nowhere/pulse"), ("ALSA_CONFIG_PATH", "/dev/null"), ("PIPEWIRE_REMOTE", "/nowhere/pipewire")];
    told("no device", &ended(dir.path(), &["talk"], &deaf), 1, &["microphone", "--mic"]);
    told("a name", &ended(dir.path(), &["talk", "--mic", "Nonesuch 3000"], &deaf), 1, &["Nonesuch 3000", "--mic"]);
}

/// A WAV with any samples: 16 bit or float, any channels.
fn file(rate_hz: u32, channels: u16, float: bool, samples: &[f32]) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels, sample_rate: rate_hz, bits_per_sample: if float { 32 } else { 16 },
        sample_format: if float { hound::SampleFormat::Float } else { hound::SampleFormat::Int },
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).expect("a header");
    for sample in samples {
        if float { writer.write_sample(*sample) } else { writer.write_sample((*sample * 32_767.0) as i16) }.expect("a sample");
    }
    writer.finalize().expect("an end");
    bytes.into_inner()
}

/// "Enter plan mode." at this rate, -1 to 1.
fn command(rate_hz: u32) -> Vec<f32> {
    let sound = [quiet(700), Speaker::Hibari.say("Enter plan mode."), quiet(900)].concat();
    resample_all(&sound, RATE_HZ, rate_hz).iter().map(|s| f32::from(*s) / 32_768.0).collect()
}

#[test]
fn a_command_is_understood_in_every_format_that_is_read() {
    let stereo = |rate: u32| command(rate).iter().flat_map(|s| [*s, *s * 0.5]).collect::<Vec<f32>>();
    let mut holes = command(48_000);
    holes.iter_mut().step_by(9_973).for_each(|s| *s = f32::NAN);
    holes[50] = f32::INFINITY;
    let mut cut = file(16_000, 1, false, &command(16_000));
    cut.truncate(cut.len() - 4_001);
    let cases: [(&str, u32, Vec<u8>, &str); 7] = [
        ("mono-16k", 16_000, file(16_000, 1, false, &command(16_000)), ""), ("stereo-16k", 16_000, file(16_000, 2, false, &stereo(16_000)), "channels"),
        ("mono-8k", 8_000, file(8_000, 1, false, &command(8_000)), ""), ("stereo-44k", 44_100, file(44_100, 2, false, &stereo(44_100)), "channels"),
        ("float-48k-holes", 48_000, file(48_000, 1, true, &holes), "not numbers"), ("float-22k", 22_050, file(22_050, 1, true, &command(22_050)), ""),
        ("cut-16k", 16_000, cut, "cut short"),
    ];
    for (name, rate_hz, bytes, note) in cases {
        let dir = tempfile::tempdir().expect("a folder");
        let mic = put(dir.path(), "mic.wav", &bytes);
        let (out, events) = (dir.path().join("out.wav"), dir.path().join("ev.jsonl"));
        let got = ended(dir.path(), &["talk", "--mic", &mic, "--pace", "fast", "--new", "--speaker", &out.display().to_string(), "--events", &events.display().to_string()], &[]);
        told(name, &got, 0, &[note]);
        let events = read_events(&events);
        let on = events.iter().any(|e| e.kind == "plan_mode" && e.payload["plan_mode"] == true);
        let heard: Vec<&str> = events.iter().filter(|e| e.kind == "transcript" && e.is("role", "user")).map(|e| e.text("text")).collect();
        assert!(on && heard.len() == 1, "{name}: heard {heard:?}");
        let sound = wav::parse(&std::fs::read(out).expect("a file")).expect("a sound");
        assert_eq!((sound.rate_hz, sound.notes.len()), (rate_hz, 0), "{name}");
        assert!(sound.samples.len() >= 2 * rate_hz as usize && sound.samples.iter().any(|s| s.unsigned_abs() > 2_000), "{name}");
    }
}
