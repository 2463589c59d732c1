//! What an utterance decides, given what is open. The one judge for the live microphone, for typed words and for `voxgate eval utterances`.
//!
//! Tightening is generous; loosening and consent need the exact sentence, a margin over every rival on the sound where there is sound, and no vetoing word.

use super::grammar::{Class, Meaning, Scored, holds_veto, meaning_of, without_notes, words_of};
use super::heard::Heard;

/// The question that is open and was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// None.
    #[default]
    Nothing,
    /// May a tool run?
    Tool,
    /// Second step of approving this version.
    Approve(u32),
    /// Second step of leaving.
    Leave,
}

/// The moment an utterance falls into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The open question.
    pub open: Open,
    /// Plan mode is on.
    pub in_plan: bool,
    /// The version that waits for a decision.
    pub waiting: Option<u32>,
}

/// What was decided. `name` gives the words of `voxgate eval utterances`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Turn plan mode on.
    Enter,
    /// Say the mode.
    Status,
    /// Read the plan, or one step.
    Read(Option<u32>),
    /// Send the plan back; the words, empty for "keep planning".
    Changes(String),
    /// Set the plan aside.
    Dismiss,
    /// Stop the voice.
    Stop,
    /// End the turn.
    CancelTurn,
    /// Say what can be said.
    Help,
    /// Say the last thing again.
    Repeat,
    /// Ask whether to leave.
    LeaveQuestion,
    /// Ask whether to approve this version.
    ConfirmQuestion(u32),
    /// It named a version that does not wait.
    RefusedVersion(u32),
    /// It named no version.
    WhichVersion,
    /// Yes to the open question.
    Approve,
    /// No to the open question.
    Deny,
    /// Keep the question open.
    Hold,
    /// Never by voice.
    ScreenOnly,
    /// A question is open and this does not answer it.
    Neither {
        /// It was a bare yes: say the phrase.
        bare: bool,
    },
    /// Ordinary speech for the agent.
    None,
}

impl Decision {
    /// Its name in tables and metrics. "Say that again" reads again, "cancel that" stops: they share those names.
    pub fn name(&self) -> &'static str {
        match self {
            Decision::Enter => "enter", Decision::Status => "status", Decision::Read(_) | Decision::Repeat => "read", Decision::Changes(_) => "changes",
            Decision::Dismiss => "dismiss", Decision::Stop | Decision::CancelTurn => "stop", Decision::Help => "help", Decision::LeaveQuestion => "leave-question",
            Decision::ConfirmQuestion(_) => "confirm-question", Decision::RefusedVersion(_) => "refused-version", Decision::WhichVersion => "which-version",
            Decision::Approve => "approve", Decision::Deny => "deny", Decision::Hold => "hold", Decision::ScreenOnly => "screen-only",
            Decision::Neither { .. } => "neither", Decision::None => "none",
        }
    }

    /// True when it approves, loosens or asks to loosen.
    pub fn loosens(&self) -> bool { matches!(self, Decision::Approve | Decision::LeaveQuestion | Decision::ConfirmQuestion(_)) }
}

/// Decides on text alone.
pub fn decide_text(text: &str, moment: &Moment) -> Decision {
    let meaning = meaning_of(text).or_else(|| loose_answer(text, moment));
    resolve(meaning, text, moment)
}

/// Decides on what a recogniser heard: the text, and how well the grammar's sentences fit the sound.
pub fn decide(heard: &Heard, table: &[Scored], moment: &Moment) -> Decision {
    let by_text = decide_text(&heard.text, moment);
    if heard.scores.is_empty() {
        return by_text;
    }
    let by_sound = resolve(meaning_by_sound(heard, table, moment), &heard.text, moment);
    match (&by_text, &by_sound) {
        // A written denial stands, whatever the sound of it suggests.
        (Decision::Deny | Decision::Hold, sound) if sound.loosens() => by_text,
        // A spoken denial stands too: "No." is often written "Yeah."
        (_, Decision::Deny | Decision::Hold) if moment.open != Open::Nothing => by_sound,
        // The last step needs the sound: exact words alone do not approve.
        (Decision::Approve, sound) if *sound != Decision::Approve => Decision::Neither { bare: false },
        // A written command is not overruled by a sound that says less.
        (text, Decision::None | Decision::Neither { .. }) if !matches!(text, Decision::None | Decision::Neither { .. }) => by_text,
        (Decision::None | Decision::Neither { .. }, Decision::Neither { bare: true } | Decision::Neither { bare: false } | Decision::None) => by_text,
        (Decision::None | Decision::Neither { .. }, _) => by_sound,
        // Both know a command and differ: the harmless one counts.
        (text, sound) if text != sound && text.loosens() => by_sound,
        _ => by_text,
    }
}

