//! The agent that needs no model: sentences choose the tool and its arguments, answers are made from results.
//!
//! A function of the [`StepRequest`] and of nothing else, but for the names of new calls. It matches the sentences of every
//! tool, also of those that plan mode hides from models, so that the gate is what refuses. It never revises a plan, and says
//! nothing by which a person approves or loosens.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;

use super::wording::{clipped, failure, help, number, sayable, succeeded, summary, tidy};
use super::{Agent, AgentError, CallIds};
use crate::engine::conversation::{AgentOutput, GatewayNote, Item, StepRequest};
use crate::engine::plan::Step;
use crate::engine::sentence::{Fill, Match, Sentence, best, sounds_approving};
use crate::engine::tool::fill_slots;

/// Its name in the table.
pub const NAME: &str = "commander";

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
            Cause::Note(GatewayNote::Continue { steps, version, .. }) => self.go_on(steps, *version, &request.items),
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

    /// Makes those of the kept calls that have not succeeded yet.
    fn go_on(&self, steps: &[Step], version: u32, items: &[Item]) -> Vec<AgentOutput> {
        let done = |step: &Step| step.kept.as_ref().is_some_and(|kept| items.iter().any(|item| matches!(item, Item::Call { id, tool, arguments }
            if *tool == kept.tool && *arguments == kept.arguments && items.iter().any(|i| matches!(i, Item::Result { id: of, output, .. } if of == id && succeeded(output))))));
        let left: Vec<Step> = steps.iter().filter(|s| s.kept.is_some() && !done(s)).cloned().collect();
        if left.is_empty() {
            return say(&format!("I go on with plan {}, but every call that I know for it was made already.", number(version as usize)));
        }
        let mut out = say(&format!("I go on with plan {}.", number(version as usize)));
        out.extend(self.carry_out(&left, version));
        out
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
        if let Cause::Note(GatewayNote::Approved { steps, .. } | GatewayNote::Continue { steps, .. }) = cause {
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
        } else if ended.output["error_code"] == "plan_mode_blocked" {
            // The gateway has said so in its own voice: what mode is on is never for an agent to tell.
            return None;
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

fn say(text: &str) -> Vec<AgentOutput> { vec![AgentOutput::Text(text.to_string())] }

#[cfg(test)]
#[path = "commander_tests.rs"]
mod tests;
