//! A proxied session: a client on one side, a provider on the other, and the conversation's gate, ear and mouth in between.
//!
//! [`Proxy`] is the state of one such session and waits for nothing: frames for both sides and inputs for the conversation gather in
//! queues. Sound goes through as it came. Everything else is read, judged and written anew: a call of a gateway's tool is never seen by
//! the client, a call of the client's own tool is shown when the gate has let it begin, and what would let somebody else run tools
//! reaches nobody.
//!
//! - `asks` carries out the client's events, `hears` takes the provider's, `answer` makes one answer of several rounds of the provider;
//! - `calls` keeps tool calls between being wanted and being answered, `beside` is what the conversation says and decides meanwhile;
//! - `gemini` stands before a provider of the other protocol, which the rest need not know of;
//! - `line` carries frames and is the only part that waits.

mod answer;
mod asks;
mod beside;
mod calls;
mod gemini;
mod hears;
mod line;

#[cfg(test)]
mod bypass_tests;
#[cfg(test)]
mod gemini_tests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};

use axum::body::Bytes;
use serde_json::{Value, json};

pub use line::run;

use super::ear::Ear;
use super::items::Items;
use crate::dialect::openai_realtime::audio::Format;
use crate::dialect::openai_realtime::server::Writer;
use crate::dialect::openai_realtime::session::SessionState;
use crate::dialect::openai_realtime::upstream::{self, OWN_EVENT, Own};
use crate::engine::id::Ms;
use crate::provider::Kind;
use crate::session::leg::{Brief, FromProvider, LegInput, LegOutput};
use answer::Answer;
use calls::Call;
use gemini::{Live, Said};

/// How long a verdict on what was said is waited for before the provider answers it, in milliseconds. Chosen: a command is judged
/// within half a second of its end on a machine that has time for it, and every utterance gets a verdict; this is for the worst.
const VERDICT_MS: Ms = 8_000;
/// Who has spoken longer than this has given no command and is answered at once, in milliseconds.
const COMMAND_MAX_MS: Ms = 6_000;
/// Where the ear has not noticed anybody when the provider closes a turn, it has this long to, in milliseconds. Chosen: it speaks up
/// within a tenth of a second of silence, and a provider's own detector can be quicker than that.
const GRACE_MS: Ms = 300;
/// A verdict that came before the provider's own end of the turn counts this long.
const VERDICT_KEPT_MS: Ms = 2_500;
/// Sound whose every sample is below this is nobody speaking (-48 dBFS, as the ear has it), and is given to the ear a tenth of a second
/// at a time, unless something was said less than so many milliseconds before.
const QUIET: u16 = 130;
const QUIET_AFTER_MS: Ms = 2_000;
const QUIET_SAMPLES: usize = 1_600;
/// Rounds of tools in one answer.
const ROUNDS_MAX: u32 = 12;
/// Events of the client that wait until the provider is there; sound beyond it goes, oldest first.
const EARLY_MAX: usize = 1_024;
/// Names that are remembered (items, own events); the oldest half goes.
const NAMES_MAX: usize = 4_096;

/// A `response.create` that is wanted and not sent.
#[derive(Debug)]
struct Create {
    /// What the client said of it; nothing for the gateway's own.
    response: serde_json::Map<String, Value>,
    /// The client's own event.
    event_id: Option<String>,
    /// It goes on with an answer that waits for tools.
    goes_on: bool,
    /// Not before a verdict, but then.
    until: Option<Ms>,
}

/// What is known of the words that were said last.
#[derive(Debug, Default)]
struct Verdict {
    /// The ear hears somebody, since then.
    listening: Option<Ms>,
    /// The words were for the gateway, or not; and when that was known.
    judged: Option<(bool, Ms)>,
    /// The provider has closed a turn, then, and waits to be told to answer it.
    committed: Option<(String, Ms)>,
    /// The item of the turn that was closed last.
    item: Option<String>,
}

impl Verdict {
    /// A turn that was closed is answered then, whatever is known.
    fn deadline(&self) -> Option<Ms> {
        let (_, closed_at) = self.committed.as_ref()?;
        let wait = match self.listening {
            Some(since) if closed_at.saturating_sub(since) > COMMAND_MAX_MS => 0,
            Some(_) => VERDICT_MS,
            None => GRACE_MS,
        };
        Some(closed_at + wait)
    }
}

