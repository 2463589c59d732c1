//! The closed spoken grammar: which whole utterances mean something to the gateway itself, and how a recogniser may write them.
//!
//! Harmless sentences are known generously, with what recognisers make of them; the approving and loosening ones strictly.
//! [`meaning_of`] reads text; [`phrase_table`] gives the recogniser the sentences to score on the sound; both use one list. Those two are
//! English; [`meaning_in`] and [`phrase_table_of`] are for the language that is spoken, whose sentences stand in a file of their own.

mod german;

use std::sync::{Arc, OnceLock};

use super::heard::Phrase;
use super::language::Language;

/// What a sentence of the grammar means, whatever the moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Turn plan mode on.
    Enter,
    /// Say which mode is on.
    Status,
    /// Read the newest plan, or one step of it.
    Read(Option<u32>),
    /// Go on planning.
    KeepPlanning,
    /// Change something; the words.
    Change(String),
    /// Set the plan aside.
    Dismiss(Option<u32>),
    /// Stop the voice.
    Stop,
    /// End the turn.
    CancelTurn,
    /// Say what can be said.
    Help,
    /// Say the last thing again.
    Repeat,
    /// Ask to leave plan mode.
    Leave,
    /// Ask to approve a version; `None` names none.
    Approve(Option<u32>),
    /// Second step of approving; `None` names none.
    Confirm(Option<u32>),
    /// Yes to the open question.
    Consent,
    /// No to the open question.
    Deny,
    /// Keep the question open.
    Hold,
    /// A bare yes, okay, sure: approves nothing.
    Bare,
    /// Asks for something that voice never gives.
    ScreenOnly,
    /// A sentence that exists only to be told apart from the others.
    Rival,
}

/// How strictly a meaning is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tightens or only asks: generous.
    Harmless,
    /// Asks to loosen, or confirms it: strict.
    Loosening,
    /// Consents to a tool: strictest.
    Consent,
    /// Denies or holds.
    Denial,
    /// Approves nothing and stands as a rival.
    Other,
}

impl Meaning {
    /// How strictly it is heard.
    pub fn class(&self) -> Class {
        match self {
            Meaning::Leave | Meaning::Approve(_) | Meaning::Confirm(_) => Class::Loosening,
            Meaning::Consent => Class::Consent,
            Meaning::Deny | Meaning::Hold => Class::Denial,
            Meaning::Bare | Meaning::Rival | Meaning::ScreenOnly => Class::Other,
            _ => Class::Harmless,
        }
    }
}

