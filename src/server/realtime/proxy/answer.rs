//! One answer as the client sees it, made of as many rounds as the provider needs: between them the gateway runs tools.

use serde_json::{Value, json};

use super::calls::Stands;
use super::{Create, Proxy, ROUNDS_MAX};
use crate::dialect::openai_realtime::upstream::{add_usage, response_create, simple};
use crate::engine::id::Ms;
use crate::session::leg::{FromProvider, LegEnd};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its name for the client: that of the first round.
    pub(super) id: String,
    /// The provider's response that is under way, or was last.
    pub(super) round: String,
    /// It is under way.
    pub(super) active: bool,
    /// Tools are run, or have been, and another round follows.
    pub(super) waits: bool,
    /// Its end is there and waits for what the gate says of a call.
    pub(super) end: Option<Value>,
    /// Places of the round's items: the provider's, the client's.
    pub(super) places: Vec<(u64, u64)>,
    /// The next place of an item.
    pub(super) next: u64,
    /// Sound of it has gone out.
    pub(super) sounded: bool,
    items: Vec<Value>,
    usage: Value,
    /// The response object as it began.
    began: Value,
    rounds: u32,
}

impl Answer {
    /// The client's place of an item.
    pub(super) fn place(&mut self, of: u64) -> u64 {
        if let Some((_, to)) = self.places.iter().find(|(from, _)| *from == of) { return *to }
        let to = self.next;
        self.next += 1;
        self.places.push((of, to));
        to
    }

    pub(super) fn add(&mut self, item: Value) { self.items.push(item) }
}

impl Proxy {
    /// `response.created` of the provider.
    pub(super) fn round_began(&mut self, event: Value) {
        let Some(id) = event["response"]["id"].as_str().map(str::to_string) else { return };
        self.asked = false;
        self.turn_ended = false;
        self.create = self.create.take_if(|c| !c.response.is_empty());
        if std::mem::take(&mut self.unwanted) {
            let event = self.own_event(None);
            return self.ask(&simple("response.cancel", &event, Some(("response_id", &id))));
        }
        self.tell_of(FromProvider::Began);
        if let Some(answer) = self.answer.as_mut().filter(|a| a.waits) {
            (answer.round, answer.active, answer.waits, answer.end) = (id, true, false, None);
            answer.places.clear();
            answer.rounds += 1;
            return;
        }
        let began = event["response"].clone();
        self.answer = Some(Answer {
            id: id.clone(), round: id, active: true, waits: false, end: None, places: Vec::new(), next: 0, sounded: false, items: Vec::new(), usage: Value::Null, began, rounds: 1,
        });
        self.show(event);
    }

    /// `response.done` of the provider.
    pub(super) fn round_ended(&mut self, now: Ms, event: Value) {
        let of = event["response"]["id"].as_str().unwrap_or_default().to_string();
        if self.answer.as_ref().is_none_or(|a| a.round != of || !a.active) { return }
        let completed = event["response"]["status"] == "completed";
        let items = event["response"]["output"].as_array().cloned().unwrap_or_default();
        for item in items.iter().filter(|i| i["type"] == "function_call") {
            let about = json!({"item": item});
            let Some(call) = self.call_of(&about).map(|c| c.id.clone()) else { continue };
            // A call that was cut off half way is none.
            if completed && item["status"].as_str().is_none_or(|s| s == "completed") {
                self.want(&call, item["arguments"].as_str().unwrap_or("{}"));
            }
        }
        self.calls.retain(|c| c.round != of || c.stands != Stands::Coming);
        if let Some(answer) = &mut self.answer { answer.end = Some(event) }
        self.round_may_end(now);
    }

