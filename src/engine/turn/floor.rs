//! Who has the floor: a person or playback. Voice makes playback hold its breath, and words decide whether it comes back.
//!
//! Owned by the engine's session, told by the ear and by words. Answers moves and makes none itself. What is held keeps its place,
//! so that a cough costs a pause and never a word.

use super::{EarSettings, Ms};
use crate::engine::grammar::words_of;
use crate::engine::id::UtteranceId;
use crate::engine::intent::Decision;
use crate::engine::junk::is_stock_closer;

/// What is to be done with playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It falls silent and keeps its place; nothing new begins.
    Hold,
    /// It goes on where it was.
    Resume,
    /// It is over.
    Cut,
}

/// What the words of an utterance over playback are to playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// There are none: a cough, a door, our own echo.
    None,
    /// They say "go on".
    Backchannel,
    /// Somebody wants the floor.
    Real,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nobody has spoken over it.
    #[default]
    Free,
    /// It holds its breath for this utterance. `sounding`: something was audible then.
    Held { utterance: UtteranceId, sounding: bool },
    /// It came back, and the utterance is still open.
    Back { utterance: UtteranceId, sounding: bool },
    /// It was cut, and nothing new begins until the utterance is closed.
    Taken { utterance: UtteranceId },
}

/// See the file's head.
#[derive(Debug, Default)]
pub struct Floor(State);

impl Floor {
    /// Nothing new may begin to be said.
    pub fn is_held(&self) -> bool { matches!(self.0, State::Held { .. } | State::Taken { .. }) }

    /// This utterance was spoken over something that was audible.
    pub fn was_over(&self, id: UtteranceId) -> bool {
        match self.0 {
            State::Held { utterance, sounding } | State::Back { utterance, sounding } => utterance == id && sounding,
            State::Taken { utterance } => utterance == id,
            State::Free => false,
        }
    }

    /// It was cut for this utterance.
    pub fn was_taken(&self, id: UtteranceId) -> bool { self.0 == State::Taken { utterance: id } }

    /// Enough voice while something plays (`sounding`) or is about to.
    pub fn over(&mut self, utterance: UtteranceId, sounding: bool) -> Option<Move> {
        if self.0 != State::Free {
            return None;
        }
        self.0 = State::Held { utterance, sounding };
        Some(Move::Hold)
    }

    /// The utterance it came back from goes on after all.
    pub fn goes_on(&mut self, id: UtteranceId) -> Option<Move> {
        let State::Back { utterance, sounding } = self.0 else { return None };
        if utterance != id {
            return None;
        }
        self.0 = State::Held { utterance, sounding };
        Some(Move::Hold)
    }

    /// So much voice that playback which cannot hold its breath is stopped without words.
    pub fn insists(&mut self, id: UtteranceId) -> Option<Move> {
        match self.0 {
            State::Held { utterance, .. } | State::Back { utterance, .. } if utterance == id => {
                self.0 = State::Taken { utterance };
                Some(Move::Cut)
            }
            _ => None,
        }
    }

    /// Words are known. `goes_on`: voice still does, so that only words that want the floor decide.
    pub fn words(&mut self, id: UtteranceId, words: Words, goes_on: bool) -> Option<Move> {
        match (self.0, words) {
            (State::Held { utterance, .. } | State::Back { utterance, .. }, Words::Real) if utterance == id => {
                self.0 = State::Taken { utterance };
                Some(Move::Cut)
            }
            (State::Held { utterance, sounding }, _) if utterance == id && !goes_on => {
                self.0 = State::Back { utterance, sounding };
                Some(Move::Resume)
            }
            _ => None,
        }
    }

    /// Time passes. `quiet_since`: end of the voice, while there is none. Without words it comes back at the latest
    /// [`EarSettings::false_interruption_ms`] after that.
    pub fn tick(&mut self, now: Ms, quiet_since: Option<Ms>, settings: &EarSettings) -> Option<Move> {
        let State::Held { utterance, sounding } = self.0 else { return None };
        if quiet_since.is_none_or(|at| now < at + settings.false_interruption_ms) {
            return None;
        }
        self.0 = State::Back { utterance, sounding };
        Some(Move::Resume)
    }

    /// The utterance is closed or thrown away.
    pub fn closed(&mut self) -> Option<Move> {
        let held = matches!(self.0, State::Held { .. });
        self.0 = State::Free;
        held.then_some(Move::Resume)
    }
}

