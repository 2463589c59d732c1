//! Opus on its way in: numbered packets in order again, gaps made up for, damage told once.
//!
//! Owns the decoder and the jitter buffer of one socket. Called by `ear`. Sound that comes out is mono i16 at 48 kHz.

use crate::codec::{self, CodecError, Decode, packet};
use crate::dialect::openai_realtime::error::BadEvent;
use crate::engine::id::Ms;
use crate::media::jitter::{Counts, Due, Jitter};

/// Code of the complaint about a packet that cannot be used.
pub(super) const DAMAGED: &str = "invalid_audio_packet";
/// Packets by what became of them (label `fate`: `played`, `lost`, `reordered`, `duplicate`, `late`, `damaged`).
const PACKETS: &str = "voxgate_opus_packets_total";

/// See the file's head.
pub(super) struct Packets {
    decoder: Box<dyn Decode>,
    jitter: Jitter<Vec<u8>>,
    counted: Counts,
    played: u64,
    damaged: u64,
}

impl Packets {
    /// # Errors
    /// This build has no codec.
    pub(super) fn new() -> Result<Self, CodecError> {
        Ok(Self { decoder: codec::decoder()?, jitter: Jitter::new(), counted: Counts::default(), played: 0, damaged: 0 })
    }

    /// How long a packet sounds, in milliseconds, as far as it says so.
    pub(super) fn length_ms(bytes: &[u8]) -> u64 { packet::look(bytes).ok().flatten().map_or(20, |p| p.ms().into()) }

    /// Takes a packet; the number is its place where its sender counts. What is due by now is appended to `out`.
    ///
    /// # Errors
    /// The first damaged packet; the field `param` carried it. Its place has been filled all the same.
    pub(super) fn take(&mut self, now: Ms, bytes: &[u8], number: Option<u64>, param: &str, out: &mut Vec<i16>) -> Result<(), BadEvent> {
        let told_before = self.damaged > 0;
        let mut wrong = None;
        match number {
            Some(number) => {
                self.jitter.push(now, number, bytes.to_vec());
                wrong = self.due(now, out).or(wrong);
            }
            None => wrong = self.decode(bytes, out).err(),
        }
        self.count();
        match wrong {
            Some(error) if !told_before => {
                let message = format!(
                    "'{param}' has {} bytes of 'audio/opus' and one packet cannot be used: {error}. One append carries one whole packet. \
                     Its time is filled with a guess; further ones are counted and told no more.",
                    bytes.len()
                );
                Err(BadEvent::at(DAMAGED, param, message))
            }
            _ => Ok(()),
        }
    }

    /// What is due by now without another packet.
    pub(super) fn poll(&mut self, now: Ms, out: &mut Vec<i16>) {
        self.due(now, out);
        self.count();
    }

    /// Everything that waits, now: the client ends a turn.
    pub(super) fn flush(&mut self, now: Ms, out: &mut Vec<i16>) {
        self.jitter.flush();
        self.poll(now, out);
    }

    /// What waits does not count any more.
    pub(super) fn clear(&mut self) { self.jitter.clear(); }

    /// When [`Packets::poll`] has something to give.
    pub(super) fn deadline(&self) -> Option<Ms> { self.jitter.deadline() }

    fn due(&mut self, now: Ms, out: &mut Vec<i16>) -> Option<CodecError> {
        let mut wrong = None;
        while let Some(due) = self.jitter.pop(now) {
            match due {
                Due::Frame(_, bytes) => wrong = self.decode(&bytes, out).err().or(wrong),
                Due::Lost(_) => self.decoder.conceal(self.jitter.following().map(Vec::as_slice), out),
            }
        }
        wrong
    }

    fn decode(&mut self, bytes: &[u8], out: &mut Vec<i16>) -> Result<(), CodecError> {
        let done = self.decoder.decode(bytes, out);
        self.played += 1;
        metrics::counter!(PACKETS, "fate" => "played").increment(1);
        if done.is_err() {
            self.damaged += 1;
            metrics::counter!(PACKETS, "fate" => "damaged").increment(1);
        }
        done
    }

    fn count(&mut self) {
        let (now, before) = (self.jitter.counts(), self.counted);
        if now == before {
            return;
        }
        for (fate, n) in [
            ("lost", now.lost - before.lost), ("reordered", now.reordered - before.reordered),
            ("duplicate", now.duplicates - before.duplicates), ("late", now.late - before.late),
        ] {
            if n > 0 { metrics::counter!(PACKETS, "fate" => fate).increment(n) }
        }
        self.counted = now;
    }

    /// A sentence about what went wrong on the way, for those who watch; none when nothing did.
    pub(super) fn report(&self) -> Option<String> {
        let c = self.jitter.counts();
        if c.lost + c.reordered + c.duplicates + c.late + c.jumps + self.damaged == 0 {
            return None;
        }
        Some(format!(
            "{} packets of sound were heard; {} were lost and made up for, {} came out of order, {} twice, {} too late, {} were damaged.",
            self.played, c.lost, c.reordered, c.duplicates, c.late, self.damaged
        ))
    }
}

/// The number at the end of an `event_id` such as `pkt_000123`: a word, `_`, and 1 to 15 digits.
pub(super) fn number_of(event_id: &str) -> Option<u64> {
    let (word, digits) = event_id.rsplit_once('_')?;
    let fits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') && (1..=15).contains(&digits.len());
    if fits && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_numbers() {
        assert_eq!(["pkt_000123", "pkt_0", "my_pkt_7"].map(number_of), [Some(123), Some(0), Some(7)]);
        assert_eq!(["pkt", "pkt_", "_5", "event_ab12", "5", "pkt_1234567890123456", "a1_5", "pkt_-5"].map(number_of), [None; 8]);
    }
}
