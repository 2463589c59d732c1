//! A skill's manifest: one JSON file, read into endpoints that the catalogue can list. tools/README.md describes the shape.
//!
//! Every mistake is found in one go. What this build cannot honour (another method, a daemon, a sandbox) is a mistake and not
//! a silent omission, because a tool must never be less guarded than its author wrote.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::arguments::fit;
use super::builtin::{self, Builtin};
use super::reader::{Faults, ManifestError, Node};
use super::wording::{answer, sentences, spoken};
use crate::engine::sentence::Sentence;
use crate::engine::tool::{Effect, Tier, ToolSpec};

/// Largest manifest file, in bytes.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;
/// Deadline of a call whose manifest names none.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest deadline a manifest may name, in seconds.
const DEADLINE_MAX: u64 = 600;

/// What a skill may say it touches. Closed, so that a new word is looked at by a person before it means anything.
const PERMISSIONS: &[&str] = &["clock", "files_read", "files_write", "network", "notes_read", "notes_write", "process", "session"];
const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "PATCH", "WS_EXECUTE", "PYTHON", "CUSTOM"];
const SKILL_KEYS: &[&str] = &[
    "skill_id", "version", "author", "brand", "description", "trigger_phrases", "categories", "auth", "endpoints", "flows", "crons",
    "triggers", "permissions", "requires_daemon", "max_calls_per_hour",
];
const ENDPOINT_KEYS: &[&str] = &[
    "id", "method", "url", "description", "params", "returns_description", "ui_hint", "requires_sandbox", "safety_tier", "read_only_hint",
    "requires_user_approval", "result_budget", "emit_result_preview", "timeout_seconds", "effect", "irreversible", "ask", "step", "display",
    "aliases", "phrases", "answer",
];
const PARAM_KEYS: &[&str] = &["name", "type", "items", "required", "description", "default", "enum", "role", "effects"];
/// What an argument is for, where the gate has to know, and the format it stands under in the schema.
const ROLES: [(&str, &str); 3] = [("path", "path"), ("command", "command"), ("url", "uri")];

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind { String, Integer, Number, Boolean, Array, Object }

impl Kind {
    const WORDS: [&'static str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

    fn from_word(word: &str) -> Option<Kind> {
        [Kind::String, Kind::Integer, Kind::Number, Kind::Boolean, Kind::Array, Kind::Object].into_iter().find(|k| k.word() == word)
    }

    fn word(self) -> &'static str { Self::WORDS[self as usize] }

    pub fn phrase(self) -> &'static str {
        match self {
            Kind::String => "a text", Kind::Integer => "a whole number", Kind::Number => "a number", Kind::Boolean => "true or false",
            Kind::Array => "a list", Kind::Object => "an object",
        }
    }

    pub fn holds(self, value: &Value) -> bool {
        match self {
            Kind::String => value.is_string(), Kind::Integer => value.is_i64() || value.is_u64(), Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(), Kind::Array => value.is_array(), Kind::Object => value.is_object(),
        }
    }
}

/// One argument of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Param {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
    pub description: String,
    pub default: Option<Value>,
    pub choices: Vec<Value>,
    items: Option<Value>,
    /// Format of the schema that tells the gate what the argument is for.
    format: Option<&'static str>,
    /// Class that each value raises the call to.
    effects: Map<String, Value>,
}

/// One tool, complete.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub spec: ToolSpec,
    pub aliases: Vec<String>,
    pub params: Vec<Param>,
    pub sentences: Vec<Sentence>,
    pub builtin: &'static Builtin,
    pub deadline: Duration,
    pub feed: bool,
    pub per_hour: Option<u64>,
    /// For the message about a name that is taken.
    pub file: String,
    pub path: String,
}

/// Reads one file. All its mistakes, or its endpoints.
///
/// # Errors
/// Every [`ManifestError`] of the file.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Endpoint>, Vec<ManifestError>> {
    let mut faults = Faults::of(file);
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            faults.add(format!("line {} column {}", error.line(), error.column()), format!("this is no JSON: {error}"), "mend the file");
            return Err(faults.list);
        }
    };
    let endpoints = skill(file, &value, &mut faults);
    if faults.list.is_empty() { Ok(endpoints) } else { Err(faults.list) }
}