/// Lead over the best other meaning, in nats, that each class needs, with the fit it needs relative to the free transcript and
/// absolutely. Measured on synthetic voices of several engines; loosening was set so that no denial passed in 1,008 trials.
fn passes(class: Class, relative: f32, ll: f32, lead: f32, pending: bool) -> bool {
    match class {
        Class::Harmless => relative >= -6.0 && ll >= -12.0 && lead >= 2.0,
        Class::Loosening => relative >= -2.0 && ll >= -6.0 && lead >= 2.0,
        Class::Consent => relative >= -2.0 && ll >= -4.0 && lead >= 2.0,
        Class::Denial => relative >= -3.0 && ll >= if pending { -7.0 } else { -6.0 } && lead >= 1.0,
        Class::Other => relative >= -2.0 && lead >= 1.0,
    }
}

/// How many nats below the free transcript a sentence of this class is worth following: as far as it could still count or rival.
pub fn followed_below(class: Class) -> f32 {
    match class { Class::Harmless => 8.0, Class::Denial => 5.0, _ => 4.5 }
}

fn meaning_by_sound(heard: &Heard, table: &[Scored], moment: &Moment) -> Option<Meaning> {
    let row = |id: u16| table.get(id as usize).map(|s| &s.meaning);
    let best = heard.scores.iter().filter(|s| s.ll.is_finite()).max_by(|a, b| a.ll.total_cmp(&b.ll))?;
    let meaning = row(best.id)?;
    let same = |other: &Meaning| other == meaning || (meaning.class() == Class::Denial && other.class() == Class::Denial);
    let rival = heard.scores.iter().filter(|s| row(s.id).is_some_and(|m| !same(m))).map(|s| s.ll).fold(f32::NEG_INFINITY, f32::max);
    let lead = if rival.is_finite() { best.ll - rival } else { f32::INFINITY };
    let strict = matches!(meaning.class(), Class::Loosening | Class::Consent);
    if strict && (holds_veto(&heard.text) || heard.text.contains('?')) {
        return None;
    }
    // A long transcript that happens to hold a command's sound is ordinary speech.
    if heard.tokens > 16 {
        return None;
    }
    passes(meaning.class(), best.ll - heard.free_ll, best.ll, lead, moment.open != Open::Nothing).then(|| meaning.clone())
}

/// Longest utterance, in words, that is searched for a denial: beyond it somebody is telling a story.
const LOOSE_WORDS: usize = 20;

/// While a question is open, an utterance that holds a denial denies, wherever it stands; one that holds "wait" waits.
/// Nothing found here ever approves.
fn loose_answer(text: &str, moment: &Moment) -> Option<Meaning> {
    const DENYING: &[&str] = &["no", "nope", "nah", "not", "dont", "never", "cancel", "stop", "negative", "refuse", "reject", "deny", "wont", "abort"];
    if moment.open == Open::Nothing {
        return None;
    }
    let all = words_of(text);
    if all.len() > 10 * LOOSE_WORDS {
        return None;
    }
    // "No, what are you doing?" and "Wait, what?": a whole clause that answers does so whatever is asked after it.
    let bare = without_notes(text);
    let clauses: Vec<Meaning> = bare.split_inclusive(['.', ',', '!', '?', ';', ':', '…', '—', '–']).filter(|c| !c.ends_with('?')).filter_map(meaning_of).collect();
    if clauses.contains(&Meaning::Deny) {
        return Some(Meaning::Deny);
    }
    let waits = clauses.contains(&Meaning::Hold).then_some(Meaning::Hold);
    let words = without_set_phrases(all);
    if text.contains('?') || words.len() > LOOSE_WORDS || is_question(&words) {
        return waits;
    }
    // A mode is not what a tool's question is about.
    if moment.open == Open::Tool && words.iter().any(|w| w == "mode") && !words.first().is_some_and(|w| w == "no" || w == "stop") {
        return waits;
    }
    let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let pair = |a: &str, b: &[&str]| words.windows(2).any(|w| w[0] == a && b.contains(&w[1].as_str()));
    if has(DENYING) {
        return Some(Meaning::Deny);
    }
    (has(&["wait"]) || pair("hold", &["on"]) || pair("hang", &["on"]) || pair("me", &["think"])).then_some(Meaning::Hold).or(waits)
}

