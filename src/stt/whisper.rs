//! Whisper itself: one encoder pass, a free transcript, and the phrases of the grammar scored on the same pass.
//!
//! Owns the native model and its state. Called only by the recogniser's own process (`child`): native code reads the model and
//! the sound, and its crash must not be the gateway's. Uses the safe calls of whisper-rs; its grammar, its safe abort callback
//! and its high-level transcription are not used (the first two are broken in 0.16, the third cannot score).
#![allow(clippy::disallowed_methods, reason = "a recognition is broken off by the wall")]

use std::time::Instant;

use whisper_rs::{
    FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters, WhisperError, WhisperState, get_lang_id,
};

use super::transcript;
use super::trie::{Decoder, Marks, Trie, log_sum_exp};
use super::wire::{SentPhrase, Timings};
use super::{MAX_SAMPLES, SAMPLE_RATE_HZ};
use crate::engine::heard::{Heard, begins_in_speech};
use crate::media::level::rms_dbfs;

/// Positions of the encoder that an ordinary command gets: 512 x 20 ms. Below it tiny models loop (measured at 384 and 256).
const SMALL_AUDIO_CTX: usize = 512;
/// What the model was trained with: 30 s.
const FULL_AUDIO_CTX: usize = 1500;
/// Whisper makes nonsense of less than 100 ms.
const MIN_SAMPLES: usize = SAMPLE_RATE_HZ / 10;
/// Peaks below this (-72 dBFS) are digital silence, whatever Whisper would like to read into them.
const SILENCE_PEAK: u16 = 8;
/// 20 ms.
const LEVEL_SAMPLES: usize = SAMPLE_RATE_HZ / 50;
/// A token is decoded in 3 ms. A second thread saves a third of that on an idle machine; where another program wants the core, the two
/// wait for each other at every layer: measured 1.7 s for a transcript instead of 20 ms.
const DECODE_THREADS: usize = 1;
/// Where the transcript is itself a sentence of the grammar, others are followed this many nats below it: as far as one that denies
/// could still stand against it. Without this bound the harmless ones, which may be far from what is written, cost 50 ms.
const SAID_MARGIN: f32 = 5.0;
/// A longer transcript is not scored: no rule of the judge takes one of more tokens for a sentence of the grammar.
const SCORED_TOKENS: usize = crate::engine::intent::RULES.tokens as usize;
/// Tokens of the longest spelling.
const MAX_PHRASE_TOKENS: usize = 48;