const ENTER: &[&str] = &[
    "enter plan mode", "enter planning mode", "plan mode on", "planning mode on", "turn on plan mode", "turn plan mode on", "switch to plan mode",
    "switch to planning mode", "go into plan mode", "go into planning mode", "go to plan mode", "start plan mode", "start planning mode",
    "use plan mode", "activate plan mode", "enable plan mode", "back to plan mode", "go back to plan mode", "enter the plan mode", "lets plan first",
    "let us plan first", "plan first", "start planning", "put it in plan mode", "i want plan mode",
    // what recognisers write
    "inter plan mode", "interplan mode", "enterplan mode", "and her plan mode", "enter plane mode", "enter planned mode", "enter plan mod",
    "enter plans mode", "enter plan more", "enter plan mood", "enter plant mode", "enter plan moat", "enter plan mold", "center plan mode", "enter a plan mode",
    "into plan mode", "plan mode ons", "plan modons", "plan modon", "plan mod on", "plane mode on", "plan moat on", "plan mood on", "plan mode one", "plans mode on", "planned mode on", "plan moved on", "plan mowed on", "plan mode owned",
];
const STATUS: &[&str] = &[
    "what mode are you in", "which mode are you in", "what mode am i in", "which mode am i in", "what mode are we in", "which mode are we in", "what mode is on",
    "which mode is on", "what mode is it", "what mode is this", "whats the mode", "what is the mode", "are you in plan mode", "are we in plan mode",
    "am i in plan mode", "is plan mode on", "is plan mode off", "what mode", "what mood are you in", "what mode are you and", "what modes are you in", "what mode are you", "why mode are you in", "what more are you in", "what mode or you in", "what mode are you an", "mode status",
];
const READ: &[&str] = &[
    "read me the plan", "read the plan", "read plan", "read me the plans", "read me the plane", "read me the plant", "read the plans", "read out the plan", "read the plan to me",
    "read me the plan again", "read the plan again", "read it to me", "whats the plan", "what is the plan", "tell me the plan", "read my plan", "read me a plan", "read me the new plan",
    "read plan #", "read me plan #", "read me plan number #", "rid me the plan", "red me the plan", "read me the clan", "read me that plan",
];
const READ_STEP: &[&str] = &["read step #", "red step #", "right step #", "read me step #", "read step number #", "whats step #", "what is step #", "read me step number #"];
const KEEP: &[&str] = &["keep planning", "keep on planning", "go on planning", "continue planning", "plan some more", "keep plan in", "keep planting", "keep planing"];
const DISMISS: &[&str] = &[
    "set the plan aside", "set plan aside", "put the plan aside", "set the plan a side", "set the platter side", "set the planner side", "dismiss the plan", "dismiss plan #", "set plan # aside", "discard the plan", "set it aside", "discard plan #",
    "dismiss this plan", "set this plan aside", "set the plans aside",
];
const STOP: &[&str] = &[
    "stop", "stop talking", "stop speaking", "stop now", "be quiet", "quiet", "silence", "shut up", "hush", "thats enough", "enough", "stop reading", "stop stop", "please stop",
];
const STOP_OR_DENY: &[&str] = &["stop it", "stop that"];
const CANCEL: &[&str] = &["cancel that", "cancel", "cancel it", "cancel this", "cancel the request",
    // what recognisers write
    "can so that", "can sell that", "can so do that", "cancelled that", "cancel dad", "can save that",
];
const HELP: &[&str] = &[
    "what can i say", "what could i say", "what may i say", "help", "help me", "what are the commands", "which commands are there", "what commands are there", "what can i say here", "what can i say now",
    "what are my options", "list the commands", "what can i see",
];
const REPEAT: &[&str] = &[
    "say that again", "say it again", "repeat that", "repeat", "repeat it", "repeat please", "can you repeat that", "could you repeat that", "can you say that again", "could you say that again",
    "once more", "come again", "what did you say", "what was that", "pardon", "say that once more", "please repeat", "said that again", "say that again please", "saying that again", "save that again",
];
/// The loosening sentences. Nothing else leaves, approves or confirms by text.
const LEAVE: &[&str] = &["exit plan mode", "leave plan mode"];
const APPROVE: &[&str] = &["approve plan #", "approve plan number #"];
const APPROVE_NONE: &[&str] = &["approve the plan", "approve plan", "approve it", "approve", "approve this plan", "approve that plan", "approve that", "approve this", "approve my plan", "i approve", "i approve the plan"];
const CONFIRM: &[&str] = &["confirm plan #", "confirm plan number #"];
const CONFIRM_NONE: &[&str] = &["confirm the plan", "confirm plan", "confirm it", "confirm", "confirm that", "confirm this plan"];
const CONSENT: &[&str] = &["yes go ahead", "yes do it", "go ahead"];
const DENY: &[&str] = &[
    "no", "nope", "nah", "no no", "dont", "do not", "dont do it", "do not do it", "dont do that", "do not do that", "no dont", "no do not", "no thanks", "no thank you", "no way", "not now",
    "not yet", "never mind", "nevermind", "forget it", "forget that", "please dont", "please do not", "absolutely not", "negative", "i said no", "no no no", "no wait", "no stop", "no cancel", "no cancel that", "better not",
    "rather not", "id rather not", "of course not", "certainly not", "definitely not", "dont do it yet", "dont go ahead", "do not go ahead", "no dont do it", "not this time", "leave it", "skip it", "deny", "denied", "reject", "refuse", "decline",
    "not so fast", "i changed my mind", "ive changed my mind", "no i changed my mind", "keep it on", "stay", "stay in plan mode", "stay in planning mode", "keep plan mode on", "leave it on", "leave plan mode on",
    "no not like that", "no not that", "no leave it", "no forget it", "no never mind", "no not yet", "no not now", "no absolutely not", "no definitely not",
];
const HOLD: &[&str] = &[
    "wait", "hold on", "hang on", "wait a minute", "wait a moment", "wait a second", "wait wait", "one moment", "just a moment", "one second", "just a second", "one minute", "just a minute", "give me a moment", "give me a minute",
    "give me a second", "give me a sec", "just a sec", "get me a moment", "get me a minute", "get me a second", "one sec", "a moment", "wait a sec", "hold on a sec", "let me think about it", "let me think about that", "let me think for a moment", "hold it", "hold that", "hold on a second", "hold on a minute", "let me think", "hold on a moment", "please wait", "wait please", "a moment please", "one moment please",
];
const BARE: &[&str] = &[
    "yes", "yeah", "yep", "yup", "ok", "okay", "sure", "right", "alright", "all right", "fine", "of course", "sure thing", "yes please", "please do", "do it", "sounds good", "correct", "yes yes", "mm hmm", "mhm", "uh huh", "absolutely", "definitely",
    "please", "you bet", "go", "go on", "okay go", "yes ok", "yes okay", "okay yes", "yeah sure", "yes sure", "sure go", "proceed", "continue", "thats fine", "that is fine", "very well", "good", "great",
];
const SCREEN_ONLY: &[&str] = &[
    "bypass mode", "bypass mode on", "by pass mode on", "bye pass mode on", "bypass moved on", "by pass mode", "enter bypass mode", "switch to bypass mode", "turn on bypass mode", "turn bypass mode on", "go into bypass mode", "use bypass mode", "autonomous mode", "autonomous mode on",
    "enter autonomous mode", "switch to autonomous mode", "turn on autonomous mode", "turn autonomous mode on", "go into autonomous mode", "go autonomous", "use autonomous mode", "approve plan # in bypass", "approve plan # in bypass mode", "approve plan # with bypass",
    "approve plan # in autonomous mode", "approve plan # and bypass", "allow everything", "approve everything", "approve all", "allow all", "enable bypass mode", "activate bypass mode", "enable autonomous mode", "always allow", "always allow it", "yes always", "yes to all", "bypass all questions", "bypass permissions", "dont ask again",
    "stop asking", "stop asking me", "dont ask me again", "switch to loose mode", "loose mode",
];
/// Sentences that sound like the strict ones and mean something else. They compete for the sound and mean nothing by themselves.
const RIVALS: &[&str] = &[
    "dont enter plan mode", "dont leave plan mode", "dont exit plan mode", "do not approve plan #", "dont approve plan #", "disapprove plan #", "improve plan #", "remove plan #", "dont confirm plan #", "do not confirm plan #",
    "not plan #", "cancel plan #", "reject plan #", "move plan #", "approve plan # no", "confirm plan # no", "confirm plan # wait", "approve plan # wait", "yes dont do it", "yes but dont do it", "yes do", "go away", "go to bed", "hey", "now", "know", "you", "thank you",
    "enter", "leave", "the plan", "plan mode", "plan mode off", "improve the plan", "dont approve the plan", "present the plan", "go ahead no", "yes go ahead no", "go ahead wait", "yes do it no", "i didnt", "i do it", "guess do it", "go home", "good",
    "exit", "next plan mode", "exit plan", "leave plan", "text plan mode",
    "exit plan mode no", "leave plan mode no", "exit plan mode wait", "leave plan mode wait", "yes but not now", "yes do it later", "yes go", "i guess do it", "he said go ahead", "should i go ahead", "never go ahead",
    "never leave plan mode", "never exit plan mode", "lets do it", "just do it", "you do it", "why do it", "we went ahead", "prove plan #", "compare plan #", "approve step #", "wont confirm plan #", "should i confirm plan #", "confirm plan # dont",
];

