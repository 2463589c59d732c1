//! How much silence ends a turn, given what its words decide and whether they sound complete.
//!
//! Pure functions of words. Called by [`super::Listener`]; what a sentence means is the grammar's, and the judge's verdict is
//! only ever a modifier of the silence of ordinary speech: it ends nothing that loosens.

use super::EarSettings;
use crate::engine::grammar::words_of;
use crate::engine::intent::Decision;
use crate::engine::language::Language;

/// Silence in milliseconds after which an utterance of these words is over. `complete`: the judge's probability, if there is one.
pub fn silence_for(decision: &Decision, text: &str, complete: Option<f32>, settings: &EarSettings) -> u64 {
    let plain = settings.silence_ms;
    let longer = settings.unfinished_silence_ms.max(plain);
    match decision {
        d if d.loosens() => settings.loosen_silence_ms,
        Decision::Deny | Decision::Hold | Decision::Stop | Decision::CancelTurn => settings.answer_silence_ms.min(plain),
        Decision::Changes(words) if words.is_empty() => settings.command_silence_ms.min(plain),
        Decision::Enter | Decision::Status | Decision::Read(_) | Decision::Dismiss | Decision::Help | Decision::Repeat => settings.command_silence_ms.min(plain),
        // "Approve plan" is on its way to a number; a change is free speech behind its head.
        Decision::WhichVersion => longer,
        // One word is as much of an answer as it gets: whoever is asked does not wait longer to be asked again.
        Decision::Neither { .. } if words_of(text).len() == 1 => plain,
        Decision::Changes(_) | Decision::RefusedVersion(_) | Decision::ScreenOnly | Decision::Neither { .. } => if is_unfinished(settings.language, text) { longer } else { plain },
        _ => ordinary(text, complete, settings),
    }
}

fn ordinary(text: &str, complete: Option<f32>, settings: &EarSettings) -> u64 {
    let sounds = |p: f32| if p >= settings.complete_from { 1 } else if p <= settings.unfinished_to { -1 } else { 0 };
    match (is_unfinished(settings.language, text), complete.map_or(0, sounds)) {
        // The judge takes half of what flat voices leave unfinished for complete (9 of 18 in a trial); words know better.
        (true, _) | (false, -1) => settings.unfinished_silence_ms.max(settings.silence_ms),
        (false, 1) => settings.complete_silence_ms.min(settings.silence_ms),
        _ => settings.silence_ms,
    }
}

/// The words of a language by which a sentence is known to be unfinished.
struct Unfinished {
    /// Words after which something must come. Those that also end sentences ("that", "in", "on", "is") are not among them.
    leading: &'static [&'static str],
    /// Beginnings of commands that are no sentence without what follows.
    beginnings: &'static [&'static str],
    /// Words before a beginning that change nothing.
    before: &'static [&'static str],
    /// A clause that begins so needs another after it, unless one of `asking` makes a question of it.
    subordinate: &'static [&'static str],
    asking: &'static [&'static str],
    /// With few words after one of them it is all of it: "after lunch".
    phrases: &'static [&'static str],
    /// What ends with one of them lacks its complement, unless it holds one of `complements`.
    linking: &'static [&'static str],
    complements: &'static [&'static str],
}

const ENGLISH: Unfinished = Unfinished {
    leading: &[
        "and", "or", "but", "the", "a", "an", "to", "of", "because", "with", "from", "if", "my", "your", "our", "into", "than", "im", "ill", "id", "ive", "lets", "um", "uh", "er", "erm", "called", "saying", "cause", "whether", "although",
        "while", "unless",
    ],
    beginnings: &[
        "approve plan", "approve plan number", "approve", "confirm plan", "confirm plan number", "confirm", "change step", "change step number", "change step #", "change step number #", "change the plan", "change plan", "change plan #",
        "comment on", "comment on step", "comment on step #", "read step", "read step number", "read me", "read me the", "enter", "enter plan", "enter the plan", "exit", "exit plan", "leave plan", "turn on plan", "switch to", "switch to plan",
        "go into plan", "set the plan", "put the plan", "what mode", "what mode are", "what mode are you", "what can", "add", "please add", "remind me", "what about", "how about", "tell me", "show me", "can you", "could you", "would you", "will you", "please",
        "i want", "i would like", "id like", "i need", "i think", "so", "well", "please", "read me the name", "write down", "write down that", "right down that", "note that", "remember that", "tell me that", "remind me that",
    ],
    before: &["please", "so", "well", "and", "okay", "then", "now", "um", "uh"],
    subordinate: &["if", "when", "because", "while", "although", "unless", "whenever", "since", "after", "before", "until"],
    asking: &["is", "are", "was", "were", "do", "does", "did", "will", "can", "could", "should", "would", "am", "has", "have"],
    phrases: &["since", "after", "before", "until"],
    linking: &["is", "are", "was", "were"],
    complements: &["what", "who", "where", "when", "how", "why", "which", "whose", "it", "this", "that", "there"],
};

