//! The speaking end of the driver: segments become sound in order and go to whoever listens, and what was heard is accounted for.
//!
//! A device pulls samples from a [`Playout`]; a socket is sent everything at once and is taken to have heard it in real time
//! from the first delta on, plus what a client buffers.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::leg::{LegEnd, LegOutput};
use super::recording::Played;
use crate::engine::id::{ItemId, Ms, SpeechId, TurnId};
use crate::engine::input::{CutWhy, Input};
use crate::media::earcon::{Earcon, earcon};
use crate::media::playout::{Playout, PlayoutEvent};
use crate::media::resample::resample_all;
use crate::tts::Speech;

/// A socket's client is taken to play this much later than it was sent.
pub const SOCKET_DELAY_MS: u64 = 300;

/// Silence between two sentences, in milliseconds: the voice trims its own.
const BETWEEN_MS: usize = 120;

/// A segment that waits for the voice.
#[derive(Clone, Debug)]
pub struct SayJob {
    /// Of which speech.
    pub speech: SpeechId,
    /// Its place in it.
    pub segment: usize,
    /// The words.
    pub text: String,
}

/// What a socket was sent of the speech that is open.
#[derive(Debug)]
struct Sent {
    speech: SpeechId,
    /// When its client will have played all of it, but for what it buffers.
    plays_until: Option<Ms>,
    sent_ms: u64,
    ended: bool,
}

enum Sink {
    Nobody,
    Device(Box<Playout>),
    Socket { tx: mpsc::Sender<LegOutput>, sent: Option<Sent>, earcon: Option<Earcon>, lost: bool },
}

/// See the file's head.
pub struct MouthEnd {
    sink: Sink,
    jobs: VecDeque<SayJob>,
    /// The job whose sound is being made.
    making: Option<SayJob>,
    /// A speech whose last segment has been asked for.
    ending: Option<SpeechId>,
    cut: Option<SpeechId>,
    /// What became audible since it was last asked for, where it is recorded.
    tap: Option<Vec<Played>>,
}

impl MouthEnd {
    /// A mouth nobody listens to.
    pub fn new() -> Self { Self { sink: Sink::Nobody, jobs: VecDeque::new(), making: None, ending: None, cut: None, tap: None } }

    /// From now on a device at this rate listens.
    pub fn play_on_device(&mut self, rate_hz: u32) { self.replace(Sink::Device(Box::new(Playout::new(rate_hz)))) }

    /// From now on a socket listens.
    pub fn play_to_socket(&mut self, tx: mpsc::Sender<LegOutput>) { self.replace(Sink::Socket { tx, sent: None, earcon: None, lost: false }) }

    /// Nobody listens any more.
    pub fn play_to_nobody(&mut self) { self.replace(Sink::Nobody) }

    /// From now on what becomes audible is kept for [`MouthEnd::tapped`].
    pub fn tap(&mut self) { self.tap.get_or_insert_default(); }

    /// What became audible since the last call, in order.
    pub fn tapped(&mut self) -> Vec<Played> { self.tap.as_mut().map(std::mem::take).unwrap_or_default() }

    fn replace(&mut self, sink: Sink) {
        if let Some(tap) = &mut self.tap { tap.push(Played::Cut) }
        self.sink = sink;
        self.jobs.clear();
        self.ending = None;
        self.cut = self.making.as_ref().map(|j| j.speech);
    }

    /// True when the socket could not take what it was sent: it must be let go.
    pub fn is_lost(&self) -> bool { matches!(self.sink, Sink::Socket { lost: true, .. }) }

    /// A socket's client has not heard all of what is said.
    pub fn is_playing_far(&self) -> bool { matches!(self.sink, Sink::Socket { sent: Some(_), .. }) }

    /// Sound is being made or waits to be.
    pub fn is_making(&self) -> bool { self.making.is_some() || !self.jobs.is_empty() }

    /// Fills `out` with `n` samples of a device's playback.
    pub fn pull(&mut self, n: usize, out: &mut Vec<i16>) {
        match &mut self.sink {
            Sink::Device(playout) => {
                let from = out.len();
                playout.pull(n, out);
                if let Some(tap) = &mut self.tap { tap.push(Played::Sound(out[from..].to_vec(), playout.rate_hz())) }
            }
            _ => out.resize(out.len() + n, 0),
        }
    }

    /// A device has nothing left to play.
    pub fn is_silent(&self) -> bool { if let Sink::Device(playout) = &self.sink { playout.is_silent() } else { true } }

