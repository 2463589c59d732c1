//! The wrapper against every length, packing and kind of loss; and against bytes that are no packets.

use std::f64::consts::PI;

use super::*;
use crate::codec::{decoder, encoder};

/// A chirp-like tone with some life in it, mono at 48 kHz.
fn voice(samples: usize) -> Vec<i16> {
    (0..samples).map(|n| {
        let t = n as f64 / 48_000.0;
        let wave: f64 = (1..12).map(|k| (2.0 * PI * 140.0 * f64::from(k) * t).sin() / f64::from(k)).sum();
        (3_000.0 * wave * (0.6 + 0.4 * (2.0 * PI * 4.0 * t).sin())) as i16
    }).collect()
}

fn tone(hz: f64, samples: usize) -> Vec<i16> { (0..samples).map(|n| (8_000.0 * (2.0 * PI * hz * n as f64 / 48_000.0).sin()) as i16).collect() }

fn packets(sound: &[i16], settings: EncoderSettings) -> Vec<Vec<u8>> {
    let mut encoder = encoder(settings).unwrap();
    sound.chunks_exact(FRAME).map(|frame| encoder.encode(frame).unwrap()).collect()
}

/// Level of the loudest correlation of `b` with `a`, as a part of both energies: 1 is the same sound.
fn likeness(a: &[i16], b: &[i16]) -> f64 {
    let dot = |x: &[i16], y: &[i16]| x.iter().zip(y).map(|(p, q)| f64::from(*p) * f64::from(*q)).sum::<f64>();
    (0..600).step_by(6).map(|delay| {
        let (x, y) = (&a[..a.len() - delay], &b[delay..]);
        dot(x, y) / (dot(x, x) * dot(y, y)).sqrt().max(1.0)
    }).fold(0.0, f64::max)
}

/// A packet of `frames` frames of this length by the library itself: what other senders make.
fn foreign(ms_tenths: usize, stereo: bool, bitrate: i32, sound: &[i16]) -> Vec<Vec<u8>> {
    let channels = if stereo { Channels::Stereo } else { Channels::Mono };
    let mut inner = opus::Encoder::new(RATE_HZ, channels, Application::Voip).unwrap();
    inner.set_bitrate(Bitrate::Bits(bitrate)).unwrap();
    let length = 48 * ms_tenths / 10;
    let doubled: Vec<i16> = if stereo { sound.iter().flat_map(|s| [*s, *s]).collect() } else { sound.to_vec() };
    doubled.chunks_exact(length * if stereo { 2 } else { 1 }).map(|frame| inner.encode_vec(frame, 4_000).unwrap()).collect()
}

#[test]
fn a_voice_comes_back() {
    let sound = voice(48_000);
    let sent = packets(&sound, EncoderSettings::default());
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(bytes < 24_000 / 8 * 5 / 4, "{bytes} bytes for a second");
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    sent.iter().for_each(|p| decoder.decode(p, &mut out).unwrap());
    assert_eq!(out.len(), sound.len());
    assert!(likeness(&sound[9_600..], &out[9_600..]) > 0.8, "{}", likeness(&sound[9_600..], &out[9_600..]));
    assert!(encoder(EncoderSettings::default()).unwrap().lookahead() < FRAME);
}

/// Field case 45: what browsers and other senders put on the wire, at every length, packing and channel count, with DTX and FEC.
#[test]
fn field_case_45_every_length_and_packing_of_other_senders_is_heard() {
    let sound = voice(36_000);
    for tenths in [25, 50, 100, 200, 400, 600, 800, 1_000, 1_200] {
        for stereo in [false, true] {
            for bitrate in [8_000, 24_000, 96_000] {
                let sent = foreign(tenths, stereo, bitrate, &sound);
                let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
                for packet in &sent {
                    let before = out.len();
                    assert_eq!(decoder.decode(packet, &mut out), Ok(()), "{tenths} {stereo} {bitrate}");
                    assert_eq!(out.len() - before, 48 * tenths / 10);
                }
                // So few bits for so short a frame carry nothing but its length.
                if tenths < 100 && bitrate < 64_000 { continue }
                let (from, to) = (FRAME * 10, out.len().min(sound.len()));
                assert!(likeness(&sound[from..to], &out[from..to]) > 0.45, "{tenths} {stereo} {bitrate}: {}", likeness(&sound[from..to], &out[from..to]));
            }
        }
    }
}

#[test]
fn every_packing_of_the_same_frames_sounds_the_same() {
    let sent = packets(&voice(FRAME * 12), EncoderSettings { fec: false, ..EncoderSettings::default() });
    let (mut one, mut plain) = (decoder().unwrap(), Vec::new());
    sent.iter().for_each(|p| one.decode(p, &mut plain).unwrap());
    for group in [2, 3, 6] {
        let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
        for frames in sent.chunks(group) {
            let refs: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            // The library's own repacketizer writes codes 1 to 3; padding is code 3 with its extra lengths.
            let mut packet = vec![0; 8_000];
            let written = opus::Repacketizer::new().unwrap().combine(&refs, &mut packet).unwrap();
            packet.truncate(written);
            let padded = written + 300;
            packet.resize(padded, 0);
            opus::packet::pad(&mut packet, written).unwrap();
            assert_eq!(look(&packet).unwrap().unwrap().frames as usize, group);
            decoder.decode(&packet, &mut out).unwrap();
        }
        assert_eq!(out, plain, "{group} frames a packet");
    }
}

