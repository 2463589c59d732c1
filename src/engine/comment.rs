//! Comments on a plan under review: kept the moment they are written, sent when changes are requested, carried to the next version
//! while what they are about is still there.
//!
//! Nouns and their rules; `session/review` writes them. Nothing here is ever deleted by a new version.

use super::authority::By;
use super::plan::{PlanVersion, bare, same_words};

/// Longest comment, in characters.
pub const COMMENT_CHARS: usize = 4_000;
/// Longest quoted part of a plan, in characters. Chosen: a paragraph.
pub const QUOTE_CHARS: usize = 1_000;
/// Most comments that are open at once.
pub const OPEN_MAX: usize = 100;
/// Comments a state keeps; the oldest that are not open go first.
pub const COMMENTS_MAX: usize = 300;

/// Where a comment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentState {
    /// Written and not yet sent.
    Open,
    /// Sent to the agent with a request for changes.
    Sent,
    /// What it was about is not in the newest version; kept and shown, sent only if a person says so by writing it anew.
    Outdated,
    /// Its writer took it away.
    Removed,
}

impl CommentState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            CommentState::Open => "open", CommentState::Sent => "sent", CommentState::Outdated => "outdated", CommentState::Removed => "removed",
        }
    }

    /// The state a word names.
    pub fn from_word(word: &str) -> Option<CommentState> {
        [CommentState::Open, CommentState::Sent, CommentState::Outdated, CommentState::Removed].into_iter().find(|s| s.word() == word)
    }
}

/// One comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// 1 and up, unique in the conversation.
    pub id: u32,
    /// The version it stands at now.
    pub version: u32,
    /// The step it is about, from 1; `None` for the plan as a whole.
    pub step: Option<u32>,
    /// Words of the plan it is about: the step's title, or what was quoted. Empty for the plan as a whole.
    pub quote: String,
    /// At most 4,000 characters.
    pub text: String,
    /// Where it stands.
    pub state: CommentState,
    /// Who wrote it last.
    pub by: By,
}

impl Comment {
    /// The comment as it stands at a newer version: at the same step or quote where that is still there, outdated where not.
    pub fn carried_to(&self, next: &PlanVersion) -> Comment {
        let mut carried = self.clone();
        if self.step.is_some() {
            match next.steps.iter().position(|s| same_words(&s.title, &self.quote)) {
                Some(at) => (carried.version, carried.step) = (next.version, Some(at as u32 + 1)),
                None => carried.state = CommentState::Outdated,
            }
        } else if self.quote.is_empty() || holds_quote(next, &self.quote) {
            carried.version = next.version;
        } else {
            carried.state = CommentState::Outdated;
        }
        carried
    }

    /// As the agent is told it.
    pub fn told(&self) -> String {
        match (self.step, self.quote.is_empty()) {
            (Some(step), _) => format!("On step {step} (\"{}\"): {}", self.quote, self.text),
            (None, false) => format!("On \"{}\": {}", self.quote, self.text),
            (None, true) => self.text.clone(),
        }
    }
}

/// True when the plan holds these words somewhere, whatever the white space.
pub fn holds_quote(plan: &PlanVersion, quote: &str) -> bool {
    let mut all: Vec<&str> = vec![&plan.title, &plan.summary];
    plan.steps.iter().for_each(|s| all.extend([s.title.as_str(), s.detail.as_str()]));
    all.extend(plan.open_questions.iter().chain(&plan.risks).map(String::as_str));
    let quote = bare(quote);
    all.iter().any(|text| bare(text).contains(&quote))
}

/// Several comments as one message, a line each.
pub fn told(comments: &[Comment]) -> String { comments.iter().map(Comment::told).collect::<Vec<_>>().join("\n") }

#[cfg(test)]
mod tests {
    use super::super::plan::Step;
    use super::*;

    fn plan(version: u32, steps: &[&str]) -> PlanVersion {
        let steps = steps.iter().map(|t| Step { title: (*t).into(), detail: "with care".into(), ..Step::default() }).collect();
        PlanVersion { version, title: "Shop".into(), summary: "Shop. For eggs.".into(), steps, ..PlanVersion::default() }
    }

    fn comment(step: Option<u32>, quote: &str) -> Comment {
        Comment { id: 1, version: 1, step, quote: quote.into(), text: "Why?".into(), state: CommentState::Open, by: By::gateway() }
    }

    #[test]
    fn ledger_l55_a_comment_goes_on_with_its_step_or_quote_and_is_outdated_without_never_lost() {
        let next = plan(2, &["Clean up", "buy EGGS!"]);
        let on_step = comment(Some(1), "Buy eggs").carried_to(&next);
        assert_eq!((on_step.version, on_step.step, on_step.state), (2, Some(2), CommentState::Open), "a step that moved is still the step");
        let gone = comment(Some(1), "Buy milk").carried_to(&next);
        assert_eq!((gone.version, gone.step, gone.state, gone.text.as_str()), (1, Some(1), CommentState::Outdated, "Why?"));
        assert_eq!(comment(None, "with\n care").carried_to(&next).version, 2);
        assert_eq!(comment(None, "For  eggs").carried_to(&next).state, CommentState::Open);
        assert_eq!(comment(None, "for cake").carried_to(&next).state, CommentState::Outdated);
        assert_eq!(comment(None, "").carried_to(&next).version, 2, "what is about the whole plan stays about it");
    }

    #[test]
    fn the_agent_is_told_what_a_comment_is_about() {
        assert_eq!(comment(Some(2), "Buy eggs").told(), "On step 2 (\"Buy eggs\"): Why?");
        assert_eq!(told(&[comment(None, "eggs"), comment(None, "")]), "On \"eggs\": Why?\nWhy?");
    }
}
