//! The items of one socket, in their order: what was named to the client and what it may name in turn.

use serde_json::{Value, json};

use crate::dialect::openai_realtime::item::Place;

/// Most items that are remembered; the oldest goes first (chosen: hours of talk).
const ITEMS_MAX: usize = 256;

/// One item.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) json: Value,
    /// Of what the gateway said: milliseconds of sound that went out. `None` for everything else.
    pub(super) sent_ms: Option<u64>,
    truncated: bool,
}

/// See the file's head.
#[derive(Default)]
pub(super) struct Items {
    list: Vec<Entry>,
}

impl Items {
    pub(super) fn find(&self, id: &str) -> Option<&Entry> { self.list.iter().find(|entry| entry.id == id) }

    fn find_mut(&mut self, id: &str) -> Option<&mut Entry> { self.list.iter_mut().find(|entry| entry.id == id) }

    /// The name of the last item.
    pub(super) fn last(&self) -> Option<String> { self.list.last().map(|entry| entry.id.clone()) }

    /// The name of the item before this one.
    pub(super) fn previous(&self, id: &str) -> Option<String> {
        let at = self.list.iter().position(|entry| entry.id == id)?;
        at.checked_sub(1).map(|at| self.list[at].id.clone())
    }

    /// True when `place` names something that is there.
    pub(super) fn has(&self, place: &Place) -> bool {
        match place {
            Place::After(id) => self.find(id).is_some(),
            Place::End | Place::Root => true,
        }
    }

    /// Puts an item there; one of the same name is replaced where it stands.
    pub(super) fn put(&mut self, id: &str, json: Value, sent_ms: Option<u64>, place: &Place) {
        if let Some(entry) = self.find_mut(id) {
            entry.json = json;
            return;
        }
        let at = match place {
            Place::Root => 0,
            Place::End => self.list.len(),
            Place::After(before) => self.list.iter().position(|e| e.id == *before).map_or(self.list.len(), |at| at + 1),
        };
        self.list.insert(at, Entry { id: id.to_string(), json, sent_ms, truncated: false });
        if self.list.len() > ITEMS_MAX {
            self.list.remove(0);
        }
    }

    /// The item as it is at its end. What was cut stays without its words.
    pub(super) fn settle(&mut self, id: &str, json: Value) {
        if let Some(entry) = self.find_mut(id) {
            entry.json = json;
            if entry.truncated {
                forget_words(&mut entry.json);
            }
        }
    }

    /// So many milliseconds have gone out.
    pub(super) fn sent(&mut self, id: &str, ms: u64) {
        if let Some(entry) = self.find_mut(id) {
            entry.sent_ms = Some(ms);
        }
    }

    /// The words of a user's spoken item.
    pub(super) fn words(&mut self, id: &str, text: &str) {
        if let Some(part) = self.find_mut(id).and_then(|entry| entry.json.pointer_mut("/content/0")) {
            part["transcript"] = json!(text);
        }
    }

    /// The client played only part of it.
    pub(super) fn truncate(&mut self, id: &str) {
        if let Some(entry) = self.find_mut(id) {
            entry.truncated = true;
            forget_words(&mut entry.json);
        }
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let before = self.list.len();
        self.list.retain(|entry| entry.id != id);
        self.list.len() < before
    }
}

fn forget_words(item: &mut Value) {
    if let Some(part) = item.pointer_mut("/content/0") {
        part["transcript"] = Value::Null;
    }
}
