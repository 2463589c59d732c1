//! Saying things, one after the other: the queue of speeches, their segments, and what was heard of each.

use std::collections::VecDeque;

use super::super::event::{EventKind, Role};
use super::super::id::{ItemId, Ms, QuestionId, SpeechId, TurnId};
use super::super::input::{Action, Count, CutWhy};
use super::super::segment::{Segmenter, heard_part};
use super::super::authority::Surface;
use super::super::intent::{Decision, decide_text};
use super::{Engine, QUIET_AFTER_MS, QUIET_BEFORE_MS};
use super::echo::{Measure, Sounded, fit, measure_for, tightens, timeline};
use crate::media::earcon::Earcon;

/// Speeches that wait at most; the oldest plain ones go first.
const WAITING_MAX: usize = 32;
/// The word in which playback was held counts as heard.
const WORD_MS: u64 = 300;
/// What was said lately is remembered this long, to know an echo by.
const ECHO_MEMORY_MS: u64 = 30_000;
/// A letter of a segment whose length is not known yet, in milliseconds.
const LETTER_MS: u64 = 65;

/// What a speech is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// The agent's answer.
    Agent(TurnId),
    /// A question; when it was heard to the end, an answer counts.
    Question(QuestionId),
    /// The gateway's own words.
    Plain,
    /// What mode is on; a newer one takes the place of one that still waits.
    Mode,
}

#[derive(Debug)]
struct Speech {
    id: SpeechId,
    item: ItemId,
    purpose: Purpose,
    earcon: Option<Earcon>,
    segments: Vec<String>,
    said: usize,
    lengths: Vec<Option<u64>>,
    complete: bool,
    begun: bool,
    ended: bool,
    began_at: Ms,
    /// A sample of it can have been heard.
    sounds: bool,
    /// When its first sound was there.
    sounds_from: Option<Ms>,
}

#[derive(Debug)]
struct Said {
    from: Ms,
    to: Ms,
    words: Vec<Sounded>,
}

/// A speech that holds its breath, since when, and how much of it was heard by then.
#[derive(Clone, Copy, Debug)]
struct Ducked {
    id: SpeechId,
    at: Ms,
    heard_ms: Option<u64>,
}

/// The mouth's state.
#[derive(Debug)]
pub(super) struct Mouth {
    queue: VecDeque<Speech>,
    segmenter: Segmenter,
    next: u64,
    recent: VecDeque<Said>,
    last_text: String,
    /// Item of a speech that ended, with its text and length, for a client's late truncation.
    last_item: Option<(ItemId, String, u64)>,
    last_sample_at: Option<Ms>,
    cutting: bool,
    /// It holds its breath, with what was heard of it before, once that is known.
    ducked: Option<Ducked>,
    /// When the speech that is being cut fell silent, if that was before.
    silent_from: Option<Ms>,
    /// Engine time at which something last began to sound.
    sounded_at: Option<Ms>,
    /// It is being cut because somebody spoke.
    by_voice: bool,
    /// What was not heard of a speech that was cut by voice alone, until words say whether that was right.
    pub(super) rest: Option<(Purpose, Vec<String>)>,
    /// What a client says it played of the speech that is being cut; it knows better than we do.
    played_ms: Option<u64>,
}

impl Mouth {
    pub(super) fn new(first: u64) -> Self {
        Self { queue: VecDeque::new(), segmenter: Segmenter::default(), next: first, recent: VecDeque::new(), last_text: String::new(), last_item: None, last_sample_at: None, cutting: false, ducked: None, silent_from: None, sounded_at: None, by_voice: false, rest: None, played_ms: None }
    }

    pub(super) fn is_busy(&self) -> bool { !self.queue.is_empty() }

    /// Something is being played, or about to be.
    pub(super) fn is_audible(&self) -> bool { self.queue.front().is_some_and(|s| s.begun && !s.segments.is_empty()) }

    /// A sample of what is being said can have been heard.
    pub(super) fn is_sounding(&self) -> bool { self.queue.front().is_some_and(|s| s.begun && s.sounds) }