fn skill(file: &str, value: &Value, faults: &mut Faults) -> Vec<Endpoint> {
    let Some(node) = Node::of(value, "$", faults) else { return Vec::new() };
    node.only(SKILL_KEYS, faults);
    let id = node.needed("skill_id", faults);
    name_check(&id, &node.path("skill_id"), faults);
    for key in ["version", "author", "brand", "description"] { node.text(key, faults); }
    for key in ["trigger_phrases", "categories"] { node.texts(key, faults); }
    for (n, word) in node.texts("permissions", faults).into_iter().enumerate() {
        if !PERMISSIONS.contains(&word) {
            faults.add(format!("$.permissions[{n}]"), format!("\"{word}\" is no permission"), format!("use one of {}", PERMISSIONS.join(", ")));
        }
    }
    for key in ["auth", "flows", "crons", "triggers"] {
        let empty = node.get(key).is_none_or(|v| v == &json!([]) || v == &json!({}) || v == "none");
        if !empty {
            faults.add(node.path(key), "this gateway does not do that", format!("take \"{key}\" out"));
        }
    }
    if node.flag("requires_daemon", faults) == Some(true) {
        faults.add(node.path("requires_daemon"), "there are no daemons here", "take the skill out, or the key");
    }
    let per_hour = node.count("max_calls_per_hour", 100_000, faults);
    let list = node.list("endpoints", faults);
    if list.is_empty() {
        faults.add("$.endpoints", "a skill without endpoints can do nothing", "add one");
    }
    list.iter().enumerate().filter_map(|(n, e)| {
        let path = format!("$.endpoints[{n}]");
        let endpoint = endpoint(&id, e, &path, faults)?;
        Some(Endpoint { per_hour, file: file.to_string(), path, ..endpoint })
    }).collect()
}

fn endpoint(skill: &str, value: &Value, path: &str, faults: &mut Faults) -> Option<Endpoint> {
    let node = Node::of(value, path, faults)?;
    node.only(ENDPOINT_KEYS, faults);
    let id = node.needed("id", faults);
    name_check(&id, &node.path("id"), faults);
    for key in ["returns_description", "ui_hint"] { node.text(key, faults); }
    node.flag("emit_result_preview", faults);
    if node.flag("requires_sandbox", faults) == Some(true) {
        faults.add(node.path("requires_sandbox"), "there is no sandbox here", "the tool cannot be offered: take it out");
    }
    let builtin = executor(&node, faults);
    let effect = effect(&node, builtin, faults);
    let params = params(&node, faults);
    let ask = spoken(&node, "ask", &params, faults);
    let step = spoken(&node, "step", &params, faults);
    let display = Some(node.text("display", faults)).filter(|d| !d.is_empty()).unwrap_or_else(|| format!("{skill}: {}", id.replace('_', " ")));
    let name = format!("{skill}__{id}");
    let answer = answer(&node, faults).map(Arc::new);
    let sentences = sentences(&node, &name, &params, answer, faults);
    let spec = ToolSpec {
        description: node.needed("description", faults),
        parameters: schema(&params),
        effect,
        tier: node.word("safety_tier", &["safe", "confirm", "deny"], faults).map(tier_of),
        irreversible: node.flag("irreversible", faults) == Some(true),
        needs_person: node.flag("requires_user_approval", faults) == Some(true),
        ask, step, display, name,
    };
    if spec.irreversible && effect.is_plan_safe() {
        faults.add(node.path("irreversible"), format!("an effect of class {} changes nothing that would need undoing", effect.word()), "name the true effect");
    }
    let aliases = node.texts("aliases", faults).into_iter().map(str::to_string).collect();
    let deadline = node.count("timeout_seconds", DEADLINE_MAX, faults).map_or(DEADLINE, Duration::from_secs);
    let feed = node.word("result_budget", &["standard", "feed", "workspace"], faults) == Some("feed");
    // Last, so that an unknown executor hides no other mistake.
    let builtin = builtin?;
    Some(Endpoint { spec, params, sentences, aliases, builtin, deadline, feed, per_hour: None, file: String::new(), path: String::new() })
}

/// Names stand on the wire as `{skill}__{endpoint}`, so neither half may hold the seam.
fn name_check(name: &str, path: &str, faults: &mut Faults) {
    let good = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') && !name.contains("__")
        && !name.starts_with('_') && !name.ends_with('_') && name.len() <= 48;
    if !good {
        faults.add(path, format!("\"{name}\" is no name"), "use up to 48 lower case letters, digits and single _ between them");
    }
    if name.starts_with("mcp_") || name.starts_with("daemon_") {
        faults.add(path, format!("\"{name}\" begins like a tool from elsewhere"), "names that begin with mcp_ or daemon_ are kept for those");
    }
}

fn tier_of(word: &str) -> Tier {
    match word { "safe" => Tier::Safe, "deny" => Tier::Deny, _ => Tier::Confirm }
}

fn executor(node: &Node, faults: &mut Faults) -> Option<&'static Builtin> {
    let method = node.word("method", METHODS, faults);
    if node.get("method").is_none() || method.is_some_and(|m| m != "CUSTOM") {
        faults.add(node.path("method"), "this gateway runs built-in tools only", "write \"method\": \"CUSTOM\" and a url \"builtin:NAME\"");
    }
    let url = node.needed("url", faults);
    let found = url.strip_prefix("builtin:").and_then(builtin::find);
    if found.is_none() && !url.is_empty() {
        faults.add(node.path("url"), format!("\"{url}\" is no built-in"), format!("use one of {}", builtin::names().map(|n| format!("builtin:{n}")).collect::<Vec<_>>().join(", ")));
    }
    found
}

