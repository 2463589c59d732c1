//! The agent that needs no model: sentences choose the tool and its arguments, answers are made from results.
//!
//! A function of the [`StepRequest`] and of nothing else, but for the names of new calls. It matches the sentences of every
//! tool, also of those that plan mode hides from models, so that the gate is what refuses. It never revises a plan, and says
//! nothing by which a person approves or loosens.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;

use super::{Agent, AgentError, CallIds};
use crate::engine::conversation::{AgentOutput, GatewayNote, Item, StepRequest};
use crate::engine::plan::Step;
use crate::engine::sentence::{Fill, Match, Sentence, best, sounds_approving};
use crate::engine::tool::fill_slots;

/// Its name in the table.
pub const NAME: &str = "commander";

/// Items of a list that are said one by one.
const LIST_SAID: usize = 8;
/// Longest value that is said, in characters: about forty seconds of speech.
const VALUE_CHARS: usize = 600;
/// Sentences offered when nothing matches.
const EXAMPLES: usize = 4;
/// The tool that presents a plan, where no manifest says another.
const PLAN_TOOL: &str = "plan__submit";

/// See the file's head.
#[derive(Debug)]
pub struct Commander {
    sentences: Arc<[Sentence]>,
    plan_tool: String,
    help: String,
    ids: CallIds,
}

/// A call that has ended, with what was asked for.
struct Ended<'a> {
    tool: &'a str,
    arguments: &'a Value,
    output: &'a Value,
}

