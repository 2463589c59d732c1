//! What the client asks, carried out or refused by name.

use serde_json::Value;

use super::door::Door;
use super::packets::{self, number_of};
use crate::codec;
use crate::dialect::openai_realtime::audio::Format;
use crate::dialect::openai_realtime::client::{self, ClientEvent};
use crate::dialect::openai_realtime::error::BadEvent;
use crate::dialect::openai_realtime::item::{Kind, NewItem, Part, Place};
use crate::dialect::openai_realtime::response::{ResponseAsk, Status};
use crate::dialect::openai_realtime::session::{Modality, SessionChange};
use crate::dialect::openai_realtime::turns::{Ends, Turns};
use crate::engine::id::{ItemId, Ms};
use crate::session::leg::{LegInput, TurnDetection};

type Carried = Result<(), BadEvent>;

impl Door {
    /// One text frame from the client. A mistake becomes an `error` event and nothing else.
    pub(super) fn client(&mut self, now: Ms, text: &str) {
        let carried = client::parse(text)
            .and_then(|received| self.carry_out(now, received.event, received.event_id.as_deref()).map_err(|bad| bad.of(received.event_id)));
        if let Err(bad) = carried {
            self.refuse(&bad);
        }
    }

    /// Says what was wrong.
    pub(super) fn refuse(&mut self, bad: &BadEvent) {
        let error = self.writer.error(bad);
        self.send(error);
    }

    fn carry_out(&mut self, now: Ms, event: ClientEvent, event_id: Option<&str>) -> Carried {
        match event {
            ClientEvent::Update(change) => self.update(*change),
            ClientEvent::Append(bytes) => self.append(now, &bytes, event_id.and_then(number_of), "audio"),
            ClientEvent::Commit => self.commit(now, None),
            ClientEvent::Clear => self.clear(),
            ClientEvent::Create { item, place } => self.create_item(now, &item, &place),
            ClientEvent::Retrieve(item) => self.retrieve(&item),
            ClientEvent::Truncate { item, audio_end_ms, .. } => self.truncate(&item, audio_end_ms),
            ClientEvent::Delete(item) => self.delete(&item),
            ClientEvent::Respond(ask) => self.respond(now, *ask),
            ClientEvent::Cancel(response) => self.cancel(response.as_deref()),
            ClientEvent::ClearOutput => self.clear_output(),
        }
    }

    /// What holds from the first moment on, before the client has seen anything.
    pub(super) fn begin_with(&mut self, session: &Value) -> Carried {
        while self.next_frame().is_some() {}
        self.take_over(SessionChange::parse(session)?)?;
        let created = self.writer.session_created(self.session.to_json());
        self.send(created);
        Ok(())
    }

    fn update(&mut self, change: SessionChange) -> Carried {
        self.take_over(change)?;
        let updated = self.writer.session_updated(self.session.to_json());
        self.send(updated);
        Ok(())
    }

    fn take_over(&mut self, change: SessionChange) -> Carried {
        check_codec(&change)?;
        let applied = self.session.apply(change, self.spoken)?;
        if applied.input_format {
            let format = self.session.input_format;
            self.ear.retune(format).map_err(|error| BadEvent::value("session.audio.input.format", format!("This format cannot be heard: {error}.")))?;
        }
        if let Some(turns) = applied.turns {
            self.tell(LegInput::Turns(leg_turns(turns)));
        }
        if let Some(text) = applied.instructions {
            self.tell(LegInput::Instructions(text));
        }
        if let Some(modality) = applied.modality {
            self.tell(LegInput::Speaks(modality == Modality::Audio));
        }
        self.notice_tools(&applied.functions, &applied.left_out);
        Ok(())
    }

    /// Client tools are kept and never run; what a provider would run itself is not even kept. Both are said to people.
    fn notice_tools(&mut self, functions: &[String], left_out: &[String]) {
        if !functions.is_empty() {
            let message = format!("The realtime client declared tools of its own ({}). They are not run here.", first(functions));
            self.notice("client_tools", message);
        }
        if !left_out.is_empty() {
            let message = format!("The realtime client asked for {}, which this gateway leaves out.", first(left_out));
            self.notice("client_tools_left_out", message);
        }
    }

    fn append(&mut self, now: Ms, bytes: &[u8], number: Option<u64>, param: &str) -> Carried {
        let (pieces, done) = self.ear.hear(now, bytes, number, param);
        for piece in pieces {
            self.tell(LegInput::Audio(piece));
        }
        if let Err(bad) = &done
            && bad.code == packets::DAMAGED
        {
            self.notice("input_audio_damaged", format!("Sound of the realtime client is damaged. {}", bad.message));
        }
        if done.is_ok()
            && let Some(message) = self.ear.wrong_rate()
        {
            self.refuse(&BadEvent::at("input_audio_wrong_rate", param, message.clone()));
            self.notice("input_audio_wrong_rate", message);
        }
        done
    }

