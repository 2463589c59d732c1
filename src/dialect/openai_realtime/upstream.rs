//! The client's side of the protocol: what a gateway sends to a provider, built anew from what it knows, and what may come back.
//!
//! Nothing a client wrote goes on as it came but sound. `server/realtime` is the caller.

use serde_json::{Map, Value, json};

use super::turns::{self, Turns};
use crate::engine::tool::ToolSpec;

/// Ids of events that the gateway makes begin so; an error that names one is the gateway's own.
pub const OWN_EVENT: &str = "vxg_";

/// Most tools of a session, as the API has it.
pub const TOOLS_MAX: usize = 128;

/// Merges a partial session into another, field by field; `null` is a value.
pub fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => change.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value)),
        (into, change) => *into = change,
    }
}

/// What of a session is the gateway's to say.
#[derive(Clone, Debug, Default)]
pub struct Own<'a> {
    /// Instructions, the client's among them.
    pub instructions: &'a str,
    /// The gateway's tools.
    pub tools: &'a [ToolSpec],
    /// The client's functions.
    pub functions: &'a [Value],
    /// Turn taking as the client wants it; `None`: by hand.
    pub turns: Option<Turns>,
}

/// `session.update`: what the client set, with the gateway's part over it. Turns make no response by themselves: the gateway asks for
/// one when it knows that the words were not for it.
pub fn session_update(event_id: &str, client: &Value, own: &Own) -> Value {
    let mut session = client.clone();
    let tools: Vec<Value> = own.tools.iter().map(function).chain(own.functions.iter().map(declared)).take(TOOLS_MAX).collect();
    let mut turns = turns::to_json(own.turns);
    if turns.is_object() { turns["create_response"] = json!(false) }
    merge(&mut session, json!({"type": "realtime", "instructions": own.instructions, "tools": tools, "audio": {"input": {"turn_detection": turns}}}));
    json!({"type": "session.update", "event_id": event_id, "session": session})
}

/// A client's `tool_choice`, as far as it may go on: a word, or a function that is there. In plan mode no call is forced.
pub fn tool_choice(choice: &Value, known: impl Fn(&str) -> bool, plan: bool) -> Value {
    let named = choice["name"].as_str().filter(|name| choice["type"] == "function" && known(name));
    match (choice.as_str(), named) {
        (Some("none"), _) => json!("none"),
        (Some("required"), _) if !plan => json!("required"),
        (_, Some(name)) if !plan => json!({"type": "function", "name": name}),
        _ => json!("auto"),
    }
}

/// Of an object the named fields that are plain values or lists of such; of anything else the value itself, if it is plain.
pub(super) fn plain(value: &Value, fields: &[&str]) -> Value {
    let is_plain = |v: &Value| !v.is_object() && v.as_array().is_none_or(|list| list.iter().all(|v| !v.is_object() && !v.is_array()));
    match value {
        Value::Object(map) => Value::Object(fields.iter().filter_map(|name| map.get(*name).filter(|v| is_plain(v)).map(|v| ((*name).to_string(), v.clone()))).collect()),
        value if is_plain(value) => value.clone(),
        _ => Value::Null,
    }
}

/// A client's function with the fields that declare one, and nothing that rides along.
fn declared(tool: &Value) -> Value {
    let mut declared = json!({"type": "function"});
    for name in ["name", "description", "parameters", "strict"] {
        if let Some(value) = tool.get(name) { declared[name] = value.clone() }
    }
    declared
}

fn function(spec: &ToolSpec) -> Value {
    json!({"type": "function", "name": spec.name, "description": spec.description, "parameters": spec.parameters})
}

/// `response.create` with what the client may say of one response.
pub fn response_create(event_id: &str, response: Map<String, Value>) -> Value {
    let mut event = json!({"type": "response.create", "event_id": event_id});
    if !response.is_empty() { event["response"] = Value::Object(response) }
    event
}

/// `conversation.item.create` of a call's output.
pub fn call_output(event_id: &str, call: &str, output: &str) -> Value {
    json!({"type": "conversation.item.create", "event_id": event_id, "item": {"type": "function_call_output", "call_id": call, "output": output}})
}

/// `conversation.item.create` of a line: `role` is user, system or assistant.
pub fn line(event_id: &str, role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "conversation.item.create", "event_id": event_id, "item": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}})
}

