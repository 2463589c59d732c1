//! Everything that goes into the engine and everything that comes out of it.

use super::authority::{OperatorDoor, UserAction};
use super::conversation::StepRequest;
use super::event::Event;
use super::gate::Permit;
use super::heard::Heard;
use super::id::{CallId, ItemId, Ms, SpeechId, TurnId, UtteranceId};
use super::mode::{Autonomy, Posture};
use super::tool::{ToolCall, ToolOutcome};
use super::turn::Frame;
use crate::media::earcon::Earcon;

/// Names one decision that waits for its answer. The driver makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// What a person hears back about a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// False: it was not carried out.
    pub ok: bool,
    /// Stable code.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
}

/// A leg as the engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegFacts {
    /// It has a microphone.
    pub hears: bool,
    /// It has a voice.
    pub speaks: bool,
    /// Its playback can hold its breath and go on where it was (`Action::Duck`). A socket's client has the sound already.
    pub holds: bool,
    /// A provider hears and answers on the far side of it (a proxied session): the agent's part is the provider's.
    pub remote: bool,
}

/// What the provider of a proxied session does, as far as it concerns a decision. None of it can loosen anything.
#[derive(Clone, Debug, PartialEq)]
pub enum Remote {
    /// A response of its begins: calls in it are made under what is in force now.
    Began,
    /// So many milliseconds more of its sound went out to the client.
    Sounds {
        /// Milliseconds.
        ms: u64,
    },
    /// Words of the response, as they come.
    Words(String),
    /// What of its sound the client has not played is thrown away.
    Silenced,
    /// A whole line: a person's as the provider wrote it down, or the provider's own. Shown, never judged.
    Line {
        /// Whose.
        role: super::event::Role,
        /// Name of the item.
        item: ItemId,
        /// The words.
        text: String,
    },
    /// It wants a call made.
    Call {
        /// Its id.
        id: CallId,
        /// Wire name, aliases resolved.
        tool: String,
        /// Arguments, or the failure that answers the call.
        arguments: Result<serde_json::Value, ToolOutcome>,
    },
    /// The response has ended.
    Done(TurnEnd),
    /// Its connection is gone for longer than a breath.
    Away,
    /// The tools that the client runs itself, whole list.
    Tools(Vec<super::tool::ToolSpec>),
}

/// How a leg's turns are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// False: committed by hand.
    pub automatic: bool,
    /// Overrides the gateway's end-of-turn silence.
    pub silence_ms: Option<u32>,
    /// Overrides the gateway's voice threshold.
    pub threshold: Option<f32>,
    /// A closed utterance is answered by itself.
    pub create_response: bool,
    /// Speech stops the voice.
    pub interrupt: bool,
}