/// The words without phrases that hold a denying word and deny nothing.
fn without_set_phrases(words: Vec<String>) -> Vec<String> {
    const SET: &[&str] = &[
        "no problem", "no problems", "no worries", "no doubt", "no objection", "no objections", "no idea", "not a problem", "not sure", "not certain", "dont know", "do not know", "dont mind", "do not mind", "dont care", "do not care",
        "dont worry", "do not worry", "dont understand", "do not understand", "dont remember", "did not hear", "did not catch", "did not understand", "not bad", "cant wait", "can not wait", "dont wait", "do not wait", "no need to wait", "no need to stop", "dont stop", "why not",
    ];
    let mut rest = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let long = SET.iter().map(|s| s.split(' ').collect::<Vec<_>>()).filter(|s| words[at..].len() >= s.len() && s.iter().zip(&words[at..]).all(|(a, b)| a == b)).map(|s| s.len()).max();
        if long.is_none() { rest.push(words[at].clone()) }
        at += long.unwrap_or(1);
    }
    rest
}

/// Asked, not answered: it begins with a question's word, and with "is", "can" and their like only without a "not".
fn is_question(words: &[String]) -> bool {
    const ASKS: &[&str] = &["what", "whats", "why", "how", "who", "whos", "when", "where", "which", "whose"];
    const MAY_ASK: &[&str] = &["is", "are", "does", "do", "did", "can", "could", "would", "will", "should", "am", "was"];
    let starts = |list: &[&str]| words.first().is_some_and(|w| list.contains(&w.as_str()));
    starts(ASKS) || starts(MAY_ASK) && !words.iter().any(|w| w == "not" || w == "dont")
}

fn resolve(meaning: Option<Meaning>, text: &str, moment: &Moment) -> Decision {
    let asked = moment.open != Open::Nothing;
    let unanswered = |bare| if asked { Decision::Neither { bare } } else { Decision::None };
    let Some(meaning) = meaning else { return unanswered(false) };
    match meaning {
        Meaning::Enter => Decision::Enter,
        Meaning::Status => Decision::Status,
        Meaning::Read(step) => Decision::Read(step),
        Meaning::Help => Decision::Help,
        Meaning::Repeat => Decision::Repeat,
        Meaning::ScreenOnly => Decision::ScreenOnly,
        Meaning::Stop => if asked && is_stop_it(text) { Decision::Deny } else { Decision::Stop },
        Meaning::CancelTurn => if asked { Decision::Deny } else { Decision::CancelTurn },
        Meaning::KeepPlanning | Meaning::Change(_) | Meaning::Dismiss(_) => review_word(meaning, moment),
        Meaning::Leave => match moment.open {
            Open::Nothing if moment.in_plan => Decision::LeaveQuestion,
            Open::Nothing => Decision::Status,
            _ => Decision::Neither { bare: false },
        },
        Meaning::Approve(None) => if asked { Decision::Neither { bare: false } } else { Decision::WhichVersion },
        Meaning::Approve(Some(n)) => match moment.open {
            Open::Nothing if moment.waiting == Some(n) => Decision::ConfirmQuestion(n),
            Open::Nothing => Decision::RefusedVersion(n),
            Open::Approve(open) if n != open => Decision::RefusedVersion(n),
            _ => Decision::Neither { bare: false },
        },
        Meaning::Confirm(Some(n)) => match moment.open {
            Open::Approve(open) if open == n => Decision::Approve,
            Open::Approve(_) => Decision::RefusedVersion(n),
            _ => unanswered(false),
        },
        Meaning::Confirm(None) => unanswered(false),
        Meaning::Consent => match moment.open {
            Open::Tool | Open::Leave => Decision::Approve,
            Open::Approve(_) => Decision::Neither { bare: true },
            Open::Nothing => Decision::None,
        },
        Meaning::Deny => if asked { Decision::Deny } else { Decision::None },
        Meaning::Hold => if asked { Decision::Hold } else { Decision::None },
        Meaning::Bare => unanswered(true),
        Meaning::Rival => unanswered(false),
    }
}

fn is_stop_it(text: &str) -> bool { words_of(text).len() > 1 && meaning_of(text) == Some(Meaning::Stop) && words_of(text).iter().any(|w| w == "it" || w == "that") }

/// Sentences about the plan under review, which mean something only while one is.
fn review_word(meaning: Meaning, moment: &Moment) -> Decision {
    let reviewed = moment.waiting.is_some() && matches!(moment.open, Open::Nothing | Open::Approve(_));
    match meaning {
        Meaning::KeepPlanning if moment.open == Open::Leave => Decision::Deny,
        Meaning::KeepPlanning if reviewed => Decision::Changes(String::new()),
        Meaning::Change(words) if reviewed => Decision::Changes(words),
        Meaning::Dismiss(None) if reviewed => Decision::Dismiss,
        Meaning::Dismiss(Some(n)) if reviewed && moment.waiting == Some(n) => Decision::Dismiss,
        Meaning::Dismiss(Some(n)) if reviewed => Decision::RefusedVersion(n),
        _ if moment.open != Open::Nothing => Decision::Neither { bare: false },
        _ => Decision::None,
    }
}
