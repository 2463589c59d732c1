//! What an Opus packet says of itself, read before the codec's library sees it (RFC 6716, section 3).
//!
//! Owns the first byte, the four ways frames are packed, and their limits. Called by the wrapper and by doors that must name what
//! is wrong with a packet. Never decodes.

use super::CodecError;

/// Largest frame, in bytes (RFC 6716, section 3.2.1).
pub const FRAME_BYTES_MAX: usize = 1_275;
/// Largest packet that is looked at, in bytes: 48 frames of the largest kind, and room for padding.
pub const PACKET_BYTES_MAX: usize = 65_536;
/// Longest packet, in microseconds.
const LONGEST_US: u32 = 120_000;

/// A packet whose lengths add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Frames in it, 1 to 48.
    pub frames: u32,
    /// Length of each, in microseconds: 2,500 to 60,000.
    pub frame_us: u32,
    /// It carries two channels.
    pub stereo: bool,
}

impl Packet {
    /// How long all of it sounds, in samples at 48 kHz.
    pub fn samples(&self) -> usize { (self.frames * self.frame_us / 125 * 6) as usize }

    /// The same in milliseconds, rounded up.
    pub fn ms(&self) -> u32 { (self.frames * self.frame_us).div_ceil(1_000) }
}

/// Reads a packet's framing. `None`: no bytes, which stand for a frame that was not worth sending. One byte alone is that
/// too, whatever packing it names.
///
/// # Errors
/// [`CodecError`]: not a packet, or beyond a limit.
pub fn look(bytes: &[u8]) -> Result<Option<Packet>, CodecError> {
    let Some((&toc, rest)) = bytes.split_first() else { return Ok(None) };
    if bytes.len() > PACKET_BYTES_MAX {
        return Err(CodecError::Damaged("it has more than 65,536 bytes"));
    }
    let (frame_us, stereo) = (frame_us(toc >> 3), toc & 4 != 0);
    let frames = match (toc & 3, rest) {
        (1, []) => 2,
        (_, []) => 1,
        (0, rest) => fits(rest.len()).map(|()| 1)?,
        (1, rest) if rest.len() % 2 == 1 => return Err(CodecError::Damaged("its two equal frames have an odd number of bytes")),
        (1, rest) => fits(rest.len() / 2).map(|()| 2)?,
        (2, rest) => two(rest)?,
        (_, rest) => many(rest, frame_us)?,
    };
    Ok(Some(Packet { frames, frame_us, stereo }))
}

/// Length of a frame by the five bits that name mode, bandwidth and length.
fn frame_us(config: u8) -> u32 {
    let at = usize::from(config);
    match config {
        0..=11 => [10_000, 20_000, 40_000, 60_000][at % 4],
        12..=15 => [10_000, 20_000][at % 2],
        _ => [2_500, 5_000, 10_000, 20_000][at % 4],
    }
}

fn fits(bytes: usize) -> Result<(), CodecError> {
    if bytes > FRAME_BYTES_MAX { Err(CodecError::FrameTooLarge(bytes)) } else { Ok(()) }
}

/// A length of one or two bytes, and what follows it.
fn length(bytes: &[u8]) -> Result<(usize, &[u8]), CodecError> {
    match bytes {
        [short @ 0..=251, rest @ ..] => Ok((usize::from(*short), rest)),
        [low, high, rest @ ..] => Ok((usize::from(*low) + 4 * usize::from(*high), rest)),
        _ => Err(CodecError::Damaged("it ends in the middle of a length")),
    }
}

fn two(rest: &[u8]) -> Result<u32, CodecError> {
    let (first, rest) = length(rest)?;
    let second = rest.len().checked_sub(first).ok_or(CodecError::Damaged("its first frame is longer than what is there"))?;
    fits(first.max(second))?;
    Ok(2)
}

