//! A provider of the other protocol behind the same proxy: what it is sent, what the client sees of it, and who decides.

use serde_json::{Value, json};

use super::tests::{World, function};
use super::*;
use crate::engine::id::{CallId, ItemId, SpeechId, UtteranceId};
use crate::session::leg::{FromProvider, LegEnd};

/// A twentieth of a second at 24 kHz of something that is not quiet, as base64.
fn loud() -> String {
    let samples: Vec<i16> = (0..1_200).map(|n| if n / 24 % 2 == 0 { 8_000 } else { -8_000 }).collect();
    Format::Pcm.encode(&samples)
}

impl World {
    /// A session that stands.
    pub(super) fn gemini() -> Self {
        let mut w = Self::gemini_fresh();
        w.client(json!({"type": "session.update", "session": {"type": "realtime"}}));
        w.pass(200);
        w.ready();
        w
    }

    pub(super) fn gemini_fresh() -> Self {
        let mut w = Self::of("gemini");
        w.proxy.live = Some(Live::new("conv", "t", "gemini-2.5-flash-live"));
        w.connect();
        w
    }

    pub(super) fn connect(&mut self) {
        self.proxy.connected(self.now);
        self.drain();
        self.leg(LegOutput::History(Vec::new()));
    }

    pub(super) fn ready(&mut self) { self.up(json!({"setupComplete": {}})) }

    fn content(&mut self, content: Value) { self.up(json!({"serverContent": content})) }

    fn speaks(&mut self, words: &str) { self.content(json!({"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA"}}]}, "outputTranscription": {"text": words}})) }

    fn says_text(&mut self, text: &str) {
        self.client(json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}}));
        self.client(json!({"type": "response.create"}));
    }

    /// Somebody speaks, and the ear here notices it.
    fn hears(&mut self) {
        self.client(json!({"type": "input_audio_buffer.append", "audio": loud()}));
        self.leg(LegOutput::SpeechStarted { utterance: UtteranceId(1), at_ms: 0, item: ItemId("said".into()) });
    }

    fn frames(&self, key: &str) -> Vec<Value> { self.sent.iter().filter(|f| !f[key].is_null()).map(|f| f[key].clone()).collect() }

    fn kinds(&self) -> Vec<&str> { self.seen.iter().map(|e| e["type"].as_str().unwrap()).collect() }
}

#[test]
fn the_set_up_waits_for_what_the_client_wants_and_is_said_once() {
    let mut w = World::gemini_fresh();
    assert_eq!(w.kinds(), ["session.created"], "the client is not kept waiting");
    assert!(w.sent.is_empty());
    w.client(json!({"type": "input_audio_buffer.append", "audio": loud()}));
    w.pass(300);
    w.client(function("light"));
    w.client(json!({"type": "session.update", "session": {"type": "realtime", "audio": {"output": {"voice": "Puck"}}}}));
    assert!(w.sent.is_empty());
    w.pass(160);
    let setup = w.frames("setup");
    assert_eq!((setup.len(), w.sent.len()), (1, 1));
    assert_eq!(setup[0]["model"], "models/gemini-2.5-flash-live");
    assert_eq!(setup[0]["tools"][0]["functionDeclarations"][0]["name"], "light");
    assert_eq!(setup[0]["generationConfig"]["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"], "Puck");
    w.ready();
    assert_eq!(w.frames("realtimeInput").len(), 1, "what was said meanwhile follows");
}

#[test]
fn without_a_word_from_the_client_the_session_stands_all_the_same() {
    let mut w = World::gemini_fresh();
    w.pass(999);
    assert!(w.sent.is_empty());
    w.pass(2);
    assert_eq!(w.frames("setup").len(), 1);
}

#[test]
fn a_turn_of_text_is_one_answer_in_the_order_that_clients_know() {
    let mut w = World::gemini();
    w.seen.clear();
    w.says_text("What time is it?");
    let told = w.frames("clientContent");
    assert_eq!(told, [json!({"turns": [{"role": "user", "parts": [{"text": "What time is it?"}]}], "turnComplete": true})]);
    w.speaks("It is ");
    w.speaks("noon.");
    w.up(json!({"serverContent": {"generationComplete": true}}));
    w.up(json!({"serverContent": {"turnComplete": true}, "usageMetadata": {"promptTokenCount": 5, "responseTokenCount": 7, "totalTokenCount": 12}}));
    assert_eq!(w.kinds(), [
        "conversation.item.added", "conversation.item.done", "response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
        "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio.done",
        "response.output_audio_transcript.done", "response.content_part.done", "conversation.item.done", "response.output_item.done", "response.done",
    ]);
    let done = &w.seen.last().unwrap()["response"];
    assert_eq!((&done["status"], &done["output"][0]["content"][0]["transcript"], &done["usage"]["total_tokens"]), (&json!("completed"), &json!("It is noon."), &json!(12)));
    assert!(w.seen.iter().all(|e| e["event_id"].is_string()));
}

