//! What happened, numbered. State is the fold of these and nothing else; every mirror sees the same ones.

use serde_json::Value;

use super::authority::By;
use super::comment::Comment;
use super::id::{CallId, ItemId, QuestionId, SpeechId, UtteranceId};
use super::mode::{AskPolicy, Mode, Posture};
use super::plan::{PlanStatus, PlanVersion, Step};
use super::todo::TodoItem;
use super::tool::{Effect, call_hash};

/// One numbered event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// 1 and up, without gaps.
    pub seq: u64,
    /// Milliseconds since the Unix epoch, as the driver's clock had it.
    pub at_ms: u64,
    /// What happened.
    pub kind: EventKind,
}

/// Who said a transcript line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A person.
    User,
    /// The agent or the gateway's own voice.
    Assistant,
}

/// What kind of question is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// May this tool run?
    Tool,
    /// Second step of approving a plan.
    Approve,
    /// Second step of leaving plan mode.
    Leave,
}

impl QuestionKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self { QuestionKind::Tool => "tool", QuestionKind::Approve => "approve", QuestionKind::Leave => "leave" }
    }
    /// The kind a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        [QuestionKind::Tool, QuestionKind::Approve, QuestionKind::Leave].into_iter().find(|k| k.word() == word)
    }
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionState {
    /// It exists and is shown; its voice has not been heard to the end.
    Asked,
    /// It was heard: a spoken answer counts from now on.
    Heard,
    /// The spoken window has closed; a screen can still answer.
    ScreenOnly,
    /// Somebody answered.
    Answered,
    /// Nobody did.
    Expired,
}

impl QuestionState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            QuestionState::Asked => "asked", QuestionState::Heard => "heard", QuestionState::ScreenOnly => "screen_only",
            QuestionState::Answered => "answered", QuestionState::Expired => "expired",
        }
    }
    /// The state a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        use QuestionState::*;
        [Asked, Heard, ScreenOnly, Answered, Expired].into_iter().find(|s| s.word() == word)
    }
    /// True while an answer can still come.
    pub fn is_open(self) -> bool { !matches!(self, QuestionState::Answered | QuestionState::Expired) }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Its id; for a tool also the approval's `request_id`.
    pub id: QuestionId,
    /// What about.
    pub kind: QuestionKind,
    /// As it is said and shown.
    pub text: String,
    /// The plan version, for `Approve`.
    pub version: Option<u32>,
    /// The call, for `Tool`.
    pub call: Option<CallId>,
    /// Only a screen may answer.
    pub screen_only: bool,
    /// Where it stands.
    pub state: QuestionState,
    /// `approved`, `denied`, `expired`, `withdrawn`, or empty while open.
    pub outcome: String,
    /// Who answered.
    pub by: Option<By>,
}

/// A tool's question can be answered on a screen this long, in milliseconds.
pub const REQUEST_LIFE_MS: u64 = 600_000;

/// A call that waits for a person. A yes is to this call with these arguments, once, and to no other.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    /// Equal to the question's id.
    pub request: QuestionId,
    /// The call.
    pub call: CallId,
    /// Wire name of the tool.
    pub tool: String,
    /// What would be run.
    pub arguments: Value,
    /// Its class.
    pub effect: Effect,
    /// What is asked.
    pub reason: String,
    /// Only a screen may answer.
    pub screen_only: bool,
    /// Unix milliseconds.
    pub created_ms: u64,
}

impl PendingApproval {
    /// Hash of tool and arguments, in hex: what a yes is bound to.
    pub fn hash(&self) -> String { call_hash(&self.tool, &self.arguments).iter().map(|b| format!("{b:02x}")).collect() }

    /// Unix milliseconds at which it expires if nobody answers.
    pub fn expires_ms(&self) -> u64 { self.created_ms.saturating_add(REQUEST_LIFE_MS) }
}

/// What the voice side is doing, for the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VoiceState {
    /// No microphone attached.
    #[default]
    Idle,
    /// Hearing, nothing said.
    Listening,
    /// Words are being worked on.
    Processing,
    /// The gateway speaks.
    Speaking,
    /// Hearing is broken; a notice says why.
    Error,
}

