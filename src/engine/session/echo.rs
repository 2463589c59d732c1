//! Is what was heard our own voice? Words against the words that were audible at that time, as recognisers garble them.
//!
//! Pure. Called when an utterance's words are known, in every path: a client's own canceller is not trusted. It never makes a
//! decision, it takes some away: asking to loosen at the least likeness, ordinary speech when most of it is ours, and a
//! denial, a stop or an entry, which do no harm, only when it is nearly exactly what was playing at that very moment. A
//! person's "stop" over a prompt that holds the word elsewhere is a person's.

use super::super::apart::apart;
use super::super::grammar::{Class, meaning_in, words_of};
use super::super::id::Ms;
use super::super::intent::Decision;
use super::super::language::Language;

/// A word that sounded, and when.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sounded {
    pub(super) from: Ms,
    pub(super) to: Ms,
    pub(super) word: String,
}

/// How alike an utterance must be, from which words, to be taken for an echo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measure {
    /// Words that ended at most this long before the utterance began are compared: the way through the room and the buffers, and
    /// what the estimate of a word's time may be wrong by.
    pub(super) late_ms: u64,
    /// Words that began at most this long after the utterance ended.
    pub(super) early_ms: u64,
    /// The share of the utterance's words that must be ours.
    pub(super) likeness: f32,
}

/// What would loosen or consent: everything of the last seconds, half of the words.
const LOOSENING: Measure = Measure { late_ms: 4_000, early_ms: 1_000, likeness: 0.5 };
/// What only tightens, or stops the voice: nearly exactly, and at that moment.
const TIGHTENING: Measure = Measure { late_ms: 800, early_ms: 300, likeness: 0.9 };
/// Everything else: mostly.
const ORDINARY: Measure = Measure { late_ms: 1_300, early_ms: 400, likeness: 0.6 };

/// The measure for what an utterance would decide. "No" and "wait" decide nothing where nothing is asked, and are a person's all the same.
pub(super) fn measure_for(decision: &Decision, words: &[String], language: Language) -> Measure {
    let stops = || meaning_in(language, &words.join(" ")).is_some_and(|m| m.class() == Class::Denial);
    if decision.loosens() { LOOSENING } else if tightens(decision) || stops() { TIGHTENING } else { ORDINARY }
}

/// It can do no harm: it stops something or forbids something.
pub(super) fn tightens(decision: &Decision) -> bool {
    matches!(decision, Decision::Enter | Decision::Stop | Decision::CancelTurn | Decision::Deny | Decision::Hold)
}

/// When each word of a speech sounded, by its length in letters within its segment. Segments: words, milliseconds.
pub(super) fn timeline(segments: impl Iterator<Item = (String, u64)>, from: Ms) -> Vec<Sounded> {
    let mut at = from;
    let mut all = Vec::new();
    for (text, length) in segments {
        let words = words_of(&text);
        let letters: usize = words.iter().map(|w| w.len() + 1).sum::<usize>().max(1);
        let mut passed = 0;
        for word in words {
            let next = passed + word.len() + 1;
            let time = |n: usize| at + length * n as u64 / letters as u64;
            all.push(Sounded { from: time(passed), to: time(next), word });
            passed = next;
        }
        at += length;
    }
    all
}

/// An utterance beside what sounded: how much of it is ours, and which words are not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    /// 1: every word in order; 0: none.
    pub(super) likeness: f32,
    /// Words at the beginning and at the end that are nobody's but the speaker's.
    pub(super) before: usize,
    pub(super) after: usize,
}

