//! What has been said and done, as an agent is given it.

use serde_json::Value;

use super::id::{CallId, ItemId, SpeechId, TurnId};
use super::plan::{PlanVersion, Step};
use super::tool::ToolSpec;

/// Items kept for the agent; the oldest go first. The log keeps all.
pub const ITEMS_MAX: usize = 400;

/// One entry of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A person said or typed this.
    User {
        /// Its name on `/v1/realtime`.
        id: ItemId,
        /// The words.
        text: String,
    },
    /// The agent answered this; after a barge-in only what was heard.
    Assistant {
        /// Its name on `/v1/realtime`.
        id: ItemId,
        /// The words.
        text: String,
        /// The speech that voiced it, when it was voiced.
        speech: Option<SpeechId>,
    },
    /// The agent wanted a call.
    Call {
        /// Its id.
        id: CallId,
        /// Wire name.
        tool: String,
        /// Arguments.
        arguments: Value,
    },
    /// How the call ended; every call gets exactly one.
    Result {
        /// The call.
        id: CallId,
        /// Wire name.
        tool: String,
        /// An object.
        output: Value,
    },
    /// The gateway speaks to the agent.
    Gateway(GatewayNote),
}

/// What the gateway itself tells the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum GatewayNote {
    /// A person approved this version; carry it out now.
    Approved {
        /// Its number.
        version: u32,
        /// Its title.
        title: String,
        /// Its steps, with the calls that were kept.
        steps: Vec<Step>,
    },
    /// A person hands an approved version over again: see what is done already, then go on.
    Continue {
        /// Its number.
        version: u32,
        /// Its title.
        title: String,
        /// Its steps, with the calls that were kept.
        steps: Vec<Step>,
    },
    /// A person wants the plan changed.
    ChangesRequested {
        /// Its number.
        version: u32,
        /// Their words; empty means "keep planning".
        comments: String,
    },
    /// A person asked to hear the plan and there is only a draft: present it.
    PresentDraft,
    /// The posture changed since the agent last looked.
    Mode {
        /// True when plan mode is on now.
        plan: bool,
    },
    /// Anything else, as a sentence.
    Text(String),
}

/// What an agent gets for one step (one model response): everything it may know.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRequest {
    /// The turn it belongs to.
    pub turn: TurnId,
    /// 0 for the first response of the turn, counting up after each round of tool results.
    pub step: u32,
    /// The history, oldest first. Ends with what is to be answered.
    pub items: Vec<Item>,
    /// The tools it is told of (in plan mode only those that plan mode lets run, plus `plan__submit`).
    pub tools: Vec<ToolSpec>,
    /// True while plan mode is on: the agent is told so.
    pub plan_mode: bool,
    /// Steps of the draft plan so far (titles; the kept calls are shown, never taken back from an agent).
    pub draft: Vec<Step>,
    /// The version that was approved and is neither completed nor set aside.
    pub approved: Option<PlanVersion>,
    /// Operator's and client's instructions, may be empty.
    pub instructions: String,
}

/// What an agent does in one step, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentOutput {
    /// Some more of the answer's text.
    Text(String),
    /// A call it wants made. `arguments` is what it wrote, not yet checked.
    Call {
        /// Its id, unique in the conversation.
        id: CallId,
        /// Wire name as the agent wrote it.
        tool: String,
        /// JSON text as the agent wrote it.
        arguments: String,
    },
}