    /// The acknowledgement follows when the conversation has made an item of it.
    fn commit(&mut self, now: Ms, item: Option<String>) -> Carried {
        for piece in self.ear.commit(now)? {
            self.tell(LegInput::Audio(piece));
        }
        let item = item.unwrap_or_else(|| self.new_id("item"));
        self.tell(LegInput::Commit { item: ItemId(item) });
        Ok(())
    }

    fn clear(&mut self) -> Carried {
        self.ear.clear();
        self.tell(LegInput::Clear);
        let cleared = self.writer.cleared();
        self.send(cleared);
        Ok(())
    }

    fn create_item(&mut self, now: Ms, item: &NewItem, place: &Place) -> Carried {
        if !self.items.has(place) {
            let Place::After(id) = place else { return Ok(()) };
            return Err(no_item("previous_item_id", id));
        }
        if let Some(id) = item.id.as_ref().filter(|id| self.items.find(id).is_some()) {
            return Err(BadEvent::value("item.id", format!("There is an item '{id}' already.")));
        }
        let parts = match &item.kind {
            Kind::User(parts) => parts,
            Kind::Other(role) => return self.set_aside(item, place, &format!("a message as '{role}'")),
            Kind::Call => return self.set_aside(item, place, "a function call nobody made"),
            Kind::Output => return self.set_aside(item, place, "a result for a call this gateway did not hand out"),
        };
        match parts.as_slice() {
            [Part::Audio(bytes)] => self.spoken_item(now, item, place, bytes),
            parts if parts.iter().any(|part| matches!(part, Part::Audio(_))) => {
                Err(BadEvent::value("item.content", "An item with 'input_audio' has exactly that one part."))
            }
            parts => {
                self.typed_item(item, place, parts);
                Ok(())
            }
        }
    }

    /// Acknowledged, because clients wait for it; not shown to the agent, because nobody said it.
    fn set_aside(&mut self, item: &NewItem, place: &Place, what: &str) -> Carried {
        self.notice("client_item_dropped", format!("The realtime client put in {what}; the agent is not shown it."));
        self.acknowledge(item, place);
        Ok(())
    }

    /// The words go in now, so that what tightens holds at once. An answer comes only when the client asks for one.
    fn typed_item(&mut self, item: &NewItem, place: &Place, parts: &[Part]) {
        let lines = parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
        let text = lines.collect::<Vec<_>>().join("\n");
        let id = self.acknowledge(item, place);
        if !text.trim().is_empty() {
            self.tell(LegInput::Text { item: ItemId(id), text });
        }
    }

    fn acknowledge(&mut self, item: &NewItem, place: &Place) -> String {
        let id = item.id.clone().unwrap_or_else(|| self.new_id("item"));
        let json = item.to_json(&id);
        self.items.put(&id, json.clone(), None, place);
        let previous = self.items.previous(&id);
        let added = self.writer.item_added(&json, previous.as_deref());
        self.send(added);
        let done = self.writer.item_done(&json, previous.as_deref());
        self.send(done);
        id
    }

    /// Sound in an item is sound that was spoken and committed, in a session whose client takes its turns by hand.
    fn spoken_item(&mut self, now: Ms, item: &NewItem, place: &Place, bytes: &[u8]) -> Carried {
        let at = "item.content[0].audio";
        if self.session.turns.is_some() {
            return Err(BadEvent::value(at, "With turn detection on, sound comes by 'input_audio_buffer.append' alone."));
        }
        if !self.ear.is_empty() {
            return Err(BadEvent::value(at, "Commit or clear the input audio buffer first."));
        }
        let at_end = match place {
            Place::End => true,
            Place::Root => self.items.last().is_none(),
            Place::After(id) => self.items.last().as_ref() == Some(id),
        };
        if !at_end {
            return Err(BadEvent::value("previous_item_id", "A spoken item can only be put at the end."));
        }
        self.append(now, bytes, None, at)?;
        let committed = self.commit(now, item.id.clone());
        if committed.is_err() {
            // Less than can be committed: it must not become part of what is said next.
            self.ear.clear();
            self.tell(LegInput::Clear);
        }
        committed
    }

    fn retrieve(&mut self, id: &str) -> Carried {
        let json = self.items.find(id).ok_or_else(|| no_item("item_id", id))?.json.clone();
        let retrieved = self.writer.item_retrieved(&json);
        self.send(retrieved);
        Ok(())
    }

