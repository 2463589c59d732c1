//! From frames to utterances to decisions: when to look, when an utterance is over, and what its words do.

use super::super::authority::Surface;
use super::super::event::{EventKind, QuestionState, Role};
use super::super::grammar::words_of;
use super::super::heard::Heard;
use super::super::id::{ItemId, Ms, UtteranceId};
use super::super::input::{Action, Count, LegNote, Turns as TurnSettings};
use super::super::intent::{Decision, Moment, Open, decide};
use super::super::junk::is_stock_closer;
use super::super::readback::{with_digits, with_titles};
use super::super::turn::{Closed, EarEvent, EarSettings, FRAME_MS, Floor, Frame, LONGEST_MS, Listener, Told, Utterance, Words};
use super::join::LastTurn;
use super::{Engine, QUIET_AFTER_MS, QUIET_BEFORE_MS};

/// A loosening sentence shorter than this was not said.
const LOOSEN_SHORTEST_MS: u64 = 350;
/// The end of what was committed just now can be heard once more; shorter than this it is nobody's beginning.
const SCRAP_MS: u64 = 240;
/// Recognitions that may fail in a row before hearing counts as broken.
const FAILURES_MAX: u32 = 3;

#[derive(Debug)]
struct Committed {
    utterance: UtteranceId,
    item: ItemId,
    to_ms: u64,
    began_at: Ms,
    /// Where the ear heard somebody begin in it.
    spoken_at: Option<Ms>,
    /// The ear carried out a part of it already.
    acted: bool,
}

/// Everything about hearing.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) listener: Listener,
    pub(super) floor: Floor,
    /// The last ordinary turn, while a second half may still join it.
    pub(super) last: Option<LastTurn>,
    committed: Option<Committed>,
    commit_from_ms: u64,
    /// Where somebody began to say words that wait for the client's commit.
    spoken_at: Option<Ms>,
    /// End of the last utterance that the ear carried out although the client takes its turns by hand.
    acted_ms: u64,
    item: Option<ItemId>,
    pub(super) told: bool,
    pub(super) create_response: bool,
    pub(super) interrupt: bool,
    want_response: bool,
    failures: u32,
    pub(super) broken: bool,
}

impl Ears {
    pub(super) fn new(settings: EarSettings, first: u64) -> Self {
        Self {
            listener: Listener::new(settings, first), floor: Floor::default(), last: None, committed: None, commit_from_ms: 0, spoken_at: None, acted_ms: 0, item: None, told: false,
            create_response: true, interrupt: true, want_response: false, failures: 0, broken: false,
        }
    }

    pub(super) fn reset(&mut self, settings: EarSettings) {
        let first = self.listener.ear().next_id();
        *self = Self { failures: self.failures, broken: self.broken, ..Self::new(settings, first) };
    }

    pub(super) fn is_busy(&self) -> bool { self.hears_somebody() || self.committed.is_some() }

    pub(super) fn hears_somebody(&self) -> bool { self.listener.ear().current().is_some() }

    pub(super) fn is_recognising(&self) -> bool { self.listener.is_recognising() || self.committed.is_some() }

    /// When to look again although no frame comes.
    pub(super) fn deadline(&self) -> Option<Ms> { self.listener.ear().starves_at() }

    /// An utterance is open that began at or before this time.
    pub(super) fn speaking_since(&self, at: Ms) -> bool { self.listener.ear().current().is_some_and(|u| u.began_at <= at) }

    /// Somebody began at or before this time to say what has not been judged yet: it goes on, is being recognised, or waits for the
    /// client's commit, which holds no more than [`LONGEST_MS`].
    pub(super) fn answering_since(&self, at: Ms, now: Ms) -> bool {
        self.speaking_since(at) || self.is_recognising() || self.spoken_at.is_some_and(|from| from <= at && now < from + LONGEST_MS)
    }

    fn settings(&self) -> &EarSettings { &self.listener.ear().settings }
}

impl Engine {
    pub(super) fn on_turn_settings(&mut self, turns: TurnSettings) {
        let base = self.config.ear;
        let on = turns.threshold.map_or(base.on, |t| t.clamp(0.05, 0.95));
        *self.ears.listener.settings_mut() = EarSettings {
            on, off: (on - (base.on - base.off)).max(0.05), silence_ms: turns.silence_ms.map_or(base.silence_ms, |ms| u64::from(ms.clamp(100, 10_000))),
            automatic: turns.automatic, ..base
        };
        self.ears.create_response = turns.create_response;
        self.ears.interrupt = turns.interrupt;
        if !turns.interrupt { self.leave_floor() }
    }