type Row = (&'static [&'static str], fn(Option<u32>) -> Meaning);

/// Order matters only where two lists could match one sentence: none do (a test checks it).
const ROWS: &[Row] = &[
    (ENTER, |_| Meaning::Enter), (STATUS, |_| Meaning::Status), (READ, |_| Meaning::Read(None)), (READ_STEP, Meaning::Read), (KEEP, |_| Meaning::KeepPlanning),
    (DISMISS, Meaning::Dismiss), (STOP, |_| Meaning::Stop), (STOP_OR_DENY, |_| Meaning::Stop), (CANCEL, |_| Meaning::CancelTurn), (HELP, |_| Meaning::Help), (REPEAT, |_| Meaning::Repeat),
    (LEAVE, |_| Meaning::Leave), (APPROVE, Meaning::Approve), (APPROVE_NONE, |_| Meaning::Approve(None)), (CONFIRM, Meaning::Confirm), (CONFIRM_NONE, |_| Meaning::Confirm(None)),
    (CONSENT, |_| Meaning::Consent), (DENY, |_| Meaning::Deny), (HOLD, |_| Meaning::Hold), (BARE, |_| Meaning::Bare), (SCREEN_ONLY, |_| Meaning::ScreenOnly),
];

/// Words that may stand around a harmless sentence without changing it.
const FILLERS: &[&str] = &["please", "ok", "okay", "now", "uh", "um", "so", "well", "alright", "hey", "computer", "and"];