/// The declared class. `read_only_hint` without a class means read; nothing declared means unknown. A hint or a class that
/// makes the executor look more harmless than it is fails.
fn effect(node: &Node, builtin: Option<&Builtin>, faults: &mut Faults) -> Effect {
    let words: Vec<&str> = ALL_EFFECTS.iter().map(|e| e.word()).collect();
    let declared = node.word("effect", &words, faults).and_then(Effect::from_word);
    let hint = node.flag("read_only_hint", faults) == Some(true);
    let effect = declared.unwrap_or(if hint { Effect::Read } else { Effect::Unknown });
    if hint && !effect.is_plan_safe() {
        faults.add(node.path("read_only_hint"), format!("the hint says nothing is changed, the effect says \"{}\"", effect.word()), "take the hint out, or name the true effect");
    }
    if let Some(builtin) = builtin && effect.is_plan_safe() && effect != builtin.effect {
        let key = if declared.is_some() { "effect" } else { "read_only_hint" };
        faults.add(node.path(key), format!("builtin:{} is of class \"{}\"", builtin.name, builtin.effect.word()), format!("write \"effect\": \"{}\"", builtin.effect.word()));
    }
    effect
}

const ALL_EFFECTS: [Effect; 7] = [Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown];

fn params(node: &Node, faults: &mut Faults) -> Vec<Param> {
    let mut out: Vec<Param> = Vec::new();
    for (n, value) in node.list("params", faults).iter().enumerate() {
        let path = format!("{}[{n}]", node.path("params"));
        let Some(param) = param(value, &path, faults) else { continue };
        if out.iter().any(|p| p.name == param.name) {
            faults.add(path, format!("there are two parameters named \"{}\"", param.name), "rename one");
        }
        out.push(param);
    }
    out
}

fn param(value: &Value, path: &str, faults: &mut Faults) -> Option<Param> {
    let node = Node::of(value, path, faults)?;
    node.only(PARAM_KEYS, faults);
    let name = node.needed("name", faults);
    name_check(&name, &node.path("name"), faults);
    let kind = node.word("type", &Kind::WORDS, faults).and_then(Kind::from_word);
    if node.get("type").is_none() {
        faults.add(node.path("type"), "the type is missing", format!("use one of {}", Kind::WORDS.join(", ")));
    }
    let items = node.get("items").map(|i| i.as_str().map_or_else(|| i.clone(), |word| json!({"type": word})));
    let mut param = Param {
        name, kind: kind?, required: node.flag("required", faults) == Some(true), description: node.text("description", faults),
        default: None, choices: node.list("enum", faults).to_vec(), items, format: role(&node, faults), effects: effects_of(&node, faults),
    };
    if let Some(default) = node.get("default") {
        match fit(default.clone(), &param) {
            Ok(value) => param.default = Some(value),
            Err((_, why)) => faults.add(node.path("default"), why, "change the default"),
        }
    }
    Some(param)
}

fn role(node: &Node, faults: &mut Faults) -> Option<&'static str> {
    let word = node.word("role", &ROLES.map(|r| r.0), faults)?;
    ROLES.iter().find(|r| r.0 == word).map(|r| r.1)
}

/// `{value: class}`: a value makes a call as bad as its class says, one that is not listed makes it unknown.
fn effects_of(node: &Node, faults: &mut Faults) -> Map<String, Value> {
    let Some(given) = node.get("effects") else { return Map::new() };
    let Some(map) = given.as_object() else {
        faults.add(node.path("effects"), "this is no object", "write {\"value\": \"class\", ...}");
        return Map::new();
    };
    for (value, class) in map {
        if class.as_str().and_then(Effect::from_word).is_none() {
            faults.add(format!("{}.{value}", node.path("effects")), format!("{class} is no class"), format!("use one of {}", ALL_EFFECTS.map(Effect::word).join(", ")));
        }
    }
    map.clone()
}

fn schema(params: &[Param]) -> Value {
    let mut properties = Map::new();
    for param in params {
        let mut field = Map::from_iter([("type".to_string(), json!(param.kind.word()))]);
        if !param.description.is_empty() { field.insert("description".into(), json!(param.description)); }
        if let Some(format) = param.format { field.insert("format".into(), json!(format)); }
        if !param.effects.is_empty() { field.insert("x-effects".into(), Value::Object(param.effects.clone())); }
        if let Some(items) = &param.items { field.insert("items".into(), items.clone()); }
        if let Some(default) = &param.default { field.insert("default".into(), default.clone()); }
        if !param.choices.is_empty() { field.insert("enum".into(), json!(param.choices)); }
        properties.insert(param.name.clone(), Value::Object(field));
    }
    let required: Vec<&str> = params.iter().filter(|p| p.required && p.default.is_none()).map(|p| p.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
