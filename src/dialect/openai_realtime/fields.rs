//! Reading one JSON object field by field, with the path of each for the message. `null` is absent unless a field gives it a meaning.

use serde_json::{Map, Value};

use super::ID_MAX;
use super::error::{BadEvent, shown};

type Read<T> = Result<T, BadEvent>;

/// One object and where it stands in the event.
pub(super) struct Fields<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The event itself: paths begin with its own fields.
    pub(super) fn root(map: &'a Map<String, Value>) -> Self { Self { path: String::new(), map } }

    /// `value` as the object that stands at `path`.
    pub(super) fn of(value: &'a Value, path: String) -> Read<Self> {
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other => Err(wrong_type(path, "an object", other)),
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { shown(name) } else { format!("{}.{}", self.path, shown(name)) }
    }

    /// The raw value, `null` included.
    pub(super) fn raw(&self, name: &str) -> Option<&'a Value> { self.map.get(name) }

    /// The value unless absent or `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> { self.map.get(name).filter(|v| !v.is_null()) }

    pub(super) fn text(&self, name: &str) -> Read<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(self.path(name), "a string", other)),
        }
    }

    pub(super) fn need_text(&self, name: &str) -> Read<&'a str> {
        self.text(name)?.ok_or_else(|| BadEvent::missing(self.path(name)))
    }

    /// A string of at most `max` characters.
    pub(super) fn text_max(&self, name: &str, max: usize) -> Read<Option<&'a str>> {
        match self.text(name)? {
            Some(text) if text.len() > max && text.chars().count() > max => Err(too_long(self.path(name), max)),
            text => Ok(text),
        }
    }

    /// A name that may stand for an item, a call or an event.
    pub(super) fn id(&self, name: &str) -> Read<Option<&'a str>> {
        match self.text(name)? {
            Some(id) if id.is_empty() || id.len() > ID_MAX || id.chars().any(char::is_control) => {
                Err(BadEvent::value(self.path(name), format!("Expected an id of 1 to {ID_MAX} bytes without control characters.")))
            }
            id => Ok(id),
        }
    }

    pub(super) fn need_id(&self, name: &str) -> Read<&'a str> { self.id(name)?.ok_or_else(|| BadEvent::missing(self.path(name))) }

    pub(super) fn flag(&self, name: &str) -> Read<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_type(self.path(name), "a boolean", other)),
        }
    }

    pub(super) fn number(&self, name: &str, low: f64, high: f64) -> Read<Option<f64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| wrong_type(self.path(name), "a number", value))?;
        if (low..=high).contains(&number) {
            return Ok(Some(number));
        }
        Err(BadEvent::value(self.path(name), format!("Expected a number from {low} to {high}, got {number}.")))
    }

    pub(super) fn whole(&self, name: &str, low: u64, high: u64) -> Read<Option<u64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        // A whole number written with a decimal point (297.0) is one.
        let number = value.as_u64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
        match number {
            Some(n) if (low..=high).contains(&n) => Ok(Some(n)),
            _ if value.is_number() => {
                Err(BadEvent::value(self.path(name), format!("Expected a whole number from {low} to {high}, got {value}.")))
            }
            _ => Err(wrong_type(self.path(name), "a whole number", value)),
        }
    }

    pub(super) fn object(&self, name: &str) -> Read<Option<Fields<'a>>> {
        self.get(name).map(|value| Fields::of(value, self.path(name))).transpose()
    }

    pub(super) fn need_object(&self, name: &str) -> Read<Fields<'a>> {
        self.object(name)?.ok_or_else(|| BadEvent::missing(self.path(name)))
    }

    pub(super) fn list(&self, name: &str) -> Read<Option<&'a Vec<Value>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong_type(self.path(name), "an array", other)),
        }
    }

    /// One of a closed set of words.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Read<Option<&'static str>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(BadEvent::value(
                self.path(name),
                format!("Invalid value: '{}'. Supported values are: {}.", shown(text), quoted(words)),
            )),
        }
    }

    /// Refuses the first field that is not in `known`.
    pub(super) fn only(&self, known: &[&str], hint: impl Fn(&str) -> Option<&'static str>) -> Read<()> {
        let Some(name) = self.map.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let path = self.path(name);
        let hint = hint(name).map(|at| format!(" It is '{at}' here.")).unwrap_or_default();
        Err(BadEvent::at("unknown_parameter", path.clone(), format!("Unknown parameter: '{path}'.{hint}")))
    }

    /// A value that is kept and echoed and does nothing, within `max` bytes of JSON.
    pub(super) fn kept(&self, name: &str, max: usize) -> Read<Option<Value>> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        if value.to_string().len() > max {
            return Err(BadEvent::value(self.path(name), format!("Too large: at most {max} bytes of JSON are kept.")));
        }
        Ok(Some(value.clone()))
    }
}

/// No better name is known for an unknown field.
pub(super) fn no_hint(_: &str) -> Option<&'static str> { None }

pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
}

pub(super) fn too_long(path: String, max: usize) -> BadEvent {
    BadEvent::at("string_above_max_length", path.clone(), format!("'{path}' is too long: at most {max} characters."))
}

pub(super) fn wrong_type(path: String, expected: &str, got: &Value) -> BadEvent {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    BadEvent::at("invalid_type", path.clone(), format!("Invalid type for '{path}': expected {expected}, got {got}."))
}
