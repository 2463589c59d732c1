//! Asking a person about a call: one request, one hash, one answer, used once. What nobody answers expires and stays in the history.

use serde_json::json;

use super::super::authority::By;
use super::super::event::{EventKind, PendingApproval, Question, QuestionKind, QuestionState};
use super::super::facts::facts_of;
use super::super::gate::Approval;
use super::super::id::{Ms, QuestionId};
use super::super::stage;
use super::super::tool::{ToolOutcome, ToolSpec, fill_slots};
use super::calls::{Parked, Wanted};
use super::speak::Purpose;
use super::{ANSWER_WINDOW_MS, Engine, REQUEST_LIFE_MS};

/// Calls that wait for a screen at most; the oldest expires.
const PARKED_MAX: usize = 16;
/// A question that is cut off is said again this often.
const REPEATS_MAX: u32 = 3;
/// Answered requests that are remembered, so that a late answer is told who was first.
const SETTLED_MAX: usize = 64;

/// A request that was answered, by whom and when.
#[derive(Debug)]
pub(super) struct Settled {
    request: QuestionId,
    status: &'static str,
    by: By,
    at: Ms,
}

impl Engine {
    fn question_text(&self, what: &str, irreversible: bool) -> String {
        match self.language().answers() {
            _ if irreversible => format!("{what} This cannot be undone, so it needs an answer on the screen."),
            Some((yes, no)) => format!("{what} Say {yes}, if you want that, or say {no}."),
            None => format!("{what} I understand no spoken answer in this language. It can only be answered in the chat or on the screen."),
        }
    }

