//! The detector on real speech, on the voices, and on noise after silence.

use super::hibari;
use voxgate::listen::vad::{EarshotVad, Vad};
use voxgate::media::frame::EAR_FRAME;
use voxgate::media::resample::resample_all;
use voxgate::media::wav;

/// The part of frames that are likely speech.
fn likely(sound: &[i16]) -> f64 {
    let mut vad = EarshotVad::new();
    let frames: Vec<bool> = sound.chunks_exact(EAR_FRAME).map(|f| vad.push(f).probability > 0.5).collect();
    frames.iter().filter(|l| **l).count() as f64 / frames.len() as f64
}

fn attenuated(sound: &[i16], by: i16) -> Vec<i16> {
    sound.iter().map(|s| s / by).collect()
}

#[test]
fn recorded_speech_is_heard_at_any_level() {
    let folder = "/usr/share/pocketsphinx/test/data/librivox";
    let clips: Vec<_> = std::fs::read_dir(folder).unwrap_or_else(|_| panic!("{folder} is missing: apt-get install pocketsphinx-testdata"))
        .map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "wav")).collect();
    assert!(clips.len() >= 5);
    for clip in clips {
        let sound = wav::parse(&std::fs::read(&clip).unwrap()).unwrap();
        assert_eq!(sound.rate_hz, 16_000);
        for by in [1, 10] {
            let part = likely(&attenuated(&sound.samples, by));
            println!("{} / {by}: {part:.2}", clip.display());
            assert!(part > 0.6, "{} / {by}: {part:.2}", clip.display());
        }
    }
}

#[test]
fn our_own_voice_is_heard_within_its_first_200_ms() {
    for text in ["No.", "Yes, go ahead.", "Stop.", "Plan mode is on."] {
        let speech = hibari().speak(text).unwrap();
        let mut sound = vec![0i16; 8_000];
        sound.extend(resample_all(&speech.samples, speech.rate_hz, 16_000));
        let mut vad = EarshotVad::new();
        let first = sound.chunks_exact(EAR_FRAME).position(|f| vad.push(f).probability > 0.5);
        let first_ms = first.map(|n| n as i64 * 20 - 500);
        println!("{text}: {first_ms:?} ms");
        assert!(first_ms.is_some_and(|ms| (-20..=260).contains(&ms)), "{text}: {first_ms:?}");
    }
}

#[test]
fn noise_and_hum_after_silence_are_not_speech() {
    let mut state = 88_172_645_463_325_252u64;
    let mut white = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let mut low = 0.0;
    type Source<'a> = &'a mut dyn FnMut(usize) -> f32;
    let mut kinds: [(&str, Box<dyn FnMut(usize) -> f32>); 3] = [
        ("white", Box::new(move |_| white())),
        ("hum", Box::new(|n| [50.0, 100.0, 150.0].iter().map(|hz| (n as f32 * hz * std::f32::consts::TAU / 16_000.0).sin() / 3.0).sum())),
        ("rumble", Box::new({
            let mut seed = 7u32;
            move |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                low = 0.98 * low + (seed >> 16) as f32 / 327_680.0 - 0.1;
                low
            }
        })),
    ];
    for (name, source) in &mut kinds {
        let source: Source = source.as_mut();
        for level in [300.0, 600.0, 900.0, 1_500.0, 4_000.0] {
            let mut sound = vec![0i16; 16_000];
            sound.extend((0..160_000).map(|n| (source(n) * level) as i16));
            let part = likely(&sound);
            assert!(part < 0.02, "{name} at {level}: {part:.3}");
        }
    }
}