    /// Engine time at which something last began to sound.
    pub(super) fn sounded_at(&self) -> Option<Ms> { self.sounded_at }

    /// What is being said, if it does not hold its breath yet; from now on it does.
    pub(super) fn hold_breath(&mut self, now: Ms) -> Option<SpeechId> {
        let id = self.queue.front().filter(|s| s.begun && !self.cutting && self.ducked.is_none()).map(|s| s.id)?;
        self.ducked = Some(Ducked { id, at: now, heard_ms: None });
        Some(id)
    }

    /// What holds its breath; from now on it does not.
    pub(super) fn breathe(&mut self, now: Ms) -> Option<SpeechId> {
        let Ducked { id, at, .. } = self.ducked.take()?;
        // What is still to be said sounds later by the time it was held.
        if let Some(from) = self.queue.front_mut().filter(|s| s.id == id).and_then(|s| s.sounds_from.as_mut()) { *from += now.saturating_sub(at) }
        self.begins_to_sound(now);
        Some(id)
    }

    /// The words of a speech that have begun to sound: none of those that it holds its breath before.
    fn sounded_so_far(&self, speech: &Speech, now: Ms) -> Vec<Sounded> {
        let from = speech.sounds_from.unwrap_or(speech.began_at);
        let held = self.ducked.filter(|d| d.id == speech.id).map(|d| d.heard_ms.map_or(d.at, |heard| from + heard));
        let until = held.map_or(now, |at| at + WORD_MS);
        let mut words = sounded(speech, from);
        words.retain(|w| w.from <= until);
        words
    }

    /// The first sample is there: it sounds, unless it holds its breath.
    fn begins_to_sound(&mut self, now: Ms) {
        let ducked = self.ducked.map(|d| d.id);
        let Some(speech) = self.queue.front_mut().filter(|s| s.begun && !s.sounds && ducked != Some(s.id)) else { return };
        if speech.lengths.iter().flatten().any(|ms| *ms > 0) {
            speech.sounds = true;
            self.sounded_at = Some(now);
        }
    }

    /// Engine time of the last sample that was played, while nothing plays.
    pub(super) fn silent_since(&self) -> Option<Ms> { self.last_sample_at }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize { self.queue.len() }

    /// Something waits to be said.
    pub(super) fn has_words_waiting(&self) -> bool { self.queue.iter().any(|s| !s.begun && !s.segments.is_empty()) }

    pub(super) fn has_question(&self, id: &QuestionId) -> bool { self.queue.iter().any(|s| s.purpose == Purpose::Question(id.clone())) }
}

impl Engine {
    /// The gateway says something of its own.
    pub(super) fn say_plain(&mut self, text: impl Into<String>) { self.say(Purpose::Plain, text.into(), None) }

    pub(super) fn say(&mut self, purpose: Purpose, text: String, earcon: Option<Earcon>) {
        let text = framed(text);
        if purpose == Purpose::Mode {
            self.mouth.queue.retain(|s| s.begun || s.purpose != Purpose::Mode);
        }
        let mut segmenter = Segmenter::default();
        let mut segments = segmenter.push(&text);
        segments.extend(segmenter.finish());
        self.enqueue(purpose, segments, true, earcon);
    }

    fn enqueue(&mut self, purpose: Purpose, segments: Vec<String>, complete: bool, earcon: Option<Earcon>) {
        if self.mouth.queue.len() >= WAITING_MAX {
            if let Some(old) = self.mouth.queue.iter().position(|s| !s.begun && matches!(s.purpose, Purpose::Plain | Purpose::Mode)) {
                self.mouth.queue.remove(old);
            }
        }
        let speech = self.new_speech(purpose, segments, complete, earcon);
        // What the gateway has to say about a decision comes before an agent's answer that has not begun.
        let urgent = !matches!(speech.purpose, Purpose::Agent(_));
        let place = if urgent { self.mouth.queue.iter().position(|s| !s.begun && matches!(s.purpose, Purpose::Agent(_))) } else { None };
        match place {
            Some(at) => self.mouth.queue.insert(at, speech),
            None => self.mouth.queue.push_back(speech),
        }
    }

