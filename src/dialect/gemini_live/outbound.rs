//! What the gateway sends. Everything is written anew from an OpenAI session and the gateway's own part of it; of tools, functions alone.

use serde_json::{Map, Value, json};

use super::HEARS_HZ;

/// Going on with an earlier session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume<'a> {
    /// Its name, as the provider gave it.
    pub handle: Option<&'a str>,
}

/// The first frame of a connection. `model` is the service's name with its path ("models/gemini-…"), `session` a whole session of OpenAI
/// Realtime as the gateway would send it there: instructions, functions, turn taking, modality, voice, limits.
pub fn setup(model: &str, session: &Value, resume: Resume) -> Value {
    let text = session["output_modalities"].as_array().is_some_and(|m| m.iter().any(|m| m == "text"));
    let mut generation = Map::new();
    generation.insert("responseModalities".into(), json!([if text { "TEXT" } else { "AUDIO" }]));
    if let Some(most) = session["max_output_tokens"].as_u64() { generation.insert("maxOutputTokens".into(), json!(most)); }
    // The two services name different voices; those of this one begin with a capital, those of OpenAI never do.
    let voice = session.pointer("/audio/output/voice").and_then(Value::as_str).filter(|v| v.starts_with(|c: char| c.is_ascii_uppercase()));
    if let Some(voice) = voice.filter(|_| !text) { generation.insert("speechConfig".into(), json!({"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}})); }
    let mut setup = json!({
        "model": model, "generationConfig": generation, "realtimeInputConfig": listening(session.pointer("/audio/input/turn_detection").unwrap_or(&Value::Null)),
        "inputAudioTranscription": {}, "contextWindowCompression": {"slidingWindow": {}}, "sessionResumption": {},
    });
    if !text { setup["outputAudioTranscription"] = json!({}) }
    if let Some(handle) = resume.handle { setup["sessionResumption"] = json!({"handle": handle}) }
    for (key, value) in context(session) { setup[key] = value }
    json!({"setup": setup})
}

/// Other instructions and tools for a session that runs.
pub fn context_update(session: &Value) -> Value { json!({"contextUpdate": Value::Object(context(session))}) }

/// What the model is told and may call.
fn context(session: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(text) = session["instructions"].as_str().filter(|t| !t.is_empty()) { out.insert("systemInstruction".into(), json!({"parts": [{"text": text}]})); }
    let functions: Vec<Value> = session["tools"].as_array().into_iter().flatten().filter(|t| t["type"] == "function").map(declaration).collect();
    if session["tool_choice"] != "none" && !functions.is_empty() { out.insert("tools".into(), json!([{"functionDeclarations": functions}])); }
    out
}

fn declaration(tool: &Value) -> Value {
    let mut declared = json!({"name": tool["name"], "description": tool["description"].as_str().unwrap_or_default()});
    // An object without fields is refused as a schema: a function without arguments has none.
    if tool["parameters"]["properties"].as_object().is_some_and(|p| !p.is_empty()) { declared["parametersJsonSchema"] = tool["parameters"].clone() }
    declared
}

/// Turn taking: by hand, or by the provider with the silence that the client wants. `semantic_vad` is how soon it ends a turn.
fn listening(turns: &Value) -> Value {
    if !turns.is_object() { return json!({"automaticActivityDetection": {"disabled": true}}) }
    let mut detection = Map::new();
    for (from, to) in [("silence_duration_ms", "silenceDurationMs"), ("prefix_padding_ms", "prefixPaddingMs")] {
        if let Some(ms) = turns[from].as_u64() { detection.insert(to.into(), json!(ms)); }
    }
    match turns["eagerness"].as_str() {
        Some("low") => { detection.insert("endOfSpeechSensitivity".into(), json!("END_SENSITIVITY_LOW")); }
        Some("high") => { detection.insert("endOfSpeechSensitivity".into(), json!("END_SENSITIVITY_HIGH")); }
        _ => {}
    }
    let handling = if turns["interrupt_response"] == false { "NO_INTERRUPTION" } else { "START_OF_ACTIVITY_INTERRUPTS" };
    json!({"automaticActivityDetection": detection, "activityHandling": handling})
}

/// Sound: base64 of 16-bit little-endian samples at [`HEARS_HZ`].
pub fn audio(base64: &str) -> String { format!(r#"{{"realtimeInput":{{"audio":{{"mimeType":"audio/pcm;rate={HEARS_HZ}","data":"{base64}"}}}}}}"#) }

/// By hand: somebody begins to speak, or has ended.
pub fn activity(begins: bool) -> Value { json!({"realtimeInput": {if begins { "activityStart" } else { "activityEnd" }: {}}}) }

/// The sound stops for now: what was heard so far is a turn.
pub fn stream_end() -> Value { json!({"realtimeInput": {"audioStreamEnd": true}}) }

/// Lines of the conversation, each with "user" or "model". `complete`: an answer is wanted.
pub fn content(lines: &[(&str, String)], complete: bool) -> Value {
    let turns: Vec<Value> = lines.iter().map(|(role, text)| json!({"role": role, "parts": [{"text": text}]})).collect();
    json!({"clientContent": {"turns": turns, "turnComplete": complete}})
}

/// What came of calls: id, function, output as text. An output that is an object of JSON is given as one.
pub fn tool_response(outputs: &[(String, String, String)]) -> Value {
    let responses: Vec<Value> = outputs.iter().map(|(id, name, output)| {
        let response = serde_json::from_str::<Value>(output).ok().filter(Value::is_object).unwrap_or_else(|| json!({"output": output}));
        json!({"id": id, "name": name, "response": response})
    }).collect();
    json!({"toolResponse": {"functionResponses": responses}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_becomes_a_setup_with_functions_alone() {
        let session = json!({
            "instructions": "Be brief.", "output_modalities": ["audio"], "max_output_tokens": 200,
            "tools": [{"type": "function", "name": "light", "description": "d", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}}}, {"type": "function", "name": "bare", "parameters": {"type": "object", "properties": {}}}, {"type": "mcp", "server_url": "x"}],
            "audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 400, "interrupt_response": true}}, "output": {"voice": "Puck"}},
        });
        let setup = &setup("models/m", &session, Resume { handle: Some("h") })["setup"];
        assert_eq!((&setup["model"], &setup["systemInstruction"]["parts"][0]["text"], &setup["sessionResumption"]["handle"]), (&json!("models/m"), &json!("Be brief."), &json!("h")));
        assert_eq!(setup["generationConfig"], json!({"responseModalities": ["AUDIO"], "maxOutputTokens": 200, "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}}}}));
        assert_eq!(setup["realtimeInputConfig"], json!({"automaticActivityDetection": {"silenceDurationMs": 400}, "activityHandling": "START_OF_ACTIVITY_INTERRUPTS"}));
        let tools = setup["tools"].as_array().unwrap();
        assert_eq!((tools.len(), tools[0].as_object().unwrap().len(), tools[0]["functionDeclarations"].as_array().unwrap().len()), (1, 1, 2));
        assert!(tools[0]["functionDeclarations"][1].get("parametersJsonSchema").is_none() && setup["outputAudioTranscription"].is_object());
    }

    #[test]
    fn a_voice_of_the_other_service_and_turns_by_hand() {
        let session = json!({"output_modalities": ["text"], "tool_choice": "none", "tools": [{"type": "function", "name": "f"}], "audio": {"input": {"turn_detection": null}, "output": {"voice": "alloy"}}});
        let setup = &setup("models/m", &session, Resume::default())["setup"];
        assert_eq!(setup["generationConfig"], json!({"responseModalities": ["TEXT"]}));
        assert_eq!(setup["realtimeInputConfig"]["automaticActivityDetection"]["disabled"], true);
        assert!(setup.get("tools").is_none() && setup.get("systemInstruction").is_none() && setup.get("outputAudioTranscription").is_none());
    }

    #[test]
    fn outputs_are_objects() {
        let sent = tool_response(&[("1".into(), "a".into(), "{\"ok\":true}".into()), ("2".into(), "b".into(), "plain".into())]);
        assert_eq!(sent["toolResponse"]["functionResponses"], json!([{"id": "1", "name": "a", "response": {"ok": true}}, {"id": "2", "name": "b", "response": {"output": "plain"}}]));
        assert_eq!(audio("AAAA"), r#"{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"AAAA"}}}"#);
    }
}
