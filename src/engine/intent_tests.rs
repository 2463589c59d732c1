//! Each condition of the decision over words and sound, one at a time; and the utterance table, line by line, in the pure rooms.

use super::super::grammar::{phrase_table, phrase_table_of};
use super::super::heard::PhraseScore;
use super::*;

const TOOL: Moment = Moment::ASKED;
const IDLE: Moment = Moment::PLANNING;

/// What a recogniser may report: the text, and sentences with their scores.
pub(super) fn heard(text: &str, scores: &[(&str, f32)]) -> Heard { heard_in(Language::English, text, scores) }

pub(super) fn heard_in(language: Language, text: &str, scores: &[(&str, f32)]) -> Heard {
    let table = phrase_table_of(language);
    let id = |sentence: &str| table.iter().find(|s| s.phrase.spellings.iter().any(|w| w == sentence)).unwrap_or_else(|| panic!("{sentence} is not scored")).phrase.id;
    let scores = scores.iter().map(|(sentence, ll)| PhraseScore { id: id(sentence), ll: *ll }).collect();
    Heard { text: text.into(), free_ll: -0.5, tokens: 4, scores, ..Heard::default() }
}

fn by_sound(heard: &Heard, moment: &Moment) -> Option<Meaning> { meaning_by_sound(&RULES, heard, &phrase_table(), moment) }

#[test]
fn every_line_of_the_utterance_table_is_decided_as_it_says() {
    let lines: Vec<Vec<&str>> = include_str!("../../tests/data/utterances.tsv").lines().map(|l| l.split('\t').collect()).filter(|l: &Vec<&str>| l.len() == 3).collect();
    assert!(lines.len() >= 550, "{} lines", lines.len());
    for line in &lines {
        assert_eq!(decide_text(line[1], &Moment::of_kind(line[0]).unwrap_or_else(|| panic!("no moment is called {}", line[0]))).name(), line[2], "{line:?}");
    }
    let distinct: std::collections::BTreeSet<&str> = lines.iter().map(|l| l[2]).collect();
    assert_eq!(distinct.len(), 17, "a name without a line: {distinct:?}");
}

#[test]
fn a_sentence_about_another_version_names_it() {
    let confirm = Moment::CONFIRM;
    assert_eq!(decide_text("Approve plan one.", &confirm), Decision::RefusedVersion(1));
    assert_eq!(decide_text("Approve plan two.", &confirm), Decision::Neither { bare: false }, "approving once more confirms nothing");
    assert_eq!(decide_text("Confirm plan one.", &confirm), Decision::RefusedVersion(1));
    assert_eq!(["Stop.", "Stop it.", "Stop that."].map(|text| decide_text(text, &TOOL)), [Decision::Stop, Decision::Deny, Decision::Deny]);
}

#[test]
fn a_word_about_the_review_means_nothing_where_none_is() {
    for text in ["Keep planning.", "Set plan one aside.", "Set the plan aside.", "Change step two: ask her first."] {
        assert_eq!(decide_text(text, &IDLE), Decision::None, "{text}");
        assert_eq!(decide_text(text, &TOOL), Decision::Neither { bare: false }, "{text} under a tool's question");
    }
    assert_eq!(decide_text("Set plan one aside.", &Moment::REVIEW), Decision::RefusedVersion(1));
    assert_eq!(decide_text("Set plan two aside.", &Moment::REVIEW), Decision::Dismiss);
    assert_eq!(decide_text("Keep planning.", &Moment::LEAVING), Decision::Deny);
}

