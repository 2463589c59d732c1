//! What an utterance decides, given what is open. The one judge for the live microphone, for typed words and for `voxgate eval utterances`.
//!
//! Tightening is generous; loosening and consent need the exact sentence, a margin over every rival on the sound where there is sound, and no vetoing word.

use super::grammar::{Class, Loose, Meaning, Scored, holds_veto, loose_words, meaning_in, without_notes, words_of};
use super::heard::Heard;
use super::language::Language;

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
    /// The language that is spoken.
    pub language: Language,
}

impl Moment {
    /// Nothing is open, plan mode is off.
    pub const OFF: Moment = Moment { open: Open::Nothing, in_plan: false, waiting: None, language: Language::English };
    /// Nothing is open, plan mode is on.
    pub const PLANNING: Moment = Moment { in_plan: true, ..Moment::OFF };
    /// A tool's question is open and was heard.
    pub const ASKED: Moment = Moment { open: Open::Tool, ..Moment::OFF };
    /// Plans one and two exist, plan two waits.
    pub const REVIEW: Moment = Moment::review(2);
    /// The question about plan two is open and was heard.
    pub const CONFIRM: Moment = Moment::confirm(2);
    /// The question about leaving plan mode is open and was heard.
    pub const LEAVING: Moment = Moment { open: Open::Leave, ..Moment::PLANNING };

    /// This version waits.
    pub const fn review(version: u32) -> Moment { Moment { waiting: Some(version), ..Moment::PLANNING } }

    /// The question about this version is open and was heard.
    pub const fn confirm(version: u32) -> Moment { Moment { open: Open::Approve(version), ..Moment::review(version) } }

    /// The moment that a kind of the utterance table stands for.
    pub fn of_kind(kind: &str) -> Option<Moment> {
        Some(match kind {
            "intent" => Moment::PLANNING,
            "consent" => Moment::ASKED,
            "review" => Moment::REVIEW,
            "confirm" => Moment::CONFIRM,
            "leave" => Moment::LEAVING,
            _ => return None,
        })
    }
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
    let meaning = meaning_in(moment.language, text).or_else(|| loose_answer(text, moment));
    resolve(meaning, text, moment)
}

/// Decides on what a recogniser heard: the text, and how well the grammar's sentences fit the sound.
pub fn decide(heard: &Heard, table: &[Scored], moment: &Moment) -> Decision { decide_by(&RULES, heard, table, moment) }

/// As [`decide`], by other rules: for measurements.
pub fn decide_by(rules: &Rules, heard: &Heard, table: &[Scored], moment: &Moment) -> Decision {
    let by_text = by_voice(decide_text(&heard.text, moment), moment);
    let nothing = if moment.open == Open::Nothing { Decision::None } else { Decision::Neither { bare: false } };
    if heard.scores.is_empty() {
        // Typed words have no sound. A recogniser that wrote something and found none of our sentences near it heard none of them.
        return if by_text.loosens() && heard.tokens > 0 { nothing } else { by_text };
    }
    let by_sound = by_voice(resolve(meaning_by_sound(rules, heard, table, moment), &heard.text, moment), moment);
    agreed(by_text, by_sound, nothing)
}

/// What the words and the sound come to together. `nothing`: what an utterance comes to that decides nothing.
fn agreed(by_text: Decision, by_sound: Decision, nothing: Decision) -> Decision {
    let silent = |d: &Decision| matches!(d, Decision::None | Decision::Neither { .. });
    match (&by_text, &by_sound) {
        // A denial stands, written or spoken, whatever else it is taken for: "No." is often written "Yeah."
        (Decision::Deny | Decision::Hold, _) => by_text,
        (_, Decision::Deny | Decision::Hold) => by_sound,
        // Nothing loosens by its words alone: the sound must agree, with its lead over every rival.
        (text, sound) if silent(sound) => if text.loosens() { nothing } else { by_text },
        // Where both know a command and differ, the harmless one counts.
        (text, _) if silent(text) || text.loosens() => by_sound,
        _ => by_text,
    }
}

