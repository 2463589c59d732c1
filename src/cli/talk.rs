//! `voxgate talk`: a conversation over this machine's microphone and speaker, or over files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};

use super::meter::Meter;
use super::serve::Gateway;
use super::setup::{Place, Trouble, told_to_stop};
use crate::audio::wav_file::{MicFile, SpeakerFile};
use crate::eval::loudspeaker::{Acoustics, Between};
use crate::session::card::Card;
use crate::session::driver::{Driver, FrameSink};
use crate::session::file::{FileDevice, FileRun, Pace};
use crate::session::registry::Which;

/// How to talk.
#[derive(Args, Clone, Debug)]
pub struct TalkArgs {
    /// Microphone: a WAV file, or a device's name (default: the system's)
    #[arg(long, value_name = "FILE|NAME")]
    pub mic: Option<String>,
    /// Speaker: a WAV file to write, or a device's name (default: the system's)
    #[arg(long, value_name = "FILE|NAME")]
    pub speaker: Option<String>,
    /// Write every event here, a JSON line each
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// With a file as microphone: never ahead of the wall, or as fast as the machine can
    #[arg(long, value_enum, default_value = "real")]
    pub pace: PaceArg,
    /// With a file as microphone: let its clock run on while something is being worked on (for latency figures)
    #[arg(long)]
    pub no_wait: bool,
    /// With files: a simulated room between speaker and microphone, such as echo=-12,delay=120,rt60=300,noise=-50
    #[arg(long, value_name = "ROOM", hide = true, value_parser = Acoustics::parse)]
    pub loudspeaker: Option<Acoustics>,
    /// Begin a new conversation instead of going on with the last one
    #[arg(long)]
    pub new: bool,
    /// Port of the doors that are opened beside; 0 picks a free one
    #[arg(long)]
    pub port: Option<u16>,
    /// Be the headset of a gateway that runs elsewhere: ws://127.0.0.1:8710 (another machine's through a tunnel)
    #[arg(long, value_name = "URL", conflicts_with_all = ["port", "no_wait", "agent", "base_url", "model"])]
    pub connect: Option<String>,
    /// Key of that gateway, or @FILE that holds it (default: this home's own, where the gateway is this home's)
    #[arg(long, value_name = "KEY|@FILE", requires = "connect")]
    pub key: Option<String>,
    /// Make the line bad on purpose, in percent of packets: loss=5,reorder=1,dup=1 (and seed=N for another such line)
    #[arg(long, value_name = "HOW", requires = "connect")]
    pub impair: Option<super::connect::Impairment>,
    /// Which agent answers
    #[command(flatten)]
    pub agent: super::setup::AgentArgs,
}

/// See [`Pace`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PaceArg {
    /// Never ahead of the wall.
    Real,
    /// As fast as the machine can.
    Fast,
}

/// Talks until the input is used up or it is told to stop.
///
/// # Errors
/// [`Trouble`]: exit code 2 for wrong files or arguments, 1 for what failed on the way.
pub async fn run(place: Place, args: TalkArgs) -> Result<ExitCode, Trouble> {
    if let Some(to) = &args.connect {
        return super::connect::run(&place, &args, to).await;
    }
    let files = FileEnds::open(&args)?;
    // Before anything is loaded or written down: a machine without a device is told at once, and leaves no empty conversation.
    let card = match files {
        None => match cards(&args).await {
            Ok(card) => Some(card),
            // Another process that has the home is what is in the way; it may have the device as well.
            Err(trouble) => return Err(place.hold("talk").err().unwrap_or(trouble)),
        },
        Some(_) => None,
    };
    let gateway = Gateway::start(&place, "talk").await?;
    eprintln!("voxgate: the chat of this conversation is at {}", gateway.opened.page);
    let (driver, handle) = gateway.hub.make(if args.new { Which::New } else { Which::Last }).map_err(Trouble::failed)?;
    let (sink, events) = events_file(args.events.as_deref())?;
    let (meter, sink) = if card.is_some() { Meter::on_terminal(sink) } else { (None, sink) };
    let driver = match sink { Some(sink) => driver.with_sink(sink), None => driver };
    let held = match (files, card) {
        (Some(files), _) => run_files(driver, files, &args).await,
        (None, None) => Ok(()),
        (None, Some(card)) => {
            eprintln!("voxgate: speak; \"what can I say\" lists the commands; Ctrl-C ends");
            let card = match &meter { Some(meter) => meter.listening(card), None => card };
            tokio::select! {
                () = driver.run_card(card) => {}
                () = Meter::draw(meter, &handle) => {}
                () = async { told_to_stop().await; handle.close("the person at the microphone has left").await; std::future::pending::<()>().await } => {}
            }
            Ok(())
        }
    };
    gateway.close("the conversation over the microphone has ended").await;
    if let Some(events) = events {
        events.finish()?;
    }
    held.map(|()| ExitCode::SUCCESS).map_err(Trouble::failed)
}

/// Files as microphone and speaker.
pub(super) struct FileEnds {
    mic: MicFile,
    speaker: Option<SpeakerFile>,
}

