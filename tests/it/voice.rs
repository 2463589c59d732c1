//! The voices and the ear on real weights and real programs, judged by a recogniser that did not make them.
#![cfg(all(feature = "voice", feature = "whisper", feature = "devices"))]

#[path = "voice_devices.rs"]
mod devices;
#[path = "voice_ear.rs"]
mod ear;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use voxgate::media::level::{peak, rms_dbfs};
use voxgate::media::resample::resample_all;
use voxgate::tts::hibari::Hibari;
use voxgate::tts::{self, Voice, VoiceSettings};

/// The folder of weights, and what brings it when it is not there.
pub(crate) fn models(sub: &str) -> PathBuf {
    let root = std::env::var_os("VOXGATE_MODELS").map(PathBuf::from).unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")));
        cache.expect("HOME is set").join("voxgate/models")
    });
    let path = root.join(sub);
    assert!(path.exists(), "{} is missing: run `voxgate models get` first", path.display());
    path
}

pub(crate) fn hibari() -> &'static Hibari {
    static VOICE: OnceLock<Hibari> = OnceLock::new();
    VOICE.get_or_init(|| Hibari::load(&models("hibari"), 1.0).expect("the voice loads"))
}

/// What Whisper base writes of a sound.
pub(crate) fn transcribe(samples: &[i16], rate_hz: u32) -> String {
    use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters};
    static EAR: OnceLock<WhisperContext> = OnceLock::new();
    let ear = EAR.get_or_init(|| {
        let path = models("whisper-base/ggml-base-q8_0.bin");
        WhisperContext::new_with_params(&path, WhisperContextParameters::default()).expect("whisper loads")
    });
    let mut sound: Vec<f32> = vec![0.0; 4_000];
    sound.extend(resample_all(samples, rate_hz, 16_000).iter().map(|s| f32::from(*s) / 32768.0));
    sound.resize(sound.len() + 8_000, 0.0);
    let mut params = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
    params.set_n_threads(1);
    params.set_language(Some("en"));
    params.set_no_timestamps(true);
    params.set_temperature_inc(0.0);
    params.set_print_progress(false);
    params.set_audio_ctx((sound.len() / 320 + 200).clamp(384, 1500) as i32);
    let mut state = ear.create_state().expect("a state");
    state.full(params, &sound).expect("a transcript");
    let segments: Vec<String> = state.as_iter().map(|s| s.to_str_lossy().expect("text").into_owned()).collect();
    segments.concat().trim().to_owned()
}

/// Lower-case words without marks. "by" counts as "buy": the two sound alike, so which is written says nothing of the voice.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace("by", "buy");
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_default_voice_is_understood_word_for_word() {
    let texts = [
        "Plan mode is on. I can look, but I will not change anything until you approve the plan.",
        "Add buy milk to your notes? Say yes, go ahead, and I will do it.",
        "There are three notes. The first one is called groceries, and the last one was changed yesterday evening.",
        "I did not do that, because plan mode is on. It is now a step of the plan.",
        "What mode are you in?",
    ];
    // Loading is not counted.
    hibari().speak("Hello.").expect("it speaks");
    let (mut wall, mut sound) = (0.0, 0.0);
    for text in texts {
        let start = std::time::Instant::now();
        let speech = hibari().speak(text).expect("it speaks");
        let seconds = speech.samples.len() as f64 / f64::from(speech.rate_hz);
        wall += start.elapsed().as_secs_f64();
        sound += seconds;
        let heard = transcribe(&speech.samples, speech.rate_hz);
        println!("{seconds:.2} s: {heard}");
        assert_eq!(words(&heard), words(text));
        // A loud syllable may lower the whole by a little, so that nothing clips.
        assert!((-22.5..-19.5).contains(&rms_dbfs(&speech.samples)), "{} dBFS", rms_dbfs(&speech.samples));
        assert!(peak(&speech.samples) < 29_500);
    }
    println!("real-time factor {:.3} ({wall:.2} s for {sound:.1} s)", wall / sound);
    assert!(wall / sound < 0.7, "too slow to talk with: {:.2}", wall / sound);
}

