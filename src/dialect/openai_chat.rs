//! The language of `/v1/chat/completions`: a request out of what an agent is given, and streamed chunks back into text and calls.
//!
//! Pure. `agent::openai` is its caller. Roles are types on this side: what a person said never becomes a note of the gateway,
//! whatever words it begins with.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::engine::conversation::{GatewayNote, Item, StepRequest};
use crate::engine::id::CallId;
use crate::engine::plan::{PlanVersion, Step};
use crate::engine::tool::ToolSpec;

/// Most tools in one request (the protocol's own bound).
pub const TOOLS_MAX: usize = 128;
/// Most calls in one response.
pub const CALLS_MAX: usize = 32;
/// Longest arguments of a call, in bytes.
pub const ARGUMENTS_BYTES: usize = 65_536;
/// Longest text of a response, in bytes.
pub const TEXT_BYTES: usize = 256 * 1024;

/// How notes of the gateway begin; nothing else in a request does.
const MARK: &str = "[gateway]";

const BASE: &str = "You are the voice of a conversation held through a gateway. Your words are spoken aloud: answer in one to three short plain \
sentences, without markdown, lists or links. Use a tool when one fits, and say what came of it only after its result is there. \
Messages that begin with [gateway] come from the gateway itself.";

const PLAN: &str = "Plan mode is ON. You may look and think; nothing may be changed. Calls that would change something are refused by the gateway, \
whatever you write. You cannot leave plan mode: only the person can, and not by talking to you. When you know what should be done, present it \
with plan__submit (a summary and the steps in order; repeat the title of a refused step word for word to keep its call), then wait for the person. \
If presenting fails, say so and ask in plain words. Do not say that anything was changed, and do not say that plan mode is off.";

