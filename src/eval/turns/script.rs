//! The sixty utterances, and how they are said: with a thinking pause where the script has a bar, or in one breath.
//!
//! A voice reads the whole sentence with a comma at the bar, so that its tune goes on there as a person's does, and the pause it
//! makes by itself is drawn out. Halves that are read alone would each fall at their end and tell the judge what it is to find out.

use crate::media::resample::resample_all;
use crate::tts::{self, Voice, VoiceSettings};
use std::sync::Arc;

/// "First half | second half", thirty of them.
const PAUSED: [&str; 30] = [
    "Add milk and | eggs to my notes.", "I would like to | see what is in my notes.", "What is the weather | in the north today?", "Remind me | to call my mother on Sunday.", "My number is five five two | nine one four.",
    "Put the meeting on | Thursday afternoon.", "Can you tell me | what time it is?", "I was thinking about | the plan for next week.", "Add a note that says | the door is open.", "The name of the file is | report from March.",
    "So what I want is | a list of all the files.", "Please read me | the second note.", "Move the appointment from Monday to | Wednesday at ten.", "I need | bread, butter and cheese.", "How do I get | from the station to the museum?",
    "Tell me a story about | a dragon and a small boat.", "If it rains tomorrow | we should stay at home.", "The first thing is | to open the window.", "Write down that | Anna comes at seven.", "What was the name of | the man with the dog?",
    "I think we should | wait for the others.", "Let's go to | the park after lunch.", "Add the word | umbrella to the list.", "Because of the traffic | I will be late.", "Show me everything that | changed since yesterday.",
    "The address is twelve | Garden Street.", "Could you | say something about the moon?", "When the train arrives | call me at once.", "There are three things | I want you to remember.", "Delete the note about | the old car.",
];
/// Said in one breath, thirty of them.
const WHOLE: [&str; 30] = [
    "What's in my notes?", "Enter plan mode.", "Add milk to my notes.", "What mode are you in?", "Read me the plan.", "Tell me a story.", "What time is it?", "Stop.", "Say that again.", "How are you today?",
    "Turn the light off in the kitchen.", "I will be home at six.", "What can I say?", "Call my mother on Sunday.", "The weather is nice today.", "Where is the nearest station?", "Write down that the door is open.", "Keep planning.", "Show me the list of files.",
    "Yes, that is right.", "No, I don't want that.", "Remind me to buy bread.", "Who wrote this book?", "Put it in my notes.", "Thank you for your help.", "What does the second note say?", "Let's go to the park.", "Set the plan aside.", "My name is Robert.",
    "I like the blue one better.",
];
/// Kinds of voices and their names.
const VOICES: [(&str, &str); 6] = [("hibari", ""), ("flite", "slt"), ("flite", "rms"), ("flite", "awb"), ("espeak", "en-us"), ("espeak", "en-gb")];
/// Quiet before the first word and after the last, in milliseconds.
const BEFORE_MS: usize = 600;
/// Long enough for the latest end of a turn.
const AFTER_MS: usize = 2_600;
const RATE: usize = 16;

/// An utterance that was said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Who said it.
    pub voice: String,
    /// The script.
    pub text: String,
    /// It has a pause inside.
    pub paused: bool,
    /// Length of that pause.
    pub pause_ms: u64,
    /// Mono i16, 16 kHz, with quiet around it.
    pub sound: Vec<i16>,
    /// Where the part after the pause begins; with no pause where its last word can have begun.
    pub last_begins_ms: u64,
    /// Where the last sample of the voice is.
    pub ends_ms: u64,
}

/// The voices.
pub struct Speakers(Vec<(String, Arc<dyn Voice>)>);

impl Speakers {
    /// Opens them. `hibari` is the folder of the neural voice's weights.
    ///
    /// # Errors
    /// A sentence: a voice that is not there is a failure.
    pub fn open(hibari: &std::path::Path) -> Result<Self, String> {
        let open = |(kind, voice): &(&str, &str)| {
            let settings = VoiceSettings { model_dir: hibari.to_path_buf(), voice: (*voice).to_string(), speed: 1.0 };
            let name = format!("{kind} {voice}").trim().to_string();
            tts::open(kind, &settings).map(|v| (name, v)).map_err(|e| e.to_string())
        };
        VOICES.iter().map(open).collect::<Result<_, _>>().map(Self)
    }
}

/// All utterances in all voices; `most` bounds them for a trial.
///
/// # Errors
/// A sentence: a voice failed.
pub async fn script(speakers: &Speakers, most: usize) -> Result<Vec<Said>, String> {
    let mut all = Vec::new();
    for (n, text) in PAUSED.iter().enumerate() {
        for (v, (name, voice)) in speakers.0.iter().enumerate() {
            // Pauses of 0.4 to 1.5 s, spread evenly, and over the voices too.
            let pause_ms = 400 + ((n * 7 + v * 5) % 30) as u64 * 1_100 / 29;
            let sound = speak(voice, &text.replace(" | ", ", ")).await?;
            all.push(with_pause(name, text, &sound, pause_ms));
        }
    }
    for text in WHOLE {
        for (name, voice) in &speakers.0 {
            all.push(in_one_breath(name, text, &speak(voice, text).await?));
        }
    }
    if let Some(step) = all.len().checked_div(most) {
        all = all.into_iter().step_by(step.max(1)).collect();
    }
    Ok(all)
}