#[test]
fn the_same_text_gives_the_same_sound_and_odd_texts_give_some() {
    let a = hibari().speak("Say that again.").unwrap();
    assert_eq!(a, hibari().speak("Say that again.").unwrap());
    assert!(hibari().speak("").unwrap().samples.is_empty());
    assert!(hibari().speak(" ... \n - ").unwrap().samples.len() < 12_000);
    for odd in ["kubectl", "qzxwv", "\u{4f60}\u{597d}", "Nikolaevich", "[link](/x/)", "a.b.c", "3.14159", "🙂 yes"] {
        let speech = hibari().speak(odd).unwrap();
        assert!(speech.samples.len() > 3_000, "{odd:?} was dropped");
    }
    let long = "word ".repeat(120);
    let speech = hibari().speak(&long).unwrap();
    assert!(speech.samples.len() > 20 * 24_000, "{}", speech.samples.len());
}

#[tokio::test]
async fn a_given_up_synthesis_does_not_block_the_next() {
    let voice: Arc<dyn Voice> = tts::open("hibari", &VoiceSettings { model_dir: models("hibari"), ..Default::default() }).unwrap();
    drop(tokio::time::timeout(std::time::Duration::from_millis(1), voice.synthesise("A long one, ".repeat(30))).await);
    assert!(!voice.synthesise("Yes.".into()).await.unwrap().samples.is_empty());
}

#[tokio::test]
async fn programs_speak_too_and_say_what_they_lack() {
    let settings = VoiceSettings::default();
    for (kind, rate) in [("flite", 16_000), ("espeak", 22_050)] {
        let voice = tts::open(kind, &settings).unwrap();
        let text = "-Plan mode is on; $(date) and \"quotes\" are only text. The second sentence is here too.";
        let speech = voice.synthesise(text.into()).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((speech.rate_hz, voice.rate_hz()), (rate, rate));
        assert!(speech.samples.len() > 3 * rate as usize, "{kind}: {}", speech.samples.len());
        let heard = transcribe(&speech.samples, rate);
        assert!(words(&heard).ends_with(&words("the second sentence is here too")), "{kind}: {heard}");
        assert!(voice.synthesise(" ".into()).await.unwrap().samples.len() < rate as usize);
    }
    let unknown = tts::open("espeak", &VoiceSettings { voice: "xx-nowhere".into(), ..settings }).unwrap();
    let error = unknown.synthesise("Hello.".into()).await.unwrap_err();
    assert!(error.to_string().contains("espeak-ng"), "{error}");
}

/// Length of a sound without the silence at its ends, in seconds.
fn length(speech: &tts::Speech) -> f64 {
    let loud = |s: &i16| s.unsigned_abs() > 300;
    let (first, last) = (speech.samples.iter().position(loud).unwrap_or(0), speech.samples.iter().rposition(loud).unwrap_or(0));
    (last - first) as f64 / f64::from(speech.rate_hz)
}

#[tokio::test]
async fn the_length_of_speech_follows_its_speed() {
    let text = "The meeting about the garden was moved from Tuesday morning to Thursday afternoon because of the heavy rain";
    for kind in ["hibari", "flite", "espeak"] {
        let at = async |speed| {
            let voice = tts::open(kind, &VoiceSettings { model_dir: models("hibari"), voice: String::new(), speed }).unwrap();
            length(&voice.synthesise(text.into()).await.unwrap_or_else(|e| panic!("{kind}: {e}")))
        };
        let own = at(1.0).await;
        for speed in [0.8, 1.25, 1.5] {
            let ratio = at(speed).await * f64::from(speed) / own;
            assert!((0.9..=1.1).contains(&ratio), "{kind} at {speed}: {ratio:.3} of what it should last");
        }
    }
}
