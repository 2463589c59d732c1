//! The commander's words: values as they can be said, failures, a plan's summary, and what to offer when nothing matches.

use serde_json::Value;

use crate::engine::plan::Step;
use crate::engine::sentence::{Fill, Sentence};

/// Items of a list that are said one by one.
const LIST_SAID: usize = 8;
/// Longest value that is said, in characters: about forty seconds of speech.
const VALUE_CHARS: usize = 600;
/// Sentences offered when nothing matches.
const EXAMPLES: usize = 4;

/// True for an output that says nothing to the contrary.
pub(super) fn succeeded(output: &Value) -> bool { output["success"] != false && output["is_error"] != true }

/// How a failed call is told.
pub(super) fn failure(output: &Value) -> String {
    match output["error_code"].as_str().unwrap_or_default() {
        "denied_by_user" => "All right, I did not do it.".into(),
        "expired" => "Nobody answered, so I did not do it.".into(),
        _ if output["outcome_unknown"] == true => "The tool failed, and I do not know whether it was done.".into(),
        _ => {
            let error = clipped(output["error"].as_str().filter(|e| !e.trim().is_empty()).unwrap_or("that did not work"));
            tidy(&format!("{}.", capital(&error)))
        }
    }
}

/// A value as it can stand in a sentence: lists are joined, long texts are cut.
pub(super) fn sayable(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(clipped(text)),
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().take(LIST_SAID).map(|v| v.as_str().map_or_else(|| v.to_string(), clipped)).collect();
            let more = list.len().saturating_sub(LIST_SAID);
            Value::from(match (texts.as_slice(), more) {
                ([some @ .., last], 0) if !some.is_empty() => format!("{}, and {last}", some.join(", ")),
                (all, 0) => all.join(", "),
                (all, more) => format!("{}, and {} more", all.join(", "), number(more)),
            })
        }
        other => other.clone(),
    }
}

/// A text on one line, not too long, without the mark that ends it: the template brings its own.
pub(super) fn clipped(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = words.trim_end_matches(['.', ',', ';']);
    let cut: String = line.chars().take(VALUE_CHARS).collect();
    if cut.len() < line.len() { format!("{cut} and so on") } else { line.to_string() }
}

/// One mark at the end of a sentence, where a value brought its own.
pub(super) fn tidy(text: &str) -> String { text.replace("!.", "!").replace("?.", "?") }

/// One sentence made from the steps; it becomes the plan's title.
pub(super) fn summary(steps: &[Step]) -> String {
    let titles: Vec<String> = steps.iter().map(|s| inner(&s.title)).collect();
    match titles.as_slice() {
        [] => String::new(),
        [one] => format!("{}.", capital(one)),
        [some @ .., last] if some.len() < 4 => format!("{} changes: {}, and {last}.", capital(&number(titles.len())), some.join(", ")),
        many => format!("{} changes, beginning with: {}.", capital(&number(many.len())), many[0]),
    }
}

/// A title as part of a sentence: no mark in it that would end the sentence, and a small letter first.
fn inner(title: &str) -> String {
    let text = title.replace(['\n', '\r'], " ");
    let words: Vec<&str> = text.split(' ').map(|w| w.trim_end_matches(['.', '!', '?'])).filter(|w| !w.is_empty()).collect();
    let line = words.join(" ");
    let mut chars = line.chars();
    let first = chars.next().map(|c| if chars.clone().next().is_some_and(char::is_lowercase) { c.to_lowercase().collect() } else { c.to_string() });
    first.unwrap_or_default() + chars.as_str()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default() + chars.as_str()
}

pub(super) fn number(n: usize) -> String {
    let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    words.get(n).map_or_else(|| n.to_string(), |w| (*w).to_string())
}

/// What can be said, from the first sentence of the first few tools of different skills first.
pub(super) fn help(sentences: &[Sentence]) -> String {
    let mut tools: Vec<&str> = Vec::new();
    let mut examples: Vec<String> = Vec::new();
    for sentence in sentences.iter().filter(|s| s.fill == Fill::Nothing) {
        if !tools.contains(&sentence.tool.as_str()) {
            tools.push(&sentence.tool);
            examples.push(sentence.template.example());
        }
    }
    let skill = |tool: &str| tool.split("__").next().unwrap_or_default().to_string();
    let rank = |at: &usize| tools[..*at].iter().filter(|t| skill(t) == skill(tools[*at])).count();
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.sort_by_key(|at| (rank(at) / 2, *at));
    let chosen: Vec<String> = order.into_iter().take(EXAMPLES).map(|at| examples[at].clone()).collect();
    match chosen.as_slice() {
        [] => "I have no tools, so there is nothing I can do for you.".into(),
        [one] => format!("I did not understand that; you can say: {one}."),
        [some @ .., last] => format!("I did not understand that; you can say, for example: {}, or {last}.", some.join(", ")),
    }
}
