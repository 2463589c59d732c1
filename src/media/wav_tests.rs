//! Tests of the WAV reader and writer, judged by an independent implementation (hound) where there is one.

use super::*;
use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;
use std::io::Cursor;

fn spec(channels: u16, sample_rate: u32, bits_per_sample: u16, sample_format: SampleFormat) -> WavSpec {
    WavSpec { channels, sample_rate, bits_per_sample, sample_format }
}

fn with_hound<S: hound::Sample + Copy>(spec: WavSpec, samples: &[S]) -> Vec<u8> {
    let mut cursor = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut cursor, spec).unwrap();
    samples.iter().for_each(|s| writer.write_sample(*s).unwrap());
    writer.finalize().unwrap();
    cursor.into_inner()
}

#[test]
fn reads_every_rate_and_sample_size() {
    for rate in [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
        let wav = parse(&with_hound(spec(1, rate, 16, SampleFormat::Int), &[1i16, -2, i16::MIN])).unwrap();
        assert_eq!((wav.rate_hz, wav.samples.as_slice(), wav.truncated, wav.notes.len()), (rate, &[1, -2, i16::MIN][..], false, 0));
    }
    let int = |bits, x: &[i32]| parse(&with_hound(spec(1, 16_000, bits, SampleFormat::Int), x)).unwrap().samples;
    assert_eq!(int(24, &[0x7f_ff00, -0x80_0000, 256]), [0x7fff, i16::MIN, 1]);
    assert_eq!(int(32, &[i32::MAX, i32::MIN, 65536]), [i16::MAX, i16::MIN, 1]);
    assert_eq!(parse(&with_hound(spec(1, 8_000, 8, SampleFormat::Int), &[0i8, 64, -128])).unwrap().samples, [0, 64 << 8, i16::MIN]);
}

#[test]
fn floats_with_nan_are_silence_and_said() {
    let wav = parse(&with_hound(spec(1, 48_000, 32, SampleFormat::Float), &[0.5f32, f32::NAN, f32::INFINITY, -2.0])).unwrap();
    assert_eq!(wav.samples, [16384, 0, 0, i16::MIN]);
    assert!(wav.notes[0].starts_with("2 samples are not numbers"), "{:?}", wav.notes);
}

#[test]
fn channels_are_mixed_and_said() {
    let stereo = parse(&with_hound(spec(2, 44_100, 16, SampleFormat::Int), &[100i16, 300, -5, 5])).unwrap();
    assert_eq!(stereo.samples, [200, 0]);
    assert_eq!(stereo.notes, ["its 2 channels were mixed to one"]);
    // Six channels make hound write the extensible form.
    assert_eq!(parse(&with_hound(spec(6, 48_000, 16, SampleFormat::Int), &[6i16; 12])).unwrap().samples, [6, 6]);
}

#[test]
fn a_length_from_a_pipe_is_read_to_the_end() {
    for length in [0x7fff_f000u32, 0xffff_ffff, 0] {
        let mut bytes = write(22_050, &[7; 100]);
        bytes[40..44].copy_from_slice(&length.to_le_bytes());
        let wav = parse(&bytes).unwrap();
        assert_eq!((wav.samples.len(), wav.truncated), (100, false), "{length:#x}");
    }
}

#[test]
fn truncation_is_noticed() {
    let bytes = write(16_000, &[7; 32_000]);
    let wav = parse(&bytes[..44 + 32_001]).unwrap();
    assert_eq!((wav.samples.len(), wav.truncated), (16_000, true));
    assert_eq!(wav.notes, ["it is cut short: its header promises 2.0 s and 1.0 s are there"]);
}

#[test]
fn what_is_no_sound_is_said_for_a_person() {
    assert_eq!(parse(&[]), Err(WavError::Empty));
    assert!(parse(b"ID3\x03and then an mp3").unwrap_err().to_string().contains("begins with \"ID3.and \""));
    assert!(matches!(parse(b"RIFF"), Err(WavError::NotWav { .. })));
    assert_eq!(parse(&write(16_000, &[])), Err(WavError::NoSound));
    assert_eq!(parse(&write(16_000, &[1; 9])[..20]), Err(WavError::NoFormat));
    assert_eq!(parse(&write(4_000, &[1])), Err(WavError::RateOutOfRange { rate_hz: 4_000 }));
    let patched = |at: usize, value: u16| {
        let mut b = write(16_000, &[1; 9]);
        b[at..at + 2].copy_from_slice(&value.to_le_bytes());
        parse(&b).unwrap_err().to_string()
    };
    assert!(patched(20, 7).contains("mu-law"));
    assert!(patched(34, 12).contains("12 bit PCM"));
    assert!(patched(22, 0).contains("0 channels"));
}

#[test]
fn foreign_chunks_of_odd_length_are_stepped_over() {
    let plain = write(16_000, &[1, 2, 3]);
    let mut bytes = plain[..36].to_vec();
    bytes.extend(b"LIST\x03\x00\x00\x00abc\x00");
    bytes.extend(&plain[36..]);
    assert_eq!(parse(&bytes).unwrap().samples, [1, 2, 3]);
}

#[test]
fn hound_reads_what_we_write() {
    let x: Vec<i16> = (-500..500).map(|n| n * 60).collect();
    let mut reader = hound::WavReader::new(Cursor::new(write(24_000, &x))).unwrap();
    assert_eq!(reader.spec(), spec(1, 24_000, 16, SampleFormat::Int));
    assert_eq!(reader.samples::<i16>().map(Result::unwrap).collect::<Vec<_>>(), x);
    assert_eq!(header(16_000, u64::MAX)[40..44], (u32::MAX - 36).to_le_bytes());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..80, cut in 0usize..244) {
        let _ = parse(&noise);
        let mut bytes = write(16_000, &[3; 100]);
        for (i, b) in noise.iter().take(8).enumerate() {
            bytes[at + i] = *b;
        }
        bytes.truncate(cut);
        if let Ok(wav) = parse(&bytes) {
            prop_assert!(wav.samples.len() <= 244);
        }
    }
}
