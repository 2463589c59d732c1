//! THE SEAM between a client's socket and a session: sessions of either kind speak the GA dialect of OpenAI Realtime and nothing else; a
//! client that speaks another has its frames translated here, before anything reads them and after everything has written them.
//!
//! Owns which dialect a socket speaks and what a translation left over. Both loops (`socket`, `proxy/line`) call it. It judges nothing:
//! what a translated event may do is decided where every event is. For a client of GA it passes frames through: no copy, no look.

use std::collections::VecDeque;

use axum::extract::ws::Utf8Bytes;
use axum::http::HeaderMap;

use crate::dialect::openai_beta::{self, Told};

/// What a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// OpenAI Realtime, GA.
    #[default]
    Ga,
    /// OpenAI Realtime as it was in its beta.
    Beta,
}

impl Speaks {
    /// A client of the protocol's beta says so by a header, a browser's by a subprotocol that is not answered.
    pub fn of(headers: &HeaderMap) -> Self {
        let says = |name: &str, word: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(',')).any(|given| given.trim() == word);
        if says("openai-beta", "realtime=v1") || says("sec-websocket-protocol", "openai-beta.realtime-v1") { Self::Beta } else { Self::Ga }
    }
}

/// See the file's head.
pub(super) struct Seam {
    speaks: Speaks,
    /// Frames for the client beyond the one that was asked for.
    waiting: VecDeque<Utf8Bytes>,
}

impl Seam {
    pub(super) fn new(speaks: Speaks) -> Self { Self { speaks, waiting: VecDeque::new() } }

    /// One frame of the client: `each` gets what it means, in GA.
    pub(super) fn client(&mut self, frame: Utf8Bytes, each: &mut dyn FnMut(Utf8Bytes)) {
        match self.speaks {
            Speaks::Ga => each(frame),
            Speaks::Beta => each(openai_beta::from_client(&frame).map_or(frame, Utf8Bytes::from)),
        }
    }

    /// The next frame for the client; `more` gives the session's. `None`: there is none, though `more` may have had some.
    pub(super) fn next(&mut self, more: &mut dyn FnMut() -> Option<Utf8Bytes>) -> Option<Utf8Bytes> {
        if self.speaks == Speaks::Ga { return more() }
        loop {
            if let Some(frame) = self.waiting.pop_front() { return Some(frame) }
            let frame = more()?;
            match openai_beta::to_client(&frame) {
                Told::Same => return Some(frame),
                Told::Text(text) => return Some(text.into()),
                Told::Nothing => {}
            }
        }
    }

    /// Frames of its own wait for the client.
    pub(super) fn waits(&self) -> bool { !self.waiting.is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ga_gets_the_very_bytes() {
        let mut seam = Seam::new(Speaks::Ga);
        let frame = Utf8Bytes::from("not even JSON".to_string());
        let at = frame.as_ptr();
        let mut got = None;
        seam.client(frame, &mut |event| got = Some(event));
        assert_eq!(got.as_ref().map(|event| event.as_ptr()), Some(at));
        assert_eq!(seam.next(&mut || got.take()).map(|event| event.as_ptr()), Some(at));
    }

    #[test]
    fn what_the_beta_does_not_have_is_passed_over() {
        let mut seam = Seam::new(Speaks::Beta);
        let mut events = VecDeque::from([r#"{"type":"conversation.item.done","item":{}}"#, r#"{"type":"response.output_audio.delta","delta":"AA"}"#].map(Utf8Bytes::from_static));
        assert_eq!(seam.next(&mut || events.pop_front()).as_deref(), Some(r#"{"type":"response.audio.delta","delta":"AA"}"#));
        assert_eq!(seam.next(&mut || events.pop_front()), None);
        let mut got = Vec::new();
        seam.client(Utf8Bytes::from_static(r#"{"type":"session.update","session":{"voice":"v"}}"#), &mut |event| got.push(event.to_string()));
        assert_eq!(got, [r#"{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"v"}}}}"#]);
    }
}