#[test]
fn an_answer_to_speech_is_not_heard_before_the_verdict() {
    for consumed in [false, true] {
        let mut w = World::gemini();
        w.seen.clear();
        w.hears();
        w.content(json!({"inputTranscription": {"text": "Enter plan mode."}}));
        w.speaks("I will ");
        assert!(w.kinds().iter().all(|k| !k.starts_with("response.")), "{:?}", w.kinds());
        w.leg(LegOutput::Judged { consumed });
        w.speaks("do that.");
        w.content(json!({"turnComplete": true}));
        let spoken = w.count(&w.seen, "response.output_audio.delta");
        assert_eq!((spoken, w.count(&w.seen, "response.created"), w.count(&w.seen, "response.done")), if consumed { (0, 0, 0) } else { (2, 1, 1) });
        // What follows is answered as ever.
        w.seen.clear();
        w.says_text("And now?");
        w.speaks("Now.");
        w.content(json!({"turnComplete": true}));
        assert_eq!(w.count(&w.seen, "response.done"), 1);
    }
}

#[test]
fn a_verdict_that_comes_first_counts_and_so_does_none_at_all() {
    let mut w = World::gemini();
    w.seen.clear();
    w.hears();
    w.leg(LegOutput::Judged { consumed: true });
    w.speaks("Sure, ");
    w.speaks("plan mode.");
    w.content(json!({"turnComplete": true}));
    assert_eq!(w.count(&w.seen, "response.created"), 0);
    w.pass(5_000);
    w.hears();
    w.speaks("Hello.");
    assert_eq!(w.count(&w.seen, "response.created"), 0);
    w.pass(8_001);
    assert_eq!(w.count(&w.seen, "response.created"), 1, "who waits for a verdict in vain is answered in the end");
}

#[test]
fn a_tool_of_the_gateways_is_part_of_one_answer() {
    let mut w = World::gemini();
    w.seen.clear();
    w.says_text("What is in my notes?");
    w.speaks("Let me look.");
    w.up(json!({"toolCall": {"functionCalls": [{"id": "c1", "name": "notes__list", "args": {}}, {"id": "c2", "name": "notes__list", "args": {"x": 1}}]}}));
    assert_eq!(w.wanted(), ["c1", "c2"]);
    w.leg(w.done("c1"));
    assert!(w.frames("toolResponse").is_empty(), "all of them together");
    w.leg(w.done("c2"));
    let answers = w.frames("toolResponse");
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["functionResponses"].as_array().unwrap().iter().map(|r| (r["id"].as_str().unwrap(), r["name"].as_str().unwrap(), r["response"]["ok"].as_bool().unwrap())).collect::<Vec<_>>(), [("c1", "notes__list", true), ("c2", "notes__list", true)]);
    w.speaks("None.");
    w.content(json!({"turnComplete": true}));
    assert_eq!((w.count(&w.seen, "response.created"), w.count(&w.seen, "response.done")), (1, 1));
    let done = &w.seen.last().unwrap()["response"]["output"];
    assert_eq!(done.as_array().unwrap().iter().map(|i| i["content"][0]["transcript"].as_str().unwrap()).collect::<Vec<_>>(), ["Let me look.", "None."]);
    assert!(w.seen.iter().all(|e| !e.to_string().contains("notes__list")));
    assert_eq!(w.frames("clientContent").len(), 1, "the answer to its calls is wish enough");
}

#[test]
fn a_clients_tool_is_handed_over_once_the_gate_has_let_it() {
    let mut w = World::gemini();
    w.client(function("light"));
    w.seen.clear();
    w.says_text("Light, please.");
    w.up(json!({"tool_call": {"function_calls": [{"id": "c1", "name": "light", "args": {"on": true}}]}}));
    assert!(w.seen.iter().all(|e| !e.to_string().contains("c1")));
    w.leg(LegOutput::Handed { call: CallId("c1".into()) });
    assert_eq!(w.seen.last().unwrap()["response"]["output"][0]["arguments"], "{\"on\":true}");
    w.client(json!({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c1", "output": "{\"on\":true}"}}));
    w.client(json!({"type": "response.create"}));
    assert_eq!(w.frames("toolResponse").len(), 1);
    assert_eq!(w.frames("clientContent").len(), 1);
    w.speaks("It is on.");
    w.content(json!({"turnComplete": true}));
    assert_eq!(w.count(&w.seen, "response.done"), 2);
}

