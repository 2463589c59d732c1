//! The executors that are part of the gateway. A new one is a new file and a row in [`TABLE`].
//!
//! Only the runner calls them, on a thread of their own, so they may wait for the disk. Each row says what the executor
//! truly does to the world; no manifest can make it look more harmless.

mod clock;
mod files;
mod notes;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::engine::tool::{Effect, SessionDeed, ToolOutcome};

/// Where the built-ins work.
#[derive(Clone, Debug, Default)]
pub struct BuiltinContext {
    /// One file a note; made when the first note is added.
    pub notes_dir: PathBuf,
    /// Files may be read beneath this folder. `None`: no file may be read.
    pub files_root: Option<PathBuf>,
}

/// A row: name, true class, what it does with checked arguments.
#[derive(Debug)]
pub(super) struct Builtin {
    pub name: &'static str,
    pub effect: Effect,
    pub run: fn(&BuiltinContext, &Value) -> ToolOutcome,
}

const TABLE: &[Builtin] = &[
    Builtin { name: "notes_list", effect: Effect::Read, run: notes::list },
    Builtin { name: "notes_read", effect: Effect::Read, run: notes::read },
    Builtin { name: "notes_add", effect: Effect::Files, run: notes::add },
    Builtin { name: "notes_delete", effect: Effect::Files, run: notes::delete },
    Builtin { name: "todo_write", effect: Effect::Session, run: |_, a| ToolOutcome::deed(SessionDeed::WriteTodo(a.clone())) },
    Builtin { name: "plan_submit", effect: Effect::Session, run: |_, a| ToolOutcome::deed(SessionDeed::SubmitPlan(a.clone())) },
    Builtin { name: "plan_complete", effect: Effect::Session, run: |_, a| ToolOutcome::deed(SessionDeed::CompletePlan(a.clone())) },
    Builtin { name: "clock_now", effect: Effect::Read, run: clock::now },
    Builtin { name: "files_read", effect: Effect::Read, run: files::read },
    Builtin { name: "reply", effect: Effect::Read, run: |_, a| reply(a) },
    #[cfg(test)]
    Builtin { name: "test_panic", effect: Effect::Files, run: |_, _| panic!("the secret is swordfish") },
    #[cfg(test)]
    Builtin { name: "test_wait", effect: Effect::Files, run: wait_for_file },
];

pub(super) fn find(name: &str) -> Option<&'static Builtin> { TABLE.iter().find(|b| b.name == name) }

pub(super) fn names() -> impl Iterator<Item = &'static str> { TABLE.iter().map(|b| b.name) }

/// Names of what the built-ins work on, newest notes first, then files at the top of the folder; at most `most`.
pub(super) fn titles(context: &BuiltinContext, most: usize) -> Vec<String> {
    let mut titles = notes::titles(context);
    titles.extend(files::names(context, most));
    titles.truncate(most);
    titles
}

/// Gives the arguments back as the result: a manifest alone can so say a fixed thing ("the password of the guest network is ...").
fn reply(arguments: &Value) -> ToolOutcome {
    let mut output = Map::from_iter([("success".to_string(), json!(true))]);
    output.extend(arguments.as_object().cloned().unwrap_or_default().into_iter().filter(|(key, _)| key != "success"));
    ToolOutcome::ok(Value::Object(output))
}

/// Waits until the file named by `path` is there, and counts its runs beside it.
#[cfg(test)]
fn wait_for_file(_: &BuiltinContext, arguments: &Value) -> ToolOutcome {
    let path = PathBuf::from(arguments["path"].as_str().unwrap_or_default());
    let runs = path.with_extension("runs");
    let before = std::fs::read_to_string(&runs).unwrap_or_default();
    std::fs::write(&runs, before + "x").expect("the test's folder can be written");
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    ToolOutcome::ok(json!({"success": true}))
}
