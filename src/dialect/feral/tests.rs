//! Shapes on the wire, one frame an event, and what is refused with which field.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::authority::{Decide, Surface};
use crate::engine::event::*;
use crate::engine::id::QuestionId;
use crate::engine::mode::{AskPolicy, Mode};
use crate::engine::plan::{KeptCall, PlanStatus, PlanVersion};
use crate::engine::tool::call_hash;

fn parsed(text: &str) -> Value { serde_json::from_str(text).unwrap_or(Value::Null) }

fn by(surface: Surface) -> By { By { surface, utterance: None, words: "plan mode on".into() } }

fn plan_event(posture: Posture, approved: Option<bool>) -> EventKind {
    EventKind::Mode(ModeEvent { posture, ask: AskPolicy::Ask, epoch: 1, draining: 2, restored: false, reason: "look first".into(), by: by(Surface::Voice), approved })
}

fn version(n: u32) -> PlanVersion {
    let arguments = json!({"text": "buy eggs"});
    let kept = KeptCall { tool: "notes__add".into(), hash: call_hash("notes__add", &arguments), arguments };
    PlanVersion {
        version: n, title: "Shop".into(), summary: "Shop. For eggs.".into(),
        steps: vec![Step { title: "Add buy eggs".into(), kept: Some(kept), ..Step::default() }],
        open_questions: vec![], risks: vec![], hash: "00ff00ff00ff00ff".into(), status: PlanStatus::Waiting, ..PlanVersion::default()
    }
}

fn fold(kinds: Vec<EventKind>) -> (Snapshot, Vec<Value>) {
    let mut state = Snapshot::default();
    let frames = kinds.into_iter().enumerate().map(|(n, kind)| {
        let event = Event { seq: n as u64 + 1, at_ms: 1_700_000_000_500 + n as u64, kind };
        state.apply(&event);
        parsed(&frame(&event, &state, "s1", "m"))
    }).collect();
    (state, frames)
}

#[test]
fn ledger_f41_d2_an_entry_and_an_exit_carry_the_describe_object() {
    let (_, frames) = fold(vec![plan_event(Posture::Plan, None), EventKind::Presented(version(1)), plan_event(Posture::Default, Some(true))]);
    let (on, off) = (&frames[0], &frames[2]);
    assert_eq!((on["type"].as_str(), on["hop"].as_str(), on["seq"].as_u64()), (Some("plan_mode"), Some("brain"), Some(1)));
    assert_eq!(on["timestamp_ms"], 1_700_000_000_500_u64);
    let payload = &on["payload"];
    assert_eq!(payload["plan_mode"], true);
    assert_eq!(payload["entered_at"], 1_700_000_000.5);
    assert_eq!((payload["entered_by"].as_str(), payload["reason"].as_str()), (Some("user"), Some("look first")));
    assert_eq!((payload["draining"].as_u64(), payload["persisted"].as_bool()), (Some(2), Some(true)));
    assert_eq!(payload["by"]["surface"], "voice");
    assert_eq!(payload["modes"], json!({"available": ["default", "plan", "bypass", "autonomous"], "current": "plan", "pending": null}));
    assert!(payload["approved"].is_null() && payload["latest_plan"].is_null());
    assert_eq!((off["payload"]["plan_mode"].as_bool(), off["payload"]["approved"].as_bool()), (Some(false), Some(true)));
    assert_eq!(off["payload"]["latest_plan"]["steps"][0]["call"]["args"]["text"], "buy eggs");
    assert_eq!(off["payload"]["entered_at"], Value::Null);
}

