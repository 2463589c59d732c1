//! The provider of a proxied session: its responses as turns, its sound as sound that is audible, its words as lines that are shown.
//!
//! It hears the person and answers by itself; what it wants called goes the way of every call. Nothing it says decides anything: its
//! transcripts are lines of the chat, and what it is playing only takes decisions away from what is heard meanwhile.

use super::super::authority::Surface;
use super::super::event::{EventKind, Role};
use super::super::id::Ms;
use super::super::input::{Action, Remote, TurnEnd};
use super::Engine;
use super::echo::{Sounded, timeline};

/// A client is taken to play the provider's sound this much later than it was sent.
const CLIENT_DELAY_MS: u64 = 300;
/// Longest text of a response that is compared with what is heard, in bytes: more than a minute of talk.
const WORDS_MAX: usize = 2_048;

/// What the provider says just now, or said last.
#[derive(Debug, Default)]
pub(super) struct RemoteVoice {
    /// It writes down what the person says.
    pub(super) transcribes: bool,
    from: Ms,
    /// When its sound will have been played.
    until: Option<Ms>,
    words: String,
}

impl Engine {
    /// A provider hears and answers on the far side of the leg.
    pub(super) fn is_remote(&self) -> bool { self.leg.is_some_and(|l| l.remote) }

    pub(super) fn on_remote(&mut self, remote: Remote) {
        if !self.is_remote() {
            return;
        }
        match remote {
            Remote::Began => self.remote_began(),
            Remote::Sounds { ms } => self.remote_sounds(ms),
            Remote::Words(text) => {
                if self.remote.words.len() + text.len() <= WORDS_MAX { self.remote.words.push_str(&text) }
            }
            Remote::Silenced => self.remote_silenced(),
            Remote::Line { role, item, text } => {
                self.remote.transcribes |= role == Role::User;
                self.event(EventKind::Transcript { role, text, item, utterance: None, for_agent: true, surface: Surface::Provider });
            }
            Remote::Call { id, tool, arguments } => {
                let turn = self.turns.responding_id().unwrap_or_else(|| self.begin_remote_turn());
                self.on_agent_call(turn, id, tool, arguments);
            }
            Remote::Done(end) => self.remote_done(end),
            Remote::Away => self.say_plain("One moment, the line to the model is gone. I am trying to get it back."),
            Remote::Tools(tools) => self.client_tools = tools,
        }
    }

    fn remote_began(&mut self) {
        match self.turns.responding_id() {
            Some(_) => self.remote_turn_begins(),
            None => { self.begin_remote_turn(); }
        }
        if !self.remote_is_audible() { self.remote.words.clear() }
    }

    fn remote_sounds(&mut self, ms: u64) {
        if !self.remote_is_audible() { self.remote.from = self.now }
        let from = self.remote.until.map_or(self.now, |at| at.max(self.now));
        self.remote.until = Some(from + ms);
    }

    fn remote_silenced(&mut self) { self.remote.until = self.remote.until.map(|at| at.min(self.now)) }

    fn remote_done(&mut self, end: TurnEnd) {
        let failed = (end == TurnEnd::Failed).then(|| "the provider could not answer".to_string());
        if let Some(turn) = self.turns.responding_id() { self.on_agent_done(turn, failed) }
        // Calls that have begun go on; what has not begun is not begun for somebody who was interrupted.
        if matches!(end, TurnEnd::Interrupted | TurnEnd::Cancelled) { self.abandon_turn(end) }
    }

    /// The provider's sound can be heard, as far as is known here.
    pub(super) fn remote_is_audible(&self) -> bool { self.remote.until.is_some_and(|at| self.now < at + CLIENT_DELAY_MS) }

    /// Engine time of the last sample of it, while nothing of it plays.
    pub(super) fn remote_silent_since(&self) -> Option<Ms> { self.remote.until.map(|at| at + CLIENT_DELAY_MS).filter(|at| *at <= self.now) }

    /// Its words, spread over the time in which they sounded.
    pub(super) fn remote_sounded(&self) -> Vec<Sounded> {
        let Some(until) = self.remote.until.filter(|_| !self.remote.words.is_empty()) else { return Vec::new() };
        timeline(std::iter::once((self.remote.words.clone(), (until + CLIENT_DELAY_MS).saturating_sub(self.remote.from))), self.remote.from)
    }

    /// A person stops the voice: the provider's as well.
    pub(super) fn stop_remote_voice(&mut self) {
        if !self.is_remote() {
            return;
        }
        let turn = self.turns.responding_id();
        if turn.is_some() || self.remote_is_audible() {
            self.act(Action::CancelStep(turn.unwrap_or_default()));
        }
        self.remote_silenced();
    }

    /// Another leg, or none: what the provider was doing is over, and so are the client's tools.
    pub(super) fn remote_leg_changed(&mut self) {
        if self.is_remote() { self.abandon_turn(TurnEnd::Failed) }
        self.remote = RemoteVoice::default();
        self.client_tools.clear();
    }
}
