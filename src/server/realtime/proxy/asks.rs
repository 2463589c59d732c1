//! What the client asks, carried out, sent on as the gateway writes it, or refused by name.

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use super::super::asks::{check_codec, first, leg_turns, no_item};
use super::{Create, Proxy, QUIET, QUIET_AFTER_MS, QUIET_SAMPLES, VERDICT_MS};
use crate::dialect::openai_realtime::audio::{self, Format, to_base64};
use crate::dialect::openai_realtime::client::{self, ClientEvent};
use crate::dialect::openai_realtime::error::BadEvent;
use crate::dialect::openai_realtime::item::{Kind, NewItem, Part, Place};
use crate::dialect::openai_realtime::peek::Peek;
use crate::dialect::openai_realtime::response::ResponseAsk;
use crate::dialect::openai_realtime::session::{Modality, SessionChange};
use crate::dialect::openai_realtime::upstream::{merge, simple};
use crate::engine::id::{ItemId, Ms};
use crate::session::leg::{FromProvider, LegInput};

type Carried = Result<(), BadEvent>;

impl Proxy {
    /// One frame of the client. Sound goes on as it came, and a copy of it to the ear.
    pub(super) fn client_frame(&mut self, now: Ms, frame: Bytes) {
        let Ok(text) = std::str::from_utf8(&frame) else { return self.refuse(&BadEvent::new("invalid_json", "Events are UTF-8 text.")) };
        if let Some(peek) = Peek::at(text).filter(|p| p.text("type") == Some("input_audio_buffer.append") && p.only(&["type", "event_id", "audio"])) {
            if let Some(sound) = peek.text("audio") {
                if self.listens {
                    match audio::bytes(sound, "audio") {
                        Ok(bytes) => {
                            self.listen(now, &bytes);
                            if self.live.is_some() { return self.pass_on(&bytes) }
                        }
                        Err(bad) => return self.refuse(&bad.of(peek.text("event_id").map(str::to_string))),
                    }
                }
                if self.live.is_some() {
                    return match audio::bytes(sound, "audio") { Ok(bytes) => self.pass_on(&bytes), Err(bad) => self.refuse(&bad) };
                }
                self.upstream.push_back(frame);
                return;
            }
        }
        let carried = client::parse(text).and_then(|received| self.carry_out(now, received.event, received.event_id.as_deref()).map_err(|bad| bad.of(received.event_id)));
        if let Err(bad) = carried { self.refuse(&bad) }
    }

    /// Sound for a provider of another protocol.
    fn pass_on(&mut self, bytes: &[u8]) {
        let format = self.session.input_format;
        match (format.decode(bytes, "audio"), &mut self.live) {
            (Ok(samples), Some(live)) => live.sound(&samples, format.rate_hz()),
            (Err(bad), _) => self.refuse(&bad),
            _ => {}
        }
    }

    fn refuse(&mut self, bad: &BadEvent) {
        let error = self.writer.error(bad);
        self.send(error);
    }

    /// A copy of the sound for the conversation's ear. What is wrong with it the provider says.
    fn listen(&mut self, now: Ms, bytes: &[u8]) {
        if !self.listens { return }
        let (pieces, _) = self.ear.hear(now, bytes, None, "audio");
        for piece in pieces { self.give_ear(now, piece) }
    }

    /// Whoever is silent costs the conversation one wake-up in five; whoever speaks is heard at once.
    fn give_ear(&mut self, now: Ms, piece: Vec<i16>) {
        if piece.iter().any(|s| s.unsigned_abs() >= QUIET) { self.loud_at = now }
        self.quiet.extend(piece);
        let waits = now.saturating_sub(self.loud_at) >= QUIET_AFTER_MS && self.verdict.listening.is_none() && self.quiet.len() < QUIET_SAMPLES;
        if !waits {
            let sound = std::mem::take(&mut self.quiet);
            self.tell(LegInput::Audio(sound));
        }
    }