/// The JSON body of a streaming request.
pub fn request(model: &str, step: &StepRequest) -> Value {
    let mut body = json!({"model": model, "stream": true, "messages": messages(step)});
    if !step.tools.is_empty() {
        body["tools"] = step.tools.iter().take(TOOLS_MAX).map(tool).collect();
    }
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({"type": "function", "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters}})
}

/// What a model is told before anything else: how to speak, the instructions, and what plan mode and an approved plan want of it.
pub fn system(step: &StepRequest) -> String {
    let mut system = BASE.to_string();
    if !step.instructions.trim().is_empty() {
        system = format!("{system}\n\n{}", step.instructions.trim());
    }
    if step.plan_mode {
        system = format!("{system}\n\n{PLAN}");
        let draft: Vec<String> = step.draft.iter().enumerate().map(|(n, s)| format!("{}. {}", n + 1, s.title)).collect();
        if !draft.is_empty() {
            system = format!("{system}\nSteps noted so far:\n{}", draft.join("\n"));
        }
    }
    if let Some(plan) = &step.approved {
        system = format!("{system}\n\n{}", carried_out(plan, step.plan_mode));
    }
    system
}

/// A note of the gateway, as a model reads it.
pub fn note(note: &GatewayNote) -> String { format!("{MARK} {}", told(note)) }

fn messages(step: &StepRequest) -> Vec<Value> {
    let mut out = vec![json!({"role": "system", "content": system(step)})];
    let results: HashMap<&CallId, &Value> = step.items.iter().filter_map(|i| if let Item::Result { id, output, .. } = i { Some((id, output)) } else { None }).collect();
    let mut at = 0;
    while let Some(item) = step.items.get(at) {
        at += 1;
        match item {
            Item::User { text, .. } => out.push(json!({"role": "user", "content": said(text)})),
            Item::Gateway(note) => out.push(json!({"role": "user", "content": self::note(note)})),
            Item::Assistant { text, .. } => {
                let calls = run_of_calls(&step.items[at..]);
                at += calls.len();
                assistant(Some(text), &calls, &results, &mut out);
            }
            Item::Call { .. } => {
                let calls = run_of_calls(&step.items[at - 1..]);
                at += calls.len() - 1;
                assistant(None, &calls, &results, &mut out);
            }
            // Stands behind its call already; one whose call is no longer kept would be refused by the server.
            Item::Result { .. } => {}
        }
    }
    out
}

/// A person's words that begin like a note of the gateway are no such note.
pub fn said(text: &str) -> String {
    if text.trim_start().to_lowercase().starts_with(MARK) { format!("(the person said) {text}") } else { text.to_string() }
}

fn run_of_calls(items: &[Item]) -> Vec<(&CallId, &str, &Value)> {
    items.iter().map_while(|i| if let Item::Call { id, tool, arguments } = i { Some((id, tool.as_str(), arguments)) } else { None }).collect()
}

/// A line with its calls, and directly behind it an answer to each: the protocol wants them so, whatever came in between.
fn assistant(text: Option<&String>, calls: &[(&CallId, &str, &Value)], results: &HashMap<&CallId, &Value>, out: &mut Vec<Value>) {
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|(id, tool, arguments)| {
            json!({"id": id.0, "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}})
        }).collect();
    }
    out.push(message);
    for (id, _, _) in calls {
        let content = results.get(id).map_or_else(|| json!({"status": "no result yet"}).to_string(), |o| o.to_string());
        out.push(json!({"role": "tool", "tool_call_id": id.0, "content": content}));
    }
}

/// The approved plan, for as long as it is neither completed nor set aside.
fn carried_out(plan: &PlanVersion, plan_mode: bool) -> String {
    let now = if plan_mode { "Plan mode is on again, so none of it is carried out now." } else { "Each change may still be asked about." };
    format!(
        "The person approved plan {}, \"{}\". {now} When all of it is done, say so with plan__complete and a short summary of what was done.\n{}",
        plan.version, plan.title, step_lines(&plan.steps)
    )
}

fn step_lines(steps: &[Step]) -> String {
    let line = |(n, step): (usize, &Step)| {
        let call = step.kept.as_ref().map(|k| format!(" (call {} with {})", k.tool, k.arguments)).unwrap_or_default();
        format!("{}. {}{call}", n + 1, step.title)
    };
    steps.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn told(note: &GatewayNote) -> String {
    match note {
        GatewayNote::Approved { version, title, steps } => {
            format!("The person approved plan {version}, \"{title}\". Plan mode is off. Carry out its steps now, in order, with tools; each change may still be asked about:\n{}", step_lines(steps))
        }
        GatewayNote::Continue { version, title, steps } => {
            format!("The person wants plan {version}, \"{title}\", gone on with. Check first what is done already, say that you go on with it, then do what is left:\n{}", step_lines(steps))
        }
        GatewayNote::ChangesRequested { version, comments } if comments.trim().is_empty() => {
            format!("The person wants to keep planning; plan {version} was not approved. Ask what should be different.")
        }
        GatewayNote::ChangesRequested { version, comments } => {
            format!("The person wants plan {version} changed, in these words: \"{comments}\". Present a new plan with plan__submit.")
        }
        GatewayNote::PresentDraft => "The person asks to hear the plan. Present the steps so far with plan__submit now.".into(),
        GatewayNote::Mode { plan: true } => "Plan mode is on now: nothing may be changed.".into(),
        GatewayNote::Mode { plan: false } => "Plan mode is off now.".into(),
        GatewayNote::Text(text) => text.clone(),
    }
}

/// A call as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenCall {
    /// Name of the tool.
    pub tool: String,
    /// JSON text, unchecked.
    pub arguments: String,
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStream {
    /// A chunk is no JSON, or not of this protocol.
    #[error("a chunk of the stream is no chat completion: {0}")]
    Malformed(String),
    /// The server reports an error in the stream.
    #[error("{0}")]
    Error(String),
    /// Longer than is taken.
    #[error("the response is too long")]
    TooLong,
}

/// Puts a streamed response together.
#[derive(Debug, Default)]
pub struct Assembly {
    calls: Vec<(i64, String, WrittenCall)>,
    text_bytes: usize,
    finished: bool,
}

impl Assembly {
    /// Takes the data of one event; answers the text in it.
    ///
    /// # Errors
    /// [`BadStream`]; nothing more may be read then.
    pub fn push(&mut self, data: &str) -> Result<Option<String>, BadStream> {
        if data.trim() == "[DONE]" {
            self.finished = true;
            return Ok(None);
        }
        let chunk: Value = serde_json::from_str(data).map_err(|e| BadStream::Malformed(e.to_string()))?;
        if let Some(message) = error_in(&chunk) {
            return Err(BadStream::Error(message));
        }
        let choices = chunk["choices"].as_array().ok_or_else(|| BadStream::Malformed("it has no choices".into()))?;
        let Some(choice) = choices.first() else { return Ok(None) };
        for (n, call) in choice["delta"]["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.add(n, call)?;
        }
        self.finished |= choice["finish_reason"].is_string();
        let text = choice["delta"]["content"].as_str().filter(|t| !t.is_empty()).map(str::to_string);
        self.text_bytes += text.as_ref().map_or(0, String::len);
        if self.text_bytes > TEXT_BYTES { Err(BadStream::TooLong) } else { Ok(text) }
    }

    fn add(&mut self, position: usize, delta: &Value) -> Result<(), BadStream> {
        let index = delta["index"].as_i64().unwrap_or(position as i64);
        let id = delta["id"].as_str().unwrap_or_default();
        let name = delta["function"]["name"].as_str().unwrap_or_default();
        // Some servers give every call index 0; a new id then begins a new call.
        let known = self.calls.iter().rposition(|(i, seen, _)| *i == index && (id.is_empty() || seen == id || seen.is_empty()));
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= CALLS_MAX => return Err(BadStream::TooLong),
            None => {
                self.calls.push((index, id.to_string(), WrittenCall::default()));
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at].2;
        // A name comes whole; some servers repeat it in every chunk.
        if call.tool.is_empty() {
            call.tool = name.to_string();
        }
        match &delta["function"]["arguments"] {
            Value::String(more) => call.arguments.push_str(more),
            whole @ Value::Object(_) => call.arguments = whole.to_string(),
            _ => {}
        }
        if call.arguments.len() > ARGUMENTS_BYTES { Err(BadStream::TooLong) } else { Ok(()) }
    }

    /// True once the server has said that the response is whole.
    pub fn is_finished(&self) -> bool { self.finished }

    /// The calls, in the order they began. Only a finished response has any: half a call is none.
    pub fn calls(self) -> Vec<WrittenCall> {
        if self.finished { self.calls.into_iter().map(|(_, _, call)| call).filter(|c| !c.tool.is_empty()).collect() } else { Vec::new() }
    }
}

/// The message of an error object, in a body or in the stream.
pub fn error_in(body: &Value) -> Option<String> {
    match &body["error"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        object => Some(object["message"].as_str().unwrap_or("an error without a message").to_string()),
    }
}

#[cfg(test)]
#[path = "openai_chat_tests.rs"]
mod tests;