    fn new_speech(&mut self, purpose: Purpose, segments: Vec<String>, complete: bool, earcon: Option<Earcon>) -> Speech {
        let id = SpeechId(self.mouth.next);
        self.mouth.next += 1;
        let item = self.item();
        let lengths = vec![None; segments.len()];
        Speech { id, item, purpose, earcon, segments, said: 0, lengths, complete, begun: false, ended: false, began_at: 0, sounds: false, sounds_from: None }
    }

    /// More of the agent's text.
    pub(super) fn say_more(&mut self, turn: TurnId, text: &str) {
        let segments = self.mouth.segmenter.push(text);
        for segment in segments {
            self.add_segment(turn, segment);
        }
    }

    /// The agent's text of this response has ended.
    pub(super) fn say_end(&mut self, turn: TurnId) {
        if let Some(rest) = self.mouth.segmenter.finish() {
            self.add_segment(turn, rest);
        }
        if let Some(speech) = self.mouth.queue.iter_mut().find(|s| s.purpose == Purpose::Agent(turn) && !s.complete) {
            speech.complete = true;
        }
    }

    fn add_segment(&mut self, turn: TurnId, segment: String) {
        match self.mouth.queue.iter_mut().find(|s| s.purpose == Purpose::Agent(turn) && !s.complete) {
            Some(speech) => {
                speech.segments.push(segment);
                speech.lengths.push(None);
            }
            None => self.enqueue(Purpose::Agent(turn), vec![segment], false, None),
        }
    }

    /// Lets the speech at the head of the queue go on.
    pub(super) fn pump_mouth(&mut self) {
        while let Some(speech) = self.mouth.queue.front_mut() {
            if speech.segments.is_empty() && speech.complete {
                self.mouth.queue.pop_front();
                continue;
            }
            if self.leg.is_none() {
                if !speech.complete { return }
                self.show_unspoken();
                continue;
            }
            // Nothing begins while somebody has the floor.
            if speech.segments.is_empty() || self.mouth.cutting || !speech.begun && self.ears.floor.is_held() {
                return;
            }
            self.begin_and_say();
            return;
        }
    }

    fn begin_and_say(&mut self) {
        let now = self.now;
        let Some(speech) = self.mouth.queue.front_mut() else { return };
        let mut actions = Vec::new();
        if !speech.begun {
            speech.begun = true;
            speech.began_at = now;
            let turn = if let Purpose::Agent(turn) = speech.purpose { Some(turn) } else { None };
            actions.push(Action::BeginSpeech { speech: speech.id, item: speech.item.clone(), turn, earcon: speech.earcon.take() });
        }
        let mut partial = false;
        while speech.said < speech.segments.len() {
            let segment = speech.said;
            actions.push(Action::Say { speech: speech.id, segment, text: speech.segments[segment].clone() });
            speech.said += 1;
            partial = true;
        }
        if partial {
            actions.push(Action::Partial { role: Role::Assistant, for_agent: matches!(speech.purpose, Purpose::Agent(_)), text: speech.segments.join(" ") });
        }
        if speech.complete && !speech.ended {
            speech.ended = true;
            actions.push(Action::EndSpeech(speech.id));
        }
        actions.into_iter().for_each(|a| self.act(a));
    }

    /// Nobody listens: the words go to the chat at once.
    fn show_unspoken(&mut self) {
        let Some(speech) = self.mouth.queue.pop_front() else { return };
        let text = speech.segments.join(" ");
        self.finish_speech(&speech, text, 0, 0);
    }