/// Any number of frames, of one or of several lengths, with or without padding.
fn many(rest: &[u8], frame_us: u32) -> Result<u32, CodecError> {
    let Some((&head, mut rest)) = rest.split_first() else { return Err(CodecError::Damaged("its number of frames is missing")) };
    let frames = u32::from(head & 0x3f);
    if frames == 0 {
        return Err(CodecError::Damaged("it says that it has no frames"));
    }
    if frames * frame_us > LONGEST_US {
        return Err(CodecError::TooLong((frames * frame_us).div_ceil(1_000)));
    }
    let (mut padding, mut more) = (0, head & 0x40 != 0);
    while more {
        let Some((&length, after)) = rest.split_first() else { return Err(CodecError::Damaged("it ends in the middle of its padding")) };
        rest = after;
        more = length == 255;
        padding += if more { 254 } else { usize::from(length) };
    }
    let mut left = rest.len().checked_sub(padding).ok_or(CodecError::Damaged("its padding is longer than what is there"))?;
    if head & 0x80 == 0 {
        if left % frames as usize != 0 {
            return Err(CodecError::Damaged("its equal frames do not fill it"));
        }
        return fits(left / frames as usize).map(|()| frames);
    }
    for _ in 1..frames {
        let (bytes, after) = length(rest)?;
        fits(bytes)?;
        let spent = rest.len() - after.len() + bytes;
        left = left.checked_sub(spent).ok_or(CodecError::Damaged("its frames are longer than what is there"))?;
        rest = after;
    }
    fits(left)?;
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(bytes: &[u8]) -> (u32, u32, bool) {
        let p = look(bytes).unwrap().unwrap();
        (p.frames, p.frame_us, p.stereo)
    }

    #[test]
    fn each_packing_is_read() {
        assert_eq!(look(&[]), Ok(None));
        // CELT fullband 2.5 ms; SILK narrowband 60 ms stereo.
        assert_eq!(ok(&[28 << 3, 1, 2, 3]), (1, 2_500, false));
        assert_eq!(ok(&[3 << 3 | 4, 1]), (1, 60_000, true));
        assert_eq!(ok(&[1 << 3 | 1, 1, 2]), (2, 20_000, false));
        assert_eq!(ok(&[1 << 3 | 2, 1, 9, 8, 7]), (2, 20_000, false));
        // Three frames of different lengths with two bytes of padding.
        assert_eq!(ok(&[1 << 3 | 3, 0xc3, 2, 1, 2, 9, 9, 9, 9, 9, 0, 0]), (3, 20_000, false));
        assert_eq!(look(&[1 << 3 | 3, 48, 1]), Err(CodecError::TooLong(960)));
        let p = look(&[28 << 3 | 3, 48]).unwrap().unwrap();
        assert_eq!((p.samples(), p.ms()), (5_760, 120));
    }

    #[test]
    fn one_byte_is_a_frame_that_was_not_sent() {
        for toc in 0..=255u8 {
            let packet = look(&[toc]).unwrap().unwrap();
            assert!((1..=2).contains(&packet.frames) && packet.samples() <= 5_760, "{toc:#x}");
        }
    }

    #[test]
    fn what_does_not_add_up_is_named() {
        let told = |bytes: &[u8]| look(bytes).unwrap_err().to_string();
        assert!(told(&[1, 1, 2, 3]).contains("odd number"));
        assert!(told(&[2, 9, 1]).contains("longer than what is there"));
        assert!(told(&[2, 252]).contains("middle of a length"));
        assert!(told(&[3, 0]).contains("no frames"));
        assert!(told(&[3, 2, 1]).contains("do not fill it"));
        assert!(told(&[3, 0x41, 255]).contains("middle of its padding"));
        assert!(told(&[3, 0x41, 200, 1]).contains("padding is longer"));
        assert!(told(&[3, 0x82, 5, 1]).contains("longer than what is there"));
        assert_eq!(look(&[0; 1_277]), Err(CodecError::FrameTooLarge(1_276)));
        assert!(look(&[0; 1_276]).is_ok());
        assert!(told(&vec![0; 70_000]).contains("65,536"));
    }
}
