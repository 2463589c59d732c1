//! The only loop that turns the engine's outputs into deeds and the deeds' results into inputs.
//!
//! One task owns one conversation. Everything that takes time runs in tasks of its own set and comes back through one bounded
//! queue; the loop itself never waits for any of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::card::{Card, CardNews};
use super::clock::{Clock, Stopwatch};
use super::cost::Meter;
use super::ear::{EarEnd, Framed};
use super::handle::{AttachRefused, Command, Declined, Done, LEG_QUEUE, LegPort};
use super::leg::{Brief, FromProvider, LegEnd, LegInput, LegOutput, LegSpec};
use super::mirrors::Mirrors;
use super::mouth::{MouthEnd, SayJob};
use super::parts::{Journal, Parts};
use super::recording::Recording;
use crate::agent::AgentError;
use crate::dialect::feral::{self, ChatCommand, Head, Kept};
use crate::dialect::openai_chat;
use crate::engine::authority::{Decide, OperatorDoor, Surface};
use crate::engine::conversation::{AgentOutput, StepRequest};
use crate::engine::event::{Event, EventKind, Role};
use crate::engine::gate::Permit;
use crate::engine::id::{CallId, Ms, TurnId, UtteranceId};
use crate::engine::input::{Action, Count, Input, LegFacts, LegNote, Output, Remote, Reply, Ticket, TurnEnd, Turns};
use crate::engine::language::Language;
use crate::engine::mode::Posture;
use crate::engine::readback::HINTS_MAX;
use crate::engine::session::Engine;
use crate::engine::tool::{ToolCall, ToolOutcome};
use crate::engine::turn::Frame;
use crate::listen::asleep::Asleep;
use crate::media::frame::{EAR_FRAME, EAR_HZ};
use crate::store::ids;
use crate::stt::{Job, Order, SttError};
use crate::tools::ToolRunner;
use crate::tts::{Speech, speakable::speakable};

/// Results that wait for the loop; a full queue makes the tasks wait.
const RESULTS_MAX: usize = 256;
/// A live leg's housekeeping: playback accounts, missing microphone sound.
const TICK: Duration = Duration::from_millis(20);
/// A socket's microphone that sends nothing this long while somebody speaks is taken to be silent.
const MISSING_SOUND: Duration = Duration::from_millis(160);
/// A tool holds a file's clock this long; one that takes longer runs beside the conversation.
const TOOL_HOLD: Duration = Duration::from_millis(250);
/// The level of the microphone is shown this often, in frames.
const LEVEL_EVERY: u32 = 5;

/// Sound up to this long may be a command and goes before long talk of others.
const URGENT_MS: u64 = 3_000;
/// While a question is open, up to this long may answer it.
const URGENT_ANSWER_MS: u64 = 6_000;
/// A recognition that waited this long for a free recogniser came too late for a conversation.
const LATE: Duration = Duration::from_secs(2);
/// Overload is told once; after so long without it is news again.
const OVERLOAD_QUIET: Duration = Duration::from_secs(60);

/// What comes back from a task.
pub(super) enum Deed {
    /// A segment's sound.
    Sound(Result<Arc<Speech>, String>),
    /// Something of the agent's response.
    Agent(TurnId, AgentOutput),
    /// The agent's response has ended.
    AgentEnd(TurnId, Option<String>),
    /// A recognition has ended.
    Heard(UtteranceId, u64, Listened),
    /// A judge of turns has listened to a look.
    Judged(UtteranceId, u64, Option<f32>),
    /// A call has ended.
    Tool(CallId, ToolOutcome),
    /// Names of what the tools work on.
    Titles(Vec<String>),
}

/// What came of a recognition.
pub(super) struct Listened {
    result: Result<crate::engine::heard::Heard, SttError>,
    /// How long it waited for a free recogniser.
    waited: Duration,
    /// How long the recogniser worked.
    worked: Duration,
}

/// Work that a file's clock stands still for.
#[derive(Default)]
struct Outstanding {
    recognitions: Vec<(UtteranceId, u64, AbortHandle)>,
    judgements: usize,
    /// The judge is asked about this look (from, to) when its words are there.
    judged_later: Option<(UtteranceId, u64, u64)>,
    responses: usize,
    tools: Vec<(CallId, Stopwatch)>,
}

/// When overload was last met.
#[derive(Default)]
struct Overload(Option<Stopwatch>);

impl Overload {
    /// Met now; true when it was not met for a while before.
    fn is_news(&mut self) -> bool { self.0.replace(Stopwatch::start()).is_none_or(|last| last.elapsed() >= OVERLOAD_QUIET) }
}

