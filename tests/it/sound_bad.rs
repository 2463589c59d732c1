//! Sound that is not as it should be: every rate, channel count and sample kind comes out the same tone, and what is no sound at all
//! comes out bounded and quiet.

use std::f64::consts::TAU;
use std::sync::Arc;

use ringbuf::HeapRb;
use ringbuf::traits::{Consumer, Split};
use voxgate::audio::device::{Heard, Taker};
use voxgate::media::frame::EAR_HZ;
use voxgate::media::level::{peak, rms_dbfs};
use voxgate::media::resample::Resampler;
use voxgate::media::wav;

const RATES: [u32; 8] = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

/// Interleaved, the same in each channel, -1 to 1.
fn interleaved(mono: impl Iterator<Item = f32>, channels: u16) -> Vec<f32> { mono.flat_map(|s| std::iter::repeat_n(s, usize::from(channels))).collect() }

fn file(rate_hz: u32, channels: u16, float: bool, samples: &[f32]) -> Vec<u8> {
    let spec = hound::WavSpec { channels, sample_rate: rate_hz, bits_per_sample: if float { 32 } else { 16 }, sample_format: if float { hound::SampleFormat::Float } else { hound::SampleFormat::Int } };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    for s in samples {
        if float { writer.write_sample(*s) } else { writer.write_sample((*s * 32_767.0) as i16) }.unwrap();
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

/// By the file's door.
fn by_file(rate_hz: u32, channels: u16, float: bool, samples: &[f32]) -> Vec<i16> {
    let read = wav::parse(&file(rate_hz, channels, float, samples)).unwrap();
    assert_eq!(read.rate_hz, rate_hz);
    read.samples
}

/// By the card's door, in periods of 20 ms.
fn by_card(rate_hz: u32, channels: u16, float: bool, samples: &[f32]) -> Vec<i16> {
    let (producer, mut consumer) = HeapRb::<i16>::new(samples.len().max(1)).split();
    let mut taker = Taker::new(channels, producer, Arc::new(Heard::default()));
    for period in samples.chunks(rate_hz as usize / 50 * usize::from(channels)) {
        if float { taker.take(period) } else { taker.take(&period.iter().map(|s| (*s * 32_767.0) as i16).collect::<Vec<_>>()) }
    }
    consumer.pop_iter().collect()
}

fn at_the_ear(rate_hz: u32, mono: &[i16]) -> Vec<i16> {
    let (mut resampler, mut out) = (Resampler::new(rate_hz, EAR_HZ), Vec::new());
    mono.chunks(rate_hz as usize / 50).for_each(|frame| resampler.push(frame, &mut out));
    out
}

fn frequency(x: &[i16], rate: u32) -> f64 {
    let rising: Vec<f64> = x.windows(2).enumerate().filter(|(_, w)| w[0] < 0 && w[1] >= 0).map(|(i, w)| i as f64 + f64::from(-w[0]) / (f64::from(w[1]) - f64::from(w[0]))).collect();
    (rising.len() - 1) as f64 * f64::from(rate) / (rising[rising.len() - 1] - rising[0])
}

#[test]
fn a_tone_is_the_same_tone_at_every_rate_and_channel_count() {
    let mut all = 0;
    for rate in RATES {
        for channels in [1, 2, 6] {
            for float in [false, true] {
                for door in [by_file, by_card] {
                    let tone = (0..rate / 2).map(|n| (0.5 * (TAU * 1000.0 * f64::from(n) / f64::from(rate)).sin()) as f32);
                    let out = at_the_ear(rate, &door(rate, channels, float, &interleaved(tone, channels)));
                    let steady = &out[1_600..out.len() - 160];
                    let (hz, level) = (frequency(steady, EAR_HZ), rms_dbfs(steady) + 9.03);
                    assert!((hz - 1000.0).abs() < 1.0 && level.abs() < 0.5, "{rate} Hz, {channels} channels, float {float}: {hz:.2} Hz, {level:+.2} dB");
                    all += 1;
                }
            }
        }
    }
    println!("{all} ways in");
}

#[test]
fn what_is_no_number_is_quiet_and_what_is_too_much_stays_in_bounds() {
    let second = |of: &dyn Fn(u32) -> f32, rate: u32| (0..rate).map(of).collect::<Vec<f32>>();
    for rate in RATES {
        for door in [by_file, by_card] {
            for (name, bad) in [("NaN", f32::NAN), ("infinite", f32::INFINITY), ("negative infinite", f32::NEG_INFINITY), ("denormal", 1e-40), ("smallest", f32::MIN_POSITIVE)] {
                let flips = second(&|n| if n % 2 == 0 { bad } else { -bad }, rate);
                let out = at_the_ear(rate, &door(rate, 1, true, &flips));
                assert_eq!(peak(&out), 0, "{name} at {rate} Hz");
            }
            // NaN between good samples takes only itself away.
            let holes = second(&|n| if n % 97 == 0 { f32::NAN } else { 0.1 }, rate);
            assert!(peak(&at_the_ear(rate, &door(rate, 1, true, &holes))) < 4_000, "holes at {rate} Hz");
            let dc = at_the_ear(rate, &door(rate, 1, true, &second(&|_| 0.25, rate)));
            assert!(dc[1_600..].iter().all(|s| (8_150..=8_240).contains(s)), "DC at {rate} Hz stays DC");
            // A full-scale square overshoots when it is filtered: it is held at full scale and never wraps around.
            let square = second(&|n| if n * 200 / rate % 2 == 0 { 9.0 } else { -9.0 }, rate);
            let out = at_the_ear(rate, &door(rate, 1, true, &square));
            let half = EAR_HZ as usize / 200;
            // Away from its edges, which the filter moves by its delay.
            let wrapped = out[Resampler::new(rate, EAR_HZ).delay()..].chunks(half).enumerate().skip(4).filter(|(_, c)| c.len() == half).any(|(_, c)| {
                let middle = &c[half / 4..half * 3 / 4];
                middle.iter().any(|s| s.signum() != middle[0].signum())
            });
            assert!(!wrapped && (-3.1..=0.0).contains(&rms_dbfs(&out[1_600..])), "square at {rate} Hz: {} dBFS", rms_dbfs(&out[1_600..]));
        }
    }
}
