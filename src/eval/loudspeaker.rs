//! The loop simulator: speaker, room and microphone on one sample clock, with noise and a scripted person.
//!
//! It is a file device of the product's own driver, so that everything between the microphone's samples and the speaker's is
//! what runs in a real conversation. Called by the measuring commands and the tests. Deterministic.

use std::collections::VecDeque;

use super::person::Person;
use super::room::{Convolver, Random, Room, impulse};
use crate::media::frame::{EAR_FRAME, EAR_HZ, samples_in};
use crate::media::level::{db_to_ratio, round_to_i16};
use crate::session::file::FileDevice;

/// Silence of both after the last line before the simulation ends, in milliseconds.
const END_MS: u64 = 4_000;
/// Where the loudspeaker bends: full scale comes out 2.4 dB lower, with its overtones; ordinary speech hardly changes.
const DRIVE: f32 = 1.0;

/// How a loudspeaker and a microphone stand to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acoustics {
    /// Level of the echo at the microphone relative to what is played, in dB; `None`: a headset, no echo at all.
    pub echo_db: Option<f32>,
    /// From the speaker's sample to the microphone's, buffers included, in milliseconds; at least 20.
    pub delay_ms: u64,
    /// Reverberation, in milliseconds.
    pub rt60_ms: u32,
    /// Which room.
    pub room: u64,
    /// Level of steady noise (falling like that of a room, 3 dB an octave), in dBFS.
    pub noise_dbfs: Option<f32>,
}

impl Default for Acoustics {
    fn default() -> Self { Self { echo_db: Some(-12.0), delay_ms: 120, rt60_ms: 300, room: 1, noise_dbfs: None } }
}

impl Acoustics {
    /// A headset in a silent room.
    pub fn headset() -> Self { Self { echo_db: None, ..Self::default() } }

    /// Reads "echo=-12,delay=120,rt60=300,room=1,noise=-50"; what is not named is as in the default, "echo=none" is a headset.
    ///
    /// # Errors
    /// A sentence that names the part that is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let wrong = || format!("{part:?} is none of echo=DB, delay=MS, rt60=MS, room=NUMBER, noise=DBFS");
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            match name {
                "echo" if value == "none" => read.echo_db = None,
                "echo" => read.echo_db = Some(value.parse().map_err(|_| wrong())?),
                "delay" => read.delay_ms = value.parse().ok().filter(|ms| (20..=2_000).contains(ms)).ok_or_else(wrong)?,
                "rt60" => read.rt60_ms = value.parse().map_err(|_| wrong())?,
                "room" => read.room = value.parse().map_err(|_| wrong())?,
                "noise" => read.noise_dbfs = Some(value.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        Ok(read)
    }
}

/// The way from the speaker to the microphone: 16 kHz, frames of 20 ms.
pub struct Air {
    room: Option<Convolver>,
    gain: f32,
    /// Echo that has not arrived yet; its front belongs to the next microphone sample.
    coming: VecDeque<f32>,
    noise: Noise,
}

impl Air {
    /// The air of these acoustics.
    pub fn new(acoustics: &Acoustics) -> Self {
        let room = acoustics.echo_db.map(|_| Convolver::new(&impulse(&Room::numbered(acoustics.room, acoustics.rt60_ms))));
        let delay = samples_in(acoustics.delay_ms.max(20), EAR_HZ) as usize;
        let gain = acoustics.echo_db.map_or(0.0, db_to_ratio);
        Self { room, gain, coming: vec![0.0; delay].into(), noise: Noise::new(acoustics.noise_dbfs, acoustics.room) }
    }

    /// What the speaker plays next, 320 samples.
    pub fn play(&mut self, played: &[i16]) {
        let Some(room) = &mut self.room else { return };
        let mut block = [0f32; EAR_FRAME];
        for (slot, s) in block.iter_mut().zip(played) {
            *slot = bent(f32::from(*s) / 32_768.0) * 32_768.0;
        }
        let gain = self.gain;
        self.coming.extend(room.frame(&block).iter().map(|x| x * gain));
    }

