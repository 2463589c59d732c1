//! `voxgate eval listen`: what the product hears in recordings, and what that would decide.
//!
//! Finds the sounds, hands them to `eval::listen` and prints. Changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::listen_figures;
use super::measured::Measured;
use crate::audio::wav_file::MicFile;
use crate::cli::setup::{Place, Trouble, logged};
use crate::eval::listen::{Listener, State, Turn, wavs_under};

/// What is listened to.
#[derive(clap::Args, Clone, Debug)]
pub struct ListenArgs {
    /// A folder; every WAV in it and in its folders is heard, in order (8 to 96 kHz, any channels, PCM or float)
    #[arg(value_name = "DIR", required_unless_present_any = ["corpora", "noise"], conflicts_with_all = ["corpora", "noise"])]
    pub dir: Option<PathBuf>,
    /// What is open while they are heard
    #[arg(long, value_enum, default_value = "idle")]
    pub state: State,
    /// One JSON line a WAV: {"file", "turns": [{"start_ms", "end_ms", "text", "decision"}]}, or {"file", "turns": [], "error"}
    #[arg(long)]
    pub json: bool,
    /// Hear hours of recorded speech (brought from Debian packages) in every state; writes the figure real-speech
    #[arg(long)]
    pub corpora: bool,
    /// Hear an hour of made noise in every state; writes the figure noise
    #[arg(long)]
    pub noise: bool,
    /// For what is published
    #[command(flatten)]
    pub measured: Measured,
}

/// For `--help`.
pub const AFTER_HELP: &str = "Decisions have the names of `voxgate eval utterances`. Each sound goes the way of a live microphone: voice detection, turn taking with the\n\
        configured silences, the recogniser's process, the judge. A little silence goes before each and a second follows. Exit 1: a file could not be read.\n\n\
        --corpora takes hours the first time. It can be stopped and goes on where it was: what was heard is kept in the cache folder.\n\n\
        Example:\n  voxgate eval listen recordings --state question --json";

/// Does what was asked. Exit 1 when a file could not be heard; the others were all the same.
///
/// # Errors
/// [`Trouble`] when the folder cannot be read or the recogniser cannot start.
pub fn run(args: &ListenArgs, place: &Place) -> Result<ExitCode, Trouble> {
    logged(async {
        if args.noise { listen_figures::noise(place, &args.measured).await? }
        if args.corpora { listen_figures::corpora(place, &args.measured).await? }
        match &args.dir {
            Some(dir) => folder(place, dir, args).await,
            None => Ok(ExitCode::SUCCESS),
        }
    })
}

async fn folder(place: &Place, dir: &Path, args: &ListenArgs) -> Result<ExitCode, Trouble> {
    let files = wavs_under(dir).map_err(Trouble::wrong)?;
    if files.is_empty() {
        return Err(Trouble::wrong(format!("{}: there is no WAV file in it", dir.display())));
    }
    let (recogniser, table) = (place.recogniser().await?, place.phrase_table());
    let listener = Listener { recogniser: recogniser.as_ref(), table: &table, ear: place.ear_settings(), language: place.config.stt.language.clone(), judge: place.judge(), vad: place.vad() };
    let mut failed = false;
    for (name, path) in files {
        let turns = hear(&listener, &path, args.state).await;
        failed |= turns.is_err();
        let text = if args.json { format!("{}\n", line(&name, &turns)) } else { rows(&name, &turns) };
        // A reader that has gone ends the work.
        if !crate::cli::out::put(format_args!("{text}")) {
            return Ok(ExitCode::SUCCESS);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn hear(listener: &Listener<'_>, path: &Path, state: State) -> Result<Vec<Turn>, String> {
    let file = MicFile::open(path).map_err(|e| e.to_string())?;
    listener.turns(file.between(0, file.length()), file.rate_hz(), state).await.map_err(|e| e.to_string())
}

fn line(name: &str, turns: &Result<Vec<Turn>, String>) -> Value {
    let turn = |t: &Turn| json!({ "start_ms": t.start_ms, "end_ms": t.end_ms, "text": t.heard.text, "decision": t.decision.name() });
    match turns {
        Ok(turns) => json!({ "file": name, "turns": turns.iter().map(turn).collect::<Vec<_>>() }),
        Err(error) => json!({ "file": name, "turns": [], "error": error }),
    }
}

fn rows(name: &str, turns: &Result<Vec<Turn>, String>) -> String {
    let turn = |t: &Turn| format!("  {:>7.2} s to {:>7.2} s  {:<16} {}\n", t.start_ms as f64 / 1e3, t.end_ms as f64 / 1e3, t.decision.name(), t.heard.text);
    match turns {
        Ok(turns) if turns.is_empty() => format!("{name}\n  nothing was said\n"),
        Ok(turns) => format!("{name}\n{}", turns.iter().map(turn).collect::<String>()),
        Err(error) => format!("{name}\n  cannot be heard: {error}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::heard::Heard;
    use crate::engine::intent::Decision;

    #[test]
    fn a_line_has_the_promised_shape() {
        let turns = Ok(vec![Turn { start_ms: 20, end_ms: 900, heard: Heard::text_only("No."), decision: Decision::Deny }]);
        assert_eq!(line("a/b.wav", &turns).to_string(), r#"{"file":"a/b.wav","turns":[{"start_ms":20,"end_ms":900,"text":"No.","decision":"deny"}]}"#);
        assert_eq!(line("c.wav", &Err("it is empty".into())).to_string(), r#"{"file":"c.wav","turns":[],"error":"it is empty"}"#);
        assert!(rows("a.wav", &turns).contains("0.02 s to    0.90 s  deny"), "{}", rows("a.wav", &turns));
    }
}
