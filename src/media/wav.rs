//! WAV bytes: what a person's file holds as mono i16, and our own files.
//!
//! Owns the reader (tolerant of streams, truncation and odd layouts) and the header of what we write. Called by the sound-file
//! door and by voices that answer in WAV. Never opens a file; never panics on bytes.

use super::level::{downmix, sample_from_f32};
use thiserror::Error;

/// Lowest rate that is accepted, in Hz.
pub const MIN_RATE_HZ: u32 = 8_000;
/// Highest rate that is accepted, in Hz.
pub const MAX_RATE_HZ: u32 = 96_000;
/// Most channels that are accepted.
pub const MAX_CHANNELS: u16 = 16;
/// Length of the header that [`header`] writes, in bytes.
pub const HEADER_LEN: usize = 44;

/// Programs that write to a pipe cannot know the length and put a huge one (`espeak-ng --stdout`: 0x7ffff000).
const STREAM_LENGTH: u32 = 0x7fff_0000;
const FORMAT_PCM: u16 = 1;
const FORMAT_FLOAT: u16 = 3;
const FORMAT_EXTENSIBLE: u16 = 0xfffe;

/// A sound read from WAV bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wav {
    /// Samples a second.
    pub rate_hz: u32,
    /// Mono i16.
    pub samples: Vec<i16>,
    /// The header promised more than there was.
    pub truncated: bool,
    /// What was changed or missing on the way in, a sentence each, for a person.
    pub notes: Vec<String>,
}

/// Why bytes are not a sound we can use. Each message is one sentence for the person who named the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WavError {
    /// Nothing at all.
    #[error("it is empty (0 bytes)")]
    Empty,
    /// No RIFF/WAVE at the start.
    #[error("it is not a WAV file: it begins with {start:?}, not with RIFF")]
    NotWav {
        /// The first bytes, made printable.
        start: String,
    },
    /// The file ends, or its sound begins, before the format is told.
    #[error("it has no format (no complete \"fmt \" part before its sound)")]
    NoFormat,
    /// There is a header and no sound.
    #[error("it holds a header and no sound")]
    NoSound,
    /// Compressed, or a sample size that is not read here.
    #[error("its samples are {what}; 8, 16, 24 or 32 bit PCM and 32 or 64 bit float are read. `ffmpeg -i IN -c:a pcm_s16le OUT.wav` converts it")]
    UnsupportedCodec {
        /// What was found.
        what: String,
    },
    /// A rate outside 8 to 96 kHz.
    #[error("its rate is {rate_hz} Hz; {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz is read")]
    RateOutOfRange {
        /// What was found.
        rate_hz: u32,
    },
    /// No channel, or more than 16.
    #[error("it says it has {channels} channels; 1 to {MAX_CHANNELS} are read")]
    Channels {
        /// What was found.
        channels: u16,
    },
}

/// Reads WAV bytes into mono i16 at the file's own rate.
///
/// # Errors
/// [`WavError`] when the bytes are no WAV, hold no sound, or hold one that is not read here. Truncated data is no error: see [`Wav::truncated`].
pub fn parse(bytes: &[u8]) -> Result<Wav, WavError> {
    if bytes.is_empty() {
        return Err(WavError::Empty);
    }
    if bytes.len() < 12 || &bytes[..4] != b"RIFF" || &bytes[8..12] != b"WAVE" {
        return Err(WavError::NotWav { start: printable(bytes) });
    }
    let (format, data, promised) = find_parts(bytes)?;
    format.check()?;
    let mut notes = Vec::new();
    let samples = read_samples(&format, data, &mut notes);
    if samples.is_empty() {
        return Err(WavError::NoSound);
    }
    let truncated = promised.is_some_and(|p| p > data.len());
    if let (true, Some(promised)) = (truncated, promised) {
        let seconds = |n: usize| n as f64 / (format.rate_hz as usize * format.group_len()) as f64;
        notes.push(format!("it is cut short: its header promises {:.1} s and {:.1} s are there", seconds(promised), seconds(data.len())));
    }
    Ok(Wav { rate_hz: format.rate_hz, samples, truncated, notes })
}

/// The 44-byte header of a mono i16 file with `samples` samples. Write it with 0 first and again at offset 0 when the length is known.
pub fn header(rate_hz: u32, samples: u64) -> [u8; HEADER_LEN] {
    let data = u32::try_from(samples.saturating_mul(2)).unwrap_or(u32::MAX - 36).min(u32::MAX - 36);
    let mut h = [0u8; HEADER_LEN];
    h[..4].copy_from_slice(b"RIFF");
    h[4..8].copy_from_slice(&(data + 36).to_le_bytes());
    h[8..16].copy_from_slice(b"WAVEfmt ");
    h[16..20].copy_from_slice(&16u32.to_le_bytes());
    h[20..22].copy_from_slice(&FORMAT_PCM.to_le_bytes());
    h[22..24].copy_from_slice(&1u16.to_le_bytes());
    h[24..28].copy_from_slice(&rate_hz.to_le_bytes());
    h[28..32].copy_from_slice(&rate_hz.saturating_mul(2).to_le_bytes());
    h[32..34].copy_from_slice(&2u16.to_le_bytes());
    h[34..36].copy_from_slice(&16u16.to_le_bytes());
    h[36..40].copy_from_slice(b"data");
    h[40..44].copy_from_slice(&data.to_le_bytes());
    h
}