/// See the file's head.
pub(super) struct Proxy {
    conversation: String,
    tag: String,
    ids: u64,
    kind: &'static Kind,
    /// The provider speaks another protocol.
    live: Option<Live>,
    /// What is said is heard here as well.
    listens: bool,
    writer: Writer,
    session: SessionState,
    /// What the client set, as a partial session for the provider.
    forwarded: Value,
    ear: Ear,
    /// Quiet sound that the conversation's ear is given together.
    quiet: Vec<i16>,
    /// The conversation's ear was last given something that is not quiet.
    loud_at: Ms,
    /// Items that the provider does not have: the gateway's own words, and what was dropped.
    items: Items,
    brief: Option<Box<Brief>>,
    /// How often the conversation was told the client's instructions; what the client does next waits for the brief with the last.
    instructed: u32,
    client: VecDeque<Bytes>,
    client_bytes: usize,
    upstream: VecDeque<Bytes>,
    pub(super) inputs: VecDeque<LegInput>,
    /// The provider's session stands.
    ready: bool,
    /// It knows what was said before.
    seeded: bool,
    /// A response was under way, or on its way, when the connection was lost: it is asked for again.
    again: bool,
    /// Calls whose provider is gone: what came of them is told in words.
    orphans: HashMap<String, String>,
    /// The client was told of its session.
    told_session: bool,
    early: VecDeque<Bytes>,
    answer: Option<Answer>,
    calls: Vec<Call>,
    create: Option<Create>,
    /// A `response.create` is on its way.
    asked: bool,
    /// And what it brings is not wanted any more.
    unwanted: bool,
    /// The conversation's turn is over.
    turn_ended: bool,
    verdict: Verdict,
    /// What the gateway says waits for the provider to be silent.
    waiting_words: VecDeque<LegOutput>,
    saying: Option<beside::Saying>,
    /// Events of the provider that wait for the gateway to have spoken.
    deferred: VecDeque<Bytes>,
    deferred_bytes: usize,
    /// The provider answers a turn that it closed by itself, and is not listened to before it is known whether it is to.
    holding: bool,
    /// The answer that waits is not wanted until the client asks for it.
    holds_for_client: bool,
    /// The client has answered a call, and the provider goes on without being asked: the client's wish for it is granted already.
    goes_on_unasked: bool,
    /// Items with which the client answered calls: it waits for each to be acknowledged.
    client_outputs: HashSet<String>,
    /// Items the client never sees.
    hidden: HashSet<String>,
    /// Items the provider knows.
    known: HashSet<String>,
    last_visible: Option<String>,
    /// Own events that stand for one of the client's.
    events: HashMap<String, String>,
    /// Sound of the provider that the conversation was not told of yet, in milliseconds.
    sounds_ms: u64,
    ending: Option<(u16, String)>,
    /// Why the provider cannot be gone on with, where it said so.
    pub(super) lost: Option<String>,
}

impl Proxy {
    pub(super) fn new(conversation: &str, tag: &str, model: Option<&str>, kind: &'static Kind, listens: bool) -> Self {
        let session = SessionState::new(conversation, model);
        Self {
            conversation: conversation.to_string(), tag: tag.to_string(), ids: 0, kind, live: None, listens, writer: Writer::new(tag), ear: Ear::new(session.input_format), quiet: Vec::new(), loud_at: 0, session,
            forwarded: json!({}), items: Items::default(), brief: None, instructed: 0, client: VecDeque::new(), client_bytes: 0, upstream: VecDeque::new(), inputs: VecDeque::new(), ready: false, seeded: false, again: false, orphans: HashMap::new(),
            told_session: false, early: VecDeque::new(), answer: None, calls: Vec::new(), create: None, asked: false, unwanted: false, turn_ended: false, verdict: Verdict::default(), waiting_words: VecDeque::new(),
            saying: None, deferred: VecDeque::new(), deferred_bytes: 0, holding: false, holds_for_client: false, goes_on_unasked: false, client_outputs: HashSet::new(), hidden: HashSet::new(), known: HashSet::new(), last_visible: None, events: HashMap::new(), sounds_ms: 0, ending: None, lost: None,
        }
    }

