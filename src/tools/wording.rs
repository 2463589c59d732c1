//! The words of a manifest: what is asked, how a call is said, how its result is told. `manifest` reads the rest and calls this.

use std::sync::Arc;

use serde_json::{Value, json};

use super::arguments::fit;
use super::manifest::{Kind, Param};
use super::reader::{Faults, Node};
use crate::engine::sentence::{Answer, Fill, Sentence, Template, sounds_approving};

/// Most sentences of one endpoint.
const PHRASES_MAX: usize = 64;
const PHRASE_KEYS: &[&str] = &["say", "arguments", "fill"];
const ANSWER_KEYS: &[&str] = &["text", "none", "one"];

/// A template of what is said to a person before a call. What the agent filled in may neither open nor close it, and it may
/// not sound like an answer: the echo of a question must never answer the question.
pub(super) fn spoken(node: &Node, key: &str, params: &[Param], faults: &mut Faults) -> Option<String> {
    let text = node.text(key, faults);
    if text.is_empty() {
        return None;
    }
    for slot in slots_of(&text).into_iter().filter(|s| !params.iter().any(|p| &p.name == s)) {
        faults.add(node.path(key), format!("{{{slot}}} is no parameter of this endpoint"), "use the name of one");
    }
    let edge = text.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '}').ends_with('}') || text.starts_with('{');
    if key == "ask" && edge {
        faults.add(node.path(key), "the question begins or ends with a slot, so the words in it could answer it", "put words of your own at both ends");
    }
    if sounds_approving(&text) {
        faults.add(node.path(key), "this sounds like an answer to a question", "say it in other words");
    }
    Some(text)
}

fn slots_of(text: &str) -> Vec<&str> {
    text.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name)).collect()
}

pub(super) fn answer(node: &Node, faults: &mut Faults) -> Option<Answer> {
    let value = node.get("answer")?;
    if let Some(text) = value.as_str() {
        return Some(Answer { text: text.to_string(), none: None, one: None });
    }
    let path = node.path("answer");
    let inner = Node::of(value, &path, faults)?;
    inner.only(ANSWER_KEYS, faults);
    let form = |key, faults: &mut Faults| Some(inner.text(key, faults)).filter(|t| !t.is_empty());
    Some(Answer { none: form("none", faults), one: form("one", faults), text: inner.needed("text", faults) })
}

pub(super) fn sentences(node: &Node, tool: &str, params: &[Param], answer: Option<Arc<Answer>>, faults: &mut Faults) -> Vec<Sentence> {
    let list = node.list("phrases", faults);
    if list.len() > PHRASES_MAX {
        faults.add(node.path("phrases"), "these are too many phrases", format!("use at most {PHRASES_MAX}; ( | ) and [ ] fold several into one"));
    }
    list.iter().take(PHRASES_MAX).enumerate().filter_map(|(n, value)| {
        let path = format!("{}[{n}]", node.path("phrases"));
        let (template, arguments, fill) = phrase(value, &path, faults)?;
        cover(&template, &arguments, fill, params, &path, faults);
        Some(Sentence { tool: tool.to_string(), template, arguments, fill, answer: answer.clone() })
    }).collect()
}

fn phrase(value: &Value, path: &str, faults: &mut Faults) -> Option<(Template, Value, Fill)> {
    let (say, arguments, fill) = match value.as_str() {
        Some(text) => (text.to_string(), json!({}), Fill::Nothing),
        None => {
            let node = Node::of(value, path, faults)?;
            node.only(PHRASE_KEYS, faults);
            let fill = match node.word("fill", &["draft", "append_todo"], faults) {
                Some("draft") => Fill::Draft,
                Some(_) => Fill::AppendTodo,
                None => Fill::Nothing,
            };
            (node.needed("say", faults), node.get("arguments").cloned().unwrap_or_else(|| json!({})), fill)
        }
    };
    if !arguments.is_object() {
        faults.add(format!("{path}.arguments"), "this is no object", "write { \"parameter\": value }");
    }
    match Template::parse(&say) {
        Ok(template) => Some((template, arguments, fill)),
        Err(error) => {
            faults.add(path, error.to_string(), "change the phrase");
            None
        }
    }
}

/// Slots, fixed arguments and what the agent fills in must make a whole call.
fn cover(template: &Template, arguments: &Value, fill: Fill, params: &[Param], path: &str, faults: &mut Faults) {
    let filled: &[&str] = match fill { Fill::Nothing => &[], Fill::Draft => &["summary", "steps"], Fill::AppendTodo => &["todos"] };
    let known = |name: &str| params.iter().find(|p| p.name == name);
    for slot in template.slots() {
        let wordy = known(slot).is_some_and(|p| matches!(p.kind, Kind::String | Kind::Integer | Kind::Number));
        if !wordy && !(fill == Fill::AppendTodo && slot == "text") {
            faults.add(path, format!("{{{slot}}} is no parameter that words can fill"), "name a parameter of type string, integer or number");
        }
    }
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let wrong = known(name).map_or(Some("there is no such parameter".to_string()), |p| fit(value.clone(), p).err().map(|(_, why)| why));
        if let Some(why) = wrong {
            faults.add(format!("{path}.arguments.{name}"), why, "change or drop it");
        }
    }
    for name in filled.iter().filter(|n| known(n).is_none()) {
        faults.add(format!("{path}.fill"), format!("this endpoint has no parameter \"{name}\" to fill"), "take the key out");
    }
    for param in params.iter().filter(|p| p.required && p.default.is_none()) {
        let given = template.always_has(&param.name) || arguments.get(&param.name).is_some() || filled.contains(&param.name.as_str());
        if !given {
            faults.add(path, format!("the phrase does not say {}", param.name), format!("add a slot {{{}}} or fix it under \"arguments\"", param.name));
        }
    }
}
