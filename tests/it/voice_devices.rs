//! Sound cards, on a private PulseAudio with null sinks: what is played into the one is captured, what we play is recorded at the other.

use std::f64::consts::TAU;
use std::process::Command;
use std::time::{Duration, Instant};
use voxgate::audio::device::{self, Kind, StreamTrouble};
use voxgate::media::level::rms_dbfs;
use voxgate::media::wav;

use crate::pulse;

/// Set in the copy of this program that runs with the private daemon: the daemon's process id.
const DAEMON: &str = "VOXGATE_TEST_PULSE";
const NAME: &str = "voice::devices::sound_cards_carry_tones_both_ways_and_tell_when_they_are_gone";

/// The device code finds its server by the environment, so the test runs itself again with one.
#[test]
fn sound_cards_carry_tones_both_ways_and_tell_when_they_are_gone() {
    if let Some(pid) = std::env::var_os(DAEMON) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        return runtime.block_on(with_daemon(&pid.to_string_lossy()));
    }
    let dir = tempfile::tempdir().unwrap();
    let daemon = pulse::start(dir.path());
    let out = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(DAEMON, daemon.id().to_string())
        .env("PULSE_SERVER", pulse::server(dir.path()))
        .output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    print!("{said}");
    assert!(out.status.success() && said.contains("1 passed"), "{said}\n{}", String::from_utf8_lossy(&out.stderr));
}

macro_rules! try_thrice {
    ($run:expr) => {
        for left in [2, 1, 0] {
            match $run.await {
                Ok(()) => break,
                Err(e) => {
                    println!("torn: {e}");
                    assert!(left > 0, "{e}");
                }
            }
        }
    };
}

async fn with_daemon(pid: &str) {
    let (system, devices) = device::list().unwrap();
    assert_eq!(system, "PulseAudio");
    let is = |kind, id: &str, default| devices.iter().any(|d| d.kind == kind && d.id == id && d.default == default);
    assert!(is(Kind::Output, "speaker", true) && is(Kind::Output, "micsink", false) && is(Kind::Input, "mic", true), "{devices:?}");
    let Err(e) = device::open_input(Some("the pink one")) else { panic!("there is no pink one") };
    assert!(e.to_string().contains("\"the pink one\" in PulseAudio; there is ") && e.to_string().contains("`--mic FILE.wav`"), "{e}");
    // On a busy machine any of the four processes may come late and tear the tone; what is asked is that it can be whole.
    try_thrice!(capture());
    try_thrice!(play());
    let mut mic = device::open_input(None).unwrap();
    mic.next_frame().await;
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    let trouble = tokio::time::timeout(Duration::from_secs(5), mic.trouble()).await.expect("it is told in time");
    println!("after the daemon's end: {trouble:?}");
    assert!(matches!(trouble, Some(StreamTrouble::Lost(_) | StreamTrouble::Stalled)));
}

async fn capture() -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tone.wav");
    std::fs::write(&file, wav::write(48_000, &tone(1000.0, 48_000, 2.0))).unwrap();
    let mut mic = device::open_input(None).unwrap();
    mic.next_frame().await;
    let mut player = Command::new("paplay").args(["-d", "micsink"]).arg(&file).spawn().expect("paplay (apt-get install pulseaudio-utils)");
    let (mut heard, start) = (Vec::new(), Instant::now());
    while start.elapsed() < Duration::from_secs(4) {
        let frame = mic.next_frame().await;
        assert_eq!(frame.len(), mic.rate_hz() as usize / 50);
        heard.extend(frame);
    }
    player.wait().unwrap();
    println!("captured {} samples in 4 s at {} Hz from {:?}, {} frames dropped", heard.len(), mic.rate_hz(), mic.name(), mic.dropped());
    assert!((heard.len() as f64 / (4.0 * f64::from(mic.rate_hz())) - 1.0).abs() < 0.05, "real time is kept");
    assert_eq!(mic.dropped(), 0);
    judge(&heard, mic.rate_hz(), 1000.0, 1.95)
}