/// A whole mono i16 file.
pub fn write(rate_hz: u32, samples: &[i16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + samples.len() * 2);
    bytes.extend_from_slice(&header(rate_hz, samples.len() as u64));
    bytes.extend(samples.iter().flat_map(|s| s.to_le_bytes()));
    bytes
}

struct Format {
    codec: u16,
    channels: u16,
    rate_hz: u32,
    bits: u16,
}

impl Format {
    fn parse(chunk: &[u8]) -> Option<Self> {
        let mut codec = u16_at(chunk, 0)?;
        if codec == FORMAT_EXTENSIBLE {
            // The real codec is the first half word of the sub-format, 24 bytes in.
            codec = u16_at(chunk, 24)?;
        }
        Some(Self { codec, channels: u16_at(chunk, 2)?, rate_hz: u32_at(chunk, 4)?, bits: u16_at(chunk, 14)? })
    }

    fn check(&self) -> Result<(), WavError> {
        if !(1..=MAX_CHANNELS).contains(&self.channels) {
            return Err(WavError::Channels { channels: self.channels });
        }
        if !(MIN_RATE_HZ..=MAX_RATE_HZ).contains(&self.rate_hz) {
            return Err(WavError::RateOutOfRange { rate_hz: self.rate_hz });
        }
        let known = match self.codec {
            FORMAT_PCM => matches!(self.bits, 8 | 16 | 24 | 32),
            FORMAT_FLOAT => matches!(self.bits, 32 | 64),
            _ => false,
        };
        if known { Ok(()) } else { Err(WavError::UnsupportedCodec { what: self.describe() }) }
    }

    fn describe(&self) -> String {
        match self.codec {
            FORMAT_PCM => format!("{} bit PCM", self.bits),
            FORMAT_FLOAT => format!("{} bit float", self.bits),
            2 => "MS-ADPCM".into(),
            6 => "A-law".into(),
            7 => "mu-law".into(),
            0x11 => "IMA ADPCM".into(),
            0x55 => "MP3".into(),
            other => format!("of kind {other:#06x}"),
        }
    }

    fn group_len(&self) -> usize {
        usize::from(self.channels) * usize::from(self.bits / 8)
    }
}

/// Walks the chunks: the format, the bytes of sound that are there, and how many were promised (none: written to a pipe).
fn find_parts(bytes: &[u8]) -> Result<(Format, &[u8], Option<usize>), WavError> {
    let (mut at, mut format) = (12usize, None);
    while let (Some(name), Some(length)) = (bytes.get(at..at + 4), u32_at(bytes, at + 4)) {
        let body = &bytes[at + 8..];
        if name == b"data" {
            let format = format.ok_or(WavError::NoFormat)?;
            // A length of 0 with bytes behind it is a header that was never patched.
            let streamed = length >= STREAM_LENGTH || (length == 0 && !body.is_empty());
            let have = if streamed { body } else { &body[..body.len().min(length as usize)] };
            return Ok((format, have, (!streamed).then_some(length as usize)));
        }
        if name == b"fmt " {
            format = Format::parse(&body[..body.len().min(length as usize)]);
        }
        // Chunks are padded to even lengths.
        at = at.saturating_add(8 + length as usize + (length as usize & 1));
        if at > bytes.len() {
            break;
        }
    }
    Err(if format.is_some() { WavError::NoSound } else { WavError::NoFormat })
}

fn read_samples(format: &Format, data: &[u8], notes: &mut Vec<String>) -> Vec<i16> {
    let mut odd = 0u64;
    let mut float = |x: f64| {
        odd += u64::from(!x.is_finite());
        sample_from_f32(x as f32)
    };
    let interleaved: Vec<i16> = match (format.codec, format.bits) {
        (FORMAT_PCM, 8) => data.iter().map(|&b| (i16::from(b) - 128) << 8).collect(),
        (FORMAT_PCM, 16) => data.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b)).collect(),
        (FORMAT_PCM, 24) => data.as_chunks::<3>().0.iter().map(|b| i16::from_le_bytes([b[1], b[2]])).collect(),
        (FORMAT_PCM, _) => data.as_chunks::<4>().0.iter().map(|b| i16::from_le_bytes([b[2], b[3]])).collect(),
        (_, 64) => data.as_chunks::<8>().0.iter().map(|b| float(f64::from_le_bytes(*b))).collect(),
        _ => data.as_chunks::<4>().0.iter().map(|b| float(f64::from(f32::from_le_bytes(*b)))).collect(),
    };
    if odd > 0 {
        notes.push(format!("{odd} samples are not numbers (NaN or infinite) and were read as silence"));
    }
    if format.channels == 1 {
        return interleaved;
    }
    notes.push(format!("its {} channels were mixed to one", format.channels));
    let mut mono = Vec::with_capacity(interleaved.len() / usize::from(format.channels));
    downmix(&interleaved, usize::from(format.channels), &mut mono);
    mono
}

fn printable(bytes: &[u8]) -> String {
    bytes.iter().take(8).map(|&b| if (0x20..0x7f).contains(&b) { b as char } else { '.' }).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "wav_tests.rs"]
mod tests;
