//! Tool calls on their way: wanted, judged, asked about, run, answered exactly once.
//!
//! One lane: calls go in the order they were wanted, one at a time. A call that waits for a screen steps aside.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::authority::By;
use super::super::event::{EventKind, QuestionKind};
use super::super::gate::{Approval, Refusal, Verdict};
use super::super::id::{CallId, Ms, QuestionId, TurnId};
use super::super::input::{Action, Count};
use super::super::facts::facts_of;
use super::super::mode::{AskPolicy, Stamp};
use super::super::plan::{KeptCall, PlanStatus, PlanVersion, Proposal, Step};
use super::super::todo;
use super::super::tool::{SessionDeed, ToolCall, ToolOutcome, ToolSpec, fill_slots};
use super::Engine;
use crate::media::earcon::Earcon;

/// Calls that wait in the lane at most; more are refused.
const LANE_MAX: usize = 32;

/// What was in force when the response that wants a call began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub turn: TurnId,
    pub stamp: Stamp,
    pub ask: AskPolicy,
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub call: ToolCall,
    turn: TurnId,
    ask: AskPolicy,
    since: Ms,
    pub approval: Option<Approval>,
}

#[derive(Debug)]
pub(super) struct Parked {
    pub wanted: Wanted,
    pub request: QuestionId,
    pub expires_at: Ms,
    /// A person is reminded of it once.
    pub remind_at: Option<Ms>,
}

/// The lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Wanted>,
    pub(super) asked: Option<Wanted>,
    running: Option<Wanted>,
    /// Calls that the client runs itself: several at a time, because a client may answer only when it has them all.
    handed: Vec<Wanted>,
    pub(super) parked: Vec<Parked>,
    hold_until: Option<Ms>,
    /// What a person loosened by voice may still be taken back: the approved version, if it was an approval, and until when.
    pub(super) hasty: Option<(Option<u32>, Ms)>,
}

impl Lane {
    /// Something runs, waits to run, or waits for an answer by voice. What waits for a screen does not count.
    pub(super) fn is_busy(&self) -> bool { !self.queue.is_empty() || self.asked.is_some() || self.running.is_some() || !self.handed.is_empty() }

    pub(super) fn is_parked(&self, call: &CallId) -> bool { self.parked.iter().any(|p| &p.wanted.call.id == call) }

    pub(super) fn deadline(&self) -> Option<Ms> { self.parked.iter().flat_map(|p| [Some(p.expires_at), p.remind_at]).flatten().chain(self.hold_until).min() }

    /// Calls that wait, and calls that wait for a screen.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) { (self.queue.len(), self.parked.len()) }

    /// Holds the next call back until a person could have taken the loosening back.
    pub(super) fn hold(&mut self, until: Ms, version: Option<u32>) {
        self.hold_until = Some(until);
        self.hasty = Some((version, until));
    }
}

impl Engine {
    pub(super) fn want_call(&mut self, made: Made, id: CallId, tool: String, arguments: Result<Value, ToolOutcome>) {
        let display = self.spec(&tool).map_or_else(|| tool.clone(), |s| s.display.clone());
        let shown = arguments.as_ref().map_or_else(|_| json!({}), Clone::clone);
        self.event(EventKind::ToolStart { call: id.clone(), tool: tool.clone(), arguments: shown.clone(), display });
        let wanted = Wanted { call: ToolCall { id, tool, arguments: shown, stamp: made.stamp }, turn: made.turn, ask: made.ask, since: self.now, approval: None };
        match arguments {
            Err(outcome) => self.answer(wanted, outcome),
            Ok(_) if self.lane.queue.len() >= LANE_MAX => self.answer(wanted, ToolOutcome::failed("queue_full", "Too many calls wait already; it was not run.")),
            Ok(_) => self.lane.queue.push_back(wanted),
        }
    }

    /// A client's tool never stands before one of the gateway's.
    fn spec(&self, tool: &str) -> Option<&ToolSpec> { self.config.tools.iter().chain(&self.client_tools).find(|s| s.name == tool) }

    fn is_handed_over(&self, tool: &str) -> bool { !self.config.tools.iter().any(|s| s.name == tool) && self.client_tools.iter().any(|s| s.name == tool) }