    /// For a socket beside speech; dropped elsewhere.
    pub fn tell(&mut self, output: LegOutput) {
        if let Sink::Socket { tx, lost, .. } = &mut self.sink {
            *lost |= tx.try_send(output).is_err();
        }
    }

    /// A speech begins.
    pub fn begin(&mut self, speech: SpeechId, item: ItemId, turn: Option<TurnId>, tone: Option<Earcon>) {
        self.cut = None;
        if let Some(tone) = tone { self.earcon(tone) }
        if let Sink::Socket { sent, .. } = &mut self.sink {
            *sent = Some(Sent { speech, plays_until: None, sent_ms: 0, ended: false });
        }
        self.tell(LegOutput::SpeechBegan { speech, item, turn });
    }

    /// A segment is to be said.
    pub fn say(&mut self, job: SayJob) {
        let text = if job.segment == 0 { job.text.clone() } else { format!(" {}", job.text) };
        self.tell(LegOutput::Text { speech: job.speech, text });
        self.jobs.push_back(job);
    }

    /// The next segment to make sound of, if none is being made.
    pub fn next_job(&mut self) -> Option<SayJob> {
        if self.making.is_some() {
            return None;
        }
        self.making = self.jobs.pop_front();
        self.making.clone()
    }

    /// A segment's sound is here (or has none). Answers the engine's input, unless it was cut meanwhile.
    pub fn made(&mut self, now: Ms, result: Result<Arc<Speech>, String>) -> Option<Input> {
        let job = self.making.take()?;
        if self.cut == Some(job.speech) {
            return None;
        }
        let pause = if job.segment > 0 { BETWEEN_MS } else { 0 };
        let result = result.map(|sound| self.sound(now, job.speech, &sound, pause));
        self.finish_if_made();
        Some(Input::Synthesised { speech: job.speech, segment: job.segment, result })
    }

    fn sound(&mut self, now: Ms, speech: SpeechId, sound: &Speech, pause_ms: usize) -> u64 {
        let said = !sound.samples.is_empty();
        let pause = if said { pause_ms * sound.rate_hz as usize / 1000 } else { 0 };
        let ms = (sound.samples.len() + pause) as u64 * 1000 / u64::from(sound.rate_hz.max(1));
        if !said {
            return 0;
        }
        match &mut self.sink {
            Sink::Nobody => {}
            Sink::Device(playout) => {
                let fitted = resample_all(&sound.samples, sound.rate_hz, playout.rate_hz());
                playout.append(speech.0, &vec![0; pause_ms * playout.rate_hz() as usize / 1000]);
                playout.append(speech.0, &fitted);
            }
            Sink::Socket { tx, sent, earcon: tone, lost } => {
                let Some(sent) = sent.as_mut().filter(|s| s.speech == speech) else { return ms };
                let mut samples = tone.take().map(|t| earcon(t, sound.rate_hz)).unwrap_or_default();
                samples.resize(samples.len() + pause, 0);
                samples.extend_from_slice(&sound.samples);
                let length = samples.len() as u64 * 1000 / u64::from(sound.rate_hz.max(1));
                sent.sent_ms += length;
                // Sound that comes after everything before it was played begins then, not where that ended.
                sent.plays_until = Some(sent.plays_until.map_or(now, |at| at.max(now)) + length);
                if let Some(tap) = &mut self.tap { tap.push(Played::Sound(samples.clone(), sound.rate_hz)) }
                *lost |= tx.try_send(LegOutput::Audio { speech, samples, rate_hz: sound.rate_hz }).is_err();
            }
        }
        ms
    }

    /// No more segments of this speech come.
    pub fn end(&mut self, speech: SpeechId) {
        self.ending = Some(speech);
        self.finish_if_made();
    }

    fn finish_if_made(&mut self) {
        let Some(speech) = self.ending else { return };
        if self.making.is_some() || self.jobs.iter().any(|j| j.speech == speech) {
            return;
        }
        self.ending = None;
        match &mut self.sink {
            Sink::Nobody => {}
            Sink::Device(playout) => playout.finish(speech.0),
            Sink::Socket { sent, .. } => {
                if let Some(sent) = sent.as_mut().filter(|s| s.speech == speech) { sent.ended = true }
                self.tell(LegOutput::SpeechEnded { speech, end: LegEnd::Completed });
            }
        }
    }

    /// A device's playback holds its breath; a socket's client has the sound already. Answers what was heard of the speech.
    pub fn duck(&mut self, speech: SpeechId) -> u64 {
        let Some(playout) = self.playout_of(speech) else { return 0 };
        playout.duck();
        playout.heard_ms(speech.0).unwrap_or(0)
    }

