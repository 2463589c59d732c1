//! All tools there are: read once at start, shared by every conversation, never changed afterwards.
//!
//! Session hands its specs to agents and to the gate, its sentences to the commander. First-party manifests are compiled in;
//! more come from the operator's folder and are trusted like them. A mistake anywhere fails the whole load.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::arguments;
use super::manifest::{self, Endpoint};
use super::reader::{Faults, ManifestError};
use crate::engine::sentence::Sentence;
use crate::engine::tool::{ToolCall, ToolOutcome, ToolSpec, fill_slots, listed};

/// First-party manifests, one skill a file.
const FIRST_PARTY: &[(&str, &str)] = &[
    ("tools/notes.json", include_str!("../../tools/notes.json")),
    ("tools/todo.json", include_str!("../../tools/todo.json")),
    ("tools/plan.json", include_str!("../../tools/plan.json")),
    ("tools/clock.json", include_str!("../../tools/clock.json")),
    ("tools/files.json", include_str!("../../tools/files.json")),
];
/// Most files read from the operator's folder.
const FILES_MAX: usize = 200;
/// Longest argument said aloud or written as a step, in characters; the screen shows the rest.
const SPOKEN_CHARS: usize = 160;

/// A call in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What a person is asked ("Add buy milk to your notes?").
    pub ask: String,
    /// What it does, as a step of a plan ("Add buy milk to the notes").
    pub step: String,
}

/// See the file's head. Clones share one list.
#[derive(Clone, Debug)]
pub struct Catalogue {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    specs: Vec<ToolSpec>,
    endpoints: Vec<Arc<Endpoint>>,
    by_name: HashMap<String, usize>,
    sentences: Vec<Sentence>,
}

impl Catalogue {
    /// Reads the compiled-in manifests (when `builtin`) and every `*.json` of `extra_dir`, in the order of their names. A
    /// folder that is not there is an empty one.
    ///
    /// # Errors
    /// Every mistake of every file.
    pub fn load(builtin: bool, extra_dir: Option<&Path>) -> Result<Catalogue, Vec<ManifestError>> {
        let mut inner = Inner::default();
        let mut errors = Vec::new();
        for (file, text) in FIRST_PARTY.iter().filter(|_| builtin) {
            inner.add(manifest::read(file, text), &mut errors);
        }
        for (file, text) in extra_dir.map(|dir| folder(dir, &mut errors)).unwrap_or_default() {
            inner.add(manifest::read(&file, &text), &mut errors);
        }
        if errors.is_empty() { Ok(Catalogue { inner: Arc::new(inner) }) } else { Err(errors) }
    }

    /// All tools, in the order of the files.
    pub fn specs(&self) -> &[ToolSpec] { &self.inner.specs }

    /// What an agent is told of while nothing is being carried out: see [`listed`], the one list there is.
    pub fn offered(&self, plan_mode: bool) -> Vec<ToolSpec> { listed(self.specs(), plan_mode, false) }

    /// The tool of this name or alias; its `name` is the canonical one.
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> { self.endpoint(name).map(|e| &e.spec) }

    /// All sentences that stand for a call.
    pub fn sentences(&self) -> &[Sentence] { &self.inner.sentences }

    /// What an agent wrote, as it will run: parsed, checked and with defaults filled in. For a tool nobody knows only parsed:
    /// the gate refuses that one, for the reason that holds.
    ///
    /// # Errors
    /// The outcome `invalid_arguments` with the field's name, for the agent.
    pub fn prepare(&self, name: &str, arguments: &str) -> Result<Value, ToolOutcome> {
        let given = arguments::parse(arguments)?;
        match self.endpoint(name) {
            Some(endpoint) => arguments::complete(given, &endpoint.params),
            None => Ok(Value::Object(given)),
        }
    }

    /// The call in words. Long arguments are shortened, line breaks are spaces.
    pub fn describe(&self, call: &ToolCall) -> Described {
        let Some(spec) = self.spec(&call.tool) else {
            return Described { ask: format!("Run the tool {} now?", call.tool), step: format!("Run {}", call.tool) };
        };
        let words = shortened(&call.arguments);
        let ask = spec.ask.as_ref().map_or_else(|| format!("Run {} now?", spec.display), |t| fill_slots(t, &words));
        let step = spec.step.as_ref().map_or_else(|| ask.trim_end_matches('?').to_string(), |t| fill_slots(t, &words));
        Described { ask, step }
    }

    pub(super) fn endpoint(&self, name: &str) -> Option<&Arc<Endpoint>> {
        self.inner.by_name.get(name).map(|at| &self.inner.endpoints[*at])
    }
}

impl Inner {
    fn add(&mut self, read: Result<Vec<Endpoint>, Vec<ManifestError>>, errors: &mut Vec<ManifestError>) {
        match read {
            Ok(endpoints) => endpoints.into_iter().for_each(|e| self.add_one(e, errors)),
            Err(more) => errors.extend(more),
        }
    }

    fn add_one(&mut self, endpoint: Endpoint, errors: &mut Vec<ManifestError>) {
        for name in std::iter::once(&endpoint.spec.name).chain(&endpoint.aliases) {
            match self.by_name.get(name) {
                Some(other) => {
                    let mut faults = Faults::of(&endpoint.file);
                    let taken = self.endpoints.get(*other).map_or(&endpoint.file, |e| &e.file);
                    faults.add(endpoint.path.clone(), format!("the name {name} is taken by {taken}"), "rename the skill, the endpoint or the alias");
                    errors.append(&mut faults.list);
                }
                None => { self.by_name.insert(name.clone(), self.endpoints.len()); }
            }
        }
        self.specs.push(endpoint.spec.clone());
        self.sentences.extend(endpoint.sentences.iter().cloned());
        self.endpoints.push(Arc::new(endpoint));
    }
}

/// The operator's files, by name.
fn folder(dir: &Path, errors: &mut Vec<ManifestError>) -> Vec<(String, String)> {
    let mut trouble = |path: &Path, message: String, fix: &str| {
        errors.push(ManifestError { file: path.display().to_string(), path: "$".into(), message, fix: fix.into() });
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(e) => {
            trouble(dir, format!("this folder cannot be read: {e}"), "see to its permissions");
            return Vec::new();
        }
    };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "json")).collect();
    paths.sort();
    if paths.len() > FILES_MAX {
        trouble(dir, format!("there are {} manifests", paths.len()), "keep at most 200");
        return Vec::new();
    }
    let mut out = Vec::new();
    for path in paths {
        match read_file(&path) {
            Ok(text) => out.push((path.display().to_string(), text)),
            Err(why) => trouble(&path, why, "mend or remove the file"),
        }
    }
    out
}

fn read_file(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| format!("this cannot be read: {e}"))?;
    file.take(manifest::FILE_BYTES + 1).read_to_string(&mut text).map_err(|e| format!("this cannot be read: {e}"))?;
    if text.len() as u64 > manifest::FILE_BYTES { Err("this is longer than 1 MiB".into()) } else { Ok(text) }
}

fn shortened(arguments: &Value) -> Value {
    let short = |value: &Value| match value {
        Value::String(text) => {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut: String = line.chars().take(SPOKEN_CHARS).collect();
            Value::from(if cut.len() < line.len() { format!("{cut} and so on") } else { cut })
        }
        other => other.clone(),
    };
    match arguments {
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), short(v))).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
