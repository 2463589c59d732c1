//! The state of a conversation: the fold of its events. [`Snapshot::apply`] is the one fold; engine, store and mirrors share it.

use serde_json::Value;

use super::authority::{By, Surface};
use super::comment::{COMMENTS_MAX, Comment, CommentState};
use super::conversation::{GatewayNote, ITEMS_MAX, Item};
use super::event::{Event, EventKind, PendingApproval, Question, Role, VoiceState};
use super::id::{CallId, ItemId};
use super::mode::{AskPolicy, Mode, Posture, Stamp};
use super::plan::{Decided, PlanStatus, PlanVersion, Step, VERSIONS_MAX};
use super::todo::TodoItem;

/// Transcript lines kept in a snapshot; older ones stay in the log.
pub const TRANSCRIPT_MAX: usize = 500;
/// Tool calls kept in a snapshot's trace.
pub const TRACE_MAX: usize = 200;

/// One line of talk.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Event that brought it.
    pub seq: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Who.
    pub role: Role,
    /// The words.
    pub text: String,
    /// Item name.
    pub item: ItemId,
    /// Where it came in.
    pub surface: Surface,
    /// False for commands and answers.
    pub for_agent: bool,
}

/// One tool call of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The call.
    pub call: CallId,
    /// Wire name.
    pub tool: String,
    /// For people.
    pub display: String,
    /// What was asked for.
    pub arguments: Value,
    /// How it ended; `None` while it has not.
    pub ended: Option<TraceEnd>,
}

/// How a traced call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEnd {
    /// It did what it says.
    pub success: bool,
    /// Stable code or empty.
    pub error_code: String,
    /// For a person, or empty.
    pub error: String,
}

/// Everything that is known of a conversation after event `seq`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Last event folded in; 0 for none.
    pub seq: u64,
    /// Unix milliseconds of the first and of the last event.
    pub started_ms: u64,
    /// Unix milliseconds of the last event.
    pub last_ms: u64,
    /// First words of the first user line, for lists.
    pub title: String,
    /// In force.
    pub stamp: Stamp,
    /// In force.
    pub ask: AskPolicy,
    /// The stricter mode that still holds for the response under way; what was chosen since is pending until it has ended.
    pub still: Option<Mode>,
    /// Mutating calls that still run although plan mode is on.
    pub draining: u32,
    /// When plan mode was entered, Unix milliseconds.
    pub entered_ms: Option<u64>,
    /// Why, and by whom.
    pub entered_reason: String,
    /// Who entered.
    pub entered_by: Option<By>,
    /// True after a restart brought plan mode back.
    pub restored: bool,
    /// Presented versions, oldest first.
    pub plans: Vec<PlanVersion>,
    /// How many were ever presented.
    pub plan_count: u32,
    /// Comments on plans, oldest first, without those that were taken away.
    pub comments: Vec<Comment>,
    /// How many comments were ever written.
    pub comment_count: u32,
    /// The draft so far.
    pub draft: Vec<Step>,
    /// The open question, if any.
    pub question: Option<Question>,
    /// Calls that wait for a person (the one asked about, and those queued behind it).
    pub approvals: Vec<PendingApproval>,
    /// The todo list.
    pub todo: Vec<TodoItem>,
    /// Newest last.
    pub transcript: Vec<Line>,
    /// Newest last.
    pub trace: Vec<Trace>,
    /// What the voice side does.
    pub voice: VoiceState,
    /// The agent's history.
    pub items: Vec<Item>,
    /// True once `Ended` came.
    pub ended: bool,
}

