//! G.711: the two 8-bit laws of telephones, by their segments (ITU-T G.711). One byte a sample, 8 kHz.

/// One sample of mu-law.
pub fn ulaw_to_linear(byte: u8) -> i16 {
    let code = !byte;
    let exponent = (code >> 4) & 7;
    let magnitude = ((((code & 0x0f) as i32) << 3) + 0x84) << exponent;
    let value = magnitude - 0x84;
    if code & 0x80 != 0 { -value as i16 } else { value as i16 }
}

/// The mu-law byte nearest to a sample.
pub fn linear_to_ulaw(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    // 32635 is the largest magnitude whose biased value fits 15 bits.
    let biased = (i32::from(sample).abs()).min(32_635) + 0x84;
    let exponent = (24 - biased.leading_zeros() as i32).clamp(0, 7);
    let mantissa = (biased >> (exponent + 3)) & 0x0f;
    !(sign | (exponent << 4) as u8 | mantissa as u8)
}

/// One sample of A-law.
pub fn alaw_to_linear(byte: u8) -> i16 {
    let code = byte ^ 0x55;
    let exponent = (code >> 4) & 7;
    let mantissa = i32::from(code & 0x0f);
    let magnitude = match exponent {
        0 => (mantissa << 4) + 8,
        e => ((mantissa << 4) + 0x108) << (e - 1),
    };
    if code & 0x80 != 0 { magnitude as i16 } else { -magnitude as i16 }
}

/// The A-law byte nearest to a sample.
pub fn linear_to_alaw(sample: i16) -> u8 {
    let (sign, magnitude) = if sample >= 0 { (0x80, i32::from(sample)) } else { (0, -i32::from(sample) - 1) };
    let exponent = (24 - magnitude.leading_zeros() as i32).clamp(0, 7);
    let mantissa = (magnitude >> if exponent == 0 { 4 } else { exponent + 3 }) & 0x0f;
    (sign | (exponent << 4) as u8 | mantissa as u8) ^ 0x55
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back() {
        for byte in 0..=255u8 {
            let again = linear_to_ulaw(ulaw_to_linear(byte));
            // Mu-law has two zeros.
            assert!(again == byte || (byte == 0x7f && again == 0xff), "ulaw {byte:#x} -> {again:#x}");
            assert_eq!(linear_to_alaw(alaw_to_linear(byte)), byte, "alaw {byte:#x}");
        }
    }

    #[test]
    fn known_points() {
        assert_eq!((ulaw_to_linear(0xff), ulaw_to_linear(0x00), ulaw_to_linear(0x80)), (0, -32_124, 32_124));
        assert_eq!((alaw_to_linear(0xd5), alaw_to_linear(0x2a)), (8, -32_256));
        assert_eq!((linear_to_ulaw(0), linear_to_ulaw(i16::MIN), linear_to_ulaw(i16::MAX)), (0xff, 0x00, 0x80));
    }

    #[test]
    fn error_is_under_four_percent() {
        for sample in (-32_000..32_000i16).step_by(7) {
            for back in [ulaw_to_linear(linear_to_ulaw(sample)), alaw_to_linear(linear_to_alaw(sample))] {
                let off = (i32::from(back) - i32::from(sample)).abs();
                assert!(off <= i32::from(sample).abs() / 25 + 16, "{sample} -> {back}");
            }
        }
    }
}