    /// Adds what arrives at the microphone next to `out`.
    pub fn arrive(&mut self, out: &mut [f32]) {
        for slot in out {
            *slot += self.coming.pop_front().unwrap_or(0.0) + self.noise.next();
        }
    }
}

/// A small loudspeaker: soft clipping.
fn bent(x: f32) -> f32 { (DRIVE * x).tanh() / DRIVE }

/// Steady noise with the spectrum of a room.
struct Noise {
    random: Random,
    scale: f32,
    slow: [f32; 3],
}

impl Noise {
    fn new(dbfs: Option<f32>, seed: u64) -> Self {
        Self { random: Random::new(seed ^ 0x0a01_5e00), scale: dbfs.map_or(0.0, |db| db_to_ratio(db) * 32_768.0 / PINK_RMS), slow: [0.0; 3] }
    }

    fn next(&mut self) -> f32 {
        if self.scale == 0.0 {
            return 0.0;
        }
        // Pink noise after Paul Kellet's economical filter.
        let white = self.random.between(-1.0, 1.0) as f32;
        self.slow[0] = 0.997_65 * self.slow[0] + white * 0.099_046;
        self.slow[1] = 0.963 * self.slow[1] + white * 0.296_516;
        self.slow[2] = 0.57 * self.slow[2] + white * 1.052_691_3;
        let pink = self.slow.iter().sum::<f32>() + white * 0.1848;
        pink * self.scale
    }
}

/// Root mean square of the filtered noise before it is scaled (measured).
const PINK_RMS: f32 = 1.712;

/// Something that happens on the sample clock beside the person: asks the gateway to speak, for instance.
pub type Prompter = Box<dyn FnMut(&Person) -> Beat + Send>;

/// Whether the simulation goes on for the sake of a [`Prompter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// More is to come.
    GoOn,
    /// It asks for nothing more.
    Done,
}

/// A device of the driver: see the file's head.
pub struct Simulation {
    air: Air,
    echoes: bool,
    person: Person,
    prompter: Option<Prompter>,
    prompted_out: bool,
    at: u64,
    longest: u64,
    speaker: Vec<i16>,
    microphone: Vec<i16>,
}

impl Simulation {
    /// Somebody in a room with the gateway. Ends some seconds after everything was said, at the latest after `longest_ms`.
    pub fn new(acoustics: &Acoustics, person: Person, longest_ms: u64) -> Self {
        Self {
            air: Air::new(acoustics), echoes: acoustics.echo_db.is_some(), person, prompter: None, prompted_out: true, at: 0, longest: samples_in(longest_ms, EAR_HZ), speaker: Vec::new(), microphone: Vec::new(),
        }
    }

    /// Asked at every frame.
    pub fn with_prompter(mut self, prompter: Prompter) -> Self {
        self.prompter = Some(prompter);
        self.prompted_out = false;
        self
    }

    /// Without an echo canceller between them, whatever the settings say: a client that brings none.
    pub fn without_canceller(mut self) -> Self {
        self.echoes = false;
        self
    }

    /// As if a headset were worn that is known to be one, or as if it were not known.
    pub fn with_canceller(mut self) -> Self {
        self.echoes = true;
        self
    }

    /// The person.
    pub fn person(&self) -> &Person { &self.person }

    /// All that was played, mono i16 at 16 kHz, in step with [`Simulation::heard`].
    pub fn played(&self) -> &[i16] { &self.speaker }

    /// All that arrived at the microphone, before any cleaning.
    pub fn heard(&self) -> &[i16] { &self.microphone }

    fn is_over(&self) -> bool { self.at >= self.longest || self.person.is_done() && self.prompted_out && self.person.quiet_ms() >= END_MS }
}

impl FileDevice for Simulation {
    fn rate_hz(&self) -> u32 { EAR_HZ }

    fn echoes(&self) -> bool { self.echoes }

    fn length(&self) -> u64 { if self.is_over() { self.at } else { u64::MAX } }

    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> {
        let mut frame = vec![0f32; (to - from) as usize];
        if !self.prompted_out {
            if let Some(prompter) = &mut self.prompter { self.prompted_out = prompter(&self.person) == Beat::Done }
        }
        self.person.speak(&mut frame);
        self.air.arrive(&mut frame);
        self.at = to;
        let sound: Vec<i16> = frame.into_iter().map(round_to_i16).collect();
        self.microphone.extend_from_slice(&sound);
        sound
    }

    fn speaker(&mut self, samples: &[i16]) -> Result<(), String> {
        self.person.hear(samples);
        self.air.play(samples);
        self.speaker.extend_from_slice(samples);
        Ok(())
    }
}

/// Two files with a room between them: what the speaker's file gets is heard in the microphone's.
pub struct Between<D> {
    inner: D,
    air: Air,
    echoes: bool,
}

