//! The one wrapper over the codec's library.
//!
//! Owns an encoder's and a decoder's state. Called through the traits of this room. Bytes reach the library only after
//! `packet` has found them whole, so that every failure has a name and a length.

use opus::{Application, Bitrate, Channels};

use super::packet::{FRAME_BYTES_MAX, look};
use super::{CodecError, Decode, Encode, EncoderSettings, FRAME, PACKET_SAMPLES_MAX, RATE_HZ};
use crate::media::level::{rms_dbfs, round_to_i16};

/// The loudest a packet may sound, as root mean square in dBFS. Bytes that are no packet decode to noise at full scale (measured: one
/// random packet in ten); speech stays below (its loudest 20 ms are at about -9 dBFS), and a full-scale sine loses 6 dB.
const LOUDEST_DBFS: f32 = -9.0;
/// Samples over which the gain moves to what a packet needs: 5 ms.
const RAMP: usize = 240;

fn refused(error: opus::Error) -> CodecError { CodecError::Refused(error.description()) }

/// See the file's head.
pub(super) struct OpusDecoder {
    inner: opus::Decoder,
    buffer: Vec<i16>,
    /// Length of the last packet in samples: what a missing one is taken to have lasted.
    last: usize,
    gain: f32,
}

impl OpusDecoder {
    pub(super) fn new() -> Result<Self, CodecError> {
        let inner = opus::Decoder::new(RATE_HZ, Channels::Mono).map_err(refused)?;
        Ok(Self { inner, buffer: vec![0; PACKET_SAMPLES_MAX], last: FRAME, gain: 1.0 })
    }

    /// Decodes `samples` of a packet (or of nothing), and appends exactly as many.
    fn fill(&mut self, packet: &[u8], samples: usize, fec: bool, out: &mut Vec<i16>) -> Result<(), CodecError> {
        let decoded = self.inner.decode(packet, &mut self.buffer[..samples], fec).map_err(refused);
        let came = decoded.as_ref().map_or(0, |n| (*n).min(samples));
        self.buffer[came..samples].fill(0);
        self.hold(samples);
        out.extend_from_slice(&self.buffer[..samples]);
        decoded.map(|_| ())
    }

    /// Keeps what was decoded from being louder than sound ever is.
    fn hold(&mut self, samples: usize) {
        let sound = &mut self.buffer[..samples];
        let over = rms_dbfs(sound) - LOUDEST_DBFS;
        let wanted = if over > 0.0 { 10f32.powf(-over / 20.0) } else { 1.0 };
        if wanted == 1.0 && self.gain == 1.0 {
            return;
        }
        // Down at once, up slowly.
        let from = if wanted < self.gain { wanted } else { self.gain };
        for (at, sample) in sound.iter_mut().enumerate() {
            let part = (at as f32 / RAMP as f32).min(1.0);
            *sample = round_to_i16(f32::from(*sample) * (from + (wanted - from) * part));
        }
        self.gain = wanted;
    }
}

impl Decode for OpusDecoder {
    fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<(), CodecError> {
        let found = look(packet);
        let samples = match &found {
            Ok(Some(packet)) => packet.samples(),
            Ok(None) | Err(_) => self.last,
        };
        if let Err(error) = found {
            // The library is told that something is missing, so that what comes next follows on it smoothly.
            let _ = self.fill(&[], samples, false, out);
            return Err(error);
        }
        self.last = samples;
        // One byte names a length and no content; the library takes it for a gap of that length as well.
        let bytes = if packet.len() < 2 { &[] } else { packet };
        let done = self.fill(bytes, samples, false, out);
        if done.is_err() {
            out.truncate(out.len() - samples);
            let _ = self.fill(&[], samples, false, out);
        }
        done
    }

    fn conceal(&mut self, next: Option<&[u8]>, out: &mut Vec<i16>) {
        let whole = next.filter(|bytes| bytes.len() > 1 && matches!(look(bytes), Ok(Some(_))));
        if let Some(next) = whole
            && self.fill(next, self.last, true, out).is_ok()
        {
            return;
        }
        if whole.is_some() {
            out.truncate(out.len() - self.last);
        }
        let _ = self.fill(&[], self.last, false, out);
    }
}

/// See the file's head.
pub(super) struct OpusEncoder {
    inner: opus::Encoder,
    samples: usize,
    lookahead: usize,
}

impl OpusEncoder {
    pub(super) fn new(settings: EncoderSettings) -> Result<Self, CodecError> {
        let (channels, application) = if settings.stereo { (Channels::Stereo, Application::Audio) } else { (Channels::Mono, Application::Voip) };
        let mut inner = opus::Encoder::new(RATE_HZ, channels, application).map_err(refused)?;
        inner.set_bitrate(Bitrate::Bits(settings.bitrate.clamp(6_000, 510_000))).map_err(refused)?;
        inner.set_complexity(settings.complexity.clamp(0, 10)).map_err(refused)?;
        inner.set_inband_fec(settings.fec).map_err(refused)?;
        inner.set_packet_loss_perc(settings.loss_percent.clamp(0, 100)).map_err(refused)?;
        inner.set_dtx(settings.dtx).map_err(refused)?;
        let lookahead = usize::try_from(inner.get_lookahead().map_err(refused)?).unwrap_or(0);
        Ok(Self { inner, samples: if settings.stereo { 2 * FRAME } else { FRAME }, lookahead })
    }
}

impl Encode for OpusEncoder {
    fn encode(&mut self, frame: &[i16]) -> Result<Vec<u8>, CodecError> {
        if frame.len() != self.samples {
            return Err(CodecError::WrongLength { got: frame.len(), want: self.samples });
        }
        self.inner.encode_vec(frame, FRAME_BYTES_MAX + 1).map_err(refused)
    }

    fn lookahead(&self) -> usize { self.lookahead }
}

#[cfg(test)]
#[path = "opus_tests.rs"]
mod tests;