    fn carry_out(&mut self, now: Ms, event: ClientEvent, event_id: Option<&str>) -> Carried {
        match event {
            ClientEvent::Update(change) => self.update(*change),
            ClientEvent::Append(bytes) => {
                self.listen(now, &bytes);
                let event = self.own_event(event_id);
                self.ask(&simple("input_audio_buffer.append", &event, Some(("audio", &to_base64(&bytes)))));
                Ok(())
            }
            ClientEvent::Commit => {
                let item = self.new_id("item");
                self.committed(now, item);
                self.pass("input_audio_buffer.commit", event_id, None)
            }
            ClientEvent::Clear => {
                self.ear.clear();
                self.tell(LegInput::Clear);
                self.pass("input_audio_buffer.clear", event_id, None)
            }
            ClientEvent::Create { item, place } => self.create_item(now, &item, &place, event_id),
            ClientEvent::Retrieve(item) => match self.items.find(&item).map(|e| e.json.clone()) {
                Some(json) => {
                    let retrieved = self.writer.item_retrieved(&json);
                    self.send(retrieved);
                    Ok(())
                }
                None => self.pass("conversation.item.retrieve", event_id, Some(&item)),
            },
            ClientEvent::Truncate { item, audio_end_ms, .. } => self.truncate(&item, audio_end_ms, event_id),
            ClientEvent::Delete(item) => {
                self.tell(LegInput::Delete { item: item.as_str().into() });
                if self.items.remove(&item) {
                    let deleted = self.writer.item_deleted(&item);
                    self.send(deleted);
                    return Ok(());
                }
                self.pass("conversation.item.delete", event_id, Some(&item))
            }
            ClientEvent::Respond(ask) => self.respond(now, *ask, event_id),
            ClientEvent::Cancel(response) => self.cancel(now, response.as_deref(), event_id),
            ClientEvent::ClearOutput => Err(BadEvent::new("output_audio_buffer_empty", "A socket plays for itself; there is no output audio to clear here.")),
        }
    }

    /// An event with at most an item's name goes on. An item the client never saw is not there for it.
    fn pass(&mut self, kind: &str, event_id: Option<&str>, item: Option<&str>) -> Carried {
        if let Some(id) = item.filter(|id| self.hidden.contains(*id)) { return Err(no_item("item_id", id)) }
        let event = self.own_event(event_id);
        self.ask(&simple(kind, &event, item.map(|id| ("item_id", id))));
        Ok(())
    }

    /// By hand: what was said is judged when it is committed.
    fn committed(&mut self, now: Ms, item: String) {
        if self.session.turns.is_none() && self.listens {
            (self.verdict.listening, self.verdict.judged) = (Some(now), None);
            self.tell(LegInput::Commit { item: ItemId(item) });
        }
    }

    /// What holds from the first moment on, before the client or the provider has seen anything.
    pub(super) fn begin_with(&mut self, session: &Value) -> Carried { self.take_over(SessionChange::parse(session)?) }

    fn update(&mut self, change: SessionChange) -> Carried {
        self.take_over(change)?;
        let updated = self.writer.session_updated(self.session.to_json());
        self.send(updated);
        Ok(())
    }