#[test]
fn words_and_sound_come_to_the_harmless_one() {
    let nothing = || Decision::Neither { bare: false };
    let bare = || Decision::Neither { bare: true };
    let go = || Decision::Approve;
    for (text, sound, wanted) in [
        (Decision::Deny, Decision::Hold, Decision::Deny), (Decision::Hold, Decision::Deny, Decision::Hold), (Decision::Deny, go(), Decision::Deny), (Decision::Deny, Decision::None, Decision::Deny),
        (go(), Decision::Deny, Decision::Deny), (Decision::Enter, Decision::Hold, Decision::Hold), (Decision::None, Decision::Deny, Decision::Deny),
        (go(), Decision::None, nothing()), (go(), bare(), nothing()), (Decision::LeaveQuestion, Decision::None, nothing()),
        (bare(), Decision::None, bare()), (Decision::None, bare(), Decision::None), (Decision::Enter, Decision::None, Decision::Enter), (Decision::Enter, bare(), Decision::Enter),
        (Decision::None, Decision::Enter, Decision::Enter), (bare(), go(), go()), (go(), Decision::Enter, Decision::Enter), (Decision::Enter, go(), Decision::Enter),
        (go(), go(), go()), (Decision::Status, Decision::Enter, Decision::Status),
    ] {
        let told = format!("{text:?} written, {sound:?} on the sound");
        assert_eq!(agreed(text, sound, nothing()), wanted, "{told}");
    }
}

#[test]
fn a_bare_yes_is_no_rival_of_the_whole_sentence_where_that_was_written() {
    let yes = [("Yes, go ahead", -0.6), ("Yes", -0.9), ("No", -7.0)];
    assert_eq!(by_sound(&heard("Yes, go ahead.", &yes), &TOOL), Some(Meaning::Consent));
    assert_eq!(by_sound(&heard("Guess go had.", &yes), &TOOL), None, "the sentence was not written");
    assert_eq!(by_sound(&heard("Exit plan mode.", &[("Exit plan mode", -0.6), ("Yes", -0.9)]), &IDLE), None, "leaving is no consent: a yes is its rival");
    assert_eq!(by_sound(&heard("Exit plan mode.", &[("Exit plan mode", -0.6), ("Yes", -4.9)]), &IDLE), Some(Meaning::Leave));
    assert_eq!(by_sound(&heard("Yes, go ahead.", &[("Yes, go ahead", -0.6), ("Go away", -0.9)]), &TOOL), None, "other words stay rivals");
}

#[test]
fn denials_do_not_compete_with_each_other() {
    for open in [TOOL, IDLE] {
        assert_eq!(by_sound(&heard("", &[("No", -1.0), ("Don't do it", -1.2)]), &open), Some(Meaning::Deny));
    }
    assert_eq!(by_sound(&heard("", &[("No", -1.0), ("Yes", -1.2)]), &IDLE), None);
}

#[test]
fn what_is_followed_reaches_as_far_as_it_counts() {
    // The recogniser gives a sentence up this far below the free transcript; a rule that reaches further would never be met.
    assert_eq!([Class::Harmless, Class::Denial, Class::Loosening, Class::Consent, Class::Other].map(followed_below), [8.0, 5.0, 4.5, 4.5, 4.5]);
    let reach = |rule: &Rule| -rule.relative;
    assert!(followed_below(Class::Harmless) > reach(&RULES.harmless) && followed_below(Class::Denial) > reach(&RULES.denial_asked).max(reach(&RULES.denial)));
    assert!([RULES.loosening, RULES.loosening_faint, RULES.consent, RULES.consent_faint, RULES.consent_short].iter().all(|rule| followed_below(Class::Consent) > reach(rule)));
}

#[test]
fn every_rule_asks_for_something() {
    let r = &RULES;
    for rule in [r.harmless, r.loosening, r.loosening_faint, r.consent, r.consent_faint, r.consent_short, r.denial, r.denial_asked, r.other] {
        assert!((-8.0..0.0).contains(&rule.relative) && (-16.0..=-1.0).contains(&rule.floor) && rule.lead > 0.0, "{rule:?}");
    }
    // What loosens needs a better sound and a larger lead than what tightens or denies.
    for strict in [r.loosening, r.loosening_faint, r.consent, r.consent_faint, r.consent_short] {
        assert!([r.harmless, r.denial_asked].iter().all(|easy| strict.relative > easy.relative && strict.floor > easy.floor && strict.lead >= easy.lead), "{strict:?}");
    }
    assert!(r.opposed > 0.0 && (0.5..1.0).contains(&r.no_speech) && r.short_no_speech < r.no_speech);
}

