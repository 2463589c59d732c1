//! The state of a proxied session without sockets: histories of a provider, a client and the conversation, mutated and cut anywhere.

use serde_json::{Value, json};

use super::*;
use crate::engine::id::{CallId, SpeechId};
use crate::provider;
use crate::session::leg::{FromProvider, LegEnd};

/// Proxy with a client's view of it.
pub(super) struct World {
    pub(super) proxy: Proxy,
    pub(super) now: Ms,
    pub(super) seen: Vec<Value>,
    pub(super) sent: Vec<Value>,
    pub(super) told: Vec<LegInput>,
    /// What went in and what the client saw, for a failure to tell.
    story: Vec<String>,
}

pub(super) fn brief(plan: bool) -> Box<Brief> {
    Box::new(Brief { instructions: if plan { "Plan mode is ON." } else { "Be brief." }.into(), tools: Vec::new(), names: vec!["notes__add".into(), "notes__list".into()], epoch: u32::from(plan), plan, instructed: 0 })
}

impl World {
    pub(super) fn new() -> Self {
        let mut w = Self::unready();
        w.up(json!({"type": "session.created", "event_id": "e", "session": {}}));
        w.leg(LegOutput::History(Vec::new()));
        w
    }

    pub(super) fn unready() -> Self { Self::of("openai") }

    pub(super) fn of(kind: &str) -> Self {
        let mut w = Self { proxy: Proxy::new("conv", "t", Some("m"), provider::kind(kind).unwrap(), true), now: 0, seen: Vec::new(), sent: Vec::new(), told: Vec::new(), story: Vec::new() };
        w.leg(LegOutput::Brief(brief(false)));
        w
    }

    pub(super) fn drain(&mut self) {
        self.proxy.catch_up(self.now);
        while let Some(frame) = self.proxy.next_client() {
            let event: Value = serde_json::from_slice(&frame).expect("the client gets JSON");
            self.story.push(format!("    -> {event}"));
            self.seen.push(event);
        }
        while let Some(frame) = self.proxy.next_upstream() { self.sent.push(serde_json::from_slice(&frame).expect("the provider gets JSON")) }
        self.told.extend(self.proxy.inputs.drain(..));
    }

    pub(super) fn up(&mut self, event: Value) { self.raw_up(event.to_string()) }

    pub(super) fn raw_up(&mut self, text: String) {
        self.story.push(format!("provider {text}"));
        self.proxy.provider(self.now, text.into());
        self.drain();
    }

    pub(super) fn client(&mut self, event: Value) { self.raw_client(event.to_string()) }

    pub(super) fn raw_client(&mut self, text: String) {
        self.story.push(format!("client {text}"));
        self.proxy.client(self.now, text.into());
        self.drain();
    }

    pub(super) fn leg(&mut self, output: LegOutput) {
        self.story.push(format!("leg {output:?}"));
        self.proxy.leg(self.now, output);
        self.drain();
    }

    pub(super) fn pass(&mut self, ms: Ms) {
        self.now += ms;
        self.proxy.tick(self.now);
        self.drain();
    }

    pub(super) fn lose(&mut self) {
        self.story.push("lost".into());
        self.proxy.disconnected(self.now);
        self.drain();
    }

    pub(super) fn begins(&mut self, id: &str) { self.up(json!({"type": "response.created", "event_id": "e", "response": {"id": id, "status": "in_progress", "output": [], "metadata": {"k": "v"}}})) }

    pub(super) fn ends(&mut self, id: &str, status: &str, output: Value) { self.up(json!({"type": "response.done", "event_id": "e", "response": {"id": id, "status": status, "output": output, "usage": {"total_tokens": 1}}})) }

    pub(super) fn calls(&mut self, response: &str, call: &str, tool: &str, index: u64) -> Value {
        let item = json!({"id": format!("item_{call}"), "type": "function_call", "status": "in_progress", "call_id": call, "name": tool, "arguments": ""});
        self.up(json!({"type": "response.output_item.added", "event_id": "e", "response_id": response, "output_index": index, "item": item}));
        let mut whole = item;
        (whole["status"], whole["arguments"]) = (json!("completed"), json!("{}"));
        self.up(json!({"type": "response.output_item.done", "event_id": "e", "response_id": response, "output_index": index, "item": whole}));
        whole
    }