impl Snapshot {
    /// Folds one event in. Events must come in order; one that was already folded in is skipped.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        self.last_ms = event.at_ms;
        if self.started_ms == 0 {
            self.started_ms = event.at_ms;
        }
        match &event.kind {
            EventKind::Started { .. } => self.ended = false,
            EventKind::Mode(mode) => self.apply_mode(event.at_ms, mode),
            EventKind::Still(mode) => self.still = *mode,
            EventKind::Transcript { role, text, item, for_agent, surface, .. } => self.apply_line(event, *role, text, item, *for_agent, *surface),
            EventKind::Draft { steps } => self.draft = steps.clone(),
            EventKind::Presented(version) => {
                self.plan_count = self.plan_count.max(version.version);
                self.plans.push(PlanVersion { presented_ms: event.at_ms, ..version.clone() });
                drop_oldest(&mut self.plans, VERSIONS_MAX);
            }
            EventKind::PlanDecided { version, status, comments, by } => self.apply_decision(*version, *status, comments, Decided { by: by.clone(), at_ms: event.at_ms }),
            EventKind::Comment(comment) => self.apply_comment(comment),
            EventKind::Continued { version, .. } => {
                if let Some(plan) = self.version(*version).cloned() {
                    self.push_item(Item::Gateway(GatewayNote::Continue { version: *version, title: plan.title, steps: plan.steps }));
                }
            }
            EventKind::Question(question) => self.question = question.state.is_open().then(|| question.clone()),
            EventKind::ApprovalRequested(pending) => self.approvals.push(pending.clone()),
            EventKind::ApprovalResolved { request, .. } => self.approvals.retain(|a| &a.request != request),
            EventKind::ToolStart { call, tool, arguments, display } => {
                self.trace.push(Trace { call: call.clone(), tool: tool.clone(), display: display.clone(), arguments: arguments.clone(), ended: None });
                drop_oldest(&mut self.trace, TRACE_MAX);
                self.push_item(Item::Call { id: call.clone(), tool: tool.clone(), arguments: arguments.clone() });
            }
            EventKind::ToolResult { call, tool, success, error_code, error, output, .. } => {
                if let Some(trace) = self.trace.iter_mut().rev().find(|t| &t.call == call) {
                    trace.ended = Some(TraceEnd { success: *success, error_code: error_code.clone(), error: error.clone() });
                }
                self.push_item(Item::Result { id: call.clone(), tool: tool.clone(), output: output.clone() });
            }
            EventKind::Todo(items) => self.todo = items.clone(),
            EventKind::Voice(state) => self.voice = *state,
            EventKind::Ended { .. } => self.ended = true,
            EventKind::Speech { .. } | EventKind::Notice { .. } => {}
        }
    }

    /// The mode in force, and the chosen one that waits for the response under way, if there is one.
    pub fn modes(&self) -> (Mode, Option<Mode>) {
        let chosen = Mode::of(self.stamp.posture, self.ask);
        self.still.map_or((chosen, None), |still| (still, Some(chosen)))
    }

    /// The version that waits for a decision.
    pub fn waiting(&self) -> Option<&PlanVersion> { self.plans.iter().rev().find(|p| p.status == PlanStatus::Waiting) }

    /// The newest version.
    pub fn newest(&self) -> Option<&PlanVersion> { self.plans.last() }

    /// The version that is being carried out: approved, neither completed nor set aside.
    pub fn approved(&self) -> Option<&PlanVersion> { self.plans.iter().rev().find(|p| p.status == PlanStatus::Approved) }

    /// Something goes on: a call has no end yet, or the voice side works or speaks. No measure of progress.
    pub fn is_active(&self) -> bool { self.trace.iter().any(|t| t.ended.is_none()) || matches!(self.voice, VoiceState::Processing | VoiceState::Speaking) }

    /// Comments on this version that were not sent yet.
    pub fn open_comments(&self, version: u32) -> Vec<Comment> {
        self.comments.iter().filter(|c| c.version == version && c.state == CommentState::Open).cloned().collect()
    }

    /// A version by number.
    pub fn version(&self, version: u32) -> Option<&PlanVersion> { self.plans.iter().find(|p| p.version == version) }

    /// True while plan mode is on.
    pub fn in_plan(&self) -> bool { self.stamp.posture == Posture::Plan }

    fn apply_mode(&mut self, at_ms: u64, mode: &super::event::ModeEvent) {
        let entered = mode.posture == Posture::Plan && !self.in_plan();
        self.stamp = Stamp { epoch: mode.epoch, posture: mode.posture };
        self.ask = mode.ask;
        self.draining = mode.draining;
        self.restored = mode.restored;
        if entered {
            self.entered_ms = Some(at_ms);
            self.entered_reason = mode.reason.clone();
            self.entered_by = Some(mode.by.clone());
        }
        if mode.posture == Posture::Default {
            self.entered_ms = None;
            self.entered_reason.clear();
            self.entered_by = None;
        }
    }

    fn apply_line(&mut self, event: &Event, role: Role, text: &str, item: &ItemId, for_agent: bool, surface: Surface) {
        if self.title.is_empty() && role == Role::User && for_agent {
            self.title = super::plan::clip(text, 80);
        }
        // A line that comes again is the same line with less of it heard.
        if let Some(line) = self.transcript.iter_mut().rev().find(|l| &l.item == item && l.role == role) {
            line.text = text.to_string();
            if text.is_empty() {
                self.items.retain(|i| !matches!(i, Item::Assistant { id, .. } | Item::User { id, .. } if id == item));
                return;
            }
            let mine = |i: &&mut Item| matches!(i, Item::Assistant { id, .. } | Item::User { id, .. } if id == item);
            if let Some(Item::Assistant { text: old, .. } | Item::User { text: old, .. }) = self.items.iter_mut().rev().find(mine) {
                *old = text.to_string();
            }
            return;
        }
        self.transcript.push(Line { seq: event.seq, at_ms: event.at_ms, role, text: text.to_string(), item: item.clone(), surface, for_agent });
        drop_oldest(&mut self.transcript, TRANSCRIPT_MAX);
        if for_agent {
            let (id, text) = (item.clone(), text.to_string());
            self.push_item(match role { Role::User => Item::User { id, text }, Role::Assistant => Item::Assistant { id, text, speech: None } });
        }
    }

    fn apply_comment(&mut self, comment: &Comment) {
        self.comment_count = self.comment_count.max(comment.id);
        let at = self.comments.iter().position(|c| c.id == comment.id);
        match (at, comment.state) {
            (Some(at), CommentState::Removed) => drop(self.comments.remove(at)),
            (Some(at), _) => self.comments[at] = comment.clone(),
            (None, CommentState::Removed) => {}
            (None, _) => self.comments.push(comment.clone()),
        }
        if self.comments.len() > COMMENTS_MAX {
            let oldest = self.comments.iter().position(|c| c.state != CommentState::Open).unwrap_or(0);
            self.comments.remove(oldest);
        }
    }

    fn apply_decision(&mut self, version: u32, status: PlanStatus, comments: &str, decided: Decided) {
        let Some(plan) = self.plans.iter_mut().find(|p| p.version == version) else { return };
        plan.status = status;
        plan.decided = Some(decided);
        if status == PlanStatus::Completed {
            plan.done = comments.to_string();
        }
        let (title, steps) = (plan.title.clone(), plan.steps.clone());
        match status {
            PlanStatus::Approved => self.push_item(Item::Gateway(GatewayNote::Approved { version, title, steps })),
            // An approval that was taken back was none: the agent is not told to carry it out.
            PlanStatus::Waiting => self.items.retain(|i| !matches!(i, Item::Gateway(GatewayNote::Approved { version: v, .. }) if *v == version)),
            PlanStatus::ChangesRequested => self.push_item(Item::Gateway(GatewayNote::ChangesRequested { version, comments: comments.to_string() })),
            _ => {}
        }
    }

    fn push_item(&mut self, item: Item) {
        self.items.push(item);
        drop_oldest(&mut self.items, ITEMS_MAX);
    }
}

fn drop_oldest<T>(list: &mut Vec<T>, most: usize) {
    if list.len() > most {
        list.drain(..list.len() - most);
    }
}
