//! Reading fields of a JSON object by name, with errors that name the field. Used by the record codec alone.

use serde_json::{Map, Value};

use super::RecordError;
use super::opaque;

/// An object and the name under which its errors go.
pub(super) struct Fields<'a> {
    kind: &'a str,
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(kind: &'a str, map: &'a Map<String, Value>) -> Self { Self { kind, path: String::new(), map } }

    pub(super) fn wrong(&self, field: &str, problem: impl Into<String>) -> RecordError {
        RecordError::Field { kind: self.kind.to_string(), field: format!("{}{field}", self.path), problem: problem.into() }
    }

    fn get(&self, field: &str) -> Result<&'a Value, RecordError> { self.map.get(field).ok_or_else(|| self.wrong(field, "is missing")) }

    pub(super) fn text(&self, field: &str) -> Result<String, RecordError> {
        self.get(field)?.as_str().map(str::to_string).ok_or_else(|| self.wrong(field, "is not a string"))
    }

    pub(super) fn whole(&self, field: &str) -> Result<u64, RecordError> {
        self.get(field)?.as_u64().ok_or_else(|| self.wrong(field, "is not a whole number"))
    }

    pub(super) fn small(&self, field: &str) -> Result<u32, RecordError> {
        u32::try_from(self.whole(field)?).map_err(|_| self.wrong(field, "is too large"))
    }

    pub(super) fn truth(&self, field: &str) -> Result<bool, RecordError> {
        self.get(field)?.as_bool().ok_or_else(|| self.wrong(field, "is neither true nor false"))
    }

    /// `null` is `None`; a field that is not there is an error, so that nothing is lost unseen.
    pub(super) fn maybe<T>(&self, field: &str, read: impl FnOnce(&Self, &str) -> Result<T, RecordError>) -> Result<Option<T>, RecordError> {
        if self.get(field)?.is_null() { Ok(None) } else { read(self, field).map(Some) }
    }

    /// A word that `known` turns into a value.
    pub(super) fn word<T>(&self, field: &str, known: impl FnOnce(&str) -> Option<T>) -> Result<T, RecordError> {
        let word = self.text(field)?;
        known(&word).ok_or_else(|| self.wrong(field, format!("has the unknown word \"{word}\"")))
    }

    pub(super) fn opaque(&self, field: &str) -> Result<Value, RecordError> {
        opaque::unpack(self.get(field)?).ok_or_else(|| self.wrong(field, "holds a packed value that cannot be read"))
    }

    pub(super) fn object(&self, field: &str) -> Result<Fields<'a>, RecordError> {
        let map = self.get(field)?.as_object().ok_or_else(|| self.wrong(field, "is not an object"))?;
        Ok(Fields { kind: self.kind, path: format!("{}{field}.", self.path), map })
    }

    /// A list of objects, each read by `read`.
    pub(super) fn objects<T>(&self, field: &str, read: impl Fn(&Fields<'a>) -> Result<T, RecordError>) -> Result<Vec<T>, RecordError> {
        let list = self.get(field)?.as_array().ok_or_else(|| self.wrong(field, "is not a list"))?;
        list.iter().enumerate().map(|(n, item)| {
            let map = item.as_object().ok_or_else(|| self.wrong(&format!("{field}.{n}"), "is not an object"))?;
            read(&Fields { kind: self.kind, path: format!("{}{field}.{n}.", self.path), map })
        }).collect()
    }

    pub(super) fn texts(&self, field: &str) -> Result<Vec<String>, RecordError> {
        let list = self.get(field)?.as_array().ok_or_else(|| self.wrong(field, "is not a list"))?;
        list.iter().enumerate().map(|(n, item)| {
            item.as_str().map(str::to_string).ok_or_else(|| self.wrong(&format!("{field}.{n}"), "is not a string"))
        }).collect()
    }
}
