//! A voice with another behind it: what the first cannot say, the second says, instead of silence.
//!
//! Owns the choice, text by text, and says once in the log when it is made. Wraps any two voices. Never hides that neither spoke.

use super::{Speech, TtsError, Voice};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two voices.
pub struct WithFallback {
    first: Arc<dyn Voice>,
    second: Arc<dyn Voice>,
    told: AtomicBool,
}

impl WithFallback {
    /// `first` speaks; `second` does what it cannot.
    pub fn new(first: Arc<dyn Voice>, second: Arc<dyn Voice>) -> Self { Self { first, second, told: AtomicBool::new(false) } }
}

impl Voice for WithFallback {
    fn rate_hz(&self) -> u32 { self.first.rate_hz() }

    fn name(&self) -> &str { self.first.name() }

    fn synthesise(&self, text: String) -> BoxFuture<'_, Result<Speech, TtsError>> {
        async move {
            let why = match self.first.synthesise(text.clone()).await {
                // A text that is too long for one is too long for all.
                Err(why) if !matches!(why, TtsError::TooLong { .. }) => why,
                result => return result,
            };
            match self.second.synthesise(text).await {
                Ok(speech) => {
                    if !self.told.swap(true, Ordering::Relaxed) {
                        tracing::warn!("{} speaks instead of {}: {why}", self.second.name(), self.first.name());
                    }
                    Ok(speech.at_rate(self.first.rate_hz()))
                }
                Err(_) => Err(why),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::ready;

    struct Fixed(Result<Speech, TtsError>);

    impl Voice for Fixed {
        fn rate_hz(&self) -> u32 { 16_000 }
        fn name(&self) -> &str { "fixed" }
        fn synthesise(&self, _: String) -> BoxFuture<'_, Result<Speech, TtsError>> { ready(self.0.clone()).boxed() }
    }

    fn voice(result: Result<Speech, TtsError>) -> Arc<dyn Voice> { Arc::new(Fixed(result)) }

    #[tokio::test]
    async fn the_second_speaks_only_when_the_first_cannot_and_at_its_rate() {
        let sound = |rate_hz| Ok(Speech { samples: vec![100; 800], rate_hz });
        let broken = || Err(TtsError::Failed { reason: "first".into() });
        let speak = async |a, b| WithFallback::new(voice(a), voice(b)).synthesise("x".into()).await;
        assert_eq!(speak(sound(16_000), broken()).await, sound(16_000));
        let found = speak(broken(), sound(8_000)).await.unwrap();
        assert!(found.rate_hz == 16_000 && found.samples.len() > 1_500, "{} at {}", found.samples.len(), found.rate_hz);
        assert_eq!(speak(broken(), Err(TtsError::Failed { reason: "second".into() })).await, broken(), "the first's trouble is the one to mend");
        assert_eq!(speak(Err(TtsError::TooLong { length: 9_000 }), sound(8_000)).await, Err(TtsError::TooLong { length: 9_000 }));
    }
}
