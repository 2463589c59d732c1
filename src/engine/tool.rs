//! Tools as the engine sees them: a name, what its effect is, and the call that wants to happen.
//!
//! Nouns only. `tools/` reads manifests into [`ToolSpec`] and runs what the gate lets through.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::id::CallId;
use super::mode::Stamp;

/// What a call does to the world, the only fact plan mode looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Looks at data and changes nothing.
    Read,
    /// Changes what is shown, nothing else.
    View,
    /// Changes this conversation's own state (its todo list, its plan).
    Session,
    /// Writes files.
    Files,
    /// Changes this machine.
    Host,
    /// Reaches out to something elsewhere.
    External,
    /// Nobody said. Treated like the worst.
    Unknown,
}

impl Effect {
    /// True when a call of this class changes nothing outside the conversation, so that plan mode lets it pass.
    pub fn is_plan_safe(self) -> bool { matches!(self, Effect::Read | Effect::View | Effect::Session) }

    /// The word used in manifests, envelopes and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Read => "read", Effect::View => "view", Effect::Session => "session", Effect::Files => "files",
            Effect::Host => "host", Effect::External => "external", Effect::Unknown => "unknown",
        }
    }

    /// The class a manifest names; `None` for a word that is no class.
    pub fn from_word(word: &str) -> Option<Effect> {
        [Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown]
            .into_iter().find(|e| e.word() == word)
    }
}

/// The manifest's `safety_tier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Never asked about under `hybrid`. Proves nothing to plan mode.
    Safe,
    /// Asked about under `hybrid`.
    Confirm,
    /// Never runs.
    Deny,
}

/// One tool, as every surface lists it and the gate judges it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Wire name, `{skill}__{endpoint}`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON schema of the arguments (an object schema).
    pub parameters: Value,
    /// What it does to the world.
    pub effect: Effect,
    /// Declared tier, if any.
    pub tier: Option<Tier>,
    /// Cannot be undone: always needs a screen, never a voice.
    pub irreversible: bool,
    /// The manifest says a person must approve each call.
    pub needs_person: bool,
    /// The question for a person, with `{argument}` slots ("Add {text} to your notes?"). `None` asks by name.
    pub ask: Option<String>,
    /// What the call does as a plan step, with slots ("Add {text} to the notes"). `None` uses the question without its mark.
    pub step: Option<String>,
    /// Short name for people ("notes: add").
    pub display: String,
}

/// The tool that presents a plan.
pub const SUBMIT: &str = "plan__submit";
/// The tool that says a plan was carried out.
pub const COMPLETE: &str = "plan__complete";

/// The one list of what an agent is told of, for every surface: in plan mode what plan mode lets run, and the tool that presents
/// a plan only then; the tool that completes one only while one is being carried out; nothing that is switched off. Hiding is a
/// courtesy to the model; the gate is what refuses.
pub fn listed(specs: &[ToolSpec], plan_mode: bool, carrying_out: bool) -> Vec<ToolSpec> {
    let shown = |t: &&ToolSpec| match t.name.as_str() {
        SUBMIT => plan_mode,
        COMPLETE => carrying_out,
        _ => !plan_mode || t.effect.is_plan_safe() && !t.irreversible && !t.needs_person,
    };
    specs.iter().filter(shown).filter(|t| t.tier != Some(Tier::Deny)).cloned().collect()
}

/// A call somebody wants made. It runs only with a [`super::gate::Permit`].
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// Wire name of the tool.
    pub tool: String,
    /// An object. Defaults of the manifest are already filled in: what is judged is what runs.
    pub arguments: Value,
    /// The posture that was in force when the response that made it began.
    pub stamp: Stamp,
}

impl ToolCall {
    /// SHA-256 of tool name and arguments: what a permit and an approval are bound to.
    pub fn hash(&self) -> CallHash { call_hash(&self.tool, &self.arguments) }
}

/// SHA-256 over the tool's name and its arguments with object keys sorted.
pub type CallHash = [u8; 32];

/// Hash of a call's name and arguments. Key order and white space do not matter.
pub fn call_hash(tool: &str, arguments: &Value) -> CallHash {
    let mut hasher = Sha256::new();
    hasher.update(tool.as_bytes());
    hasher.update([0]);
    let mut text = String::new();
    canonical(arguments, &mut text);
    hasher.update(text.as_bytes());
    hasher.finalize().into()
}