    pub(super) fn on_frame(&mut self, frame: Frame) {
        let playing = self.ears.interrupt && self.has_something_to_say();
        for event in self.ears.listener.frame(self.now, frame, playing) {
            self.on_ear(event);
        }
        self.floor_timer();
        self.try_close();
    }

    /// Frames may have stopped coming.
    pub(super) fn ears_timer(&mut self) {
        for event in self.ears.listener.tick(self.now) {
            self.on_ear(event);
        }
        self.floor_timer();
        self.try_close();
    }

    fn on_ear(&mut self, event: EarEvent) {
        match event {
            EarEvent::Onset { .. } => { self.ears.item = None; self.ears.told = false }
            EarEvent::Over(utterance) => self.take_breath(utterance),
            EarEvent::Sustained(utterance) => if !self.ears.floor.was_over(utterance) { self.tell_speech(utterance) },
            EarEvent::Insistent(utterance) => self.insists(utterance),
            EarEvent::Look { utterance, from_ms, to_ms, early } => {
                if !early && !self.ears.floor.was_over(utterance) { self.tell_speech(utterance) }
                self.act(Action::Recognise { utterance, from_ms, to_ms });
                if !early { self.act(Action::JudgeTurn { utterance, from_ms: Listener::judged_from(from_ms, to_ms), to_ms }) }
            }
            EarEvent::Void { utterance, to_ms } => {
                self.act(Action::Forget { utterance, to_ms });
                self.goes_on(utterance);
            }
            EarEvent::Click(_) => self.leave_floor(),
        }
    }

    /// The leg hears of an utterance once it is more than a click, and only where turns are taken by ear.
    pub(super) fn tell_speech(&mut self, utterance: UtteranceId) {
        if self.ears.told || !self.ears.settings().automatic {
            return;
        }
        self.ears.told = true;
        let item = self.utterance_item();
        let at = self.ears.listener.ear().current().map_or(0, |u| u.began_ms);
        self.act(Action::Leg(LegNote::SpeechStarted(utterance, at, item)));
    }

    fn utterance_item(&mut self) -> ItemId {
        if let Some(item) = &self.ears.item { return item.clone() }
        let item = self.item();
        self.ears.item = Some(item.clone());
        item
    }

    pub(super) fn on_heard(&mut self, utterance: UtteranceId, to_ms: u64, result: Result<Heard, String>) {
        let heard = match result {
            Ok(heard) => { self.hearing_works(); heard }
            Err(message) => { self.hearing_failed(&message); Heard::default() }
        };
        if self.ears.committed.as_ref().is_some_and(|c| c.utterance == utterance && c.to_ms == to_ms) {
            let Some(committed) = self.ears.committed.take() else { return };
            self.on_committed(committed, &heard);
            return;
        }
        match self.ears.listener.heard(utterance, to_ms, heard.clone()) {
            Told::Whole => {
                if !heard.text.is_empty() {
                    self.out.push_back(super::Output::Action(Action::Partial { role: Role::User, for_agent: true, text: heard.text.clone() }));
                }
                self.words_decide(utterance, &heard, false);
                self.try_close();
            }
            Told::Early => self.words_decide(utterance, &heard, true),
            Told::Stale => {}
        }
    }

    pub(super) fn on_turn_judged(&mut self, utterance: UtteranceId, to_ms: u64, complete: f32) {
        self.ears.listener.judged(utterance, to_ms, complete);
        self.try_close();
    }

    fn hearing_works(&mut self) {
        self.ears.failures = 0;
        if std::mem::take(&mut self.ears.broken) {
            self.notice("hearing_back", "I can hear again.");
        }
    }

    fn hearing_failed(&mut self, message: &str) {
        self.ears.failures += 1;
        self.notice("hearing_failed", format!("I did not catch that: {message}"));
        if self.ears.failures >= FAILURES_MAX && !self.ears.broken {
            self.ears.broken = true;
        }
        self.open_window_anew();
        self.say_plain("I had trouble hearing that. Please say it once more.");
    }

    /// Too many speak at once for the recognisers: shown and said, so that nobody wonders why answers are late.
    pub(super) fn on_overload(&mut self) {
        self.notice("hearing_overloaded", "Many are speaking at once; I hear you with a delay. Buttons and typed words work as always.");
        self.say_plain("I am busy and hear you late just now.");
    }