/// What goes in.
#[derive(Debug)]
pub enum Input {
    /// Time has passed; nothing else.
    Tick,
    /// 20 ms of microphone.
    Frame(Frame),
    /// A judge of turns has listened to a look.
    TurnJudged {
        /// To which utterance.
        utterance: UtteranceId,
        /// The look: microphone time of its end.
        to_ms: u64,
        /// Probability that the turn is complete, 0..=1.
        complete: f32,
    },
    /// Somebody else's turn taking (a provider's) says that the voice was interrupted. The ear here decides that: it is counted.
    Interrupted,
    /// A recognition has ended.
    Heard {
        /// Of which utterance.
        utterance: UtteranceId,
        /// The look it answers: microphone time up to which it was asked for.
        to_ms: u64,
        /// What was heard, or why not (a sentence).
        result: Result<Heard, String>,
    },
    /// A leg has attached (taking the place of an earlier one).
    LegAttached(LegFacts),
    /// The leg has gone.
    LegGone,
    /// The provider behind the leg did something.
    Remote(Remote),
    /// Its turn taking.
    LegTurns(Turns),
    /// Its voice is on or off.
    LegSpeaks(bool),
    /// The client's instructions.
    Instructions(String),
    /// The client commits what was heard since the last commit.
    Commit {
        /// Name of the new item.
        item: ItemId,
    },
    /// The client forgets what was heard since the last commit.
    Clear,
    /// The client typed a line.
    ClientText {
        /// Name of the item.
        item: ItemId,
        /// The words.
        text: String,
    },
    /// The client wants an answer.
    CreateResponse,
    /// The client wants none.
    CancelResponse,
    /// The client says how much of an item it played.
    Truncate {
        /// The item.
        item: ItemId,
        /// Milliseconds.
        heard_ms: u64,
    },
    /// The client takes an item out of the conversation: the agent is not shown it again.
    Delete {
        /// The item.
        item: ItemId,
    },
    /// A door has a sentence for everyone who watches.
    Notice {
        /// Stable code.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The recognisers do not keep up with everybody who speaks. Sent once until it has been well for a while.
    Overloaded,
    /// Names of what the tools work on now (titles of notes, names of files), at most [`super::readback::HINTS_MAX`].
    Titles(Vec<String>),
    /// More of the agent's text.
    AgentText {
        /// Of which turn.
        turn: TurnId,
        /// The text.
        text: String,
    },
    /// A call the agent wants. The catalogue has read it: a known name, checked arguments with defaults; or the outcome that answers it.
    AgentCall {
        /// Of which turn.
        turn: TurnId,
        /// Its id.
        id: CallId,
        /// Wire name, aliases resolved.
        tool: String,
        /// Arguments, or the failure that answers the call.
        arguments: Result<serde_json::Value, ToolOutcome>,
    },
    /// The agent's response has ended.
    AgentDone {
        /// Of which turn.
        turn: TurnId,
        /// `None`, or why it failed (a sentence).
        failed: Option<String>,
    },
    /// A call has ended.
    ToolDone {
        /// Which.
        call: CallId,
        /// How.
        outcome: ToolOutcome,
    },
    /// A segment has a sound (or has none, with the reason).
    Synthesised {
        /// Of which speech.
        speech: SpeechId,
        /// Which segment, from 0.
        segment: usize,
        /// Its length in milliseconds, or why there is none.
        result: Result<u64, String>,
    },
    /// A speech was played to its end.
    Drained {
        /// Which.
        speech: SpeechId,
    },
    /// A speech holds its breath, as asked.
    Ducked {
        /// Which.
        speech: SpeechId,
        /// Milliseconds of it that were heard before.
        heard_ms: u64,
    },
    /// A speech was cut, as asked.
    WasCut {
        /// Which.
        speech: SpeechId,
        /// Milliseconds of it that were heard.
        heard_ms: u64,
    },
    /// A person decided.
    Decide(UserAction, Ticket),
    /// A person typed a line on a chat door (`/plan` commands are `Decide`).
    Typed {
        /// The door.
        door: OperatorDoor,
        /// The words.
        text: String,
        /// For the answer.
        ticket: Ticket,
    },
    /// A person asked for the state of plan mode in words.
    Report(Ticket),
    /// A loosening is in the log now; the gate has been turned.
    Loosened,
    /// A loosening could not be logged.
    LogFailed,
    /// A client sees the state now (after a restart nothing runs before).
    Announced,
    /// The global level changed.
    Autonomy(Autonomy),
    /// The conversation ends.
    End {
        /// Why.
        reason: String,
    },
}

/// Why a speech is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutWhy {
    /// Somebody spoke.
    Interrupted,
    /// Somebody asked for it.
    Cancelled,
}

