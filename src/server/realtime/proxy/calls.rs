//! Tool calls of a provider: wanted, taken to the gate, handed over or hidden, answered once.

use serde_json::{Value, json};

use super::Proxy;
use crate::dialect::openai_realtime::upstream::call_output;
use crate::engine::id::{CallId, Ms};
use crate::session::leg::{FromProvider, LegInput};

/// How a call stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stands {
    /// Its arguments are still coming.
    Coming,
    /// The gate has it.
    Asked,
    /// The client has it.
    Handed,
    /// It has an output, which the provider was not told of.
    Done(String),
    /// The provider was told.
    Told,
}

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) item: String,
    pub(super) tool: String,
    /// Of which response of the provider.
    pub(super) round: String,
    /// The client's own to run, if the gate lets it begin.
    pub(super) clients: bool,
    /// Events about it that the client has not seen.
    pub(super) held: Vec<Value>,
    pub(super) stands: Stands,
}

impl Call {
    pub(super) fn is_open(&self) -> bool { !matches!(self.stands, Stands::Done(_) | Stands::Told) }
}

impl Proxy {
    /// The call that an event is about. One that was not seen yet is entered, where the event says enough of it.
    pub(super) fn call_of(&mut self, event: &Value) -> Option<&mut Call> {
        let item = if event["item"].is_object() { &event["item"] } else { &Value::Null };
        let id = item["call_id"].as_str().or(event["call_id"].as_str());
        let named = item["id"].as_str().or(event["item_id"].as_str()).unwrap_or_default().to_string();
        let at = self.calls.iter().position(|c| Some(c.id.as_str()) == id || !named.is_empty() && c.item == named);
        if let Some(at) = at {
            return self.calls.get_mut(at);
        }
        let (id, tool) = (id?.to_string(), item["name"].as_str().or(event["name"].as_str())?.to_string());
        let clients = !self.is_ours(&tool);
        let round = self.answer.as_ref().map(|a| a.round.clone()).unwrap_or_default();
        Self::remember(&mut self.hidden, &named);
        self.calls.push(Call { id, item: named, tool, round, clients, held: Vec::new(), stands: Stands::Coming });
        self.calls.last_mut()
    }

    /// A call is whole: it goes to the gate.
    pub(super) fn want(&mut self, call: &str, arguments: &str) {
        let Some(call) = self.calls.iter_mut().find(|c| c.id == call && c.stands == Stands::Coming) else { return };
        call.stands = Stands::Asked;
        let (id, tool) = (CallId(call.id.clone()), call.tool.clone());
        self.tell_of(FromProvider::Call { id, tool, arguments: arguments.to_string() });
    }

    /// The gate has let a call of the client's begin: now it sees it, in order.
    pub(super) fn handed(&mut self, now: Ms, call: &CallId) {
        let Some(call) = self.calls.iter_mut().find(|c| c.id == call.0 && c.clients) else { return };
        call.stands = Stands::Handed;
        let (held, item) = (std::mem::take(&mut call.held), call.item.clone());
        self.hidden.remove(&item);
        for event in held { self.show(event) }
        self.round_may_end(now);
    }

    /// A call has ended. A client's own answer has gone to the provider already.
    pub(super) fn call_done(&mut self, now: Ms, call: &CallId, output: String) {
        if let Some(tool) = self.orphans.remove(&call.0) {
            return self.hidden_line("system", &format!("[gateway] The call of {tool} from before the connection was lost has ended: {output}"));
        }
        let Some(call) = self.calls.iter_mut().find(|c| c.id == call.0 && c.is_open()) else { return };
        call.held.clear();
        call.stands = Stands::Done(output);
        self.round_may_end(now);
        self.tell_outputs();
        self.try_create(now);
    }

    /// The client's answer to a call it was handed goes to the provider as it is, and to the conversation. False: it was handed no such call.
    pub(super) fn answered(&mut self, call: &str, output: &str) -> bool {
        let Some(known) = self.calls.iter_mut().find(|c| c.id == call && c.stands == Stands::Handed) else { return false };
        known.stands = Stands::Told;
        self.tell(LegInput::Answer { call: CallId(call.to_string()), output: output.to_string() });
        true
    }

    /// Outputs go to the provider when its response has ended, in the order in which it wanted the calls.
    pub(super) fn tell_outputs(&mut self) {
        let busy = self.answer.as_ref().filter(|a| a.active).map(|a| a.round.clone());
        let waits = self.answer.as_ref().is_some_and(|a| a.waits);
        let mut outputs = Vec::new();
        for call in &mut self.calls {
            if busy.as_ref() == Some(&call.round) { continue }
            match &call.stands {
                Stands::Done(output) => {
                    outputs.push((call.id.clone(), output.clone()));
                    call.stands = Stands::Told;
                }
                // All of them, in order, while an answer waits for them.
                _ if call.is_open() && waits => break,
                _ => {}
            }
        }
        for (call, output) in outputs {
            let event = self.own_event(None);
            self.ask(&call_output(&event, &call, &output));
        }
        let keep = self.answer.as_ref().map(|a| a.round.clone());
        self.calls.retain(|c| c.stands != Stands::Told || keep.as_ref() == Some(&c.round));
    }

    /// Some call of the last round waits for its output.
    pub(super) fn has_open_calls(&self) -> bool { self.calls.iter().any(|c| c.stands != Stands::Told && c.stands != Stands::Handed) }

    /// The output of a call as an item, for a provider that has to be told of it anew.
    pub(super) fn as_output(call: &str, output: &str) -> Value { json!({"type": "function_call_output", "call_id": call, "output": output}) }
}