fn is_file(name: &str) -> bool { name.ends_with(".wav") || name.ends_with(".WAV") || Path::new(name).is_file() || name.contains('/') }

impl FileEnds {
    /// The files that the arguments name, if the microphone is one.
    pub(super) fn open(args: &TalkArgs) -> Result<Option<FileEnds>, Trouble> {
        let Some(mic) = args.mic.as_deref().filter(|m| is_file(m)) else {
            return match args.speaker.as_deref().filter(|s| is_file(s)) {
                Some(_) => Err(Trouble::wrong("--speaker FILE goes with --mic FILE: both then run on the microphone file's clock")),
                None => Ok(None),
            };
        };
        let mic = MicFile::open(Path::new(mic)).map_err(Trouble::wrong)?;
        mic.notes().iter().for_each(|note| eprintln!("voxgate: {note}"));
        let speaker = match args.speaker.as_deref() {
            Some(path) => Some(SpeakerFile::create(Path::new(path), mic.rate_hz()).map_err(Trouble::wrong)?),
            None => None,
        };
        Ok(Some(FileEnds { mic, speaker }))
    }

    /// Writes the speaker's file to its end.
    pub(super) fn close(self) -> Result<(), String> { self.speaker.map_or(Ok(()), |s| s.close().map_err(|e| e.to_string())) }
}

impl FileDevice for FileEnds {
    fn rate_hz(&self) -> u32 { self.mic.rate_hz() }
    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> { self.mic.between(from, to).to_vec() }
    fn length(&self) -> u64 { self.mic.length() }
    fn speaker(&mut self, samples: &[i16]) -> Result<(), String> {
        self.speaker.as_mut().map_or(Ok(()), |s| s.write(samples).map_err(|e| e.to_string()))
    }
}

async fn run_files(driver: Driver, mut files: FileEnds, args: &TalkArgs) -> Result<(), String> {
    let pace = match args.pace { PaceArg::Real => Pace::Real, PaceArg::Fast => Pace::Fast };
    let run = FileRun { pace, stand_still: !args.no_wait };
    let held = match &args.loudspeaker {
        Some(acoustics) => {
            let mut between = Between::new(files, acoustics)?;
            let held = driver.run_file(&mut between, run).await;
            files = between.into_inner();
            held
        }
        None => driver.run_file(&mut files, run).await,
    };
    held.and(files.close())
}

/// The devices that the arguments name, open.
#[cfg(feature = "devices")]
pub(super) async fn cards(args: &TalkArgs) -> Result<Card, Trouble> {
    use crate::audio::device::{KeptInput, KeptOutput};
    use crate::session::card::{CardMic, CardSpeaker};
    let (mic, speaker) = (args.mic.clone(), args.speaker.clone());
    tokio::task::spawn_blocking(move || {
        let mic = KeptInput::open(mic.as_deref()).map_err(Trouble::failed)?;
        let speaker = KeptOutput::open(speaker.as_deref()).map_err(Trouble::failed)?;
        eprintln!("voxgate: microphone {}, speaker {}", mic.name(), speaker.name());
        Ok(Card::new(Box::new(CardMic::new(mic)), Box::new(CardSpeaker::new(speaker))))
    }).await.map_err(Trouble::failed)?
}

#[cfg(not(feature = "devices"))]
pub(super) async fn cards(_: &TalkArgs) -> Result<Card, Trouble> {
    Err(Trouble::failed("this build has no sound devices; use --mic FILE.wav and --speaker FILE.wav"))
}

/// The events file, shared with the driver that writes to it.
pub(super) struct EventsFile {
    path: PathBuf,
    writer: Arc<Mutex<(BufWriter<File>, Option<std::io::Error>)>>,
}

impl EventsFile {
    /// Makes it, or empties the one that is there.
    pub(super) fn create(path: &Path) -> Result<Self, Trouble> {
        let file = File::create(path).map_err(|e| Trouble::wrong(format!("--events {}: {e}", path.display())))?;
        Ok(Self { path: path.to_path_buf(), writer: Arc::new(Mutex::new((BufWriter::new(file), None))) })
    }

    /// Writes a line. What cannot be written is told by [`EventsFile::finish`].
    pub(super) fn line(&self, line: &str) { write_line(&self.writer, line) }

    pub(super) fn finish(self) -> Result<(), Trouble> {
        let mut writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let flushed = writer.0.flush();
        match writer.1.take().map_or(flushed, Err) {
            Ok(()) => Ok(()),
            Err(error) => Err(Trouble::failed(format!("{} could not be written: {error}", self.path.display()))),
        }
    }
}

fn write_line(writer: &Mutex<(BufWriter<File>, Option<std::io::Error>)>, line: &str) {
    let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(error) = writeln!(writer.0, "{line}").and_then(|()| writer.0.flush()) {
        writer.1 = Some(error);
    }
}

fn events_file(path: Option<&Path>) -> Result<(Option<FrameSink>, Option<EventsFile>), Trouble> {
    let Some(path) = path else { return Ok((None, None)) };
    let ours = EventsFile::create(path)?;
    let writer = ours.writer.clone();
    Ok((Some(Box::new(move |line: &str| write_line(&writer, line))), Some(ours)))
}