    pub(super) fn on_synthesised(&mut self, speech: SpeechId, segment: usize, result: Result<u64, String>) {
        let failed = match result {
            Ok(ms) => {
                let now = self.now;
                if let Some(s) = self.mouth.queue.iter_mut().find(|s| s.id == speech) {
                    if ms > 0 { s.sounds_from.get_or_insert(now); }
                    if let Some(slot) = s.lengths.get_mut(segment) { *slot = Some(ms) }
                }
                self.mouth.begins_to_sound(self.now);
                return;
            }
            Err(message) => message,
        };
        if let Some(s) = self.mouth.queue.iter_mut().find(|s| s.id == speech) {
            if let Some(slot) = s.lengths.get_mut(segment) { *slot = Some(0) }
        }
        self.notice("voice_failed", format!("This could not be spoken, only shown: {failed}"));
    }

    pub(super) fn on_drained(&mut self, id: SpeechId) {
        if self.mouth.queue.front().is_none_or(|s| s.id != id) {
            return;
        }
        let Some(speech) = self.mouth.queue.pop_front() else { return };
        self.mouth.ducked = None;
        let total: u64 = speech.lengths.iter().flatten().sum();
        let text = speech.segments.join(" ");
        self.remember(&speech, total, self.now);
        self.finish_speech(&speech, text, total, total);
        if let Purpose::Question(question) = &speech.purpose {
            self.question_was_heard(question);
        }
    }

    /// What was audible of a speech, and until when: only that can come back as an echo.
    fn remember(&mut self, speech: &Speech, heard_ms: u64, to: Ms) {
        self.mouth.last_sample_at = Some(to);
        let from = to.saturating_sub(heard_ms);
        let mut words = sounded(speech, from);
        words.retain(|w| w.from < to);
        self.mouth.recent.push_back(Said { from, to, words });
        let horizon = to.saturating_sub(ECHO_MEMORY_MS);
        self.mouth.recent.retain(|s| s.to >= horizon);
    }

    /// The last word about a speech: its event, and its line in the transcript.
    fn finish_speech(&mut self, speech: &Speech, heard: String, heard_ms: u64, total_ms: u64) {
        let text = speech.segments.join(" ");
        self.mouth.last_item = Some((speech.item.clone(), text.clone(), total_ms));
        if !matches!(speech.purpose, Purpose::Agent(_)) || !text.is_empty() {
            self.mouth.last_text = text.clone();
        }
        self.event(EventKind::Speech { speech: speech.id, text, heard_ms, total_ms });
        if !heard.is_empty() {
            let for_agent = matches!(speech.purpose, Purpose::Agent(_));
            let surface = if for_agent { Surface::Client } else { Surface::Gateway };
            self.event(EventKind::Transcript { role: Role::Assistant, text: heard, item: speech.item.clone(), utterance: None, for_agent, surface });
        }
        if let Purpose::Question(question) = &speech.purpose { self.question_was_said(question) }
    }

    /// Stops what is being said. Answers true when something was.
    pub(super) fn cut_speech(&mut self, why: CutWhy) -> bool {
        let Some(speech) = self.mouth.queue.front() else { return false };
        if !speech.begun || self.mouth.cutting {
            return false;
        }
        let id = speech.id;
        self.mouth.cutting = true;
        // Held before it was cut: it has been silent since then.
        self.mouth.silent_from = self.mouth.ducked.take().map(|d| d.at);
        self.mouth.by_voice = why == CutWhy::Interrupted;
        if why == CutWhy::Interrupted {
            self.count(Count::BargeIn);
        }
        self.act(Action::CutSpeech(id, why));
        true
    }

    /// The agent says no more: what of it has not begun is dropped, what has begun ends where it is.
    pub(super) fn end_agent_speech(&mut self) {
        self.mouth.queue.retain(|s| s.begun || !matches!(s.purpose, Purpose::Agent(_)));
        self.mouth.segmenter = Segmenter::default();
        self.mouth.rest = None;
        for speech in self.mouth.queue.iter_mut().filter(|s| matches!(s.purpose, Purpose::Agent(_))) {
            speech.complete = true;
        }
    }

    /// Nothing that waits to be said is said.
    pub(super) fn drop_unbegun(&mut self) {
        self.end_agent_speech();
        self.mouth.queue.retain(|s| s.begun);
    }