/// Not among the leading ones: what ends German sentences ("an", "zu", "mit", "das", "die").
const GERMAN: Unfinished = Unfinished {
    leading: &[
        "und", "oder", "aber", "denn", "weil", "dass", "ob", "wenn", "falls", "obwohl", "sondern", "ein", "eine", "einen", "einem", "einer", "dem", "den", "von", "für", "zum", "zur", "im", "am", "ins", "ans", "mein", "meine", "meinen", "meinem", "meiner", "unsere", "unseren", "äh", "ähm",
        "namens", "sowie",
    ],
    beginnings: &[
        "planmodus", "plan", "geh in", "geh in den", "gehe in den", "starte", "starte den", "schalte", "schalte den", "schalte den planmodus", "in welchem", "in welchem modus", "lies", "lies mir", "lies mir den", "lies mir den plan", "was kann", "füge", "notiere", "schreib", "schreib auf", "erinnere mich",
        "erinnere mich an", "merk dir", "sag mir", "zeig mir", "erzähl mir", "kannst du", "könntest du", "würdest du", "ich möchte", "ich will", "ich hätte gern", "ich brauche", "ich glaube", "also", "bitte", "ja mach", "mach",
    ],
    before: &["bitte", "also", "und", "okay", "dann", "jetzt", "äh", "ähm", "so"],
    subordinate: &["wenn", "weil", "obwohl", "falls", "bevor", "nachdem", "während", "solange", "sobald"],
    asking: &[],
    phrases: &["während"],
    linking: &[],
    complements: &[],
};

/// What is unfinished in any language: nothing but what breaks off at a mark.
const NO_WORDS: Unfinished = Unfinished { leading: &[], beginnings: &[], before: &[], subordinate: &[], asking: &[], phrases: &[], linking: &[], complements: &[] };

/// A clause of more words than this may well hold both.
const CLAUSE_WORDS: usize = 6;

/// Plainly unfinished: it breaks off at a mark or a word that leads on, or is the beginning of a command.
pub fn is_unfinished(language: Language, text: &str) -> bool {
    let known = match language { Language::English => &ENGLISH, Language::German => &GERMAN, Language::Other => &NO_WORDS };
    let shown = text.trim();
    if shown.ends_with([',', ':', ';', '-', '–', '—', '…']) || shown.ends_with("...") {
        return true;
    }
    let words = words_of(shown);
    let Some(last) = words.last() else { return false };
    // A question mark is the recogniser's opinion that it is complete; it writes full stops after anything.
    if known.leading.contains(&last.as_str()) && !shown.ends_with(['?', '!']) {
        return true;
    }
    let asked = shown.ends_with('?');
    // "The first thing is", but not "tell me what it is".
    if known.linking.contains(&last.as_str()) && !asked && !words.iter().any(|w| known.complements.contains(&w.as_str())) {
        return true;
    }
    let start = words.iter().position(|w| !known.before.contains(&w.as_str())).unwrap_or(0);
    known.beginnings.iter().any(|b| is_beginning(b, &words) || is_beginning(b, &words[start..])) || !asked && is_half_a_period(known, shown, &words[start..])
}

/// "If it rains tomorrow": one clause that leads to another, and no comma that parts the two.
fn is_half_a_period(known: &Unfinished, shown: &str, words: &[String]) -> bool {
    let [first, second, ..] = words else { return false };
    // "After lunch" is all of it.
    let phrase = known.phrases.contains(&first.as_str()) && words.len() < 4;
    !phrase && known.subordinate.contains(&first.as_str()) && !known.asking.contains(&second.as_str()) && words.len() <= CLAUSE_WORDS && !shown.contains(',')
}

