//! A microphone that is a device.
//!
//! Owns the capture stream, its thread and the frames that wait. Never holds more than a second: the oldest frame goes first.

use super::callback::{Heard, Taker};
use super::{Kind, StreamTrouble, choose, does_not_open, find, id_of, name_of, on_thread, reporter};
use crate::audio::AudioError;
use crate::media::frame::frame_len;
use cpal::traits::{DeviceTrait, StreamTrait};
use cpal::{Device, FromSample, SampleFormat, SizedSample, StreamConfig};
use ringbuf::traits::{Consumer, Split};
use ringbuf::{HeapCons, HeapRb};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Most frames that wait for their reader: 1 s.
const MAX_FRAMES: usize = 50;
/// How often the ring is emptied.
const TICK: Duration = Duration::from_millis(5);
/// Ticks without a sample after which the microphone counts as stalled: 1 s.
const STALLED_TICKS: u32 = 200;

/// An open microphone. Closes when dropped.
pub struct InputStream {
    rate_hz: u32,
    id: String,
    name: String,
    shared: Arc<Shared>,
    trouble: mpsc::Receiver<StreamTrouble>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    frames: Mutex<VecDeque<Vec<i16>>>,
    arrived: Notify,
    dropped: AtomicU64,
    heard: Arc<Heard>,
    closed: AtomicBool,
}

/// Opens a microphone by name, or the default one. Blocks up to a few seconds: call it off the async threads.
///
/// # Errors
/// [`AudioError::NoDevice`] or [`AudioError::DoesNotOpen`].
pub fn open_input(name: Option<&str>) -> Result<InputStream, AudioError> {
    let name = name.map(str::to_owned);
    let shared = Arc::new(Shared::default());
    let (report, trouble) = mpsc::channel(16);
    let for_thread = shared.clone();
    let ((rate_hz, id, name), thread) = on_thread("voxgate-mic", move |tell| {
        let opened = find(Kind::Input, name.as_deref()).and_then(|device| {
            let (config, format) = choose(&device, Kind::Input)?;
            // Room for half a second, should the thread be late.
            let (producer, consumer) = HeapRb::<i16>::new(config.sample_rate as usize / 2).split();
            let taker = Taker::new(config.channels, producer, for_thread.heard.clone());
            let stream = build(&device, config, format, taker, report.clone())?;
            stream.play().map_err(|e| does_not_open(&device, Kind::Input, &e))?;
            Ok((stream, consumer, config.sample_rate, id_of(&device), name_of(&device)))
        });
        match opened {
            Err(e) => tell(Err(e)),
            Ok((stream, consumer, rate_hz, id, name)) => {
                tell(Ok((rate_hz, id, name)));
                pump(consumer, frame_len(rate_hz), &for_thread, &report);
                drop(stream);
            }
        }
    })?;
    Ok(InputStream { rate_hz, id, name, shared, trouble, thread: Some(thread) })
}

impl InputStream {
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

    /// The next 20 ms of mono i16. Waits for it; safe to drop and ask again.
    pub async fn next_frame(&mut self) -> Vec<i16> {
        Self::frame(&self.shared).await
    }

    /// The next 20 ms, or what happened to the stream, whichever is first. Waits; safe to drop and ask again.
    ///
    /// # Errors
    /// [`StreamTrouble`]; after a glitch or a move the stream goes on.
    pub async fn next(&mut self) -> Result<Vec<i16>, StreamTrouble> {
        tokio::select! {
            biased;
            Some(trouble) = self.trouble.recv() => Err(trouble),
            frame = Self::frame(&self.shared) => Ok(frame),
        }
    }

    async fn frame(shared: &Shared) -> Vec<i16> {
        loop {
            let arrived = shared.arrived.notified();
            if let Some(frame) = shared.take() {
                return frame;
            }
            arrived.await;
        }
    }

    /// What happened to the stream, if something did.
    pub fn poll_trouble(&mut self) -> Option<StreamTrouble> {
        self.trouble.try_recv().ok()
    }

    /// Waits until something happens to the stream. `None` when nothing more can.
    pub async fn trouble(&mut self) -> Option<StreamTrouble> {
        self.trouble.recv().await
    }

    /// Frames that were dropped because nobody read them.
    pub fn dropped(&self) -> u64 {
        let lost = self.shared.heard.lost.load(Ordering::Relaxed) / frame_len(self.rate_hz).max(1) as u64;
        self.shared.dropped.load(Ordering::Relaxed) + lost
    }
}

impl Drop for InputStream {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn take(&self) -> Option<Vec<i16>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn give(&self, frame: Vec<i16>) {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if frames.len() == MAX_FRAMES {
            frames.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        frames.push_back(frame);
        drop(frames);
        self.arrived.notify_one();
    }
}

/// Cuts frames until the stream is dropped, and says once when no sound comes.
fn pump(mut ring: HeapCons<i16>, frame_len: usize, shared: &Shared, report: &mpsc::Sender<StreamTrouble>) {
    let (mut frame, mut quiet_ticks) = (Vec::with_capacity(frame_len), 0u32);
    let mut chunk = vec![0i16; frame_len];
    while !shared.closed.load(Ordering::Acquire) {
        let n = ring.pop_slice(&mut chunk[..frame_len - frame.len()]);
        frame.extend_from_slice(&chunk[..n]);
        if frame.len() == frame_len {
            shared.give(std::mem::replace(&mut frame, Vec::with_capacity(frame_len)));
        }
        if n > 0 {
            quiet_ticks = 0;
            continue;
        }
        quiet_ticks = quiet_ticks.saturating_add(1);
        if quiet_ticks == STALLED_TICKS {
            let _ = report.try_send(StreamTrouble::Stalled);
        }
        std::thread::sleep(TICK);
    }
}

fn build(device: &Device, config: StreamConfig, format: SampleFormat, taker: Taker, report: mpsc::Sender<StreamTrouble>) -> Result<cpal::Stream, AudioError> {
    match format {
        SampleFormat::I16 => build_as::<i16>(device, config, taker, report),
        SampleFormat::U8 => build_as::<u8>(device, config, taker, report),
        SampleFormat::U16 => build_as::<u16>(device, config, taker, report),
        SampleFormat::I32 => build_as::<i32>(device, config, taker, report),
        SampleFormat::I24 => build_as::<cpal::I24>(device, config, taker, report),
        SampleFormat::F32 => build_as::<f32>(device, config, taker, report),
        other => Err(AudioError::DoesNotOpen { what: "microphone", name: name_of(device), reason: format!("its samples are {other}") }),
    }
}

fn build_as<T>(device: &Device, config: StreamConfig, mut taker: Taker, report: mpsc::Sender<StreamTrouble>) -> Result<cpal::Stream, AudioError>
where
    T: SizedSample,
    f32: FromSample<T>,
{
    let take = move |data: &[T], _: &cpal::InputCallbackInfo| taker.take(data);
    let limit = Some(Duration::from_secs(5));
    device.build_input_stream::<T, _, _>(config, take, reporter(report), limit).map_err(|e| does_not_open(device, Kind::Input, &e))
}