    /// Takes calls to the gate for as long as nothing runs and nothing is asked.
    pub(super) fn pump_lane(&mut self) {
        while self.lane.running.is_none() && self.lane.asked.is_none() && !self.unannounced && !self.loosening && !self.is_held() {
            // One question at a time: a call that would ask waits for the plan's question too.
            if self.question().is_some_and(|q| q.kind != QuestionKind::Tool && q.state.is_open()) {
                return;
            }
            let Some(wanted) = self.lane.queue.pop_front() else { return };
            self.judge(wanted);
        }
    }

    fn is_held(&mut self) -> bool {
        let Some(until) = self.lane.hold_until else { return false };
        if self.now < until || self.ears.speaking_since(until) {
            return true;
        }
        self.lane.hold_until = None;
        self.lane.hasty = None;
        false
    }

    fn judge(&mut self, mut wanted: Wanted) {
        // After a present nothing but looking is let through in that response.
        let looks_only = self.turn_has_presented();
        let spec = self.spec(&wanted.call.tool).cloned();
        if looks_only && spec.as_ref().is_none_or(|s| !facts_of(s, &wanted.call.arguments).is_plan_safe()) {
            return self.answer(wanted, ToolOutcome::failed("plan_presented", "A plan was just presented; nothing else is run until a person has decided."));
        }
        let made = wanted.call.stamp.posture;
        wanted.call.stamp = self.stricter_stamp(wanted.call.stamp);
        let of_before = made != wanted.call.stamp.posture;
        match self.gate.judge(&wanted.call, spec.as_ref(), self.policy(wanted.ask), wanted.approval.as_ref()) {
            Verdict::Allow(permit) => {
                let call = wanted.call.clone();
                // How long it takes is counted from here, not from the question before it.
                let wanted = Wanted { since: self.now, ..wanted };
                if self.is_handed_over(&call.tool) { self.lane.handed.push(wanted) } else { self.lane.running = Some(wanted) }
                self.act(Action::Run(permit, call));
            }
            Verdict::Refuse(refusal) => self.refuse(wanted, spec.as_ref(), &refusal, of_before),
            Verdict::Ask { screen_only } => match spec {
                Some(spec) => self.ask_about(wanted, &spec, screen_only),
                None => self.answer(wanted, ToolOutcome::failed("unknown_tool", "There is no such tool.")),
            },
        }
    }

    /// `of_before`: it was wanted before the mode came on.
    fn refuse(&mut self, wanted: Wanted, spec: Option<&ToolSpec>, refusal: &Refusal, of_before: bool) {
        let blocked = refusal.code == "plan_mode_blocked";
        if blocked {
            self.count_blocked(refusal.effect);
            if let Some(spec) = spec {
                self.keep_in_draft(spec, &wanted.call);
            }
            self.act(Action::Earcon(Earcon::Refused));
        }
        let outcome = self.refusal_outcome(refusal, &wanted.call.tool);
        self.answer(wanted, outcome);
        // What was wanted before goes with the sentence that the mode is on: one line is enough.
        if blocked && !of_before {
            self.say_refused(spec.is_some());
        }
    }

    fn count_blocked(&mut self, effect: super::super::tool::Effect) {
        let user = self.snap.transcript.iter().rev().find(|l| l.role == super::super::event::Role::User);
        let surface = user.map_or("gateway", |l| l.surface.word());
        self.count(Count::Blocked { surface, effect: effect.word() });
    }

    /// The envelope of a refusal, as the agent gets it.
    fn refusal_outcome(&self, refusal: &Refusal, tool: &str) -> ToolOutcome {
        let output = json!({
            "success": false, "is_error": true, "error_code": refusal.code, "error": refusal.message, "reason": refusal.message,
            "plan_mode": self.snap.in_plan(), "tool_name": tool, "fixable_by_llm": false, "effect": refusal.effect.word(),
        });
        ToolOutcome { output, ..ToolOutcome::failed(refusal.code, refusal.message.clone()) }
    }