#[test]
fn ledger_d49_the_picker_has_what_is_in_force_and_what_was_chosen_and_is_told_again_when_it_holds() {
    let (state, frames) = fold(vec![plan_event(Posture::Plan, None), plan_event(Posture::Default, Some(false)), EventKind::Still(Some(Mode::Plan)), EventKind::Still(None)]);
    let modes = |n: usize| (frames[n]["payload"]["modes"]["current"].as_str(), frames[n]["payload"]["modes"]["pending"].as_str());
    assert!(frames.iter().all(|f| f["type"] == "plan_mode" && f["payload"]["modes"]["available"] == json!(["default", "plan", "bypass", "autonomous"])));
    assert_eq!([modes(0), modes(1), modes(2), modes(3)], [(Some("plan"), None), (Some("default"), None), (Some("plan"), Some("default")), (Some("default"), None)]);
    assert_eq!(frames[2]["payload"]["plan_mode"], false, "the boolean of older clients is what was chosen");
    assert_eq!((modes_object(&state, "s")["current"].as_str(), modes_object(&state, "s")["modes"].as_array().map(Vec::len)), (Some("default"), Some(4)));
    let waits = Snapshot { still: Some(Mode::Plan), ..state };
    assert!(modes_line(&waits).contains("The mode is plan.") && modes_line(&waits).contains("default was chosen"), "{}", modes_line(&waits));
}

#[test]
fn an_unlogged_change_says_so() {
    let event = Event { seq: 1, at_ms: 1, kind: plan_event(Posture::Plan, None) };
    let frame = parsed(&frame_kept(&event, &Snapshot::default(), "s", "m", Kept::Memory));
    assert_eq!(frame["payload"]["persisted"], false);
}

#[test]
fn ledger_d54_l45_a_review_names_version_title_comments_and_the_word_that_approves() {
    let decided = EventKind::PlanDecided { version: 1, status: PlanStatus::ChangesRequested, by: by(Surface::Chat), comments: "fewer".into() };
    let (_, frames) = fold(vec![EventKind::Draft { steps: version(1).steps }, EventKind::Presented(version(1)), decided]);
    assert!(frames.iter().all(|f| f["type"] == "plan_review" && f["payload"]["approve"] == "approve"));
    assert_eq!((&frames[0]["payload"]["version"], frames[0]["payload"]["status"].as_str()), (&Value::Null, Some("draft")));
    assert_eq!(frames[1]["payload"]["submitted_at"], 1_700_000_000.501);
    assert_eq!((frames[1]["payload"]["version"].as_u64(), frames[1]["payload"]["title"].as_str(), frames[1]["payload"]["open_comments"].as_u64()), (Some(1), Some("Shop"), Some(0)));
    let last = &frames[2]["payload"];
    assert_eq!((last["status"].as_str(), last["comments"].as_str(), last["title"].as_str()), (Some("changes_requested"), Some("fewer"), Some("Shop")));
}

#[test]
fn a_tool_result_keeps_only_refusal_codes() {
    let result = |code: &str| EventKind::ToolResult {
        call: "c1".into(), tool: "notes__add".into(), success: false, error_code: code.into(), error: "é".repeat(500), output: json!({"error": "x".repeat(900)}), latency_ms: 3,
    };
    let (_, frames) = fold(vec![result("plan_mode_blocked"), result("expired")]);
    assert_eq!((frames[0]["payload"]["error_code"].as_str(), frames[1]["payload"]["error_code"].as_str()), (Some("plan_mode_blocked"), Some("")));
    assert_eq!(frames[1]["payload"]["outcome_code"], "expired");
    assert_eq!(frames[0]["payload"]["error"].as_str().map(|e| e.chars().count()), Some(ERROR_CHARS));
    assert_eq!(frames[0]["payload"]["result_preview_truncated"], true);
}

#[test]
fn a_tool_name_is_split_at_the_first_double_underscore() {
    let start = EventKind::ToolStart { call: "c".into(), tool: "notes__add__now".into(), arguments: json!({"text": "x".repeat(400)}), display: "notes: add".into() };
    let payload = &fold(vec![start]).1[0]["payload"];
    assert_eq!((payload["skill_id"].as_str(), payload["endpoint_id"].as_str()), (Some("notes"), Some("add__now")));
    assert_eq!(payload["args_preview"].as_str().map(str::len), Some(ARGS_PREVIEW_CHARS));
}