/// Whose utterances these are, for the recogniser's queue.
fn session_key(id: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

struct Port {
    input: mpsc::Receiver<LegInput>,
    spec: LegSpec,
    last_sound: Stopwatch,
    /// Instructions it has told.
    instructed: u32,
}

/// Makes the file of a recording; a sentence where it cannot.
pub type OpenRecording = Box<dyn FnMut() -> Result<std::fs::File, String> + Send>;

enum Recorder {
    Off,
    /// Nobody has been there yet.
    Ready(OpenRecording),
    On(Box<Recording>),
}

/// Who gets every frame beside the mirrors (`--events`).
pub type FrameSink = Box<dyn FnMut(&str) + Send>;

/// See the file's head.
pub struct Driver {
    pub(super) id: String,
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) mouth: MouthEnd,
    pub(super) results: mpsc::Receiver<Deed>,
    commands: mpsc::Receiver<Command>,
    parts: Parts,
    runner: ToolRunner,
    journal: Box<dyn Journal>,
    written: bool,
    ear: Option<EarEnd>,
    results_in: mpsc::Sender<Deed>,
    tasks: JoinSet<()>,
    step: Option<(TurnId, AbortHandle)>,
    port: Option<Port>,
    device: Option<String>,
    card: Option<Card>,
    card_seen: Stopwatch,
    mirrors: Mirrors,
    tickets: HashMap<Ticket, oneshot::Sender<Result<Done, Declined>>>,
    next_ticket: u64,
    pending: VecDeque<Input>,
    outstanding: Outstanding,
    meter: Meter,
    overload: Overload,
    deadline: Option<Ms>,
    sink: Option<FrameSink>,
    frames: u32,
    /// Samples a second of what the ear is given.
    ear_hz: u32,
    pub(super) failed: Option<String>,
    closing: bool,
    /// The provider is to be told anew what holds.
    brief_due: bool,
    recorder: Recorder,
    attached: Arc<std::sync::atomic::AtomicUsize>,
}

impl Driver {
    /// A driver that has not begun. `attached` shows others how many watch and listen.
    pub fn new(id: &str, engine: Engine, parts: Parts, runner: ToolRunner, journal: Box<dyn Journal>, commands: mpsc::Receiver<Command>, attached: Arc<std::sync::atomic::AtomicUsize>) -> Self {
        let (results_in, results) = mpsc::channel(RESULTS_MAX);
        Self {
            id: id.to_string(), engine, clock: Clock::wall(), mouth: MouthEnd::new(), results, commands, parts, runner, journal, written: true, ear: None, results_in,
            tasks: JoinSet::new(), step: None, port: None, device: None, card: None, card_seen: Stopwatch::start(), mirrors: Mirrors::default(), tickets: HashMap::new(), next_ticket: 0, pending: VecDeque::new(),
            outstanding: Outstanding::default(), meter: Meter::of(id), overload: Overload::default(), deadline: None, sink: None, frames: 0, ear_hz: 16_000, failed: None, closing: false, brief_due: false, recorder: Recorder::Off, attached,
        }
    }

