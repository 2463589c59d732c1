//! Tool calls on their way: wanted, judged, asked about, run, answered exactly once.
//!
//! One lane: calls go in the order they were wanted, one at a time. A call that waits for a screen steps aside.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::authority::By;
use super::super::event::{EventKind, PendingApproval, Question, QuestionKind, QuestionState};
use super::super::gate::{Approval, Refusal, Verdict};
use super::super::id::{CallId, Ms, QuestionId, TurnId};
use super::super::input::{Action, Count};
use super::super::facts::facts_of;
use super::super::mode::{AskPolicy, Stamp};
use super::super::plan::{KeptCall, PlanStatus, PlanVersion, Proposal, Step};
use super::super::todo;
use super::super::tool::{SessionDeed, ToolCall, ToolOutcome, ToolSpec, fill_slots};
use super::speak::Purpose;
use super::{ANSWER_WINDOW_MS, Engine, REQUEST_LIFE_MS};
use crate::media::earcon::Earcon;

/// Calls that wait in the lane at most; more are refused.
const LANE_MAX: usize = 32;
/// Calls that wait for a screen at most; the oldest expires.
const PARKED_MAX: usize = 16;

/// What was in force when the response that wants a call began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub turn: TurnId,
    pub stamp: Stamp,
    pub ask: AskPolicy,
}

#[derive(Debug)]
struct Wanted {
    call: ToolCall,
    turn: TurnId,
    ask: AskPolicy,
    since: Ms,
    approval: Option<Approval>,
}

#[derive(Debug)]
struct Parked {
    wanted: Wanted,
    request: QuestionId,
    expires_at: Ms,
}

/// The lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    queue: VecDeque<Wanted>,
    asked: Option<Wanted>,
    running: Option<Wanted>,
    parked: Vec<Parked>,
    hold_until: Option<Ms>,
    /// What a person loosened by voice may still be taken back: the approved version, if it was an approval, and until when.
    pub(super) hasty: Option<(Option<u32>, Ms)>,
}

impl Lane {
    /// Something runs, waits to run, or waits for an answer by voice. What waits for a screen does not count.
    pub(super) fn is_busy(&self) -> bool { !self.queue.is_empty() || self.asked.is_some() || self.running.is_some() }

    pub(super) fn is_parked(&self, call: &CallId) -> bool { self.parked.iter().any(|p| &p.wanted.call.id == call) }

    pub(super) fn deadline(&self) -> Option<Ms> { self.parked.iter().map(|p| p.expires_at).chain(self.hold_until).min() }

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

