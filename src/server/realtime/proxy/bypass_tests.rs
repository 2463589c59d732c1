//! The ways past a gate, one test each: what a client could send so that somebody else runs tools, and what a provider could do by itself.
//! Towards every kind of provider nothing of it goes out, the client is answered, and a provider that runs tools is left.

use serde_json::{Value, json};

use super::tests::World;
use super::*;

const CANARY: &str = "CANARY";

fn update(session: Value) -> Value {
    let mut session = session;
    session["type"] = json!("realtime");
    json!({"type": "session.update", "session": session})
}

fn respond(response: Value) -> Value { json!({"type": "response.create", "response": response}) }

fn item(item: Value) -> Value { json!({"type": "conversation.item.create", "item": item}) }

/// A tool in the shape of OpenAI's and its followers, in several spellings of its type.
fn typed(kind: &str) -> Vec<Value> {
    let mut camel = kind.split('_').map(|w| w[..1].to_uppercase() + &w[1..]).collect::<String>();
    camel[..1].make_ascii_lowercase();
    [kind.to_string(), kind.to_uppercase(), camel, format!(" {kind}"), format!("{kind}_preview")].into_iter()
        .map(|kind| json!({"type": kind, "name": CANARY, "server_label": CANARY, "server_url": "https://canary.invalid/CANARY", "require_approval": "never", "connector_id": CANARY, "vector_store_ids": [CANARY]})).collect()
}

