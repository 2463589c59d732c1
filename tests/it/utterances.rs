//! The table of utterances: every line decides what it should, nothing outside the positives loosens, and the table is as varied as it claims.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use voxgate::engine::grammar::words_of;
use voxgate::engine::intent::{Moment, Open, decide_text};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/utterances.tsv");

struct Case {
    kind: String,
    utterance: String,
    decision: String,
    /// What the recogniser wrote for a clip, not what somebody thought of.
    heard: bool,
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(TABLE).unwrap();
    let mut heard = false;
    let mut cases = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            heard = line.starts_with("# heard: ");
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 3, "{line}");
        cases.push(Case { kind: columns[0].into(), utterance: columns[1].into(), decision: columns[2].into(), heard });
        heard = false;
    }
    cases
}

/// The words without case and marks; numbers and a tool's object are one word each.
fn template(utterance: &str) -> String {
    const NUMBERS: [&str; 13] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let plain: String = utterance.to_lowercase().chars().filter(|c| !"'’".contains(*c)).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let is_number = |w: &str| w.parse::<u64>().is_ok() || NUMBERS.contains(&w);
    let words: Vec<&str> = plain.split_whitespace().map(|w| if is_number(w) { "#" } else { w }).collect();
    let at = |what: &[&str]| words.windows(what.len().max(1)).position(|w| w == what);
    match (words.first(), at(&["to", "my", "notes"])) {
        (Some(&"add"), Some(end)) if end > 1 => format!("add * {}", words[end..].join(" ")),
        _ => words.join(" "),
    }
}