/// What a decision comes to when it is spoken in this language: plans are approved and plan mode is left by voice in English alone, tools
/// are approved where there are sentences to say. Everything else that loosens needs the chat or a screen.
fn by_voice(decision: Decision, moment: &Moment) -> Decision {
    let spoken = match moment.language {
        Language::English => true,
        Language::German => decision == Decision::Approve && moment.open == Open::Tool,
        Language::Other => false,
    };
    let asks = decision.loosens() || decision == Decision::WhichVersion;
    match moment.open {
        _ if spoken || !asks => decision,
        Open::Nothing => Decision::ScreenOnly,
        _ => Decision::Neither { bare: false },
    }
}

/// What a sentence needs on the sound, in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Its log-probability, relative to the free transcript's.
    pub relative: f32,
    /// Its log-probability by itself.
    pub floor: f32,
    /// Its lead over the best sentence of another meaning.
    pub lead: f32,
}

/// The rules of all classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Tightens or only asks.
    pub harmless: Rule,
    /// Asks to loosen, or confirms.
    pub loosening: Rule,
    /// The same on a worse sound: the lower the score, the larger the lead must be.
    pub loosening_faint: Rule,
    /// Consents to a tool or to leaving.
    pub consent: Rule,
    /// The same on a worse sound.
    pub consent_faint: Rule,
    /// Consents in two words: they are also the end of longer sentences ("don't go ahead", "if it is safe, go ahead"), whose front a
    /// noise swallows. No worse sound will do.
    pub consent_short: Rule,
    /// A short consent counts only while it is less likely than this that nobody spoke.
    pub short_no_speech: f32,
    /// Denies or holds while nothing is open.
    pub denial: Rule,
    /// Denies or holds while a question is open.
    pub denial_asked: Rule,
    /// Approves nothing: bare yes, rivals.
    pub other: Rule,
    /// Lead of what loosens over everything that denies, taken together.
    pub opposed: f32,
    /// Nothing loosens, and no question is answered by sound, when it is likelier than this that nobody spoke.
    pub no_speech: f32,
    /// A longer transcript that happens to hold a command's sound is ordinary speech.
    pub tokens: u32,
}

const fn rule(relative: f32, floor: f32, lead: f32) -> Rule { Rule { relative, floor, lead } }

/// Fitted on one half of the voices of `voxgate eval commands` and judged on the other.
pub const RULES: Rules = Rules {
    harmless: rule(-6.0, -12.0, 1.0), loosening: rule(-2.0, -4.0, 2.0), loosening_faint: rule(-2.0, -7.0, 3.5), consent: rule(-2.0, -4.0, 2.0), consent_faint: rule(-2.0, -5.5, 3.5),
    consent_short: rule(-1.0, -2.2, 3.0), short_no_speech: 0.4,
    denial: rule(-3.0, -6.0, 1.0), denial_asked: rule(-4.0, -8.0, 0.5), other: rule(-2.0, -16.0, 1.0), opposed: 2.0, no_speech: 0.7, tokens: 16,
};

/// How many nats below the free transcript a sentence of this class is worth following: as far as it could still count or rival.
pub fn followed_below(class: Class) -> f32 {
    match class { Class::Harmless => 8.0, Class::Denial => 5.0, _ => 4.5 }
}

/// The best sentence on the sound and what speaks against it.
struct Found<'a> {
    meaning: &'a Meaning,
    /// Words of the sentence.
    words: usize,
    ll: f32,
    lead: f32,
    /// Lead over all denials together; infinite for a denial.
    opposed: f32,
}

