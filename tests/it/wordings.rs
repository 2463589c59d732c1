//! What the product says of itself may never answer a question when a microphone hears it: no fixed wording begins or ends with
//! a sentence that approves or loosens.
//!
//! The wordings are read out of the sources as text, so that none is forgotten.

use std::path::{Path, PathBuf};

use voxgate::engine::grammar::begins_or_ends_approving;

use crate::tidy::product;

/// Sources whose literals are spoken, or may be: folders are taken whole.
const SPOKEN: &[&str] = &[
    "src/engine/session", "src/engine/conversation.rs", "src/engine/sentence.rs", "src/agent/wording.rs", "src/agent/commander.rs", "src/tools/wording.rs", "src/tools/builtin",
    "src/cli/prompts.rs", "src/tts/speakable.rs",
];

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| files(&entry.unwrap().path(), into));
    } else {
        into.push(path.to_owned());
    }
}

/// The string literals of a source that read as words: two words at least.
fn literals(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in source.lines() {
        let (mut inside, mut text, mut chars) = (false, String::new(), line.chars().peekable());
        while let Some(c) = chars.next() {
            match (inside, c) {
                (true, '\\') => text.extend(chars.next().filter(|n| *n == '"')),
                (true, '"') => {
                    inside = false;
                    out.push(std::mem::take(&mut text));
                }
                (false, '\'') if chars.peek() == Some(&'"') => {
                    chars.next();
                }
                (false, '"') => inside = true,
                (true, c) => text.push(c),
                _ => {}
            }
        }
    }
    // What is said begins like a sentence or ends like one; the grammar's own words and lists of words do neither.
    let like_one = |text: &str| text.starts_with(|c: char| c.is_uppercase() || c == '{') || text.ends_with(['.', '!', '?']);
    out.retain(|text| text.split_whitespace().count() >= 2 && like_one(text));
    out
}

/// A template with every slot filled.
fn filled(template: &str, slot: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        out.push_str(slot);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    out + rest
}

#[test]
fn no_fixed_wording_could_answer_a_question() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, source) in product(SPOKEN) {
        for text in literals(&source) {
            count += 1;
            let said = filled(&text, "milk");
            if begins_or_ends_approving(&said) {
                wrong.push(format!("{path}: {text}"));
            }
        }
    }
    assert!(count > 100, "only {count} wordings were found");
    assert!(wrong.is_empty(), "these begin or end with a sentence that approves or loosens:\n  {}", wrong.join("\n  "));
}

#[test]
fn the_wordings_of_tools_are_kept_from_it_too() {
    let mut manifests = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tools"), &mut manifests);
    manifests.retain(|p| p.extension().is_some_and(|e| e == "json"));
    assert!(!manifests.is_empty());
    let mut wrong = Vec::new();
    for path in manifests {
        let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut texts = Vec::new();
        said(&value, "", &mut texts);
        assert!(!texts.is_empty(), "{}", path.display());
        wrong.extend(texts.into_iter().filter(|t| begins_or_ends_approving(&filled(t, "milk"))).map(|t| format!("{}: {t}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Questions, displays and answers of a manifest, not the phrases that a person says.
fn said(value: &serde_json::Value, key: &str, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().filter(|(k, _)| *k != "phrases").for_each(|(k, v)| said(v, k, into)),
        serde_json::Value::Array(list) => list.iter().for_each(|v| said(v, key, into)),
        serde_json::Value::String(text) if ["ask", "display", "answer", "text", "none", "one", "note"].contains(&key) => into.push(text.clone()),
        _ => {}
    }
}