    /// One short line a turn, however many calls were refused.
    fn say_refused(&mut self, noted: bool) {
        let text = if noted { "Plan mode is on, so nothing was changed. I noted it as a step of the plan." } else { "Plan mode is on, so nothing was changed." };
        if !self.mouth_waits_to_say(text) {
            self.say_plain(text);
        }
    }

    fn keep_in_draft(&mut self, spec: &ToolSpec, call: &ToolCall) {
        let title = match (&spec.step, &spec.ask) {
            (Some(step), _) => fill_slots(step, &call.arguments),
            (None, Some(ask)) => fill_slots(ask, &call.arguments).trim_end_matches('?').to_string(),
            (None, None) => format!("Use {}", spec.display),
        };
        let kept = KeptCall { tool: call.tool.clone(), arguments: call.arguments.clone(), hash: call.hash() };
        let mut steps = self.snap.draft.clone();
        if steps.len() >= super::super::plan::STEPS_MAX || steps.iter().any(|s| s.kept.as_ref().is_some_and(|k| k.hash == kept.hash)) {
            return;
        }
        steps.push(Step { title, detail: String::new(), tools: vec![call.tool.clone()], kept: Some(kept) });
        self.event(EventKind::Draft { steps });
    }

    /// Plan mode has been entered: everything that has not begun is judged anew, and so refused if it would change something.
    pub(super) fn rejudge_all(&mut self) {
        let asked = self.lane.asked.take();
        if let Some(wanted) = asked {
            if let Some(id) = self.question().map(|q| q.id.clone()) {
                self.end_question("withdrawn", &By::gateway());
                self.event(EventKind::ApprovalResolved { request: id, call: wanted.call.id.clone(), status: "withdrawn", by: By::gateway() });
            }
            self.lane.queue.push_front(wanted);
        }
        for parked in std::mem::take(&mut self.lane.parked) {
            self.event(EventKind::ApprovalResolved { request: parked.request, call: parked.wanted.call.id.clone(), status: "withdrawn", by: By::gateway() });
            self.lane.queue.push_back(parked.wanted);
        }
        self.lane.hold_until = None;
        self.lane.hasty = None;
    }

    /// Calls that have not begun end without being run.
    pub(super) fn drop_queued_calls(&mut self, code: &str, message: &str) {
        let queued: Vec<Wanted> = self.lane.queue.drain(..).collect();
        for wanted in queued {
            self.answer(wanted, ToolOutcome::failed(code, message));
        }
        if let Some(id) = self.lane.asked.as_ref().and(self.question()).map(|q| q.id.clone()) {
            self.resolve_request(&id, "withdrawn", &By::gateway());
        }
    }

    pub(super) fn on_tool_done(&mut self, call: &CallId, outcome: ToolOutcome) {
        let handed = self.lane.handed.iter().position(|w| &w.call.id == call).map(|at| self.lane.handed.swap_remove(at));
        let Some(wanted) = handed.or_else(|| self.lane.running.take_if(|w| &w.call.id == call)) else { return };
        let outcome = match &outcome.session {
            Some(SessionDeed::SubmitPlan(arguments)) => self.submit_plan(arguments),
            Some(SessionDeed::CompletePlan(arguments)) => self.complete_plan(arguments),
            Some(SessionDeed::WriteTodo(arguments)) => self.write_todo(arguments),
            None => outcome,
        };
        if outcome.error_code == "plan_mode_blocked" {
            // Refused as it was about to begin: plan mode came in between.
            let spec = self.spec(&wanted.call.tool).cloned();
            self.count_blocked(spec.as_ref().map_or(super::super::tool::Effect::Unknown, |s| facts_of(s, &wanted.call.arguments).effect));
            if let Some(spec) = &spec { self.keep_in_draft(spec, &wanted.call) }
            self.answer(wanted, outcome);
            return self.say_refused(spec.is_some());
        }
        self.answer(wanted, outcome);
    }