async fn speak(voice: &Arc<dyn Voice>, text: &str) -> Result<Vec<i16>, String> {
    let speech = voice.synthesise(text.to_string()).await.map_err(|e| format!("{}: {e}", voice.name()))?;
    let sound = trimmed(&resample_all(&speech.samples, speech.rate_hz, 16_000));
    if sound.len() < 100 * RATE { Err(format!("{} said nothing for {text:?}", voice.name())) } else { Ok(sound) }
}

fn trimmed(sound: &[i16]) -> Vec<i16> {
    let loud = |s: &i16| s.unsigned_abs() > 160;
    let Some(first) = sound.iter().position(loud) else { return Vec::new() };
    let last = sound.iter().rposition(loud).unwrap_or(first);
    sound[first..=last].to_vec()
}

/// Faint noise instead of digital silence: a microphone that is on is never quite silent.
fn quiet(samples: usize, seed: usize) -> impl Iterator<Item = i16> {
    (0..samples).map(move |n| ((n.wrapping_add(seed * 7919).wrapping_mul(2_654_435_761) >> 7) % 23) as i16 - 11)
}

fn around(voice: &str, text: &str, sound: Vec<i16>, paused: bool, pause_ms: u64, last_begins: usize) -> Said {
    let seed = text.len() + voice.len();
    let mut all: Vec<i16> = quiet(BEFORE_MS * RATE, seed).collect();
    let ends = all.len() + sound.len();
    all.extend(sound.iter().zip(quiet(sound.len(), seed + 1)).map(|(s, q)| s.saturating_add(q)));
    all.extend(quiet(AFTER_MS * RATE, seed + 2));
    Said { voice: voice.into(), text: text.into(), paused, pause_ms, sound: all, last_begins_ms: (BEFORE_MS + last_begins / RATE) as u64, ends_ms: (ends / RATE) as u64 }
}

fn in_one_breath(voice: &str, text: &str, sound: &[i16]) -> Said {
    // A turn that closes before the last 200 ms of the voice has cut it.
    around(voice, text, sound.to_vec(), false, 0, sound.len().saturating_sub(200 * RATE))
}

fn with_pause(voice: &str, text: &str, sound: &[i16], pause_ms: u64) -> Said {
    let (first, second) = text.split_once('|').unwrap_or((text, ""));
    let part = first.len() as f64 / (first.len() + second.len()).max(1) as f64;
    let (from, to) = gap(sound, part);
    let mut all = sound[..from].to_vec();
    all.resize(all.len() + pause_ms as usize * RATE, 0);
    let begins = all.len();
    all.extend_from_slice(&sound[to..]);
    around(voice, text, all, true, pause_ms, begins)
}

/// The voice's own pause at the comma: the longest stretch of quiet in the middle, nearest to where the comma stands.
fn gap(sound: &[i16], part: f64) -> (usize, usize) {
    const STEP: usize = 10 * RATE;
    let loud: Vec<f64> = sound.chunks(STEP).map(|c| c.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / c.len() as f64).collect();
    let most = loud.iter().copied().fold(0.0, f64::max);
    let is_quiet = |n: usize| loud[n] < most * 0.000_5;
    let middle = part * loud.len() as f64;
    let mut best = (f64::MIN, (middle as usize, middle as usize));
    let mut n = 0;
    while n < loud.len() {
        let from = n;
        while n < loud.len() && is_quiet(n) { n += 1 }
        if n > from {
            let away = ((from + n) as f64 / 2.0 - middle).abs() / loud.len() as f64;
            let score = (n - from) as f64 - away * 60.0;
            if score > best.0 { best = (score, (from, n)) }
        }
        n += 1;
    }
    ((best.1.0 * STEP).min(sound.len()), (best.1.1 * STEP).min(sound.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_put_where_the_voice_paused() {
        let voice = |ms: usize| (0..ms * RATE).map(|n| if n % 2 == 0 { 8_000 } else { -8_000 }).collect::<Vec<i16>>();
        let sound = [voice(400), vec![0; 50 * RATE], voice(100), vec![0; 150 * RATE], voice(500)].concat();
        let said = with_pause("v", "one two three | four five six", &sound, 1_000);
        assert_eq!(said.last_begins_ms, 600 + 550 + 1_000);
        assert_eq!(said.ends_ms, 600 + 550 + 1_000 + 500);
        assert_eq!((PAUSED.len(), WHOLE.len()), (30, 30));
    }
}
