//! Sound cards, by cpal: PulseAudio (or PipeWire's, which speaks it) where it answers, else the system's own.
//!
//! Owns the streams and their threads. Called by `talk` and `devices`. In the sound system's callback nothing is allocated,
//! locked or awaited: it copies between the card and a lock-free ring, and a small thread does the rest. A device that vanishes,
//! stalls or is no longer the default is replaced ([`KeptInput`], [`KeptOutput`]); one stream is one device.

mod callback;
mod input;
mod keeper;
mod keeping;
mod kept;
mod output;
mod wish;

pub use callback::{Giver, Heard, Played, Taker};
pub use input::{InputStream, open_input};
pub use kept::{DeviceNews, KeptInput, KeptOutput};
pub use output::{OutputStream, open_output};

use super::AudioError;
use cpal::traits::{DeviceTrait, HostTrait};
use cpal::{Device, Host, SampleFormat, StreamConfig};
use std::sync::mpsc;
use tokio::sync::mpsc as async_mpsc;

/// What the sound system hands over at once, in milliseconds. PulseAudio keeps two of them for a speaker and one for a
/// microphone; with 20 ms a machine at a load of three tasks a core tore the sound now and then.
const PERIOD_MS: u32 = 40;

/// Which way sound goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A microphone.
    Input,
    /// A speaker.
    Output,
}

impl Kind {
    /// "microphone" or "speaker".
    pub fn what(self) -> &'static str {
        match self {
            Self::Input => "microphone",
            Self::Output => "speaker",
        }
    }

    fn instead(self) -> &'static str {
        match self {
            Self::Input => "`--mic FILE.wav`",
            Self::Output => "`--speaker FILE.wav`",
        }
    }
}

/// A device that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What `open_input` and `open_output` take without doubt ("speaker", "hw:CARD=PCH,DEV=0"): the sound system's own word.
    pub id: String,
    /// What it is called, for a person; they take it too. Not always unique.
    pub name: String,
    /// Which way it goes.
    pub kind: Kind,
    /// Used when no name is given.
    pub default: bool,
    /// Lowest and highest rate it takes, in Hz.
    pub rates: (u32, u32),
}

/// What happens to an open stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamTrouble {
    /// The device is gone or the stream broke: open again.
    Lost(String),
    /// The sound system moved the stream to another device; it goes on.
    Moved(String),
    /// No sound has arrived for a second, and no error told why.
    Stalled,
    /// Something was skipped or repeated.
    Glitch(String),
}

/// Every device of the sound system that is used, and its name ("PulseAudio", "ALSA").
///
/// # Errors
/// [`AudioError::NoDevice`] when the sound system itself does not answer.
pub fn list() -> Result<(String, Vec<DeviceInfo>), AudioError> {
    let host = host();
    let mut found = Vec::new();
    for kind in [Kind::Input, Kind::Output] {
        let default = default_device(&host, kind).map(|d| id_of(&d));
        for device in devices(&host, kind) {
            let (id, name) = (id_of(&device), name_of(&device));
            let default = default.as_ref() == Some(&id);
            found.push(DeviceInfo { rates: rates(&device, kind), id, name, kind, default });
        }
    }
    Ok((host.id().name().to_owned(), found))
}

/// The PulseAudio client is asked first (it finds the server as every client does, `PULSE_SERVER` included): measured, it keeps
/// real time under load where the ALSA way to the same server did not.
fn host() -> Host {
    #[cfg(target_os = "linux")]
    if let Ok(host) = cpal::host_from_id(cpal::HostId::PulseAudio) {
        return host;
    }
    cpal::default_host()
}

fn devices(host: &Host, kind: Kind) -> Vec<Device> {
    let Ok(all) = host.devices() else { return Vec::new() };
    all.filter(|d| match kind {
        Kind::Input => d.supports_input(),
        Kind::Output => d.supports_output(),
    }).collect()
}

