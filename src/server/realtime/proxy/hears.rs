//! What the provider says, on its way to the client.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{Create, Live, Proxy, Said, VERDICT_KEPT_MS};
use crate::dialect::openai_realtime::peek::Peek;
use crate::dialect::openai_realtime::upstream::{current_name, is_fatal, is_foreign_tool, simple};
use crate::engine::event::Role;
use crate::engine::id::{ItemId, Ms};
use crate::session::leg::FromProvider;

/// The conversation is told of so much sound at a time, in milliseconds.
const SOUNDS_TOLD_MS: u64 = 400;
const AUDIO: &str = "response.output_audio.delta";

impl Proxy {
    /// A frame of the provider. What is no event is dropped and counted.
    pub(super) fn provider(&mut self, now: Ms, frame: Bytes) {
        self.at(now);
        match &mut self.live {
            None => self.take(now, frame, false),
            Some(live) => if !std::str::from_utf8(&frame).is_ok_and(|text| live.frame(text)) { unread("no frame of its protocol") },
        }
        self.go_on(now);
    }

    /// A provider of another protocol has said things that the rest knows as events.
    fn said(&mut self, now: Ms, said: Said) {
        match said {
            Said::Event(frame) => self.take(now, frame, false),
            Said::Foreign(tool) => self.ran_a_tool(tool),
            // As if the person had interrupted: what has not begun is not begun, and what has is answered to nobody.
            Said::CallsCancelled => if self.answer.as_ref().is_some_and(|a| a.waits || a.end.is_some()) { self.close_answer(now, "cancelled", "turn_detected") },
        }
    }

    fn ran_a_tool(&mut self, tool: &str) {
        tracing::warn!(tool, "the provider ran a tool of its own");
        metrics::counter!("voxgate_foreign_tools_total").increment(1);
        self.notice("provider_ran_a_tool", "The provider used a tool of its own, which nothing here could have refused. The session was ended.".into());
        self.ending = Some((1008, "the provider used a tool of its own, so the session was ended".into()));
    }

    /// What waited for the gateway to have spoken goes on, in its order.
    pub(super) fn go_on(&mut self, now: Ms) {
        loop {
            while self.saying.is_none() && !self.holding {
                let Some(frame) = self.deferred.pop_front() else { break };
                self.deferred_bytes -= frame.len();
                self.take(now, frame, true);
            }
            let Some(said) = self.live.as_mut().and_then(Live::next_said) else { break };
            self.said(now, said);
        }
    }

    /// What the gateway says is not talked into: the provider's answer begins after it, and none of it overtakes the rest.
    fn take(&mut self, now: Ms, frame: Bytes, waited: bool) {
        let waits = self.saying.is_some() || self.holding || !waited && !self.deferred.is_empty();
        let Ok(text) = std::str::from_utf8(&frame) else { return unread("not UTF-8") };
        let peek = Peek::at(text);
        if let Some(peek) = &peek && let Some(kind) = peek.text("type") && current_name(kind) == AUDIO {
            if waits { return self.defer(frame, waited) }
            if self.sound(peek, kind, &frame) { return }
        }
        let Ok(mut event) = serde_json::from_str::<Value>(text) else { return unread("not JSON") };
        shape(&mut event);
        let Some(kind) = event["type"].as_str().map(|k| current_name(k).to_string()) else { return unread("without a type") };
        let of_an_answer = kind.starts_with("response.") || kind.starts_with("conversation.item.") && event["item"].is_object();
        if waits && of_an_answer { return self.defer(frame, waited) }
        if kind == "response.created" && self.answer.as_ref().is_some_and(|a| !a.waits) {
            // One that the provider began by itself while another was not done: the older one is over, and what waited to be said comes
            // between the two.
            self.close_answer(now, "cancelled", "turn_detected");
            if self.saying.is_some() { return self.defer(frame, true) }
        }
        self.event(now, &kind, event);
    }

    fn defer(&mut self, frame: Bytes, first: bool) {
        self.deferred_bytes += frame.len();
        if first { self.deferred.push_front(frame) } else { self.deferred.push_back(frame) }
    }

    /// Sound goes on as it came; only names that the client knows by other ones are written over. False: it has to go the slow way.
    fn sound(&mut self, peek: &Peek, kind: &str, frame: &Bytes) -> bool {
        let (Some(response), Some(delta), Some(index), Some(_)) = (peek.text("response_id"), peek.text("delta"), peek.number("output_index"), peek.text("event_id")) else { return false };
        let Some(answer) = self.answer.as_mut().filter(|a| a.active && a.round == response) else {
            // Of an answer that is over for the client.
            return true;
        };
        let place = answer.place(index);
        answer.sounded = true;
        if kind == AUDIO && place == index && answer.id == response {
            self.send(frame.clone());
        } else {
            let (id, place) = (answer.id.clone(), place.to_string());
            let changed = peek.with(&[("type", AUDIO), ("response_id", &id), ("output_index", &place)]);
            self.send(changed);
        }
        self.count_sound(delta);
        true
    }