async fn play() -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("heard.wav");
    let mut recorder = Command::new("parecord")
        .args(["-d", "speaker.monitor", "--file-format=wav", "--format=s16le", "--rate=48000", "--channels=1", "--latency-msec=20"]).arg(&file)
        .spawn().expect("parecord (apt-get install pulseaudio-utils)");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut speaker = device::open_output(Some("speaker")).unwrap();
    let sound = tone(440.0, speaker.rate_hz(), 2.0);
    let mut rest = sound.as_slice();
    while !rest.is_empty() {
        if speaker.fill_ms() < 100 {
            let n = speaker.write(&rest[..rest.len().min(speaker.rate_hz() as usize / 50)]);
            rest = &rest[n..];
        } else {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let during = speaker.underruns();
    tokio::time::sleep(Duration::from_millis(800)).await;
    println!("played {} ms of 2000 on {:?}, latency {} ms, {during} underruns", speaker.played_ms(), speaker.name(), speaker.latency_ms());
    assert_eq!((speaker.played_ms(), speaker.fill_ms()), (2000, 0));
    drop(speaker);
    assert!(Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap().success());
    recorder.wait().unwrap();
    let heard = wav::parse(&std::fs::read(&file).unwrap()).unwrap();
    if during > 0 {
        return Err(format!("{during} underruns"));
    }
    judge(&heard.samples, heard.rate_hz, 440.0, 1.95)
}

fn tone(hz: f64, rate_hz: u32, seconds: f64) -> Vec<i16> {
    (0..(seconds * f64::from(rate_hz)) as usize).map(|n| (10_000.0 * (TAU * hz * n as f64 / f64::from(rate_hz)).sin()) as i16).collect()
}

/// There is one unbroken tone of that pitch and our level, at least so long.
fn judge(heard: &[i16], rate_hz: u32, hz: f64, seconds: f64) -> Result<(), String> {
    let window = rate_hz as usize / 100;
    let loud: Vec<bool> = heard.chunks(window).map(|w| rms_dbfs(w) > -20.0).collect();
    let runs: Vec<(usize, usize)> = loud.iter().enumerate().fold(Vec::new(), |mut runs, (i, l)| {
        match (runs.last_mut(), l) {
            (Some((start, n)), true) if *start + *n == i => *n += 1,
            (_, true) => runs.push((i, 1)),
            _ => {}
        }
        runs
    });
    let &(start, n) = runs.iter().max_by_key(|r| r.1).expect("something was heard");
    if (n as f64) < seconds * 100.0 {
        return Err(format!("only {n} of its hundredths in a row: {runs:?}"));
    }
    let part = &heard[(start + 2) * window..(start + n - 2) * window];
    // Breaks too short for the windows show as repeated samples or as a jump.
    let jumps: Vec<usize> = part.windows(3).enumerate()
        .filter(|(_, w)| (w[0] == 0 && w[1] == 0 && w[2] == 0) || i32::from(w[1]).abs_diff(i32::from(w[0])) > 2_000).map(|(i, _)| i).collect();
    if !jumps.is_empty() {
        return Err(format!("broken at {jumps:?} of {}", part.len()));
    }
    let rising: Vec<usize> = part.windows(2).enumerate().filter(|(_, w)| w[0] < 0 && w[1] >= 0).map(|(i, _)| i).collect();
    let pitch = (rising.len() - 1) as f64 * f64::from(rate_hz) / (rising[rising.len() - 1] - rising[0]) as f64;
    let level = rms_dbfs(part);
    println!("heard {:.2} s of {pitch:.2} Hz at {level:.2} dBFS", n as f64 / 100.0);
    assert!((pitch - hz).abs() < 1.0 && (level + 13.32).abs() < 0.5, "{pitch} Hz, {level} dBFS");
    Ok(())
}