    fn take_over(&mut self, change: SessionChange) -> Carried {
        check_codec(&change)?;
        if let Some((param, _)) = change.formats().into_iter().find(|(_, format)| *format == Format::Opus) {
            return Err(BadEvent::value(param, "'audio/opus' is not spoken towards a provider: use 'audio/pcm', 'audio/pcmu' or 'audio/pcma'."));
        }
        let forwarded = change.forwarded();
        let applied = self.session.apply(change, false)?;
        merge(&mut self.forwarded, forwarded);
        if let Some(live) = &mut self.live { live.declare() }
        if applied.input_format {
            let format = self.session.input_format;
            self.ear.retune(format).map_err(|error| BadEvent::value("session.audio.input.format", format!("This format cannot be heard: {error}.")))?;
        }
        if let Some(turns) = applied.turns { self.tell(LegInput::Turns(leg_turns(turns))) }
        if let Some(modality) = applied.modality { self.tell(LegInput::Speaks(modality == Modality::Audio)) }
        if !applied.left_out.is_empty() {
            self.notice("client_tools_left_out", format!("The realtime client asked for {}, which this gateway leaves out.", first(&applied.left_out)));
        }
        self.take_back_names();
        let functions = self.session.functions().to_vec();
        self.tell(LegInput::Functions(functions));
        match applied.instructions {
            // They come back as part of what the provider is to know.
            Some(text) => {
                self.instructed = self.instructed.wrapping_add(1);
                self.tell(LegInput::Instructions(text));
            }
            None => self.tell_session(),
        }
        Ok(())
    }

    fn create_item(&mut self, now: Ms, item: &NewItem, place: &Place, event_id: Option<&str>) -> Carried {
        match &item.kind {
            Kind::User(parts) => self.user_item(now, item, parts, place, event_id),
            Kind::Output => self.output(item, place, event_id),
            Kind::Other(role) => self.set_aside(item, place, &format!("a message as '{role}'")),
            Kind::Call => self.set_aside(item, place, "a function call nobody made"),
        }
    }

    fn user_item(&mut self, now: Ms, item: &NewItem, parts: &[Part], place: &Place, event_id: Option<&str>) -> Carried {
        let id = item.id.clone().unwrap_or_else(|| self.new_id("item"));
        let content: Vec<Value> = parts.iter().map(|part| match part {
            Part::Text(text) => json!({"type": "input_text", "text": text}),
            Part::Audio(bytes) => json!({"type": "input_audio", "audio": to_base64(bytes)}),
        }).collect();
        let texts: Vec<&str> = parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect();
        for part in parts {
            if let Part::Audio(bytes) = part {
                self.listen(now, bytes);
                self.committed(now, id.clone());
            }
        }
        Self::remember(&mut self.known, &id);
        let text = texts.join("\n");
        // What is typed after a command is not part of it.
        self.verdict.judged = None;
        if !text.trim().is_empty() { self.tell(LegInput::Text { item: ItemId(id.clone()), text }) }
        self.put(json!({"id": id, "type": "message", "role": "user", "content": content}), place, event_id);
        Ok(())
    }

    /// Puts an item into the provider's conversation. Behind an item that only the client has it goes to the end.
    fn put(&mut self, item: Value, place: &Place, event_id: Option<&str>) {
        let event = self.own_event(event_id);
        let mut create = json!({"type": "conversation.item.create", "event_id": event, "item": item});
        match place {
            Place::Root => create["previous_item_id"] = json!("root"),
            Place::After(id) if self.items.find(id).is_none() => create["previous_item_id"] = json!(id),
            Place::After(_) | Place::End => {}
        }
        self.ask(&create);
    }

    /// The client's answer to a call. One that it was not handed is acknowledged and goes nowhere.
    fn output(&mut self, item: &NewItem, place: &Place, event_id: Option<&str>) -> Carried {
        let id = item.id.clone().unwrap_or_else(|| self.new_id("item"));
        let json = item.to_json(&id);
        let (call, output) = (json["call_id"].as_str().unwrap_or_default().to_string(), json["output"].as_str().unwrap_or_default().to_string());
        if !self.answered(&call, &output) { return self.set_aside(item, place, "a result for a call that it was not handed") }
        let mut told = Self::as_output(&call, &output);
        told["id"] = json!(id);
        Self::remember(&mut self.client_outputs, &id);
        self.goes_on_unasked = self.live.is_some();
        self.put(told, place, event_id);
        Ok(())
    }

