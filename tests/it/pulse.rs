//! A private PulseAudio with null sinks: `speaker` (heard at `speaker.monitor`) and `micsink` (captured as `mic`).

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The daemon; it ends when this is dropped.
pub struct Daemon(Child);

impl Daemon {
    pub fn id(&self) -> u32 { self.0.id() }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one that keeps its socket in this folder.
pub fn start(dir: &Path) -> Daemon {
    let socket = dir.join("pulse.sock");
    let script = format!(
        "load-module module-native-protocol-unix socket={} auth-anonymous=1\n\
         load-module module-null-sink sink_name=speaker rate=48000 channels=1\n\
         load-module module-null-sink sink_name=micsink rate=48000 channels=1\n\
         load-module module-remap-source source_name=mic master=micsink.monitor\n\
         set-default-sink speaker\nset-default-source mic\n", socket.display());
    std::fs::write(dir.join("pulse.pa"), script).unwrap();
    let child = Command::new("pulseaudio")
        .args(["-n", "-F"]).arg(dir.join("pulse.pa"))
        .args(["--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--high-priority=no", "--realtime=no"])
        .env("XDG_RUNTIME_DIR", dir).stdout(Stdio::null()).stderr(Stdio::null())
        .spawn().expect("pulseaudio starts (apt-get install pulseaudio pulseaudio-utils)");
    let daemon = Daemon(child);
    let start = Instant::now();
    while !socket.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "pulseaudio does not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    daemon
}

/// What `PULSE_SERVER` has to be for it.
pub fn server(dir: &Path) -> String { format!("unix:{}", dir.join("pulse.sock").display()) }

/// `pactl` with these arguments; what it says.
pub fn pactl(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("pactl").args(arguments).env("PULSE_SERVER", server(dir)).output().expect("pactl (apt-get install pulseaudio-utils)");
    assert!(output.status.success(), "pactl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// Plays a file into a sink, to its end.
pub async fn play(dir: &Path, sink: &str, file: &Path) {
    let status = tokio::process::Command::new("paplay").args(["-d", sink]).arg(file).env("PULSE_SERVER", server(dir)).status().await;
    assert!(status.expect("paplay (apt-get install pulseaudio-utils)").success());
}
