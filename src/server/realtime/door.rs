//! The state of one socket. Waits for nothing: frames to send and inputs for the conversation gather in two queues.

use std::collections::VecDeque;

use serde_json::Value;

use super::ear::Ear;
use super::items::Items;
use super::voice::Voice;
use crate::dialect::openai_realtime::audio::Format;
use crate::dialect::openai_realtime::response::{Response, Status};
use crate::dialect::openai_realtime::server::{At, Writer};
use crate::dialect::openai_realtime::session::{Modality, SessionState};
use crate::engine::id::{ItemId, Ms, SpeechId, TurnId};
use crate::session::leg::LegInput;

/// How long a response that the client asked for may stand without a turn or a speech, in milliseconds. Chosen: longer than any
/// recognition takes; it keeps a client from waiting for ever on something nobody answers.
const UNCLAIMED_MS: Ms = 30_000;

/// A response that has been created and is not done.
pub(super) struct Open {
    pub(super) id: String,
    /// The turn it belongs to; `None` until one claims it.
    pub(super) turn: Option<TurnId>,
    pub(super) modality: Modality,
    pub(super) metadata: Value,
    /// What is being said in it.
    pub(super) saying: Option<Saying>,
    /// The session's instructions or modality were overridden for it.
    pub(super) restore: (bool, bool),
    at: Ms,
}

/// The speech of an open response.
pub(super) struct Saying {
    pub(super) speech: SpeechId,
    pub(super) at: At,
    pub(super) text: String,
    pub(super) voice: Voice,
}

/// See the file's head.
pub(super) struct Door {
    conversation: String,
    tag: String,
    ids: u64,
    pub(super) writer: Writer,
    pub(super) session: SessionState,
    pub(super) items: Items,
    pub(super) ear: Ear,
    pub(super) open: Option<Open>,
    /// The turn the agent works on.
    pub(super) turn: Option<TurnId>,
    /// The newest response, open or done.
    pub(super) last_response: Option<String>,
    /// Sound has gone out, so the voice is fixed.
    pub(super) spoken: bool,
    /// Item, begin and end of the last utterance, for its length.
    pub(super) utterance: Option<(ItemId, Ms, Ms)>,
    /// The last notice since a response began: why it may fail.
    pub(super) trouble: Option<(String, String)>,
    pub(super) noticed: Option<String>,
    frames: VecDeque<String>,
    bytes: usize,
    pub(super) inputs: VecDeque<LegInput>,
}

impl Door {
    /// `tag` is a random word that sets this socket's ids apart. `session.created` is queued at once.
    pub(super) fn new(conversation: &str, tag: &str, model: Option<&str>) -> Self {
        let session = SessionState::new(conversation, model);
        let mut door = Self {
            conversation: conversation.to_string(),
            tag: tag.to_string(),
            ids: 0,
            writer: Writer::new(tag),
            ear: Ear::new(session.input_format),
            session,
            items: Items::default(),
            open: None,
            turn: None,
            last_response: None,
            spoken: false,
            utterance: None,
            trouble: None,
            noticed: None,
            frames: VecDeque::new(),
            bytes: 0,
            inputs: VecDeque::new(),
        };
        let created = door.writer.session_created(door.session.to_json());
        door.send(created);
        door
    }

    /// Queues a frame for the client.
    pub(super) fn send(&mut self, frame: String) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    /// The oldest frame that waits.
    pub(super) fn next_frame(&mut self) -> Option<String> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    /// True while frames wait.
    pub(super) fn has_frames(&self) -> bool { !self.frames.is_empty() }

    /// Bytes of all frames that wait.
    pub(super) fn waiting_bytes(&self) -> usize { self.bytes }

    /// Queues an input for the conversation.
    pub(super) fn tell(&mut self, input: LegInput) { self.inputs.push_back(input); }

    /// Queues a sentence for those who watch, once until another one comes.
    pub(super) fn notice(&mut self, code: &str, message: String) {
        if self.noticed.as_ref() != Some(&message) {
            self.noticed = Some(message.clone());
            self.tell(LegInput::Notice { code: code.to_string(), message });
        }
    }

    /// A name nobody else has.
    pub(super) fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}_{}", self.tag, self.ids)
    }

    /// Creates a response. The caller has seen to it that none is open.
    pub(super) fn open_response(&mut self, now: Ms, turn: Option<TurnId>, modality: Modality, metadata: Value) -> &mut Open {
        let id = self.new_id("resp");
        self.last_response = Some(id.clone());
        self.trouble = None;
        let open = Open { id, turn, modality, metadata, saying: None, restore: (false, false), at: now };
        let created = self.writer.response_created(self.response_json(&open, Status::InProgress, Vec::new()));
        self.send(created);
        self.open.insert(open)
    }

    /// Ends a response: `response.done`, whatever became of it, and what was overridden for it is put back.
    pub(super) fn close_response(&mut self, open: &Open, status: Status, output: Vec<Value>) {
        let done = self.writer.response_done(self.response_json(open, status, output));
        self.send(done);
        let limits = self.writer.rate_limits();
        self.send(limits);
        if open.restore.0 {
            self.tell(LegInput::Instructions(self.session.instructions.clone()));
        }
        if open.restore.1 {
            self.tell(LegInput::Speaks(self.session.modality == Modality::Audio));
        }
    }

    fn response_json(&self, open: &Open, status: Status, output: Vec<Value>) -> Value {
        Response {
            id: &open.id,
            conversation: &self.conversation,
            status,
            modality: open.modality,
            metadata: &open.metadata,
            format: self.session.output_format,
            voice: self.session.voice(),
            max_output_tokens: self.session.max_output_tokens(),
            output,
        }
        .to_json()
    }

    /// When [`Door::listen`] has something to do: sound waits behind a gap.
    pub(super) fn deadline(&self) -> Option<Ms> { self.ear.deadline() }

    /// Takes sound whose time has come.
    pub(super) fn listen(&mut self, now: Ms) {
        for piece in self.ear.poll(now) {
            self.tell(LegInput::Audio(piece));
        }
    }

    /// Speeches go out as packets, which take time to make.
    pub(super) fn packs(&self) -> bool { self.session.output_format == Format::Opus }

    /// The last word of this leg: how its packets fared.
    pub(super) fn farewell(&self) -> Option<LegInput> {
        self.ear.report().map(|message| LegInput::Notice { code: "audio_packets".into(), message })
    }

    /// Time passes.
    pub(super) fn tick(&mut self, now: Ms) {
        let late = |open: &Open| open.is_unclaimed() && now.saturating_sub(open.at) > UNCLAIMED_MS;
        if let Some(open) = self.open.take_if(|open| late(open)) {
            let message = format!("Nothing answered within {} seconds.", UNCLAIMED_MS / 1_000);
            self.close_response(&open, Status::Failed { code: "no_answer".into(), message }, Vec::new());
        }
    }
}

impl Open {
    /// The client asked for it and nothing has come of it yet.
    pub(super) fn is_unclaimed(&self) -> bool { self.turn.is_none() && self.saying.is_none() }
}