    /// A frame for the client.
    fn send(&mut self, frame: impl Into<Bytes>) {
        let frame = frame.into();
        self.client_bytes += frame.len();
        self.client.push_back(frame);
    }

    pub(super) fn next_client(&mut self) -> Option<Bytes> {
        let frame = self.client.pop_front()?;
        self.client_bytes -= frame.len();
        Some(frame)
    }

    pub(super) fn client_waiting(&self) -> usize { self.client_bytes }

    /// Bytes of the provider's that wait for the gateway to have spoken.
    pub(super) fn deferred_waiting(&self) -> usize { self.deferred_bytes }

    pub(super) fn next_upstream(&mut self) -> Option<Bytes> {
        match &mut self.live { Some(live) => live.next_frame(), None => self.upstream.pop_front() }
    }

    pub(super) fn upstream_waiting(&self) -> usize { self.live.as_ref().map_or_else(|| self.upstream.len(), Live::waiting) }

    pub(super) fn ending(&mut self) -> Option<(u16, String)> { self.ending.take() }

    /// An event for the provider.
    fn ask(&mut self, event: &Value) {
        match &mut self.live { Some(live) => live.ask(event), None => self.upstream.push_back(event.to_string().into()) }
    }

    fn tell(&mut self, input: LegInput) { self.inputs.push_back(input) }

    fn tell_of(&mut self, from: FromProvider) { self.tell(LegInput::Provider(from)) }

    fn notice(&mut self, code: &str, message: String) { self.tell(LegInput::Notice { code: code.to_string(), message }) }

    fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}_{}", self.tag, self.ids)
    }

    /// The name of an event of the gateway's own; what the provider says of it is said of the client's event, if it stands for one.
    fn own_event(&mut self, of: Option<&str>) -> String {
        self.ids += 1;
        let id = format!("{OWN_EVENT}{}", self.ids);
        if let Some(of) = of {
            if self.events.len() >= NAMES_MAX { self.events.clear() }
            self.events.insert(id.clone(), of.to_string());
        }
        id
    }

    fn remember(set: &mut HashSet<String>, name: &str) {
        if set.len() >= NAMES_MAX {
            let old: Vec<String> = set.iter().take(NAMES_MAX / 2).cloned().collect();
            for name in old { set.remove(&name); }
        }
        set.insert(name.to_string());
    }

    /// A tool of the gateway's, whatever the client declared.
    fn is_ours(&self, tool: &str) -> bool {
        self.brief.as_ref().is_some_and(|b| b.names.iter().any(|n| n == tool)) || !self.session.functions().iter().any(|f| f["name"] == tool)
    }

    /// Tells the provider what holds.
    fn tell_session(&mut self) {
        let Some(brief) = &self.brief else { return };
        let own = Own { instructions: &brief.instructions, tools: &brief.tools, functions: self.session.functions(), turns: self.session.turns };
        let known = |name: &str| self.session.functions().iter().any(|f| f["name"] == name) || brief.tools.iter().any(|t| t.name == name);
        let mut forwarded = self.forwarded.clone();
        if let Some(choice) = forwarded.get_mut("tool_choice") { *choice = upstream::tool_choice(choice, known, brief.plan) }
        let mut update = upstream::session_update(&format!("{OWN_EVENT}s{}", self.ids), &forwarded, &own);
        update["session"] = (self.kind.session)(update["session"].take());
        self.ids += 1;
        if !self.ready { return }
        tracing::info!(epoch = brief.epoch, plan = brief.plan, told = %short_hash(&update["session"]), "the provider is told what holds");
        self.ask(&update);
    }

    /// A provider's connection stands.
    pub(super) fn connected(&mut self, now: Ms) {
        self.at(now);
        if let Some(live) = &mut self.live { live.connected() }
        self.go_on(now);
    }

    /// The clock of the part that has timers of its own.
    fn at(&mut self, now: Ms) {
        if let Some(live) = &mut self.live { live.now = now }
    }

    /// Trying the provider again with the same words is no use.
    pub(super) fn is_refused(&self) -> bool { self.live.as_ref().is_some_and(Live::is_refused) }

    /// The connection is to be replaced by another one, and this is the moment: nobody says anything, or time has run out.
    pub(super) fn wants_renewal(&self, now: Ms) -> bool {
        self.live.as_ref().and_then(|l| l.renew).is_some_and(|by| now >= by || self.is_between_turns())
    }

    /// Nothing is being said, run, asked for or judged.
    pub(super) fn is_between_turns(&self) -> bool {
        self.answer.is_none() && !self.asked && self.create.is_none() && self.saying.is_none() && self.verdict.listening.is_none() && self.verdict.committed.is_none() && !self.has_open_calls()
            && self.deferred.is_empty()
    }

    /// The connection to the provider is gone. What it was saying ends there; what it was about to say is asked for again.
    pub(super) fn disconnected(&mut self, now: Ms) {
        self.at(now);
        if let Some(live) = &mut self.live { live.disconnected() }
        (self.ready, self.seeded, self.holding, self.holds_for_client) = (false, false, false, false);
        self.upstream.clear();
        self.deferred.clear();
        self.deferred_bytes = 0;
        self.events.clear();
        self.known.clear();
        self.verdict = Verdict::default();
        self.again |= std::mem::take(&mut self.asked) && !std::mem::take(&mut self.unwanted);
        for call in std::mem::take(&mut self.calls) {
            if call.is_open() && call.stands != calls::Stands::Coming { self.orphans.insert(call.id, call.tool); }
        }
        match &mut self.answer {
            Some(answer) if answer.active && answer.sounded => self.close_answer(now, "incomplete", "connection_lost"),
            Some(answer) => {
                (answer.active, answer.waits, answer.end) = (false, true, None);
                // Where tools still run, the conversation asks for the next round when they have ended.
                self.again = self.orphans.is_empty();
            }
            None => {}
        }
    }

    /// The provider's session has begun.
    fn provider_ready(&mut self) {
        if std::mem::replace(&mut self.ready, true) { return }
        self.tell_session();
        self.tell(LegInput::History);
        if !std::mem::replace(&mut self.told_session, true) {
            let created = self.writer.session_created(self.session.to_json());
            self.send(created);
        }
    }

    /// True while the provider is there and knows what was said.
    pub(super) fn may_begin(&self) -> bool { self.ready && self.seeded && self.brief.is_some() }

    /// True while what the client says may go on: the provider knows what the client set before.
    fn takes_client(&self) -> bool { self.may_begin() && self.brief.as_ref().is_some_and(|b| b.instructed == self.instructed) }

    /// What the client said before the provider was there goes on, once it is.
    pub(super) fn catch_up(&mut self, now: Ms) {
        self.at(now);
        while self.takes_client() {
            let Some(frame) = self.early.pop_front() else { break };
            self.client_frame(now, frame);
            self.go_on(now);
        }
    }

    /// A frame of the client.
    pub(super) fn client(&mut self, now: Ms, frame: Bytes) {
        self.at(now);
        if self.takes_client() && self.early.is_empty() {
            self.client_frame(now, frame);
            return self.go_on(now);
        }
        if self.early.len() >= EARLY_MAX {
            let sound = self.early.iter().position(|f| f.len() < 400_000 && f.windows(25).take(64).any(|w| w == b"input_audio_buffer.append"));
            match sound {
                Some(at) => { self.early.remove(at); }
                None => {
                    self.ending = Some((1013, "too much was sent before the provider was there".into()));
                    return;
                }
            }
        }
        self.early.push_back(frame);
    }

    /// When [`Proxy::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Ms> {
        let create = self.create.as_ref().and_then(|c| c.until);
        [self.verdict.deadline(), create, self.live.as_ref().and_then(Live::deadline)].into_iter().flatten().min()
    }

    /// Time passes.
    pub(super) fn tick(&mut self, now: Ms) {
        self.at(now);
        if let Some(live) = &mut self.live { live.tick() }
        if self.verdict.deadline().is_some_and(|at| now >= at) { self.resolve(now, false) }
        self.try_create(now);
        self.go_on(now);
    }

    /// Milliseconds of sound in base64 of the session's output format.
    fn length_ms(format: Format, base64: &str) -> u64 {
        let bytes = base64.len() as u64 * 3 / 4;
        let width = if format == Format::Pcm { 2 } else { 1 };
        bytes * 1_000 / (u64::from(format.rate_hz()) * width)
    }
}

/// The first of a text's digest: enough to see in a log whether two are the same.
fn short_hash(value: &Value) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(value.to_string().as_bytes()).iter().take(6).map(|b| format!("{b:02x}")).collect()
}