/// What a response has to answer.
enum Cause<'a> {
    Said(&'a str),
    Note(&'a GatewayNote),
    Nothing,
}

impl Commander {
    /// A commander for these sentences.
    pub fn new(sentences: impl Into<Arc<[Sentence]>>) -> Commander {
        let sentences = sentences.into();
        let plan_tool = sentences.iter().find(|s| s.fill == Fill::Draft).map_or(PLAN_TOOL.to_string(), |s| s.tool.clone());
        let help = help(&sentences);
        Commander { sentences, plan_tool, help, ids: CallIds::new() }
    }

    /// The whole response to a request.
    pub fn respond(&self, request: &StepRequest) -> Vec<AgentOutput> {
        let (cause, ended) = what_happened(&request.items);
        if !ended.is_empty() {
            return self.tell(&cause, &ended);
        }
        match cause {
            Cause::Said(words) => self.obey(words, request),
            Cause::Note(GatewayNote::Approved { steps, version, .. }) => self.carry_out(steps, *version),
            Cause::Note(GatewayNote::PresentDraft) => self.present(request),
            Cause::Note(GatewayNote::ChangesRequested { .. }) => {
                say("I cannot rewrite a plan by myself, so the draft stays as it is; whatever you ask for now becomes a further step.")
            }
            Cause::Note(_) | Cause::Nothing => Vec::new(),
        }
    }

    fn obey(&self, words: &str, request: &StepRequest) -> Vec<AgentOutput> {
        match best(&self.sentences, words) {
            None => say(&self.help),
            Some((sentence, _)) if sentence.fill == Fill::Draft => self.present(request),
            Some((sentence, found)) => vec![self.call(&sentence.tool, &arguments(sentence, found, &request.items))],
        }
    }

    fn present(&self, request: &StepRequest) -> Vec<AgentOutput> {
        if request.draft.is_empty() {
            return say("There is nothing to present: no step has been noted yet.");
        }
        let steps: Vec<Value> = request.draft.iter()
            .map(|s| if s.detail.is_empty() { json!(s.title) } else { json!({"title": s.title, "detail": s.detail}) }).collect();
        vec![self.call(&self.plan_tool, &json!({"summary": summary(&request.draft), "steps": steps}))]
    }

    /// Makes the kept calls again, in order, under new names.
    fn carry_out(&self, steps: &[Step], version: u32) -> Vec<AgentOutput> {
        let calls: Vec<AgentOutput> = steps.iter().filter_map(|s| s.kept.as_ref()).map(|k| self.call(&k.tool, &k.arguments)).collect();
        if calls.is_empty() {
            return say(&format!("Plan {} is approved, but I know no call for any of its steps.", number(version as usize)));
        }
        calls
    }

    fn call(&self, tool: &str, arguments: &Value) -> AgentOutput {
        AgentOutput::Call { id: self.ids.next(), tool: tool.to_string(), arguments: arguments.to_string() }
    }

    /// Says how calls ended; nothing twice.
    fn tell(&self, cause: &Cause, ended: &[Ended]) -> Vec<AgentOutput> {
        let mut lines: Vec<String> = Vec::new();
        for line in ended.iter().filter_map(|e| self.line(e)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let Cause::Note(GatewayNote::Approved { steps, .. }) = cause {
            let all_done = ended.iter().all(|e| succeeded(e.output));
            lines.insert(0, if all_done { "Done." } else { "Not all of the plan was done." }.to_string());
            lines.extend(steps.iter().find(|s| s.kept.is_none()).map(|s| format!("I know no call for the step \"{}\" of it.", clipped(&s.title))));
        }
        if lines.is_empty() { Vec::new() } else { say(&lines.join(" ")) }
    }

    fn line(&self, ended: &Ended) -> Option<String> {
        let line = if succeeded(ended.output) {
            // The gateway reads a presented plan itself.
            if ended.tool == self.plan_tool {
                return None;
            }
            self.answer(ended)
        } else {
            failure(ended.output)
        };
        Some(if sounds_approving(&line) { "It holds words that could answer a question, so I do not say them; they are on the screen.".to_string() } else { line })
    }

    fn answer(&self, ended: &Ended) -> String {
        let Some(answer) = self.sentences.iter().filter(|s| s.tool == ended.tool).find_map(|s| s.answer.as_ref()) else {
            return "That is done.".to_string();
        };
        let mut known: Map<String, Value> = ended.arguments.as_object().cloned().unwrap_or_default();
        known.extend(ended.output.as_object().cloned().unwrap_or_default());
        known.values_mut().for_each(|v| *v = sayable(v));
        tidy(&fill_slots(answer.form(ended.output), &Value::Object(known)))
    }
}

impl Agent for Commander {
    fn name(&self) -> &str { NAME }

    fn step(&self, request: StepRequest, out: Sender<AgentOutput>) -> BoxFuture<'static, Result<(), AgentError>> {
        let response = self.respond(&request);
        Box::pin(async move {
            for output in response {
                if out.send(output).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Walks back from the end: the results that have come since, in the order of their calls, and what they came of.
fn what_happened(items: &[Item]) -> (Cause<'_>, Vec<Ended<'_>>) {
    let mut results: Vec<(&crate::engine::id::CallId, &str, &Value)> = Vec::new();
    let mut cause = Cause::Nothing;
    for item in items.iter().rev() {
        match item {
            Item::Result { id, tool, output } => results.push((id, tool, output)),
            Item::Call { .. } | Item::Gateway(GatewayNote::Mode { .. } | GatewayNote::Text(_)) => {}
            Item::Assistant { .. } if results.is_empty() => break,
            Item::Assistant { .. } => {}
            Item::User { text, .. } => { cause = Cause::Said(text); break }
            Item::Gateway(note) => { cause = Cause::Note(note); break }
        }
    }
    let asked = |id| items.iter().enumerate().rev().find_map(|(at, item)| match item {
        Item::Call { id: call, arguments, .. } if call == id => Some((at, arguments)),
        _ => None,
    });
    let mut ended: Vec<(usize, Ended)> = results.into_iter().map(|(id, tool, output)| {
        let (at, arguments) = asked(id).unwrap_or((0, &Value::Null));
        (at, Ended { tool, arguments, output })
    }).collect();
    ended.sort_by_key(|(at, _)| *at);
    (cause, ended.into_iter().map(|(_, e)| e).collect())
}

fn arguments(sentence: &Sentence, found: Match, items: &[Item]) -> Value {
    let mut out = sentence.arguments.as_object().cloned().unwrap_or_default();
    if sentence.fill == Fill::AppendTodo {
        let mut todos = last_todos(items, &sentence.tool);
        todos.push(found.slots.get("text").cloned().unwrap_or_default());
        out.insert("todos".into(), Value::Array(todos));
    } else {
        out.extend(found.slots);
    }
    Value::Object(out)
}

/// The list as the last write left it; a write replaces the whole list.
fn last_todos(items: &[Item], tool: &str) -> Vec<Value> {
    items.iter().rev().find_map(|item| match item {
        Item::Result { tool: of, output, .. } if of == tool => output["todos"].as_array().cloned(),
        _ => None,
    }).unwrap_or_default()
}

/// One sentence made from the steps; it becomes the plan's title.
fn summary(steps: &[Step]) -> String {
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

fn number(n: usize) -> String {
    let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    words.get(n).map_or_else(|| n.to_string(), |w| (*w).to_string())
}

fn succeeded(output: &Value) -> bool { output["success"] != false && output["is_error"] != true }

fn failure(output: &Value) -> String {
    match output["error_code"].as_str().unwrap_or_default() {
        "plan_mode_blocked" => "Plan mode is on, so I noted it as a step of the plan.".into(),
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
fn sayable(value: &Value) -> Value {
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

fn clipped(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(VALUE_CHARS).collect();
    if cut.len() < line.len() { format!("{cut} and so on") } else { line }
}

/// One mark at the end of a sentence, where a value brought its own.
fn tidy(text: &str) -> String { text.replace("..", ".").replace("!.", "!").replace("?.", "?").replace(".,", ",") }

fn say(text: &str) -> Vec<AgentOutput> { vec![AgentOutput::Text(text.to_string())] }

/// What can be said, from the first sentence of the first few tools of different skills first.
fn help(sentences: &[Sentence]) -> String {
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

#[cfg(test)]
#[path = "commander_tests.rs"]
mod tests;
