//! A second half that comes after the endpoint joins the turn: nothing was answered yet, so both are one turn.

use super::super::authority::Surface;
use super::super::event::{EventKind, Role};
use super::super::id::{ItemId, Ms};
use super::super::conversation::Item;
use super::super::input::{Count, CutWhy, TurnEnd};
use super::super::language::Language;
use super::super::turn::{Utterance, endpoint::is_unfinished};
use super::Engine;

/// The last turn of ordinary speech.
#[derive(Clone, Debug)]
pub(super) struct LastTurn {
    /// Its line.
    pub(super) item: ItemId,
    /// Its words.
    pub(super) text: String,
    /// Engine time of its last voice.
    pub(super) ended_at: Ms,
}

impl Engine {
    /// Speech that began then is the second half of the last turn: it came soon, and no sample of an answer was heard before it.
    pub(super) fn may_join(&self, began_at: Ms) -> bool {
        let within = self.config.ear.join_ms;
        self.ears.create_response && self.ears.last.as_ref().is_some_and(|l| began_at >= l.ended_at && began_at <= l.ended_at + within && self.mouth.sounded_at().is_none_or(|at| at <= l.ended_at))
    }

    /// The step that answers the first half is cancelled, what it asked for is withdrawn, and both halves are answered as one.
    pub(super) fn join_turn(&mut self, utterance: &Utterance, text: &str, item: ItemId) {
        let Some(first) = self.ears.last.take() else { return };
        self.count(Count::JoinedTurn);
        self.count(Count::Intent { decision: "none", reason: "accepted" });
        self.abandon_turn(TurnEnd::Interrupted);
        self.end_agent_speech();
        self.cut_speech(CutWhy::Cancelled);
        let joined = joined(self.language(), &first.text, text);
        let line = |text: &str, item: &ItemId| EventKind::Transcript { role: Role::User, text: text.to_string(), item: item.clone(), utterance: Some(utterance.id), for_agent: true, surface: Surface::Voice };
        // Where calls were made in between, the whole comes after them: an agent answers what stands last.
        let last = matches!(self.snap.items.last(), Some(Item::User { id, .. }) if id == &first.item);
        let item = if last { first.item } else { self.event(line("", &first.item)); item };
        self.event(line(&joined, &item));
        self.ears.last = Some(LastTurn { item, text: joined, ended_at: utterance.last_at });
        self.new_user_turn();
    }
}

/// Two halves as one text. A recogniser ends every piece with a full stop and begins it with a capital, also in mid-sentence.
fn joined(language: Language, first: &str, second: &str) -> String {
    let (first, second) = (first.trim(), second.trim());
    let bare = first.trim_end_matches(['.', '…', '-', '–', '—']);
    if !is_unfinished(language, first) && !is_unfinished(language, bare) {
        return format!("{first} {second}");
    }
    let mut letters = second.chars();
    let lowered: String = letters.next().map(|c| c.to_lowercase().collect::<String>()).unwrap_or_default() + letters.as_str();
    let first_word = second.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if first_word == "I" || first_word.len() > 1 && first_word.chars().all(char::is_uppercase) { format!("{bare} {second}") } else { format!("{bare} {lowered}") }
}

#[cfg(test)]
mod tests {
    use super::Language;

    fn joined(first: &str, second: &str) -> String { super::joined(Language::English, first, second) }

    #[test]
    fn halves_are_joined_as_they_were_meant() {
        assert_eq!(joined("Add milk and.", "Eggs to my notes."), "Add milk and eggs to my notes.");
        assert_eq!(joined("I wanted to...", "I forgot."), "I wanted to I forgot.");
        assert_eq!(joined("It rains.", "What now?"), "It rains. What now?");
    }
}
