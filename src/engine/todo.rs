//! The agent's own visible scratch list. Nothing in it runs and it reminds nobody.

use serde_json::{Value, json};

/// Most items.
pub const ITEMS_MAX: usize = 40;
/// Longest item, in characters; longer ones are cut.
pub const ITEM_CHARS: usize = 500;

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// The one being worked on.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self { TodoStatus::Pending => "pending", TodoStatus::InProgress => "in_progress", TodoStatus::Completed => "completed" }
    }

    /// The status a word names.
    pub fn from_word(word: &str) -> Option<TodoStatus> {
        [TodoStatus::Pending, TodoStatus::InProgress, TodoStatus::Completed].into_iter().find(|s| s.word() == word)
    }
}

/// One item.
#[derive(Clone, Debug, PartialEq)]
pub struct TodoItem {
    /// Unique in the list.
    pub id: String,
    /// At most 500 characters.
    pub content: String,
    /// Where it stands.
    pub status: TodoStatus,
}

/// Why a write was refused. The old list stays whole.
#[derive(Clone, Debug, PartialEq)]
pub struct BadTodo {
    /// `invalid_args`, `too_many_todos`, `invalid_status`, `multiple_in_progress`.
    pub code: &'static str,
    /// For the agent.
    pub message: String,
}

/// Reads a whole new list from `{todos: [string | {id?, content|title, status?}]}`. A full replacement, never a patch.
///
/// # Errors
/// [`BadTodo`]; nothing has changed then.
pub fn parse(arguments: &Value) -> Result<Vec<TodoItem>, BadTodo> {
    let list = arguments["todos"].as_array()
        .ok_or_else(|| BadTodo { code: "invalid_args", message: "todos must be a list: the whole new list, not a change to the old one".into() })?;
    if list.len() > ITEMS_MAX {
        return Err(BadTodo { code: "too_many_todos", message: format!("at most {ITEMS_MAX} items, {} given", list.len()) });
    }
    let mut items: Vec<TodoItem> = Vec::with_capacity(list.len());
    for (n, value) in list.iter().enumerate() {
        let item = item_of(n, value)?;
        let taken = items.iter().any(|i| i.id == item.id);
        items.push(if taken || item.id.is_empty() { TodoItem { id: fresh_id(&items), ..item } } else { item });
    }
    if items.iter().filter(|i| i.status == TodoStatus::InProgress).count() > 1 {
        return Err(BadTodo { code: "multiple_in_progress", message: "at most one item may be in_progress".into() });
    }
    Ok(items)
}

fn item_of(n: usize, value: &Value) -> Result<TodoItem, BadTodo> {
    let content = value.as_str().or_else(|| value["content"].as_str()).or_else(|| value["title"].as_str()).unwrap_or("").trim();
    if content.is_empty() {
        return Err(BadTodo { code: "invalid_args", message: format!("item {} has no content", n + 1) });
    }
    let status = match &value["status"] {
        Value::Null => TodoStatus::Pending,
        given => given.as_str().and_then(TodoStatus::from_word).ok_or_else(|| BadTodo {
            code: "invalid_status", message: format!("item {}: status must be pending, in_progress or completed", n + 1),
        })?,
    };
    let id = value["id"].as_str().unwrap_or("").to_string();
    Ok(TodoItem { id, content: content.chars().take(ITEM_CHARS).collect(), status })
}

fn fresh_id(items: &[TodoItem]) -> String {
    (1..).map(|n: u32| n.to_string()).find(|id| items.iter().all(|i| &i.id != id)).unwrap_or_default()
}

/// What the agent gets back after a write.
pub fn echo(items: &[TodoItem]) -> Value {
    json!({"success": true, "todos": items.iter().map(|i| json!({"id": i.id, "content": i.content, "status": i.status.word()})).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(arguments: Value) -> &'static str { parse(&arguments).map_or_else(|bad| bad.code, |_| "ok") }

    #[test]
    fn ledger_f48_f49_at_most_one_is_in_progress_and_the_list_is_bounded() {
        let item = |status: &str| json!({"content": "x", "status": status});
        assert_eq!(code(json!({"todos": [item("in_progress"), item("pending"), item("in_progress")]})), "multiple_in_progress");
        assert_eq!(code(json!({"todos": [item("in_progress"), item("completed")]})), "ok");
        assert_eq!([code(json!({"todos": vec!["x"; 40]})), code(json!({"todos": vec!["x"; 41]}))], ["ok", "too_many_todos"]);
        let long = parse(&json!({"todos": ["é".repeat(501)]})).map(|l| l[0].content.chars().count());
        assert_eq!(long, Ok(500), "cut, not refused");
        for (arguments, expected) in [(json!({}), "invalid_args"), (json!({"todos": "x"}), "invalid_args"), (json!({"todos": [" "]}), "invalid_args"), (json!({"todos": [item("done")]}), "invalid_status"), (json!({"todos": [{"content": "x", "status": 1}]}), "invalid_status")] {
            assert_eq!(code(arguments.clone()), expected, "{arguments}");
        }
    }

    #[test]
    fn ledger_f51_ids_are_optional_and_doubles_get_another() {
        let items = parse(&json!({"todos": ["plain", {"title": "named", "id": "a"}, {"content": "again", "id": "a", "status": "completed"}, {"content": "last", "id": "1"}]})).expect("a list");
        let ids: std::collections::BTreeSet<&str> = items.iter().map(|i| i.id.as_str()).collect();
        assert_eq!((ids.len(), items[1].id.as_str()), (4, "a"));
        assert!(items.iter().all(|i| !i.id.is_empty()));
        assert_eq!(items.iter().map(|i| (i.content.as_str(), i.status.word())).collect::<Vec<_>>(), [("plain", "pending"), ("named", "pending"), ("again", "completed"), ("last", "pending")]);
        assert_eq!(parse(&json!({"todos": []})), Ok(vec![]), "an empty list takes it away");
    }
}