/// Why Whisper cannot do it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The native library refused.
    #[error("whisper: {0}")]
    Native(#[from] WhisperError),
    /// A phrase is too long or empty.
    #[error("the phrase {0:?} cannot be scored")]
    Phrase(String),
    /// The model does not know the language.
    #[error("this model does not hear the language {0:?}")]
    Language(String),
    /// The vocabulary lacks something every Whisper has.
    #[error("the model's vocabulary has no single token for {0:?}")]
    Vocabulary(&'static str),
}

/// A loaded model, ready to listen. Not to be shared: one utterance at a time.
pub struct Whisper {
    context: WhisperContext,
    state: WhisperState,
    threads: usize,
    audio_ctx: usize,
    marks: Marks,
    space: i32,
    /// Tokens that are never part of the words: marks of the model, sounds written as symbols.
    masked: Vec<bool>,
    trie: Trie,
}

impl Whisper {
    /// Loads a model out of bytes that were checked, and prepares the phrases.
    ///
    /// # Errors
    /// [`EngineError`] when the native library refuses the model or a phrase cannot be tokenised.
    pub fn load(model: &[u8], threads: usize, phrases: &[SentPhrase]) -> Result<Self, EngineError> {
        let mut parameters = WhisperContextParameters::new();
        // Flash attention is slower on CPUs for these sizes (measured), and there is no GPU here.
        parameters.use_gpu(false).flash_attn(false);
        let context = WhisperContext::new_from_buffer_with_params(model, parameters)?;
        let marks = Marks {
            end: context.token_eot(),
            stop: single(&context, ".")?,
            bang: single(&context, "!")?,
            question: single(&context, "?")?,
        };
        let trie = build_trie(&context, phrases)?;
        let space = single(&context, " ")?;
        let (masked, state) = (mask(&context), context.create_state()?);
        let threads = threads.clamp(1, 64);
        let mut whisper = Self { context, state, threads, audio_ctx: 0, marks, space, masked, trie };
        whisper.set_audio_ctx(SMALL_AUDIO_CTX)?;
        Ok(whisper)
    }

    /// Recognises one utterance (mono i16, 16 kHz; what is beyond 30 s is not listened to).
    ///
    /// # Errors
    /// [`EngineError`]; the next utterance may be tried all the same.
    pub fn hear(&mut self, samples: &[i16], score: bool, language: &str) -> Result<(Heard, Timings), EngineError> {
        let samples = &samples[..samples.len().min(MAX_SAMPLES)];
        let prompt = self.prompt(language)?;
        let mut ms = Timings::default();
        if samples.len() < MIN_SAMPLES || samples.iter().all(|sample| sample.unsigned_abs() <= SILENCE_PEAK) {
            return Ok((Heard { no_speech: 1.0, ..Heard::default() }, ms));
        }
        self.set_audio_ctx(audio_ctx_for(samples.len()))?;
        let sound: Vec<f32> = samples.iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
        let mut watch = Watch(Instant::now());
        self.state.pcm_to_mel(&sound, self.threads)?;
        ms.mel = watch.lap();
        self.state.encode(0, self.threads)?;
        ms.encode = watch.lap();
        let (no_speech, past, last) = self.begin(&prompt)?;
        let free = self.transcribe(past, most_tokens(samples.len()))?;
        ms.free = watch.lap();
        let mut heard = self.report(&free, no_speech);
        let levels: Vec<f32> = samples.chunks_exact(LEVEL_SAMPLES).map(rms_dbfs).collect();
        heard.clipped = begins_in_speech(&levels);
        // So many words are no command, whatever they sound like.
        if score && free.tokens.len() <= SCORED_TOKENS && !self.trie.is_empty() {
            let mut steps = Steps { state: &mut self.state, threads: DECODE_THREADS };
            // Decoding the last start token again brings the odds of the first word back.
            steps.step(last, past - 1)?;
            let widest = if self.trie.holds(&free.tokens, self.marks) { SAID_MARGIN } else { f32::INFINITY };
            heard.scores = self.trie.score(&mut steps, past, free.ll, widest, self.marks)?;
        }
        if heard.is_guess() {
            heard.text.clear();
        }
        ms.score = watch.lap();
        Ok((heard, ms))
    }

    /// Encodes a second of silence.
    ///
    /// # Errors
    /// [`EngineError`] when the native library fails.
    pub fn warm_up(&mut self) -> Result<(), EngineError> {
        self.state.pcm_to_mel(&[0.0; SAMPLE_RATE_HZ], self.threads)?;
        Ok(self.state.encode(0, self.threads)?)
    }

    /// Tells the state how many encoder positions to use; it keeps the number for the low-level calls. A run over 100 ms does
    /// it without encoding anything: the native loop ends before its first pass.
    fn set_audio_ctx(&mut self, positions: usize) -> Result<(), EngineError> {
        if self.audio_ctx == positions {
            return Ok(());
        }
        let mut parameters = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
        parameters.set_audio_ctx(positions as i32);
        parameters.set_duration_ms(100);
        parameters.set_n_threads(self.threads as i32);
        parameters.set_no_timestamps(true);
        parameters.set_print_progress(false);
        parameters.set_print_realtime(false);
        parameters.set_temperature_inc(0.0);
        self.state.full(parameters, &[0.0; 2 * MIN_SAMPLES])?;
        self.audio_ctx = positions;
        Ok(())
    }

    /// The tokens that say what to do: transcribe this language, no time stamps.
    fn prompt(&self, language: &str) -> Result<Vec<i32>, EngineError> {
        let mut prompt = vec![self.context.token_sot()];
        if self.context.is_multilingual() {
            let id = get_lang_id(language).ok_or_else(|| EngineError::Language(language.to_owned()))?;
            prompt.extend([self.context.token_lang(id), self.context.token_transcribe()]);
        } else if language != "en" {
            return Err(EngineError::Language(language.to_owned()));
        }
        prompt.push(self.context.token_not());
        Ok(prompt)
    }

    /// Decodes the prompt; gives the probability of no speech, the number of tokens and the last of them. Each token alone:
    /// `get_logits` shows the first row of a batch, and only the last one of a batch is filled.
    fn begin(&mut self, prompt: &[i32]) -> Result<(f32, usize, i32), EngineError> {
        let mut no_speech = 0.0;
        let mut steps = Steps { state: &mut self.state, threads: DECODE_THREADS };
        for (past, token) in prompt.iter().enumerate() {
            steps.step(*token, past)?;
            if past == 0 {
                let logits = steps.logits()?;
                let odds = logits.get(self.context.token_nosp() as usize).map(|odds| odds - log_sum_exp(logits));
                no_speech = odds.map_or(0.0, f32::exp);
            }
        }
        Ok((no_speech, prompt.len(), prompt.last().copied().unwrap_or_default()))
    }

    /// The most likely token after the other, until the end of text, a loop or `most` tokens.
    fn transcribe(&mut self, past: usize, most: usize) -> Result<Free, EngineError> {
        let mut free = Free::default();
        let mut parts = Vec::new();
        let mut steps = Steps { state: &mut self.state, threads: DECODE_THREADS };
        loop {
            let logits = steps.logits()?;
            let first = free.tokens.is_empty();
            let allowed = |token: usize| {
                let empty = first && (token == self.marks.end as usize || token == self.space as usize);
                !empty && !self.masked.get(token).copied().unwrap_or(true)
            };
            let best = (0..logits.len()).filter(|token| allowed(*token)).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            let best = best.unwrap_or(self.marks.end as usize);
            parts.push(logits[best] - log_sum_exp(logits));
            if best as i32 == self.marks.end || free.tokens.len() >= most {
                break;
            }
            free.tokens.push(best as i32);
            if let Some(end) = transcript::loop_starts(&free.tokens) {
                free.tokens.truncate(end);
                parts.truncate(end);
                break;
            }
            steps.step(best as i32, past + free.tokens.len() - 1)?;
        }
        free.ll = parts.iter().sum();
        Ok(free)
    }

    fn report(&self, free: &Free, no_speech: f32) -> Heard {
        let bytes: Vec<u8> =
            free.tokens.iter().filter_map(|token| self.context.token_to_bytes(*token).ok()).flatten().copied().collect();
        let text = transcript::tidy(&String::from_utf8_lossy(&bytes));
        Heard { text, free_ll: free.ll, tokens: free.tokens.len() as u32, no_speech, clipped: false, scores: Vec::new() }
    }
}

/// A free transcript.
#[derive(Default)]
struct Free {
    tokens: Vec<i32>,
    /// Log-probability, in nats.
    ll: f32,
}

struct Steps<'a> {
    state: &'a mut WhisperState,
    threads: usize,
}