#[test]
fn a_snapshot_is_the_plan_mode_object_and_more() {
    let said = EventKind::Transcript { role: Role::User, text: "hi".into(), item: "i1".into(), utterance: None, for_agent: true, surface: Surface::Chat };
    let (state, frames) = fold(vec![plan_event(Posture::Plan, None), said]);
    assert_eq!(frames[1]["payload"]["seq"], 2);
    let shot = parsed(&snapshot_frame(&state, "s1", "m", false));
    assert_eq!((shot["type"].as_str(), shot["seq"].as_u64(), shot["payload"]["seq"].as_u64()), (Some("snapshot"), Some(2), Some(2)));
    for name in ["plan_mode", "modes", "draining", "plans", "draft", "question", "approvals", "todo", "transcript", "voice_state", "resumed", "entered_at", "latest_plan"] {
        assert!(shot["payload"].get(name).is_some(), "{name}");
    }
    assert_eq!(shot["payload"]["transcript"][0]["text"], "hi");
}

#[test]
fn what_passes_carries_no_number() {
    let head = Head { session_id: "s", msg_id: "m", at_ms: 5 };
    for text in [partial_transcript(head, Role::User, true, "hel"), level(head, f32::NEG_INFINITY, false), ack(head, Some("q"), true, "", "")] {
        assert!(parsed(&text).get("seq").is_none(), "{text}");
    }
    assert_eq!(parsed(&ack(head, Some("q"), true, "", ""))["payload"], json!({"msg_id": "q", "ok": true}));
    let bad = BadMessage { msg_id: None, field: "payload.text".into(), message: "is blank".into() };
    assert_eq!(parsed(&bad_message(head, &bad))["payload"]["code"], 1003);
}

proptest! {
    #[test]
    fn every_event_is_one_numbered_frame(kind in crate::dialect::record::any_kind(), seq in 1..u64::MAX) {
        let event = Event { seq, at_ms: 9, kind };
        let mut state = Snapshot::default();
        state.apply(&event);
        let frame = parsed(&frame(&event, &state, "s", "m"));
        prop_assert_eq!(frame["seq"].as_u64(), Some(seq));
        prop_assert!(frame["payload"].is_object() && frame["payload"]["code"] != "unknown_event");
        prop_assert!(frame["type"].as_str().is_some_and(|t| !t.is_empty()));
    }

    #[test]
    fn no_message_makes_it_panic(text in ".*") { let _ = (parse_inbound(&text), parse_chat_command(&text)); }
}