/// An event with nothing but a name and perhaps an item or response.
pub fn simple(kind: &str, event_id: &str, field: Option<(&str, &str)>) -> Value {
    let mut event = json!({"type": kind, "event_id": event_id});
    if let Some((name, value)) = field { event[name] = json!(value) }
    event
}

/// The name by which GA knows an event; beta names and those of servers that mix both are taken as well.
pub fn current_name(kind: &str) -> &str {
    match kind {
        "response.text.delta" => "response.output_text.delta",
        "response.text.done" => "response.output_text.done",
        "response.audio.delta" => "response.output_audio.delta",
        "response.audio.done" => "response.output_audio.done",
        "response.audio_transcript.delta" => "response.output_audio_transcript.delta",
        "response.audio_transcript.done" => "response.output_audio_transcript.done",
        other => other,
    }
}

/// Tool use that a provider does by itself. A session in which it turns up is ended: nothing here could have refused it.
pub fn is_foreign_tool(event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap_or_default();
    let foreign = |item: &Value| item.is_object() && !matches!(item["type"].as_str(), None | Some("message" | "function_call" | "function_call_output"));
    kind.starts_with("mcp_") || kind.starts_with("response.mcp_") || foreign(&event["item"])
        || event["response"]["output"].as_array().is_some_and(|items| items.iter().any(foreign))
}

/// The error codes after which a provider's session cannot go on.
pub fn is_fatal(code: &str) -> bool {
    matches!(code, "insufficient_quota" | "credit_balance_exhausted" | "invalid_api_key" | "account_deactivated" | "billing_hard_limit_reached"
        | "beta_api_shape_disabled" | "session_limit_reached")
}

/// Usage of two rounds as one: numbers are added, field by field.
pub fn add_usage(into: &mut Value, more: &Value) {
    match (&mut *into, more) {
        (Value::Object(into), Value::Object(more)) => more.iter().for_each(|(key, value)| add_usage(into.entry(key.clone()).or_insert(Value::Null), value)),
        (Value::Number(a), Value::Number(b)) => {
            if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) { *into = json!(a + b) }
        }
        (Value::Null, more) => *into = more.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateways_part_of_a_session_stands_over_the_clients() {
        let client = json!({"output_modalities": ["audio"], "audio": {"input": {"turn_detection": {"create_response": true}}, "output": {"voice": "marin"}}, "tools": [{"type": "mcp"}]});
        let own = Own { instructions: "Be brief.", functions: &[json!({"type": "function", "name": "light"})], turns: Some(Turns::default()), ..Own::default() };
        let update = session_update("vxg_1", &client, &own);
        assert_eq!(update["session"]["tools"], json!([{"type": "function", "name": "light"}]));
        assert_eq!(update["session"]["audio"]["input"]["turn_detection"]["create_response"], false);
        assert_eq!(update["session"]["audio"]["output"]["voice"], "marin");
        assert_eq!(update["session"]["type"], "realtime");
        let by_hand = session_update("vxg_1", &client, &Own::default());
        assert!(by_hand["session"]["audio"]["input"]["turn_detection"].is_null());
    }

    #[test]
    fn usage_is_added_field_by_field() {
        let mut sum = Value::Null;
        for _ in 0..2 { add_usage(&mut sum, &json!({"total_tokens": 3, "input_token_details": {"text_tokens": 1}})) }
        assert_eq!(sum, json!({"total_tokens": 6, "input_token_details": {"text_tokens": 2}}));
    }

    #[test]
    fn tools_that_a_provider_runs_itself_are_seen_in_every_place() {
        for event in [
            json!({"type": "mcp_list_tools.in_progress"}), json!({"type": "response.mcp_call.completed"}), json!({"type": "conversation.item.added", "item": {"type": "mcp_approval_request"}}),
            json!({"type": "response.output_item.added", "item": {"type": "web_search_call"}}), json!({"type": "response.done", "response": {"output": [{"type": "mcp_call"}]}}),
        ] {
            assert!(is_foreign_tool(&event), "{event}");
        }
        assert!(!is_foreign_tool(&json!({"type": "response.done", "response": {"output": [{"type": "function_call"}, {"type": "message"}]}})));
    }
}
