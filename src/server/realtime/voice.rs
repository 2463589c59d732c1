//! One speech on its way out: from the voice's rate to the deltas of the client's format.
//!
//! Owns the resampler and, for packets, the encoder of one speech. Called by `tells`. An Opus delta is one packet of 20 ms; the others
//! hold at most 200 ms.

use crate::codec::{self, Encode, EncoderSettings};
use crate::dialect::openai_realtime::audio::{Format, to_base64};
use crate::media::resample::Resampler;

/// Longest sound of one delta that is no packet, as parts of a second: 200 ms.
const DELTAS_A_SECOND: u32 = 5;

struct Packing {
    encoder: Box<dyn Encode>,
    /// Less than a frame.
    waiting: Vec<i16>,
}

/// See the file's head.
pub(super) struct Voice {
    format: Format,
    resampler: Resampler,
    packing: Option<Packing>,
    samples_sent: u64,
}

impl Voice {
    pub(super) fn new(format: Format) -> Self {
        let rate = format.rate_hz();
        let packing = match format {
            Format::Opus => codec::encoder(EncoderSettings::default()).inspect_err(|error| tracing::error!(%error, "a speech goes out without sound")).ok(),
            _ => None,
        };
        let packing = packing.map(|encoder| Packing { encoder, waiting: Vec::with_capacity(2 * codec::FRAME) });
        Self { format, resampler: Resampler::new(rate, rate), packing, samples_sent: 0 }
    }

    /// Takes sound and answers with the deltas that are whole.
    pub(super) fn push(&mut self, samples: &[i16], rate_hz: u32) -> Vec<String> {
        if self.resampler.from_hz() != rate_hz {
            self.resampler = Resampler::new(rate_hz, self.format.rate_hz());
        }
        let mut out = Vec::new();
        self.resampler.push(samples, &mut out);
        self.deltas(&out)
    }

    /// The end of a speech that was not cut: what the filter and the encoder still hold. Silent speeches have none.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let mut rest = Vec::new();
        self.resampler.flush(&mut rest);
        if self.samples_sent == 0 && self.packing.as_ref().is_none_or(|packing| packing.waiting.is_empty()) {
            return Vec::new();
        }
        if let Some(packing) = &self.packing {
            // The decoder is behind by the encoder's lookahead: a whole frame that holds at least that much follows.
            let held = packing.waiting.len() + rest.len();
            rest.resize(rest.len() + (held + packing.encoder.lookahead()).next_multiple_of(codec::FRAME) - held, 0);
        }
        self.deltas(&rest)
    }

    /// How much has gone out, in milliseconds, rounded up: a client that played all of it may say so.
    pub(super) fn sent_ms(&self) -> u64 { (self.samples_sent * 1_000).div_ceil(u64::from(self.format.rate_hz())) }

    fn deltas(&mut self, samples: &[i16]) -> Vec<String> {
        if self.format != Format::Opus {
            self.samples_sent += samples.len() as u64;
            let pieces = samples.chunks((self.format.rate_hz() / DELTAS_A_SECOND) as usize);
            return pieces.map(|piece| self.format.encode(piece)).collect();
        }
        let Some(Packing { encoder, waiting }) = &mut self.packing else { return Vec::new() };
        waiting.extend_from_slice(samples);
        let whole = waiting.len() / codec::FRAME * codec::FRAME;
        self.samples_sent += whole as u64;
        let packets = waiting[..whole].chunks(codec::FRAME).filter_map(|frame| encoder.encode(frame).ok());
        let deltas = packets.map(|packet| to_base64(&packet)).collect();
        waiting.drain(..whole);
        deltas
    }
}
