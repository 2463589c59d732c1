//! What a recogniser reports of one utterance: the words it wrote, and how well each sentence of the spoken grammar fits the sound.
//!
//! Nouns only. `stt` fills them in, `engine::intent` judges them.

/// Names one row of the phrase table that the recogniser was given (its index).
pub type PhraseId = u16;

/// One sentence of the spoken grammar, as the recogniser scores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Phrase {
    /// Index in the table.
    pub id: PhraseId,
    /// Every way a recogniser may write the sentence, without a leading space or a closing mark ("Plan mode on", "Plan Mode On").
    pub spellings: Vec<String>,
    /// True when a question mark at the end counts as part of the sentence.
    pub question: bool,
}

/// The score of one phrase on the sound of one utterance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhraseScore {
    /// Which phrase.
    pub id: PhraseId,
    /// Log-probability of the phrase (all spellings summed), in nats.
    pub ll: f32,
}

/// What was heard in one utterance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// The free transcript, trimmed. Empty when nothing was understood.
    pub text: String,
    /// Log-probability of the free transcript, in nats. 0 when the recogniser gives none.
    pub free_ll: f32,
    /// Number of tokens in the free transcript. 0 when unknown.
    pub tokens: u32,
    /// Probability that there was no speech at all, 0..=1. 0 when unknown.
    pub no_speech: f32,
    /// The sound begins in the middle of speech: words before it may be missing, see [`begins_in_speech`].
    pub clipped: bool,
    /// Scores of the phrases that came within the pruning margin, best first. Empty when the recogniser cannot score:
    /// judgement then rests on the text alone.
    pub scores: Vec<PhraseScore>,
}

impl Heard {
    /// A transcript without scores (typed words, scripted recognisers).
    pub fn text_only(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Written over noise rather than heard: better nothing than these words. Hiss, hum and a sine give a `no_speech` of 0.74 to 0.97
    /// with unsure words; old synthetic voices in babble of 5 dB give 0.5 to 0.7 with words of -1 nat a token and less, nearly all
    /// wrong. 135 commands from clean to 5 dB stayed below 0.61, all but one below 0.45.
    pub fn is_guess(&self) -> bool {
        let per_token = self.free_ll / (self.tokens + 1) as f32;
        let known = self.scores.first().is_some_and(|best| best.ll > KNOWN);
        self.no_speech > NOBODY && per_token < NOBODY_NATS || self.no_speech > HARDLY && per_token < HARDLY_NATS && !known
    }
}

/// Above this probability that nobody spoke, words of fewer nats a token than this are guesses.
const NOBODY: f32 = 0.7;
const NOBODY_NATS: f32 = -0.5;
/// Here they are guesses where no sentence of the grammar fits the sound either.
const HARDLY: f32 = 0.45;
const HARDLY_NATS: f32 = -1.0;
/// A sentence that fits this well was said: on babble alone the best reached -5.
const KNOWN: f32 = -4.5;

/// Frames of 20 ms that are looked at, at either end.
const EDGE: usize = 5;

/// Whether a sound begins in the middle of speech. An ear that opened in time has background before the first word and behind the
/// last: here the first 100 ms are nearly as loud as speech and far louder than the last 100 ms. `levels`: dBFS of each 20 ms.
/// In noise of 5 dB it cannot be told.
pub fn begins_in_speech(levels: &[f32]) -> bool {
    if levels.len() < 3 * EDGE { return false }
    let loudest = |part: &[f32]| part.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (front, back) = (loudest(&levels[..EDGE]), loudest(&levels[levels.len() - EDGE..]));
    let mut sorted = levels.to_vec();
    sorted.sort_by(f32::total_cmp);
    let speech = sorted[sorted.len() * 9 / 10];
    front > speech - FRONT_BELOW_DB && front > back + FRONT_OVER_DB
}

/// A front this far below the loud parts may still be speech.
const FRONT_BELOW_DB: f32 = 14.0;
/// Background differs from one end of an utterance to the other by less than this.
const FRONT_OVER_DB: f32 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(parts: &[(usize, f32)]) -> Vec<f32> { parts.iter().flat_map(|(n, level)| vec![*level; *n]).collect() }

    #[test]
    fn words_over_noise_are_guesses() {
        let heard = |free_ll, tokens, no_speech| Heard { text: "Words.".into(), free_ll, tokens, no_speech, ..Heard::default() };
        assert!(heard(-13.2, 9, 0.69).is_guess() && heard(-3.7, 2, 0.78).is_guess());
        assert!(!heard(-2.2, 4, 0.28).is_guess() && !heard(-1.3, 3, 0.5).is_guess() && !heard(-8.0, 5, 0.17).is_guess());
        let fits = Heard { scores: vec![PhraseScore { id: 0, ll: -3.0 }], ..heard(-4.6, 3, 0.5) };
        assert!(!fits.is_guess() && Heard { scores: Vec::new(), ..fits }.is_guess());
        assert!(!Heard::text_only("typed").is_guess());
    }

    #[test]
    fn a_missing_front_is_told_from_background() {
        assert!(!begins_in_speech(&sound(&[(15, -60.0), (40, -22.0), (12, -60.0)])), "cut well");
        assert!(!begins_in_speech(&sound(&[(15, -32.0), (40, -21.0), (12, -32.0)])), "cut well, in noise");
        assert!(begins_in_speech(&sound(&[(40, -22.0), (12, -60.0)])), "begins at once");
        assert!(begins_in_speech(&sound(&[(2, -50.0), (40, -22.0), (12, -45.0)])), "begins nearly at once");
        assert!(!begins_in_speech(&sound(&[(4, -22.0)])), "too short to tell");
    }
}
