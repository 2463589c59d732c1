//! The todo mirror: every conversation's list in one file, for people and programs beside the gateway. Best effort; the log
//! is the fact.
//!
//! Shape: `{"version":1,"updated_at":SECONDS,"sessions":{ID:[{id,content,status}]}}`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{files, home::Home};
use crate::engine::todo::{TodoItem, TodoStatus};

const VERSION: u64 = 1;
const BYTES_MAX: u64 = 64 << 20;

/// The file and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct TodoMirror {
    path: PathBuf,
    sessions: BTreeMap<String, Vec<TodoItem>>,
}

impl TodoMirror {
    /// Reads the mirror. A file that cannot be read is put aside, the mirror starts empty, and the second value says so.
    pub fn load(home: &Home) -> (TodoMirror, Option<String>) {
        let path = home.todos_file();
        match read(&path) {
            Ok(sessions) => (TodoMirror { path, sessions }, None),
            Err(why) => {
                let kept = files::set_aside(&path).map(|p| format!("; it was moved to {}", p.display())).unwrap_or_default();
                let warning = format!("{} cannot be read ({why}){kept}; the todo mirror starts empty", path.display());
                (TodoMirror { path, sessions: BTreeMap::new() }, Some(warning))
            }
        }
    }

    /// The list of a conversation.
    pub fn get(&self, session_id: &str) -> &[TodoItem] { self.sessions.get(session_id).map_or(&[], Vec::as_slice) }

    /// Puts a conversation's whole list in; an empty one takes the conversation out. `now_ms` is Unix milliseconds.
    ///
    /// # Errors
    /// What the system says when it could not be written: warn and go on, memory and the old file are whole.
    pub fn set(&mut self, session_id: &str, items: &[TodoItem], now_ms: u64) -> io::Result<()> {
        if items.is_empty() {
            if self.sessions.remove(session_id).is_none() {
                return Ok(());
            }
        } else {
            self.sessions.insert(session_id.to_string(), items.to_vec());
        }
        let sessions: serde_json::Map<String, Value> = self.sessions.iter().map(|(id, list)| (id.clone(), list_out(list))).collect();
        let text = json!({"version": VERSION, "updated_at": now_ms as f64 / 1000.0, "sessions": sessions}).to_string();
        files::write_whole(&self.path, text.as_bytes())
    }
}

fn list_out(items: &[TodoItem]) -> Value {
    items.iter().map(|i| json!({"id": i.id, "content": i.content, "status": i.status.word()})).collect()
}

fn read(path: &Path) -> Result<BTreeMap<String, Vec<TodoItem>>, String> {
    let Some(bytes) = files::read_some(path, BYTES_MAX).map_err(|e| e.to_string())? else { return Ok(BTreeMap::new()) };
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    if value["version"] != VERSION {
        return Err(format!("it has version {}, this program reads version {VERSION}", value["version"]));
    }
    let sessions = value["sessions"].as_object().ok_or("it has no sessions")?;
    sessions.iter().map(|(id, list)| Ok((id.clone(), list_in(list).ok_or_else(|| format!("the list of {id} is no todo list"))?))).collect()
}

fn list_in(value: &Value) -> Option<Vec<TodoItem>> {
    value.as_array()?.iter().map(|item| {
        let text = |name: &str| item[name].as_str().map(str::to_string);
        Some(TodoItem { id: text("id")?, content: text("content")?, status: TodoStatus::from_word(item["status"].as_str()?)? })
    }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str) -> TodoItem { TodoItem { id: id.into(), content: "x".into(), status: TodoStatus::InProgress } }

    #[test]
    fn ledger_f53_f55_a_list_is_mirrored_whole_in_one_file_and_an_empty_one_goes_57() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let (mut mirror, warning) = TodoMirror::load(&home);
        assert_eq!(warning, None);
        mirror.set("s1", &[item("1"), item("2")], 1_500)?;
        mirror.set("s2", &[item("1")], 1_600)?;
        mirror.set("s1", &[item("3")], 1_700)?;
        mirror.set("s2", &[], 1_800)?;
        assert_eq!(TodoMirror::load(&home).0.get("s1"), [item("3")]);
        let shape: Value = serde_json::from_slice(&std::fs::read(home.todos_file())?)?;
        assert_eq!(shape, json!({"version": 1, "updated_at": 1.8, "sessions": {"s1": [{"id": "3", "content": "x", "status": "in_progress"}]}}));
        Ok(())
    }

    #[test]
    fn ledger_f54_a_corrupt_mirror_is_warned_about_and_starts_empty_58() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        for broken in ["", "nul", "{}", r#"{"version":1,"sessions":{"a":[5]}}"#] {
            std::fs::write(home.todos_file(), broken)?;
            let (mirror, warning) = TodoMirror::load(&home);
            assert!(mirror.get("a").is_empty() && warning.is_some_and(|w| w.contains("damaged-")));
        }
        Ok(())
    }
}
