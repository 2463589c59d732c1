//! Tools that the attached client runs itself: handed over with a permit, answered once, never run here.
//!
//! The runner offers a call that the gate has let begin; session hands it to the leg and brings the client's answer back. A client that
//! does not answer in time leaves the call's outcome unknown.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::engine::id::CallId;
use crate::engine::tool::{Effect, Tier, ToolCall, ToolOutcome, ToolSpec};

/// How long a client may take for a call.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);
/// Most tools of one client.
const TOOLS_MAX: usize = 128;

#[derive(Debug, Default)]
struct Inner {
    specs: Vec<ToolSpec>,
    offered: VecDeque<ToolCall>,
    open: HashMap<CallId, oneshot::Sender<ToolOutcome>>,
}

/// See the file's head. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct ClientTools(Arc<Mutex<Inner>>);

impl ClientTools {
    fn lock(&self) -> MutexGuard<'_, Inner> { self.0.lock().unwrap_or_else(PoisonError::into_inner) }

    /// The client's tools from now on, as it declared them (`{name, description, parameters}`). What they do is not known here, so in plan
    /// mode they are not handed over; outside it the client, which has declared and runs them, is not asked about each.
    pub fn declare(&self, functions: &[Value]) -> Vec<ToolSpec> {
        let specs: Vec<ToolSpec> = functions.iter().take(TOOLS_MAX).filter_map(spec).collect();
        self.lock().specs = specs.clone();
        specs
    }

    pub(super) fn spec(&self, tool: &str) -> Option<ToolSpec> { self.lock().specs.iter().find(|s| s.name == tool).cloned() }

    /// Offers a call that has begun; the answer comes by the receiver.
    pub(super) fn offer(&self, call: ToolCall) -> oneshot::Receiver<ToolOutcome> {
        let (tx, rx) = oneshot::channel();
        let mut inner = self.lock();
        inner.open.insert(call.id.clone(), tx);
        inner.offered.push_back(call);
        rx
    }

    /// Nobody waits for this call any more.
    pub(super) fn give_up(&self, call: &CallId) { self.lock().open.remove(call); }

    /// Calls to hand to the client now.
    pub fn take_offered(&self) -> Vec<ToolCall> { self.lock().offered.drain(..).collect() }

    /// The client's answer. False: nobody waits for it.
    pub fn answered(&self, call: &CallId, output: &str) -> bool {
        let Some(waiting) = self.lock().open.remove(call) else { return false };
        let output = serde_json::from_str::<Value>(output).ok().filter(Value::is_object).unwrap_or_else(|| json!({"result": output}));
        let success = output["success"] != false && output["is_error"] != true;
        let outcome = ToolOutcome { output, ..if success { ToolOutcome::ok(Value::Null) } else { ToolOutcome::failed("client_failed", "The client says that it failed.") } };
        waiting.send(outcome).is_ok()
    }

    /// The client is gone: what it was handed has no answer.
    pub fn gone(&self) {
        let mut inner = self.lock();
        inner.specs.clear();
        inner.offered.clear();
        inner.open.clear();
    }
}

fn spec(function: &Value) -> Option<ToolSpec> {
    let name = function["name"].as_str()?;
    Some(ToolSpec {
        name: name.to_string(),
        description: function["description"].as_str().unwrap_or_default().to_string(),
        parameters: function.get("parameters").filter(|p| p.is_object()).cloned().unwrap_or_else(|| json!({"type": "object"})),
        effect: Effect::External,
        tier: Some(Tier::Safe),
        irreversible: false,
        needs_person: false,
        ask: None,
        step: None,
        display: name.to_string(),
    })
}
