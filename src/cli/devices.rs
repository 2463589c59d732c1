//! `voxgate devices`: the microphones and speakers of this machine.

use std::process::ExitCode;

/// Lists them.
#[cfg(feature = "devices")]
pub fn run() -> ExitCode {
    use crate::audio::device::{self, Kind};
    match device::list() {
        Ok((system, devices)) => {
            println!("{system}");
            for kind in [Kind::Input, Kind::Output] {
                println!("{}", if kind == Kind::Input { "microphones (for --mic)" } else { "speakers (for --speaker)" });
                let of_kind: Vec<_> = devices.iter().filter(|d| d.kind == kind).collect();
                if of_kind.is_empty() {
                    println!("  none");
                }
                for device in of_kind {
                    let mark = if device.default { "*" } else { " " };
                    println!(" {mark} {}  {}  {} to {} Hz", device.id, device.name, device.rates.0, device.rates.1);
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("voxgate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// This build has none.
#[cfg(not(feature = "devices"))]
pub fn run() -> ExitCode {
    eprintln!("voxgate: this build has no sound devices; talk works with --mic FILE.wav and --speaker FILE.wav");
    ExitCode::FAILURE
}
