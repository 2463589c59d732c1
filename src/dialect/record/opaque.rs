//! Values that are somebody else's (arguments of a call, what a tool answered), packed so that every one of them survives a
//! line of JSON: floats that a JSON reader would round otherwise, and values nested deeper than a reader accepts.
//!
//! Matters because an approved plan is bound to the hash of its arguments: one bit off, and the call would not be made.
//!
//! A packed value is an object with the single key `$f64` (its text) or `$json` (text of a packed value). An object of the
//! caller's that looks like one gets one more `$`.

use serde_json::{Map, Value};

/// Levels kept as plain JSON before the rest is put into a string. Chosen: far below the 128 that `serde_json` reads.
const PLAIN_DEPTH: usize = 32;

pub(super) fn pack(value: &Value) -> Value { pack_at(value, 0) }

fn pack_at(value: &Value, depth: usize) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            let same = serde_json::from_str::<Value>(&text).is_ok_and(|back| &back == value);
            if same { value.clone() } else { single("$f64", text.into()) }
        }
        Value::Array(_) | Value::Object(_) if depth >= PLAIN_DEPTH => single("$json", pack_at(value, 0).to_string().into()),
        Value::Array(items) => Value::Array(items.iter().map(|v| pack_at(v, depth + 1)).collect()),
        Value::Object(map) => match sole_key(map) {
            Some(key) => single(&format!("${key}"), pack_at(&map[key], depth + 1)),
            None => Value::Object(map.iter().map(|(k, v)| (k.clone(), pack_at(v, depth + 1))).collect()),
        },
        plain => plain.clone(),
    }
}

/// `None` for a packed value that cannot be read.
pub(super) fn unpack(value: &Value) -> Option<Value> {
    match value {
        Value::Array(items) => items.iter().map(unpack).collect::<Option<Vec<_>>>().map(Value::Array),
        Value::Object(map) => match sole_key(map) {
            Some("$f64") => map["$f64"].as_str()?.parse::<f64>().ok().map(Value::from),
            Some("$json") => unpack(&serde_json::from_str(map["$json"].as_str()?).ok()?),
            Some(key) => Some(single(&key[1..], unpack(&map[key])?)),
            None => map.iter().map(|(k, v)| Some((k.clone(), unpack(v)?))).collect::<Option<Map<_, _>>>().map(Value::Object),
        },
        plain => Some(plain.clone()),
    }
}

/// The key, when the object has one key only and that one looks like a packing mark.
fn sole_key(map: &Map<String, Value>) -> Option<&str> {
    let key = map.keys().next().filter(|_| map.len() == 1)?;
    let bare = key.trim_start_matches('$');
    (key.starts_with('$') && matches!(bare, "f64" | "json")).then_some(key.as_str())
}

fn single(key: &str, value: Value) -> Value { Value::Object(Map::from_iter([(key.to_string(), value)])) }