/// Denials are one meaning: "no" and "don't do it" do not compete, and together they compete with what loosens.
fn best_on_sound<'a>(heard: &Heard, table: &'a [Scored], language: Language) -> Option<Found<'a>> {
    let row = |id: u16| table.get(id as usize);
    let scores = || heard.scores.iter().filter(|s| s.ll.is_finite()).filter_map(|s| Some((row(s.id)?, s.ll)));
    let (best, ll) = scores().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let meaning = &best.meaning;
    let denies = |m: &Meaning| m.class() == Class::Denial;
    // "Yes" is no rival of "yes, go ahead" where that was written: it lacks words, and says nothing against it.
    let agrees = meaning.class() == Class::Consent && meaning_in(language, &heard.text).as_ref() == Some(meaning);
    let same = |other: &Meaning| other == meaning || denies(meaning) && denies(other) || agrees && *other == Meaning::Bare;
    let rival = scores().filter(|(s, _)| !same(&s.meaning)).map(|(_, ll)| ll).fold(f32::NEG_INFINITY, f32::max);
    let opposes = |s: &Scored| denies(&s.meaning) || s.meaning == Meaning::Rival && holds_veto(language, &s.phrase.spellings[0]);
    let against = scores().filter(|(s, _)| opposes(s)).map(|(_, ll)| ll.exp()).sum::<f32>().ln();
    let over = |rival: f32| if rival.is_finite() { ll - rival } else { f32::INFINITY };
    let words = best.phrase.spellings.first().map_or(0, |s| s.split(' ').count());
    Some(Found { meaning, words, ll, lead: over(rival), opposed: if denies(meaning) { f32::INFINITY } else { over(against) } })
}

/// The best denial, with its lead over what is a sentence of its own. Rivals exist to keep what loosens apart ("go away") and noise
/// from being taken for "no" ("now", "know"); while a question is open they need not be told from a denial, which only ever closes it.
fn denial_on_sound<'a>(heard: &Heard, table: &'a [Scored]) -> Option<(&'a Meaning, f32, f32)> {
    let scores = || heard.scores.iter().filter(|s| s.ll.is_finite()).filter_map(|s| Some((&table.get(s.id as usize)?.meaning, s.ll)));
    let (meaning, ll) = scores().filter(|(m, _)| m.class() == Class::Denial).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let rival = scores().filter(|(m, _)| m.class() != Class::Denial && **m != Meaning::Rival).map(|(_, ll)| ll).fold(f32::NEG_INFINITY, f32::max);
    Some((meaning, ll, if rival.is_finite() { ll - rival } else { f32::INFINITY }))
}

fn meaning_by_sound(rules: &Rules, heard: &Heard, table: &[Scored], moment: &Moment) -> Option<Meaning> {
    if moment.open != Open::Nothing && heard.tokens <= rules.tokens && heard.no_speech <= rules.no_speech
        && let Some((meaning, ll, lead)) = denial_on_sound(heard, table)
        && ll - heard.free_ll >= rules.denial_asked.relative && ll >= rules.denial_asked.floor && lead >= rules.denial_asked.lead
    {
        return Some(meaning.clone());
    }
    let found = best_on_sound(heard, table, moment.language)?;
    let written = meaning_in(moment.language, &heard.text);
    let agrees = written.as_ref() == Some(found.meaning);
    let class = found.meaning.class();
    let strict = matches!(class, Class::Loosening | Class::Consent);
    let short = class == Class::Consent && found.words <= 2;
    // One of them is enough.
    let enough: &[Rule] = match class {
        Class::Harmless => &[rules.harmless],
        Class::Loosening => &[rules.loosening, rules.loosening_faint],
        Class::Consent if short => &[rules.consent_short],
        Class::Consent => &[rules.consent, rules.consent_faint],
        Class::Denial => &[rules.denial],
        Class::Other => &[rules.other],
    };
    if heard.tokens > rules.tokens || short && heard.no_speech > rules.short_no_speech {
        return None;
    }
    if strict && (found.opposed < rules.opposed || is_doubtful(rules, heard, &found, moment.language, agrees, written.is_some())) {
        return None;
    }
    let holds = |rule: &Rule| found.ll - heard.free_ll >= rule.relative && found.ll >= rule.floor && found.lead >= rule.lead;
    enough.iter().any(holds).then(|| found.meaning.clone())
}

