//! Proxied sessions whatever the provider speaks: the same conversation over OpenAI Realtime and over Gemini Live, with real speech.

use serde_json::{Value, json};

use crate::live::Gateway;
use crate::live::chat::Chat;
use crate::live::headset::Headset;
use crate::provider::{Reply, Upstream};
use crate::provider_gemini::Far;

enum Provider {
    OpenAi(Upstream),
    Gemini(Far),
}

impl Provider {
    async fn openai() -> Self { Self::OpenAi(Upstream::start().await) }

    async fn gemini() -> Self { Self::Gemini(Far::start().await) }

    fn config(&self) -> String {
        match self { Self::OpenAi(up) => up.config(), Self::Gemini(far) => far.config("gemini-2.5-flash-native-audio") }
    }

    fn will(&self, reply: Reply) {
        match self { Self::OpenAi(up) => up.will(reply), Self::Gemini(far) => far.will(reply) }
    }

    fn mark(&self) -> usize {
        match self { Self::OpenAi(up) => up.mark(), Self::Gemini(far) => far.mark() }
    }

    /// What it would answer by itself, where it answers before it is asked.
    fn would(&self, reply: Reply) {
        if let Self::Gemini(far) = self { far.will(reply) }
    }

    /// It has heard somebody, whose words it took for these, and does what it does then.
    fn hears(&self, item: &str, understood: &str) {
        match self {
            Self::OpenAi(up) => {
                up.hears(item);
                up.says(json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "content_index": 0, "transcript": understood}));
            }
            Self::Gemini(far) => far.answers_speech(understood),
        }
    }

    /// The output of a call, once it came.
    async fn output(&self, call: &str) -> String {
        match self {
            Self::OpenAi(up) => up.gets(0, call, |e| e["item"]["type"] == "function_call_output" && e["item"]["call_id"] == call).await["item"]["output"].as_str().unwrap().to_string(),
            Self::Gemini(far) => {
                far.gets(0, call, |f| f["toolResponse"]["functionResponses"].as_array().is_some_and(|r| r.iter().any(|r| r["id"] == call))).await;
                far.outputs(0).into_iter().find(|(id, _)| id == call).unwrap().1.to_string()
            }
        }
    }

    fn outputs_of(&self, call: &str) -> usize {
        match self {
            Self::OpenAi(up) => up.received().iter().filter(|e| e["item"]["type"] == "function_call_output" && e["item"]["call_id"] == call).count(),
            Self::Gemini(far) => far.outputs(0).iter().filter(|(id, _)| id == call).count(),
        }
    }

    /// It was told since then that this holds.
    async fn is_told(&self, mark: usize, words: &str, holds: bool) {
        match self {
            Self::OpenAi(up) => { up.gets(mark, words, |e| e["type"] == "session.update" && e["session"]["instructions"].as_str().is_some_and(|i| i.contains(words) == holds)).await; }
            Self::Gemini(far) => { far.gets(mark, words, |f| f["setup"]["systemInstruction"]["parts"][0]["text"].as_str().is_some_and(|i| i.contains(words) == holds)).await; }
        }
    }
}

struct World {
    provider: Provider,
    gateway: Gateway,
    chat: Chat,
    headset: Headset,
}

impl World {
    async fn new(provider: Provider, session: Value) -> Self {
        let gateway = Gateway::serve(&provider.config()).await;
        let chat = Chat::follow(&gateway, "new", false).await;
        let headset = Headset::join_model(&gateway, "far", &chat.id, session, false).await;
        Self { provider, gateway, chat, headset }
    }

    fn user(&self, text: &str) {
        self.headset.tell(json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}}));
        self.headset.tell(json!({"type": "response.create"}));
    }

    async fn done(&self, mark: usize) -> Value { self.headset.event_after(mark, "response.done", |e| e["type"] == "response.done").await["response"].clone() }

    /// Words of the provider's that the client heard since.
    fn heard(&self, mark: usize, words: &str) -> usize {
        self.headset.all_after(mark).iter().filter(|e| e["type"] == "response.output_audio_transcript.delta" && e["delta"].as_str().is_some_and(|d| d.contains(words))).count()
    }

    fn notes(&self) -> String {
        let mut all = String::new();
        for file in std::fs::read_dir(self.gateway.home().join("notes")).into_iter().flatten().flatten() { all.push_str(&std::fs::read_to_string(file.path()).unwrap_or_default()) }
        all
    }

    async fn mode(&self, mark: usize, plan: bool) -> Value {
        self.chat.event_after(mark, "the mode", move |e| e["type"] == "plan_mode" && e["payload"]["plan_mode"] == plan).await
    }
}