#[test]
fn what_interrupts_it_ends_the_answer_and_cancelled_calls_get_no_output() {
    let mut w = World::gemini();
    w.says_text("Talk.");
    w.speaks("Once upon");
    w.seen.clear();
    for _ in 0..10 { w.content(json!({"interrupted": true})) }
    let done: Vec<&Value> = w.seen.iter().filter(|e| e["type"] == "response.done").collect();
    assert_eq!((done.len(), &done[0]["response"]["status_details"]["reason"], &done[0]["response"]["output"][0]["status"]), (1, &json!("turn_detected"), &json!("incomplete")));
    assert!(w.count(&w.seen, "input_audio_buffer.speech_started") >= 1);
    w.content(json!({"turnComplete": true}));
    w.says_text("Look.");
    w.up(json!({"toolCall": {"functionCalls": [{"id": "c9", "name": "notes__list"}]}}));
    w.seen.clear();
    w.content(json!({"interrupted": true}));
    w.up(json!({"toolCallCancellation": {"ids": ["c9"]}}));
    assert_eq!(w.count(&w.seen, "response.done"), 1);
    w.leg(w.done("c9"));
    assert!(w.frames("toolResponse").is_empty());
    assert!(w.told.iter().any(|t| matches!(t, LegInput::Provider(FromProvider::Done(LegEnd::Interrupted)))));
}

#[test]
fn the_client_stops_it_and_hears_no_more_of_that_turn() {
    let mut w = World::gemini();
    w.says_text("Talk.");
    w.speaks("Once");
    w.client(json!({"type": "response.cancel"}));
    let done = w.seen.last().unwrap();
    assert_eq!((&done["type"], &done["response"]["status_details"]["reason"]), (&json!("response.done"), &json!("client_cancelled")));
    w.seen.clear();
    w.speaks("upon a time");
    w.up(json!({"toolCall": {"functionCalls": [{"id": "late", "name": "notes__list"}]}}));
    assert!(w.seen.is_empty() && w.wanted().is_empty());
    assert!(w.frames("toolResponse")[0]["functionResponses"][0]["response"]["error"].is_string(), "it waits for an answer to each call");
    w.content(json!({"turnComplete": true}));
    w.says_text("Go on.");
    w.speaks("There was");
    assert_eq!(w.count(&w.seen, "response.created"), 1);
}

#[test]
fn turns_by_hand_go_out_when_an_answer_is_wanted() {
    let mut w = World::gemini_fresh();
    w.client(json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": null}}}}));
    w.pass(200);
    w.ready();
    assert_eq!(w.frames("setup")[0]["realtimeInputConfig"]["automaticActivityDetection"]["disabled"], true);
    w.seen.clear();
    for _ in 0..50 { w.client(json!({"type": "input_audio_buffer.append", "audio": loud()})) }
    w.client(json!({"type": "input_audio_buffer.commit"}));
    assert_eq!(w.kinds(), ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]);
    assert!(w.frames("realtimeInput").is_empty());
    // A command: nothing of it goes out.
    w.leg(LegOutput::Judged { consumed: true });
    w.client(json!({"type": "response.create"}));
    assert!(w.frames("realtimeInput").is_empty() && w.frames("clientContent").is_empty());
    w.pass(10_000);
    for _ in 0..50 { w.client(json!({"type": "input_audio_buffer.append", "audio": loud()})) }
    w.client(json!({"type": "input_audio_buffer.commit"}));
    w.leg(LegOutput::Judged { consumed: false });
    w.client(json!({"type": "response.create"}));
    let heard = w.frames("realtimeInput");
    assert!(heard.first().unwrap().get("activityStart").is_some() && heard.last().unwrap().get("activityEnd").is_some() && heard.len() >= 3, "{heard:?}");
}