/// `rule` is met by `ll`, and by nothing worse in any of its three parts.
fn at_its_edge(rule: Rule, class_text: &str, sentence: &str, rival: &str, at: &Moment) {
    let say = |ll: f32, free: f32, lead: f32| {
        let said = Heard { free_ll: free, ..heard(class_text, &[(sentence, ll), (rival, ll - lead)]) };
        by_sound(&said, at).is_some()
    };
    let (ll, lead) = (rule.floor + 0.5, rule.lead + 0.5);
    assert!(say(ll, ll, lead), "{sentence}");
    assert!(say(rule.floor, rule.floor, lead), "{sentence}: the floor itself counts");
    assert!(say(ll, ll - rule.relative - 0.001, lead), "{sentence}: as far below the free transcript as the rule says");
    assert!(!say(rule.floor - 0.01, rule.floor, lead), "{sentence}: under the floor");
    assert!(!say(ll, ll - rule.relative + 0.01, lead), "{sentence}: further below the free transcript");
    assert!(!say(ll, ll, rule.lead - 0.01), "{sentence}: too small a lead");
}

#[test]
fn each_rule_holds_at_its_edge_and_not_beyond() {
    at_its_edge(RULES.harmless, "", "Enter plan mode", "Go away", &IDLE);
    at_its_edge(RULES.consent_short, "Go ahead.", "Go ahead", "Go away", &TOOL);
    at_its_edge(RULES.consent_faint, "Yes, go ahead.", "Yes, go ahead", "Go away", &TOOL);
    at_its_edge(RULES.loosening_faint, "Exit plan mode.", "Exit plan mode", "Go away", &IDLE);
}

#[test]
fn a_long_transcript_and_a_sound_that_is_nobodys_voice_decide_nothing() {
    let said = |text: &str, phrase: &str| heard(text, &[(phrase, -0.4)]);
    let long = |h: Heard, tokens| Heard { tokens, ..h };
    assert_eq!(by_sound(&long(said("", "Enter plan mode"), RULES.tokens), &IDLE), Some(Meaning::Enter));
    assert_eq!(by_sound(&long(said("", "Enter plan mode"), RULES.tokens + 1), &IDLE), None);
    assert_eq!(by_sound(&long(said("", "No"), RULES.tokens), &TOOL), Some(Meaning::Deny));
    assert_eq!(by_sound(&long(said("", "No"), RULES.tokens + 1), &TOOL), None);
    let quiet = |h: Heard, no_speech| Heard { no_speech, ..h };
    assert_eq!(by_sound(&quiet(said("Yes, go ahead.", "Yes, go ahead"), RULES.no_speech), &TOOL), Some(Meaning::Consent));
    assert_eq!(by_sound(&quiet(said("Yes, go ahead.", "Yes, go ahead"), RULES.no_speech + 0.01), &TOOL), None);
    assert_eq!(by_sound(&quiet(said("Go ahead.", "Go ahead"), RULES.short_no_speech), &TOOL), Some(Meaning::Consent));
    assert_eq!(by_sound(&quiet(said("Go ahead.", "Go ahead"), RULES.short_no_speech + 0.01), &TOOL), None);
}

#[test]
fn what_is_doubtful_does_not_loosen() {
    let say = |text: &str| by_sound(&heard(text, &[("Yes, go ahead", -0.4)]), &TOOL);
    assert_eq!(say("Yes, go ahead."), Some(Meaning::Consent));
    assert_eq!(say("Guess go had."), Some(Meaning::Consent), "misspelt, and near on the sound");
    for text in ["", "Yes, go ahead?", "Yes, don't go.", "Yes.", "Guess we all go far ahead.", "Enter plan mode."] {
        assert_eq!(say(text), None, "{text:?}");
    }
    assert_eq!(by_sound(&heard("Guess go had now.", &[("Yes, go ahead", -0.4)]), &TOOL), Some(Meaning::Consent), "one word more than the sentence has");
}