fn realtime() -> Value { json!({"type": "realtime"}) }

/// A turn with sound, one call of the gateway's within it: one answer.
async fn a_turn_with_a_tool(provider: Provider) {
    let w = World::new(provider, realtime()).await;
    w.provider.will(Reply::Calls("Let me look.", vec![("call_1", "notes__list", json!({}))]));
    w.provider.will(Reply::Speech("You have no notes.", 3));
    let mark = w.headset.mark();
    w.user("What is in my notes?");
    let response = w.done(mark).await;
    let words: Vec<&str> = response["output"].as_array().unwrap().iter().map(|i| i["content"][0]["transcript"].as_str().unwrap()).collect();
    assert_eq!(words, ["Let me look.", "You have no notes."]);
    assert!(w.headset.all_after(mark).iter().all(|e| !e.to_string().contains("function_call") && !e.to_string().contains("call_1")));
    assert!(w.provider.output("call_1").await.contains("titles"));
    w.chat.event_after(0, "the call is shown", |e| e["type"] == "tool_result" && e["payload"]["tool"] == "notes__list" && e["payload"]["success"] == true).await;
    assert!(!w.gateway.said().contains("secret"));
}

/// Plan mode from the chat while calls wait: none of them runs, everybody hears of it, once.
async fn entering_while_calls_wait(provider: Provider) {
    let w = World::new(provider, realtime()).await;
    w.provider.will(Reply::Calls("", vec![("call_1", "notes__add", json!({"text": "eggs"})), ("call_2", "notes__add", json!({"text": "milk"})), ("call_3", "notes__add", json!({"text": "tea"}))]));
    w.user("Note eggs, milk and tea.");
    w.chat.event_after(0, "the first call asks", |e| e["type"] == "consent_question" || e["type"] == "question" || e["payload"]["question"].is_object()).await;
    let (mark, told) = (w.headset.mark(), w.provider.mark());
    assert_eq!(w.chat.chat("/plan").await["ok"], true);
    w.mode(0, true).await;
    for call in ["call_1", "call_2", "call_3"] {
        let output = w.provider.output(call).await;
        assert!(output.contains("plan_mode_blocked"), "{call}: {output}");
        assert_eq!(w.provider.outputs_of(call), 1);
        w.chat.event_after(0, "the refusal is shown", move |e| e["type"] == "tool_result" && e["payload"]["error_code"] == "plan_mode_blocked").await;
    }
    w.provider.is_told(told, "Plan mode is ON", true).await;
    w.headset.answer_after(mark, "plan mode is on").await;
    w.headset.quiet().await;
    let lines: Vec<String> = w.headset.all_after(mark).iter().filter(|e| e["type"] == "response.output_audio_transcript.done").filter_map(|e| e["transcript"].as_str().map(str::to_string)).collect();
    assert_eq!(lines.iter().filter(|t| t.contains("lan mode is on")).count(), 1, "one spoken line: {lines:?}");
    assert_eq!(w.notes(), "");
}

/// Said aloud: the mode goes on everywhere, the person hears it, and of the provider's own answer nothing.
async fn entering_by_voice(provider: Provider) {
    let w = World::new(provider, realtime()).await;
    let (mark, told) = (w.headset.mark(), w.provider.mark());
    w.provider.would(Reply::Speech("Plan mode? I am only a model.", 20));
    w.headset.say("Enter plan mode.").await;
    w.provider.hears("item_said", "Enter plan mode.");
    let on = w.mode(0, true).await;
    assert_eq!(on["payload"]["by"]["surface"], "voice");
    w.headset.answer_after(mark, "plan mode is on").await;
    w.provider.is_told(told, "Plan mode is ON", true).await;
    w.headset.quiet().await;
    assert_eq!(w.heard(mark, "only a model"), 0);
    // What is said to the provider is answered by it.
    w.provider.will(Reply::Speech("It is sunny.", 5));
    let mark = w.headset.mark();
    w.headset.say("How is the weather in the hills today?").await;
    w.provider.hears("item_weather", "How is the weather in the hills today?");
    w.headset.event_after(mark, "its answer", |e| e["type"] == "response.done" && e.to_string().contains("It is sunny.")).await;
}