    fn count_sound(&mut self, delta: &str) {
        let before = self.sounds_ms;
        self.sounds_ms += Self::length_ms(self.session.output_format, delta);
        if before == 0 || self.sounds_ms >= SOUNDS_TOLD_MS { self.flush_sounds_but(1) }
    }

    /// Tells the conversation of all sound so far. `keep` stays, as a sign that some was told.
    fn flush_sounds_but(&mut self, keep: u64) {
        let ms = self.sounds_ms.saturating_sub(keep);
        self.sounds_ms = keep;
        if ms > 0 { self.tell_of(FromProvider::Sounds(ms)) }
    }

    pub(super) fn flush_sounds(&mut self) { self.flush_sounds_but(0) }

    fn event(&mut self, now: Ms, kind: &str, mut event: Value) {
        if is_foreign_tool(&event) {
            let tool = event["item"]["type"].as_str().unwrap_or(kind).to_string();
            return self.ran_a_tool(&tool);
        }
        event["type"] = json!(kind);
        match kind {
            "session.created" => self.provider_ready(),
            // The client has been answered already, in its own words.
            "session.updated" | "conversation.created" | "ping" => {}
            "error" => self.trouble(now, &event),
            "input_audio_buffer.speech_started" => {
                self.show(event);
                self.interrupted(now);
            }
            "input_audio_buffer.committed" => self.turn_closed(now, event),
            "input_audio_buffer.speech_stopped" | "input_audio_buffer.cleared" | "input_audio_buffer.timeout_triggered" | "rate_limits.updated" | "conversation.item.truncated"
            | "conversation.item.deleted" | "conversation.item.retrieved" | "conversation.item.input_audio_transcription.delta" | "conversation.item.input_audio_transcription.segment"
            | "conversation.item.input_audio_transcription.failed" => self.show_visible(event),
            "conversation.item.input_audio_transcription.completed" => {
                self.line(Role::User, &event["item_id"], &event["transcript"]);
                self.show_visible(event);
            }
            "conversation.item.created" => {
                event["type"] = json!("conversation.item.added");
                let done = json!({"type": "conversation.item.done", "item": event["item"], "previous_item_id": event["previous_item_id"]});
                let theirs = event["item"]["role"] == "assistant";
                self.item(event);
                if !theirs { self.item(done) }
            }
            "conversation.item.added" | "conversation.item.done" => self.item(event),
            "response.created" => self.round_began(event),
            "response.done" => self.round_ended(now, event),
            _ if kind.starts_with("response.") => self.of_response(kind, event),
            other => tracing::debug!(kind = other, "an event of the provider that no client knows was dropped"),
        }
    }