    /// Closes the open utterance once its words are known and enough silence has passed for what they decide.
    fn try_close(&mut self) {
        if self.ears.listener.words().is_none() {
            return;
        }
        let moment = self.moment();
        let table = self.table.clone();
        if let Some(closed) = self.ears.listener.close(|heard| decide(heard, &table, &moment)) {
            self.close_utterance(closed);
        }
    }

    /// What is open now, for the judge.
    pub(super) fn moment(&self) -> Moment {
        let open = match self.question().filter(|q| matches!(q.state, QuestionState::Asked | QuestionState::Heard) && !q.screen_only) {
            Some(q) => match q.kind {
                super::super::event::QuestionKind::Tool => Open::Tool,
                super::super::event::QuestionKind::Leave => Open::Leave,
                super::super::event::QuestionKind::Approve => q.version.map_or(Open::Nothing, Open::Approve),
            },
            None => Open::Nothing,
        };
        Moment { open, in_plan: self.snap.in_plan(), waiting: self.snap.waiting().map(|p| p.version), language: self.language() }
    }

    fn close_utterance(&mut self, closed: Closed) {
        let automatic = self.ears.settings().automatic;
        let consumed = self.close_and_decide(closed);
        // What waits for a commit by hand is judged then, but for what the ear obeys at once.
        if self.is_remote() && (automatic || consumed) { self.act(Action::Leg(LegNote::Judged(consumed))) }
    }

    /// Answers whether the words were for the gateway: a command, an answer, or what it only heard of itself.
    fn close_and_decide(&mut self, closed: Closed) -> bool {
        let Closed { utterance, heard, decision, .. } = closed;
        let automatic = self.ears.settings().automatic;
        let item = self.utterance_item();
        let words = words_of(&heard.text);
        let judged = self.without_echo(&words, decision.clone(), utterance.began_at, utterance.last_at);
        let (went_on, said) = self.close_floor(utterance.id, &heard.text, judged.as_ref().unwrap_or(&decision), judged.is_none());
        if automatic && (!went_on || self.ears.told) {
            self.tell_stopped(&utterance, &item, &heard.text);
        }
        self.ears.item = None;
        if automatic {
            // Taken by the ear: a commit by hand that comes later has only what is said from here on.
            self.ears.commit_from_ms = utterance.last_ms;
            self.ears.spoken_at = None;
        } else if !words.is_empty() && utterance.last_ms - utterance.began_ms >= SCRAP_MS {
            self.ears.spoken_at.get_or_insert(utterance.began_at);
        }
        if went_on {
            // It was said while listening. Playback has gone on; nothing else comes of it.
            self.count(Count::Intent { decision: decision.name(), reason: if said == Words::None { "false_interruption" } else { "backchannel" } });
            if said == Words::Backchannel { self.transcript(utterance.id, &heard.text, item, false) }
            self.reask();
            return false;
        }
        if words.is_empty() && matches!(decision, Decision::None | Decision::Neither { .. }) {
            self.count(Count::Intent { decision: "none", reason: "no_words" });
            self.reask();
            return false;
        }
        let Some(mut decision) = judged else {
            self.count(Count::Intent { decision: decision.name(), reason: "echo" });
            self.reask();
            return true;
        };
        if !automatic {
            if !matches!(decision, Decision::Enter | Decision::Stop | Decision::CancelTurn | Decision::Deny | Decision::Hold) {
                return false;
            }
            self.ears.acted_ms = utterance.last_ms;
        }
        if matches!(decision, Decision::None) && is_stock_closer(&words) {
            self.count(Count::Intent { decision: "none", reason: "stock_closer" });
            return false;
        }
        if decision.loosens() && !self.may_loosen(&utterance) {
            self.not_counted(utterance.id, &heard.text, item, &decision);
            return true;
        }
        self.take_back_if_hasty(utterance.began_at);
        let joins = automatic && self.may_join(utterance.began_at);
        // What answers no question that was heard is the second half of what was said before it.
        if joins && matches!(decision, Decision::Neither { bare: false }) && !self.asked_is_heard() { decision = Decision::None }
        let ordinary = matches!(decision, Decision::None);
        if self.is_remote() {
            return self.decide_beside_provider(utterance.id, &heard.text, item, decision);
        }
        if joins && ordinary {
            self.join_turn(&utterance, &heard.text, item);
            return false;
        }
        self.ears.last = (ordinary && automatic && self.ears.create_response).then(|| LastTurn { item: item.clone(), text: heard.text.clone(), ended_at: utterance.last_at });
        self.on_words(utterance.id, &heard.text, item, decision, true);
        !ordinary
    }