fn default_device(host: &Host, kind: Kind) -> Option<Device> {
    match kind {
        Kind::Input => host.default_input_device(),
        Kind::Output => host.default_output_device(),
    }
}

fn name_of(device: &Device) -> String {
    device.description().map_or_else(|_| device.to_string(), |d| d.name().to_owned())
}

/// The sound system's own word for it ("micsink.monitor"), else its name.
fn id_of(device: &Device) -> String {
    device.id().map_or_else(|_| name_of(device), |id| id.id().to_owned())
}

fn rates(device: &Device, kind: Kind) -> (u32, u32) {
    let fold = |range: (u32, u32), c: cpal::SupportedStreamConfigRange| (range.0.min(c.min_sample_rate()), range.1.max(c.max_sample_rate()));
    let none = (u32::MAX, 0);
    let (low, high) = match kind {
        Kind::Input => device.supported_input_configs().map_or(none, |c| c.fold(none, fold)),
        Kind::Output => device.supported_output_configs().map_or(none, |c| c.fold(none, fold)),
    };
    if low > high { (0, 0) } else { (low, high) }
}

fn is_pulse(host: &Host) -> bool {
    host.id().name() == "PulseAudio"
}

/// Asking this machine's sound system writes nothing on stderr. ALSA's plugins complain there of every card they do not find.
pub fn is_quiet() -> bool {
    !cfg!(target_os = "linux") || is_pulse(&host())
}

/// Which of these (id, name) a person means: by the id, else by the whole name, else by a part of either, whatever its case. Of
/// several by a part, one that is no speaker's monitor. `Ok(None)`: none of them.
///
/// # Errors
/// Several could be meant: their places.
fn chosen(known: &[(String, String)], wanted: &str) -> Result<Option<usize>, Vec<usize>> {
    let places = |fits: &dyn Fn(&(String, String)) -> bool| known.iter().enumerate().filter(|(_, d)| fits(d)).map(|(i, _)| i).collect::<Vec<_>>();
    let lower = wanted.to_lowercase();
    let part = |d: &(String, String)| d.0.to_lowercase().contains(&lower) || d.1.to_lowercase().contains(&lower);
    let ways = [
        places(&|d| d.0 == wanted), places(&|d| d.1 == wanted), places(&|d| d.0.to_lowercase() == lower || d.1.to_lowercase() == lower),
        places(&|d| part(d) && !d.0.ends_with(".monitor")), places(&part),
    ];
    match ways.into_iter().find(|found| !found.is_empty()) {
        None => Ok(None),
        Some(one) if one.len() == 1 => Ok(Some(one[0])),
        Some(several) => Err(several),
    }
}

/// The device of a name, or the default.
fn find(kind: Kind, name: Option<&str>) -> Result<Device, AudioError> {
    let host = host();
    // Without a name nothing is listed unless it has to be told: listing is slow and loud on some systems.
    if let (None, Some(device)) = (name, default_device(&host, kind)) {
        return Ok(device);
    }
    let all = devices(&host, kind);
    let known: Vec<(String, String)> = all.iter().map(|d| (id_of(d), name_of(d))).collect();
    let told = |places: &[usize]| places.iter().map(|i| format!("{} ({})", known[*i].0, known[*i].1)).collect::<Vec<_>>().join(", ");
    match name.map_or(Ok(None), |name| chosen(&known, name)) {
        Ok(Some(at)) => Ok(all[at].clone()),
        Err(several) => Err(AudioError::Ambiguous { what: kind.what(), name: name.unwrap_or_default().to_owned(), candidates: told(&several) }),
        Ok(None) => {
            let (system, everything) = (host.id().name(), told(&(0..known.len()).collect::<Vec<_>>()));
            Err(AudioError::NoDevice {
                what: kind.what(),
                looked_for: name.map_or_else(|| format!("the default one of {system}"), |n| format!("{n:?} in {system}")),
                known: if everything.is_empty() { "; there is none".into() } else { format!("; there is {everything}") },
                instead: kind.instead(),
            })
        }
    }
}