/// Lower-case words without marks, digits as number words, bracketed notes dropped, a sentence that only repeats itself cut to one.
pub fn words_of(text: &str) -> Vec<String> {
    let mut bare = String::with_capacity(text.len());
    for c in without_notes(text).chars() {
        match c {
            '\'' | '’' | '‘' | '`' => {}
            c if c.is_alphanumeric() => bare.extend(c.to_lowercase()),
            _ => bare.push(' '),
        }
    }
    let words: Vec<String> = bare.split_whitespace().map(|w| digit_word(w).unwrap_or(w).to_string()).collect();
    unloop(words)
}

/// The text without what stands in brackets: a recogniser's notes about sounds.
pub fn without_notes(text: &str) -> String {
    let mut depth = 0u32;
    let outside = |c: &char| match c {
        '[' | '(' | '{' => { depth += 1; false }
        ']' | ')' | '}' => { depth = depth.saturating_sub(1); false }
        _ => depth == 0,
    };
    text.chars().filter(outside).collect()
}

fn unloop(words: Vec<String>) -> Vec<String> {
    let n = words.len();
    for unit in 1..=n / 2 {
        if n % unit == 0 && words.chunks(unit).all(|c| c == &words[..unit]) {
            return words[..unit].to_vec();
        }
    }
    words
}

const NUMBERS: [&str; 21] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
    "seventeen", "eighteen", "nineteen", "twenty",
];

fn digit_word(word: &str) -> Option<&'static str> { NUMBERS.get(word.parse::<usize>().ok()?).copied() }

/// A number at the end of a sentence, with the homophones recognisers write there.
fn number(word: &str) -> Option<u32> {
    match word {
        "to" | "too" => Some(2),
        "for" => Some(4),
        _ => NUMBERS.iter().position(|n| *n == word).map(|n| n as u32).or_else(|| word.parse().ok()),
    }
}

/// The number word for a number, digits beyond twenty.
pub fn number_word(n: u32) -> String { NUMBERS.get(n as usize).map_or_else(|| n.to_string(), |w| (*w).to_string()) }

fn fits(pattern: &str, words: &[String]) -> Option<Option<u32>> {
    let mut slot = None;
    let mut given = words.iter();
    for want in pattern.split(' ') {
        let word = given.next()?;
        if want == "#" {
            slot = Some(number(word)?);
        } else if want != word {
            return None;
        }
    }
    given.next().is_none().then_some(slot)
}

fn lookup(rows: &[Row], words: &[String]) -> Option<Meaning> {
    rows.iter().find_map(|(list, make)| list.iter().find_map(|p| fits(p, words)).map(make))
}

/// What a whole utterance means where this language is spoken: its own sentences first, then the English ones.
pub fn meaning_in(language: Language, text: &str) -> Option<Meaning> {
    let own = if language == Language::German { german::meaning_of(text) } else { None };
    own.or_else(|| meaning_of(text))
}

/// What a whole utterance means in English. `None`: ordinary speech.
///
/// Fillers around a harmless sentence are ignored; around a strict one they are not, and it must be said plainly.
pub fn meaning_of(text: &str) -> Option<Meaning> {
    let words = words_of(text);
    if words.is_empty() {
        return None;
    }
    if let Some(found) = lookup(ROWS, &words) {
        let strict = matches!(found.class(), Class::Loosening | Class::Consent);
        return (!strict || is_plainly_said(text, &words)).then_some(found);
    }
    if let Some(change) = change_request(text, &words) {
        return Some(change);
    }
    let filler = |w: &String| FILLERS.contains(&w.as_str());
    let start = words.iter().position(|w| !filler(w))?;
    let end = words.iter().rposition(|w| !filler(w))? + 1;
    let found = lookup(ROWS, &unloop(words[start..end].to_vec()))?;
    matches!(found.class(), Class::Harmless | Class::Denial).then_some(found)
}