    pub(super) fn on_was_cut(&mut self, id: SpeechId, heard_ms: u64) {
        self.mouth.cutting = false;
        let heard_ms = self.mouth.played_ms.take().unwrap_or(heard_ms);
        if self.mouth.queue.front().is_none_or(|s| s.id != id) {
            return;
        }
        let Some(speech) = self.mouth.queue.pop_front() else { return };
        if let Purpose::Agent(_) = speech.purpose {
            self.mouth.segmenter = Segmenter::default();
        }
        let (heard, total) = heard_of(&speech, heard_ms);
        let to = self.mouth.silent_from.take().unwrap_or(self.now);
        if self.mouth.by_voice && !matches!(speech.purpose, Purpose::Question(_)) {
            self.mouth.rest = Some((speech.purpose.clone(), unheard(&speech, heard_ms)));
        }
        self.remember(&speech, heard_ms.min(total), to);
        self.finish_speech(&speech, heard, heard_ms.min(total), total);
    }

    /// It was cut for nothing, and its listener has thrown the sound away: it is said again from the sentence that was cut.
    pub(super) fn say_rest(&mut self) {
        let Some((purpose, segments)) = self.mouth.rest.take().filter(|(_, s)| !s.is_empty()) else { return };
        let speech = self.new_speech(purpose, segments, true, None);
        let first = usize::from(self.mouth.queue.front().is_some_and(|s| s.begun));
        self.mouth.queue.insert(first, speech);
        self.count(Count::Resume);
    }

    /// The leg has changed: what was being said has no mouth any more.
    pub(super) fn mouth_leg_changed(&mut self) {
        self.mouth.cutting = false;
        self.mouth.ducked = None;
        self.mouth.rest = None;
        self.mouth.played_ms = None;
        if self.mouth.queue.front().is_some_and(|s| s.begun) {
            let Some(mut speech) = self.mouth.queue.pop_front() else { return };
            speech.complete = true;
            let text = speech.segments.join(" ");
            self.finish_speech(&speech, text, 0, 0);
        }
        self.mouth.last_sample_at = None;
    }

    /// A client says late how much it played of the last item.
    pub(super) fn on_truncate(&mut self, item: &ItemId, heard_ms: u64) {
        if self.mouth.queue.front().is_some_and(|s| s.begun && &s.item == item) {
            self.mouth.played_ms = Some(heard_ms);
            self.cut_speech(CutWhy::Interrupted);
            return;
        }
        let Some((last, text, total)) = self.mouth.last_item.clone() else { return };
        if &last == item && heard_ms < total {
            let heard = heard_part(&text, heard_ms, total);
            let known = self.snap.transcript.iter().rev().find(|l| &l.item == item).map(|l| (l.for_agent, l.surface));
            if let Some((for_agent, surface)) = known {
                self.event(EventKind::Transcript { role: Role::Assistant, text: heard, item: item.clone(), utterance: None, for_agent, surface });
            }
        }
    }

    /// An item is taken out: its line stays, empty, and the agent is not shown it.
    pub(super) fn on_delete(&mut self, item: &ItemId) {
        let known = self.snap.transcript.iter().rev().find(|l| &l.item == item).map(|l| (l.role, l.for_agent, l.surface));
        if let Some((role, for_agent, surface)) = known {
            self.event(EventKind::Transcript { role, text: String::new(), item: item.clone(), utterance: None, for_agent, surface });
        }
    }

    /// What an utterance decides when our own voice is taken out of it; `None` when nothing is left, so that it was an echo.
    pub(super) fn without_echo(&self, words: &[String], decision: Decision, began: Ms, ended: Ms) -> Option<Decision> {
        let measure = measure_for(&decision, words, self.language());
        let said = self.sounded_around(began, ended, measure);
        if said.is_empty() || words.is_empty() {
            return Some(decision);
        }
        let fit = fit(words, &said);
        if fit.likeness < measure.likeness {
            return Some(decision);
        }
        // Beside our voice somebody may have said something that does no harm: that is heard.
        let moment = self.moment();
        let own = [&words[..fit.before], &words[words.len() - fit.after..]];
        own.into_iter().filter(|part| !part.is_empty()).map(|part| decide_text(&part.join(" "), &moment)).find(tightens)
    }