#[test]
fn another_mode_is_another_session_between_turns_or_an_update_where_it_takes_one() {
    let mut w = World::gemini();
    w.says_text("Talk.");
    w.speaks("Once");
    w.leg(LegOutput::Brief(super::tests::brief(true)));
    assert!(!w.proxy.wants_renewal(w.now), "not while it speaks");
    w.content(json!({"turnComplete": true}));
    w.leg(LegOutput::TurnEnded { turn: Default::default(), end: LegEnd::Completed });
    assert!(w.proxy.wants_renewal(w.now));
    w.lose();
    w.sent.clear();
    w.connect();
    w.pass(1);
    let setup = w.frames("setup");
    assert!(setup[0]["systemInstruction"]["parts"][0]["text"].as_str().unwrap().contains("Plan mode is ON"));
    assert_eq!(setup[0]["sessionResumption"], json!({}), "one that is gone on with would keep what it was told");

    let mut w = World::of("gemini");
    w.proxy.live = Some(Live::new("conv", "t", "gemini-3.8-live"));
    w.connect();
    w.pass(1_001);
    w.ready();
    w.sent.clear();
    w.leg(LegOutput::Brief(super::tests::brief(true)));
    assert_eq!(w.frames("contextUpdate")[0]["systemInstruction"]["parts"][0]["text"], "Plan mode is ON.");
    assert!(!w.proxy.wants_renewal(w.now));
}

#[test]
fn a_session_that_ends_is_gone_on_with_and_one_that_cannot_be_begins_anew() {
    let mut w = World::gemini();
    w.up(json!({"sessionResumptionUpdate": {"newHandle": "h1", "resumable": true}}));
    w.up(json!({"goAway": {"timeLeft": "5s"}}));
    assert!(w.proxy.wants_renewal(w.now));
    w.lose();
    w.sent.clear();
    w.proxy.connected(w.now);
    w.drain();
    w.leg(LegOutput::History(vec![crate::engine::conversation::Item::User { id: ItemId("old".into()), text: "My name is Rosa.".into() }]));
    w.pass(1);
    assert_eq!(w.frames("setup")[0]["sessionResumption"]["handle"], "h1");
    w.ready();
    w.pass(500);
    assert!(w.frames("clientContent").is_empty(), "it knows what was said");
    // 1007 before it stood: the handle is worth nothing.
    w.lose();
    w.proxy.connected(w.now);
    w.drain();
    w.leg(LegOutput::History(vec![]));
    w.pass(1);
    assert!(!w.proxy.is_refused(), "without the handle it may work");
    w.lose();
    w.sent.clear();
    w.proxy.connected(w.now);
    w.drain();
    w.leg(LegOutput::History(vec![crate::engine::conversation::Item::User { id: ItemId("old".into()), text: "My name is Rosa.".into() }]));
    w.pass(1);
    assert_eq!(w.frames("setup")[0]["sessionResumption"], json!({}));
    w.ready();
    assert_eq!(w.frames("clientContent")[0], json!({"turns": [{"role": "user", "parts": [{"text": "My name is Rosa."}]}], "turnComplete": false}));
}

#[test]
fn a_provider_that_runs_tools_itself_is_left() {
    for content in [json!({"modelTurn": {"parts": [{"executableCode": {"code": "1"}}]}}), json!({"groundingMetadata": {"webSearchQueries": ["x"]}}), json!({"url_context_metadata": {}})] {
        let mut w = World::gemini();
        w.content(content.clone());
        assert_eq!(w.proxy.ending().map(|(code, _)| code), Some(1008), "{content}");
    }
}

#[test]
fn an_error_ends_what_was_asked_for() {
    let mut w = World::gemini();
    w.says_text("Talk.");
    w.seen.clear();
    w.up(json!({"error": {"code": 5, "status": "NOT_FOUND", "message": "No fixture matched"}}));
    assert_eq!(w.kinds(), ["error", "response.created", "response.done"]);
    assert_eq!(w.seen[2]["response"]["status"], "failed");
}

#[test]
fn sound_of_another_rate_or_format_is_made_the_clients() {
    let mut w = World::gemini_fresh();
    w.client(json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcmu"}}, "output": {"format": {"type": "audio/pcmu"}}}}}));
    w.pass(200);
    w.ready();
    w.client(json!({"type": "input_audio_buffer.append", "audio": "/////w=="}));
    w.says_text("Talk.");
    let second = "AAAA".repeat(24_000 * 2 / 3);
    w.content(json!({"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": second}}]}}));
    w.content(json!({"turnComplete": true}));
    let bytes: usize = w.seen.iter().filter(|e| e["type"] == "response.output_audio.delta").map(|e| e["delta"].as_str().unwrap().len() * 3 / 4).sum();
    assert!((7_900..=8_100).contains(&bytes), "{bytes}");
    let (_, speech) = (0, SpeechId(1));
    w.leg(LegOutput::SpeechEnded { speech, end: LegEnd::Completed });
}