    fn truncate(&mut self, id: &str, audio_end_ms: u64) -> Carried {
        let entry = self.items.find(id).ok_or_else(|| no_item("item_id", id))?;
        let Some(sent_ms) = entry.sent_ms else {
            return Err(BadEvent::value("item_id", "Only model output audio messages can be truncated."));
        };
        if audio_end_ms > sent_ms {
            let message = format!("Audio content of {sent_ms}ms is already shorter than {audio_end_ms}ms");
            return Err(BadEvent::value("audio_end_ms", message));
        }
        self.items.truncate(id);
        self.tell(LegInput::Truncate { item: id.into(), audio_end_ms });
        let truncated = self.writer.item_truncated(id, audio_end_ms);
        self.send(truncated);
        Ok(())
    }

    fn delete(&mut self, id: &str) -> Carried {
        if !self.items.remove(id) {
            return Err(no_item("item_id", id));
        }
        self.tell(LegInput::Delete { item: id.into() });
        let deleted = self.writer.item_deleted(id);
        self.send(deleted);
        Ok(())
    }

    fn respond(&mut self, now: Ms, ask: ResponseAsk) -> Carried {
        if let Some(open) = &self.open {
            let message = format!(
                "Conversation already has an active response in progress: {}. Wait until the response is finished before creating a new one.",
                open.id
            );
            return Err(BadEvent::new("conversation_already_has_active_response", message));
        }
        self.notice_tools(&ask.functions, &ask.left_out);
        let modality = ask.modality.unwrap_or(self.session.modality);
        let restore = (ask.instructions.is_some(), modality != self.session.modality);
        if let Some(text) = ask.instructions {
            self.tell(LegInput::Instructions(text));
        }
        if restore.1 {
            self.tell(LegInput::Speaks(modality == Modality::Audio));
        }
        self.tell(LegInput::CreateResponse);
        self.open_response(now, None, modality, ask.metadata.unwrap_or(Value::Null)).restore = restore;
        Ok(())
    }

    fn cancel(&mut self, id: Option<&str>) -> Carried {
        let named = |open: &str| id.is_none_or(|id| id == open);
        let active = match &self.open {
            Some(open) => named(&open.id),
            // Between two sentences of one turn no response is open, and yet there is work to cancel.
            None => id.is_none() && self.turn.is_some(),
        };
        if !active {
            return Err(BadEvent::new("response_cancel_not_active", "Cancellation failed: no active response found"));
        }
        self.tell(LegInput::CancelResponse);
        if let Some(open) = self.open.take_if(|open| open.is_unclaimed()) {
            self.close_response(&open, Status::ClientCancelled, Vec::new());
        }
        Ok(())
    }

    /// Sockets play for themselves, so there is nothing to empty but what is still being said.
    fn clear_output(&mut self) -> Carried {
        let Some(response) = self.last_response.clone() else {
            return Err(BadEvent::new("output_audio_buffer_empty", "There is no output audio to clear: nothing has been said yet."));
        };
        if self.open.as_ref().is_some_and(|open| open.saying.is_some()) {
            self.tell(LegInput::CancelResponse);
        }
        let cleared = self.writer.output_cleared(&response);
        self.send(cleared);
        Ok(())
    }
}

/// A build without the codec says so before anything changes.
pub(super) fn check_codec(change: &SessionChange) -> Carried {
    let asked = change.formats().into_iter().find(|(_, format)| *format == Format::Opus);
    match (asked, codec::decoder()) {
        (Some((param, _)), Err(error)) => Err(BadEvent::value(param, format!("'audio/opus' cannot be spoken: {error}."))),
        _ => Ok(()),
    }
}

pub(super) fn no_item(param: &str, id: &str) -> BadEvent {
    BadEvent::at("item_not_found", param, format!("There is no item '{id}' in this session."))
}

/// The first few of a list, for a sentence.
pub(super) fn first(names: &[String]) -> String {
    let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}

pub(super) fn leg_turns(turns: Option<Turns>) -> TurnDetection {
    let Some(turns) = turns else {
        return TurnDetection { automatic: false, create_response: false, interrupt_response: false, ..TurnDetection::default() };
    };
    let (silence_ms, threshold) = match turns.ends {
        Ends::Silence { silence_ms, threshold, .. } => (silence_ms, threshold),
        Ends::Meaning(eagerness) => (Some(eagerness.silence_ms()), None),
    };
    TurnDetection {
        automatic: true,
        silence_ms,
        threshold,
        create_response: turns.create_response,
        interrupt_response: turns.interrupt_response,
    }
}