    /// An event of the response that is under way.
    fn of_response(&mut self, kind: &str, mut event: Value) {
        let Some(round) = self.answer.as_ref().filter(|a| a.active).map(|a| a.round.clone()) else { return };
        match &event["response_id"] {
            Value::String(of) if *of == round => {}
            Value::Null => event["response_id"] = json!(round),
            _ => return,
        }
        let is_call = event["item"]["type"] == "function_call" || kind.starts_with("response.function_call_arguments.");
        if is_call {
            return self.of_call(kind, event);
        }
        if !matches!(kind, "response.output_item.added" | "response.output_item.done" | "response.content_part.added" | "response.content_part.done" | "response.output_text.delta"
            | "response.output_text.done" | "response.output_audio.delta" | "response.output_audio.done" | "response.output_audio_transcript.delta" | "response.output_audio_transcript.done") {
            return tracing::debug!(kind, "an event of the provider that no client knows was dropped");
        }
        match kind {
            "response.output_audio.delta" => {
                if let Some(answer) = &mut self.answer { answer.sounded = true }
                let delta = event["delta"].as_str().unwrap_or_default().to_string(); self.count_sound(&delta);
            }
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                if let Some(answer) = &mut self.answer { answer.sounded = true }
                let words = event["delta"].as_str().unwrap_or_default().to_string();
                self.tell_of(FromProvider::Words(words));
            }
            "response.output_audio_transcript.done" => self.line(Role::Assistant, &event["item_id"], &event["transcript"]),
            "response.output_text.done" => self.line(Role::Assistant, &event["item_id"], &event["text"]),
            "response.content_part.done" if event["part"].is_null() => event["part"] = json!({"type": "audio", "transcript": ""}),
            _ => {}
        }
        for name in ["output_index", "content_index"] {
            if event[name].is_null() && (name == "output_index" || !kind.starts_with("response.output_item")) { event[name] = json!(0) }
        }
        self.show(event);
    }

    /// An event about a call: the gateway's own is swallowed, the client's is kept until the gate has decided.
    fn of_call(&mut self, kind: &str, event: Value) {
        let Some(call) = self.call_of(&event) else { return };
        let id = call.id.clone();
        if call.clients && call.is_open() { call.held.push(event.clone()) }
        if kind == "response.output_item.done" && event["item"]["status"].as_str().is_none_or(|s| s == "completed") {
            self.want(&id, event["item"]["arguments"].as_str().unwrap_or("{}"));
        }
    }

    /// An item of the conversation. Calls and their outputs are seen by whom they concern.
    fn item(&mut self, event: Value) {
        let item = &event["item"];
        let id = item["id"].as_str().unwrap_or_default().to_string();
        Self::remember(&mut self.known, &id);
        match item["type"].as_str() {
            Some("function_call") => {
                if let Some(call) = self.call_of(&event).filter(|c| c.clients && c.is_open()) { call.held.push(event) }
            }
            // The call itself may be forgotten by the time its output is acknowledged.
            Some("function_call_output") if self.client_outputs.contains(&id) => self.show(event),
            Some("function_call_output") => Self::remember(&mut self.hidden, &id),
            _ => self.show_visible(event),
        }
    }

    /// An event that names an item, unless the client never sees that.
    fn show_visible(&mut self, event: Value) {
        let named = event["item_id"].as_str().or(event["item"]["id"].as_str());
        if named.is_none_or(|id| !self.hidden.contains(id)) { self.show(event) }
    }

    /// An event for the client, under the names the client knows.
    pub(super) fn show(&mut self, mut event: Value) {
        if let Some(answer) = &mut self.answer {
            if event["response_id"] == answer.round.as_str() {
                event["response_id"] = json!(answer.id);
                if let Some(index) = event["output_index"].as_u64() { event["output_index"] = json!(answer.place(index)) }
            }
        }
        if let Some(before) = event.get("previous_item_id").and_then(Value::as_str) {
            if self.hidden.contains(before) { event["previous_item_id"] = json!(self.last_visible) }
        }
        if event["type"] == "conversation.item.added" {
            if let Some(id) = event["item"]["id"].as_str() { self.last_visible = Some(id.to_string()) }
        }
        if event["event_id"].is_null() { event["event_id"] = json!(self.new_id("event")) }
        // Left out by some servers, and missed by strict clients.
        let kind = event["type"].as_str().unwrap_or_default();
        let of_content = kind.starts_with("conversation.item.input_audio_transcription.") && !kind.ends_with(".segment") || kind == "conversation.item.truncated";
        if of_content && event["content_index"].is_null() { event["content_index"] = json!(0) }
        self.send(event.to_string());
    }

    fn line(&mut self, role: Role, item: &Value, text: &Value) {
        let (Some(item), Some(text)) = (item.as_str(), text.as_str().map(str::trim).filter(|t| !t.is_empty())) else { return };
        let (item, text) = (ItemId(item.to_string()), text.to_string());
        self.tell_of(FromProvider::Line { role, item, text });
    }

    /// The provider hears somebody. What it was saying is stopped by itself; an answer that waits for tools is stopped here.
    fn interrupted(&mut self, now: Ms) {
        if !self.session.turns.is_some_and(|t| t.interrupt_response) { return self.tell_of(FromProvider::Interrupted) }
        self.tell_of(FromProvider::Silenced);
        if self.answer.as_ref().is_some_and(|a| a.waits) {
            self.create = None;
            self.close_answer(now, "cancelled", "turn_detected");
        }
    }

    /// The provider has closed a turn. Whether it is answered depends on whose words they were.
    fn turn_closed(&mut self, now: Ms, event: Value) {
        let item = event["item_id"].as_str().unwrap_or_default().to_string();
        self.show_visible(event);
        self.goes_on_unasked = false;
        let Some(turns) = self.session.turns else { return };
        if !self.kind.capabilities.lets_go_of_turns {
            // Another turn that nobody asked an answer to: what waited of the last one is not wanted any more.
            if self.holds_for_client { self.drop_held(now) }
            (self.holding, self.holds_for_client) = (true, !turns.create_response && !self.asked);
        }
        if !turns.create_response && !self.holding { return }
        let known = self.verdict.judged.take().filter(|(_, at)| now.saturating_sub(*at) < VERDICT_KEPT_MS);
        self.verdict.committed = Some((item, now));
        if let Some((consumed, _)) = known { self.resolve(now, consumed) } else if !self.listens { self.resolve(now, false) }
    }

    /// The words of the turn that the provider has closed were for the gateway, or they were not.
    pub(super) fn resolve(&mut self, now: Ms, consumed: bool) {
        let Some((item, _)) = self.verdict.committed.take() else { return };
        self.verdict.item = Some(item);
        self.verdict.listening = None;
        if self.holding {
            if consumed { self.drop_held(now) } else if !self.holds_for_client { self.holding = false }
            if !consumed { return }
        } else if !consumed {
            return self.want_create(now, Create { response: serde_json::Map::new(), event_id: None, goes_on: false, until: None });
        }
        self.consume(now);
    }

    /// The answer that waits is not wanted: nothing of it is heard, and the provider ends it as far as it can.
    fn drop_held(&mut self, now: Ms) {
        (self.holding, self.holds_for_client) = (false, false);
        let (mut begun, mut any) = (None, false);
        let held = std::mem::take(&mut self.deferred);
        self.deferred_bytes = 0;
        for frame in held {
            let event = serde_json::from_slice::<Value>(&frame).unwrap_or_default();
            let kind = event["type"].as_str().unwrap_or_default();
            match kind {
                "response.created" => (begun, any) = (event["response"]["id"].as_str().map(str::to_string), true),
                "response.done" => begun = None,
                _ if kind.starts_with("response.") || event["item"]["role"] == "assistant" || event["item"]["type"] == "function_call" => {}
                _ => self.event(now, kind, event.clone()),
            }
        }
        // It is still to begin.
        self.unwanted |= !any;
        if let Some(round) = begun {
            let event = self.own_event(None);
            self.ask(&simple("response.cancel", &event, Some(("response_id", &round))));
        }
    }

    /// The client asks for the answer that waits for it. False: none does.
    pub(super) fn release_held(&mut self) -> bool {
        if !self.holds_for_client { return false }
        self.holds_for_client = false;
        if self.verdict.committed.is_none() { self.holding = false }
        true
    }

    /// What was said last was for the gateway: the provider forgets it, and answers nothing.
    pub(super) fn consume(&mut self, now: Ms) {
        if let Some(live) = &mut self.live { live.forget() }
        let item = self.verdict.item.take().filter(|item| !item.is_empty() && self.kind.capabilities.edits);
        if let Some(item) = item {
            let event = self.own_event(None);
            self.ask(&simple("conversation.item.delete", &event, Some(("item_id", &item))));
        }
        self.unwanted |= self.asked;
        self.cut_answer(now, "turn_detected");
    }

    /// An `error` of the provider: of an event of the gateway's own it concerns nobody else.
    fn trouble(&mut self, now: Ms, event: &Value) {
        let (error, code) = (&event["error"], event["error"]["code"].as_str().unwrap_or_default().to_string());
        let message = error["message"].as_str().unwrap_or("the provider reported an error").to_string();
        if code == "session_expired" {
            self.lost = Some(code);
            return;
        }
        if is_fatal(&code) {
            self.notice("provider_error", format!("The provider ends the session: {message}"));
            self.ending = Some((1011, format!("the provider ended the session ({code})")));
            return;
        }
        let of = error["event_id"].as_str().unwrap_or_default();
        let ours = of.starts_with(crate::dialect::openai_realtime::upstream::OWN_EVENT);
        if ours && code == "conversation_already_has_active_response" {
            // The provider began one by itself just before: that one is the answer, and whoever asked is answered by it.
            self.asked = false;
            self.events.remove(of);
            return;
        }
        let clients = self.events.remove(of);
        if ours && clients.is_none() {
            tracing::info!(%code, %message, "the provider refused an event of the gateway");
            if self.asked && code != "response_cancel_not_active" {
                self.asked = false;
                if self.answer.as_ref().is_some_and(|a| a.waits) { self.close_answer(now, "failed", "provider_error") }
            }
            return;
        }
        if clients.is_some() { self.asked = false }
        let mut event = event.clone();
        if let Some(error) = event["error"].as_object_mut() { error.insert("event_id".into(), json!(clients)); }
        self.show(event);
    }
}

/// What is an object in the protocol is one, or is left out: a provider that writes something else there breaks nothing.
fn shape(event: &mut Value) {
    for name in ["error", "item", "response", "part", "session"] {
        let Some(value) = event.get_mut(name).filter(|v| !v.is_object()) else { continue };
        *value = match value.take() {
            Value::String(message) if name == "error" => json!({"message": message}),
            _ if name == "error" => json!({}),
            _ => Value::Null,
        };
    }
}

fn unread(why: &str) {
    metrics::counter!("voxgate_provider_events_unread_total").increment(1);
    tracing::debug!(why, "a frame of the provider was dropped");
}
