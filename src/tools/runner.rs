//! The only executor. A call runs with a permit of the gate or not at all, once, to its end, and is answered exactly once.
//!
//! Session calls [`ToolRunner::run`]; the gate's `Running` guard lives as long as the executor does, whatever happens to
//! the future that waits for it, so that "nothing runs any more" is true when the gate says so.
#![allow(clippy::disallowed_methods, reason = "calls an hour are counted by the wall")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;

use super::builtin::BuiltinContext;
use super::catalogue::Catalogue;
use super::client::{self, ClientTools};
use super::limits::{Breaker, PER_TOOL, cap_feed, cap_output, per_hour};
use super::manifest::Endpoint;
use crate::engine::facts::facts_of;
use crate::engine::gate::{Gate, Permit, Refusal, Running};
use crate::engine::tool::{ToolCall, ToolOutcome};

/// Executors of one conversation that may run at the same time.
const AT_ONCE: usize = 8;

/// One conversation's runner. Clones share its counts.
#[derive(Clone, Debug)]
pub struct ToolRunner {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    catalogue: Catalogue,
    gate: Gate,
    context: Arc<BuiltinContext>,
    session_id: String,
    clients: ClientTools,
    breaker: Arc<Mutex<Breaker>>,
    running: Arc<AtomicUsize>,
}

impl ToolRunner {
    /// A runner for one conversation.
    pub fn new(catalogue: Catalogue, gate: Gate, context: BuiltinContext) -> ToolRunner {
        let inner = Inner { catalogue, gate, context: Arc::new(context), session_id: String::new(), clients: ClientTools::default(), breaker: Arc::default(), running: Arc::default() };
        ToolRunner { inner: Arc::new(inner) }
    }

    /// The same with the conversation's id, which refusal envelopes carry.
    pub fn with_session(self, session_id: &str) -> ToolRunner {
        ToolRunner { inner: Arc::new(Inner { session_id: session_id.to_string(), ..(*self.inner).clone() }) }
    }

    /// Runs an allowed call. Whether it may still begin is decided here and now, before the future is first polled;
    /// dropping the future stops the waiting and never the tool. Must be called inside a tokio runtime.
    pub fn run(&self, permit: Permit, call: ToolCall) -> BoxFuture<'static, ToolOutcome> {
        if self.inner.catalogue.endpoint(&call.tool).is_none() && self.inner.clients.spec(&call.tool).is_some() {
            return self.hand_over(permit, call);
        }
        match self.begin(permit, &call) {
            Ok(begun) => Box::pin(begun.finish(call)),
            Err(refusal) => Box::pin(std::future::ready(refusal_outcome(&refusal, &call.tool, &self.inner.session_id))),
        }
    }

    /// The tools that the attached client runs itself.
    pub fn clients(&self) -> &ClientTools { &self.inner.clients }

    /// Names of what the tools work on (titles of notes, names of files), at most `most`. Reads folders, changes nothing.
    pub fn titles(&self, most: usize) -> BoxFuture<'static, Vec<String>> {
        let context = self.inner.context.clone();
        let work = tokio::task::spawn_blocking(move || super::builtin::titles(&context, most));
        Box::pin(async move { work.await.unwrap_or_default() })
    }

    /// The client runs this one: it is offered to it once the gate has let it begin, and counts as running until it is answered.
    fn hand_over(&self, permit: Permit, call: ToolCall) -> BoxFuture<'static, ToolOutcome> {
        let refusal = |code, message: String, effect| refusal_outcome(&Refusal { code, message, effect }, &call.tool, &self.inner.session_id);
        let Some(seat) = Seat::take(&self.inner.running) else {
            let outcome = refusal("too_many_calls", format!("{AT_ONCE} tools are running already; wait for one to end."), permit.effect());
            return Box::pin(std::future::ready(outcome));
        };
        let running = match self.inner.gate.begin(permit, &call) {
            Ok(running) => running,
            Err(refused) => return Box::pin(std::future::ready(refusal_outcome(&refused, &call.tool, &self.inner.session_id))),
        };
        let (id, clients) = (call.id.clone(), self.inner.clients.clone());
        let answer = clients.offer(call);
        Box::pin(async move {
            let hold = Hold { _running: running, _seat: seat };
            let outcome = match tokio::time::timeout(client::DEADLINE, answer).await {
                Ok(Ok(outcome)) => bounded(outcome, false),
                Ok(Err(_gone)) => unsure("client_gone", "The client that ran it has gone.", true),
                Err(_late) => unsure("timeout", &format!("The client has not answered in {} seconds.", client::DEADLINE.as_secs()), true),
            };
            clients.give_up(&id);
            drop(hold);
            outcome
        })
    }

    fn begin(&self, permit: Permit, call: &ToolCall) -> Result<Begun, Refusal> {
        let effect = permit.effect();
        let refuse = |code, message: String| Refusal { code, message, effect };
        let endpoint = self.inner.catalogue.endpoint(&call.tool)
            .ok_or_else(|| refuse("unknown_tool", format!("There is no tool named {}.", call.tool)))?.clone();
        if facts_of(&endpoint.spec, &call.arguments).effect != effect {
            return Err(refuse("stale_permit", "The tool is not the one that was allowed.".into()));
        }
        self.admit(&endpoint).map_err(|message| refuse("too_many_calls", message))?;
        // The gate last: nothing stands between its yes and the executor.
        let seat = Seat::take(&self.inner.running)
            .ok_or_else(|| refuse("too_many_calls", format!("{AT_ONCE} tools are running already; wait for one to end.")))?;
        let running = self.inner.gate.begin(permit, call)?;
        Ok(Begun { endpoint, context: self.inner.context.clone(), hold: Hold { _running: running, _seat: seat } })
    }

    fn admit(&self, endpoint: &Endpoint) -> Result<(), String> {
        let mut breaker = self.inner.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, name) = (Instant::now(), &endpoint.spec.name);
        let skill = name.split_once("__").map_or(name.as_str(), |(skill, _)| skill);
        if !breaker.admit(name, PER_TOOL, now) {
            return Err(format!("{} was called more than {} times in {} seconds; stop and say what you found.", endpoint.spec.display, PER_TOOL.calls, PER_TOOL.within.as_secs()));
        }
        match endpoint.per_hour {
            Some(limit) if !breaker.admit(skill, per_hour(limit), now) => Err(format!("{skill} may be called {limit} times an hour, and that is used up.")),
            _ => Ok(()),
        }
    }
}

