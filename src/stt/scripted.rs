//! A recogniser that reads its answers from a list.
//!
//! For tests, demonstrations and reproducing a bug without a model. Answers in the order of the list, whatever the sound is.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::{Job, Recogniser, SttError};
use crate::engine::heard::Heard;

/// Answers the utterances in order; after the last one it has understood nothing.
#[derive(Debug, Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Result<Heard, SttError>>>,
}

impl Scripted {
    /// Answers with these transcripts, without scores.
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::answering(texts.into_iter().map(|text| Ok(Heard::text_only(text))))
    }

    /// Answers with exactly these, errors included.
    pub fn answering(answers: impl IntoIterator<Item = Result<Heard, SttError>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()) }
    }
}

impl Recogniser for Scripted {
    fn recognise(&self, _job: Job) -> BoxFuture<'_, Result<Heard, SttError>> {
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        ready(next.unwrap_or_else(|| Ok(Heard::default()))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_then_nothing_is_understood() {
        let script = Scripted::new(["Enter plan mode.", "No."]);
        let hear = || script.recognise(Job::new(vec![0; 10])).now_or_never().unwrap().unwrap().text;
        assert_eq!([hear(), hear(), hear()], ["Enter plan mode.", "No.", ""]);
    }
}