    pub(super) fn done(&self, call: &str) -> LegOutput { LegOutput::CallDone { call: CallId(call.into()), output: "{\"ok\":true}".into() } }

    pub(super) fn count(&self, of: &[Value], kind: &str) -> usize { of.iter().filter(|e| e["type"] == kind).count() }

    pub(super) fn wanted(&self) -> Vec<String> { self.told.iter().filter_map(|t| if let LegInput::Provider(FromProvider::Call { id, .. }) = t { Some(id.0.clone()) } else { None }).collect() }
}

pub(super) fn function(name: &str) -> Value { json!({"type": "session.update", "session": {"type": "realtime", "tools": [{"type": "function", "name": name}]}}) }

#[test]
fn sound_is_passed_on_as_the_very_bytes_it_came_in() {
    let mut w = World::new();
    w.begins("resp_1");
    let frame = r#"{ "type":"response.output_audio.delta","event_id":"e9","response_id":"resp_1","item_id":"i","output_index":0,"content_index":0,"delta":"AAAA" }"#;
    w.proxy.provider(0, frame.to_string().into());
    assert_eq!(w.proxy.next_client().unwrap(), frame.as_bytes());
    let frame = r#"{"audio":"AAAA", "type":"input_audio_buffer.append"}"#;
    w.proxy.client(0, frame.to_string().into());
    assert_eq!(w.proxy.next_upstream().unwrap(), frame.as_bytes());
    // Of a response that is over for the client nothing is heard.
    w.ends("resp_1", "completed", json!([]));
    w.seen.clear();
    w.raw_up(r#"{"type":"response.output_audio.delta","event_id":"e9","response_id":"resp_1","item_id":"i","output_index":0,"content_index":0,"delta":"AAAA"}"#.into());
    assert!(w.seen.is_empty());
}

#[test]
fn older_names_are_written_anew() {
    let mut w = World::new();
    w.begins("r");
    w.seen.clear();
    w.up(json!({"type": "response.audio.delta", "event_id": "e", "response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "AAAA"}));
    w.up(json!({"type": "response.audio_transcript.delta", "response_id": "r", "item_id": "i", "delta": "Hi"}));
    w.up(json!({"type": "conversation.item.created", "item": {"id": "u", "type": "message", "role": "user", "content": []}}));
    let kinds: Vec<&str> = w.seen.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["response.output_audio.delta", "response.output_audio_transcript.delta", "conversation.item.added", "conversation.item.done"]);
    assert!(w.seen.iter().all(|e| e["event_id"].is_string()), "clients drop events without a name");
    assert_eq!((&w.seen[1]["output_index"], &w.seen[1]["content_index"]), (&json!(0), &json!(0)));
}

#[test]
fn what_strict_clients_need_is_there_even_where_a_server_leaves_it_out() {
    let mut w = World::new();
    w.seen.clear();
    w.up(json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "i", "transcript": "Hi"}));
    w.up(json!({"type": "conversation.item.truncated", "item_id": "i", "audio_end_ms": 5}));
    assert!(w.seen.iter().all(|e| e["content_index"] == 0 && e["event_id"].is_string()), "{:?}", w.seen);
}

#[test]
fn the_output_of_a_clients_call_is_acknowledged_though_the_call_is_forgotten() {
    let mut w = World::new();
    w.client(function("light"));
    w.begins("r");
    let theirs = w.calls("r", "c1", "light", 0);
    w.leg(LegOutput::Handed { call: CallId("c1".into()) });
    w.ends("r", "completed", json!([theirs]));
    w.client(json!({"type": "conversation.item.create", "item": {"id": "out_1", "type": "function_call_output", "call_id": "c1", "output": "on"}}));
    w.client(json!({"type": "response.create"}));
    w.begins("r2");
    w.seen.clear();
    for kind in ["added", "done"] { w.up(json!({"type": format!("conversation.item.{kind}"), "item": {"id": "out_1", "type": "function_call_output", "call_id": "c1", "output": "on"}})) }
    assert_eq!(w.seen.len(), 2, "{:?}", w.seen);
}

#[test]
fn calls_of_both_kinds_in_one_response_end_the_answer_and_each_gets_one_output() {
    let mut w = World::new();
    w.client(function("light"));
    w.begins("r");
    let (ours, theirs) = (w.calls("r", "c1", "notes__list", 0), w.calls("r", "c2", "light", 1));
    assert_eq!(w.wanted(), ["c1", "c2"]);
    w.seen.clear();
    w.ends("r", "completed", json!([ours, theirs]));
    assert!(w.seen.is_empty(), "the end waits for what the gate says");
    w.leg(LegOutput::Handed { call: CallId("c2".into()) });
    let done = w.seen.iter().find(|e| e["type"] == "response.done").unwrap();
    assert_eq!(done["response"]["output"].as_array().unwrap().iter().map(|i| i["call_id"].as_str().unwrap()).collect::<Vec<_>>(), ["c2"]);
    assert_eq!(done["response"]["metadata"], json!({"k": "v"}));
    // The client answers and asks on before the gateway's own call has ended: that comes first.
    w.client(json!({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c2", "output": "on"}}));
    w.client(json!({"type": "response.create"}));
    assert_eq!(w.count(&w.sent, "response.create"), 0);
    let call = w.done("c1");
    w.leg(call);
    assert_eq!(w.count(&w.sent, "response.create"), 1);
    let outputs: Vec<&Value> = w.sent.iter().filter(|e| e["item"]["type"] == "function_call_output").map(|e| &e["item"]["call_id"]).collect();
    assert_eq!(outputs, ["c2", "c1"]);
}

#[test]
fn an_interruption_while_a_tool_runs_ends_the_answer_and_the_output_comes_without_another() {
    let mut w = World::new();
    w.begins("r");
    let call = w.calls("r", "c1", "notes__add", 0);
    w.ends("r", "completed", json!([call]));
    assert_eq!(w.count(&w.seen, "response.done"), 0);
    w.up(json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "i"}));
    let done = w.seen.iter().find(|e| e["type"] == "response.done").unwrap();
    assert_eq!((&done["response"]["id"], &done["response"]["status_details"]["reason"]), (&json!("r"), &json!("turn_detected")));
    assert!(w.told.contains(&LegInput::Provider(FromProvider::Done(LegEnd::Interrupted))));
    let call = w.done("c1");
    w.leg(call);
    assert_eq!((w.sent.iter().filter(|e| e["item"]["call_id"] == "c1").count(), w.count(&w.sent, "response.create")), (1, 0));
}

#[test]
fn field_case_23_a_response_that_the_provider_began_first_is_the_answer() {
    let mut w = World::new();
    w.client(json!({"type": "response.create", "event_id": "mine"}));
    let ours = w.sent.iter().find(|e| e["type"] == "response.create").unwrap()["event_id"].clone();
    w.begins("resp_auto");
    w.up(json!({"type": "error", "event_id": "e", "error": {"type": "invalid_request_error", "code": "conversation_already_has_active_response", "message": "m", "event_id": ours}}));
    assert_eq!(w.count(&w.seen, "error"), 0);
    w.ends("resp_auto", "completed", json!([]));
    assert_eq!((w.count(&w.seen, "response.created"), w.count(&w.seen, "response.done")), (1, 1));
    // Afterwards nothing is stuck.
    w.client(json!({"type": "response.create"}));
    assert_eq!(w.count(&w.sent, "response.create"), 2);
}

#[test]
fn an_error_about_a_clients_event_names_that_event_and_of_our_own_it_is_ours() {
    let mut w = World::new();
    w.client(json!({"type": "conversation.item.retrieve", "item_id": "nowhere", "event_id": "mine"}));
    let event = w.sent.last().unwrap()["event_id"].clone();
    w.up(json!({"type": "error", "event_id": "e", "error": {"type": "invalid_request_error", "code": "item_not_found", "message": "m", "event_id": event}}));
    assert_eq!(w.seen.last().unwrap()["error"]["event_id"], "mine");
    let before = w.seen.len();
    w.up(json!({"type": "error", "event_id": "e", "error": {"code": "anything", "message": "m", "event_id": "vxg_77"}}));
    assert_eq!(w.seen.len(), before);
}

#[test]
fn what_the_gateway_says_comes_between_answers_and_never_into_one() {
    let mut w = World::new();
    w.begins("r");
    let speech = SpeechId(1);
    w.leg(LegOutput::SpeechBegan { speech, item: "item_own".into(), turn: None });
    w.leg(LegOutput::Text { speech, text: "Plan mode is on.".into() });
    w.leg(LegOutput::Audio { speech, samples: vec![0; 4_800], rate_hz: 24_000 });
    assert!(!w.seen.iter().any(|e| e.to_string().contains("item_own")), "the provider is speaking");
    w.ends("r", "completed", json!([]));
    w.leg(LegOutput::SpeechEnded { speech, end: LegEnd::Completed });
    let order: Vec<&str> = w.seen.iter().filter_map(|e| e["type"].as_str()).filter(|k| *k == "response.created" || *k == "response.done").collect();
    assert_eq!(order, ["response.created", "response.done", "response.created", "response.done"]);
    // While it speaks, the provider's next answer waits.
    w.leg(LegOutput::SpeechBegan { speech: SpeechId(2), item: "item_own_2".into(), turn: None });
    w.begins("r2");
    assert_eq!(w.count(&w.seen, "response.created"), 3);
    w.leg(LegOutput::SpeechEnded { speech: SpeechId(2), end: LegEnd::Completed });
    assert_eq!(w.seen.last().unwrap()["response"]["id"], "r2");
}

#[test]
fn a_verdict_comes_before_the_answer() {
    let closed = json!({"type": "input_audio_buffer.committed", "event_id": "e", "item_id": "said", "previous_item_id": null});
    let speaks = || LegOutput::SpeechStarted { utterance: crate::engine::id::UtteranceId(1), at_ms: 0, item: "u".into() };
    // The ear hears nobody: the provider is answered after a moment.
    let mut w = World::new();
    w.up(closed.clone());
    assert_eq!(w.count(&w.sent, "response.create"), 0);
    w.pass(GRACE_MS);
    assert_eq!(w.count(&w.sent, "response.create"), 1);
    // It was for the provider.
    let mut w = World::new();
    w.leg(speaks());
    w.up(closed.clone());
    w.pass(1_000);
    assert_eq!(w.count(&w.sent, "response.create"), 0);
    w.leg(LegOutput::Judged { consumed: false });
    assert_eq!(w.count(&w.sent, "response.create"), 1);
    // It was for the gateway.
    let mut w = World::new();
    w.leg(speaks());
    w.up(closed.clone());
    w.leg(LegOutput::Judged { consumed: true });
    w.pass(20_000);
    assert_eq!((w.count(&w.sent, "response.create"), w.count(&w.sent, "conversation.item.delete")), (0, 1));
    // The gateway knew before the provider had closed the turn.
    let mut w = World::new();
    w.leg(speaks());
    w.leg(LegOutput::Judged { consumed: true });
    w.up(closed.clone());
    w.pass(20_000);
    assert_eq!((w.count(&w.sent, "response.create"), w.count(&w.sent, "conversation.item.delete")), (0, 1));
    // The verdict comes too late: what the provider began is cancelled and not heard.
    let mut w = World::new();
    w.up(closed);
    w.pass(GRACE_MS);
    w.leg(speaks());
    w.leg(LegOutput::Judged { consumed: true });
    w.begins("r");
    w.raw_up(r#"{"type":"response.output_audio.delta","event_id":"e9","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":"AAAA"}"#.into());
    assert_eq!((w.count(&w.sent, "response.cancel"), w.count(&w.seen, "response.created"), w.count(&w.seen, "response.output_audio.delta")), (1, 0, 0));
}

#[test]
fn who_talks_at_length_is_answered_at_once() {
    let mut w = World::new();
    w.leg(LegOutput::SpeechStarted { utterance: crate::engine::id::UtteranceId(1), at_ms: 0, item: "u".into() });
    w.pass(COMMAND_MAX_MS + 1);
    w.up(json!({"type": "input_audio_buffer.committed", "event_id": "e", "item_id": "said"}));
    w.pass(0);
    assert_eq!(w.count(&w.sent, "response.create"), 1);
}

#[test]
fn a_session_of_three_hours_and_twenty_connections_keeps_no_more_than_it_needs() {
    let mut w = World::new();
    for connection in 0..20 {
        for turn in 0..180 {
            let id = format!("r{connection}_{turn}");
            w.begins(&id);
            let call = w.calls(&id, &format!("c{connection}_{turn}"), "notes__list", 0);
            w.ends(&id, "completed", json!([call]));
            let done = w.done(&format!("c{connection}_{turn}"));
            w.leg(done);
            w.leg(LegOutput::TurnEnded { turn: crate::engine::id::TurnId(1), end: LegEnd::Completed });
            w.pass(3_000);
        }
        let (created, done) = (w.count(&w.seen, "response.created"), w.count(&w.seen, "response.done"));
        assert_eq!((created, done), (180, 180), "connection {connection}");
        assert_eq!(w.sent.iter().filter(|e| e["item"]["type"] == "function_call_output").count(), 180);
        (w.seen, w.sent, w.told) = (Vec::new(), Vec::new(), Vec::new());
        let p = &w.proxy;
        assert!(p.calls.len() <= 1 && p.events.len() <= NAMES_MAX && p.hidden.len() <= NAMES_MAX && p.known.len() <= NAMES_MAX && p.deferred.is_empty() && p.early.is_empty());
        w.lose();
        w.up(json!({"type": "session.created", "event_id": "e", "session": {}}));
        w.leg(LegOutput::History(Vec::new()));
        assert_eq!(w.count(&w.seen, "session.created"), 0, "the client's session is one");
    }
    assert!(w.now >= 3 * 3_600_000);
}

/// A small generator: what matters is that each number gives the same history.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// What a provider says, in every kind, with names that now fit and now do not.
fn provider_event(dice: &mut Dice) -> Value {
    let response = format!("r{}", dice.below(4));
    let (item, call, index) = (format!("i{}", dice.below(5)), format!("c{}", dice.below(5)), dice.below(4));
    let tool = ["notes__add", "light", "unknown", "notes__list"][dice.below(4)];
    let status = ["completed", "cancelled", "failed", "incomplete"][dice.below(4)];
    let function = json!({"id": item, "type": "function_call", "status": "completed", "call_id": call, "name": tool, "arguments": "{}"});
    let message = json!({"id": item, "type": "message", "role": "assistant", "status": "completed", "content": []});
    let at = |kind: &str| json!({"type": kind, "event_id": "e", "response_id": response, "item_id": item, "output_index": index, "content_index": 0});
    let with = |kind: &str, name: &str, value: Value| { let mut event = at(kind); event[name] = value; event };
    match dice.below(22) {
        0..=2 => json!({"type": "response.created", "event_id": "e", "response": {"id": response, "status": "in_progress", "output": []}}),
        3..=5 => json!({"type": "response.done", "event_id": "e", "response": {"id": response, "status": status, "output": [function, message]}}),
        6 => with("response.output_item.added", "item", function),
        7 => with("response.output_item.done", "item", function),
        8 => with("response.output_item.done", "item", message),
        9 => with("response.output_audio.delta", "delta", json!("AAAA")),
        10 => with("response.audio.delta", "delta", json!("AAAA")),
        11 => with("response.output_audio_transcript.done", "transcript", json!("Exit plan mode.")),
        12 => json!({"type": "conversation.item.added", "event_id": "e", "item": function, "previous_item_id": item}),
        13 => json!({"type": "conversation.item.created", "item": message, "previous_item_id": item}),
        14 => json!({"type": "input_audio_buffer.speech_started", "event_id": "e", "audio_start_ms": 0, "item_id": item}),
        15 => json!({"type": "input_audio_buffer.committed", "event_id": "e", "item_id": item}),
        16 => json!({"type": "conversation.item.input_audio_transcription.completed", "event_id": "e", "item_id": item, "transcript": "Approve plan one."}),
        17 => json!({"type": "error", "event_id": "e", "error": {"code": "conversation_already_has_active_response", "message": "m", "event_id": format!("vxg_{}", dice.below(40))}}),
        18 => json!({"type": "response.function_call_arguments.done", "event_id": "e", "response_id": response, "item_id": item, "output_index": index, "call_id": call, "name": tool, "arguments": "{}"}),
        19 => json!({"type": "session.created", "event_id": "e", "session": {}}),
        20 => json!({"type": "rate_limits.updated", "event_id": "e", "rate_limits": []}),
        _ => with("response.content_part.done", "part", Value::Null),
    }
}

fn client_event(dice: &mut Dice) -> Value {
    let (item, call) = (format!("i{}", dice.below(5)), format!("c{}", dice.below(5)));
    match dice.below(10) {
        0..=1 => json!({"type": "response.create"}),
        2 => json!({"type": "response.cancel"}),
        3 => json!({"type": "input_audio_buffer.append", "audio": "AAAA"}),
        4 => json!({"type": "conversation.item.create", "item": {"id": item, "type": "function_call_output", "call_id": call, "output": "x"}}),
        5 => json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Exit plan mode."}]}}),
        6 => json!({"type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": 10}),
        7 => json!({"type": "conversation.item.delete", "item_id": item}),
        8 => json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": null}}}}),
        _ => function("light"),
    }
}

fn leg_output(dice: &mut Dice) -> LegOutput {
    let call = CallId(format!("c{}", dice.below(5)));
    let speech = SpeechId(dice.below(3) as u64);
    match dice.below(12) {
        0..=2 => LegOutput::CallDone { call, output: "{}".into() },
        3 => LegOutput::Handed { call },
        4 => LegOutput::SpeechBegan { speech, item: format!("own{}", dice.below(9)).as_str().into(), turn: None },
        5 => LegOutput::Audio { speech, samples: vec![1; 480], rate_hz: 24_000 },
        6 => LegOutput::SpeechEnded { speech, end: LegEnd::Completed },
        7 => LegOutput::Judged { consumed: dice.below(2) == 0 },
        8 => LegOutput::SpeechStarted { utterance: crate::engine::id::UtteranceId(1), at_ms: 0, item: "u".into() },
        9 => LegOutput::Brief(brief(dice.below(2) == 0)),
        10 => LegOutput::CancelStep,
        _ => LegOutput::TurnEnded { turn: crate::engine::id::TurnId(1), end: LegEnd::Completed },
    }
}

/// An event with one of its bytes, fields or ends changed.
fn mutated(dice: &mut Dice, event: &Value) -> String {
    let mut text = event.to_string().into_bytes();
    match dice.below(6) {
        0 => { let at = dice.below(text.len()); text[at] = dice.below(256) as u8 }
        1 => text.truncate(dice.below(text.len())),
        2 => { let at = dice.below(text.len()); text.insert(at, b'"') }
        3 => {
            let mut event = event.clone();
            if let Some(map) = event.as_object_mut() {
                let key = map.keys().nth(dice.below(map.len())).cloned().unwrap_or_default();
                map.insert(key, [Value::Null, json!(7), json!([]), json!({}), json!("x".repeat(5_000)), json!(-1)][dice.below(6)].clone());
            }
            return event.to_string();
        }
        4 => { let twice = text.clone(); text.extend(twice) }
        _ => {}
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Whatever happens: no panic, every answer has one beginning and one end, no call of the gateway's is seen, no call has two outputs.
fn history(seed: u64, wild: bool) {
    let mut dice = Dice(seed);
    let mut w = World::new();
    for _ in 0..60 {
        match dice.below(12) {
            0..=4 => { let event = provider_event(&mut dice); if wild && dice.below(3) == 0 { let text = mutated(&mut dice, &event); w.raw_up(text) } else { w.up(event) } }
            5..=6 => { let event = client_event(&mut dice); if wild && dice.below(3) == 0 { let text = mutated(&mut dice, &event); w.raw_client(text) } else { w.client(event) } }
            7..=9 => { let output = leg_output(&mut dice); w.leg(output) }
            10 => { let ms = dice.below(4_000) as Ms; w.pass(ms) }
            _ => {
                w.lose();
                w.up(json!({"type": "session.created", "event_id": "e", "session": {}}));
                w.leg(LegOutput::History(Vec::new()));
            }
        }
        if w.proxy.ending().is_some() { break }
    }
    one_beginning_and_one_end(seed, &w);
}

fn one_beginning_and_one_end(seed: u64, w: &World) {
    let mut open: Option<String> = None;
    for event in &w.seen {
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => {
                assert!(open.is_none(), "seed {seed}: two answers at one time\n{:#?}", w.story);
                open = event["response"]["id"].as_str().map(str::to_string);
            }
            "response.done" => {
                assert_eq!(open.take().as_deref(), event["response"]["id"].as_str(), "seed {seed}: the end of another answer\n{:#?}", w.story);
            }
            kind if kind.starts_with("response.") => assert_eq!(event["response_id"].as_str(), open.as_deref(), "seed {seed}: {event} belongs to no answer\n{:#?}", w.story),
            _ => {}
        }
        if event["item"]["type"] == "function_call" { assert_ne!(event["item"]["name"], "notes__add", "seed {seed}: a call of the gateway's was seen") }
    }
}

/// A history of a provider of the other protocol: the same promises hold of what the client sees.
fn history_of_gemini(seed: u64, wild: bool) {
    let mut dice = Dice(seed);
    let mut w = World::gemini();
    for _ in 0..60 {
        match dice.below(12) {
            0..=4 => { let frame = gemini_frame(&mut dice); if wild && dice.below(3) == 0 { let text = mutated(&mut dice, &frame); w.raw_up(text) } else { w.up(frame) } }
            5..=6 => { let event = client_event(&mut dice); if wild && dice.below(3) == 0 { let text = mutated(&mut dice, &event); w.raw_client(text) } else { w.client(event) } }
            7..=9 => { let output = leg_output(&mut dice); w.leg(output) }
            10 => { let ms = dice.below(4_000) as Ms; w.pass(ms) }
            _ => { w.lose(); w.connect(); w.pass(1_001); w.ready() }
        }
        if w.proxy.ending().is_some() { break }
    }
    one_beginning_and_one_end(seed, &w);
}

fn gemini_frame(dice: &mut Dice) -> Value {
    let content = |content: Value| json!({"serverContent": content});
    let tool = ["notes__add", "light", "nobody__knows"][dice.below(3)];
    match dice.below(12) {
        0..=3 => content(json!({"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA"}}]}, "outputTranscription": {"text": "word "}})),
        4 => content(json!({"inputTranscription": {"text": "words", "finished": dice.below(2) == 0}})),
        5 => content(json!({"interrupted": true})),
        6..=7 => content(json!({"turnComplete": true})),
        8..=9 => json!({"toolCall": {"functionCalls": [{"id": format!("g{}", dice.below(20)), "name": tool, "args": {}}]}}),
        10 => json!({"toolCallCancellation": {"ids": [format!("g{}", dice.below(20))]}}),
        _ => json!({"error": {"code": 3, "status": "INVALID_ARGUMENT", "message": "no"}}),
    }
}

#[test]
fn answers_of_the_other_protocol_have_one_beginning_and_one_end_too() {
    for seed in 0..2_000 { history_of_gemini(seed, false) }
    for seed in 20_000..22_000 { history_of_gemini(seed, true) }
}

#[test]
fn answers_have_one_beginning_and_one_end_whatever_happens() {
    for seed in 0..3_000 { history(seed, false) }
}

#[test]
fn mutated_events_of_both_sides_break_nothing() {
    for seed in 10_000..13_000 { history(seed, true) }
}