    /// Every frame is handed to this as well.
    pub fn with_sink(mut self, sink: FrameSink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// What is said and played is kept in a file that this makes when somebody is there to be heard.
    pub fn with_recorder(mut self, open: OpenRecording) -> Self {
        self.recorder = Recorder::Ready(open);
        self.mouth.tap();
        self
    }

    /// A device of this machine is the leg, and stays it: sockets may watch, not listen. `echoes`: the microphone may hear the speaker.
    pub(super) fn attach_device(&mut self, name: &str, mic_hz: u32, speaker_hz: u32, echoes: bool) {
        self.device = Some(name.to_string());
        let ear = EarEnd::new(mic_hz).with_vad(self.parts.vad.make());
        self.ear = Some(if echoes { ear.beside_a_loudspeaker(self.parts.cleaning) } else { ear });
        self.ear_hz = mic_hz;
        self.mouth.play_on_device(speaker_hz);
        self.begin_recording();
        self.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
        self.look_up_titles();
    }

    /// Runs a conversation whose legs come and go, until it is closed.
    pub async fn run(mut self) {
        self.drain();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !self.closing {
            // A deadline that is over and still holds (speech keeps a question open) is looked at again a little later, not at once.
            let wait = self.deadline.map(|at| self.clock.until(at).max(TICK));
            tokio::select! {
                command = self.commands.recv() => match command { Some(command) => self.command(command), None => break },
                Some(deed) = self.results.recv() => self.deed(deed),
                message = Self::from_port(&mut self.port) => self.leg_input(message),
                sound = Self::from_card(&mut self.card) => self.card_heard(&sound),
                _ = tick.tick(), if self.is_ticking() => self.tick(),
                () = sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => self.input(Input::Tick),
            }
            self.after();
        }
        self.finish().await;
    }

    /// Time matters between inputs: something plays, somebody speaks and may stop being heard, or a recording goes on.
    fn is_ticking(&self) -> bool {
        self.card.is_some() || self.port.is_some() && (self.mouth.is_playing_far() || self.engine.hears_somebody() || matches!(self.recorder, Recorder::On(_)))
    }

    async fn from_port(port: &mut Option<Port>) -> Option<LegInput> {
        match port {
            Some(port) => port.input.recv().await,
            None => std::future::pending().await,
        }
    }

    async fn from_card(card: &mut Option<Card>) -> Vec<i16> {
        match card {
            Some(card) => card.mic.next_frame().await,
            None => std::future::pending().await,
        }
    }

    /// Holds the conversation over this machine's microphone and speaker, until it is closed.
    pub async fn run_card(mut self, card: Card) {
        self.attach_device("the microphone of this machine", EAR_HZ, card.speaker.rate_hz(), true);
        self.card = Some(card);
        self.run().await;
    }

    /// The microphone gave something: what the speaker plays in the same time is pulled first, on the same clock.
    fn card_heard(&mut self, sound: &[i16]) {
        while let Some(news) = self.card.as_mut().and_then(|card| card.mic.news()) { self.card_news(news) }
        if let Some(card) = &mut self.card { card.heard(sound.len()) }
        self.feed_card();
        self.sound_in(sound);
    }

    /// Time goes by for the card, 20 ms or somewhat more.
    fn card_tick(&mut self) {
        while let Some(news) = self.card.as_mut().and_then(|card| card.speaker.news()) { self.card_news(news) }
        let Some(card) = &mut self.card else { return };
        let passed_ms = self.card_seen.elapsed().as_millis() as u64;
        if passed_ms > 0 {
            card.passed(passed_ms);
            self.card_seen = Stopwatch::start();
        }
        let missing = card.is_missing();
        self.feed_card();
        // A turn does not hang because its microphone went away in the middle.
        if missing && self.engine.hears_somebody() {
            self.sound_in(&[0; EAR_FRAME]);
        }
    }

    /// Keeps the speaker fed.
    fn feed_card(&mut self) {
        let Some(card) = &mut self.card else { return };
        let n = crate::media::frame::frame_len(card.speaker.rate_hz());
        let mut sound = Vec::with_capacity(n);
        while card.is_due() {
            sound.clear();
            let rate_hz = card.speaker.rate_hz();
            self.mouth.pull(n, &mut sound);
            if let Some(ear) = &mut self.ear { ear.reference(&sound, rate_hz) }
            card.speaker.write(&sound);
        }
    }

    /// Says what happened to a device; the ear is told of another one.
    fn card_news(&mut self, news: CardNews) {
        if let (true, Some(ear)) = (news.changed, &mut self.ear) {
            ear.device_changed();
        }
        if !news.message.is_empty() {
            self.input(Input::Notice { code: "device".into(), message: news.message });
        }
    }

    /// Ends: the tasks of this conversation end with it.
    pub(super) async fn finish(&mut self) {
        self.mouth.tell(LegOutput::Closed { reason: "the conversation was closed".into() });
        self.tasks.shutdown().await;
        self.end_recording();
        self.journal.settle();
    }

    /// Takes what is ready from tasks and doors without waiting. Answers whether there was anything.
    pub(super) fn take_ready(&mut self) -> bool {
        let mut any = false;
        while let Ok(deed) = self.results.try_recv() {
            self.deed(deed);
            any = true;
        }
        while let Ok(command) = self.commands.try_recv() {
            self.command(command);
            any = true;
        }
        if any { self.after() }
        any
    }

    /// Waits for a result, a command, or at most this long.
    pub(super) async fn wait(&mut self, at_most: Duration) {
        tokio::select! {
            Some(deed) = self.results.recv() => self.deed(deed),
            Some(command) = self.commands.recv() => self.command(command),
            () = sleep(at_most) => {}
        }
        self.after();
    }

    /// Work is under way that a file's clock stands still for.
    pub(super) fn holds_clock(&self) -> bool {
        !self.outstanding.recognitions.is_empty() || self.outstanding.judgements > 0 || self.outstanding.responses > 0 || self.mouth.is_making()
            || self.outstanding.tools.iter().any(|(_, since)| since.elapsed() < TOOL_HOLD)
    }

    pub(super) fn is_closing(&self) -> bool { self.closing }

    pub(super) fn settle_mouth(&mut self) { self.after() }

    fn after(&mut self) {
        while let Some(input) = self.mouth.drained(self.clock.now()) {
            self.input(input);
        }
        self.make_sound();
        if self.mouth.is_lost() {
            self.drop_port("it did not keep up");
        }
        self.attached.store(self.mirrors.count() + usize::from(self.port.is_some()) + usize::from(self.device.is_some()), std::sync::atomic::Ordering::Relaxed);
        while self.tasks.try_join_next().is_some() {}
    }

    /// One input, and everything that follows from it at once.
    pub(super) fn input(&mut self, input: Input) {
        self.engine.handle_input(self.clock.now(), input);
        self.drain();
        while let Some(next) = self.pending.pop_front() {
            self.engine.handle_input(self.clock.now(), next);
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            match self.engine.poll_output() {
                Output::Event(event) => self.event(&event),
                Output::Action(action) => self.action(action),
                Output::Wait(at) => {
                    self.deadline = at;
                    break;
                }
            }
        }
        if std::mem::take(&mut self.brief_due) { self.tell_brief() }
    }

    fn is_remote(&self) -> bool { self.port.as_ref().is_some_and(|p| p.spec.remote) }

    /// Tells the provider of a proxied session what holds.
    fn tell_brief(&mut self) {
        let step = self.engine.briefing();
        let names = self.parts.catalogue.specs().iter().map(|s| s.name.clone()).collect();
        let brief = Brief { instructions: openai_chat::system(&step), names, epoch: self.engine.snapshot().stamp.epoch, plan: step.plan_mode, tools: step.tools, instructed: self.port.as_ref().map_or(0, |p| p.instructed) };
        self.mouth.tell(LegOutput::Brief(Box::new(brief)));
    }

    /// What an event is to a provider.
    fn tell_provider(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolResult { call, output, .. } => self.mouth.tell(LegOutput::CallDone { call: call.clone(), output: output.to_string() }),
            EventKind::Mode(_) | EventKind::Draft { .. } | EventKind::Presented(_) | EventKind::PlanDecided { .. } => self.brief_due = true,
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) {
        self.written = match self.journal.append(event) {
            Ok(()) => true,
            Err(why) => {
                tracing::error!(session = %self.id, seq = event.seq, %why, "event was not written");
                metrics::counter!("voxgate_log_failures_total").increment(1);
                false
            }
        };
        if let EventKind::Notice { code, message } = &event.kind {
            tracing::info!(session = %self.id, %code, %message, "notice");
            if matches!(code.as_str(), "voice_failed" | "hearing_failed" | "agent_failed" | "log_failed") {
                self.failed = Some(message.clone());
            }
            self.mouth.tell(LegOutput::Notice { code: code.clone(), message: message.clone() });
        }
        if self.is_remote() { self.tell_provider(event) }
        let kept = if self.written && self.journal.lasts() { Kept::Logged } else { Kept::Memory };
        let text: Arc<str> = feral::frame_kept(event, self.engine.taken(), &self.id, &message_id(), kept).into();
        if let Some(sink) = &mut self.sink { sink(&text) }
        self.mirrors.frame(event.seq, text);
    }

    fn action(&mut self, action: Action) {
        let now = self.clock.now();
        match action {
            Action::Recognise { utterance, from_ms, to_ms } => self.recognise(utterance, from_ms, to_ms),
            Action::Forget { utterance, to_ms } => self.forget(utterance, to_ms),
            Action::JudgeTurn { utterance, from_ms, to_ms } if self.parts.judge_waits => self.outstanding.judged_later = Some((utterance, from_ms, to_ms)),
            Action::JudgeTurn { utterance, from_ms, to_ms } => self.judge_turn(utterance, from_ms, to_ms),
            Action::Step(request) if self.is_remote() => self.mouth.tell(LegOutput::Step(request)),
            Action::Step(request) => self.step(*request),
            Action::CancelStep(turn) => {
                if self.is_remote() { self.mouth.tell(LegOutput::CancelStep) }
                self.cancel_step(turn);
            }
            Action::Run(permit, call) => self.run_call(permit, call),
            Action::Loosen(to) => self.loosen(to),
            Action::BeginSpeech { speech, item, turn, earcon } => self.mouth.begin(speech, item, turn, earcon),
            Action::Say { speech, segment, text } => {
                self.mouth.say(SayJob { speech, segment, text });
                self.make_sound();
            }
            Action::EndSpeech(speech) => self.mouth.end(speech),
            Action::Duck(speech) => {
                let heard_ms = self.mouth.duck(speech);
                self.pending.push_back(Input::Ducked { speech, heard_ms });
            }
            Action::Resume(speech) => self.mouth.resume(speech),
            Action::CutSpeech(speech, why) => {
                let heard_ms = self.mouth.cut(now, speech, why);
                self.pending.push_back(Input::WasCut { speech, heard_ms });
            }
            Action::Earcon(tone) => self.mouth.earcon(tone),
            Action::Leg(note) => self.mouth.tell(leg_output(note)),
            Action::Reply(ticket, reply) => self.reply(ticket, reply),
            Action::Partial { role, for_agent, text } => self.partial(role, for_agent, &text),
            Action::Count(count) => count_up(&count),
        }
    }

    fn recognise(&mut self, utterance: UtteranceId, from_ms: u64, to_ms: u64) {
        let samples = self.ear.as_ref().map_or_else(|| Arc::from([]), |e| e.slice(from_ms, to_ms));
        let (recogniser, language, back) = (self.parts.recogniser.clone(), self.parts.language.clone(), self.results_in.clone());
        metrics::counter!("voxgate_heard_seconds_total").increment((to_ms - from_ms).div_ceil(1000));
        let most_ms = if self.engine.snapshot().question.is_some() { URGENT_ANSWER_MS } else { URGENT_MS };
        // What a client commits by hand is wanted whatever comes after it; a look is void once there is a newer one.
        let look = self.engine.hears_somebody();
        let score = Language::of(&language).has_sentences();
        let order = Order { session: session_key(&self.id), urgent: to_ms - from_ms <= most_ms, look };
        let task = self.tasks.spawn(async move {
            let watch = Stopwatch::start();
            let (waited, result) = recogniser.recognise_told(Job { samples, score, language, order }).await;
            let worked = watch.elapsed().saturating_sub(waited);
            metrics::histogram!("voxgate_recognition_seconds").record(worked.as_secs_f64());
            let _ = back.send(Deed::Heard(utterance, to_ms, Listened { result, waited, worked })).await;
        });
        self.outstanding.recognitions.push((utterance, to_ms, task));
    }

    /// Nobody waits for this recognition any more: one that has not begun is skipped.
    fn forget(&mut self, utterance: UtteranceId, to_ms: u64) {
        self.outstanding.recognitions.retain(|(of, to, task)| {
            let wanted = (*of, *to) != (utterance, to_ms);
            if !wanted { task.abort() }
            wanted
        });
    }

    /// Asks the judge of turns, beside the loop: it computes.
    fn judge_turn(&mut self, utterance: UtteranceId, from_ms: u64, to_ms: u64) {
        let (Some(judge), Some(ear)) = (self.parts.judge.clone(), &self.ear) else { return };
        let (sound, back) = (ear.slice(from_ms, to_ms), self.results_in.clone());
        self.outstanding.judgements += 1;
        self.tasks.spawn(async move {
            let watch = Stopwatch::start();
            let complete = tokio::task::spawn_blocking(move || judge.complete(&sound)).await.ok();
            metrics::histogram!("voxgate_turn_judgement_seconds").record(watch.elapsed().as_secs_f64());
            let _ = back.send(Deed::Judged(utterance, to_ms, complete)).await;
        });
    }

    fn heard(&mut self, utterance: UtteranceId, to_ms: u64, listened: Listened) {
        let Listened { result, waited, worked } = listened;
        self.outstanding.recognitions.retain(|(of, to, _)| (*of, *to) != (utterance, to_ms));
        if let Ok(heard) = &result {
            self.meter.add(worked);
            tracing::debug!(session = %self.id, %utterance, text = %heard.text, "heard");
        }
        if matches!(result, Err(SttError::Busy)) || waited >= LATE {
            metrics::counter!("voxgate_recognition_overload_total").increment(1);
            if self.overload.is_news() {
                self.input(Input::Overloaded);
            }
        }
        // The look that made it void answers for it.
        if !matches!(result, Err(SttError::Superseded)) {
            self.input(Input::Heard { utterance, to_ms, result: result.map_err(|e| e.to_string()) });
        }
        let later = self.outstanding.judged_later.take_if(|(of, _, to)| (*of, *to) == (utterance, to_ms));
        // A command has closed by its words alone.
        if let Some((utterance, from_ms, to_ms)) = later.filter(|_| self.engine.hears_somebody()) {
            self.judge_turn(utterance, from_ms, to_ms);
        }
    }

    fn step(&mut self, request: StepRequest) {
        let (agent, back, turn) = (self.parts.agent.clone(), self.results_in.clone(), request.turn);
        self.outstanding.responses += 1;
        let handle = self.tasks.spawn(async move {
            let (out, mut said) = mpsc::channel::<AgentOutput>(64);
            let response = agent.step(request, out);
            tokio::pin!(response);
            let mut ended: Option<Result<(), AgentError>> = None;
            loop {
                tokio::select! {
                    biased;
                    output = said.recv() => match output {
                        Some(output) => { if back.send(Deed::Agent(turn, output)).await.is_err() { return } }
                        None => break,
                    },
                    result = &mut response, if ended.is_none() => ended = Some(result),
                }
            }
            let result = match ended { Some(result) => result, None => response.await };
            let _ = back.send(Deed::AgentEnd(turn, result.err().map(|e| e.to_string()))).await;
        });
        self.step = Some((turn, handle));
    }

    /// What is there may have changed: asks for the names that ordinary speech may nearly say.
    fn look_up_titles(&mut self) {
        let (titles, back) = (self.runner.titles(HINTS_MAX), self.results_in.clone());
        self.tasks.spawn(async move { let _ = back.send(Deed::Titles(titles.await)).await; });
    }

    fn cancel_step(&mut self, turn: TurnId) {
        if let Some((_, handle)) = self.step.take_if(|(t, _)| *t == turn) {
            handle.abort();
            self.outstanding.responses = self.outstanding.responses.saturating_sub(1);
        }
    }

    fn run_call(&mut self, permit: Permit, call: ToolCall) {
        let (id, back) = (call.id.clone(), self.results_in.clone());
        self.outstanding.tools.push((id.clone(), Stopwatch::start()));
        let running = self.runner.run(permit, call);
        for handed in self.runner.clients().take_offered() { self.mouth.tell(LegOutput::Handed { call: handed.id }) }
        self.tasks.spawn(async move {
            let outcome = running.await;
            let _ = back.send(Deed::Tool(id, outcome)).await;
        });
    }

    /// The event before this says that the mode is loosened. Only if it is in the log does the gate turn.
    fn loosen(&mut self, to: Posture) {
        if self.written {
            self.engine.gate().flip(to);
            self.pending.push_back(Input::Loosened);
        } else {
            self.pending.push_back(Input::LogFailed);
        }
    }

    fn make_sound(&mut self) {
        let Some(job) = self.mouth.next_job() else { return };
        let text = speakable(&job.text);
        let silent = text.trim().is_empty() || self.port.as_ref().is_some_and(|p| !p.spec.speaks);
        let back = self.results_in.clone();
        if silent {
            let nothing = Speech { samples: Vec::new(), rate_hz: self.parts.voice.rate_hz() };
            self.sound_made(Ok(Arc::new(nothing)));
            return self.make_sound();
        }
        let voice = self.parts.voice.clone();
        self.tasks.spawn(async move {
            let watch = Stopwatch::start();
            let made = voice.synthesise(text).await.map(Arc::new).map_err(|e| e.to_string());
            metrics::histogram!("voxgate_synthesis_seconds").record(watch.elapsed().as_secs_f64());
            let _ = back.send(Deed::Sound(made)).await;
        });
    }

    fn sound_made(&mut self, made: Result<Arc<Speech>, String>) {
        let now = self.clock.now();
        if let Some(input) = self.mouth.made(now, made) {
            self.input(input);
        }
    }

    fn deed(&mut self, deed: Deed) {
        match deed {
            Deed::Sound(made) => self.sound_made(made),
            Deed::Heard(utterance, to_ms, listened) => self.heard(utterance, to_ms, listened),
            Deed::Judged(utterance, to_ms, complete) => {
                self.outstanding.judgements = self.outstanding.judgements.saturating_sub(1);
                if let Some(complete) = complete { self.input(Input::TurnJudged { utterance, to_ms, complete }) }
            }
            Deed::Agent(turn, AgentOutput::Text(text)) => self.input(Input::AgentText { turn, text }),
            Deed::Agent(turn, AgentOutput::Call { id, tool, arguments }) => {
                let (tool, arguments) = self.prepared(tool, &arguments);
                self.input(Input::AgentCall { turn, id, tool, arguments });
            }
            Deed::AgentEnd(turn, failed) => {
                if self.step.take_if(|(t, _)| *t == turn).is_some() {
                    self.outstanding.responses = self.outstanding.responses.saturating_sub(1);
                }
                self.input(Input::AgentDone { turn, failed });
            }
            Deed::Tool(call, outcome) => {
                self.outstanding.tools.retain(|(c, _)| c != &call);
                metrics::counter!("voxgate_tool_calls_total", "success" => if outcome.success { "true" } else { "false" }).increment(1);
                self.input(Input::ToolDone { call, outcome });
                self.look_up_titles();
            }
            Deed::Titles(titles) => self.input(Input::Titles(titles)),
        }
    }

    /// Sound of the microphone, at the ear's rate.
    pub(super) fn sound_in(&mut self, samples: &[i16]) {
        self.record(samples);
        let Some(ear) = &mut self.ear else { return };
        for Framed { probability, level_dbfs } in ear.push(samples) {
            self.frames = self.frames.wrapping_add(1);
            if self.frames % LEVEL_EVERY == 0 && self.mirrors.count() > 0 {
                let text = feral::level(self.head(&message_id()), level_dbfs, probability >= 0.5);
                self.mirrors.passing(text.into());
            }
            self.input(Input::Frame(Frame { probability, level_dbfs }));
        }
    }

    /// What a device plays just now: the ear takes it out of what it hears.
    pub(super) fn sound_out(&mut self, samples: &[i16], rate_hz: u32) {
        if let Some(ear) = &mut self.ear { ear.reference(samples, rate_hz) }
    }

    fn head<'a>(&'a self, msg_id: &'a str) -> Head<'a> { Head { session_id: &self.id, msg_id, at_ms: super::clock::unix_ms() } }

    fn partial(&mut self, role: Role, for_agent: bool, text: &str) {
        if self.mirrors.count() > 0 {
            let frame = feral::partial_transcript(self.head(&message_id()), role, for_agent, text);
            self.mirrors.passing(frame.into());
        }
    }

    fn tick(&mut self) {
        self.card_tick();
        self.record(&[]);
        let missing = self.port.as_ref().is_some_and(|p| p.spec.hears && p.last_sound.elapsed() > MISSING_SOUND);
        if missing && self.engine.hears_somebody() {
            self.sound_in(&[0; EAR_FRAME]);
        }
    }

    fn leg_input(&mut self, message: Option<LegInput>) {
        let Some(message) = message else { return self.drop_port("it has gone") };
        match message {
            LegInput::Audio(samples) => {
                if let Some(port) = &mut self.port { port.last_sound = Stopwatch::start() }
                self.sound_in(&samples);
            }
            LegInput::Commit { item } => self.input(Input::Commit { item }),
            LegInput::Clear => self.input(Input::Clear),
            LegInput::Turns(t) => self.input(Input::LegTurns(Turns {
                automatic: t.automatic, silence_ms: t.silence_ms, threshold: t.threshold, create_response: t.create_response, interrupt: t.interrupt_response,
            })),
            LegInput::Instructions(text) => {
                self.brief_due = self.is_remote();
                if let Some(port) = &mut self.port { port.instructed = port.instructed.wrapping_add(1) }
                self.input(Input::Instructions(text));
            }
            LegInput::Speaks(speaks) => {
                if let Some(port) = &mut self.port { port.spec.speaks = speaks }
                self.input(Input::LegSpeaks(speaks));
            }
            LegInput::Text { item, text } => self.input(Input::ClientText { item, text }),
            LegInput::CreateResponse => self.input(Input::CreateResponse),
            LegInput::CancelResponse => self.input(Input::CancelResponse),
            LegInput::Truncate { item, audio_end_ms } => self.input(Input::Truncate { item, heard_ms: audio_end_ms }),
            LegInput::Delete { item } => self.input(Input::Delete { item }),
            LegInput::Notice { code, message } => self.input(Input::Notice { code, message }),
            LegInput::Provider(FromProvider::Interrupted) => self.input(Input::Interrupted),
            LegInput::Provider(from) => {
                let remote = self.of_provider(from);
                self.input(Input::Remote(remote));
            }
            LegInput::Functions(functions) => {
                let specs = self.runner.clients().declare(&functions);
                self.input(Input::Remote(Remote::Tools(specs)));
            }
            LegInput::History => {
                let items = self.engine.history();
                self.mouth.tell(LegOutput::History(items));
            }
            LegInput::Answer { call, output } => { self.runner.clients().answered(&call, &output); }
        }
    }

    /// A call as somebody wrote it, with the tool's own name and checked arguments.
    fn prepared(&self, tool: String, arguments: &str) -> (String, Result<serde_json::Value, ToolOutcome>) {
        let arguments = self.parts.catalogue.prepare(&tool, arguments);
        (self.parts.catalogue.spec(&tool).map_or(tool, |s| s.name.clone()), arguments)
    }

    fn of_provider(&self, from: FromProvider) -> Remote {
        match from {
            FromProvider::Began => Remote::Began,
            FromProvider::Sounds(ms) => Remote::Sounds { ms },
            FromProvider::Words(text) => Remote::Words(text),
            FromProvider::Silenced | FromProvider::Interrupted => Remote::Silenced,
            FromProvider::Line { role, item, text } => Remote::Line { role, item, text },
            FromProvider::Call { id, tool, arguments } => {
                let (tool, arguments) = self.prepared(tool, &arguments);
                Remote::Call { id, tool, arguments }
            }
            FromProvider::Away => Remote::Away,
            FromProvider::Done(end) => Remote::Done(match end {
                LegEnd::Completed => TurnEnd::Completed,
                LegEnd::Interrupted => TurnEnd::Interrupted,
                LegEnd::Cancelled => TurnEnd::Cancelled,
                LegEnd::Failed => TurnEnd::Failed,
            }),
        }
    }

    fn drop_port(&mut self, why: &str) {
        if self.port.take().is_some() {
            tracing::info!(session = %self.id, why, "leg let go");
            self.mouth.play_to_nobody();
            self.ear = None;
            self.runner.clients().gone();
            self.input(Input::LegGone);
        }
    }

    /// Somebody is there to be heard: a recording begins, or goes on, and that is said.
    fn begin_recording(&mut self) {
        let now = self.clock.now();
        match &mut self.recorder {
            Recorder::On(recording) => recording.resume(now),
            Recorder::Ready(open) => {
                let begun = open().map_err(|why| format!("This conversation is not recorded: {why}."));
                let begun = begun.and_then(|file| Recording::begin(file, now).map_err(|error| format!("This conversation is not recorded: {error}.")));
                let (recorder, code, message) = match begun {
                    Ok(recording) => (Recorder::On(Box::new(recording)), "recording", "The sound of this conversation is recorded on the gateway's machine.".into()),
                    Err(message) => (Recorder::Off, "recording_failed", message),
                };
                self.recorder = recorder;
                self.pending.push_back(Input::Notice { code: code.into(), message });
            }
            Recorder::Off => {}
        }
    }

    fn record(&mut self, said: &[i16]) {
        let Recorder::On(recording) = &mut self.recorder else { return };
        self.mouth.tapped().into_iter().for_each(|played| recording.played(played));
        if let Err(error) = recording.said(self.clock.now(), said, self.ear_hz) {
            self.recorder = Recorder::Off;
            self.input(Input::Notice { code: "recording_failed".into(), message: format!("The recording has ended: {error}.") });
        }
    }

    fn end_recording(&mut self) {
        if let Recorder::On(recording) = std::mem::replace(&mut self.recorder, Recorder::Off)
            && let Err(error) = recording.finish()
        {
            tracing::error!(session = %self.id, %error, "the recording was not closed");
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Decide(action, reply) => {
                let ticket = self.ticket(reply);
                self.input(Input::Decide(action, ticket));
            }
            Command::Chat(door, text, reply) => self.chat(door, &text, reply),
            Command::Snapshot(reply) => { let _ = reply.send(self.engine.snapshot().clone()); }
            Command::Subscribe(since, reply) => {
                let subscription = self.mirrors.subscribe(self.engine.taken().clone(), since);
                if reply.send(subscription).is_ok() {
                    self.input(Input::Announced);
                }
            }
            Command::Attach(spec, reply) => self.attach(spec, reply),
            Command::Autonomy(level) => self.input(Input::Autonomy(level)),
            Command::Rest => self.closing = true,
            Command::Close(reason) => {
                self.input(Input::End { reason });
                self.closing = true;
            }
        }
    }

    fn attach(&mut self, spec: LegSpec, reply: oneshot::Sender<Result<LegPort, AttachRefused>>) {
        let held = self.device.clone().or_else(|| self.port.as_ref().filter(|p| !p.spec.displaceable).map(|p| p.spec.name.clone()));
        if let Some(name) = held {
            let _ = reply.send(Err(AttachRefused::Held(name)));
            return;
        }
        if self.port.is_some() {
            self.mouth.tell(LegOutput::Closed { reason: "another client has taken this conversation's microphone".into() });
            self.drop_port("another took its place");
        }
        let (tx, output) = mpsc::channel(LEG_QUEUE * 4);
        let (input, rx) = mpsc::channel(LEG_QUEUE);
        if reply.send(Ok(LegPort { input, output })).is_err() {
            return;
        }
        let facts = LegFacts { hears: spec.hears, speaks: spec.speaks, holds: false, remote: spec.remote };
        self.brief_due = spec.remote;
        let vad = self.parts.vad.make();
        self.ear = spec.hears.then(|| EarEnd::new(16_000).with_vad(if spec.remote { Box::new(Asleep::around(vad)) } else { vad }));
        self.mouth.play_to_socket(tx);
        self.port = Some(Port { input: rx, spec, last_sound: Stopwatch::start(), instructed: 0 });
        self.begin_recording();
        self.input(Input::LegAttached(facts));
        self.look_up_titles();
    }

    fn chat(&mut self, door: OperatorDoor, text: &str, reply: oneshot::Sender<Result<Done, Declined>>) {
        let ticket = self.ticket(reply);
        let chat = door.as_surface(Surface::Chat);
        let decide = |decide| Input::Decide(chat.decide(decide, text), ticket);
        match feral::parse_chat_command(text) {
            None => self.input(Input::Typed { door, text: text.to_string(), ticket }),
            Some(ChatCommand::Enter { reason, then_submit }) => {
                self.input(decide(Decide::Enter { reason: reason.clone() }));
                if then_submit && !reason.is_empty() {
                    let (quiet, _) = oneshot::channel();
                    let ticket = self.ticket(quiet);
                    self.input(Input::Typed { door, text: reason, ticket });
                }
            }
            Some(ChatCommand::Approve { version }) => self.input(decide(Decide::Approve { version, hash: None })),
            Some(ChatCommand::Leave) => self.input(decide(Decide::Leave)),
            Some(ChatCommand::Decide(what)) => self.input(decide(what)),
            Some(ChatCommand::Mode(mode)) => self.input(decide(Decide::Mode(mode))),
            Some(ChatCommand::Modes) => {
                let message = feral::modes_line(self.engine.snapshot());
                self.reply(ticket, Reply { ok: true, code: "ok", message });
            }
            Some(ChatCommand::Status) => self.input(Input::Report(ticket)),
            Some(ChatCommand::Usage) => self.reply(ticket, Reply { ok: false, code: "usage", message: feral::USAGE.to_string() }),
        }
    }

    fn ticket(&mut self, reply: oneshot::Sender<Result<Done, Declined>>) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.tickets.insert(ticket, reply);
        ticket
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply) {
        if let Some(waiting) = self.tickets.remove(&ticket) {
            let answer = if reply.ok { Ok(Done { code: reply.code, message: reply.message }) } else { Err(Declined { code: reply.code, message: reply.message }) };
            let _ = waiting.send(answer);
        }
    }
}