/// Said while listening, wanting nothing, in the languages that have sentences.
const BACKCHANNELS: &[&str] = &[
    "mm", "mmm", "hm", "hmm", "mhm", "mmhm", "mmhmm", "uh", "huh", "uhhuh", "ok", "okay", "right", "yeah", "yes", "yep", "yup", "yea", "ya", "sure", "oh", "ah", "aha", "wow", "good", "great", "nice", "cool", "fine", "alright", "exactly", "true", "indeed", "really", "and", "um",
    // German
    "ja", "jaja", "genau", "klar", "stimmt", "gut", "richtig", "aha", "achso", "jo",
];
/// The same in several words.
const PHRASES: &[&str] = &["i see", "got it", "i got it", "all right", "of course", "makes sense", "sounds good", "that makes sense", "fair enough", "go on", "i know", "very good", "very well", "oh i see", "okay i see"];
/// One word that wants the floor, known even while voice goes on.
const INTERRUPTING: &[&str] = &["stop", "wait", "no", "cancel", "quiet", "dont", "nope", "enough", "hold", "pause", "silence", "help", "hey", "but", "stopp", "halt", "nein", "warte", "moment"];
/// A longer utterance of such words is somebody talking.
const BACKCHANNEL_MOST: usize = 4;

/// What words over playback are. `early`: they are the beginning of an utterance that goes on, whose last word may be half a
/// word; `None` when that decides nothing yet.
pub fn words_over_playback(text: &str, decision: &Decision, early: bool) -> Option<Words> {
    let words = words_of(text);
    let line = words.join(" ");
    let back = words.len() <= BACKCHANNEL_MOST && (PHRASES.contains(&line.as_str()) || words.iter().all(|w| BACKCHANNELS.contains(&w.as_str())));
    if early {
        let wants = words.iter().any(|w| INTERRUPTING.contains(&w.as_str())) || words.len() >= 2 && !back && !is_stock_closer(&words);
        return wants.then_some(Words::Real);
    }
    Some(match decision {
        // A bare yes while a question is being said is no answer yet; it lets the question go on.
        Decision::None | Decision::Neither { .. } if words.is_empty() || is_stock_closer(&words) && !back => Words::None,
        Decision::None | Decision::Neither { .. } if back => Words::Backchannel,
        _ => Words::Real,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::intent::{Moment, Open, decide_text};

    fn words(text: &str, open: Open, early: bool) -> Option<Words> {
        words_over_playback(text, &decide_text(text, &Moment { open, ..Moment::default() }), early)
    }

    #[test]
    fn backchannels_are_told_from_words() {
        for text in ["Mm-hmm.", "Uh-huh.", "Okay.", "Right.", "Yeah, yeah.", "I see.", "Oh, okay.", "Hmm.", "Got it."] {
            assert_eq!(words(text, Open::Nothing, false), Some(Words::Backchannel), "{text}");
            assert_eq!(words(text, Open::Nothing, true), None, "{text}");
        }
        for text in ["Stop.", "Wait.", "No.", "What about tomorrow?", "Okay, stop.", "Yeah, but not that one.", "Enter plan mode."] {
            assert_eq!(words(text, Open::Nothing, false), Some(Words::Real), "{text}");
            assert_eq!(words(text, Open::Nothing, true), Some(Words::Real), "{text}");
        }
        for text in ["", "[cough]", "Thank you.", "you"] {
            assert_eq!(words(text, Open::Nothing, false), Some(Words::None), "{text}");
            assert_eq!(words(text, Open::Nothing, true), None, "{text}");
        }
        assert_eq!(words("Tomorr", Open::Nothing, true), None, "half a word decides nothing");
        assert_eq!(words("Yes.", Open::Tool, false), Some(Words::Backchannel));
        assert_eq!(words("Yes, go ahead.", Open::Tool, false), Some(Words::Real));
        assert_eq!(words("No.", Open::Tool, false), Some(Words::Real));
    }

    #[test]
    fn it_holds_its_breath_once_and_words_decide() {
        let (one, settings) = (UtteranceId(1), EarSettings::default());
        let mut floor = Floor::default();
        assert_eq!(floor.over(one, true), Some(Move::Hold));
        assert_eq!(floor.over(one, true), None);
        assert_eq!(floor.words(one, Words::Backchannel, true), None, "not while voice goes on");
        assert_eq!(floor.tick(9_000, None, &settings), None, "voice that goes on is waited for");
        assert_eq!(floor.words(one, Words::Backchannel, false), Some(Move::Resume));
        assert_eq!(floor.goes_on(one), Some(Move::Hold));
        assert_eq!(floor.words(one, Words::Real, true), Some(Move::Cut));
        assert!(floor.is_held() && floor.was_taken(one));
        assert_eq!(floor.closed(), None);
        assert_eq!(floor.over(UtteranceId(2), true), Some(Move::Hold));
        assert_eq!(floor.tick(3_499, Some(1_000), &settings), None);
        assert_eq!(floor.tick(3_500, Some(1_000), &settings), Some(Move::Resume));
        assert_eq!(floor.words(UtteranceId(2), Words::Real, false), Some(Move::Cut), "words that come late still count");
    }
}