/// A plan of the provider's, approved aloud in two steps; what was refused before stays refused.
async fn approving_by_voice(provider: Provider) {
    let w = World::new(provider, realtime()).await;
    assert_eq!(w.chat.chat("/plan").await["ok"], true);
    w.mode(0, true).await;
    w.headset.answer_after(0, "plan mode is on").await;
    w.headset.quiet().await;
    w.provider.will(Reply::Calls("", vec![("call_add", "notes__add", json!({"text": "eggs"})), ("call_plan", "plan__submit", json!({"title": "Note the eggs", "summary": "A note about eggs is added.", "steps": ["Add a note: eggs"]}))]));
    // The plan is read by the gateway; one that goes on by itself says something all the same.
    w.provider.would(Reply::Speech("The plan is there.", 1));
    let mark = w.headset.mark();
    w.user("Plan a note about eggs.");
    assert!(w.provider.output("call_add").await.contains("plan_mode_blocked"));
    w.provider.output("call_plan").await;
    w.headset.event_after(mark, "the plan is read", |e| e["type"] == "response.done" && e.to_string().contains("approve plan one")).await;
    w.headset.quiet().await;
    let (mark, told) = (w.headset.mark(), w.provider.mark());
    w.provider.would(Reply::Speech("Approved already, I would say.", 5));
    w.headset.say("Approve plan one.").await;
    w.provider.hears("item_approve", "Approve plan one.");
    w.headset.event_after(mark, "the second step is asked for", |e| e["type"] == "response.output_audio_transcript.done" && e["transcript"].as_str().is_some_and(|t| t.to_lowercase().contains("confirm"))).await;
    w.headset.quiet().await;
    assert!(w.chat.look(|s| s.shown.plan_mode), "one step is none");
    w.provider.would(Reply::Speech("Confirmed already, I would say.", 5));
    w.headset.say("Confirm plan one.").await;
    w.provider.hears("item_confirm", "Confirm plan one.");
    let off = w.mode(0, false).await;
    assert_eq!(off["payload"]["by"]["surface"], "voice");
    w.provider.is_told(told, "Plan mode is ON", false).await;
    assert_eq!(w.heard(mark, "I would say"), 0);
    // The call of before is answered once and never runs.
    assert_eq!((w.provider.outputs_of("call_add"), w.notes()), (1, String::new()));
}

/// A client's own tool: handed over in its order, and in plan mode never.
async fn a_clients_tool(provider: Provider) {
    let light = json!({"type": "function", "name": "light", "description": "d", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}}});
    let w = World::new(provider, json!({"type": "realtime", "tools": [light]})).await;
    w.provider.will(Reply::Calls("", vec![("call_1", "light", json!({"on": true}))]));
    let mark = w.headset.mark();
    w.user("Light, please.");
    let response = w.done(mark).await;
    assert_eq!((&response["output"][0]["type"], &response["output"][0]["call_id"]), (&json!("function_call"), &json!("call_1")));
    w.provider.will(Reply::Speech("It is on.", 1));
    let mark = w.headset.mark();
    w.headset.tell(json!({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "call_1", "output": "{\"on\":true}"}}));
    w.headset.tell(json!({"type": "response.create"}));
    assert_eq!(w.done(mark).await["output"][0]["content"][0]["transcript"], "It is on.");
    assert_eq!(w.provider.outputs_of("call_1"), 1);
    assert_eq!(w.chat.chat("/plan").await["ok"], true);
    w.mode(0, true).await;
    w.headset.answer_after(0, "plan mode is on").await;
    w.headset.quiet().await;
    w.provider.will(Reply::Calls("", vec![("call_2", "light", json!({"on": false}))]));
    w.provider.will(Reply::Speech("I may not.", 1));
    let mark = w.headset.mark();
    w.user("Light off.");
    assert!(w.provider.output("call_2").await.contains("plan_mode_blocked"));
    w.headset.event_after(mark, "the answer", |e| e["type"] == "response.done" && e.to_string().contains("I may not.")).await;
    assert!(!w.headset.all_after(mark).iter().any(|e| e.to_string().contains("call_2")));
}

