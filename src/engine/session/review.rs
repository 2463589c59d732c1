//! The review of a plan and what comes after it: comments, changes, setting aside, coming back, carrying on, being done.
//!
//! A decision that was made already changes nothing and wakes nobody: it is answered with who made it and when.

use super::super::authority::{By, Surface};
use super::super::comment::{self, COMMENT_CHARS, Comment, CommentState, OPEN_MAX, QUOTE_CHARS};
use super::super::conversation::{GatewayNote, Item};
use super::super::diff;
use super::super::event::EventKind;
use super::super::grammar::number_word;
use super::super::input::{Action, Ticket};
use super::super::mode::Telling;
use super::super::plan::{DONE_CHARS, PlanStatus, PlanVersion};
use super::super::stage;
use super::super::tool::ToolOutcome;
use super::Engine;
use crate::media::earcon::Earcon;

/// Changed steps named one by one at most; of more only the number is said.
const SAID_STEPS: usize = 5;

/// A comment as it came in: see [`super::super::authority::Decide::Comment`].
pub(super) struct Written {
    pub id: Option<u32>,
    pub version: Option<u32>,
    pub step: Option<u32>,
    pub quote: String,
    pub text: String,
}

/// A request for changes that the agent has not taken in yet.
#[derive(Debug)]
pub(super) struct Delivery {
    version: u32,
    comments: Vec<Comment>,
}

impl Engine {
    /// Sends the open comments, and what is said beside them, as the agent's next turn.
    pub(super) fn request_changes(&mut self, version: Option<u32>, words: &str, by: &By, ticket: Option<Ticket>) {
        let Some(version) = self.reviewed(version, ticket) else { return };
        let open = self.snap.open_comments(version);
        // By voice "keep planning" is a whole sentence; a screen says what should be different.
        if open.is_empty() && words.trim().is_empty() && by.surface != Surface::Voice {
            return self.reply(ticket, false, "no_comments", "Write at least one comment, or say what should change: a plan is not sent back without a word.");
        }
        self.close_plan_question(by);
        let lines: Vec<String> = open.iter().map(Comment::told).chain((!words.trim().is_empty()).then(|| words.trim().to_string())).collect();
        for comment in &open {
            self.event(EventKind::Comment(Comment { state: CommentState::Sent, ..comment.clone() }));
        }
        self.plan_decided(version, PlanStatus::ChangesRequested, by, &lines.join("\n"));
        self.delivering = Some(Delivery { version, comments: open });
        self.reply(ticket, true, "ok", "Sent back for changes.");
        self.say_plain(if lines.is_empty() { "All right, the planning goes on." } else { "All right, I pass that on." });
        self.queue_turn(None);
    }

    /// The agent has answered a response (or has failed to): a request for changes that did not reach it comes back whole.
    pub(super) fn changes_delivered(&mut self, reached: bool) {
        let Some(Delivery { version, comments }) = self.delivering.take() else { return };
        let still = self.snap.version(version).is_some_and(|p| p.status == PlanStatus::ChangesRequested);
        if reached || !still {
            return;
        }
        for comment in comments {
            self.event(EventKind::Comment(Comment { state: CommentState::Open, ..comment }));
        }
        self.plan_decided(version, PlanStatus::Waiting, &By::gateway(), "");
        self.notice("changes_not_delivered", format!("The agent could not be reached, so the changes to plan {version} were not sent. The comments are open again."));
    }

    pub(super) fn dismiss(&mut self, version: Option<u32>, by: &By, ticket: Option<Ticket>) {
        let Some(version) = self.reviewed(version, ticket) else { return };
        self.close_plan_question(by);
        self.plan_decided(version, PlanStatus::Dismissed, by, "");
        self.reply(ticket, true, "ok", "Set aside.");
        self.say_plain(format!("Plan {} is set aside. Plan mode stays on.", number_word(version)));
    }