/// The best fit of `heard` against any stretch of `said`. Costs: 1 for a word of its own, half for a word of ours left out, and
/// how unlike two words are where they stand for each other.
pub(super) fn fit(heard: &[String], said: &[String]) -> Fit {
    let (rows, columns) = (heard.len() + 1, said.len() + 1);
    if rows == 1 {
        return Fit { likeness: 0.0, before: 0, after: 0 };
    }
    let mut cost = vec![0f32; rows * columns];
    // 0: stands for, 1: a word of its own, 2: one of ours left out.
    let mut step = vec![0u8; rows * columns];
    for i in 1..rows {
        cost[i * columns] = i as f32;
        step[i * columns] = 1;
        for j in 1..columns {
            let replaced = cost[(i - 1) * columns + j - 1] + unlikeness(&heard[i - 1], &said[j - 1]);
            let own = cost[(i - 1) * columns + j] + 1.0;
            let left_out = cost[i * columns + j - 1] + 0.5;
            let (best, way) = if replaced <= own && replaced <= left_out { (replaced, 0) } else if own <= left_out { (own, 1) } else { (left_out, 2) };
            cost[i * columns + j] = best;
            step[i * columns + j] = way;
        }
    }
    let last = (rows - 1) * columns;
    let end = (0..columns).min_by(|a, b| cost[last + a].total_cmp(&cost[last + b])).unwrap_or(0);
    let mut ours = vec![false; heard.len()];
    let (mut i, mut j) = (rows - 1, end);
    while i > 0 {
        match step[i * columns + j] {
            0 => {
                ours[i - 1] = unlikeness(&heard[i - 1], &said[j - 1]) < 1.0;
                i -= 1;
                j -= 1;
            }
            1 => i -= 1,
            _ => j -= 1,
        }
    }
    let before = ours.iter().take_while(|o| !**o).count();
    let after = if before == heard.len() { 0 } else { ours.iter().rev().take_while(|o| !**o).count() };
    Fit { likeness: 1.0 - cost[last + end] / heard.len() as f32, before, after }
}

/// 0 for the same word, 0.25 for one with the same consonants, more for other letters, 1 from half of them on.
fn unlikeness(a: &str, b: &str) -> f32 {
    if a == b {
        return 0.0;
    }
    if a.len() > 2 && b.len() > 2 && skeleton(a) == skeleton(b) {
        return 0.25;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(24).collect(), b.chars().take(24).collect());
    let share = apart(&a, &b) as f32 / a.len().max(b.len()).max(1) as f32;
    if share <= 0.5 { share } else { 1.0 }
}

/// Consonants by how they sound; vowels, h, w and y fall away, and doubles fold.
fn skeleton(word: &str) -> Vec<u8> {
    let mut bones: Vec<u8> = Vec::new();
    for c in word.bytes() {
        let bone = match c {
            b'b' | b'p' => 1, b'f' | b'v' => 2, b'c' | b'k' | b'q' | b'g' => 3, b'd' | b't' => 4, b's' | b'z' | b'x' | b'j' => 5,
            b'l' => 6, b'm' | b'n' => 7, b'r' => 8, _ => continue,
        };
        if bones.last() != Some(&bone) { bones.push(bone) }
    }
    bones
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(heard: &str, said: &str) -> f32 { fit(&words_of(heard), &words_of(said)).likeness }

    #[test]
    fn garbled_echoes_are_alike_and_other_words_are_not() {
        let said = "Plan mode is on. I can look, but I change nothing until you approve a plan.";
        for heard in ["plan mode is on", "I can look but I change nothing", "plane mode is on I can look", "until you approved a plant", "I change nothing and till you approve a plan", "can look but I changed nothing"] {
            assert!(likeness(heard, said) >= 0.6, "{heard}: {}", likeness(heard, said));
        }
        for heard in ["what's in my notes", "add buy milk to my notes", "stop", "no wait", "enter plan mode please now", "tell me about the weather"] {
            assert!(likeness(heard, said) < 0.6, "{heard}: {}", likeness(heard, said));
        }
    }

    #[test]
    fn what_a_person_adds_is_told_apart() {
        let said = words_of("You can say enter plan mode or read me the plan");
        let both = fit(&words_of("you can say enter plan stop"), &said);
        assert!(both.likeness > 0.6 && (both.before, both.after) == (0, 1), "{both:?}");
        let both = fit(&words_of("no wait you can say enter"), &said);
        assert_eq!((both.before, both.after), (2, 0), "{both:?}");
        assert_eq!(fit(&[], &said).likeness, 0.0);
        assert_eq!(fit(&words_of("stop"), &[]).likeness, 0.0);
    }

    #[test]
    fn words_have_their_times() {
        let line = timeline([("One two.".to_string(), 800), ("Three.".to_string(), 600)].into_iter(), 1_000);
        let at: Vec<(Ms, Ms, &str)> = line.iter().map(|s| (s.from, s.to, s.word.as_str())).collect();
        assert_eq!(at, [(1_000, 1_400, "one"), (1_400, 1_800, "two"), (1_800, 2_400, "three")]);
    }

    #[test]
    fn short_words_are_not_stretched() {
        assert_eq!(likeness("no", "now"), 1.0 - 1.0 / 3.0);
        assert!(likeness("stop", "top") < 0.9);
        assert!(likeness("wait", "what is it") < 0.9);
    }
}