    fn tell_stopped(&mut self, utterance: &Utterance, item: &ItemId, text: &str) {
        self.tell_speech(utterance.id);
        self.act(Action::Leg(LegNote::SpeechStopped(utterance.id, utterance.last_ms, item.clone())));
        self.act(Action::Leg(LegNote::Committed(item.clone())));
        let text = (!text.is_empty()).then(|| text.to_string());
        self.act(Action::Leg(LegNote::UserTranscript(item.clone(), text)));
    }

    /// Nothing said while the voice is audible, or right after it, loosens anything.
    fn may_loosen(&self, utterance: &Utterance) -> bool {
        let after = |at| utterance.began_at >= at + QUIET_BEFORE_MS && utterance.last_at >= at + QUIET_AFTER_MS;
        let quiet = self.mouth.silent_since().is_none_or(after) && self.remote_silent_since().is_none_or(after);
        quiet && !self.remote_is_audible() && !self.mouth.is_audible() && utterance.last_ms - utterance.began_ms >= LOOSEN_SHORTEST_MS
            && self.question().is_none_or(|q| q.state != QuestionState::Asked)
    }

    fn not_counted(&mut self, utterance: UtteranceId, text: &str, item: ItemId, decision: &Decision) {
        self.count(Count::Intent { decision: decision.name(), reason: "over_playback" });
        self.transcript(utterance, text, item, false);
        match self.question().map(|q| q.state) {
            Some(QuestionState::Asked) => self.ask_once_more(),
            Some(QuestionState::Heard) => {
                self.open_window_anew();
                self.say_plain("That came too soon for me. Please say that once more.");
            }
            _ => self.say_plain("I was still speaking. Please say that once more."),
        }
    }

    pub(super) fn transcript(&mut self, utterance: UtteranceId, text: &str, item: ItemId, for_agent: bool) {
        self.event(EventKind::Transcript { role: Role::User, text: text.to_string(), item, utterance: Some(utterance), for_agent, surface: Surface::Voice });
    }

    /// The client commits by hand: what was heard since the last commit is judged as one utterance.
    pub(super) fn on_commit(&mut self, item: ItemId) {
        let to_ms = self.ears.listener.ear().now_ms();
        let from_ms = self.ears.commit_from_ms.max(to_ms.saturating_sub(LONGEST_MS));
        self.ears.commit_from_ms = to_ms;
        let open = self.ears.listener.ear().current().map(|u| u.began_at);
        let spoken_at = self.ears.spoken_at.take().or(open);
        self.drop_open();
        let utterance = UtteranceId(self.fresh());
        self.act(Action::Leg(LegNote::Committed(item.clone())));
        let began_at = self.now.saturating_sub(to_ms - from_ms);
        self.ears.committed = Some(Committed { utterance, item, to_ms, began_at, spoken_at, acted: self.ears.acted_ms > from_ms });
        self.act(Action::Recognise { utterance, from_ms, to_ms });
    }

    pub(super) fn on_clear(&mut self) {
        self.ears.commit_from_ms = self.ears.listener.ear().now_ms();
        self.ears.spoken_at = None;
        self.drop_open();
    }

    /// What is open belongs to the client's commit now, or to nothing.
    fn drop_open(&mut self) {
        if let Some((utterance, to_ms)) = self.ears.listener.looking() {
            self.act(Action::Forget { utterance, to_ms });
        }
        self.ears.listener.drop_open();
        self.leave_floor();
    }

    fn on_committed(&mut self, committed: Committed, heard: &Heard) {
        let consumed = self.committed_decides(committed, heard);
        if self.is_remote() { self.act(Action::Leg(LegNote::Judged(consumed))) }
    }

