//! What passes between a conversation and one attached leg (a sound card, a file, a `/v1/realtime` socket).
//!
//! Nouns only. A leg is an ear and a mouth; it decides nothing. The driver holds the other ends.

use serde_json::Value;

use crate::engine::conversation::{Item, StepRequest};
use crate::engine::event::Role;
use crate::engine::id::{CallId, ItemId, SpeechId, TurnId, UtteranceId};
use crate::engine::tool::ToolSpec;

/// How a leg's turns end.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDetection {
    /// False: the client commits and asks for responses itself (`turn_detection: null`).
    pub automatic: bool,
    /// Silence that ends a turn, in milliseconds. `None`: the gateway's own setting.
    pub silence_ms: Option<u32>,
    /// Voice probability that counts as speech, 0..=1. `None`: the gateway's own setting.
    pub threshold: Option<f32>,
    /// A committed turn makes a response by itself.
    pub create_response: bool,
    /// Speech cuts the voice.
    pub interrupt_response: bool,
}

impl Default for TurnDetection {
    fn default() -> Self {
        Self { automatic: true, silence_ms: None, threshold: None, create_response: true, interrupt_response: true }
    }
}

/// What a newcomer says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct LegSpec {
    /// For people ("microphone of this machine", "realtime client").
    pub name: String,
    /// It may be displaced by a newer leg (sockets: yes; the machine's own microphone: no).
    pub displaceable: bool,
    /// It has an ear.
    pub hears: bool,
    /// It has a voice; false for text-only sessions: questions then come as text and cannot be answered by voice.
    pub speaks: bool,
    /// A provider hears and answers on the far side of it (a proxied session).
    pub remote: bool,
}

/// From a leg with a provider on its far side: what that one does.
#[derive(Clone, Debug, PartialEq)]
pub enum FromProvider {
    /// A response has begun.
    Began,
    /// So many milliseconds more of its sound went out.
    Sounds(u64),
    /// Words of it, as they come.
    Words(String),
    /// What the client has not played of it is thrown away.
    Silenced,
    /// A whole line, the person's or its own.
    Line {
        /// Whose.
        role: Role,
        /// Name of the item.
        item: ItemId,
        /// The words.
        text: String,
    },
    /// It wants a call made.
    Call {
        /// Its id.
        id: CallId,
        /// The tool, as it wrote it.
        tool: String,
        /// JSON text of the arguments, as it wrote it.
        arguments: String,
    },
    /// The response has ended.
    Done(LegEnd),
    /// It says that its voice was interrupted.
    Interrupted,
    /// Its connection is gone for longer than a breath: the person is told.
    Away,
}

/// What a provider is to know: told when a leg with one attaches, and whenever it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// Instructions, with the client's and what plan mode wants said.
    pub instructions: String,
    /// The gateway's tools it is told of now.
    pub tools: Vec<ToolSpec>,
    /// Names of all of the gateway's tools, aliases too: a client cannot declare them, a call of one is the gateway's.
    pub names: Vec<String>,
    /// Counts up with each change of the posture.
    pub epoch: u32,
    /// Plan mode is on.
    pub plan: bool,
    /// How many times the client's instructions had been told by this leg ([`LegInput::Instructions`]) when this was written.
    pub instructed: u32,
}

