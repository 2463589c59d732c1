//! The headset without its devices and its socket: microphone samples become numbered packets, the gateway's events become sound.
//!
//! Owns encoder, decoder, the order of what comes, and the account of what was played. Called by the loop of `talk --connect`. Waits for
//! nothing. This machine's echo canceller belongs here: [`Headset::hear`] is given the microphone and [`Headset::pull`] gives what
//! the loudspeaker plays, in one task and in step.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::impair::{Impair, Impairment};
use crate::codec::{self, CodecError, Decode, Encode, EncoderSettings};
use crate::dialect::openai_realtime::audio::to_base64;
use crate::media::jitter::{Counts, Due, Jitter};
use crate::media::playout::Playout;
use crate::media::resample::Resampler;

/// Items whose names are kept: more than can be queued in the playout at once.
const ITEMS_MAX: usize = 64;

/// One speech of the gateway, as it comes.
struct Speech {
    item: String,
    id: u64,
    next: u64,
    line: Impair<(u64, Vec<u8>)>,
    jitter: Jitter<Vec<u8>>,
    decoder: Box<dyn Decode>,
    resampler: Resampler,
}

/// Figures of a talk, for its last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Packets that were made of the microphone's sound.
    pub sent: u64,
    /// Dropped, moved and doubled on purpose, on the way out and on the way in.
    pub impaired: [[u64; 3]; 2],
    /// Packets that came.
    pub came: u64,
    /// Of what came: made up for, put in order, twice, too late.
    pub lost: u64,
    /// See [`Figures::lost`].
    pub reordered: u64,
    /// See [`Figures::lost`].
    pub duplicates: u64,
    /// See [`Figures::lost`].
    pub late: u64,
}

/// See the file's head.
pub struct Headset {
    how: Impairment,
    out: Resampler,
    waiting: Vec<i16>,
    encoder: Box<dyn Encode>,
    number: u64,
    line: Impair<(u64, Vec<u8>)>,
    speech: Option<Speech>,
    speeches: u64,
    items: VecDeque<(u64, String)>,
    /// Items that were cut: what still comes of them is not played.
    silenced: VecDeque<String>,
    playout: Playout,
    /// A response is under way.
    answering: bool,
    /// Something was said whose words have not come.
    unread: bool,
    figures: Figures,
}

impl Headset {
    /// For a microphone and a loudspeaker at these rates.
    ///
    /// # Errors
    /// This build has no codec.
    pub fn new(mic_hz: u32, speaker_hz: u32, how: Impairment) -> Result<Self, CodecError> {
        let settings = EncoderSettings { loss_percent: (how.loss as i32).max(10), ..EncoderSettings::default() };
        Ok(Self {
            how, out: Resampler::new(mic_hz, codec::RATE_HZ), waiting: Vec::new(), encoder: codec::encoder(settings)?, number: 0, line: Impair::new(how, 0),
            speech: None, speeches: 0, items: VecDeque::new(), silenced: VecDeque::new(), playout: Playout::new(speaker_hz), answering: false, unread: false, figures: Figures::default(),
        })
    }

