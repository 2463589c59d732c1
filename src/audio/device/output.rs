//! A speaker that is a device.
//!
//! Owns the playback stream, its thread and the ring that it plays from. Never blocks its writer: what does not fit is refused.
#![allow(clippy::disallowed_methods, reason = "a reply that is sent once needs no bound")]

use super::callback::{Giver, Played};
use super::{Kind, StreamTrouble, choose, does_not_open, find, id_of, name_of, on_thread, reporter};
use crate::audio::AudioError;
use crate::media::frame::ms_of;
use cpal::traits::{DeviceTrait, StreamTrait};
use cpal::{Device, FromSample, SampleFormat, SizedSample, StreamConfig};
use ringbuf::traits::{Observer, Producer, Split};
use ringbuf::{HeapProd, HeapRb};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// Most sound that waits in the ring, in milliseconds. A barge-in cannot take back what is in here, so fill it sparingly.
pub const RING_MS: u32 = 200;

/// An open speaker. Closes when dropped.
pub struct OutputStream {
    rate_hz: u32,
    id: String,
    name: String,
    ring: HeapProd<i16>,
    counts: Arc<Played>,
    trouble: mpsc::Receiver<StreamTrouble>,
    thread: Option<JoinHandle<()>>,
    close: std::sync::mpsc::Sender<()>,
}

/// Opens a speaker by name, or the default one. Blocks up to a few seconds: call it off the async threads.
///
/// # Errors
/// [`AudioError::NoDevice`] or [`AudioError::DoesNotOpen`].
pub fn open_output(name: Option<&str>) -> Result<OutputStream, AudioError> {
    let name = name.map(str::to_owned);
    let counts = Arc::new(Played::default());
    let for_thread = counts.clone();
    let (report, trouble) = mpsc::channel(16);
    let (close, closed) = std::sync::mpsc::channel::<()>();
    let ((rate_hz, id, name, ring), thread) = on_thread("voxgate-speaker", move |tell| {
        let opened = find(Kind::Output, name.as_deref()).and_then(|device| {
            let (config, format) = choose(&device, Kind::Output)?;
            let (producer, consumer) = HeapRb::<i16>::new((config.sample_rate * RING_MS / 1000) as usize).split();
            let giver = Giver::new(config.channels, consumer, for_thread);
            let stream = build(&device, config, format, giver, report)?;
            stream.play().map_err(|e| does_not_open(&device, Kind::Output, &e))?;
            Ok((stream, producer, config.sample_rate, id_of(&device), name_of(&device)))
        });
        match opened {
            Err(e) => tell(Err(e)),
            Ok((stream, producer, rate_hz, id, name)) => {
                tell(Ok((rate_hz, id, name, producer)));
                // Ends when the owner drops its end.
                let _ = closed.recv();
                drop(stream);
            }
        }
    })?;
    Ok(OutputStream { rate_hz, id, name, ring, counts, trouble, thread: Some(thread), close })
}

impl OutputStream {
    /// Samples a second.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// The sound system's own word for the device.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes mono i16 and answers how many samples fitted.
    pub fn write(&mut self, pcm: &[i16]) -> usize {
        self.ring.push_slice(pcm)
    }

    /// How much waits for the device, in milliseconds. Keep it at 60 to 100: less tears (40 ms are taken at once), more delays a barge-in.
    pub fn fill_ms(&self) -> u64 {
        ms_of(self.ring.occupied_len() as u64, self.rate_hz)
    }

    /// How many samples wait for the device.
    pub fn fill(&self) -> usize {
        self.ring.occupied_len()
    }

    /// How many samples the device took.
    pub fn played(&self) -> u64 {
        self.counts.taken.load(Ordering::Acquire)
    }

    /// How much the device took, in milliseconds. It sounds [`latency_ms`](Self::latency_ms) later.
    pub fn played_ms(&self) -> u64 {
        ms_of(self.counts.taken.load(Ordering::Acquire), self.rate_hz)
    }

    /// The time from taking to sounding, as the sound system tells it, in milliseconds.
    pub fn latency_ms(&self) -> u64 {
        self.counts.latency_us.load(Ordering::Relaxed) / 1000
    }

    /// Times that the device wanted more than there was, after the first sample.
    pub fn underruns(&self) -> u64 {
        self.counts.underruns.load(Ordering::Relaxed)
    }

    /// What happened to the stream, if something did.
    pub fn poll_trouble(&mut self) -> Option<StreamTrouble> {
        self.trouble.try_recv().ok()
    }

    /// Waits until something happens to the stream. `None` when nothing more can.
    pub async fn trouble(&mut self) -> Option<StreamTrouble> {
        self.trouble.recv().await
    }
}

impl Drop for OutputStream {
    fn drop(&mut self) {
        let _ = self.close.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn build(device: &Device, config: StreamConfig, format: SampleFormat, giver: Giver, report: mpsc::Sender<StreamTrouble>) -> Result<cpal::Stream, AudioError> {
    match format {
        SampleFormat::I16 => build_as::<i16>(device, config, giver, report),
        SampleFormat::U8 => build_as::<u8>(device, config, giver, report),
        SampleFormat::U16 => build_as::<u16>(device, config, giver, report),
        SampleFormat::I32 => build_as::<i32>(device, config, giver, report),
        SampleFormat::I24 => build_as::<cpal::I24>(device, config, giver, report),
        SampleFormat::F32 => build_as::<f32>(device, config, giver, report),
        other => Err(AudioError::DoesNotOpen { what: "speaker", name: name_of(device), reason: format!("its samples are {other}") }),
    }
}

fn build_as<T>(device: &Device, config: StreamConfig, mut giver: Giver, report: mpsc::Sender<StreamTrouble>) -> Result<cpal::Stream, AudioError>
where
    T: SizedSample + FromSample<i16>,
{
    let give = move |data: &mut [T], info: &cpal::OutputCallbackInfo| {
        let times = info.timestamp();
        let ahead = times.playback.duration_since(times.callback);
        giver.give(data, u64::try_from(ahead.as_micros()).unwrap_or(0));
    };
    let limit = Some(Duration::from_secs(5));
    device.build_output_stream::<T, _, _>(config, give, reporter(report), limit).map_err(|e| does_not_open(device, Kind::Output, &e))
}