/// A strict sentence counts only as a plain statement: not asked, not quoted, not broken off, with nothing in brackets, and
/// said once or (recognisers repeat themselves) twice.
fn is_plainly_said(text: &str, words: &[String]) -> bool {
    let text = text.trim();
    let marked = text.contains(['?', '？', '¿', '‽', '"', '“', '”', '„', '«', '»', '(', ')', '[', ']', '{', '}', '…', '*', '/', '<', '>', '@', '_']);
    let quoted = text.starts_with(['\'', '‘', '’', '`']) || text.ends_with(['\'', '‘', '’', '`']);
    let broken_off = text.contains("..") || text.ends_with(['-', '–', '—', ',', ':', ';']);
    let said = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).count();
    !marked && !quoted && !broken_off && said <= 2 * words.len()
}

/// "Change step two: ..." and its like: the one open-ended sentence, harmless because it only sends the plan back.
fn change_request(text: &str, words: &[String]) -> Option<Meaning> {
    const HEADS: &[&[&str]] = &[
        &["change", "step", "#"], &["change", "step", "number", "#"], &["comment", "on", "step", "#"], &["change", "the", "plan"], &["change", "plan", "#"],
        &["please", "change", "step", "#"], &["please", "change", "the", "plan"], &["i", "want", "to", "change", "step", "#"], &["id", "like", "to", "change", "step", "#"],
    ];
    let fits_head = |head: &&[&str]| {
        words.len() > head.len() && head.iter().zip(words).all(|(h, w)| if *h == "#" { number(w).is_some() } else { h == w })
    };
    HEADS.iter().any(fits_head).then(|| Meaning::Change(text.trim().to_string()))
}

/// Words that deny, doubt, condition or revoke.
const VETO: &[&str] = &[
    "no", "not", "dont", "never", "stop", "wait", "cancel", "cant", "cannot", "wont", "if", "until", "should", "would", "unless", "but", "reject", "improve", "remove",
    "disapprove", "nope", "nah", "hold", "dont", "doesnt", "didnt", "isnt", "wouldnt", "shouldnt", "actually", "before", "after", "when", "why", "what", "how", "he", "she", "said", "says", "they",
];

/// True when the text holds a word that denies, doubts, conditions or revokes: it vetoes every loosening.
pub fn holds_veto(language: Language, text: &str) -> bool {
    let own = if language == Language::German { german::VETO } else { &[] };
    words_of(text).iter().any(|w| VETO.contains(&w.as_str()) || own.contains(&w.as_str()))
}

/// The words by which an answer is judged that is no sentence of the grammar.
#[derive(Debug)]
pub(super) struct Loose {
    /// One of them denies, wherever it stands.
    pub(super) denying: &'static [&'static str],
    /// So do two of these, one after the other.
    pub(super) denying_pairs: &'static [(&'static str, &'static str)],
    /// One of them holds.
    pub(super) waiting: &'static [&'static str],
    pub(super) waiting_pairs: &'static [(&'static str, &'static str)],
    /// They hold a denying word and deny nothing.
    pub(super) set_phrases: &'static [&'static str],
    /// What begins with one of them is asked.
    pub(super) asks: &'static [&'static str],
    /// What begins with one of them is asked, unless it holds one of `statement`.
    pub(super) may_ask: &'static [&'static str],
    pub(super) statement: &'static [&'static str],
    /// What is said of a mode is no answer about a tool, unless it begins with one of `outright`.
    pub(super) modes: &'static [&'static str],
    pub(super) outright: &'static [&'static str],
}

const LOOSE: Loose = Loose {
    denying: &["no", "nope", "nah", "not", "dont", "never", "cancel", "stop", "negative", "refuse", "reject", "deny", "wont", "abort"],
    denying_pairs: &[],
    waiting: &["wait"],
    waiting_pairs: &[("hold", "on"), ("hang", "on"), ("me", "think")],
    set_phrases: &[
        "no problem", "no problems", "no worries", "no doubt", "no objection", "no objections", "no idea", "not a problem", "not sure", "not certain", "dont know", "do not know", "dont mind", "do not mind", "dont care", "do not care",
        "dont worry", "do not worry", "dont understand", "do not understand", "dont remember", "did not hear", "did not catch", "did not understand", "not bad", "cant wait", "can not wait", "dont wait", "do not wait", "no need to wait", "no need to stop", "dont stop", "why not",
    ],
    asks: &["what", "whats", "why", "how", "who", "whos", "when", "where", "which", "whose"],
    may_ask: &["is", "are", "does", "do", "did", "can", "could", "would", "will", "should", "am", "was"],
    statement: &["not", "dont"],
    modes: &["mode"],
    outright: &["no", "stop"],
};

