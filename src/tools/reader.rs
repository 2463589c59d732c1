//! Reads a manifest's JSON key by key and remembers every mistake with its place and its cure, instead of stopping at the first.
//!
//! `manifest` is its only caller. It never guesses: a key nobody knows is a mistake too.

use serde_json::{Map, Value};

/// One mistake in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {path}: {message}; {fix}")]
pub struct ManifestError {
    /// The file.
    pub file: String,
    /// JSON path (`$.endpoints[1].effect`).
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// The mistakes of one file so far.
pub(super) struct Faults {
    file: String,
    pub list: Vec<ManifestError>,
}

impl Faults {
    pub fn of(file: &str) -> Self { Self { file: file.to_string(), list: Vec::new() } }

    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        self.list.push(ManifestError { file: self.file.clone(), path: path.into(), message: message.into(), fix: fix.into() });
    }
}

/// One JSON object of the file and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Node<'a> {
    /// `None`, and a fault, when the value is no object.
    pub fn of(value: &'a Value, path: &'a str, faults: &mut Faults) -> Option<Node<'a>> {
        let map = value.as_object();
        if map.is_none() {
            faults.add(path, "this is no object", "write { ... }");
        }
        map.map(|map| Node { map, path })
    }

    pub fn path(&self, key: &str) -> String { format!("{}.{key}", self.path) }

    pub fn get(&self, key: &str) -> Option<&'a Value> { self.map.get(key).filter(|v| !v.is_null()) }

    /// Faults for keys that are not in `known`.
    pub fn only(&self, known: &[&str], faults: &mut Faults) {
        for key in self.map.keys().filter(|k| !known.contains(&k.as_str())) {
            faults.add(self.path(key), "nobody knows this key", format!("take it out, or use one of {}", known.join(", ")));
        }
    }

    /// An optional text; empty when absent.
    pub fn text(&self, key: &str, faults: &mut Faults) -> String {
        match self.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.trim().to_string(),
            Some(_) => {
                faults.add(self.path(key), "this is no text", "put it in quotes");
                String::new()
            }
        }
    }

    /// A text that must be there.
    pub fn needed(&self, key: &str, faults: &mut Faults) -> String {
        let text = self.text(key, faults);
        if text.is_empty() && !matches!(self.get(key), Some(v) if !v.is_string()) {
            faults.add(self.path(key), "this is missing or empty", format!("add \"{key}\": \"...\""));
        }
        text
    }

    /// An optional yes or no.
    pub fn flag(&self, key: &str, faults: &mut Faults) -> Option<bool> {
        let value = self.get(key)?;
        if !value.is_boolean() {
            faults.add(self.path(key), "this is no boolean", "write true or false, without quotes");
        }
        value.as_bool()
    }

    /// An optional positive whole number up to `max`.
    pub fn count(&self, key: &str, max: u64, faults: &mut Faults) -> Option<u64> {
        let value = self.get(key)?;
        let number = value.as_u64().filter(|n| (1..=max).contains(n));
        if number.is_none() {
            faults.add(self.path(key), "this number does not do", format!("write a whole number from 1 to {max}"));
        }
        number
    }

    /// One of a few words; `None` when absent.
    pub fn word(&self, key: &str, words: &[&str], faults: &mut Faults) -> Option<&'a str> {
        let value = self.get(key)?;
        let found = value.as_str().filter(|w| words.contains(w));
        if found.is_none() {
            faults.add(self.path(key), format!("{value} is none of the words that stand here"), format!("use one of {}", words.join(", ")));
        }
        found
    }

    /// An optional list; empty when absent.
    pub fn list(&self, key: &str, faults: &mut Faults) -> &'a [Value] {
        match self.get(key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                faults.add(self.path(key), "this is no list", "write [ ... ]");
                &[]
            }
        }
    }

    /// An optional list of texts.
    pub fn texts(&self, key: &str, faults: &mut Faults) -> Vec<&'a str> {
        let mut out = Vec::new();
        for (n, value) in self.list(key, faults).iter().enumerate() {
            match value.as_str() {
                Some(text) => out.push(text),
                None => faults.add(format!("{}[{n}]", self.path(key)), "this is no text", "put it in quotes"),
            }
        }
        out
    }
}