    /// Answers whether the words were for the gateway, as [`Engine::close_and_decide`] does.
    fn committed_decides(&mut self, committed: Committed, heard: &Heard) -> bool {
        let Committed { utterance, item, began_at, spoken_at, acted, .. } = committed;
        let text = (!heard.text.is_empty()).then(|| heard.text.clone());
        self.act(Action::Leg(LegNote::UserTranscript(item.clone(), text)));
        let decision = decide(heard, &self.table, &self.moment());
        let want = std::mem::take(&mut self.ears.want_response);
        if words_of(&heard.text).is_empty() && !matches!(decision, Decision::Deny | Decision::Stop) {
            if want { self.on_create_response() }
            return false;
        }
        // Between two commits the microphone may have been open all the time, and our own voice in it.
        let words = words_of(&heard.text);
        // Where the ear heard nobody begin, the words began no earlier than they take to be said.
        let from = spoken_at.unwrap_or_else(|| began_at.max(self.now.saturating_sub(1_000 + 600 * words.len() as u64)));
        let Some(decision) = self.without_echo(&words, decision.clone(), from, self.now) else {
            self.count(Count::Intent { decision: decision.name(), reason: "echo" });
            self.transcript(utterance, &heard.text, item, false);
            if want { self.say_plain("I only heard myself. Please say that once more.") }
            return true;
        };
        let overlaps = |last: Ms| began_at < last + QUIET_BEFORE_MS && self.now < last + QUIET_AFTER_MS + FRAME_MS;
        let overlapped = self.mouth.is_audible() || self.remote_is_audible() || self.mouth.silent_since().is_some_and(overlaps) || self.remote_silent_since().is_some_and(overlaps);
        if decision.loosens() && overlapped {
            self.not_counted(utterance, &heard.text, item, &decision);
            return true;
        }
        let ordinary = matches!(decision, Decision::None);
        if acted && ordinary && is_short_answer(&words_of(&heard.text)) {
            // "No", "wait" and "stop" were obeyed when they were heard; the agent is not told of them a second time.
            self.transcript(utterance, &heard.text, item, false);
            if want { self.say_plain("All right.") }
            return true;
        }
        if self.is_remote() {
            return self.decide_beside_provider(utterance, &heard.text, item, decision);
        }
        self.on_words(utterance, &heard.text, item, decision, false);
        if want && ordinary { self.on_create_response() }
        !ordinary
    }

    /// `response.create` while a commit is still being recognised waits for its words.
    pub(super) fn response_must_wait(&mut self) -> bool {
        let waits = self.ears.committed.is_some();
        self.ears.want_response |= waits;
        waits
    }

    /// Ordinary speech as it is shown and as the agent gets it. What the grammar judged is never this.
    fn as_passed_on(&self, text: &str) -> String {
        let text = with_digits(text);
        let decides = self.question().is_some() || self.snap.waiting().is_some();
        if decides { text } else { with_titles(&text, &self.titles) }
    }

    /// In a proxied session: what is for the gateway takes effect, anything else the provider has heard itself and answers.
    fn decide_beside_provider(&mut self, utterance: UtteranceId, text: &str, item: ItemId, decision: Decision) -> bool {
        let passed_on = matches!(decision, Decision::None) || self.gives_up_on_question(&decision);
        self.count(Count::Intent { decision: decision.name(), reason: "accepted" });
        if passed_on {
            if !self.remote.transcribes { self.transcript(utterance, &self.as_passed_on(text), item, true) }
            return false;
        }
        self.transcript(utterance, text, item, false);
        self.decide_by_voice(utterance, text, decision);
        true
    }

    /// An utterance's words take effect. `by_ear`: its turn was ended by the ear, not by the client.
    fn on_words(&mut self, utterance: UtteranceId, text: &str, item: ItemId, decision: Decision, by_ear: bool) {
        let passed_on = matches!(decision, Decision::None) || self.gives_up_on_question(&decision);
        if passed_on {
            self.transcript(utterance, &self.as_passed_on(text), item, true);
        } else {
            self.transcript(utterance, text, item, false);
        }
        self.count(Count::Intent { decision: decision.name(), reason: "accepted" });
        if passed_on {
            if by_ear && self.ears.create_response || !by_ear && self.ears.settings().automatic {
                self.new_user_turn();
            }
            return;
        }
        self.decide_by_voice(utterance, text, decision);
    }
}

/// At most as long as what denies, holds or stops.
fn is_short_answer(words: &[String]) -> bool { words.len() <= 3 }

#[cfg(test)]
impl Engine {
    /// Tests: speech does not stop the voice.
    pub(super) fn ears_mut_interrupt(&mut self, on: bool) { self.ears.interrupt = on }
}
