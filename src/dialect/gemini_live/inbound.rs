//! What the provider says.

use serde_json::{Value, json};

use super::{SPEAKS_HZ, field};

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// Its id; empty where the provider gave none.
    pub id: String,
    /// The function.
    pub name: String,
    /// JSON text of the arguments.
    pub arguments: String,
}

/// Of a turn of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Sound as base64 of 16-bit little-endian samples, with its rate in Hz.
    pub audio: Vec<(String, u32)>,
    /// Text that is for the person.
    pub text: String,
    /// What of its sound says, so far as this frame has it.
    pub said: String,
    /// What it understood of the person, and whether that was the last of it.
    pub heard: Option<(String, bool)>,
    /// The person spoke into it: what was not played is void.
    pub interrupted: bool,
    /// Its turn is over.
    pub complete: bool,
}

/// One frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The session stands.
    pub ready: bool,
    /// Of the model's turn.
    pub content: Option<Content>,
    /// Functions it wants called.
    pub calls: Vec<FunctionCall>,
    /// Calls that it does not want any more.
    pub cancelled: Vec<String>,
    /// The connection ends in so many milliseconds.
    pub ends_in_ms: Option<u64>,
    /// The name under which the session can be gone on with; `Some(None)`: not just now.
    pub handle: Option<Option<String>>,
    /// Tokens, as OpenAI Realtime counts them.
    pub usage: Option<Value>,
    /// It reports an error: its status in lower case, and a sentence.
    pub error: Option<(String, String)>,
    /// A tool that the provider runs itself was used, by its name on the wire.
    pub foreign: Option<&'static str>,
}

/// Parts of a turn that only a tool of the provider's own leaves behind.
const FOREIGN_PARTS: [&str; 4] = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];
/// The same, beside the turn.
const FOREIGN_CONTENT: [&str; 2] = ["groundingMetadata", "urlContextMetadata"];