/// The client stops an answer; a person says that it is to stop.
async fn being_stopped(provider: Provider) {
    let w = World::new(provider, realtime()).await;
    w.provider.will(Reply::Slow("One, two, three"));
    let mark = w.headset.mark();
    w.user("Count, please.");
    w.headset.event_after(mark, "some of it", |e| e["type"] == "response.output_audio.delta").await;
    w.headset.tell(json!({"type": "response.cancel"}));
    let response = w.done(mark).await;
    assert_eq!((&response["status"], &response["status_details"]["reason"]), (&json!("cancelled"), &json!("client_cancelled")));
    w.provider.will(Reply::Slow("Four, five, six"));
    let mark = w.headset.mark();
    w.user("Go on.");
    w.headset.event_after(mark, "some of it", |e| e["type"] == "response.output_audio.delta").await;
    w.headset.say("Stop talking.").await;
    assert_eq!(w.done(mark).await["status"], "cancelled");
}

macro_rules! with_both {
    ($($name:ident: $scene:ident),* $(,)?) => { $( mod $name {
        use super::*;
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn openai() { $scene(Provider::openai().await).await }
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn gemini() { $scene(Provider::gemini().await).await }
    } )* };
}

with_both! {
    a_turn_with_a_gateways_tool_is_one_answer: a_turn_with_a_tool,
    acceptance_a_entering_while_calls_wait_refuses_them_all: entering_while_calls_wait,
    acceptance_c_a_spoken_enter_flips_everything_and_is_heard: entering_by_voice,
    acceptance_d_a_plan_is_approved_aloud_in_two_steps: approving_by_voice,
    a_clients_tool_is_handed_over_and_in_plan_mode_never: a_clients_tool,
    an_answer_is_stopped_by_the_client_or_by_voice: being_stopped,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_hears_sixteen_kilohertz_and_gets_its_key_in_a_header() {
    let far = Far::start().await;
    let gateway = Gateway::serve(&far.config("gemini-2.5-flash-native-audio")).await;
    let chat = Chat::follow(&gateway, "new", false).await;
    let headset = Headset::join_model(&gateway, "far", &chat.id, realtime(), false).await;
    headset.say("How are you today?").await;
    let (samples, loudest) = far.sound();
    assert!(samples > 12_000 && loudest > 2_000, "{samples} samples, at most {loudest}");
    assert_eq!(far.key(), ("far-secret-key".to_string(), "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent".to_string()));
    assert_eq!(far.setup()["model"], "models/gemini-2.5-flash-native-audio");
    assert!(!gateway.said().contains("far-secret-key"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_says_goodbye_and_the_session_goes_on_elsewhere() {
    let w = World::new(Provider::gemini().await, realtime()).await;
    let Provider::Gemini(far) = &w.provider else { unreachable!() };
    w.provider.will(Reply::Speech("Nice to meet you.", 2));
    let mark = w.headset.mark();
    w.user("My name is Rosa.");
    w.done(mark).await;
    let sent = far.mark();
    far.says(&json!({"goAway": {"timeLeft": "30s"}}));
    let setup = far.gets(sent, "the session anew", |f| !f["setup"].is_null()).await;
    assert_eq!((&setup["setup"]["sessionResumption"]["handle"], far.connections()), (&json!("handle_1"), 2));
    // The handle is refused: the next begins anew, and is told what was said.
    let sent = far.mark();
    far.refuses(1007);
    far.raw(tokio_tungstenite::tungstenite::Message::Close(None));
    far.gets(sent, "what was said", |f| f["clientContent"]["turns"].as_array().is_some_and(|t| t.iter().any(|t| t["parts"][0]["text"] == "My name is Rosa."))).await;
    assert_eq!(far.setup()["sessionResumption"], json!({}));
    w.provider.will(Reply::Speech("You are Rosa.", 1));
    let mark = w.headset.mark();
    w.user("Who am I?");
    assert_eq!(w.done(mark).await["output"][0]["content"][0]["transcript"], "You are Rosa.");
    assert_eq!(w.headset.count_after(0, "session.created"), 1);
}
