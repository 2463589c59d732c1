//! Speech over playback: what the floor decides is done to the mouth.

use super::super::heard::Heard;
use super::super::id::UtteranceId;
use super::super::input::{Action, Count, CutWhy};
use super::super::intent::{Decision, decide};
use super::super::grammar::words_of;
use super::super::turn::{Move, Words, words_over_playback};
use super::Engine;

impl Engine {
    /// Something is audible, or an answer is on its way: what somebody says now is said over it.
    pub(super) fn has_something_to_say(&self) -> bool { self.mouth.is_busy() || self.turns.is_working() }

    pub(super) fn take_breath(&mut self, utterance: UtteranceId) {
        let sounding = self.mouth.is_sounding();
        let next = self.ears.floor.over(utterance, sounding);
        self.make(next);
    }

    /// Voice goes on after a look, maybe after playback came back for what was heard then.
    pub(super) fn goes_on(&mut self, utterance: UtteranceId) {
        let next = self.ears.floor.goes_on(utterance);
        self.make(next);
    }

    /// Playback that cannot hold its breath is stopped by voice alone, once there is enough of it.
    pub(super) fn insists(&mut self, utterance: UtteranceId) {
        if self.leg.is_some_and(|l| l.holds) || !self.ears.floor.was_over(utterance) {
            return;
        }
        self.tell_speech(utterance);
        let next = self.ears.floor.insists(utterance);
        self.make(next);
    }

    /// Words of an utterance that was spoken over playback decide whether that is cut or comes back.
    pub(super) fn words_decide(&mut self, utterance: UtteranceId, heard: &Heard, early: bool) {
        let Some(open) = self.ears.listener.ear().current().filter(|u| u.id == utterance) else { return };
        let (began, last, goes_on) = (open.began_at, open.last_at, early && !open.over);
        let decision = decide(heard, &self.table, &self.moment());
        let words = words_of(&heard.text);
        let judged = self.without_echo(&words, decision.clone(), began, last);
        let Some(said) = self.said_over(&heard.text, judged.as_ref().unwrap_or(&decision), judged.is_none(), early) else { return };
        let next = self.ears.floor.words(utterance, said, goes_on);
        if next == Some(Move::Cut) { self.tell_speech(utterance) }
        self.make(next);
    }

    fn said_over(&self, text: &str, decision: &Decision, echo: bool, early: bool) -> Option<Words> {
        if echo {
            return (!early).then_some(Words::None);
        }
        words_over_playback(text, decision, early)
    }

    pub(super) fn floor_timer(&mut self) {
        let ear = self.ears.listener.ear();
        let quiet = ear.current().filter(|u| u.over || ear.silence_ms() > 0).map(|u| u.last_at);
        let next = self.ears.floor.tick(self.now, quiet, &ear.settings);
        self.make(next);
    }

    /// The utterance is closed. Answers whether it was said over playback and leaves that alone, and what its words were to it.
    pub(super) fn close_floor(&mut self, utterance: UtteranceId, text: &str, decision: &Decision, echo: bool) -> (bool, Words) {
        let said = self.said_over(text, decision, echo, false).unwrap_or(Words::Real);
        // While an agent thinks, or a question's words are still coming, "okay" wants nothing; as an answer it is judged.
        let pending = self.turns.is_working() && !self.asked_is_heard() && said == Words::Backchannel;
        let (over, taken) = (self.ears.floor.was_over(utterance), self.ears.floor.was_taken(utterance));
        let answers = self.asked_is_heard() && said == Words::Backchannel;
        let leaves = said != Words::Real && !answers && (over || pending);
        self.leave_floor();
        if leaves && over {
            self.count(Count::FalseInterruption);
            if taken { self.say_rest() }
        }
        self.mouth.rest = None;
        (leaves, said)
    }

    /// Nobody wants the floor any more.
    pub(super) fn leave_floor(&mut self) {
        let next = self.ears.floor.closed();
        self.make(next);
    }

    fn make(&mut self, next: Option<Move>) {
        match next {
            Some(Move::Hold) => self.duck(),
            Some(Move::Resume) => self.unduck(),
            Some(Move::Cut) => { self.cut_speech(CutWhy::Interrupted); }
            None => {}
        }
    }

    fn duck(&mut self) {
        if !self.leg.is_some_and(|l| l.holds) {
            return;
        }
        let Some(id) = self.mouth.hold_breath(self.now) else { return };
        self.count(Count::Duck);
        self.act(Action::Duck(id));
    }

    fn unduck(&mut self) {
        if let Some(id) = self.mouth.breathe(self.now) {
            self.count(Count::Resume);
            self.act(Action::Resume(id));
        }
    }
}