    /// The round ends once the gate has decided about every call of the client's in it.
    pub(super) fn round_may_end(&mut self, now: Ms) {
        let Some(answer) = self.answer.as_mut().filter(|a| a.active && a.end.is_some()) else { return };
        let round = answer.round.clone();
        if self.calls.iter().any(|c| c.round == round && c.clients && matches!(c.stands, Stands::Coming | Stands::Asked)) { return }
        let Some(end) = answer.end.take() else { return };
        answer.active = false;
        let response = &end["response"];
        add_usage(&mut answer.usage, &response["usage"]);
        let mine: Vec<&super::Call> = self.calls.iter().filter(|c| c.round == round).collect();
        let shown = |item: &&Value| item["type"] != "function_call" || mine.iter().any(|c| Some(c.id.as_str()) == item["call_id"].as_str() && c.stands == Stands::Handed);
        let items: Vec<Value> = response["output"].as_array().into_iter().flatten().filter(shown).cloned().collect();
        let (handed, ours) = (mine.iter().any(|c| c.stands == Stands::Handed), mine.iter().any(|c| c.stands != Stands::Handed));
        answer.items.extend(items);
        let status = response["status"].as_str().unwrap_or("completed").to_string();
        let ended = match status.as_str() {
            "failed" => LegEnd::Failed,
            "cancelled" if response["status_details"]["reason"] == "client_cancelled" => LegEnd::Cancelled,
            "cancelled" => LegEnd::Interrupted,
            _ => LegEnd::Completed,
        };
        answer.waits = ours && !handed && status == "completed";
        let (waits, rounds) = (answer.waits, answer.rounds);
        self.flush_sounds();
        self.tell_of(FromProvider::Done(ended));
        if !waits {
            self.finish_answer(&status, response["status_details"].clone());
        } else if rounds >= ROUNDS_MAX {
            self.notice("too_many_steps", format!("The provider called tools {rounds} times in one answer and was stopped there."));
            self.finish_answer("incomplete", json!({"type": "incomplete", "reason": "max_output_tokens"}));
        }
        self.tell_outputs();
        self.say_waiting(now);
        self.try_create(now);
    }

    /// `response.done` for the client, with everything that it saw.
    fn finish_answer(&mut self, status: &str, details: Value) {
        let Some(answer) = self.answer.take() else { return };
        let mut response = answer.began;
        response["id"] = json!(answer.id);
        response["status"] = json!(status);
        response["status_details"] = details;
        response["output"] = Value::Array(answer.items);
        response["usage"] = answer.usage;
        let done = self.writer.response_done(response);
        self.send(done);
    }

    /// The answer ends here for the client, whatever the provider still does of it.
    pub(super) fn close_answer(&mut self, now: Ms, status: &str, reason: &str) {
        let Some(answer) = &self.answer else { return };
        let (round, was_active) = (answer.round.clone(), answer.active);
        self.end_words_in_answer();
        self.calls.retain(|c| c.round != round || c.stands != Stands::Coming);
        for call in self.calls.iter_mut().filter(|c| c.round == round && c.clients) { call.held.clear() }
        let details = if status == "completed" { Value::Null } else if status == "cancelled" { json!({"type": "cancelled", "reason": reason}) } else { json!({"type": status, "error": {"type": "server_error", "code": reason}}) };
        self.finish_answer(status, details);
        if was_active || status != "completed" {
            let how = if status == "failed" { LegEnd::Failed } else if reason == "client_cancelled" { LegEnd::Cancelled } else { LegEnd::Interrupted };
            self.tell_of(FromProvider::Done(how));
        }
        self.tell_of(FromProvider::Silenced);
        self.tell_outputs();
        self.say_waiting(now);
    }

    /// The provider is not to go on with its answer, and the client hears no more of it.
    pub(super) fn cut_answer(&mut self, now: Ms, reason: &str) {
        self.create = None;
        let Some(answer) = &self.answer else { return };
        if answer.active {
            let (round, event) = (answer.round.clone(), self.own_event(None));
            if self.kind.capabilities.cancels { self.ask(&simple("response.cancel", &event, Some(("response_id", &round)))) }
        }
        self.close_answer(now, "cancelled", reason);
    }

    /// A response is wanted.
    pub(super) fn want_create(&mut self, now: Ms, create: Create) {
        self.create = Some(create);
        self.try_create(now);
    }

    /// Asks for the response that is wanted, once nothing stands in its way.
    pub(super) fn try_create(&mut self, now: Ms) {
        let Some(create) = &self.create else { return };
        let judging = (self.verdict.listening.is_some() || self.verdict.committed.is_some()) && create.until.is_some_and(|at| now < at);
        let busy = self.asked || self.answer.as_ref().is_some_and(|a| a.active || !create.goes_on);
        if !self.ready || judging || busy || self.has_open_calls() || self.saying.is_some() || !self.waiting_words.is_empty() {
            return;
        }
        let Some(create) = self.create.take() else { return };
        self.asked = true;
        let event = self.own_event(create.event_id.as_deref());
        self.ask(&response_create(&event, create.response));
    }
}