impl Decoder for Steps<'_> {
    type Error = EngineError;

    fn step(&mut self, token: i32, past: usize) -> Result<(), EngineError> {
        Ok(self.state.decode(&[token], past, self.threads)?)
    }

    fn logits(&self) -> Result<&[f32], EngineError> {
        Ok(self.state.get_logits()?)
    }
}

struct Watch(Instant);

impl Watch {
    fn lap(&mut self) -> f32 {
        let now = Instant::now();
        (now - std::mem::replace(&mut self.0, now)).as_secs_f32() * 1e3
    }
}

/// Encoder positions for that much sound: 50 a second and 200 to spare, in steps of 64, at least 512.
fn audio_ctx_for(samples: usize) -> usize {
    let needed = (50 * samples).div_ceil(SAMPLE_RATE_HZ) + 200;
    needed.next_multiple_of(64).clamp(SMALL_AUDIO_CTX, FULL_AUDIO_CTX)
}

/// The free transcript may have 24 tokens and 8 more for each second; nobody speaks faster.
fn most_tokens(samples: usize) -> usize {
    (24 + 8 * samples / SAMPLE_RATE_HZ).min(220)
}

/// The one token of a short text.
fn single(context: &WhisperContext, text: &'static str) -> Result<i32, EngineError> {
    match context.tokenize(text, 8)?[..] {
        [token] => Ok(token),
        _ => Err(EngineError::Vocabulary(text)),
    }
}

fn build_trie(context: &WhisperContext, phrases: &[SentPhrase]) -> Result<Trie, EngineError> {
    let mut trie = Trie::default();
    for phrase in phrases {
        let tokens = |text: &String| match context.tokenize(&format!(" {}", text.trim()), MAX_PHRASE_TOKENS) {
            Ok(tokens) if !tokens.is_empty() && !text.trim().is_empty() => Ok(tokens),
            _ => Err(EngineError::Phrase(text.clone())),
        };
        let spellings = phrase.spellings.iter().map(tokens).collect::<Result<Vec<_>, _>>()?;
        trie.add(phrase.id, phrase.question, phrase.margin.clamp(0.0, 30.0), &spellings);
    }
    Ok(trie)
}

fn mask(context: &WhisperContext) -> Vec<bool> {
    const SYMBOLS: &str = "#()*+/:;<=>@[\\]^_`{|}~\"-「」『』♩♪♫♬♭♮♯";
    let symbols = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        !text.is_empty() && text.chars().all(|c| SYMBOLS.contains(c))
    };
    let end = context.token_eot();
    (0..context.n_vocab()).map(|token| token > end || (token < end && context.token_to_bytes(token).is_ok_and(symbols))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoder_gets_enough_positions() {
        assert_eq!(audio_ctx_for(1_600), 512);
        assert_eq!(audio_ctx_for(6 * 16_000), 512);
        assert_eq!(audio_ctx_for(10 * 16_000), 704);
        assert_eq!(audio_ctx_for(30 * 16_000), 1_500);
    }
}