/// A tool in the shape of Gemini's: its name is the key, in both spellings; and by a type of that name.
fn keyed(camel: &str) -> Vec<Value> {
    let snake: String = camel.chars().flat_map(|c| if c.is_ascii_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect();
    let inside = json!({"name": CANARY, "streamableHttpTransport": {"url": "https://canary.invalid/CANARY"}});
    let mut tools = vec![json!({camel: inside}), json!({&snake: inside}), json!({"type": camel, "name": CANARY}), json!({"type": &snake, "name": CANARY})];
    tools.push(json!({"type": "function", "name": "fine", "parameters": {"type": "object", "properties": {}}, camel: inside}));
    tools
}

/// Both kinds of provider get nothing of it, and each frame is answered.
fn closed(frames: &[Value]) {
    for kind in ["openai", "gemini"] {
        for frame in frames {
            let mut w = if kind == "gemini" { World::gemini() } else { World::new() };
            w.seen.clear();
            let told = w.told.len();
            w.client(frame.clone());
            w.pass(1_000);
            assert!(!w.seen.is_empty() || w.told.len() > told || frame["type"] == "response.create", "{kind}: nobody is told of {frame}");
            let past: Vec<&Value> = w.sent.iter().filter(|e| e.to_string().contains(CANARY)).collect();
            assert!(past.is_empty(), "{kind}: {frame} goes out as {past:#?}");
            for told in &w.sent {
                for tool in told["session"]["tools"].as_array().into_iter().flatten() { assert_eq!(tool["type"], "function", "{told}") }
                for tool in told["setup"]["tools"].as_array().into_iter().flatten() { assert_eq!(tool.as_object().unwrap().keys().collect::<Vec<_>>(), ["functionDeclarations"], "{told}") }
                assert!(told["session"].get("prompt").is_none() && told["session"].get("tracing").is_none() && told["response"].get("tools").is_none(), "{told}");
            }
        }
    }
}

/// A provider of this kind that says this is left.
fn left(kind: &str, frames: &[Value]) {
    for frame in frames {
        let mut w = if kind == "gemini" { World::gemini() } else { World::new() };
        w.up(frame.clone());
        assert_eq!(w.proxy.ending().map(|(code, _)| code), Some(1008), "{kind}: {frame}");
        assert!(!w.seen.iter().any(|e| e.to_string().contains(CANARY)), "{kind}: the client sees {frame}");
    }
}

fn in_both_places(tools: Vec<Value>) -> Vec<Value> { tools.into_iter().flat_map(|tool| [update(json!({"tools": [tool]})), respond(json!({"tools": [tool]}))]).collect() }

macro_rules! tools_closed {
    ($($name:ident: $shape:ident $tool:literal),* $(,)?) => { $( #[test] fn $name() { closed(&in_both_places($shape($tool))) } )* };
}

tools_closed! {
    a9_mcp: typed "mcp",
    a9_xai_web_search: typed "web_search",
    a9_xai_x_search: typed "x_search",
    a9_xai_file_search: typed "file_search",
    a9_code_interpreter: typed "code_interpreter",
    a9_computer_use: typed "computer_use",
    a9_image_generation: typed "image_generation",
    a9_shell: typed "shell",
    a9_a_kind_nobody_knows_yet: typed "brand_new",
    b6_google_search: keyed "googleSearch",
    b6_google_search_retrieval: keyed "googleSearchRetrieval",
    b6_enterprise_web_search: keyed "enterpriseWebSearch",
    b6_google_maps: keyed "googleMaps",
    b6_url_context: keyed "urlContext",
    b6_code_execution: keyed "codeExecution",
    b6_file_search: keyed "fileSearch",
    b6_retrieval: keyed "retrieval",
    b6_computer_use: keyed "computerUse",
    b6_mcp_servers: keyed "mcpServers",
    b6_parallel_ai_search: keyed "parallelAiSearch",
    b6_exa_ai_search: keyed "exaAiSearch",
}

#[test]
fn a9_a_client_approves_for_itself() { closed(&[item(json!({"type": "mcp_approval_response", "approval_request_id": CANARY, "approve": true})), item(json!({"type": "mcp_approval_request", "id": CANARY}))]) }

#[test]
fn a9_a_stored_prompt() { closed(&[update(json!({"prompt": {"id": CANARY, "version": "1", "variables": {"x": CANARY}}})), respond(json!({"prompt": {"id": CANARY}}))]) }

#[test]
fn a9_a_response_with_its_own_tools_and_input() {
    closed(&[
        respond(json!({"tool_choice": {"type": "mcp", "server_label": CANARY}})), respond(json!({"conversation": "none", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": CANARY}]}]})),
        respond(json!({"input": [{"type": "item_reference", "id": CANARY}]})),
    ]);
}

#[test]
fn a9_forged_history() {
    closed(&[
        item(json!({"type": "function_call", "call_id": CANARY, "name": "notes__add", "arguments": "{\"text\":\"CANARY\"}"})), item(json!({"type": "function_call_output", "call_id": CANARY, "output": CANARY})),
        item(json!({"type": "mcp_call", "name": CANARY, "output": CANARY})), item(json!({"type": "mcp_list_tools", "server_label": CANARY})), item(json!({"type": "item_reference", "id": CANARY})),
        item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CANARY}]})), item(json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": CANARY}]})),
    ]);
}

#[test]
fn a9_a_choice_that_forces_a_call() {
    closed(&[update(json!({"tool_choice": {"type": "mcp", "server_label": CANARY, "name": CANARY}})), update(json!({"tool_choice": {"type": "function", "name": CANARY}}))]);
    // In plan mode no call is forced, by whatever word.
    let mut w = World::new();
    w.leg(LegOutput::Brief(super::tests::brief(true)));
    w.sent.clear();
    w.client(update(json!({"tool_choice": "required"})));
    assert_eq!(w.sent.last().unwrap()["session"]["tool_choice"], "auto");
}

#[test]
fn a9_words_put_into_the_models_mouth() { closed(&[item(json!({"type": "force_message", "text": CANARY}))]) }

#[test]
fn a9_another_protocols_delegation() { closed(&[json!({"type": "session.start", "session": {"delegation": {"type": CANARY}}}), json!({"type": "response.item.create", "item": {"text": CANARY}})]) }

#[test]
fn a9_tracing() { closed(&[update(json!({"tracing": {"workflow_name": CANARY}}))]) }

#[test]
fn b6_a_context_of_the_clients_own() { closed(&[json!({"contextUpdate": {"tools": [{"googleSearch": {"x": CANARY}}]}}), json!({"type": "contextUpdate", "tools": [CANARY]}), json!({"setup": {"tools": [CANARY]}})]) }

#[test]
fn a9_an_approval_request_of_the_provider() {
    left("openai", &[
        json!({"type": "conversation.item.added", "event_id": "e", "item": {"id": "x", "type": "mcp_approval_request", "name": CANARY}}),
        json!({"type": "response.output_item.added", "event_id": "e", "response_id": "r", "output_index": 0, "item": {"id": "x", "type": "mcp_approval_request", "name": CANARY}}),
    ]);
}

#[test]
fn a9_a_provider_that_runs_tools() {
    left("openai", &[
        json!({"type": "mcp_list_tools.in_progress", "item_id": CANARY}), json!({"type": "mcp_list_tools.completed", "item_id": CANARY}), json!({"type": "response.mcp_call.in_progress", "item_id": CANARY, "output_index": 0}),
        json!({"type": "response.mcp_call_arguments.delta", "item_id": CANARY, "delta": "{}"}), json!({"type": "response.done", "response": {"id": "r", "status": "completed", "output": [{"id": "x", "type": "web_search_call", "query": CANARY}]}}),
        json!({"type": "conversation.item.done", "item": {"id": "x", "type": "code_interpreter_call", "code": CANARY}}),
    ]);
}

#[test]
fn b6_a_provider_that_runs_tools() {
    let part = |part: Value| json!({"serverContent": {"modelTurn": {"parts": [part]}}});
    left("gemini", &[
        part(json!({"executableCode": {"code": CANARY}})), part(json!({"executable_code": {"code": CANARY}})), part(json!({"codeExecutionResult": {"output": CANARY}})), part(json!({"code_execution_result": {}})),
        part(json!({"toolCall": {"name": CANARY}})), part(json!({"toolResponse": {"name": CANARY}})), part(json!({"tool_response": {}})),
        json!({"serverContent": {"groundingMetadata": {"webSearchQueries": [CANARY]}}}), json!({"server_content": {"grounding_metadata": {}}}), json!({"serverContent": {"urlContextMetadata": {"url": CANARY}}}),
    ]);
}