/// Compact JSON with sorted keys. Written into one text: the gate hashes each call it lets through, twice.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (n, (key, value)) in fields.into_iter().enumerate() {
                if n > 0 { out.push(',') }
                quoted(key, out);
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 { out.push(',') }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::String(text) => quoted(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// A text as JSON has it. Most need no escapes.
fn quoted(text: &str, out: &mut String) {
    if text.bytes().any(|b| b < 0x20 || b == b'"' || b == b'\\') {
        return out.push_str(&Value::from(text).to_string());
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// True when it did what it says.
    pub success: bool,
    /// What the agent gets back: an object. On failure an envelope with `error` and `error_code`.
    pub output: Value,
    /// One of `plan_mode_blocked`, `policy_denied`, `denied_by_user`, `expired`, `invalid_arguments`, ... or empty.
    pub error_code: String,
    /// For a person, at most 240 characters; empty on success.
    pub error: String,
    /// What the session itself must do about it (a plan was submitted, a todo list was written).
    pub session: Option<SessionDeed>,
}

impl ToolOutcome {
    /// A success with this output.
    pub fn ok(output: Value) -> Self {
        Self { success: true, output, error_code: String::new(), error: String::new(), session: None }
    }

    /// A failure: `{success:false, error, error_code}` for the agent.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let output = serde_json::json!({"success": false, "error": message, "error_code": code});
        Self { success: false, output, error_code: code.to_string(), error: message.chars().take(240).collect(), session: None }
    }

    /// A deed for the session to do; the session writes the output.
    pub fn deed(deed: SessionDeed) -> Self {
        Self { session: Some(deed), ..Self::ok(Value::Null) }
    }
}

/// A call of class `session`: the runner has let it through, the engine carries it out, because it alone writes its state.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionDeed {
    /// `plan__submit` with its raw arguments.
    SubmitPlan(Value),
    /// `plan__complete` with its raw arguments.
    CompletePlan(Value),
    /// `todo__write` with its raw arguments.
    WriteTodo(Value),
}

/// Fills `{slot}` marks of a template from an argument object; a missing slot becomes "something".
pub fn fill_slots(template: &str, arguments: &Value) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let Some(close) = rest[open..].find('}') else { out.push_str(&rest[open..]); return out };
        let value = &arguments[&rest[open + 1..open + close]];
        match value {
            Value::String(text) => out.push_str(text),
            Value::Null => out.push_str("something"),
            other => out.push_str(&other.to_string()),
        }
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_over_compact_json_with_sorted_keys() {
        let strange = "a\"\\\n\u{1}\u{7f}ü";
        let given = serde_json::json!({"b": [1, 2.5, null, strange, [], {}], "k\"ey": -0.0, "a": {"d": true, "c": "x"}});
        let sorted = serde_json::json!({"a": {"c": "x", "d": true}, "b": [1, 2.5, null, strange, [], {}], "k\"ey": -0.0});
        let mut text = String::new();
        canonical(&given, &mut text);
        assert_eq!(text, sorted.to_string());
        assert_eq!(call_hash("t", &given), call_hash("t", &sorted));
    }

    fn spec(name: &str, effect: Effect) -> ToolSpec {
        ToolSpec {
            name: name.into(), description: String::new(), parameters: Value::Null, effect, tier: None, irreversible: false, needs_person: false, ask: None, step: None, display: name.into(),
        }
    }

    fn names(specs: &[ToolSpec], plan_mode: bool, carrying_out: bool) -> Vec<String> { listed(specs, plan_mode, carrying_out).into_iter().map(|s| s.name).collect() }

    #[test]
    fn ledger_f24_f27_f28_what_is_listed_in_plan_mode_is_what_the_gate_lets_run() {
        use super::super::gate::{Gate, Policy, Verdict};
        use super::super::mode::{Posture, Stamp};
        let mut specs: Vec<ToolSpec> = ["read", "view", "session", "files", "host", "external", "unknown"].iter().filter_map(|w| Effect::from_word(w).map(|e| spec(&format!("skill__{w}"), e))).collect();
        specs.push(ToolSpec { irreversible: true, ..spec("skill__shred", Effect::Read) });
        specs.push(ToolSpec { needs_person: true, ..spec("skill__vote", Effect::View) });
        specs.push(ToolSpec { tier: Some(Tier::Deny), ..spec("skill__off", Effect::Read) });
        specs.push(spec("only__writes", Effect::Files));
        let gate = Gate::new(Stamp { epoch: 1, posture: Posture::Plan });
        let runs: Vec<String> = specs.iter().filter(|s| {
            let call = ToolCall { id: "c".into(), tool: s.name.clone(), arguments: serde_json::json!({}), stamp: gate.stamp() };
            matches!(gate.judge(&call, Some(s), Policy::default(), None), Verdict::Allow(_))
        }).map(|s| s.name.clone()).collect();
        assert_eq!(names(&specs, true, false), runs);
        assert_eq!(runs, ["skill__read", "skill__view", "skill__session"], "endpoints are pruned, and a skill with none is gone");
        assert_eq!(names(&specs, false, false).len(), specs.len() - 1, "outside, all but what is switched off");
    }

    #[test]
    fn ledger_d28_no_list_of_names_decides_what_a_tool_may_do() {
        for name in ["read__all", "delete__everything", "get", "mcp_x_read", "plan", "a"] {
            assert_eq!(names(&[spec(name, Effect::Files)], true, false), [] as [&str; 0], "{name}");
            assert_eq!(names(&[spec(name, Effect::Read)], true, false), [name]);
        }
        // The two that present and complete a plan are shown only where they mean something; what they may do is their class's matter.
        let plan = [spec(SUBMIT, Effect::Session), spec(COMPLETE, Effect::Session)];
        assert_eq!([names(&plan, false, false), names(&plan, true, false), names(&plan, false, true)], [vec![], vec![SUBMIT.to_string()], vec![COMPLETE.to_string()]]);
    }
}