#[test]
fn messages_come_bare_or_in_the_envelope() {
    let bare = parse_inbound(r#"{"type":"chat","payload":{"text":"hello"},"msg_id":"a"}"#);
    assert_eq!(bare, Ok(Inbound { msg_id: Some("a".into()), session_id: None, deed: Deed::Chat { text: "hello".into() } }));
    let whole = r#"{"msg_id":"b","session_id":"s1","timestamp_ms":5,"hop":"client","type":"plan_decision","payload":{"version":2,"hash":"ab","decision":"approve"}}"#;
    let deed = Deed::Decide(Decide::Approve { version: Some(2), hash: Some("ab".into()) });
    assert_eq!(parse_inbound(whole), Ok(Inbound { msg_id: Some("b".into()), session_id: Some("s1".into()), deed }));
    let decision = |text: &str| parse_inbound(text).ok().and_then(|m| m.deed.decision());
    assert_eq!(decision(r#"{"type":"stop","payload":{"scope":"turn"}}"#), Some(Decide::StopTurn));
    assert_eq!(decision(r#"{"type":"mode","payload":{"posture":"plan"}}"#), Some(Decide::Enter { reason: String::new() }));
    assert_eq!(decision(r#"{"type":"mode","payload":{"posture":"default"}}"#), Some(Decide::Leave));
    let answer = Decide::AnswerTool { request: QuestionId("q1".into()), approve: false };
    assert_eq!(decision(r#"{"type":"approval_decision","payload":{"request_id":"q1","decision":"deny"}}"#), Some(answer));
}

#[test]
fn a_bad_message_names_its_field() {
    let field = |text: &str| parse_inbound(text).map_or_else(|bad| bad.field, |m| format!("accepted {m:?}"));
    assert_eq!(field("{"), "message");
    assert_eq!(field("[]"), "message");
    assert_eq!(field("{}"), "type");
    assert_eq!(field(r#"{"type":7}"#), "type");
    assert_eq!(field(r#"{"type":"sing"}"#), "type");
    assert_eq!(field(r#"{"type":"chat"}"#), "payload.text");
    assert_eq!(field(r#"{"type":"chat","payload":{"text":"  "}}"#), "payload.text");
    assert_eq!(field(r#"{"type":"chat","payload":[]}"#), "payload");
    assert_eq!(field(r#"{"type":"chat","payload":{"text":"a"},"msg_id":5}"#), "msg_id");
    assert_eq!(field(&json!({"type": "chat", "payload": {"text": "a"}, "msg_id": "x".repeat(129)}).to_string()), "msg_id");
    assert_eq!(field(&json!({"type": "chat", "payload": {"text": "a".repeat(TEXT_CHARS_MAX + 1)}}).to_string()), "payload.text");
    assert_eq!(field(r#"{"type":"chat","payload":{"text":"a"},"timestamp_ms":-1}"#), "timestamp_ms");
    assert_eq!(field(r#"{"type":"chat","payload":{"text":"a"},"hop":"moon"}"#), "hop");
    assert_eq!(field(r#"{"type":"plan_decision","payload":{"decision":"approve"}}"#), "payload.version");
    assert_eq!(field(r#"{"type":"plan_decision","payload":{"decision":"approve","version":0}}"#), "payload.version");
    assert_eq!(field(r#"{"type":"plan_decision","payload":{"decision":"approve","version":1.5}}"#), "payload.version");
    assert_eq!(field(r#"{"type":"plan_decision","payload":{"decision":"maybe","version":1}}"#), "payload.decision");
    assert_eq!(field(r#"{"type":"approval_decision","payload":{"decision":"approve"}}"#), "payload.request_id");
    assert_eq!(field(r#"{"type":"stop","payload":{"scope":"all"}}"#), "payload.scope");
    assert_eq!(field(r#"{"type":"mode","payload":{"posture":"bypass"}}"#), "payload.posture");
    let kept = parse_inbound(r#"{"type":"sing","msg_id":"m7"}"#).map_err(|bad| bad.msg_id);
    assert_eq!(kept, Err(Some("m7".into())));
}

#[test]
fn ledger_f12_d46_the_chat_grammar_a1_6_r14() {
    use ChatCommand::*;
    let enter = |reason: &str| Some(Enter { reason: reason.into(), then_submit: !reason.is_empty() });
    for line in ["/plan", " /PLAN ", "/plan on", "/plan start", "/plan Enter"] {
        assert_eq!(parse_chat_command(line), enter(""), "{line}");
    }
    assert_eq!(parse_chat_command("/plan refactor the  resolver"), enter("refactor the  resolver"));
    assert_eq!(parse_chat_command("/plan on refactor it"), enter("refactor it"));
    for line in ["/plan off", "/plan EXIT", "/plan cancel", "/plan stop", "/plan discard"] {
        assert_eq!(parse_chat_command(line), Some(Leave), "{line}");
    }
    assert_eq!(parse_chat_command("/plan approve"), Some(Approve { version: None }));
    assert_eq!(parse_chat_command("/plan ok v2"), Some(Approve { version: Some(2) }));
    assert_eq!(parse_chat_command("/plan accept 12"), Some(Approve { version: Some(12) }));
    assert_eq!(parse_chat_command("/plan status"), Some(Status));
    assert_eq!([parse_chat_command("/mode"), parse_chat_command("/MODE plan "), parse_chat_command("/mode Autonomous")], [Some(Modes), Some(ChatCommand::Mode(crate::engine::mode::Mode::Plan)), Some(ChatCommand::Mode(crate::engine::mode::Mode::Autonomous))]);
    assert_eq!([parse_chat_command("/mode custom"), parse_chat_command("/mode plan now"), parse_chat_command("/modes")], [Some(Usage), Some(Usage), None]);
    for line in ["/plan approve everything", "/plan approve +2", "/plan cancel the order", "/plan off now", "/plan help"] {
        assert_eq!(parse_chat_command(line), Some(Usage), "{line}");
    }
    for line in ["make a plan for the migration", "plan", "can you /plan this out for me", "/planner", "/plan-off", ""] {
        assert_eq!(parse_chat_command(line), None, "{line}");
    }
}