impl Frame {
    /// Reads a frame. `None`: it is no object of JSON.
    pub fn read(text: &str) -> Option<Self> {
        let value = serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?;
        let mut frame = Self { ready: field(&value, "setupComplete").is_object(), ..Self::default() };
        let content = field(&value, "serverContent");
        if content.is_object() { frame.read_content(content) }
        let calls = field(field(&value, "toolCall"), "functionCalls").as_array();
        frame.calls.extend(calls.into_iter().flatten().filter_map(call));
        frame.cancelled.extend(field(&value, "toolCallCancellation")["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string));
        let away = field(&value, "goAway");
        if away.is_object() { frame.ends_in_ms = Some(duration_ms(field(away, "timeLeft"))) }
        let resumption = field(&value, "sessionResumptionUpdate");
        if resumption.is_object() {
            let handle = field(resumption, "newHandle").as_str().filter(|h| !h.is_empty() && field(resumption, "resumable") == &json!(true));
            frame.handle = Some(handle.map(str::to_string));
        }
        let error = &value["error"];
        if error.is_object() {
            let text = |name: &str| error[name].as_str().unwrap_or_default();
            frame.error = Some((text("status").to_ascii_lowercase(), text("message").to_string()));
        }
        let usage = field(&value, "usageMetadata");
        if usage.is_object() { frame.usage = Some(tokens(usage)) }
        Some(frame)
    }

    fn read_content(&mut self, content: &Value) {
        let mut read = Content { interrupted: field(content, "interrupted") == &json!(true), complete: field(content, "turnComplete") == &json!(true), ..Content::default() };
        for part in field(content, "modelTurn")["parts"].as_array().into_iter().flatten() {
            self.foreign = self.foreign.or(FOREIGN_PARTS.into_iter().find(|name| !field(part, name).is_null()));
            self.calls.extend(call(field(part, "functionCall")));
            // What it thinks is nobody's to hear.
            if field(part, "thought") == &json!(true) { continue }
            let data = field(part, "inlineData");
            let kind = field(data, "mimeType").as_str().unwrap_or_default();
            if let Some(sound) = data["data"].as_str().filter(|s| !s.is_empty() && kind.starts_with("audio/")) { read.audio.push((sound.to_string(), rate(kind))) }
            read.text.push_str(part["text"].as_str().unwrap_or_default());
        }
        self.foreign = self.foreign.or(FOREIGN_CONTENT.into_iter().find(|name| !field(content, name).is_null()));
        read.said.push_str(field(content, "outputTranscription")["text"].as_str().unwrap_or_default());
        let heard = field(content, "inputTranscription");
        if heard.is_object() { read.heard = Some((heard["text"].as_str().unwrap_or_default().to_string(), heard["finished"] == true)) }
        self.content = Some(read);
    }
}

fn call(value: &Value) -> Option<FunctionCall> {
    let arguments = match field(value, "args") { Value::Null => "{}".to_string(), args => args.to_string() };
    Some(FunctionCall { id: value["id"].as_str().unwrap_or_default().to_string(), name: value["name"].as_str()?.to_string(), arguments })
}

/// "audio/pcm;rate=24000".
fn rate(kind: &str) -> u32 {
    kind.split(';').find_map(|part| part.trim().strip_prefix("rate=")?.parse().ok()).filter(|rate| (8_000..=96_000).contains(rate)).unwrap_or(SPEAKS_HZ)
}

/// "9.5s", or an object of seconds and nanos.
fn duration_ms(value: &Value) -> u64 {
    let seconds = match value {
        Value::String(text) => text.trim_end_matches('s').parse::<f64>().unwrap_or(0.0),
        value => value["seconds"].as_f64().unwrap_or(0.0) + value["nanos"].as_f64().unwrap_or(0.0) / 1e9,
    };
    if seconds.is_finite() { (seconds.clamp(0.0, 3_600.0) * 1_000.0) as u64 } else { 0 }
}

fn tokens(usage: &Value) -> Value {
    let count = |names: &[&str]| names.iter().find_map(|n| field(usage, n).as_u64()).unwrap_or(0);
    let of = |list: &str, kind: &str| field(usage, list).as_array().into_iter().flatten().filter(|d| d["modality"] == kind).filter_map(|d| field(d, "tokenCount").as_u64()).sum::<u64>();
    let (input, output) = (count(&["promptTokenCount"]), count(&["responseTokenCount", "candidatesTokenCount"]));
    json!({
        "total_tokens": field(usage, "totalTokenCount").as_u64().unwrap_or(input + output), "input_tokens": input, "output_tokens": output,
        "input_token_details": {"text_tokens": of("promptTokensDetails", "TEXT"), "audio_tokens": of("promptTokensDetails", "AUDIO"), "image_tokens": 0, "cached_tokens": count(&["cachedContentTokenCount"])},
        "output_token_details": {"text_tokens": of("responseTokensDetails", "TEXT"), "audio_tokens": of("responseTokensDetails", "AUDIO")},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_in_both_spellings() {
        for text in [
            r#"{"serverContent":{"modelTurn":{"role":"model","parts":[{"inlineData":{"mimeType":"audio/pcm;rate=16000","data":"AAAA"}},{"text":"secret","thought":true}]},"outputTranscription":{"text":"Hi"},"turnComplete":true},"usageMetadata":{"promptTokenCount":3,"responseTokenCount":4,"totalTokenCount":7}}"#,
            r#"{"server_content":{"model_turn":{"parts":[{"inline_data":{"mime_type":"audio/pcm;rate=16000","data":"AAAA"}}]},"output_transcription":{"text":"Hi"},"turn_complete":true},"usage_metadata":{"prompt_token_count":3,"response_token_count":4}}"#,
        ] {
            let frame = Frame::read(text).unwrap();
            let content = frame.content.unwrap();
            assert_eq!((content.audio, content.text.as_str(), content.said.as_str(), content.complete), (vec![("AAAA".to_string(), 16_000)], "", "Hi", true));
            assert_eq!((&frame.usage.as_ref().unwrap()["total_tokens"], frame.foreign), (&json!(7), None));
        }
    }

    #[test]
    fn calls_ends_and_handles() {
        let frame = Frame::read(r#"{"toolCall":{"functionCalls":[{"id":"1","name":"a","args":{"x":1}},{"name":"b"},{"id":"no name"}]}}"#).unwrap();
        assert_eq!(frame.calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect::<Vec<_>>(), [("1", "a", "{\"x\":1}"), ("", "b", "{}")]);
        assert_eq!(Frame::read(r#"{"toolCallCancellation":{"ids":["1",2]}}"#).unwrap().cancelled, ["1"]);
        assert_eq!(Frame::read(r#"{"goAway":{"timeLeft":"9.5s"}}"#).unwrap().ends_in_ms, Some(9_500));
        assert_eq!(Frame::read(r#"{"sessionResumptionUpdate":{"newHandle":"h","resumable":true}}"#).unwrap().handle, Some(Some("h".into())));
        assert_eq!(Frame::read(r#"{"sessionResumptionUpdate":{"newHandle":"h"}}"#).unwrap().handle, Some(None));
        assert_eq!(Frame::read(r#"{"error":{"code":5,"status":"NOT_FOUND","message":"no"}}"#).unwrap().error, Some(("not_found".into(), "no".into())));
        assert!(Frame::read(r#"{"setupComplete":{}}"#).unwrap().ready && Frame::read("[]").is_none() && Frame::read("{").is_none());
    }

    #[test]
    fn what_the_provider_runs_itself_is_seen_in_every_place_and_spelling() {
        for inner in [
            json!({"modelTurn": {"parts": [{"executableCode": {"code": "1"}}]}}), json!({"model_turn": {"parts": [{"code_execution_result": {}}]}}), json!({"modelTurn": {"parts": [{"toolCall": {}}]}}),
            json!({"modelTurn": {"parts": [{"tool_response": {}}]}}), json!({"groundingMetadata": {}}), json!({"url_context_metadata": {}}),
        ] {
            for top in ["serverContent", "server_content"] {
                let frame = Frame::read(&json!({top: inner}).to_string()).unwrap();
                assert!(frame.foreign.is_some(), "{inner}");
            }
        }
    }
}