    pub(super) fn back_to_review(&mut self, version: Option<u32>, by: &By, ticket: Option<Ticket>) {
        let newest = self.snap.newest().map(|p| (p.version, p.status));
        match newest {
            Some((n, PlanStatus::Dismissed | PlanStatus::SetAside | PlanStatus::ChangesRequested | PlanStatus::Closed)) if version.is_none_or(|v| v == n) => {
                self.enter_plan("a plan went back to review", by);
                // Entering may have brought it back already.
                if self.snap.waiting().map(|p| p.version) != Some(n) {
                    self.plan_decided(n, PlanStatus::Waiting, by, "");
                }
                self.reply(ticket, true, "ok", "Back in review.");
            }
            Some((n, PlanStatus::Waiting)) if version.is_none_or(|v| v == n) => self.reply(ticket, true, "already", format!("Plan {n} waits for a decision already.")),
            _ => self.reply(ticket, false, "not_waiting", "Only the newest plan can go back to review, and only when it was set aside."),
        }
    }

    /// The version a decision is about, if it waits; otherwise the decision is answered here.
    fn reviewed(&mut self, version: Option<u32>, ticket: Option<Ticket>) -> Option<u32> {
        let waiting = self.snap.waiting().map(|p| p.version);
        match (version, waiting) {
            (None, Some(n)) => return Some(n),
            (Some(v), Some(n)) if v == n => return Some(n),
            (Some(v), _) if self.snap.version(v).is_some() => self.say_already(v, ticket),
            (Some(v), _) => self.reply(ticket, false, "no_such_version", self.no_plan(v)),
            (None, None) => self.reply(ticket, false, "no_such_version", "No plan waits for a decision."),
        }
        None
    }

    pub(super) fn no_plan(&self, version: u32) -> String {
        match self.snap.plan_count {
            0 => format!("There is no plan {version}; none has been presented yet."),
            newest => format!("There is no plan {version}; the newest is plan {newest}."),
        }
    }

    /// "Plan 2 was approved by voice, 12 seconds ago."
    pub(super) fn decided_sentence(&self, version: u32) -> String {
        let Some(plan) = self.snap.version(version) else { return self.no_plan(version) };
        let what = match plan.status {
            PlanStatus::Waiting => return format!("Plan {version} waits for a decision."),
            PlanStatus::Approved => "was approved already",
            PlanStatus::ChangesRequested => "was sent back for changes already",
            PlanStatus::Dismissed | PlanStatus::SetAside => "was set aside already",
            PlanStatus::Superseded => "was superseded by a newer one",
            PlanStatus::Completed => "was approved and completed already",
            PlanStatus::Closed => "was approved and marked as done already",
        };
        let now = self.epoch_ms + self.now;
        let who = plan.decided.as_ref().map_or(String::new(), |d| format!(" {}, {}", stage::by(&d.by), stage::ago(now.saturating_sub(d.at_ms))));
        format!("Plan {version} {what}{who}.")
    }

    /// It was decided already, here or elsewhere: said, and nothing changes.
    pub(super) fn say_already(&mut self, version: u32, ticket: Option<Ticket>) {
        let message = self.decided_sentence(version);
        self.reply(ticket, true, "already", message);
    }

    /// Writes, changes or takes away a comment.
    pub(super) fn comment(&mut self, written: Written, by: &By, ticket: Option<Ticket>) {
        match self.commented(written, by) {
            Ok(comment) => {
                let message = if comment.state == CommentState::Removed { format!("Comment {} is taken away.", comment.id) } else { format!("Comment {} is kept; it is sent when you request changes.", comment.id) };
                self.event(EventKind::Comment(comment));
                self.reply(ticket, true, "ok", message);
            }
            Err((code, message)) => self.reply(ticket, false, code, message),
        }
    }

