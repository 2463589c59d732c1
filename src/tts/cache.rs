//! A small memory in front of a voice: short prompts ("Plan mode is on.") are spoken again without synthesis.
//!
//! Owns the remembered sounds, least recently used out first. Wraps any voice. Never holds more than its two bounds.

use super::{Speech, TtsError, Voice};
use futures_util::future::{BoxFuture, FutureExt};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest text that is remembered, in bytes: longer ones are answers, not prompts.
pub const MAX_CACHED_TEXT: usize = 160;
/// Most sounds.
const MAX_ENTRIES: usize = 64;
/// Most samples in all of them: 8 MB, about 3 minutes at 24 kHz.
const MAX_SAMPLES: usize = 4_000_000;

/// A voice with a memory.
pub struct Cached {
    voice: Arc<dyn Voice>,
    /// Oldest use first.
    entries: Mutex<VecDeque<(String, Speech)>>,
}

impl Cached {
    /// Puts a memory in front of a voice.
    pub fn new(voice: Arc<dyn Voice>) -> Self {
        Self { voice, entries: Mutex::default() }
    }

    /// Speaks these texts ahead, one after the other, so that their first use costs nothing. Begins `later`, because what starts
    /// a voice has better to do just then; what fails is left for its first use.
    pub async fn prewarm(&self, texts: Vec<String>, later: Duration) {
        tokio::time::sleep(later).await;
        for text in texts {
            if text.len() <= MAX_CACHED_TEXT && !self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(t, _)| *t == text) {
                let _ = self.synthesise(text).await;
            }
        }
    }

    fn recall(&self, text: &str) -> Option<Speech> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entries.iter().position(|(t, _)| t == text)?;
        let entry = entries.remove(place)?;
        let speech = entry.1.clone();
        entries.push_back(entry);
        Some(speech)
    }

    fn remember(&self, text: String, speech: &Speech) {
        if text.len() > MAX_CACHED_TEXT || speech.samples.len() > MAX_SAMPLES / 4 {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(t, _)| *t != text);
        entries.push_back((text, speech.clone()));
        let held = |e: &VecDeque<(String, Speech)>| e.iter().map(|(_, s)| s.samples.len()).sum::<usize>();
        while entries.len() > MAX_ENTRIES || held(&entries) > MAX_SAMPLES {
            entries.pop_front();
        }
    }
}

impl Voice for Cached {
    fn rate_hz(&self) -> u32 {
        self.voice.rate_hz()
    }

    fn name(&self) -> &str {
        self.voice.name()
    }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        async move {
            if let Some(speech) = self.recall(&text) {
                return Ok(speech);
            }
            let speech = self.voice.synthesise(text.clone()).await?;
            self.remember(text, &speech);
            Ok(speech)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::ready;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Voice for Counting {
        fn rate_hz(&self) -> u32 {
            8_000
        }
        fn name(&self) -> &str {
            "counting"
        }
        fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            ready(Ok(Speech { samples: vec![1; text.len() * 10_000], rate_hz: 8_000 })).boxed()
        }
    }

    #[tokio::test]
    async fn prompts_are_ready_before_they_are_asked_for() {
        let counting = Arc::new(Counting::default());
        let voice = Cached::new(counting.clone());
        voice.prewarm(vec!["Plan mode is on.".into(), "x".repeat(200), "Plan mode is on.".into()], Duration::ZERO).await;
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        voice.synthesise("Plan mode is on.".into()).await.unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn short_prompts_are_spoken_once_and_the_memory_is_bounded() {
        let counting = Arc::new(Counting::default());
        let voice = Cached::new(counting.clone());
        let calls = || counting.0.load(Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(voice.synthesise("hello".into()).await.unwrap().samples.len(), 50_000);
        }
        assert_eq!(calls(), 1);
        for n in 0..200 {
            voice.synthesise(format!("prompt {n}")).await.unwrap();
            voice.synthesise("hello".into()).await.unwrap();
        }
        assert_eq!(calls(), 201, "what is used stays");
        let held: usize = voice.entries.lock().unwrap().iter().map(|(_, s)| s.samples.len()).sum();
        assert!(held <= MAX_SAMPLES && voice.entries.lock().unwrap().len() <= MAX_ENTRIES);
        voice.synthesise("x".repeat(200)).await.unwrap();
        voice.synthesise("x".repeat(200)).await.unwrap();
        assert_eq!(calls(), 203, "long texts are not remembered");
    }
}
