//! `voxgate devices`: the microphones and speakers of this machine.
//!
//! Where asking is loud (ALSA's plugins write of every card they do not find, past us, to stderr) a copy of this program asks and
//! its stderr is dropped. `doctor` asks the same way.

use std::process::ExitCode;

#[cfg(feature = "devices")]
use std::process::{Command, Stdio};

#[cfg(feature = "devices")]
use crate::audio::device::{self, DeviceInfo, Kind};

/// Lists them; `raw`: as lines for [`listed`], a tab between fields.
#[cfg(feature = "devices")]
pub fn run(raw: bool) -> ExitCode {
    let found = if raw { device::list().map_err(|e| e.to_string()) } else { listed() };
    match found {
        Ok((system, devices)) => {
            super::out::put(format_args!("{}", if raw { lines(&system, &devices) } else { table(&system, &devices) }));
            ExitCode::SUCCESS
        }
        Err(error) if raw => {
            outln!("{error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("voxgate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The sound system and its devices, asked without noise.
///
/// # Errors
/// A sentence for the person at it.
#[cfg(feature = "devices")]
pub fn listed() -> Result<(String, Vec<DeviceInfo>), String> {
    if device::is_quiet() {
        return device::list().map_err(|e| e.to_string());
    }
    let program = std::env::current_exe().map_err(|e| format!("this program is not found again: {e}"))?;
    let output = Command::new(program).args(["devices", "--raw"]).stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { read(&text).ok_or_else(|| "the sound system gave no list".to_string()) } else { Err(text.trim().to_string()) }
}

#[cfg(feature = "devices")]
fn table(system: &str, devices: &[DeviceInfo]) -> String {
    let mut text = format!("{system}\n");
    for kind in [Kind::Input, Kind::Output] {
        text.push_str(if kind == Kind::Input { "microphones (for --mic)\n" } else { "speakers (for --speaker)\n" });
        let of_kind: Vec<_> = devices.iter().filter(|d| d.kind == kind).collect();
        if of_kind.is_empty() { text.push_str("  none\n") }
        for device in of_kind {
            let mark = if device.default { "*" } else { " " };
            text.push_str(&format!(" {mark} {}  {}  {} to {} Hz\n", device.id, device.name, device.rates.0, device.rates.1));
        }
    }
    text
}

#[cfg(feature = "devices")]
fn lines(system: &str, devices: &[DeviceInfo]) -> String {
    let clean = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let line = |d: &DeviceInfo| format!("{}\t{}\t{}\t{}\t{}\t{}\n", d.kind.what(), u8::from(d.default), d.rates.0, d.rates.1, clean(&d.id), clean(&d.name));
    format!("{}\n{}", clean(system), devices.iter().map(line).collect::<String>())
}

#[cfg(feature = "devices")]
fn read(text: &str) -> Option<(String, Vec<DeviceInfo>)> {
    let mut lines = text.lines();
    let system = lines.next()?.to_string();
    let device = |line: &str| {
        let [kind, default, low, high, id, name] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let kind = [Kind::Input, Kind::Output].into_iter().find(|k| k.what() == kind)?;
        Some(DeviceInfo { id: id.into(), name: name.into(), kind, default: default == "1", rates: (low.parse().ok()?, high.parse().ok()?) })
    };
    Some((system, lines.map(device).collect::<Option<_>>()?))
}

/// This build has none.
#[cfg(not(feature = "devices"))]
pub fn run(_: bool) -> ExitCode {
    eprintln!("voxgate: this build has no sound devices; talk works with --mic FILE.wav and --speaker FILE.wav");
    ExitCode::FAILURE
}

#[cfg(all(test, feature = "devices"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_copy_writes_is_read_back_and_shown() {
        let device = |kind, id: &str, name: &str, default| DeviceInfo { id: id.into(), name: name.into(), kind, default, rates: (8_000, 48_000) };
        let all = vec![device(Kind::Input, "mic", "The\tmicrophone", true), device(Kind::Output, "hw:0", "Speaker", false)];
        let (system, back) = read(&lines("ALSA", &all)).unwrap();
        assert_eq!((system.as_str(), back.len(), back[0].name.as_str()), ("ALSA", 2, "The microphone"));
        assert_eq!(back[1], all[1]);
        assert!(table("ALSA", &back).contains(" * mic  The microphone  8000 to 48000 Hz") && table("X", &[]).matches("  none").count() == 2);
        assert!(read("ALSA\nnonsense").is_none() && read("").is_none());
    }
}