/// Those words where this language is spoken.
pub(super) fn loose_words(language: Language) -> &'static Loose {
    if language == Language::German { &german::LOOSE } else { &LOOSE }
}

/// One scored sentence and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// For the recogniser.
    pub phrase: Phrase,
    /// What it means.
    pub meaning: Meaning,
}

/// The sentences of a language whose fit to the sound is scored: what its recogniser is told and its judge reads.
pub fn phrase_table_of(language: Language) -> Vec<Scored> {
    match language { Language::English => phrase_table(), Language::German => german::phrase_table(), Language::Other => Vec::new() }
}

/// The same, made once and shared: every conversation reads it.
pub fn shared_table(language: Language) -> Arc<[Scored]> {
    static ENGLISH: OnceLock<Arc<[Scored]>> = OnceLock::new();
    static GERMAN: OnceLock<Arc<[Scored]>> = OnceLock::new();
    match language {
        Language::English => ENGLISH.get_or_init(|| phrase_table().into()).clone(),
        Language::German => GERMAN.get_or_init(|| german::phrase_table().into()).clone(),
        Language::Other => Arc::new([]),
    }
}

/// The English sentences whose fit to the sound is scored. Ids are indexes.
pub fn phrase_table() -> Vec<Scored> {
    let mut table: Vec<Scored> = Vec::new();
    let mut add = |sentence: &str, spellings: Vec<String>, meaning: Meaning| {
        let question = matches!(meaning, Meaning::Status | Meaning::Help) || sentence.starts_with("what");
        table.push(Scored { phrase: Phrase { id: table.len() as u16, spellings, question }, meaning });
    };
    for (sentence, meaning) in SCORED {
        add(sentence, spellings(sentence), meaning.clone());
    }
    for n in 1..=4u32 {
        let all = number_spellings(n).into_iter().flat_map(|num| spellings(&format!("read step {num}"))).collect();
        add("read step", all, Meaning::Read(Some(n)));
    }
    for n in 1..=10u32 {
        for (verbs, make) in [(&["approve", "approved", "a proof", "the proof"][..], Meaning::Approve as fn(Option<u32>) -> Meaning), (&["confirm", "confirmed", "confirms"][..], Meaning::Confirm)] {
            let all = verbs.iter().flat_map(|v| number_spellings(n).into_iter().flat_map(move |num| spellings(&format!("{v} plan {num}")))).collect();
            add("approve", all, make(Some(n)));
        }
    }
    for rival in RIVALS.iter().filter(|r| !r.contains('#')) {
        add(rival, spellings(rival), Meaning::Rival);
    }
    // Rivals with a number compete only for the versions people have in practice; each row costs a little time at every utterance.
    for rival in RIVALS.iter().filter(|r| r.contains('#')) {
        for n in 1..=4u32 {
            let all = number_spellings(n).into_iter().flat_map(|num| spellings(&rival.replace('#', &num))).collect();
            add(rival, all, Meaning::Rival);
        }
    }
    table
}