/// From the leg.
#[derive(Clone, Debug, PartialEq)]
pub enum LegInput {
    /// Microphone sound, mono i16 at 16 kHz, any length up to a second.
    Audio(Vec<i16>),
    /// The client ends the turn by hand (`input_audio_buffer.commit`); the item it becomes.
    Commit {
        /// Name of the new user item.
        item: ItemId,
    },
    /// The client throws away what was heard since the last turn.
    Clear,
    /// Turn taking changed.
    Turns(TurnDetection),
    /// The client's instructions for the agent (whole, at most 16,384 characters).
    Instructions(String),
    /// Voice on or off (output modality audio or text).
    Speaks(bool),
    /// A typed user line.
    Text {
        /// Name of the item.
        item: ItemId,
        /// The words.
        text: String,
    },
    /// The client asks for a response to what is there.
    CreateResponse,
    /// The client cancels the response that runs.
    CancelResponse,
    /// The client says how much of an item it played.
    Truncate {
        /// The assistant item.
        item: ItemId,
        /// Milliseconds that were played.
        audio_end_ms: u64,
    },
    /// The client takes an item out of the conversation; the agent is not shown it again.
    Delete {
        /// The item.
        item: ItemId,
    },
    /// The provider behind it did something.
    Provider(FromProvider),
    /// The functions that the client runs itself, whole list, as it declared them.
    Functions(Vec<Value>),
    /// A provider begins from nothing: it wants what was said so far ([`LegOutput::History`]).
    History,
    /// The client's answer to a call it was handed.
    Answer {
        /// The call.
        call: CallId,
        /// What it says.
        output: String,
    },
    /// The leg's door has a sentence for everyone who watches (tools that were left out, items that were dropped).
    Notice {
        /// Stable code.
        code: String,
        /// A sentence.
        message: String,
    },
}

/// How a speech or a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegEnd {
    /// To its end.
    Completed,
    /// Cut because somebody spoke.
    Interrupted,
    /// Cut because the client or a person asked.
    Cancelled,
    /// Something broke; a notice says what.
    Failed,
}

/// To the leg.
#[derive(Clone, Debug, PartialEq)]
pub enum LegOutput {
    /// Speech began at this time of the leg's own sound, in milliseconds.
    SpeechStarted {
        /// The utterance.
        utterance: UtteranceId,
        /// Milliseconds of audio since the leg attached.
        at_ms: u64,
        /// Name the user item will have.
        item: ItemId,
    },
    /// Speech ended.
    SpeechStopped {
        /// The utterance.
        utterance: UtteranceId,
        /// Milliseconds of audio since the leg attached.
        at_ms: u64,
        /// Name of the user item.
        item: ItemId,
    },
    /// The utterance is a user item now (also when its words turn out to be a command).
    Committed {
        /// Name of the user item.
        item: ItemId,
    },
    /// Its words. `None`: nothing was understood.
    UserTranscript {
        /// Name of the user item.
        item: ItemId,
        /// The words.
        text: Option<String>,
    },
    /// The agent works on an answer.
    TurnBegan {
        /// The turn.
        turn: TurnId,
    },
    /// Something is being said. Exactly one speech is open at a time.
    SpeechBegan {
        /// The speech.
        speech: SpeechId,
        /// Name of the assistant item.
        item: ItemId,
        /// The turn it answers; `None` for the gateway's own words that nobody asked for.
        turn: Option<TurnId>,
    },
    /// Words of the open speech, before their sound.
    Text {
        /// The speech.
        speech: SpeechId,
        /// A segment, with the space that belongs before it.
        text: String,
    },
    /// Sound of the open speech.
    Audio {
        /// The speech.
        speech: SpeechId,
        /// Mono.
        samples: Vec<i16>,
        /// Its rate.
        rate_hz: u32,
    },
    /// The open speech ends.
    SpeechEnded {
        /// The speech.
        speech: SpeechId,
        /// How.
        end: LegEnd,
    },
    /// The turn is over.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How.
        end: LegEnd,
    },
    /// For a provider: what it is to know from now on.
    Brief(Box<Brief>),
    /// For a provider that begins from nothing: what was said and done so far, oldest first.
    History(Vec<Item>),
    /// For a provider: a response is wanted, and what it is to answer. Notes of the gateway and typed lines are among the items.
    Step(Box<StepRequest>),
    /// For a provider: its response is not wanted any more.
    CancelStep,
    /// For a provider: a call has ended, whoever ran it.
    CallDone {
        /// The call.
        call: CallId,
        /// JSON text, bounded.
        output: String,
    },
    /// For the client: a call that the gate has let begin is its own to run.
    Handed {
        /// The call.
        call: CallId,
    },
    /// For the door of a proxied session: an utterance was judged. True: it was for the gateway.
    Judged {
        /// The provider is to answer nothing.
        consumed: bool,
    },
    /// A sentence for the client (`code`, `message`); never an error.
    Notice {
        /// Stable code.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The conversation lets the leg go.
    Closed {
        /// Why.
        reason: String,
    },
}