    pub(super) fn ask_about(&mut self, wanted: Wanted, spec: &ToolSpec, irreversible: bool) {
        if let Some(at) = self.lane.parked.iter().position(|p| p.wanted.call.hash() == wanted.call.hash()) {
            return self.ask_again_about(at, wanted);
        }
        let what = spec.ask.as_ref().map_or_else(|| format!("Run {}?", spec.display), |ask| fill_slots(ask, &wanted.call.arguments));
        let text = self.question_text(&what, irreversible);
        // Where no answer is understood by voice, none is waited for: it is said once where to answer, and speech goes on meaning itself.
        let screen_only = irreversible || self.language().answers().is_none();
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

    /// Exactly this call waits for a person already: the request that is there is asked about once more, the second call is told so
    /// and ends. One yes runs one call.
    fn ask_again_about(&mut self, at: usize, again: Wanted) {
        let Parked { wanted, request, expires_at, .. } = self.lane.parked.remove(at);
        let pending = self.snap.approvals.iter().find(|a| a.request == request).cloned();
        let screen_only = pending.as_ref().is_some_and(|p| p.screen_only);
        let reason = pending.map_or_else(String::new, |p| p.reason);
        let note = "A person is being asked about exactly this already; it is not asked about twice.";
        let mut outcome = ToolOutcome::failed("pending_approval", note);
        outcome.output = json!({
            "success": false, "status": "pending_approval", "error_code": "pending_approval", "error": note, "request_id": request.0, "tool_name": again.call.tool, "args": again.call.arguments,
        });
        self.answer(again, outcome);
        let text = self.question_text(&reason, screen_only && self.language().answers().is_some());
        let question = Question {
            id: request, kind: QuestionKind::Tool, text, version: None, call: Some(wanted.call.id.clone()), screen_only,
            state: QuestionState::Asked, outcome: String::new(), by: None,
        };
        self.lane.asked = Some(wanted);
        self.ask(question, Some(expires_at.saturating_sub(self.now)));
    }

    /// Opens a question and says it.
    pub(super) fn ask(&mut self, question: Question, life_ms: Option<u64>) {
        self.asked = super::Asked { expires_at: life_ms.map(|ms| self.now + ms), ..Default::default() };
        let (id, text) = (question.id.clone(), question.text.clone());
        self.event(EventKind::Question(question));
        self.say(Purpose::Question(id), text, None);
    }

    /// The words of a question are over, heard or not. What only a screen answers waits there from now on, and what comes after it goes on.
    pub(super) fn question_was_said(&mut self, id: &QuestionId) {
        if self.question().is_some_and(|q| &q.id == id && q.screen_only) { self.park_asked() }
    }

    pub(super) fn question_was_heard(&mut self, id: &QuestionId) {
        let voice = self.speaks() && self.leg.is_some_and(|l| l.hears) && self.config.voice_exit;
        let Some(question) = self.question().filter(|q| &q.id == id && q.state == QuestionState::Asked).cloned() else { return };
        if (!voice && question.kind != QuestionKind::Tool) || !self.speaks() {
            return;
        }
        self.asked.open_since = Some(self.now);
        self.event(EventKind::Question(Question { state: QuestionState::Heard, ..question }));
    }

    pub(super) fn asked_is_heard(&self) -> bool { self.question().is_some_and(|q| q.state == QuestionState::Heard) }

    /// Says the open question again, if it was cut off and nobody has told it to stop.
    pub(super) fn reask(&mut self) {
        if self.asked.open_since.is_none() { self.ask_once_more() }
    }

    /// Says the open question again, if it has not been heard to its end. One that is always cut off is answered by nobody.
    pub(super) fn ask_once_more(&mut self) {
        let Some(question) = self.question().filter(|q| q.state == QuestionState::Asked).cloned() else { return };
        if !self.speaks() || self.mouth.has_question(&question.id) {
            return;
        }
        if self.asked.repeats >= REPEATS_MAX {
            return self.nobody_answers();
        }
        self.asked.repeats += 1;
        self.asked.open_since = None;
        self.say(Purpose::Question(question.id), question.text, None);
    }

    /// A person stopped the open question: a yes counts only once it has been said again, which the next words ask for; silence ends
    /// it as if it had been heard.
    pub(super) fn question_was_stopped(&mut self) {
        if self.question().is_some_and(|q| q.state == QuestionState::Asked) { self.asked.open_since = Some(self.now) }
    }

    /// What was answered did not count, and the person is told so: there is time to answer again.
    pub(super) fn open_window_anew(&mut self) {
        if self.asked_is_heard() { self.asked.open_since = Some(self.now) }
    }

    /// When the spoken window of the open question closes.
    pub(super) fn answer_window_closes(&self) -> Option<Ms> { self.asked.open_since.map(|at| at + ANSWER_WINDOW_MS) }

    /// The spoken window closes 15 s after the question was heard, unless somebody is answering since before that.
    pub(super) fn close_answer_window(&mut self) {
        let Some(closes) = self.answer_window_closes() else { return };
        if self.now >= closes && !self.ears.answering_since(closes, self.now) && !self.mouth.is_audible() {
            self.nobody_answers();
        }
    }

    fn nobody_answers(&mut self) {
        if self.question().is_some_and(|q| q.kind == QuestionKind::Tool) {
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
        // A tool's question always has an end.
        let Some(expires_at) = self.asked.expires_at else { return };
        let Some(wanted) = self.lane.asked.take() else { return };
        let left = expires_at.saturating_sub(self.now);
        self.lane.parked.push(Parked { wanted, request: question.id.clone(), expires_at, remind_at: Some(self.now + left / 2) });
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
        self.remind();
        let due: Vec<QuestionId> = self.lane.parked.iter().filter(|p| self.now >= p.expires_at).map(|p| p.request.clone()).collect();
        for request in due {
            self.resolve_request(&request, "expired", &By::gateway());
        }
    }

    /// A request that half of its life has gone by is told of once more, and never again.
    fn remind(&mut self) {
        let now = self.now;
        let due: Vec<QuestionId> = self.lane.parked.iter_mut().filter(|p| now < p.expires_at).filter_map(|p| p.remind_at.take_if(|at| now >= *at).map(|_| p.request.clone())).collect();
        for request in due {
            let Some(pending) = self.snap.approvals.iter().find(|a| a.request == request) else { continue };
            let minutes = pending.expires_ms().saturating_sub(self.epoch_ms + now).div_ceil(60_000);
            let message = format!("Still waiting for an answer on a screen: {} It expires in {minutes} minutes.", pending.reason);
            self.notice("approval_waits", message);
        }
    }

    /// What became of a request, as a sentence; `None` for one nobody knows (any more).
    pub(super) fn settled_sentence(&self, request: &QuestionId) -> Option<String> {
        let settled = self.settled.iter().find(|s| &s.request == request)?;
        Some(format!("It was {} already {}, {}.", settled.status, stage::by(&settled.by), stage::ago(self.now.saturating_sub(settled.at))))
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
        if self.settled.len() >= SETTLED_MAX { self.settled.pop_front(); }
        self.settled.push_back(Settled { request: request.clone(), status, by: by.clone(), at: self.now });
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
}