const SCORED: &[(&str, Meaning)] = &[
    ("enter plan mode", Meaning::Enter), ("plan mode on", Meaning::Enter), ("keep planning", Meaning::KeepPlanning), ("stop", Meaning::Stop), ("cancel that", Meaning::CancelTurn),
    ("what mode are you in", Meaning::Status), ("read me the plan", Meaning::Read(None)), ("say that again", Meaning::Repeat), ("what can i say", Meaning::Help),
    ("set the plan aside", Meaning::Dismiss(None)), ("leave plan mode", Meaning::Leave), ("exit plan mode", Meaning::Leave), ("go ahead", Meaning::Consent), ("yes, do it", Meaning::Consent),
    ("yes, go ahead", Meaning::Consent), ("approve the plan", Meaning::Approve(None)), ("confirm the plan", Meaning::Confirm(None)), ("yes", Meaning::Bare), ("yeah", Meaning::Bare),
    ("okay", Meaning::Bare), ("sure", Meaning::Bare), ("no", Meaning::Deny), ("don't do it", Meaning::Deny), ("nope", Meaning::Deny), ("no, don't", Meaning::Deny), ("cancel", Meaning::Deny),
    ("not yet", Meaning::Deny), ("never mind", Meaning::Deny), ("no way", Meaning::Deny), ("please don't", Meaning::Deny), ("absolutely not", Meaning::Deny), ("negative", Meaning::Deny),
    ("no no no", Meaning::Deny), ("don't", Meaning::Deny), ("stop it", Meaning::Deny), ("no thanks", Meaning::Deny), ("I said no", Meaning::Deny), ("not now", Meaning::Deny), ("forget it", Meaning::Deny),
    ("do not do it", Meaning::Deny), ("no, wait", Meaning::Deny), ("don't go ahead", Meaning::Deny), ("do not go ahead", Meaning::Deny), ("wait", Meaning::Hold), ("hold on", Meaning::Hold),
    ("let's plan first", Meaning::Enter), ("stop talking", Meaning::Stop), ("be quiet", Meaning::Stop), ("read the plan", Meaning::Read(None)), ("don't do that", Meaning::Deny), ("do not do that", Meaning::Deny),
    ("no, stop", Meaning::Deny), ("no, cancel that", Meaning::Deny), ("no, thank you", Meaning::Deny), ("I'd rather not", Meaning::Deny), ("rather not", Meaning::Deny), ("leave it", Meaning::Deny), ("nah", Meaning::Deny),
    ("I changed my mind", Meaning::Deny), ("definitely not", Meaning::Deny), ("of course not", Meaning::Deny), ("better not", Meaning::Deny), ("no, not like that", Meaning::Deny), ("no, not now", Meaning::Deny), ("skip it", Meaning::Deny),
    ("wait a minute", Meaning::Hold), ("hang on", Meaning::Hold), ("one moment", Meaning::Hold), ("just a moment", Meaning::Hold), ("let me think", Meaning::Hold),
];

fn number_spellings(n: u32) -> Vec<String> {
    let mut all = vec![number_word(n), n.to_string()];
    match n { 2 => all.extend(["to".to_string(), "too".to_string()]), 4 => all.push("for".into()), _ => {} }
    all
}

/// First letter large or small, and "Plan" / "Mode" in either case: a recogniser writes all of these for one sound, small ones mostly
/// in noise (a sentence without them was two nats worse there, and so were its rivals).
fn spellings(sentence: &str) -> Vec<String> {
    let with_marks = sentence.replace("dont", "don't").replace("didnt", "didn't").replace("wont ", "won't ").replace("lets ", "let's ");
    let mut chars = with_marks.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let base = format!("{first}{}", chars.as_str()).replace(" i ", " I ");
    let mut all = vec![base.clone()];
    all.extend(MISSPELT.iter().filter(|(right, _)| *right == base).flat_map(|(_, wrong)| wrong.iter().map(|w| (*w).to_owned())));
    for (small, large) in [(" plan", " Plan"), (" mode", " Mode")] {
        all.extend(all.iter().filter(|s| s.contains(small)).map(|s| s.replace(small, large)).collect::<Vec<_>>());
    }
    if base.contains(',') {
        all.extend(all.iter().map(|s| s.replace(',', "")).collect::<Vec<_>>());
    }
    let is_i = |s: &str| s.starts_with("I ") || s.starts_with("I'");
    all.extend(all.iter().filter(|s| !is_i(s)).map(|s| s.chars().take(1).flat_map(char::to_lowercase).chain(s.chars().skip(1)).collect::<String>()).collect::<Vec<_>>());
    all
}

/// How recognisers write single sentences besides: for the whole sentence alone, so that nothing longer borrows its sound.
const MISSPELT: &[(&str, &[&str])] = &[
    ("Leave plan mode", &["Leaf plan mode", "Lead plan mode"]), ("Enter plan mode", &["Inter plan mode", "Interplan mode", "Enterplan mode"]),
    ("Plan mode on", &["Plan mode one", "Plan mod on", "Plan moat on", "Plan modon"]), ("Never mind", &["Nevermind"]), ("Nah", &["Naw", "Na"]), ("Stop talking", &["Start talking"]),
    ("What mode are you in", &["What mode you in", "What motor are you in"]),
];