/// For the attached leg, beside its sound.
#[derive(Clone, Debug, PartialEq)]
pub enum LegNote {
    /// Speech began.
    SpeechStarted(UtteranceId, u64, ItemId),
    /// Speech ended.
    SpeechStopped(UtteranceId, u64, ItemId),
    /// It is a user item now.
    Committed(ItemId),
    /// Its words.
    UserTranscript(ItemId, Option<String>),
    /// The agent works.
    TurnBegan(TurnId),
    /// The agent has ended; true: cancelled.
    TurnEnded(TurnId, TurnEnd),
    /// In a proxied session: an utterance was judged. True: its words were for the gateway, and the provider is to answer nothing.
    Judged(bool),
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// To its end.
    Completed,
    /// Somebody spoke.
    Interrupted,
    /// Somebody asked for it.
    Cancelled,
    /// The agent failed.
    Failed,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Recognise this part of the microphone's sound; answer with `Input::Heard`.
    Recognise {
        /// For which utterance.
        utterance: UtteranceId,
        /// Microphone time.
        from_ms: u64,
        /// Microphone time.
        to_ms: u64,
    },
    /// The recognition that was asked for is of no more use: nobody waits for `Input::Heard`.
    Forget {
        /// Of which utterance.
        utterance: UtteranceId,
        /// Microphone time of its end.
        to_ms: u64,
    },
    /// Ask the judge of turns, if there is one; it may answer with `Input::TurnJudged`.
    JudgeTurn {
        /// For which utterance.
        utterance: UtteranceId,
        /// Microphone time.
        from_ms: u64,
        /// Microphone time; also names the look.
        to_ms: u64,
    },
    /// Ask the agent for one response.
    Step(Box<StepRequest>),
    /// Drop the agent's response.
    CancelStep(TurnId),
    /// Run a call; answer with `Input::ToolDone`.
    Run(Permit, ToolCall),
    /// The mode event before this is in the log: turn the gate to this posture, then `Input::Loosened`. If it is not, `Input::LogFailed`.
    Loosen(Posture),
    /// Something is to be said; its segments follow.
    BeginSpeech {
        /// Which.
        speech: SpeechId,
        /// Name of the item.
        item: ItemId,
        /// The turn it answers.
        turn: Option<TurnId>,
        /// A tone before it.
        earcon: Option<Earcon>,
    },
    /// Say this segment; answer with `Input::Synthesised`.
    Say {
        /// Of which speech.
        speech: SpeechId,
        /// From 0.
        segment: usize,
        /// The words.
        text: String,
    },
    /// No more segments come; `Input::Drained` when it was heard.
    EndSpeech(SpeechId),
    /// It holds its breath: silent within 30 ms, and it keeps its place. Answer with `Input::Ducked`.
    Duck(SpeechId),
    /// It goes on where it was.
    Resume(SpeechId),
    /// Stop it; answer with `Input::WasCut`.
    CutSpeech(SpeechId, CutWhy),
    /// A tone, at once, over whatever plays.
    Earcon(Earcon),
    /// For the leg.
    Leg(LegNote),
    /// The answer to a decision.
    Reply(Ticket, Reply),
    /// Words of an utterance or an answer that is still growing; shown, not logged.
    Partial {
        /// Who speaks.
        role: super::event::Role,
        /// False for the gateway's own words.
        for_agent: bool,
        /// The words so far.
        text: String,
    },
    /// Count something.
    Count(Count),
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// An utterance was judged.
    Intent {
        /// Its decision.
        decision: &'static str,
        /// `accepted`, or why it had no effect.
        reason: &'static str,
    },
    /// Plan mode refused a call.
    Blocked {
        /// Where the line came in that the agent was answering.
        surface: &'static str,
        /// Its class.
        effect: &'static str,
    },
    /// The voice was stopped by speech.
    BargeIn,
    /// The voice held its breath.
    Duck,
    /// It went on after that.
    Resume,
    /// What it had been held or cut for had no words, or only such as say "go on".
    FalseInterruption,
    /// A second half joined the turn before it.
    JoinedTurn,
    /// A provider said that the voice was interrupted, and was not believed.
    ProviderInterrupted,
}

/// What comes out, in order.
#[derive(Debug)]
pub enum Output {
    /// Write it down and show it.
    Event(Event),
    /// Do it.
    Action(Action),
    /// Nothing more now; wake the engine at this time at the latest.
    Wait(Option<Ms>),
}
