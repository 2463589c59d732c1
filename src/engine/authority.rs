//! Who may decide. A [`UserAction`] is the only value that loosens anything, and only an authenticated door or the
//! engine's own spoken grammar can make one. Provider events, tool results and model text are other types.

use super::id::{QuestionId, UtteranceId};
use super::mode::Mode;

/// Where a decision came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The chat box or a command typed there, over the mirror socket.
    Chat,
    /// A REST call with the operator's token.
    Rest,
    /// A button on the page (mirror socket control message).
    Screen,
    /// The local recogniser on microphone audio.
    Voice,
    /// Typed text on `/v1/realtime` (may tighten, never loosen).
    Client,
    /// The gateway itself (restart, expiry, configuration).
    Gateway,
    /// The agent, by a tool that says how its own work stands. It decides nothing.
    Agent,
    /// What the provider of a proxied session wrote down. It decides nothing.
    Provider,
}

impl Surface {
    /// The word on the wire and in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Surface::Chat => "chat", Surface::Rest => "rest", Surface::Screen => "screen", Surface::Voice => "voice",
            Surface::Client => "client", Surface::Gateway => "gateway", Surface::Agent => "agent", Surface::Provider => "provider",
        }
    }

    /// The surface a word names.
    pub fn from_word(word: &str) -> Option<Surface> {
        [Surface::Chat, Surface::Rest, Surface::Screen, Surface::Voice, Surface::Client, Surface::Gateway, Surface::Agent, Surface::Provider]
            .into_iter().find(|s| s.word() == word)
    }
}

/// Provenance of a decision, kept in the log beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct By {
    /// Where it came in.
    pub surface: Surface,
    /// The utterance, when spoken.
    pub utterance: Option<UtteranceId>,
    /// The words, when spoken or typed as words. Empty otherwise.
    pub words: String,
}

impl By {
    /// The gateway itself.
    pub fn gateway() -> Self { Self { surface: Surface::Gateway, utterance: None, words: String::new() } }

    /// The agent, for what it says of its own work.
    pub fn agent() -> Self { Self { surface: Surface::Agent, utterance: None, words: String::new() } }

    /// `user` for every surface a person decides on, `gateway` for the gateway's own doing, `agent` for the agent's.
    pub fn actor(&self) -> &'static str {
        match self.surface { Surface::Gateway => "gateway", Surface::Agent => "agent", _ => "user" }
    }

    /// True for surfaces where the person sees the thing they decide on.
    pub fn has_screen(&self) -> bool { matches!(self.surface, Surface::Chat | Surface::Rest | Surface::Screen) }
}

/// What a person can decide.
#[derive(Clone, Debug, PartialEq)]
pub enum Decide {
    /// Enter plan mode.
    Enter {
        /// Why, in the person's words; may be empty.
        reason: String,
    },
    /// Leave plan mode; the plan is set aside.
    Leave,
    /// Approve a version.
    Approve {
        /// Which one; `None` is right only when exactly one waits.
        version: Option<u32>,
        /// Hash of the text the person saw; must match when given.
        hash: Option<String>,
    },
    /// Approve a version and carry it out in a mode (two decisions by one hand).
    ApproveIn {
        /// Which one; `None` is right only when exactly one waits.
        version: Option<u32>,
        /// Hash of the text the person saw; must match when given.
        hash: Option<String>,
        /// Default, bypass or autonomous.
        mode: Mode,
    },
    /// Choose a mode of the list.
    Mode(Mode),
    /// Send the plan back with comments.
    RequestChanges {
        /// Which one; `None` means the one that waits.
        version: Option<u32>,
        /// What to change; empty means "keep planning".
        comments: String,
    },
    /// Set a version aside and stay in plan mode.
    Dismiss {
        /// Which one; `None` means the one that waits.
        version: Option<u32>,
    },
    /// Take a dismissed newest version back into review.
    BackToReview {
        /// Which one.
        version: Option<u32>,
    },
    /// Write, change or take away a comment on the plan. It is kept at once and sent when changes are requested.
    Comment {
        /// The comment that is changed; `None` writes a new one.
        id: Option<u32>,
        /// The version it is about; `None` means the one that waits.
        version: Option<u32>,
        /// The step it is about, from 1.
        step: Option<u32>,
        /// Words of the plan it is about; may be empty.
        quote: String,
        /// The comment; empty takes it away.
        text: String,
    },
    /// Hand an approved plan to the agent again, to go on with.
    Continue {
        /// Which one; `None` means the one that is approved.
        version: Option<u32>,
    },
    /// An approved plan is over, whatever the agent says of it.
    MarkDone {
        /// Which one; `None` means the one that is approved.
        version: Option<u32>,
    },
    /// Answer a tool's question.
    AnswerTool {
        /// The request (equal to the question's id).
        request: QuestionId,
        /// True approves this one call.
        approve: bool,
    },
    /// Stop the voice.
    StopSpeech,
    /// End the turn (the voice too).
    StopTurn,
}

/// A decision by a person, with proof of where it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct UserAction {
    pub(super) decide: Decide,
    pub(super) by: By,
}

/// Held by a door that has checked the operator's credential. Only `server::auth` and the local command line make one
/// (`tests/it/tidy.rs` keeps it so).
#[derive(Clone, Copy, Debug)]
pub struct OperatorDoor {
    surface: Surface,
}

impl OperatorDoor {
    /// Says that the caller has authenticated the operator on this surface.
    ///
    /// A surface that is no control door (voice, a realtime client, the gateway) gets none.
    pub fn vouch(surface: Surface) -> Option<OperatorDoor> {
        matches!(surface, Surface::Chat | Surface::Rest | Surface::Screen).then_some(OperatorDoor { surface })
    }

    /// The same door under another of its surfaces (a chat line and a button arrive on one socket).
    pub fn as_surface(self, surface: Surface) -> OperatorDoor { OperatorDoor::vouch(surface).unwrap_or(self) }

    /// A decision that came in by this door.
    pub fn decide(self, decide: Decide, words: impl Into<String>) -> UserAction {
        UserAction { decide, by: By { surface: self.surface, utterance: None, words: words.into() } }
    }
}

impl UserAction {
    /// What was decided.
    pub fn decision(&self) -> &Decide { &self.decide }

    /// Where it came from.
    pub fn by(&self) -> &By { &self.by }

    /// By the spoken grammar, on microphone audio. Only the engine hears.
    pub(super) fn spoken(decide: Decide, utterance: UtteranceId, words: &str) -> Self {
        Self { decide, by: By { surface: Surface::Voice, utterance: Some(utterance), words: words.to_string() } }
    }

    /// A tightening typed by a realtime client. `None` for anything that could loosen.
    pub(super) fn typed_by_client(decide: Decide, words: &str) -> Option<Self> {
        matches!(decide, Decide::Enter { .. } | Decide::StopSpeech | Decide::StopTurn)
            .then(|| Self { decide, by: By { surface: Surface::Client, utterance: None, words: words.to_string() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_decided_is_told_apart() {
        assert_eq!([By::gateway().actor(), By::agent().actor()], ["gateway", "agent"]);
        let spoken = UserAction::spoken(Decide::StopTurn, UtteranceId(1), "what was said");
        assert_eq!((spoken.by().actor(), spoken.by().has_screen()), ("user", false));
        let door = OperatorDoor::vouch(Surface::Rest).map(|d| d.decide(Decide::Leave, "")).expect("REST is a control door");
        assert_eq!((door.by().actor(), door.by().has_screen()), ("user", true));
    }
}