    fn commented(&self, written: Written, by: &By) -> Result<Comment, (&'static str, String)> {
        let text = written.text.trim().to_string();
        let long = |field: &str, text: &str, most: usize| (text.chars().count() > most).then(|| ("too_long", format!("`{field}` has at most {most} characters, this one has {}.", text.chars().count())));
        if let Some(bad) = long("text", &text, COMMENT_CHARS).or_else(|| long("quote", &written.quote, QUOTE_CHARS)) {
            return Err(bad);
        }
        if let Some(id) = written.id {
            let Some(old) = self.snap.comments.iter().find(|c| c.id == id) else {
                return Err(("no_such_comment", format!("There is no comment {id}; it may have been taken away.")));
            };
            if old.state == CommentState::Sent {
                return Err(("comment_sent", format!("Comment {id} was sent to the agent; write another.")));
            }
            let state = if text.is_empty() { CommentState::Removed } else { old.state };
            return Ok(Comment { text: if text.is_empty() { old.text.clone() } else { text }, state, by: by.clone(), ..old.clone() });
        }
        if text.is_empty() {
            return Err(("missing_required_field", "`text` is missing: a comment has words.".into()));
        }
        let version = written.version.or_else(|| self.snap.waiting().map(|p| p.version));
        let Some(plan) = version.and_then(|v| self.snap.version(v)) else {
            return Err(("no_such_version", "The plan this comment is about is not there; read the newest one and comment on that.".into()));
        };
        if plan.status != PlanStatus::Waiting {
            return Err(("not_waiting", format!("{} A comment goes to the version that waits.", self.decided_sentence(plan.version))));
        }
        if self.snap.open_comments(plan.version).len() >= OPEN_MAX {
            return Err(("too_many_comments", format!("{OPEN_MAX} comments are open already; request the changes, or take some away.")));
        }
        let quote = quoted(plan, written.step, &written.quote)?;
        Ok(Comment { id: self.snap.comment_count + 1, version: plan.version, step: written.step, quote, text, state: CommentState::Open, by: by.clone() })
    }

    /// A new version is there: open comments go on with it where they still fit.
    pub(super) fn carry_comments(&mut self, next: &PlanVersion) {
        let open: Vec<Comment> = self.snap.comments.iter().filter(|c| c.state == CommentState::Open && c.version < next.version).cloned().collect();
        for comment in open {
            let carried = comment.carried_to(next);
            self.event(EventKind::Comment(carried));
        }
    }

    /// Says which steps of a new version are other than before.
    pub(super) fn say_changed(&mut self, before: &PlanVersion, now: &PlanVersion) {
        let difference = diff::between(before, now);
        let (touched, gone, n) = (difference.touched(), difference.gone(), number_word(before.version));
        let numbers: Vec<String> = touched.iter().map(|s| number_word(*s)).collect();
        let changed = match numbers.as_slice() {
            [] => String::new(),
            [one] => format!("step {one} changed"),
            [rest @ .., last] if numbers.len() <= SAID_STEPS => format!("steps {} and {last} changed", rest.join(", ")),
            many => format!("{} steps changed", number_word(many.len() as u32)),
        };
        let gone = match gone { 0 => String::new(), 1 => "one step is gone".into(), many => format!("{} steps are gone", number_word(many as u32)) };
        let text = match (changed.is_empty(), gone.is_empty()) {
            (true, true) => format!("Compared with plan {n}, the steps are the same."),
            (false, true) => format!("Compared with plan {n}, {changed}."),
            (true, false) => format!("Compared with plan {n}, {gone}."),
            (false, false) => format!("Compared with plan {n}, {changed} and {gone}."),
        };
        self.say_plain(text);
    }

    /// The approved version a person means.
    fn carried_out(&mut self, version: Option<u32>, ticket: Option<Ticket>) -> Option<PlanVersion> {
        let approved = self.snap.approved().cloned();
        match (version, approved) {
            (None, None) => self.reply(ticket, false, "no_approved_plan", "No plan is being carried out."),
            (None, Some(plan)) => return Some(plan),
            (Some(v), Some(plan)) if plan.version == v => return Some(plan),
            (Some(v), _) if self.snap.version(v).is_some_and(|p| matches!(p.status, PlanStatus::Completed | PlanStatus::Closed)) => self.say_already(v, ticket),
            (Some(v), _) => self.reply(ticket, false, "not_approved", format!("Plan {v} is not being carried out. {}", self.decided_sentence(v))),
        }
        None
    }