    fn spec(&self, tool: &str) -> Option<&ToolSpec> { self.config.tools.iter().find(|s| s.name == tool) }

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
        wanted.call.stamp = self.stricter_stamp(wanted.call.stamp);
        match self.gate.judge(&wanted.call, spec.as_ref(), self.policy(wanted.ask), wanted.approval.as_ref()) {
            Verdict::Allow(permit) => {
                let call = wanted.call.clone();
                // How long it takes is counted from here, not from the question before it.
                self.lane.running = Some(Wanted { since: self.now, ..wanted });
                self.act(Action::Run(permit, call));
            }
            Verdict::Refuse(refusal) => self.refuse(wanted, spec.as_ref(), &refusal),
            Verdict::Ask { screen_only } => match spec {
                Some(spec) => self.ask_about(wanted, &spec, screen_only),
                None => self.answer(wanted, ToolOutcome::failed("unknown_tool", "There is no such tool.")),
            },
        }
    }

    fn refuse(&mut self, wanted: Wanted, spec: Option<&ToolSpec>, refusal: &Refusal) {
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
        if blocked {
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

    fn ask_about(&mut self, wanted: Wanted, spec: &ToolSpec, screen_only: bool) {
        let what = spec.ask.as_ref().map_or_else(|| format!("Run {}?", spec.display), |ask| fill_slots(ask, &wanted.call.arguments));
        let text = if screen_only {
            format!("{what} This cannot be undone, so it needs an answer on the screen.")
        } else {
            format!("{what} Say yes, go ahead, if you want that, or say no.")
        };
        let request = QuestionId(format!("req_{:06}", self.fresh()));
        let effect = facts_of(spec, &wanted.call.arguments).effect;
        self.event(EventKind::ApprovalRequested(PendingApproval {
            request: request.clone(), call: wanted.call.id.clone(), tool: wanted.call.tool.clone(), arguments: wanted.call.arguments.clone(), effect,
            reason: what, screen_only, created_ms: self.epoch_ms + self.now,
        }));
        let question = Question {
            id: request, kind: QuestionKind::Tool, text, version: None, call: Some(wanted.call.id.clone()), screen_only,
            state: QuestionState::Asked, outcome: String::new(), by: None,
        };
        self.lane.asked = Some(wanted);
        self.ask(question, Some(REQUEST_LIFE_MS));
    }

    /// Opens a question and says it.
    pub(super) fn ask(&mut self, question: Question, life_ms: Option<u64>) {
        self.asked = super::Asked { expires_at: life_ms.map(|ms| self.now + ms), ..Default::default() };
        let (id, text) = (question.id.clone(), question.text.clone());
        self.event(EventKind::Question(question));
        self.say(Purpose::Question(id), text, None);
    }

    pub(super) fn question_was_heard(&mut self, id: &QuestionId) {
        let voice = self.speaks() && self.leg.is_some_and(|l| l.hears) && self.config.voice_exit;
        let Some(question) = self.question().filter(|q| &q.id == id && q.state == QuestionState::Asked).cloned() else { return };
        if question.screen_only || (!voice && question.kind != QuestionKind::Tool) || !self.speaks() {
            if question.screen_only { self.park_asked() }
            return;
        }
        self.asked.heard_at = Some(self.now);
        self.event(EventKind::Question(Question { state: QuestionState::Heard, ..question }));
    }

    pub(super) fn asked_is_heard(&self) -> bool { self.question().is_some_and(|q| q.state == QuestionState::Heard) }

    /// Says the open question again, if it has not been heard to the end.
    pub(super) fn reask(&mut self) {
        let Some(question) = self.question().filter(|q| q.state == QuestionState::Asked && !q.screen_only).cloned() else { return };
        if self.speaks() && !self.mouth.has_question(&question.id) && self.asked.repeats < 3 {
            self.asked.repeats += 1;
            self.say(Purpose::Question(question.id), question.text, None);
        }
    }

    /// The spoken window closes 15 s after the question was heard, unless somebody is speaking since before that.
    pub(super) fn close_answer_window(&mut self) {
        let Some(heard_at) = self.asked.heard_at.filter(|_| self.asked_is_heard()) else { return };
        let closes = heard_at + ANSWER_WINDOW_MS;
        if self.now < closes || self.ears.speaking_since(closes) || self.ears.is_recognising() || self.mouth.is_audible() {
            return;
        }
        let kind = self.question().map(|q| q.kind);
        if kind == Some(QuestionKind::Tool) {
            self.park_asked();
            self.say_plain("I heard no answer, so I have not done it. You can still answer on the screen.");
        } else {
            self.end_question("expired", &By::gateway());
            self.say_plain("I heard no answer. Plan mode stays on.");
        }
    }

    /// The asked call steps aside: only a screen can answer it now.
    pub(super) fn park_asked(&mut self) {
        let Some(question) = self.question().filter(|q| q.kind == QuestionKind::Tool).cloned() else { return };
        let Some(wanted) = self.lane.asked.take() else { return };
        let expires_at = self.asked.expires_at.unwrap_or(self.now + REQUEST_LIFE_MS);
        self.lane.parked.push(Parked { wanted, request: question.id.clone(), expires_at });
        self.asked = super::Asked::default();
        self.event(EventKind::Question(Question { state: QuestionState::ScreenOnly, ..question }));
        if self.lane.parked.len() > PARKED_MAX {
            let oldest = self.lane.parked[0].request.clone();
            self.resolve_request(&oldest, "expired", &By::gateway());
        }
    }

    pub(super) fn expire_requests(&mut self) {
        if self.asked.expires_at.is_some_and(|at| self.now >= at) {
            if let Some(id) = self.question().map(|q| q.id.clone()) {
                // A plan's question has no call behind it; left open, nothing that waits behind it would ever be answered.
                if !self.resolve_request(&id, "expired", &By::gateway()) {
                    self.end_question("expired", &By::gateway());
                    self.say_plain("I heard no answer. Plan mode stays on.");
                }
            }
        }
        let due: Vec<QuestionId> = self.lane.parked.iter().filter(|p| self.now >= p.expires_at).map(|p| p.request.clone()).collect();
        for request in due {
            self.resolve_request(&request, "expired", &By::gateway());
        }
    }

    /// Closes the open question with this outcome.
    pub(super) fn end_question(&mut self, outcome: &str, by: &By) {
        let Some(question) = self.question().cloned() else { return };
        self.asked = super::Asked::default();
        let state = if outcome == "expired" { QuestionState::Expired } else { QuestionState::Answered };
        self.drop_question_speech(&question.id);
        self.event(EventKind::Question(Question { state, outcome: outcome.into(), by: Some(by.clone()), ..question }));
    }

    /// Answers a waiting call. False: no such request waits.
    pub(super) fn resolve_request(&mut self, request: &QuestionId, status: &'static str, by: &By) -> bool {
        let asked = self.question().is_some_and(|q| &q.id == request && q.state.is_open());
        let wanted = match self.lane.parked.iter().position(|p| &p.request == request) {
            Some(at) => Some(self.lane.parked.remove(at).wanted),
            None if asked => self.lane.asked.take(),
            None => None,
        };
        let Some(mut wanted) = wanted else { return false };
        if asked {
            self.end_question(status, by);
        }
        self.event(EventKind::ApprovalResolved { request: request.clone(), call: wanted.call.id.clone(), status, by: by.clone() });
        match status {
            "approved" => {
                wanted.approval = Some(Approval { request: request.clone(), call: wanted.call.id.clone(), hash: wanted.call.hash() });
                self.lane.queue.push_front(wanted);
            }
            "denied" => self.answer(wanted, ToolOutcome::failed("denied_by_user", "The person said no; it was not run.")),
            "withdrawn" => self.answer(wanted, ToolOutcome::failed("cancelled", "The question was withdrawn; it was not run.")),
            _ => self.answer(wanted, ToolOutcome::failed("expired", "Nobody answered in time; it was not run.")),
        }
        true
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
        if self.lane.running.as_ref().is_none_or(|w| &w.call.id != call) {
            return;
        }
        let Some(wanted) = self.lane.running.take() else { return };
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
    fn answer(&mut self, wanted: Wanted, outcome: ToolOutcome) {
        let Wanted { call, since, .. } = wanted;
        self.event(EventKind::ToolResult {
            call: call.id.clone(), tool: call.tool, success: outcome.success, error_code: outcome.error_code, error: outcome.error,
            output: outcome.output, latency_ms: self.now - since,
        });
        // A call that outlived its turn: the agent gets a turn to say what came of it.
        if !self.call_resolved(&call.id) && self.turns.active_id() != Some(wanted.turn) {
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
