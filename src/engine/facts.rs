//! What one call does, decided from its arguments before it runs: class, marks, and the paths and commands it names.
//!
//! A manifest declares the class a tool has at least, and which arguments hold a path, a command or an address (`role`), or raise
//! the class (`effects`). Arguments only ever make a call worse. Pure; the gate and the runner ask here and nowhere else.

use serde_json::Value;

use super::tool::{Effect, ToolSpec};

/// What is known of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its class.
    pub effect: Effect,
    /// It cannot be undone.
    pub irreversible: bool,
    /// A person must say yes to each.
    pub needs_person: bool,
    /// Paths it names, as written.
    pub paths: Vec<String>,
    /// Commands it would run.
    pub commands: Vec<String>,
    /// Addresses it would reach.
    pub urls: Vec<String>,
}

impl Facts {
    /// True when plan mode lets it pass: a class that changes nothing, and no mark.
    pub fn is_plan_safe(&self) -> bool { self.effect.is_plan_safe() && !self.irreversible && !self.needs_person }
}

/// How bad a class is, for the worse of two. Nobody knows what unknown does: nothing is worse.
fn weight(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0, Effect::View => 1, Effect::Session => 2, Effect::Files => 3, Effect::Host => 4, Effect::External => 5, Effect::Unknown => 6,
    }
}

/// The worse of two classes.
pub fn worse(a: Effect, b: Effect) -> Effect { if weight(b) > weight(a) { b } else { a } }

/// The facts of a call with these arguments.
pub fn facts_of(spec: &ToolSpec, arguments: &Value) -> Facts {
    let mut facts = Facts { effect: spec.effect, irreversible: spec.irreversible, needs_person: spec.needs_person, paths: vec![], commands: vec![], urls: vec![] };
    let Some(properties) = spec.parameters["properties"].as_object() else { return facts };
    for (name, schema) in properties {
        let value = &arguments[name.as_str()];
        match schema["format"].as_str() {
            Some("path") => texts(value, &mut facts.paths),
            Some("command") => texts(value, &mut facts.commands),
            Some("uri") => texts(value, &mut facts.urls),
            _ => {}
        }
        if let Some(raises) = schema["x-effects"].as_object() {
            facts.effect = worse(facts.effect, raised(raises, value));
        }
    }
    facts
}

/// The class a value raises to; a value that is not listed is not known.
fn raised(raises: &serde_json::Map<String, Value>, value: &Value) -> Effect {
    let word = match value {
        Value::Null => return Effect::Read,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    raises.get(&word).and_then(Value::as_str).and_then(Effect::from_word).unwrap_or(Effect::Unknown)
}

fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|i| texts(i, into)),
        Value::Object(map) => map.values().for_each(|v| texts(v, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(effect: Effect, properties: Value) -> ToolSpec {
        ToolSpec {
            name: "x__y".into(), description: String::new(), parameters: json!({"type": "object", "properties": properties}), effect, tier: None, irreversible: false,
            needs_person: false, ask: None, step: None, display: "x".into(),
        }
    }

    #[test]
    fn ledger_l26_there_are_six_classes_and_the_unknown_which_is_the_worst() {
        let words = ["read", "view", "session", "files", "host", "external", "unknown"];
        let all: Vec<Effect> = words.iter().filter_map(|w| Effect::from_word(w)).collect();
        assert_eq!(all.len(), 7);
        for (n, pair) in all.windows(2).enumerate() {
            assert_eq!((worse(pair[0], pair[1]), worse(pair[1], pair[0])), (pair[1], pair[1]), "{n}");
        }
        assert_eq!(all.iter().filter(|e| e.is_plan_safe()).count(), 3);
        assert_eq!(Effect::from_word("write"), None);
    }

    #[test]
    fn ledger_l27_one_tool_has_another_class_from_call_to_call() {
        let fetch = spec(Effect::Read, json!({"method": {"type": "string", "x-effects": {"GET": "read", "POST": "external"}}}));
        let of = |arguments: Value| facts_of(&fetch, &arguments).effect;
        assert_eq!([of(json!({"method": "GET"})), of(json!({"method": "POST"})), of(json!({}))], [Effect::Read, Effect::External, Effect::Read]);
        assert_eq!(of(json!({"method": "BREW"})), Effect::Unknown, "what nobody listed is not known");
        let files = spec(Effect::Files, json!({"how": {"x-effects": {"quietly": "read"}}}));
        assert_eq!(facts_of(&files, &json!({"how": "quietly"})).effect, Effect::Files, "arguments never make a call more harmless");
    }

    #[test]
    fn ledger_l28_marks_take_a_call_out_of_plan_mode_whatever_its_class() {
        let read = spec(Effect::Read, json!({}));
        assert!(facts_of(&read, &json!({})).is_plan_safe());
        assert!(!facts_of(&ToolSpec { irreversible: true, ..read.clone() }, &json!({})).is_plan_safe());
        assert!(!facts_of(&ToolSpec { needs_person: true, ..read }, &json!({})).is_plan_safe());
    }

    #[test]
    fn what_an_argument_is_for_is_declared_and_not_guessed_from_its_name() {
        let tool = spec(Effect::Host, json!({"a": {"format": "path"}, "b": {"format": "command"}, "path": {"type": "string"}, "c": {"format": "uri"}}));
        let facts = facts_of(&tool, &json!({"a": ["/etc", {"deep": "/var"}], "b": "ls", "path": "/never", "c": "https://example.org"}));
        assert_eq!((facts.paths, facts.commands, facts.urls), (vec!["/etc".to_string(), "/var".into()], vec!["ls".to_string()], vec!["https://example.org".to_string()]));
    }
}
