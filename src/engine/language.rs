//! The language that is spoken, as far as the gateway itself understands it.
//!
//! A noun. The configuration names a language, `grammar` has its sentences, `intent` judges by them. A language without sentences of its
//! own is heard and passed on to the agent; nothing is approved, left or confirmed in it by voice.

/// Whose sentences are listened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// All of the spoken grammar.
    #[default]
    English,
    /// What tightens and asks, and a yes or no to a tool. Approving a plan and leaving plan mode need the chat or a screen.
    German,
    /// Any other: no sentences. Typed English works, and spoken English where it tightens.
    Other,
}

impl Language {
    /// The language of an ISO 639-1 code ("en", "de").
    pub fn of(code: &str) -> Self {
        match code { "en" => Self::English, "de" => Self::German, _ => Self::Other }
    }

    /// It has sentences that a recogniser can score; without a score none of them loosens anything.
    pub fn has_sentences(self) -> bool { self != Self::Other }

    /// The sentence that consents to a tool and the word that denies, as a prompt names them. `None`: neither is understood by voice.
    pub fn answers(self) -> Option<(&'static str, &'static str)> {
        match self { Self::English => Some(("yes, go ahead", "no")), Self::German => Some(("ja, mach das", "nein")), Self::Other => None }
    }
}
