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
    /// Scores of the phrases that came within the pruning margin, best first. Empty when the recogniser cannot score:
    /// judgement then rests on the text alone.
    pub scores: Vec<PhraseScore>,
}

impl Heard {
    /// A transcript without scores (typed words, scripted recognisers).
    pub fn text_only(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