fn is_beginning(pattern: &str, words: &[String]) -> bool {
    let mut given = words.iter();
    let number = |w: &String| (1..=20).any(|n| *w == crate::engine::grammar::number_word(n));
    pattern.split(' ').all(|want| given.next().is_some_and(|w| if want == "#" { number(w) } else { w == want })) && given.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::intent::{Moment, Open, decide_text};

    fn silence(text: &str, open: Open, complete: Option<f32>) -> u64 {
        let moment = Moment { open, in_plan: true, waiting: Some(1), ..Moment::default() };
        silence_for(&decide_text(text, &moment), text, complete, &EarSettings::default())
    }

    #[test]
    fn complete_commands_end_sooner_and_unfinished_words_later() {
        for (text, ms) in [
            ("Enter plan mode.", 320), ("Read me the plan.", 320), ("Stop.", 300), ("What's in my notes?", 500), ("Add milk and", 1_400), ("I would like to", 1_400), ("Buy milk,", 1_400),
            ("Approve plan.", 1_400), ("Change step two.", 1_400), ("Change step two: use another list.", 500), ("Approve plan one.", 600), ("Exit plan mode.", 600), ("It stays on because...", 1_400),
            ("Enter plan.", 1_400), ("What is that?", 500), ("Please read me.", 1_400), ("If it rains tomorrow.", 1_400), ("If it rains tomorrow, we stay at home.", 500), ("When is the meeting?", 500), ("When the train arrives.", 1_400), ("After lunch.", 500), ("After the train arrives.", 1_400),
            ("The first thing is.", 1_400), ("Tell me what it is.", 500), ("So what I want is.", 500), ("Turn it on.", 500), ("", 500),
        ] {
            assert_eq!(silence(text, Open::Nothing, None), ms, "{text}");
        }
        assert_eq!(silence("No.", Open::Tool, None), 300);
        assert_eq!(silence("Yes, go ahead.", Open::Tool, None), 600);
    }

    #[test]
    fn the_judge_moves_the_silence_of_ordinary_speech_alone() {
        assert_eq!([0.9, 0.7, 0.5, 0.1].map(|p| silence("What's in my notes?", Open::Nothing, Some(p))), [300, 500, 1_400, 1_400]);
        assert_eq!([0.9, 0.1].map(|p| silence("Exit plan mode.", Open::Nothing, Some(p))), [600, 600]);
        assert_eq!([0.9, 0.1].map(|p| silence("Yes, go ahead.", Open::Tool, Some(p))), [600, 600]);
        assert_eq!([0.9, 0.1].map(|p| silence("Enter plan mode.", Open::Nothing, Some(p))), [320, 320]);
        assert_eq!(silence("I wanted to", Open::Nothing, Some(0.95)), 1_400, "words know better");
    }

    #[test]
    fn a_client_that_wants_less_silence_gets_less() {
        let settings = EarSettings { silence_ms: 200, ..EarSettings::default() };
        let told = |text| silence_for(&decide_text(text, &Moment::default()), text, Some(0.9), &settings);
        assert_eq!([told("Enter plan mode."), told("Stop."), told("What is it?")], [200, 200, 200]);
    }

    #[test]
    fn each_language_has_its_own_unfinished_words() {
        let told = |language, text: &str| {
            let (moment, settings) = (Moment { language, ..Moment::default() }, EarSettings { language, ..EarSettings::default() });
            silence_for(&decide_text(text, &moment), text, None, &settings)
        };
        for (text, ms) in [("Planmodus an.", 320), ("Mach das Licht an.", 500), ("Notiere Milch und.", 1_400), ("Ich möchte.", 1_400), ("Wenn es morgen regnet.", 1_400), ("Was steht in meinen Notizen?", 500), ("Stopp.", 300), ("Geh in den.", 1_400)] {
            assert_eq!(told(Language::German, text), ms, "{text}");
        }
        assert_eq!([told(Language::Other, "C'est pour la."), told(Language::Other, "On verra a"), told(Language::Other, "Et puis...")], [500, 500, 1_400]);
    }
}