    /// The first event of a connection: both directions in packets.
    pub fn hello() -> String {
        let format = json!({"type": "audio/opus", "rate": codec::RATE_HZ});
        json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"format": format}, "output": {"format": format}}}}).to_string()
    }

    /// The connection is gone, and with it what it had not said to its end.
    pub fn reset(&mut self) {
        self.speech = None;
        self.playout.cut(None);
        self.line.flush();
        (self.answering, self.unread) = (false, false);
    }

    /// Takes microphone sound; answers with the events to send, one a packet.
    pub fn hear(&mut self, samples: &[i16]) -> Vec<String> {
        self.out.push(samples, &mut self.waiting);
        let whole = self.waiting.len() / codec::FRAME * codec::FRAME;
        let mut events = Vec::new();
        for frame in self.waiting[..whole].chunks(codec::FRAME) {
            let Ok(packet) = self.encoder.encode(frame) else { continue };
            self.figures.sent += 1;
            for (number, packet) in self.line.push((self.number, packet)) {
                events.push(json!({"type": "input_audio_buffer.append", "event_id": format!("pkt_{number:06}"), "audio": to_base64(&packet)}).to_string());
            }
            self.number += 1;
        }
        self.waiting.drain(..whole);
        events
    }

    /// Takes an event of the gateway at `now` (milliseconds); answers with the events that are due in return.
    pub fn take(&mut self, now: u64, event: &Value) -> Vec<String> {
        match event["type"].as_str().unwrap_or_default() {
            "response.output_audio.delta" => self.packet(now, event),
            "response.output_audio.done" => self.end_speech(now),
            "input_audio_buffer.speech_started" => {
                self.unread = true;
                return self.cut(now);
            }
            "conversation.item.input_audio_transcription.completed" | "conversation.item.input_audio_transcription.failed" => self.unread = false,
            "response.created" => self.answering = true,
            "response.done" => {
                self.answering = false;
                let status = event["response"]["status"].as_str().unwrap_or_default();
                if status == "cancelled" { return self.cut(now) }
            }
            _ => {}
        }
        Vec::new()
    }

    fn packet(&mut self, now: u64, event: &Value) {
        let (Some(item), Some(delta)) = (event["item_id"].as_str(), event["delta"].as_str()) else { return };
        let Some(packet) = from_base64(delta) else { return };
        if self.silenced.iter().any(|silenced| silenced == item) { return }
        if self.speech.as_ref().is_none_or(|speech| speech.item != item) {
            self.end_speech(now);
            self.begin_speech(item);
        }
        let Some(speech) = &mut self.speech else { return };
        let number = speech.next;
        speech.next += 1;
        for (number, packet) in speech.line.push((number, packet)) {
            speech.jitter.push(now, number, packet);
        }
        self.poll(now);
    }

    fn begin_speech(&mut self, item: &str) {
        let Ok(decoder) = codec::decoder() else { return };
        self.speeches += 1;
        let resampler = Resampler::new(codec::RATE_HZ, self.playout.rate_hz());
        // Each speech is a line of its own, and each time another part of the same bad one.
        let line = Impair::new(self.how, 2 * self.speeches + 1);
        self.items.push_back((self.speeches, item.to_string()));
        if self.items.len() > ITEMS_MAX { self.items.pop_front(); }
        self.speech = Some(Speech { item: item.to_string(), id: self.speeches, next: 0, line, jitter: Jitter::new(), decoder, resampler });
    }

    /// Plays what is due.
    pub fn poll(&mut self, now: u64) {
        let Some(speech) = &mut self.speech else { return };
        let (mut sound, mut fitted) = (Vec::new(), Vec::new());
        while let Some(due) = speech.jitter.pop(now) {
            match due {
                // A packet that is damaged fills its place by itself.
                Due::Frame(_, packet) => drop(speech.decoder.decode(&packet, &mut sound)),
                Due::Lost(_) => speech.decoder.conceal(speech.jitter.following().map(Vec::as_slice), &mut sound),
            }
        }
        speech.resampler.push(&sound, &mut fitted);
        if !fitted.is_empty() { self.playout.append(speech.id, &fitted); }
    }

    /// Nothing more comes for the speech that is open.
    fn end_speech(&mut self, now: u64) {
        let Some(speech) = &mut self.speech else { return };
        for (number, packet) in speech.line.flush() {
            speech.jitter.push(now, number, packet);
        }
        speech.jitter.flush();
        self.poll(now);
        let Some(speech) = self.speech.take() else { return };
        self.playout.finish(speech.id);
        self.count(&speech);
    }

    fn count(&mut self, speech: &Speech) {
        let Counts { received, lost, reordered, duplicates, late, .. } = speech.jitter.counts();
        let f = &mut self.figures;
        f.came += received;
        f.lost += lost;
        f.reordered += reordered;
        f.duplicates += duplicates;
        f.late += late;
        f.impaired[1].iter_mut().zip(speech.line.did).for_each(|(all, did)| *all += did);
    }

    /// Somebody speaks: silence, and the gateway is told how much was played.
    fn cut(&mut self, now: u64) -> Vec<String> {
        self.poll(now);
        if let Some(speech) = self.speech.take() {
            self.count(&speech);
            self.silenced.push_back(speech.item);
            if self.silenced.len() > ITEMS_MAX { self.silenced.pop_front(); }
        }
        let cuts = self.playout.cut(None);
        let item = |id: u64| self.items.iter().find(|(known, _)| *known == id).map(|(_, item)| item.clone());
        cuts.iter().filter_map(|cut| {
            let item = item(cut.speech)?;
            Some(json!({"type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": cut.heard_ms}).to_string())
        }).collect()
    }

    /// Appends exactly `n` samples for the loudspeaker.
    pub fn pull(&mut self, n: usize, out: &mut Vec<i16>) {
        self.playout.pull(n, out);
        while self.playout.poll().is_some() {}
    }

    /// Nothing plays, nothing is being answered and nothing waits for its words.
    pub fn is_idle(&self) -> bool { self.playout.is_silent() && !self.answering && !self.unread && self.speech.is_none() }

    /// What happened to the packets.
    pub fn figures(&self) -> Figures {
        let mut figures = self.figures;
        figures.impaired[0] = self.line.did;
        figures
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

#[cfg(feature = "opus")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::level::rms_dbfs;

    fn tone(ms: usize) -> Vec<i16> { (0..48 * ms).map(|n| (8_000.0 * (std::f64::consts::TAU * 440.0 * n as f64 / 48_000.0).sin()) as i16).collect() }

    fn deltas(item: &str, ms: usize) -> Vec<Value> {
        let mut encoder = codec::encoder(EncoderSettings::default()).unwrap();
        let delta = |frame| json!({"type": "response.output_audio.delta", "item_id": item, "delta": to_base64(&encoder.encode(frame).unwrap())});
        tone(ms).chunks_exact(codec::FRAME).map(delta).collect()
    }

    fn headset(how: &str) -> Headset { Headset::new(48_000, 48_000, how.parse().unwrap()).unwrap() }

    fn played(headset: &mut Headset, ms: usize) -> Vec<i16> {
        let mut out = Vec::new();
        headset.pull(48 * ms, &mut out);
        out
    }

    #[test]
    fn a_microphone_becomes_numbered_packets() {
        let mut headset = headset("");
        let events: Vec<Value> = tone(200).chunks(700).flat_map(|s| headset.hear(s)).map(|e| serde_json::from_str(&e).unwrap()).collect();
        assert_eq!(events.len(), 10);
        assert_eq!((&events[9]["event_id"], headset.figures().sent), (&json!("pkt_000009"), 10));
    }

    #[test]
    fn a_bad_line_is_mended_and_keeps_its_length() {
        let mut headset = headset("loss=10,reorder=5,dup=5");
        for delta in deltas("a", 2_000) { headset.take(0, &delta); }
        headset.take(0, &json!({"type": "response.output_audio.done"}));
        let sound = played(&mut headset, 2_000);
        let figures = headset.figures();
        assert!(figures.lost > 3 && figures.impaired[1][0] >= figures.lost && figures.duplicates > 0 && figures.reordered > 0, "{figures:?}");
        assert!((rms_dbfs(&sound[9_600..]) - rms_dbfs(&tone(100))).abs() < 1.5);
        assert!(headset.is_idle() && played(&mut headset, 100).iter().all(|s| *s == 0));
    }

    #[test]
    fn who_speaks_over_it_cuts_it_and_the_gateway_learns_how_far_it_got() {
        let mut headset = headset("");
        headset.take(0, &json!({"type": "response.created"}));
        for delta in deltas("a", 1_000) { headset.take(0, &delta); }
        headset.take(0, &json!({"type": "response.output_audio.done"}));
        headset.take(0, &json!({"type": "response.done", "response": {"status": "completed"}}));
        played(&mut headset, 300);
        assert!(!headset.is_idle());
        let told = headset.take(300, &json!({"type": "input_audio_buffer.speech_started", "item_id": "u"}));
        assert_eq!(told.len(), 1);
        let told: Value = serde_json::from_str(&told[0]).unwrap();
        assert_eq!((&told["type"], &told["item_id"], &told["audio_end_ms"]), (&json!("conversation.item.truncate"), &json!("a"), &json!(300)));
        let after = played(&mut headset, 200);
        assert!(after[480..].iter().all(|s| *s == 0));
        assert!(!headset.is_idle(), "its words are still to come");
        headset.take(400, &json!({"type": "conversation.item.input_audio_transcription.completed"}));
        assert!(headset.is_idle());
    }

    #[test]
    fn what_still_comes_of_a_cut_speech_is_not_played_and_the_next_one_is() {
        let mut headset = headset("");
        for delta in deltas("a", 200) { headset.take(0, &delta); }
        played(&mut headset, 100);
        assert_eq!(headset.take(100, &json!({"type": "input_audio_buffer.speech_started"})).len(), 1);
        played(&mut headset, 100);
        for delta in deltas("a", 200) { headset.take(200, &delta); }
        headset.take(200, &json!({"type": "response.output_audio.done"}));
        assert!(played(&mut headset, 200).iter().all(|s| *s == 0));
        for delta in deltas("b", 200) { headset.take(400, &delta); }
        assert!(rms_dbfs(&played(&mut headset, 200)) > -20.0);
    }
}