    /// Hands the approved plan to the agent again. Only when nothing is under way that could still be carrying it out.
    pub(super) fn go_on_with(&mut self, version: Option<u32>, by: &By, ticket: Option<Ticket>) {
        let Some(plan) = self.carried_out(version, ticket) else { return };
        if self.snap.in_plan() {
            return self.reply(ticket, false, "in_plan_mode", "Plan mode is on, so nothing is carried out now; leave it first.");
        }
        if self.is_busy() || !self.snap.approvals.is_empty() || self.hears_somebody() {
            return self.reply(ticket, false, "busy", "Something is still running, waiting or being said; go on when it is quiet.");
        }
        self.event(EventKind::Continued { version: plan.version, by: by.clone() });
        self.reply(ticket, true, "ok", format!("Plan {} goes on.", plan.version));
        self.queue_turn(None);
    }

    /// The person says it is over. A turn that runs goes on.
    pub(super) fn mark_done(&mut self, version: Option<u32>, by: &By, ticket: Option<Ticket>) {
        let Some(plan) = self.carried_out(version, ticket) else { return };
        self.plan_decided(plan.version, PlanStatus::Closed, by, "");
        self.reply(ticket, true, "ok", format!("Plan {} is marked as done.", plan.version));
    }

    /// The agent says that the approved plan has been carried out.
    pub(super) fn complete_plan(&mut self, arguments: &serde_json::Value) -> ToolOutcome {
        let summary = arguments["summary"].as_str().unwrap_or("").trim();
        let with_field = |code: &str, message: String| {
            let mut outcome = ToolOutcome::failed(code, message);
            outcome.output["field"] = "summary".into();
            outcome
        };
        if summary.is_empty() {
            return with_field("missing_required_field", "summary is missing: say in a few sentences what was done".into());
        }
        let chars = summary.chars().count();
        if chars > DONE_CHARS {
            return with_field("too_long", format!("summary has at most {DONE_CHARS} characters, this one has {chars}"));
        }
        let Some(version) = self.snap.approved().map(|p| p.version) else {
            return ToolOutcome::failed("no_approved_plan", "No plan is being carried out; nothing was recorded.");
        };
        self.plan_decided(version, PlanStatus::Completed, &By::agent(), summary);
        match self.config.completion {
            Telling::Speech => self.say_plain(format!("The agent says that plan {} is carried out.", number_word(version))),
            Telling::Earcon => self.act(Action::Earcon(Earcon::Leave)),
            Telling::Silent => {}
        }
        ToolOutcome::ok(serde_json::json!({"success": true, "version": version, "status": PlanStatus::Completed.word(), "note": "Recorded as your word; nobody has checked it."}))
    }

    /// The newest note in the agent's history is a request for changes: the response that begins now delivers it.
    pub(super) fn delivers_changes(&self) -> bool {
        self.delivering.as_ref().is_some_and(|d| self.snap.items.iter().any(|i| matches!(i, Item::Gateway(GatewayNote::ChangesRequested { version, .. }) if *version == d.version)))
    }
}

/// The words of the plan a comment is about: the step's title, or the quote if the plan holds it.
fn quoted(plan: &PlanVersion, step: Option<u32>, quote: &str) -> Result<String, (&'static str, String)> {
    match step {
        Some(step) => match plan.steps.get((step as usize).wrapping_sub(1)) {
            Some(found) => Ok(found.title.clone()),
            None => Err(("no_such_step", format!("Plan {} has {} steps; there is no step {step}.", plan.version, plan.steps.len()))),
        },
        None if quote.trim().is_empty() || comment::holds_quote(plan, quote) => Ok(quote.trim().to_string()),
        None => Err(("quote_not_found", format!("Plan {} does not hold these words; quote it as it stands, or name a step.", plan.version))),
    }
}
