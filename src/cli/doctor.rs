//! `voxgate doctor`: what is missing on this machine, and the command that mends it.

use std::process::ExitCode;

use super::setup::{Place, Trouble};
use crate::models;
use crate::store::home::holder;

/// One thing that was looked at.
struct Finding {
    what: String,
    said: Result<String, String>,
}

/// Looks at everything; exit code 1 when something is missing.
pub async fn run(place: &Place) -> ExitCode {
    let mut findings = vec![
        Finding { what: "configuration".into(), said: Ok(format!("read ({})", place.home.config_file().display())) },
        Finding { what: "home".into(), said: home(place) },
        Finding { what: "recogniser".into(), said: place.listener_model().map_err(|t| t.message).and_then(|path| checked(&path)) },
        Finding { what: "voice".into(), said: voice(place) },
        Finding { what: "tools".into(), said: place.catalogue().map(|c| format!("{} tools", c.specs().len())).map_err(|t| t.message) },
        Finding { what: "agent".into(), said: agent(place).await },
    ];
    findings.push(Finding { what: "sound devices".into(), said: devices() });
    let mut missing = 0;
    for Finding { what, said } in &findings {
        match said {
            Ok(text) => outln!("ok       {what}: {text}"),
            Err(text) => { missing += 1; outln!("missing  {what}: {text}") }
        }
    }
    if missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn home(place: &Place) -> Result<String, String> {
    place.home.create().map_err(|e| e.to_string())?;
    let running = holder(&place.home).map_err(|e| e.to_string())?;
    Ok(match running {
        Some(holder) => format!("{}, in use by {holder}", place.home.data_dir().display()),
        None => format!("{}, free", place.home.data_dir().display()),
    })
}

fn checked(path: &std::path::Path) -> Result<String, String> {
    models::read_checked(path).map(|c| format!("{} (sha256 {}...)", path.display(), &c.sha256[..12])).map_err(|e| e.to_string())
}

fn voice(place: &Place) -> Result<String, String> {
    match place.config.tts.kind.as_str() {
        kind if kind == models::DEFAULT_VOICE => {
            let store = models::Store::new(&place.models).map_err(|e| e.to_string())?;
            store.verify(models::DEFAULT_VOICE).map(|files| format!("{kind}, {} files checked", files.len())).map_err(|e| e.to_string())
        }
        kind => Ok(kind.to_string()),
    }
}

async fn agent(place: &Place) -> Result<String, String> {
    if place.config.agent.kind != crate::agent::openai::NAME {
        return Ok(place.config.agent.kind.clone());
    }
    let client = place.openai().map_err(|Trouble { message, .. }| message)?;
    client.check().await.map_err(|e| e.to_string())
}

#[cfg(feature = "devices")]
fn devices() -> Result<String, String> {
    use crate::audio::device::Kind;
    let without = "the page in a browser, and `talk --mic FILE.wav`, work without";
    let (system, devices) = super::devices::listed().map_err(|e| format!("{e}; {without}"))?;
    let usual = |kind| devices.iter().find(|d| d.kind == kind && d.default).or_else(|| devices.iter().find(|d| d.kind == kind)).map(|d| d.name.clone());
    match (usual(Kind::Input), usual(Kind::Output)) {
        (Some(mic), Some(speaker)) => Ok(format!("{system}, {} devices; microphone {mic}, speaker {speaker}", devices.len())),
        // Not missing: voxgate is whole without.
        (mic, _) => Ok(format!("{system} has no {}; {without}", if mic.is_none() { "microphone" } else { "speaker" })),
    }
}

#[cfg(not(feature = "devices"))]
fn devices() -> Result<String, String> { Ok("not in this build".into()) }