impl VoiceState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            VoiceState::Idle => "idle", VoiceState::Listening => "listening", VoiceState::Processing => "processing",
            VoiceState::Speaking => "speaking", VoiceState::Error => "error",
        }
    }
    /// The state a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        use VoiceState::*;
        [Idle, Listening, Processing, Speaking, Error].into_iter().find(|s| s.word() == word)
    }
}

/// A change of mode, or a renewed statement of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeEvent {
    /// In force now.
    pub posture: Posture,
    /// In force now.
    pub ask: AskPolicy,
    /// Number of the change.
    pub epoch: u32,
    /// Mutating calls that still run.
    pub draining: u32,
    /// Restored by a restart.
    pub restored: bool,
    /// Why it was entered, in the person's words.
    pub reason: String,
    /// Who.
    pub by: By,
    /// On an exit: whether a plan was approved with it.
    pub approved: Option<bool>,
}

/// The kinds of event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The conversation was opened (again).
    Started {
        /// `new` or `resumed`.
        how: &'static str,
    },
    /// Posture, ask policy or draining changed.
    Mode(ModeEvent),
    /// A looser mode was chosen while a response that began under this stricter one is under way: for that response's calls the
    /// stricter still holds. `None`: what was chosen holds for everything now.
    Still(Option<Mode>),
    /// A final line of talk.
    Transcript {
        /// Who.
        role: Role,
        /// The words; for the assistant after a barge-in only what was heard.
        text: String,
        /// Item name.
        item: ItemId,
        /// The utterance, when spoken.
        utterance: Option<UtteranceId>,
        /// False for words that answered a question or were a command: the agent never gets them.
        for_agent: bool,
        /// Where it came in.
        surface: super::authority::Surface,
    },
    /// The draft grew or was used up.
    Draft {
        /// The whole draft.
        steps: Vec<Step>,
    },
    /// A version was presented.
    Presented(PlanVersion),
    /// A version's status changed.
    PlanDecided {
        /// Which.
        version: u32,
        /// To what.
        status: PlanStatus,
        /// Who.
        by: By,
        /// Comments, when changes were requested; what was done, when it was completed.
        comments: String,
    },
    /// A comment on a plan was written, changed, sent, carried over or taken away (the whole comment as it is now).
    Comment(Comment),
    /// An approved version was handed to the agent again.
    Continued {
        /// Which.
        version: u32,
        /// Who.
        by: By,
    },
    /// A question was asked or changed its state (the whole question as it is now).
    Question(Question),
    /// A call waits for a person.
    ApprovalRequested(PendingApproval),
    /// It waits no more.
    ApprovalResolved {
        /// Which.
        request: QuestionId,
        /// The call.
        call: CallId,
        /// `approved`, `denied`, `expired`, `withdrawn`.
        status: &'static str,
        /// Who.
        by: By,
    },
    /// The agent wants this call (before the gate has spoken).
    ToolStart {
        /// The call.
        call: CallId,
        /// Wire name.
        tool: String,
        /// What was asked for.
        arguments: Value,
        /// Short name for people.
        display: String,
    },
    /// The call has ended, once and for all.
    ToolResult {
        /// The call.
        call: CallId,
        /// Wire name.
        tool: String,
        /// It did what it says.
        success: bool,
        /// Stable code or empty.
        error_code: String,
        /// For a person, or empty.
        error: String,
        /// What the agent got.
        output: Value,
        /// From wanting to ending.
        latency_ms: u64,
    },
    /// The todo list, whole.
    Todo(Vec<TodoItem>),
    /// Something was said aloud (or only shown, when no voice is attached), with what was heard of it.
    Speech {
        /// Which.
        speech: SpeechId,
        /// What was meant to be said.
        text: String,
        /// Milliseconds of it that were heard.
        heard_ms: u64,
        /// Milliseconds it would have taken.
        total_ms: u64,
    },
    /// The voice side changed its state.
    Voice(VoiceState),
    /// Something a person should know.
    Notice {
        /// Stable code.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The conversation has ended; nothing follows.
    Ended {
        /// Why.
        reason: String,
    },
}