/// How a device is opened: its own rate and channels, its own format, periods of [`PERIOD_MS`] where it lets us choose.
fn choose(device: &Device, kind: Kind) -> Result<(StreamConfig, SampleFormat), AudioError> {
    let default = match kind {
        Kind::Input => device.default_input_config(),
        Kind::Output => device.default_output_config(),
    };
    let default = default.map_err(|e| does_not_open(device, kind, &e))?;
    let mut config = default.config();
    let period = config.sample_rate * PERIOD_MS / 1000;
    if let cpal::SupportedBufferSize::Range { min, max } = default.buffer_size()
        && (*min..=*max).contains(&period) {
            config.buffer_size = cpal::BufferSize::Fixed(period);
    }
    Ok((config, default.sample_format()))
}

fn does_not_open(device: &Device, kind: Kind, e: &cpal::Error) -> AudioError {
    AudioError::DoesNotOpen { what: kind.what(), name: name_of(device), reason: e.to_string() }
}

/// Tells the owner of a stream what its sound system says. Full means that nobody reads: the rest would say the same.
fn reporter(sink: async_mpsc::Sender<StreamTrouble>) -> impl FnMut(cpal::Error) + Send + 'static {
    move |e| {
        let said = e.to_string();
        let trouble = match e.kind() {
            cpal::ErrorKind::DeviceChanged => StreamTrouble::Moved(said),
            cpal::ErrorKind::Xrun => StreamTrouble::Glitch(said),
            // Only says that the thread has an ordinary priority.
            cpal::ErrorKind::RealtimeDenied => return,
            _ => StreamTrouble::Lost(said),
        };
        let _ = sink.try_send(trouble);
    }
}

/// Opens on a thread of its own, which keeps the stream (some systems bind it to its thread), and waits for the outcome.
fn on_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce(&dyn Fn(Result<T, AudioError>)) + Send + 'static,
) -> Result<(T, std::thread::JoinHandle<()>), AudioError> {
    let (tell, outcome) = mpsc::sync_channel(1);
    let failed = |reason: String| AudioError::DoesNotOpen { what: "sound thread", name: name.to_owned(), reason };
    let run = move || run(&|result| {
        let _ = tell.send(result);
    });
    let thread = thread(name, run)?;
    match outcome.recv() {
        Ok(result) => result.map(|opened| (opened, thread)),
        Err(_) => Err(failed("it ended before the device was open".into())),
    }
}

/// A thread of this name.
fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<std::thread::JoinHandle<()>, AudioError> {
    let failed = |e: std::io::Error| AudioError::DoesNotOpen { what: "sound thread", name: name.to_owned(), reason: e.to_string() };
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_device_or_the_candidates_are_told() {
        let known: Vec<(String, String)> = [
            ("alsa.usb-0d8c", "USB Headset Mono"), ("alsa.pci-0", "Built-in Audio Stereo"), ("alsa.pci-0.monitor", "Monitor of Built-in Audio Stereo"),
            ("usb", "Webcam"), ("alsa.usb-1111", "USB Headset Mono"),
        ].map(|(id, name)| (id.to_string(), name.to_string())).to_vec();
        let chosen = |wanted| chosen(&known, wanted);
        assert_eq!(chosen("usb"), Ok(Some(3)), "an id is meant before any part");
        assert_eq!(chosen("built-IN"), Ok(Some(1)), "a monitor is not meant");
        assert_eq!(chosen("monitor of"), Ok(Some(2)), "unless it is");
        assert_eq!(chosen("usb headset mono"), Err(vec![0, 4]));
        assert_eq!(chosen("alsa"), Err(vec![0, 1, 4]));
        assert_eq!(chosen("webCAM"), Ok(Some(3)));
        assert_eq!(chosen("pink"), Ok(None));
    }
}