/// A yes or no that ends or begins so may never be a prompt's last or first words, whichever language is spoken.
pub fn begins_or_ends_approving(prompt: &str) -> bool {
    let words = words_of(prompt);
    let strict = |part: &[String]| [ROWS, german::ROWS].into_iter().filter_map(|rows| lookup(rows, part)).any(|m| matches!(m.class(), Class::Loosening | Class::Consent));
    (1..=words.len().min(5)).any(|n| strict(&words[..n]) || strict(&words[words.len() - n..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_has_two_meanings() {
        for rows in [ROWS, german::ROWS] {
            for (i, (list, _)) in rows.iter().enumerate() {
                for sentence in *list {
                    let words: Vec<String> = sentence.split(' ').map(|w| if w == "#" { "three".into() } else { w.to_string() }).collect();
                    let hits: Vec<usize> = rows.iter().enumerate().filter(|(_, (l, _))| l.iter().any(|p| fits(p, &words).is_some())).map(|(n, _)| n).collect();
                    assert_eq!(hits, vec![i], "{sentence}");
                }
            }
        }
    }

    #[test]
    fn marks_case_and_loops_do_not_matter() {
        assert_eq!(meaning_of("Stop. Stop."), Some(Meaning::Stop));
        assert_eq!(meaning_of("Keep planning. [Music]"), Some(Meaning::KeepPlanning));
        assert_eq!(meaning_of(" Approve Plan 2."), Some(Meaning::Approve(Some(2))));
        assert_eq!(meaning_of("Okay, enter plan mode, please."), Some(Meaning::Enter));
        assert_eq!(meaning_of("Please exit plan mode."), None, "strict sentences take no fillers");
        assert_eq!(meaning_of("Go ahead?"), None, "a question is no consent");
    }

    #[test]
    fn the_phrase_tables_are_within_bounds() {
        assert!(phrase_table_of(Language::Other).is_empty());
        for language in [Language::English, Language::German] {
            let table = phrase_table_of(language);
            assert!(table.len() < 300, "{}", table.len());
            assert!(table.iter().enumerate().all(|(i, s)| s.phrase.id as usize == i && !s.phrase.spellings.is_empty()));
            // One way of writing belongs to one meaning, or the two would tie and neither could lead.
            let mut meanings: std::collections::HashMap<&str, &Meaning> = std::collections::HashMap::new();
            for scored in &table {
                for spelling in &scored.phrase.spellings {
                    let known = meanings.entry(spelling).or_insert(&scored.meaning);
                    assert_eq!(*known, &scored.meaning, "{spelling}");
                }
            }
        }
    }

    #[test]
    fn what_is_scored_means_the_same_when_it_is_written() {
        for language in [Language::English, Language::German] {
            for scored in phrase_table_of(language).iter().filter(|s| s.meaning != Meaning::Rival) {
                let text = &scored.phrase.spellings[0];
                let (read, class) = (meaning_in(language, text), scored.meaning.class());
                assert!(read.as_ref().is_some_and(|m| m.class() == class) || class == Class::Denial && read == Some(Meaning::CancelTurn) || class == Class::Denial && read == Some(Meaning::Stop), "{text}: {read:?}");
            }
        }
    }

    #[test]
    fn german_is_read_beside_english_and_only_where_it_is_spoken() {
        let german = |text| meaning_in(Language::German, text);
        for text in ["Planmodus an.", "Plan Modus an", "Bitte geh in den Planmodus!", "Also, starte den Planungsmodus.", "Enter plan mode."] { assert_eq!(german(text), Some(Meaning::Enter), "{text}") }
        for text in ["Ja, mach das.", "Ja mach weiter!", "ja, bitte mach das"] { assert_eq!((german(text), meaning_of(text)), (Some(Meaning::Consent), None), "{text}") }
        for text in ["Ja, mach das?", "\u{201e}Ja, mach das\u{201c}", "Ja, mach das, aber nicht jetzt", "Okay, ja, mach das", "Ja, mach das...", "Er sagte, ja, mach das", "Ja, mach das Licht an."] { assert_ne!(german(text), Some(Meaning::Consent), "{text}") }
        assert_eq!(german("Verlasse den Planmodus."), Some(Meaning::ScreenOnly));
        assert_eq!((meaning_in(Language::Other, "Nein."), meaning_in(Language::Other, "Planmodus an.")), (None, None));
        assert!(holds_veto(Language::German, "Ja, aber") && !holds_veto(Language::English, "Ja, aber"));
        assert!(CONSENTS.iter().all(|c| !holds_veto(Language::German, c)));
        assert!(begins_or_ends_approving("Sag bitte: ja, mach das."));
    }

    const CONSENTS: [&str; 4] = ["ja mach das", "ja mach weiter", "ja bitte mach das", "yes go ahead"];
}