    /// Kept for the client, who waits for the acknowledgement; the provider never gets it.
    fn set_aside(&mut self, item: &NewItem, place: &Place, what: &str) -> Carried {
        self.notice("client_item_dropped", format!("The realtime client put in {what}; the provider is not shown it."));
        let id = item.id.clone().unwrap_or_else(|| self.new_id("item"));
        let json = item.to_json(&id);
        self.items.put(&id, json.clone(), None, place);
        let before = self.last_visible.replace(id);
        for frame in [self.writer.item_added(&json, before.as_deref()), self.writer.item_done(&json, before.as_deref())] { self.send(frame) }
        Ok(())
    }

    fn truncate(&mut self, item: &str, audio_end_ms: u64, event_id: Option<&str>) -> Carried {
        if let Some(entry) = self.items.find(item) {
            if entry.sent_ms.is_none_or(|sent| audio_end_ms > sent) { return Err(BadEvent::value("audio_end_ms", "There is not so much sound in this item.")) }
            self.items.truncate(item);
            self.tell(LegInput::Truncate { item: item.into(), audio_end_ms });
            let truncated = self.writer.item_truncated(item, audio_end_ms);
            self.send(truncated);
            return Ok(());
        }
        if self.hidden.contains(item) { return Err(no_item("item_id", item)) }
        self.tell_of(FromProvider::Silenced);
        let event = self.own_event(event_id);
        self.ask(&json!({"type": "conversation.item.truncate", "event_id": event, "item_id": item, "content_index": 0, "audio_end_ms": audio_end_ms}));
        Ok(())
    }

    fn respond(&mut self, now: Ms, ask: ResponseAsk, event_id: Option<&str>) -> Carried {
        if std::mem::take(&mut self.goes_on_unasked) && self.answer.is_some() { return Ok(()) }
        if let Some(answer) = &self.answer {
            let message = format!("Conversation already has an active response in progress: {}. Wait until the response is finished before creating a new one.", answer.id);
            return Err(BadEvent::new("conversation_already_has_active_response", message));
        }
        if !ask.left_out.is_empty() || !ask.functions.is_empty() {
            let names: Vec<String> = ask.left_out.iter().chain(&ask.functions).cloned().collect();
            self.notice("client_tools_left_out", format!("The realtime client asked for {} in one response; tools are declared for the session.", first(&names)));
        }
        let mut response = Map::new();
        if let Some(text) = ask.instructions {
            // Those of the session stay: what plan mode wants said is among them.
            let session = self.brief.as_ref().map(|b| b.instructions.clone()).unwrap_or_default();
            response.insert("instructions".into(), json!(format!("{session}\n\n{text}")));
        }
        if let Some(modality) = ask.modality { response.insert("output_modalities".into(), modality.to_json()); }
        if let Some(metadata) = ask.metadata { response.insert("metadata".into(), metadata); }
        let until = self.verdict_until(now).or_else(|| self.verdict.judged.filter(|(consumed, at)| *consumed && now.saturating_sub(*at) < VERDICT_MS).map(|_| now));
        if self.verdict.judged.take().is_some_and(|(consumed, at)| consumed && now.saturating_sub(at) < VERDICT_MS) {
            // What it wants answered was said to the gateway, which answers it.
            return Ok(());
        }
        if self.release_held() { return Ok(()) }
        self.want_create(now, Create { response, event_id: event_id.map(str::to_string), goes_on: false, until });
        Ok(())
    }

    fn cancel(&mut self, now: Ms, id: Option<&str>, event_id: Option<&str>) -> Carried {
        let wanted = self.create.take().is_some();
        let Some(answer) = self.answer.as_ref().filter(|a| id.is_none_or(|id| id == a.id)) else {
            return if wanted { Ok(()) } else { Err(BadEvent::new("response_cancel_not_active", "Cancellation failed: no active response found")) };
        };
        if answer.active {
            let (round, event) = (answer.round.clone(), self.own_event(event_id));
            self.ask(&simple("response.cancel", &event, Some(("response_id", &round))));
        } else {
            self.tell(LegInput::CancelResponse);
            self.close_answer(now, "cancelled", "client_cancelled");
        }
        Ok(())
    }
}