impl<D: FileDevice> Between<D> {
    /// Puts the air between the ends of a device.
    ///
    /// # Errors
    /// A sentence when the device does not run at 16 kHz.
    pub fn new(inner: D, acoustics: &Acoustics) -> Result<Self, String> {
        if inner.rate_hz() != EAR_HZ {
            return Err(format!("a simulated room needs a microphone file at {EAR_HZ} Hz, not {}", inner.rate_hz()));
        }
        Ok(Self { inner, air: Air::new(acoustics), echoes: acoustics.echo_db.is_some() })
    }

    /// The device again.
    pub fn into_inner(self) -> D { self.inner }
}

impl<D: FileDevice> FileDevice for Between<D> {
    fn rate_hz(&self) -> u32 { self.inner.rate_hz() }

    fn echoes(&self) -> bool { self.echoes }

    fn length(&self) -> u64 { self.inner.length() }

    fn microphone(&mut self, from: u64, to: u64) -> Vec<i16> {
        let mut frame = vec![0f32; (to - from) as usize];
        frame.iter_mut().zip(self.inner.microphone(from, to)).for_each(|(slot, s)| *slot = f32::from(s));
        self.air.arrive(&mut frame);
        frame.into_iter().map(round_to_i16).collect()
    }

    fn speaker(&mut self, samples: &[i16]) -> Result<(), String> {
        self.air.play(samples);
        self.inner.speaker(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::rms_dbfs;

    fn speech_like(n: usize) -> Vec<i16> {
        let mut random = Random::new(9);
        let mut low = 0.0;
        (0..n).map(|_| { low += 0.2 * (random.between(-12_000.0, 12_000.0) - low); low as i16 }).collect()
    }

    #[test]
    fn the_echo_arrives_when_and_as_loud_as_it_says() {
        for (echo_db, delay_ms) in [(-6.0, 80), (-12.0, 200), (-20.0, 400)] {
            let mut air = Air::new(&Acoustics { echo_db: Some(echo_db), delay_ms, ..Acoustics::default() });
            let played = speech_like(320 * 150);
            let mut heard = Vec::new();
            for frame in played.chunks(320) {
                let mut arrived = [0f32; 320];
                air.arrive(&mut arrived);
                heard.extend(arrived.map(round_to_i16));
                air.play(frame);
            }
            let first = heard.iter().position(|s| s.unsigned_abs() > 20).unwrap() as u64 / 16;
            assert!((delay_ms..delay_ms + 4).contains(&first), "{first} for {delay_ms}");
            let level = rms_dbfs(&heard[16_000..]) - rms_dbfs(&played[..32_000]);
            assert!((level - echo_db).abs() < 2.5, "{level} for {echo_db}");
        }
    }

    #[test]
    fn noise_has_its_level_and_a_headset_no_echo() {
        for noise_dbfs in [-30.0, -50.0] {
            let mut air = Air::new(&Acoustics { noise_dbfs: Some(noise_dbfs), ..Acoustics::headset() });
            let mut heard = vec![0f32; 48_000];
            air.play(&[10_000; 320]);
            air.arrive(&mut heard);
            let level = rms_dbfs(&heard.into_iter().map(round_to_i16).collect::<Vec<_>>());
            assert!((level - noise_dbfs).abs() < 1.0, "{level} for {noise_dbfs}");
        }
    }

    #[test]
    fn acoustics_are_read_and_faults_named() {
        let read = Acoustics::parse("echo=-20, delay=400,rt60=600,room=3,noise=-45").unwrap();
        assert_eq!(read, Acoustics { echo_db: Some(-20.0), delay_ms: 400, rt60_ms: 600, room: 3, noise_dbfs: Some(-45.0) });
        assert_eq!(Acoustics::parse("echo=none").unwrap(), Acoustics::headset());
        assert!(Acoustics::parse("delay=5").unwrap_err().contains("delay=5"));
        assert!(Acoustics::parse("wall=3").is_err());
    }

    #[test]
    fn a_simulation_ends_when_everything_was_said() {
        let mut simulation = Simulation::new(&Acoustics::headset(), Person::default(), 60_000);
        let mut at = 0;
        while simulation.length() == u64::MAX {
            simulation.microphone(at, at + 320);
            simulation.speaker(&[0; 320]).unwrap();
            at += 320;
        }
        assert_eq!(at, 16 * END_MS);
    }
}