    /// The one place where a call ends.
    pub(super) fn answer(&mut self, wanted: Wanted, outcome: ToolOutcome) {
        let Wanted { call, since, .. } = wanted;
        self.event(EventKind::ToolResult {
            call: call.id.clone(), tool: call.tool, success: outcome.success, error_code: outcome.error_code, error: outcome.error,
            output: outcome.output, latency_ms: self.now - since,
        });
        // A call that outlived its turn: the agent gets a turn to say what came of it.
        // (A provider gets the result itself, and answers a person who has gone on talking.)
        if !self.call_resolved(&call.id) && self.turns.active_id() != Some(wanted.turn) && !self.is_remote() {
            self.queue_turn(None);
        }
    }

    fn write_todo(&mut self, arguments: &Value) -> ToolOutcome {
        match todo::parse(arguments) {
            Ok(items) => {
                let echo = todo::echo(&items);
                self.event(EventKind::Todo(items));
                ToolOutcome::ok(echo)
            }
            Err(bad) => ToolOutcome::failed(bad.code, bad.message),
        }
    }

    fn submit_plan(&mut self, arguments: &Value) -> ToolOutcome {
        if let Some(refused) = self.report_upward() {
            return refused;
        }
        let mut proposal = match Proposal::parse(arguments) {
            Ok(proposal) => proposal,
            Err(bad) => {
                let mut outcome = ToolOutcome::failed(bad.code, bad.message);
                outcome.output["field"] = json!(bad.field);
                outcome.output["status_code"] = json!(400);
                outcome.output["data"] = Value::Null;
                return outcome;
            }
        };
        proposal.keep_from(&self.snap.draft);
        let hash = proposal.hash();
        if let Some(same) = self.snap.newest().filter(|p| p.hash == hash).cloned() {
            return self.submit_same(&same);
        }
        let older: Vec<u32> = self.snap.plans.iter().filter(|p| matches!(p.status, PlanStatus::Waiting | PlanStatus::SetAside)).map(|p| p.version).collect();
        for version in older {
            self.plan_decided(version, PlanStatus::Superseded, &By::gateway(), "");
        }
        if self.question().is_some_and(|q| q.kind == QuestionKind::Approve) {
            self.end_question("withdrawn", &By::gateway());
        }
        let version = PlanVersion {
            version: self.snap.plan_count + 1, title: proposal.title(), summary: proposal.summary, steps: proposal.steps, open_questions: proposal.open_questions,
            risks: proposal.risks, hash, status: PlanStatus::Waiting, ..PlanVersion::default()
        };
        let before = self.snap.newest().cloned();
        self.event(EventKind::Presented(version.clone()));
        self.carry_comments(&version);
        if !self.snap.draft.is_empty() {
            self.event(EventKind::Draft { steps: Vec::new() });
        }
        self.turn_presented();
        self.read_out(&version, None);
        if let Some(before) = before {
            self.say_changed(&before, &version);
        }
        self.presented_outcome(&version)
    }

    /// The same text again: what waits goes on waiting, what was set aside comes back, what was approved must change.
    fn submit_same(&mut self, same: &PlanVersion) -> ToolOutcome {
        match same.status {
            PlanStatus::Approved | PlanStatus::Completed | PlanStatus::Closed => return ToolOutcome::failed("plan_unchanged", "This plan was approved already; a new one must differ."),
            PlanStatus::Waiting => {}
            _ => {
                self.plan_decided(same.version, PlanStatus::Waiting, &By::gateway(), "");
                // It was read once; a person who wants to hear it again says so.
                self.say_plain(format!("Plan {} is back for review.", super::super::grammar::number_word(same.version)));
            }
        }
        self.turn_presented();
        self.presented_outcome(same)
    }

    fn presented_outcome(&self, version: &PlanVersion) -> ToolOutcome {
        let steps: Vec<Value> = version.steps.iter().enumerate().map(|(n, s)| json!({"index": n + 1, "title": s.title, "detail": s.detail, "tools": s.tools})).collect();
        ToolOutcome::ok(json!({
            "success": true, "status_code": 200, "error": null,
            "data": {
                "plan": {"version": version.version, "summary": version.summary, "steps": steps, "open_questions": version.open_questions, "risks": version.risks, "hash": version.hash},
                "plan_mode": self.snap.in_plan(), "awaiting": "user_review",
                "note": "A person decides about it. Do nothing more until they have; they may approve it, ask for changes, or set it aside.",
            },
        }))
    }
}