#[test]
fn a_denial_is_looked_for_in_short_answers_alone() {
    let filler = |n: usize| "well ".repeat(n);
    let deny = |n: usize| loose_answer(&format!("{}never", filler(n)), &TOOL);
    assert_eq!(deny(LOOSE_WORDS - 1), Some(Meaning::Deny));
    assert_eq!(deny(LOOSE_WORDS), None);
    assert_eq!(loose_answer(&format!("{}. No.", filler(10 * LOOSE_WORDS - 1)), &TOOL), Some(Meaning::Deny), "a clause that answers stands anywhere");
    assert_eq!(loose_answer(&format!("{}. No.", filler(10 * LOOSE_WORDS)), &TOOL), None);
    assert_eq!(loose_answer("never", &IDLE), None, "nothing was asked");
}

#[test]
fn what_speaks_against_a_sentence_is_every_denial_and_every_rival_that_denies() {
    let table = phrase_table();
    let found = |other: &str| {
        let said = heard("Yes, go ahead.", &[("Yes, go ahead", -0.4), (other, -3.0)]);
        best_on_sound(&said, &table, Language::English).map(|f| ((f.lead * 10.0).round() / 10.0, (f.opposed * 10.0).round() / 10.0)).expect("something is best")
    };
    assert_eq!(found("No"), (2.6, 2.6));
    assert_eq!(found("Go ahead no"), (2.6, 2.6), "a rival that denies");
    assert_eq!(found("Go away"), (2.6, f32::INFINITY), "a rival that says nothing against it");
    let denial = heard("", &[("No", -0.4), ("Stop it", -3.0), ("Never mind", -0.5)]);
    assert_eq!(best_on_sound(&denial, &table, Language::English).map(|f| f.opposed), Some(f32::INFINITY), "denials do not oppose each other");
}

#[test]
fn a_faint_no_denies_while_something_is_asked_and_nothing_else_is_nearer() {
    let faint = |yes: f32| Heard { free_ll: -4.0, ..heard("", &[("No", -7.0), ("Yes", yes)]) };
    assert_eq!(by_sound(&faint(-9.0), &TOOL), Some(Meaning::Deny));
    assert_eq!(by_sound(&faint(-7.4), &TOOL), None, "too near to a yes");
    assert_eq!(by_sound(&faint(-9.0), &IDLE), None, "nothing is asked");
    let with_rival = Heard { free_ll: -4.0, ..heard("", &[("No", -7.0), ("Know", -6.9)]) };
    assert_eq!(by_sound(&with_rival, &TOOL), Some(Meaning::Deny), "a sound-alike does not save a question from its no");
    for (ll, free, wanted) in [(-8.0, -4.0, Some(Meaning::Deny)), (-8.01, -4.5, None), (-7.0, -2.99, None)] {
        assert_eq!(by_sound(&Heard { free_ll: free, ..heard("", &[("No", ll), ("Yes", -12.0)]) }, &TOOL), wanted, "{ll} of {free}");
    }
}

#[test]
fn all_denials_together_hold_back_what_loosens() {
    let table = phrase_table();
    let crowd = heard("Yes, go ahead.", &[("Yes, go ahead", -0.4), ("No", -2.6), ("Don't go ahead", -2.6), ("Go ahead no", -2.6), ("No, wait", -2.6)]);
    assert_eq!(by_sound(&crowd, &TOOL), None, "none of them alone is near enough");
    assert_eq!(by_sound(&heard("Yes, go ahead.", &[("Yes, go ahead", -0.4), ("No", -2.6)]), &TOOL), Some(Meaning::Consent));
    let against = best_on_sound(&crowd, &table, Language::English).map(|f| f.opposed).expect("something is best");
    let rules = |opposed: f32| Rules { opposed, ..RULES };
    assert_eq!(meaning_by_sound(&rules(against), &crowd, &table, &TOOL), Some(Meaning::Consent), "the margin itself counts");
    assert_eq!(meaning_by_sound(&rules(against + 0.01), &crowd, &table, &TOOL), None);
}
