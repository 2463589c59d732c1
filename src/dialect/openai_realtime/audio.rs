//! Sound on this wire: base64 of little-endian 16-bit PCM at 24 kHz, of G.711 at 8 kHz, or of packets of Opus at 48 kHz (an addition to
//! the API: one packet an append, one a delta). Mono always.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::BadEvent;
use super::fields::Fields;
use super::{AUDIO_MAX, g711};

/// One of the three formats of the API, or packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `audio/pcm`, 24 kHz, two bytes a sample.
    #[default]
    Pcm,
    /// `audio/pcmu`: mu-law, 8 kHz, one byte a sample.
    Ulaw,
    /// `audio/pcma`: A-law, 8 kHz, one byte a sample.
    Alaw,
    /// `audio/opus`: packets, 48 kHz. Bytes and samples are a codec's matter, not this room's.
    Opus,
}

impl Format {
    /// Samples a second.
    pub fn rate_hz(self) -> u32 {
        match self {
            Self::Pcm => 24_000,
            Self::Ulaw | Self::Alaw => 8_000,
            Self::Opus => 48_000,
        }
    }

    /// The bytes as mono samples at [`Format::rate_hz`]; none of packets.
    ///
    /// # Errors
    /// Half a sample at the end; `param` is the field that carried them.
    pub fn decode(self, bytes: &[u8], param: &str) -> Result<Vec<i16>, BadEvent> {
        match self {
            Self::Pcm if bytes.len() % 2 == 1 => {
                let message = format!("'{param}' has {} bytes: 16-bit samples need an even number.", bytes.len());
                Err(BadEvent::value(param, message))
            }
            Self::Pcm => Ok(bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect()),
            Self::Ulaw => Ok(bytes.iter().map(|b| g711::ulaw_to_linear(*b)).collect()),
            Self::Alaw => Ok(bytes.iter().map(|b| g711::alaw_to_linear(*b)).collect()),
            Self::Opus => Ok(Vec::new()),
        }
    }

    /// Mono samples at [`Format::rate_hz`] as the base64 of a delta; nothing for packets.
    pub fn encode(self, samples: &[i16]) -> String {
        let bytes: Vec<u8> = match self {
            Self::Pcm => samples.iter().flat_map(|s| s.to_le_bytes()).collect(),
            Self::Ulaw => samples.iter().map(|s| g711::linear_to_ulaw(*s)).collect(),
            Self::Alaw => samples.iter().map(|s| g711::linear_to_alaw(*s)).collect(),
            Self::Opus => Vec::new(),
        };
        to_base64(&bytes)
    }

    /// As it stands in a session object.
    pub fn to_json(self) -> Value {
        match self {
            Self::Pcm => json!({"type": "audio/pcm", "rate": 24_000}),
            Self::Ulaw => json!({"type": "audio/pcmu"}),
            Self::Alaw => json!({"type": "audio/pcma"}),
            Self::Opus => json!({"type": "audio/opus", "rate": 48_000}),
        }
    }

    /// From a session object.
    pub(super) fn read(fields: &Fields) -> Result<Self, BadEvent> {
        fields.only(&["type", "rate"], super::fields::no_hint)?;
        let kind = fields.word("type", &["audio/pcm", "audio/pcmu", "audio/pcma", "audio/opus"])?;
        let format = match kind.ok_or_else(|| BadEvent::missing(fields.path("type")))? {
            "audio/pcmu" => Self::Ulaw,
            "audio/pcma" => Self::Alaw,
            "audio/opus" => Self::Opus,
            _ => Self::Pcm,
        };
        match fields.whole("rate", 0, u64::from(u32::MAX))? {
            Some(rate) if rate != u64::from(format.rate_hz()) => {
                let message = format!("Only {} Hz is spoken in this format, got {rate}.", format.rate_hz());
                Err(BadEvent::value(fields.path("rate"), message))
            }
            _ => Ok(format),
        }
    }
}

/// Bytes as they stand in a delta.
pub fn to_base64(bytes: &[u8]) -> String { STANDARD.encode(bytes) }

/// The bytes behind a base64 field of at most [`AUDIO_MAX`] characters.
pub fn bytes(text: &str, param: &str) -> Result<Vec<u8>, BadEvent> {
    if text.len() > AUDIO_MAX {
        let message = format!("'{param}' is {} bytes of base64, the most for one event is {AUDIO_MAX}.", text.len());
        return Err(BadEvent::at("string_above_max_length", param, message));
    }
    STANDARD.decode(text).map_err(|error| BadEvent::value(param, format!("'{param}' is not base64: {error}.")))
}
