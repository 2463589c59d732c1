//! Arguments as they will run: what the agent wrote, checked against the parameters, with the manifest's defaults filled in.
//!
//! The catalogue calls it before the gate judges a call, so that what is judged and approved is exactly what runs.

use serde_json::{Map, Value, json};

use super::manifest::{Kind, Param};
use crate::engine::tool::ToolOutcome;

/// Longest argument text of one call, in characters (wire limit of a tool event).
pub(super) const ARGUMENTS_CHARS: usize = 65_536;

/// A fault of one argument: its name and a sentence.
pub(super) type BadArgument = (String, String);

/// Reads JSON text into an object.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, ToolOutcome> {
    if text.chars().count() > ARGUMENTS_CHARS {
        return Err(invalid("arguments", format!("the arguments are longer than {ARGUMENTS_CHARS} characters")));
    }
    // Models write nothing at all for a tool that takes nothing.
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(invalid("arguments", "the arguments must be a JSON object".into())),
        Err(error) => Err(invalid("arguments", format!("the arguments are no JSON: {error}"))),
    }
}

/// Checks against the parameters and fills in defaults, in the order of the parameters.
pub(super) fn complete(mut given: Map<String, Value>, params: &[Param]) -> Result<Value, ToolOutcome> {
    let mut out = Map::new();
    for param in params {
        let value = given.remove(&param.name).filter(|v| !v.is_null());
        let value = match (value, &param.default) {
            (Some(value), _) => fit(value, param).map_err(|(field, why)| invalid(&field, why))?,
            (None, Some(default)) => default.clone(),
            (None, None) if param.required => return Err(invalid(&param.name, format!("{} is missing: {}", param.name, param.description))),
            (None, None) => continue,
        };
        out.insert(param.name.clone(), value);
    }
    match given.keys().next() {
        Some(extra) => Err(invalid(extra, format!("there is no argument named {extra}"))),
        None => Ok(Value::Object(out)),
    }
}

/// A value as the parameter wants it. A number written as text (a spoken slot, a small model) counts as that number.
pub(super) fn fit(value: Value, param: &Param) -> Result<Value, BadArgument> {
    let value = match (param.kind, value.as_str()) {
        (Kind::Integer, Some(text)) => text.trim().parse::<i64>().map_or(value.clone(), Value::from),
        (Kind::Number, Some(text)) => text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).map_or(value.clone(), Value::from),
        _ => value,
    };
    if !param.kind.holds(&value) {
        return Err((param.name.clone(), format!("{} must be {}", param.name, param.kind.phrase())));
    }
    if !param.choices.is_empty() && !param.choices.contains(&value) {
        let choices: Vec<String> = param.choices.iter().map(Value::to_string).collect();
        return Err((param.name.clone(), format!("{} must be one of {}", param.name, choices.join(", "))));
    }
    Ok(value)
}

fn invalid(field: &str, message: String) -> ToolOutcome {
    let mut outcome = ToolOutcome::failed("invalid_arguments", message);
    outcome.output["field"] = json!(field);
    outcome
}