fn leg_output(note: LegNote) -> LegOutput {
    match note {
        LegNote::SpeechStarted(utterance, at_ms, item) => LegOutput::SpeechStarted { utterance, at_ms, item },
        LegNote::SpeechStopped(utterance, at_ms, item) => LegOutput::SpeechStopped { utterance, at_ms, item },
        LegNote::Committed(item) => LegOutput::Committed { item },
        LegNote::UserTranscript(item, text) => LegOutput::UserTranscript { item, text },
        LegNote::TurnBegan(turn) => LegOutput::TurnBegan { turn },
        LegNote::TurnEnded(turn, end) => LegOutput::TurnEnded { turn, end: leg_end(end) },
        LegNote::Judged(consumed) => LegOutput::Judged { consumed },
    }
}

fn leg_end(end: TurnEnd) -> LegEnd {
    match end {
        TurnEnd::Completed => LegEnd::Completed,
        TurnEnd::Interrupted => LegEnd::Interrupted,
        TurnEnd::Cancelled => LegEnd::Cancelled,
        TurnEnd::Failed => LegEnd::Failed,
    }
}

fn count_up(count: &Count) {
    match count {
        Count::Intent { decision, reason } => metrics::counter!("voxgate_voice_intent_total", "decision" => *decision, "reason" => *reason).increment(1),
        Count::Blocked { surface, effect } => metrics::counter!("voxgate_plan_mode_blocked_total", "surface" => *surface, "effect" => *effect).increment(1),
        Count::BargeIn => metrics::counter!("voxgate_barge_in_total").increment(1),
        Count::Duck => metrics::counter!("voxgate_playback_ducked_total").increment(1),
        Count::Resume => metrics::counter!("voxgate_playback_resumed_total").increment(1),
        Count::FalseInterruption => metrics::counter!("voxgate_false_interruptions_total").increment(1),
        Count::JoinedTurn => metrics::counter!("voxgate_joined_turns_total").increment(1),
        Count::ProviderInterrupted => metrics::counter!("voxgate_provider_interrupted_ignored_total").increment(1),
    }
}

fn message_id() -> String { ids::message_id().unwrap_or_default() }