#[test]
fn every_line_decides_what_it_should() {
    let wrong: Vec<String> = cases().iter().filter_map(|c| {
        let got = decide_text(&c.utterance, &Moment::of_kind(&c.kind).unwrap()).name();
        (got != c.decision).then(|| format!("{}\t{}\tshould be {}, is {got}", c.kind, c.utterance, c.decision))
    }).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The sentences that approve, loosen or ask to loosen, by kind, with numbers as #. Everything else must not.
fn is_positive(kind: &str, template: &str) -> bool {
    let leave = ["exit plan mode", "leave plan mode"];
    let consent = ["yes go ahead", "yes do it", "go ahead", "go ahead go ahead"];
    match kind {
        "intent" => leave.contains(&template),
        "review" => leave.contains(&template) || ["approve plan #", "approve plan number #", "approve plan to", "approve plan too"].contains(&template),
        "confirm" => ["confirm plan #", "confirm plan number #", "confirm plan to", "confirm plan too"].contains(&template),
        _ => consent.contains(&template),
    }
}

#[test]
fn no_line_outside_the_positives_loosens_in_any_moment() {
    for case in cases() {
        let template = template(&case.utterance);
        for kind in ["intent", "consent", "review", "confirm", "leave"] {
            let decision = decide_text(&case.utterance, &Moment::of_kind(kind).unwrap());
            assert!(!decision.loosens() || is_positive(kind, &template), "{kind}\t{}\t{}", case.utterance, decision.name());
        }
        // Elsewhere too: outside plan mode, another version, all at once.
        for moment in [Moment::default(), Moment { open: Open::Tool, in_plan: true, waiting: Some(2), ..Moment::default() }, Moment { open: Open::Approve(1), in_plan: true, waiting: Some(2), ..Moment::default() }] {
            let decision = decide_text(&case.utterance, &moment);
            let listed = is_positive("consent", &template) || is_positive("confirm", &template);
            assert!(!decision.loosens() || listed, "{moment:?}\t{}\t{}", case.utterance, decision.name());
        }
    }
}

#[test]
fn the_table_is_large_and_varied() {
    let cases = cases();
    assert!(cases.len() >= 320, "{} lines", cases.len());
    let heard = cases.iter().filter(|c| c.heard).count();
    assert!(heard >= 90, "{heard} lines of clips");
    let mut templates: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for case in &cases {
        templates.entry(template(&case.utterance)).or_default().push(&case.utterance);
    }
    let crowded: Vec<_> = templates.iter().filter(|(_, lines)| lines.len() > 3).collect();
    assert!(crowded.is_empty(), "{crowded:?}");
    let decisions: BTreeSet<&str> = cases.iter().map(|c| c.decision.as_str()).collect();
    let all = [
        "approve", "changes", "confirm-question", "deny", "dismiss", "enter", "help", "hold", "leave-question", "neither", "none", "read", "refused-version",
        "screen-only", "status", "stop", "which-version",
    ];
    assert_eq!(decisions.into_iter().collect::<Vec<_>>(), all);
}

/// A strict sentence that is asked, quoted, broken off or written with something in brackets is none.
#[test]
fn marks_void_what_would_loosen() {
    let strict = [("intent", "exit plan mode"), ("review", "approve plan two"), ("confirm", "confirm plan two"), ("consent", "yes, go ahead"), ("consent", "go ahead"), ("leave", "yes, do it")];
    for (kind, sentence) in strict {
        let moment = Moment::of_kind(kind).unwrap();
        for good in [sentence.to_string(), format!(" {sentence}. "), sentence.to_uppercase(), format!("{sentence}!"), sentence.replace(',', "")] {
            assert!(decide_text(&good, &moment).loosens(), "{kind}\t{good}");
        }
        let marked = ["X?", "\"X.\"", "“X”", "'X'", "‘X.’", "X...", "X…", "X -", "X—", "X,", "X (no)", "[no] X", "(X)", "X? X.", "«X»", "*X*"];
        for text in marked.map(|m| m.replace('X', sentence)) {
            assert!(!decide_text(&text, &moment).loosens(), "{kind}\t{text}");
        }
        let more = ["no X", "X no", "don't X", "X don't", "please X", "X please", "okay X", "so X", "X now", "if X", "X X X", "he said X", "why X", "X and", "X to", "uh X", "X if", "X 2", "2 X", "nein X", "X nicht"];
        for text in more.map(|m| m.replace('X', sentence)) {
            assert!(!decide_text(&text, &moment).loosens(), "{kind}\t{text}");
        }
    }
}

/// Word salad over the grammar's own vocabulary, and over whole sentences of it run together.
#[test]
fn twenty_thousand_random_lines_loosen_only_where_they_are_a_listed_sentence() {
    let cases = cases();
    let vocabulary: Vec<String> = cases.iter().flat_map(|c| words_of(&c.utterance)).collect::<BTreeSet<_>>().into_iter().collect();
    let strict = ["exit", "leave", "plan", "mode", "approve", "confirm", "two", "to", "2", "yes", "go", "ahead", "do", "it", "number", "one", "go ahead", "plan two", "plan mode"];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % n
    };
    let mut loosened = 0;
    for n in 0..20_000 {
        let mut words = Vec::new();
        for _ in 0..=roll(6) {
            words.push(match roll(4) {
                0 => vocabulary[roll(vocabulary.len())].clone(),
                1 if n % 5 == 0 => cases[roll(cases.len())].utterance.clone(),
                _ => strict[roll(strict.len())].to_string(),
            });
        }
        let text = words.join([" ", ", ", ". "][roll(3)]);
        for kind in ["intent", "consent", "review", "confirm", "leave"] {
            let decision = decide_text(&text, &Moment::of_kind(kind).unwrap());
            let written = words_of(&text).iter().map(|w| if w == "to" || w == "too" { "two" } else { w }).collect::<Vec<_>>().join(" ");
            loosened += usize::from(decision.loosens());
            assert!(!decision.loosens() || is_positive(kind, &template(&written)), "{kind}\t{text}\t{}", decision.name());
        }
    }
    assert!(loosened > 100, "the salad holds listed sentences too: {loosened}");
}

#[test]
fn the_longest_line_is_judged_at_once() {
    let begun = std::time::Instant::now();
    for text in ["go ahead ".repeat(100_000), "no ".repeat(300_000), "x".repeat(1_000_000), "plan mode, ".repeat(100_001), "(".repeat(500_000)] {
        for kind in ["intent", "consent"] {
            assert!(!decide_text(&text, &Moment::of_kind(kind).unwrap()).loosens());
        }
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn the_command_prints_the_table_back() {
    let run = |file: &std::path::Path| Command::new(env!("CARGO_BIN_EXE_voxgate")).args(["eval", "utterances"]).arg(file).output().unwrap();
    let out = run(TABLE.as_ref());
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines: Vec<String> = cases().iter().map(|c| format!("{}\t{}\t{}\n", c.kind, c.utterance, c.decision)).collect();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), lines.concat());
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("wrong.tsv");
    std::fs::write(&wrong, "intent\tstop\n# a note\nreviews\tstop\n").unwrap();
    for (file, told) in [(wrong.clone(), "wrong.tsv:3: \"reviews\" is no kind"), (dir.path().join("none.tsv"), "none.tsv cannot be read")] {
        let out = run(&file);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(2) && out.stdout.is_empty() && error.contains(told), "{error}");
    }
}
