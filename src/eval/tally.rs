//! Counting what was heard where nobody commanded anything: by class of decision and by what was open, with hours and bounds.
//!
//! Called by `eval listen`. Pure.

use super::listen::{State, Turn};
use crate::engine::intent::{Decision, decide_text};

/// What a false command would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Loosens or consents, or asks to.
    Loosening,
    /// Turns plan mode on, stops, sends a plan back or sets it aside.
    Tightening,
    /// Denies or holds the open question.
    Answer,
    /// Only makes the voice say something.
    Asking,
}

impl Class {
    /// Of a decision; `None` for ordinary speech and for what answers nothing.
    pub fn of(decision: &Decision) -> Option<Self> {
        match decision {
            d if d.loosens() => Some(Self::Loosening),
            Decision::Enter | Decision::Stop | Decision::CancelTurn | Decision::Changes(_) | Decision::Dismiss => Some(Self::Tightening),
            Decision::Deny | Decision::Hold => Some(Self::Answer),
            Decision::None | Decision::Neither { .. } => None,
            _ => Some(Self::Asking),
        }
    }
}

/// A decision that nobody meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// In which recording.
    pub clip: String,
    /// What was open.
    pub state: State,
    /// What it would do.
    pub class: Class,
    /// The decision's name.
    pub decision: &'static str,
    /// What was written.
    pub text: String,
    /// The words alone decide it too.
    pub by_words: bool,
}

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Recordings.
    pub clips: usize,
    /// Their length.
    pub seconds: f64,
    /// Turns with nothing open.
    pub turns: usize,
    /// Decisions.
    pub found: Vec<Finding>,
    /// By state: what the words alone would have decided, loosening.
    pub loosened_by_words: usize,
}

impl Tally {
    /// Adds a recording's turns, one list for each of [`State::ALL`].
    pub fn add(&mut self, clip: &str, seconds: f64, turns: &[Vec<Turn>]) {
        self.clips += 1;
        self.seconds += seconds;
        self.turns += turns.first().map_or(0, Vec::len);
        for (state, turns) in State::ALL.iter().zip(turns) {
            for turn in turns {
                let words = decide_text(&turn.heard.text, &state.moment());
                self.loosened_by_words += usize::from(words.loosens());
                let Some(class) = Class::of(&turn.decision) else { continue };
                let by_words = Class::of(&words) == Some(class);
                self.found.push(Finding { clip: clip.into(), state: *state, class, decision: turn.decision.name(), text: turn.heard.text.clone(), by_words });
            }
        }
    }

    /// Both together.
    pub fn and(mut self, other: &Tally) -> Tally {
        self.clips += other.clips;
        self.seconds += other.seconds;
        self.turns += other.turns;
        self.loosened_by_words += other.loosened_by_words;
        self.found.extend(other.found.iter().cloned());
        self
    }

    /// Hours heard.
    pub fn hours(&self) -> f64 { self.seconds / 3_600.0 }

    /// How many of a class while `state` held.
    pub fn count(&self, state: State, class: Class) -> usize { self.found.iter().filter(|f| f.state == state && f.class == class).count() }
}

/// Upper end of the one-sided 95 % interval of a rate, an hour, by Poisson: 3 / T where nothing was seen in T hours.
pub fn hourly_bound(count: usize, hours: f64) -> f64 {
    if hours <= 0.0 { return f64::INFINITY }
    let seen = |mean: f64| {
        let mut term = (-mean).exp();
        let mut sum = term;
        for k in 1..=count {
            term *= mean / k as f64;
            sum += term;
        }
        sum
    };
    let (mut low, mut high) = (0.0, 10.0 + 3.0 * count as f64);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if seen(middle) > 0.05 { low = middle } else { high = middle }
    }
    high / hours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::heard::Heard;

    #[test]
    fn bounds_are_those_of_poisson() {
        assert!((hourly_bound(0, 1.0) - 2.9957).abs() < 1e-3 && (hourly_bound(0, 6.0) - 0.4993).abs() < 1e-3);
        assert!((hourly_bound(1, 1.0) - 4.7439).abs() < 1e-3 && (hourly_bound(10, 1.0) - 16.962).abs() < 1e-2);
        assert!(hourly_bound(0, 0.0).is_infinite());
    }

    #[test]
    fn decisions_are_counted_by_class_and_state() {
        let turn = |text: &str, decision| Turn { start_ms: 0, end_ms: 500, heard: Heard::text_only(text), decision };
        let mut tally = Tally::default();
        let idle = vec![turn("Enter plan mode.", Decision::Enter), turn("Hello.", Decision::None)];
        let question = vec![turn("No.", Decision::Deny), turn("Go ahead.", Decision::Approve)];
        tally.add("a.wav", 1_800.0, &[idle, question, vec![]]);
        let all = tally.clone().and(&tally);
        assert_eq!((all.clips, all.turns, all.hours()), (2, 4, 1.0));
        assert_eq!((all.count(State::Idle, Class::Tightening), all.count(State::Question, Class::Answer), all.count(State::Question, Class::Loosening)), (2, 2, 2));
        assert_eq!((all.count(State::Review, Class::Answer), all.loosened_by_words), (0, 2));
        assert!(all.found[0].by_words);
    }
}