    /// It goes on where it was.
    pub fn resume(&mut self, speech: SpeechId) {
        if let Some(playout) = self.playout_of(speech) { playout.resume() }
    }

    /// The device that plays this speech, or will next.
    fn playout_of(&mut self, speech: SpeechId) -> Option<&mut Playout> {
        match &mut self.sink {
            Sink::Device(playout) if playout.current().is_none_or(|now| now == speech.0) => Some(playout),
            _ => None,
        }
    }

    /// Stops a speech; answers how much of it was heard.
    pub fn cut(&mut self, now: Ms, speech: SpeechId, why: CutWhy) -> u64 {
        self.jobs.retain(|j| j.speech != speech);
        self.ending = self.ending.filter(|s| *s != speech);
        self.cut = Some(speech);
        let end = if why == CutWhy::Interrupted { LegEnd::Interrupted } else { LegEnd::Cancelled };
        match &mut self.sink {
            Sink::Nobody => 0,
            Sink::Device(playout) => playout.cut(Some(speech.0)).first().map_or(0, |c| c.heard_ms),
            Sink::Socket { sent, .. } => {
                let Some(was) = sent.take().filter(|s| s.speech == speech) else { return 0 };
                if let Some(tap) = &mut self.tap { tap.push(Played::Cut) }
                if !was.ended { self.tell(LegOutput::SpeechEnded { speech, end }) }
                was.plays_until.map_or(0, |at| was.sent_ms.saturating_sub(at.saturating_sub(now)))
            }
        }
    }

    /// A tone over whatever plays. A socket gets it before the next words.
    pub fn earcon(&mut self, tone: Earcon) {
        match &mut self.sink {
            Sink::Nobody => {}
            Sink::Device(playout) => {
                let sound = earcon(tone, playout.rate_hz());
                playout.earcon(&sound);
            }
            Sink::Socket { earcon, .. } => *earcon = Some(tone),
        }
    }

    /// Speeches that have been heard to their end by now.
    pub fn drained(&mut self, now: Ms) -> Option<Input> {
        match &mut self.sink {
            Sink::Nobody => None,
            Sink::Device(playout) => loop {
                match playout.poll()? {
                    PlayoutEvent::Drained { speech, .. } => return Some(Input::Drained { speech: SpeechId(speech) }),
                    PlayoutEvent::Started { .. } | PlayoutEvent::Idle => {}
                }
            },
            Sink::Socket { sent, .. } => {
                let over = sent.as_ref().is_some_and(|s| s.ended && s.plays_until.is_none_or(|at| now >= at + SOCKET_DELAY_MS));
                if !over { return None }
                sent.take().map(|s| Input::Drained { speech: s.speech })
            }
        }
    }
}

impl Default for MouthEnd {
    fn default() -> Self { Self::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> Result<Arc<Speech>, String> { Ok(Arc::new(Speech { samples: vec![0; 24_000], rate_hz: 24_000 })) }

    #[test]
    fn sound_that_comes_late_to_a_socket_is_played_late() {
        let (tx, _output) = mpsc::channel(64);
        let mut mouth = MouthEnd::new();
        mouth.play_to_socket(tx);
        mouth.begin(SpeechId(1), "i".into(), None, None);
        for segment in 0..2 { mouth.say(SayJob { speech: SpeechId(1), segment, text: "Words.".into() }) }
        mouth.end(SpeechId(1));
        mouth.next_job();
        mouth.made(1_000, second());
        // The voice took three seconds for the next one: the client has been silent for two. A pause stands before it.
        mouth.next_job();
        mouth.made(4_000, second());
        let over = 5_000 + BETWEEN_MS as u64 + SOCKET_DELAY_MS;
        assert!(mouth.drained(over - 1).is_none());
        assert!(matches!(mouth.drained(over), Some(Input::Drained { .. })));
    }

    #[test]
    fn what_a_socket_heard_before_the_cut_is_counted_without_the_gap() {
        let (tx, _output) = mpsc::channel(64);
        let mut mouth = MouthEnd::new();
        mouth.play_to_socket(tx);
        mouth.begin(SpeechId(1), "i".into(), None, None);
        for segment in 0..2 { mouth.say(SayJob { speech: SpeechId(1), segment, text: "Words.".into() }) }
        mouth.next_job();
        mouth.made(1_000, second());
        mouth.next_job();
        mouth.made(4_000, second());
        assert_eq!(mouth.cut(4_400, SpeechId(1), CutWhy::Interrupted), 1_400);
    }
}
