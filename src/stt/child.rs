//! The recogniser's own process: `voxgate recogniser`, hidden, started by the pool.
//!
//! Owns the loop from stdin to stdout. Loads the model once, after it was checked, then answers utterances one by one until
//! stdin ends. Nothing but frames goes to stdout; what is to be read by a person goes to stderr, which the pool logs.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::plain::Plain;
use super::whisper::{EngineError, Whisper};
use super::wire::{Reply, Request, SentPhrase, Timings, read_frame, write_reply};
use crate::engine::heard::Heard;

/// The arguments of the hidden command.
#[derive(Clone, Debug, clap::Args)]
pub struct ChildArgs {
    /// The ggml file
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Threads for one recognition
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Transcribe as the library itself would, without scores (measurements)
    #[arg(long)]
    pub plain: bool,
}

/// What hears.
enum Ears {
    Product(Box<Whisper>),
    Library(Plain),
}

impl Ears {
    fn load(model: &[u8], args: &ChildArgs, phrases: &[SentPhrase]) -> Result<Self, EngineError> {
        if args.plain { Plain::load(model, args.threads).map(Self::Library) } else { Whisper::load(model, args.threads, phrases).map(|w| Self::Product(Box::new(w))) }
    }

    /// The first encoding of a process takes twice as long as the next: its memory is touched for the first time. Better now than
    /// while somebody waits.
    fn warm_up(&mut self) {
        if let Self::Product(whisper) = self && let Err(why) = whisper.warm_up() {
            eprintln!("recogniser: the first encoding failed: {why}");
        }
    }

    fn hear(&mut self, samples: &[i16], score: bool, language: &str) -> Result<(Heard, Timings), EngineError> {
        match self {
            Self::Product(whisper) => whisper.hear(samples, score, language),
            Self::Library(plain) => Ok((plain.hear(samples, language)?, Timings::default())),
        }
    }
}

/// Runs until stdin ends. `load` reads the model file and checks it; its error is what the gateway will show.
pub fn run_child(args: &ChildArgs, load: impl FnOnce(&Path) -> Result<Vec<u8>, String>) -> ExitCode {
    // Without a backend the hooks swallow the native library's chatter, which would drown everything else on stderr.
    whisper_rs::install_logging_hooks();
    let (mut input, mut output) = (BufReader::new(io::stdin().lock()), io::stdout().lock());
    match serve(args, load, &mut input, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("recogniser: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    args: &ChildArgs, load: impl FnOnce(&Path) -> Result<Vec<u8>, String>, input: &mut impl Read, output: &mut impl Write,
) -> io::Result<()> {
    let Some(first) = read_frame(input)? else { return Ok(()) };
    let Request::Start(phrases) = Request::decode(&first)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the first request is not a start"));
    };
    let loaded = load(&args.model);
    let loaded = loaded.and_then(|bytes| Ears::load(&bytes, args, &phrases).map_err(|why| why.to_string()));
    let mut ears = match loaded {
        Ok(ears) => ears,
        Err(why) => return write_reply(output, &Reply::Failed(why)),
    };
    write_reply(output, &Reply::Ready)?;
    ears.warm_up();
    while let Some(frame) = read_frame(input)? {
        if let Request::Job { id, score, language, samples } = Request::decode(&frame)? {
            let reply = match ears.hear(&samples, score, &language) {
                Ok((heard, ms)) => Reply::Heard { id, heard, ms },
                Err(why) => Reply::Refused { id, why: why.to_string() },
            };
            write_reply(output, &reply)?;
        }
    }
    Ok(())
}