/// A call the gate has let begin.
struct Begun {
    endpoint: Arc<Endpoint>,
    context: Arc<BuiltinContext>,
    hold: Hold,
}

impl Begun {
    fn finish(self, call: ToolCall) -> impl Future<Output = ToolOutcome> + 'static {
        let Begun { endpoint, context, hold } = self;
        let (effect, deadline, feed) = (endpoint.spec.effect, endpoint.deadline, endpoint.feed);
        // A thread of its own: it cannot be cancelled half way, and a panic in it ends here.
        let work = tokio::task::spawn_blocking(move || {
            let outcome = (endpoint.builtin.run)(&context, &call.arguments);
            drop(hold);
            outcome
        });
        async move {
            match tokio::time::timeout(deadline, work).await {
                Ok(Ok(outcome)) => bounded(outcome, feed),
                Ok(Err(_panicked)) => unsure("tool_failed", "The tool failed.", true),
                Err(_late) => unsure("timeout", &format!("The tool has not answered in {} seconds.", deadline.as_secs()), !effect.is_plan_safe()),
            }
        }
    }
}

/// What must live as long as the executor.
struct Hold {
    _running: Running,
    _seat: Seat,
}

/// One of the places for executors that run at the same time.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(count: &Arc<AtomicUsize>) -> Option<Seat> {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < AT_ONCE).then_some(n + 1)).ok().map(|_| Seat(count.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) { self.0.fetch_sub(1, Ordering::SeqCst); }
}

fn bounded(outcome: ToolOutcome, feed: bool) -> ToolOutcome {
    // A deed's output is the session's to write, and the todo echo is exempt from the bound.
    if outcome.session.is_some() {
        return outcome;
    }
    let output = if feed { cap_feed(outcome.output) } else { cap_output(outcome.output) };
    ToolOutcome { output, ..outcome }
}

fn unsure(code: &str, message: &str, outcome_unknown: bool) -> ToolOutcome {
    let mut outcome = ToolOutcome::failed(code, message);
    outcome.output["outcome_unknown"] = json!(outcome_unknown);
    outcome
}

/// A refusal as the agent gets it: the envelope of the wire, with the effect's class beside it. It is a result, never an error event.
pub fn refusal_outcome(refusal: &Refusal, tool: &str, session_id: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::failed(refusal.code, refusal.message.clone());
    outcome.output = json!({
        "success": false, "is_error": true, "error_code": refusal.code, "error": refusal.message, "reason": refusal.message,
        "plan_mode": refusal.code == "plan_mode_blocked", "tool_name": tool, "session_id": session_id, "fixable_by_llm": false,
        "effect": refusal.effect.word(),
    });
    outcome
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