/// What begins in the middle of speech, asks, doubts, was not understood, is written as another sentence of the grammar or as a longer
/// one is no plain statement.
fn is_doubtful(rules: &Rules, heard: &Heard, found: &Found<'_>, language: Language, agrees: bool, is_sentence: bool) -> bool {
    let longer = words_of(&heard.text).len() > found.words + 1;
    heard.clipped || heard.text.is_empty() || heard.no_speech > rules.no_speech || holds_veto(language, &heard.text) || heard.text.contains('?') || !agrees && (is_sentence || longer)
}

/// Longest utterance, in words, that is searched for a denial: beyond it somebody is telling a story.
const LOOSE_WORDS: usize = 20;

/// While a question is open, an utterance that holds a denial denies, wherever it stands; one that holds "wait" waits.
/// Nothing found here ever approves.
fn loose_answer(text: &str, moment: &Moment) -> Option<Meaning> {
    if moment.open == Open::Nothing {
        return None;
    }
    let all = words_of(text);
    if all.len() > 10 * LOOSE_WORDS {
        return None;
    }
    // "No, what are you doing?" and "Wait, what?": a whole clause that answers does so whatever is asked after it.
    let bare = without_notes(text);
    let clauses: Vec<Meaning> = bare.split_inclusive(['.', ',', '!', '?', ';', ':', '…', '—', '–']).filter(|c| !c.ends_with('?')).filter_map(|c| meaning_in(moment.language, c)).collect();
    if clauses.contains(&Meaning::Deny) {
        return Some(Meaning::Deny);
    }
    let waits = clauses.contains(&Meaning::Hold).then_some(Meaning::Hold);
    let loose = loose_words(moment.language);
    let words = without_set_phrases(all, loose);
    if text.contains('?') || words.len() > LOOSE_WORDS || is_question(&words, loose) {
        return waits;
    }
    let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let pair = |list: &[(&str, &str)]| words.windows(2).any(|w| list.iter().any(|(a, b)| w[0] == *a && w[1] == *b));
    // A mode is not what a tool's question is about.
    if moment.open == Open::Tool && has(loose.modes) && !words.first().is_some_and(|w| loose.outright.contains(&w.as_str())) {
        return waits;
    }
    if has(loose.denying) || pair(loose.denying_pairs) {
        return Some(Meaning::Deny);
    }
    (has(loose.waiting) || pair(loose.waiting_pairs)).then_some(Meaning::Hold).or(waits)
}

/// The words without phrases that hold a denying word and deny nothing.
fn without_set_phrases(words: Vec<String>, loose: &Loose) -> Vec<String> {
    let mut rest = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let long = loose.set_phrases.iter().map(|s| s.split(' ').collect::<Vec<_>>()).filter(|s| words[at..].len() >= s.len() && s.iter().zip(&words[at..]).all(|(a, b)| a == b)).map(|s| s.len()).max();
        if long.is_none() { rest.push(words[at].clone()) }
        at += long.unwrap_or(1);
    }
    rest
}