    /// The words of ours that an utterance could be an echo of, in order.
    fn sounded_around(&self, began: Ms, ended: Ms, measure: Measure) -> Vec<String> {
        // In the tail: what began late enough and ended late enough is a person's answer, however alike the words are.
        let overlaps = |s: &&Said| ended >= s.from && (began < s.to + QUIET_BEFORE_MS || ended < s.to + QUIET_AFTER_MS) && began <= s.to + QUIET_AFTER_MS;
        let playing = self.mouth.queue.front().filter(|s| s.begun).map(|s| self.mouth.sounded_so_far(s, self.now)).unwrap_or_default();
        let remote = self.remote_sounded();
        let all = self.mouth.recent.iter().filter(overlaps).flat_map(|s| &s.words).chain(&remote).chain(&playing);
        all.filter(|w| w.to + measure.late_ms > began && w.from < ended + measure.early_ms).map(|w| w.word.clone()).collect()
    }

    pub(super) fn on_ducked(&mut self, speech: SpeechId, heard_ms: u64) {
        if let Some(ducked) = self.mouth.ducked.as_mut().filter(|d| d.id == speech) { ducked.heard_ms = Some(heard_ms) }
    }

    /// A question that was just closed is not said to its end.
    pub(super) fn cut_question(&mut self) {
        if self.mouth.queue.front().is_some_and(|s| s.begun && matches!(s.purpose, Purpose::Question(_))) {
            self.cut_speech(CutWhy::Cancelled);
        }
    }

    /// The question's words, unless they are being said, need not be said any more.
    pub(super) fn drop_question_speech(&mut self, id: &QuestionId) {
        self.mouth.queue.retain(|s| s.begun || s.purpose != Purpose::Question(id.clone()));
    }

    pub(super) fn mouth_waits_to_say(&self, text: &str) -> bool {
        self.mouth.queue.iter().any(|s| s.purpose == Purpose::Plain && s.segments.join(" ") == text)
    }

    pub(super) fn last_said(&self) -> String { self.mouth.last_text.clone() }
}

/// No prompt begins or ends with an approving sentence, whoever wrote the words in it: its echo could answer a question.
fn framed(text: String) -> String {
    if super::super::grammar::begins_or_ends_approving(&text) { format!("These are the words: {text} That is where they end.") } else { text }
}

/// The segments of a speech that were not heard to their end in `heard_ms`.
fn unheard(speech: &Speech, heard_ms: u64) -> Vec<String> {
    let mut end = 0;
    let whole = speech.lengths.iter().take_while(|l| l.is_some_and(|ms| { end += ms; end <= heard_ms })).count();
    speech.segments[whole.min(speech.segments.len())..].to_vec()
}

/// The words of a speech that have been asked for, each with its time.
fn sounded(speech: &Speech, from: Ms) -> Vec<Sounded> {
    let guess = |text: &str| text.len() as u64 * LETTER_MS;
    let asked = speech.segments[..speech.said].iter().zip(&speech.lengths);
    timeline(asked.map(|(text, length)| (text.clone(), length.unwrap_or_else(|| guess(text)))), from)
}

/// The words of a speech that were heard in `heard_ms`, segment by segment, and its whole length so far.
fn heard_of(speech: &Speech, heard_ms: u64) -> (String, u64) {
    let mut left = heard_ms;
    let mut heard: Vec<String> = Vec::new();
    let total: u64 = speech.lengths.iter().flatten().sum();
    for (text, length) in speech.segments.iter().zip(&speech.lengths) {
        let Some(length) = *length else { break };
        if left >= length {
            heard.push(text.clone());
            left -= length;
            continue;
        }
        let part = heard_part(text, left, length);
        if !part.is_empty() { heard.push(part) }
        break;
    }
    (heard.join(" "), total)
}
