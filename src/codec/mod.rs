//! SOUND ON THE WIRE. Packets of Opus, and the Ogg files they are kept in.
//!
//! Owns what a packet may be (`packet`), the one wrapper over the codec's library (`opus`) and the container (`ogg`). Called by
//! the realtime door, by the recording of a conversation and by `talk --connect`. Sound is mono i16 at 48 kHz unless said
//! otherwise; never resamples, never waits, and never fails on bytes of others but by a named error.

#[cfg(feature = "opus")]
mod ogg;
#[cfg(feature = "opus")]
mod opus;
pub mod packet;

/// Samples a second of everything here.
pub const RATE_HZ: u32 = 48_000;
/// Samples of the frame that is sent: 20 ms.
pub const FRAME: usize = 960;
/// Longest sound of one packet, in samples: 120 ms (RFC 6716, section 3.2.5).
pub const PACKET_SAMPLES_MAX: usize = 5_760;

/// Why a packet cannot be used, or none can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Its lengths do not add up: it was cut or is something else.
    #[error("it is no whole Opus packet: {0}")]
    Damaged(&'static str),
    /// A frame in it is larger than any Opus frame.
    #[error("a frame of {0} bytes is in it, an Opus frame has at most {max}", max = packet::FRAME_BYTES_MAX)]
    FrameTooLarge(usize),
    /// It would last longer than a packet may.
    #[error("it would last {0} ms, an Opus packet lasts at most 120 ms")]
    TooLong(u32),
    /// The library does not take it, or cannot be set up.
    #[error("the codec refuses it: {0}")]
    Refused(&'static str),
    /// Sound of another length than a frame was handed over.
    #[error("{got} samples are no frame of {want}")]
    WrongLength {
        /// What was given.
        got: usize,
        /// What a frame has.
        want: usize,
    },
    /// This build has no codec.
    #[error("this build of voxgate has no Opus (cargo feature `opus`)")]
    NotBuilt,
}

/// Packets in, mono i16 at 48 kHz out.
pub trait Decode: Send {
    /// Appends the sound of a packet to `out`: at most [`PACKET_SAMPLES_MAX`] samples. A packet of no or one byte is silence that
    /// its sender did not spend bytes on.
    ///
    /// # Errors
    /// [`CodecError`]; sound that fills the packet's place has been appended all the same.
    fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<(), CodecError>;

    /// Appends what may have been in a packet that never came, as long as the last one was: by the copy of it that the packet
    /// after it carries, where that is here and has one, else by going on with what was heard.
    fn conceal(&mut self, next: Option<&[u8]>, out: &mut Vec<i16>);
}

/// Frames of i16 at 48 kHz in, packets out.
pub trait Encode: Send {
    /// The packet of one frame: [`FRAME`] samples a channel, interleaved.
    ///
    /// # Errors
    /// [`CodecError::WrongLength`], or what the library says.
    fn encode(&mut self, frame: &[i16]) -> Result<Vec<u8>, CodecError>;

    /// Samples at 48 kHz by which sound leaves the decoder later than it was handed over.
    fn lookahead(&self) -> usize;
}

/// Packets that are kept in a file.
pub trait Keep: Send {
    /// Appends a packet that lasts so many samples at 48 kHz.
    ///
    /// # Errors
    /// What the disk says.
    fn packet(&mut self, packet: Vec<u8>, samples: u32) -> std::io::Result<()>;

    /// Marks the end. Nothing may follow.
    ///
    /// # Errors
    /// What the disk says.
    fn finish(&mut self) -> std::io::Result<()>;
}

/// How packets are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderSettings {
    /// Two channels, kept as they are; else one, tuned for speech.
    pub stereo: bool,
    /// Bits a second, held within 6,000 to 510,000 (the codec's range).
    pub bitrate: i32,
    /// A low copy of each frame rides in the packet after it.
    pub fec: bool,
    /// Share of packets that are expected to be lost, in percent, held within 0 to 100. The copies take room accordingly.
    pub loss_percent: i32,
    /// Silence costs a byte or two a packet instead of a whole one.
    pub dtx: bool,
    /// Effort, 0 to 10. 5 costs about a fifth less than 10 and cannot be told apart for speech at these rates.
    pub complexity: i32,
}

impl Default for EncoderSettings {
    fn default() -> Self { Self { stereo: false, bitrate: 24_000, fec: true, loss_percent: 10, dtx: false, complexity: 5 } }
}

/// A decoder that has heard nothing yet.
///
/// # Errors
/// [`CodecError::NotBuilt`], or no memory.
#[cfg(feature = "opus")]
pub fn decoder() -> Result<Box<dyn Decode>, CodecError> { Ok(Box::new(opus::OpusDecoder::new()?)) }

/// An encoder that has been given nothing yet.
///
/// # Errors
/// [`CodecError::NotBuilt`], or no memory.
#[cfg(feature = "opus")]
pub fn encoder(settings: EncoderSettings) -> Result<Box<dyn Encode>, CodecError> { Ok(Box::new(opus::OpusEncoder::new(settings)?)) }

/// An Ogg Opus file of one or two channels. `lookahead`: as the encoder of its packets says.
///
/// # Errors
/// What the disk says.
#[cfg(feature = "opus")]
pub fn keep(file: std::fs::File, channels: u8, lookahead: usize) -> std::io::Result<Box<dyn Keep>> {
    // The number of the stream sets it apart from others in one file; here there are none.
    Ok(Box::new(ogg::OggOpus::new(std::io::BufWriter::new(file), 1, channels, lookahead as u16)?))
}

/// An Ogg Opus file.
///
/// # Errors
/// Always: this build has no codec.
#[cfg(not(feature = "opus"))]
pub fn keep(_: std::fs::File, _: u8, _: usize) -> std::io::Result<Box<dyn Keep>> { Err(std::io::Error::other(CodecError::NotBuilt)) }

/// A decoder that has heard nothing yet.
///
/// # Errors
/// [`CodecError::NotBuilt`].
#[cfg(not(feature = "opus"))]
pub fn decoder() -> Result<Box<dyn Decode>, CodecError> { Err(CodecError::NotBuilt) }

/// An encoder that has been given nothing yet.
///
/// # Errors
/// [`CodecError::NotBuilt`].
#[cfg(not(feature = "opus"))]
pub fn encoder(_: EncoderSettings) -> Result<Box<dyn Encode>, CodecError> { Err(CodecError::NotBuilt) }