/// Asked, not answered: it begins with a question's word, and with "is", "can" and their like only without a "not".
fn is_question(words: &[String], loose: &Loose) -> bool {
    let starts = |list: &[&str]| words.first().is_some_and(|w| list.contains(&w.as_str()));
    starts(loose.asks) || starts(loose.may_ask) && !words.iter().any(|w| loose.statement.contains(&w.as_str()))
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
        Meaning::Stop => if asked && stops_it(text, moment.language) { Decision::Deny } else { Decision::Stop },
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

/// "Stop it" is about what is asked, and "stop" alone about the voice; a German "halt" or "stopp" may be either, and denies.
fn stops_it(text: &str, language: Language) -> bool {
    let words = words_of(text);
    language == Language::German || meaning_in(language, text) == Some(Meaning::Stop) && words.iter().any(|w| w == "it" || w == "that")
}

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

#[cfg(test)]
#[path = "intent_tests.rs"]
mod verdicts;

#[cfg(test)]
mod tests {
    use super::super::grammar::phrase_table_of;
    use super::verdicts::{heard, heard_in};
    use super::*;

    const TOOL: Moment = Moment::ASKED;
    const REVIEW: Moment = Moment::REVIEW;
    const CONFIRM: Moment = Moment::CONFIRM;

    fn judged(heard: &Heard, moment: &Moment) -> Decision { decide(heard, &phrase_table_of(moment.language), moment) }

    #[test]
    fn words_without_their_sound_loosen_nothing() {
        for (text, moment) in [("Go ahead.", TOOL), ("Confirm plan two.", CONFIRM), ("Approve plan two.", REVIEW), ("Exit plan mode.", REVIEW)] {
            let mut said = heard(text, &[]);
            assert!(!judged(&said, &moment).loosens(), "{text}: written, and nothing near on the sound");
            said.tokens = 0;
            assert!(judged(&said, &moment).loosens(), "{text}: typed");
            let other = heard(text, &[("The plan", -0.9)]);
            assert!(!judged(&other, &moment).loosens(), "{text}: the sound says something else");
        }
        assert_eq!(judged(&heard("Enter plan mode.", &[]), &REVIEW), Decision::Enter, "what tightens needs no sound");
    }

    #[test]
    fn what_loosens_leads_every_rival_and_all_denials_together() {
        assert_eq!(judged(&heard("Go ahead.", &[("Go ahead", -0.4), ("No", -4.0)]), &TOOL), Decision::Approve);
        assert_eq!(judged(&heard("Go ahead.", &[("Go ahead", -0.4), ("Go away", -1.5)]), &TOOL), Decision::Neither { bare: false });
        // "If it is safe, go ahead." and "Don't go ahead." with their fronts under a noise, as two voices were heard.
        for (ll, free, no, no_speech) in [(-2.8, -3.3, -7.4, 0.28), (-3.3, -3.8, -8.0, 0.65), (-0.4, -0.5, -8.0, 0.5)] {
            let faint = Heard { free_ll: free, no_speech, ..heard("Go ahead.", &[("Go ahead", ll), ("No", no)]) };
            assert_eq!(judged(&faint, &TOOL), Decision::Neither { bare: false }, "two words need a clear sound: {ll}, {no_speech}");
            let whole = Heard { free_ll: free, no_speech, ..heard("Yes, go ahead.", &[("Yes, go ahead", ll), ("No", no)]) };
            assert_eq!(judged(&whole, &TOOL), Decision::Approve, "the whole sentence does not");
        }
        let crowd: Vec<_> = [("Go ahead", -0.4), ("No", -2.6), ("Don't go ahead", -2.6), ("Go ahead no", -2.6), ("No, wait", -2.6)].into();
        assert_eq!(judged(&heard("Go ahead.", &crowd), &TOOL), Decision::Neither { bare: false }, "no denial alone is near, all together are");
        assert_eq!(judged(&heard("Confirm plan two.", &[("Confirm plan two", -0.4), ("Confirm plan two no", -1.4)]), &CONFIRM), Decision::Neither { bare: false });
        assert_eq!(judged(&heard("Confirm plan two.", &[("Confirm plan two", -0.4), ("Confirm plan three", -1.4)]), &CONFIRM), Decision::Neither { bare: false });
    }

    #[test]
    fn a_front_that_is_missing_voids_what_loosens_and_nothing_else() {
        for (text, phrase, moment) in [("Approve plan two.", "Approve plan two", REVIEW), ("Confirm plan two.", "Confirm plan two", CONFIRM), ("Go ahead.", "Go ahead", TOOL)] {
            let whole = heard(text, &[(phrase, -0.4)]);
            assert!(judged(&whole, &moment).loosens(), "{text}");
            assert!(!judged(&Heard { clipped: true, ..whole.clone() }, &moment).loosens(), "{text}");
            assert!(!judged(&Heard { no_speech: 0.9, ..whole }, &moment).loosens(), "{text}");
        }
        let no = Heard { clipped: true, ..heard("No.", &[("No", -0.4)]) };
        assert_eq!(judged(&no, &TOOL), Decision::Deny);
    }

    #[test]
    fn a_spoken_denial_stands_whatever_was_written() {
        assert_eq!(judged(&heard("Yeah.", &[("No", -0.6), ("Yeah", -2.0)]), &TOOL), Decision::Deny);
        assert_eq!(judged(&heard("Don't.", &[("Go ahead", -0.6)]), &TOOL), Decision::Deny);
        assert_eq!(judged(&heard("Yes.", &[("Yes, go ahead", -0.6)]), &TOOL), Decision::Neither { bare: true }, "another sentence was written");
    }

    const DE: Moment = Moment { language: Language::German, ..TOOL };

    #[test]
    fn field_case_29_consent_is_understood_in_german_and_in_no_language_without_sentences() {
        let de = |text: &str, scores: &[(&str, f32)], moment: &Moment| judged(&heard_in(Language::German, text, scores), moment);
        for text in ["Ja.", "Ja!", "Okay.", "Ja, bitte.", "Mach das."] {
            assert_eq!(de(text, &[("Ja", -0.4)], &DE), Decision::Neither { bare: true }, "{text}: asked again");
        }
        for (text, phrase) in [("Ja, mach das.", "Ja, mach das"), ("Ja, mach weiter.", "Ja, mach weiter"), ("Ja, bitte mach das!", "Ja, bitte mach das"), ("Ja, macht das.", "Ja, mach das")] {
            assert_eq!(de(text, &[(phrase, -0.4), ("Ja", -3.0)], &DE), Decision::Approve, "{text}");
            assert_eq!(de(text, &[], &DE), Decision::Neither { bare: false }, "{text}: without its sound");
            assert_eq!(de(text, &[(phrase, -0.4), ("Ja, mach das nicht", -1.0)], &DE), Decision::Neither { bare: false }, "{text}: too near a denial");
        }
        for text in ["Nein.", "Nein, danke.", "Nicht.", "Lass das.", "Mach das nicht.", "Halt!", "Stopp.", "Ja, mach das nicht.", "Ja, aber nicht jetzt.", "Ach nein, mach das lieber nicht.", "Das will ich nicht.", "Auf keinen Fall.", "No.", "Am besten nicht."] {
            assert_eq!(de(text, &[], &DE), Decision::Deny, "{text}");
            assert_eq!(de(text, &[("Ja, mach das", -0.4)], &DE), Decision::Deny, "{text}: whatever its sound is like");
        }
        for text in ["Warte.", "Warte mal.", "Moment.", "Ja, einen Moment noch.", "Lass mich überlegen."] {
            assert_eq!(de(text, &[], &DE), Decision::Hold, "{text}");
        }
        assert_eq!(de("Ein.", &[("Nein", -0.6), ("Ein", -0.5)], &DE), Decision::Deny, "a denial that is written otherwise");
        for text in ["Was macht das?", "Kein Problem.", "Ich weiß nicht.", "Ist das sicher?"] {
            assert_eq!(de(text, &[], &DE), Decision::Neither { bare: false }, "{text}");
        }
        // Plans and modes: in German the voice only tightens.
        let plan = Moment { in_plan: true, open: Open::Nothing, waiting: Some(2), ..DE };
        for text in ["Exit plan mode.", "Approve plan two.", "Approve the plan.", "Verlasse den Planmodus.", "Genehmige Plan 2."] {
            assert_eq!(decide(&Heard::text_only(text), &phrase_table_of(Language::German), &plan), Decision::ScreenOnly, "{text}");
        }
        for open in [Open::Leave, Open::Approve(2)] {
            for text in ["Ja, mach das.", "Yes, go ahead.", "Confirm plan two."] {
                let asked = Moment { open, ..plan };
                assert!(!decide(&Heard::text_only(text), &phrase_table_of(Language::German), &asked).loosens(), "{text}");
            }
        }
        assert_eq!(de("Planmodus an.", &[], &plan), Decision::Enter);
        assert_eq!(de("Planmodus an.", &[("Planmodus an", -0.4)], &DE), Decision::Enter);
        // No sentences, no consent: not on words, not with a score from anywhere.
        for code in ["fr", "xx", "ja"] {
            let language = Language::of(code);
            for open in [Open::Nothing, Open::Tool, Open::Leave, Open::Approve(2)] {
                let moment = Moment { open, in_plan: true, waiting: Some(2), language };
                for text in ["Ja, mach das.", "Oui, vas-y.", "Yes, go ahead.", "Go ahead.", "Exit plan mode.", "Approve plan two.", "Confirm plan two."] {
                    for heard in [Heard::text_only(text), heard(text, &[]), heard(text, &[("Go ahead", -0.1)]), heard(text, &[("Confirm plan two", -0.1)])] {
                        assert!(!decide(&heard, &phrase_table_of(language), &moment).loosens(), "{code} {text}");
                        assert!(!decide(&heard, &phrase_table_of(Language::English), &moment).loosens(), "{code} {text}: another table");
                    }
                }
            }
        }
    }

    #[test]
    fn field_case_30_entering_is_heard_generously_and_only_when_it_is_said() {
        let off = Moment::default();
        for text in [
            "Enter plan mode.", "Let's plan first.", "Please go into planning mode.", "Interplan mode.", "Enter plane mode.", "And her plan mode.", "Okay, enter plan mode, please.", "Plan mode on.",
        ] {
            assert_eq!(decide_text(text, &off), Decision::Enter, "{text}");
            assert_eq!(judged(&heard(text, &[]), &off), Decision::Enter, "{text}: tightening needs no score");
            assert_eq!(decide_text(text, &TOOL), Decision::Enter, "{text}: whatever is asked");
        }
        for text in [
            "Don't enter plan mode.", "What is plan mode?", "The docs say 'enter plan mode'.", "Should I enter plan mode?", "I will enter plan mode later.", "He said enter plan mode.", "Do not enter plan mode.", "When should I enter plan mode?", "I never enter plan mode.",
            "Enter plan mode is what the docs say.",
        ] {
            assert_ne!(decide_text(text, &off), Decision::Enter, "{text}");
            assert_ne!(judged(&heard(text, &[("Don't enter plan mode", -0.5), ("Enter plan mode", -3.0)]), &off), Decision::Enter, "{text}");
        }
        // Leaving is the dangerous edge: it asks once more, and only a whole consent answers that.
        let on = Moment { in_plan: true, ..off };
        let said = heard("Exit plan mode.", &[("Exit plan mode", -0.4)]);
        assert_eq!((judged(&said, &on), judged(&said, &off)), (Decision::LeaveQuestion, Decision::Status));
        let asked = Moment { open: Open::Leave, ..on };
        assert_eq!(judged(&said, &asked), Decision::Neither { bare: false }, "saying it again is no answer");
        assert_eq!(judged(&heard("Yes.", &[("Yes", -0.4)]), &asked), Decision::Neither { bare: true });
        assert_eq!(judged(&heard("Yes, go ahead.", &[("Yes, go ahead", -0.4)]), &asked), Decision::Approve);
        assert_eq!(judged(&heard("Enter plan mode.", &[]), &asked), Decision::Enter);
    }
}