#[test]
fn packets_of_no_and_one_byte_are_silence_of_the_right_length() {
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    for packet in packets(&voice(FRAME * 10), EncoderSettings::default()) { decoder.decode(&packet, &mut out).unwrap() }
    out.clear();
    for _ in 0..25 {
        decoder.decode(&[], &mut out).unwrap();
        decoder.decode(&[1 << 3], &mut out).unwrap();
    }
    assert_eq!(out.len(), 50 * FRAME);
    assert!(rms_dbfs(&out[30 * FRAME..]) < -50.0, "{}", rms_dbfs(&out[30 * FRAME..]));
    // An encoder with DTX says silence in such packets, and is heard again afterwards.
    let quiet = [voice(FRAME * 20), vec![0; FRAME * 80], voice(FRAME * 20)].concat();
    let sent = packets(&quiet, EncoderSettings { dtx: true, ..EncoderSettings::default() });
    assert!(sent.iter().filter(|p| p.len() <= 2).count() > 20, "{:?}", sent.iter().map(Vec::len).collect::<Vec<_>>());
    out.clear();
    sent.iter().for_each(|p| decoder.decode(p, &mut out).unwrap());
    assert_eq!(out.len(), quiet.len());
    assert!(rms_dbfs(&out[60 * FRAME..95 * FRAME]) < -60.0 && rms_dbfs(&out[110 * FRAME..]) > -30.0);
}

#[test]
fn a_gap_is_made_up_for_and_best_by_the_copy_in_the_next_packet() {
    let sound = voice(FRAME * 250);
    let sent = packets(&sound, EncoderSettings { loss_percent: 20, ..EncoderSettings::default() });
    let heard = |mend: u8| {
        let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
        for (n, packet) in sent.iter().enumerate() {
            match (n % 8 == 5, mend) {
                (false, _) => decoder.decode(packet, &mut out).unwrap(),
                (_, 0) => out.extend([0; FRAME]),
                (_, 1) => decoder.conceal(None, &mut out),
                _ => decoder.conceal(sent.get(n + 1).map(Vec::as_slice), &mut out),
            }
        }
        assert_eq!(out.len(), sound.len());
        likeness(&sound[FRAME * 10..], &out[FRAME * 10..])
    };
    let (holes, concealed, copied) = (heard(0), heard(1), heard(2));
    println!("one packet in eight lost: silence {holes:.3}, concealed {concealed:.3}, by the copy {copied:.3}");
    assert!(copied > holes + 0.02 && copied >= concealed - 0.005, "{holes} {concealed} {copied}");
}

#[test]
fn a_gap_before_anything_came_is_silence() {
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    decoder.conceal(None, &mut out);
    decoder.conceal(Some(&[1, 2, 3]), &mut out);
    decoder.decode(&[], &mut out).unwrap();
    assert_eq!((out.len(), rms_dbfs(&out) < -80.0), (3 * FRAME, true));
}

#[test]
fn stereo_is_mixed() {
    let left = tone(1_000.0, 48_000);
    let both: Vec<i16> = left.iter().flat_map(|s| [*s, 0]).collect();
    let mut encoder = encoder(EncoderSettings { stereo: true, bitrate: 96_000, fec: false, ..EncoderSettings::default() }).unwrap();
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    for frame in both.chunks_exact(2 * FRAME) { decoder.decode(&encoder.encode(frame).unwrap(), &mut out).unwrap() }
    // One channel of two is 6 dB less in their mean.
    let off = rms_dbfs(&out[9_600..]) - rms_dbfs(&left) + 6.02;
    assert!(off.abs() < 0.5, "{off} dB");
    assert_eq!(encoder.encode(&[0; FRAME]), Err(CodecError::WrongLength { got: FRAME, want: 2 * FRAME }));
}

#[test]
fn a_damaged_packet_fills_its_place_and_is_named() {
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    let sent = packets(&voice(FRAME * 6), EncoderSettings::default());
    decoder.decode(&sent[0], &mut out).unwrap();
    assert!(matches!(decoder.decode(&[2, 252], &mut out), Err(CodecError::Damaged(_))));
    assert!(matches!(decoder.decode(&[0; 1_300], &mut out), Err(CodecError::FrameTooLarge(1_299))));
    assert!(matches!(decoder.decode(&[11, 30, 0], &mut out), Err(CodecError::TooLong(_))));
    assert_eq!(out.len(), 4 * FRAME);
    sent[1..].iter().for_each(|p| decoder.decode(p, &mut out).unwrap());
}

#[test]
fn what_is_loud_by_mistake_is_held_and_full_scale_is_not_hurt_much() {
    let square: Vec<i16> = (0..48_000).map(|n| if n / 48 % 2 == 0 { 32_767 } else { -32_768 }).collect();
    let (mut decoder, mut out) = (decoder().unwrap(), Vec::new());
    for packet in packets(&square, EncoderSettings { bitrate: 64_000, ..EncoderSettings::default() }) { decoder.decode(&packet, &mut out).unwrap() }
    let level = rms_dbfs(&out[9_600..]);
    assert!((-10.5..=-8.5).contains(&level), "{level}");
}

#[test]
fn settings_out_of_range_are_held_within() {
    for (bitrate, loss_percent, complexity) in [(0, -5, -1), (i32::MAX, 1_000, 99)] {
        let mut encoder = encoder(EncoderSettings { bitrate, loss_percent, complexity, ..EncoderSettings::default() }).unwrap();
        assert!(encoder.encode(&tone(500.0, FRAME)).is_ok_and(|p| !p.is_empty() && p.len() <= FRAME_BYTES_MAX + 1));
    }
}
