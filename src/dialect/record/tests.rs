//! Every kind and field there and back; what is unknown is loud.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::authority::{By, Surface};
use crate::engine::comment::{Comment, CommentState};
use crate::engine::event::*;
use crate::engine::id::*;
use crate::engine::mode::{AskPolicy, Posture};
use crate::engine::plan::*;
use crate::engine::todo::*;
use crate::engine::tool::{Effect, call_hash};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from), any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from), any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![any::<String>(), Just("$f64".to_string()), Just("$json".to_string()), Just("$$json".to_string())];
    leaf.prop_recursive(4, 24, 4, move |inner| prop_oneof![
        vec(inner.clone(), 0..4).prop_map(Value::Array),
        vec((key.clone(), inner), 0..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
    ])
}

fn any_by() -> impl Strategy<Value = By> {
    let surface = prop::sample::select(vec![Surface::Chat, Surface::Rest, Surface::Screen, Surface::Voice, Surface::Client, Surface::Gateway, Surface::Agent]);
    (surface, option::of(any::<u64>()), any::<String>())
        .prop_map(|(surface, u, words)| By { surface, utterance: u.map(UtteranceId), words })
}

fn any_step() -> impl Strategy<Value = Step> {
    let kept = ("[a-z_]{1,12}", any_json()).prop_map(|(tool, arguments)| KeptCall { hash: call_hash(&tool, &arguments), tool, arguments });
    (any::<String>(), any::<String>(), vec(any::<String>(), 0..3), option::of(kept))
        .prop_map(|(title, detail, tools, kept)| Step { title, detail, tools, kept })
}

fn any_status() -> impl Strategy<Value = PlanStatus> {
    use PlanStatus::*;
    prop::sample::select(vec![Waiting, Approved, ChangesRequested, Dismissed, SetAside, Superseded, Completed, Closed])
}

fn any_version() -> impl Strategy<Value = PlanVersion> {
    (any::<u32>(), any::<String>(), any::<String>(), vec(any_step(), 0..4), vec(any::<String>(), 0..3), vec(any::<String>(), 0..3), "[0-9a-f]{16}", any_status())
        .prop_map(|(version, title, summary, steps, open_questions, risks, hash, status)| PlanVersion { version, title, summary, steps, open_questions, risks, hash, status, ..PlanVersion::default() })
}

fn any_comment() -> impl Strategy<Value = Comment> {
    use CommentState::*;
    let state = prop::sample::select(vec![Open, Sent, Outdated, Removed]);
    (any::<u32>(), any::<u32>(), option::of(any::<u32>()), any::<String>(), any::<String>(), state, any_by())
        .prop_map(|(id, version, step, quote, text, state, by)| Comment { id, version, step, quote, text, state, by })
}

fn any_question() -> impl Strategy<Value = Question> {
    let kind = prop::sample::select(vec![QuestionKind::Tool, QuestionKind::Approve, QuestionKind::Leave]);
    use QuestionState::*;
    let state = prop::sample::select(vec![Asked, Heard, ScreenOnly, Answered, Expired]);
    (any::<String>(), kind, any::<String>(), option::of(any::<u32>()), option::of(any::<String>()), any::<bool>(), state, any::<String>(), option::of(any_by()))
        .prop_map(|(id, kind, text, version, call, screen_only, state, outcome, by)| Question { id: QuestionId(id), kind, text, version, call: call.map(CallId), screen_only, state, outcome, by })
}

fn any_mode() -> impl Strategy<Value = ModeEvent> {
    let posture = prop::sample::select(vec![Posture::Default, Posture::Plan]);
    let ask = prop::sample::select(vec![AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse]);
    (posture, ask, any::<u32>(), any::<u32>(), any::<bool>(), any::<String>(), any_by(), option::of(any::<bool>()))
        .prop_map(|(posture, ask, epoch, draining, restored, reason, by, approved)| ModeEvent { posture, ask, epoch, draining, restored, reason, by, approved })
}

fn any_pending() -> impl Strategy<Value = PendingApproval> {
    let effect = prop::sample::select(vec![Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown]);
    (any::<String>(), any::<String>(), any::<String>(), any_json(), effect, any::<String>(), any::<bool>(), any::<u64>())
        .prop_map(|(r, c, tool, arguments, effect, reason, screen_only, created_ms)| PendingApproval { request: QuestionId(r), call: CallId(c), tool, arguments, effect, reason, screen_only, created_ms })
}

fn any_todo() -> impl Strategy<Value = TodoItem> {
    let status = prop::sample::select(vec![TodoStatus::Pending, TodoStatus::InProgress, TodoStatus::Completed]);
    (any::<String>(), any::<String>(), status).prop_map(|(id, content, status)| TodoItem { id, content, status })
}

fn any_talk() -> impl Strategy<Value = EventKind> {
    let role = prop::sample::select(vec![Role::User, Role::Assistant]);
    (role, any::<String>(), any::<String>(), option::of(any::<u64>()), any::<bool>(), any_by())
        .prop_map(|(role, text, item, u, for_agent, by)| EventKind::Transcript { role, text, item: ItemId(item), utterance: u.map(UtteranceId), for_agent, surface: by.surface })
}

fn any_tool() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (any::<String>(), any::<String>(), any_json(), any::<String>())
            .prop_map(|(call, tool, arguments, display)| EventKind::ToolStart { call: CallId(call), tool, arguments, display }),
        (any::<String>(), any::<String>(), any::<bool>(), any::<String>(), any::<String>(), any_json(), any::<u64>())
            .prop_map(|(call, tool, success, error_code, error, output, latency_ms)| EventKind::ToolResult { call: CallId(call), tool, success, error_code, error, output, latency_ms }),
    ]
}

/// Every kind, every field.
pub fn any_kind() -> impl Strategy<Value = EventKind> {
    use VoiceState::*;
    prop_oneof![
        prop::sample::select(vec!["new", "resumed"]).prop_map(|how| EventKind::Started { how }),
        any_mode().prop_map(EventKind::Mode),
        option::of(prop::sample::select(crate::engine::mode::Mode::LIST.to_vec())).prop_map(EventKind::Still),
        any_talk(),
        vec(any_step(), 0..4).prop_map(|steps| EventKind::Draft { steps }),
        any_version().prop_map(EventKind::Presented),
        (any::<u32>(), any_status(), any_by(), any::<String>()).prop_map(|(version, status, by, comments)| EventKind::PlanDecided { version, status, by, comments }),
        any_comment().prop_map(EventKind::Comment),
        (any::<u32>(), any_by()).prop_map(|(version, by)| EventKind::Continued { version, by }),
        any_question().prop_map(EventKind::Question),
        any_pending().prop_map(EventKind::ApprovalRequested),
        (any::<String>(), any::<String>(), prop::sample::select(vec!["approved", "denied", "expired", "withdrawn"]), any_by())
            .prop_map(|(r, c, status, by)| EventKind::ApprovalResolved { request: QuestionId(r), call: CallId(c), status, by }),
        any_tool(),
        vec(any_todo(), 0..5).prop_map(EventKind::Todo),
        (any::<u64>(), any::<String>(), any::<u64>(), any::<u64>()).prop_map(|(s, text, heard_ms, total_ms)| EventKind::Speech { speech: SpeechId(s), text, heard_ms, total_ms }),
        prop::sample::select(vec![Idle, Listening, Processing, Speaking, Error]).prop_map(EventKind::Voice),
        (any::<String>(), any::<String>()).prop_map(|(code, message)| EventKind::Notice { code, message }),
        any::<String>().prop_map(|reason| EventKind::Ended { reason }),
    ]
}

proptest! {
    #[test]
    fn every_event_survives_its_line(seq in any::<u64>(), at_ms in any::<u64>(), kind in any_kind()) {
        let event = Event { seq, at_ms, kind };
        let line = encode(&event);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(decode(&line).map_err(|e| e.to_string()), Ok(Decoded { event, folded: None }));
    }

    #[test]
    fn no_text_makes_it_panic(line in any::<String>()) { let _ = decode(&line); }

    #[test]
    fn a_lost_or_mistyped_field_is_an_error(kind in any_kind(), pick in any::<prop::sample::Index>()) {
        let line = encode(&Event { seq: 1, at_ms: 2, kind });
        let Ok(Value::Object(whole)) = serde_json::from_str::<Value>(&line) else { panic!("not an object") };
        let key = whole.keys().nth(pick.index(whole.len())).cloned().unwrap_or_default();
        let mut less = whole.clone();
        less.shift_remove(&key);
        prop_assert!(decode(&Value::Object(less).to_string()).is_err(), "without {}", key);
    }
}

#[test]
fn a_value_deeper_than_a_reader_accepts_survives() {
    let mut deep = json!(0.1);
    for n in 0..500 {
        deep = if n % 2 == 0 { json!([deep]) } else { json!({"$json": deep}) };
    }
    let kind = EventKind::ToolStart { call: "c".into(), tool: "t".into(), arguments: deep, display: String::new() };
    let event = Event { seq: 1, at_ms: 1, kind };
    assert_eq!(decode(&encode(&event)).map(|d| d.event), Ok(event));
}

#[test]
fn ledger_d14_a_wrong_payload_or_an_unknown_kind_is_a_loud_failure() {
    assert_eq!(decode(r#"{"v":1,"seq":1,"at":1,"kind":"flip"}"#), Err(RecordError::UnknownKind("flip".into())));
    assert_eq!(decode(r#"{"v":2,"seq":1,"at":1,"kind":"ended","reason":""}"#), Err(RecordError::Version("2".into())));
    let error = decode(r#"{"v":1,"seq":1,"at":1,"kind":"voice","state":"singing"}"#).map_err(|e| e.to_string());
    for (broken, part) in [
        (r#""posture":true,"ask":"ask","epoch":1"#, "posture"), (r#""posture":"plan","ask":"ask","epoch":-1"#, "epoch"), (r#""posture":"plan","ask":"ask""#, "epoch"), (r#""ask":"ask","epoch":1"#, "posture"),
    ] {
        let line = format!(r#"{{"v":1,"seq":1,"at":1,"kind":"mode",{broken},"draining":0,"restored":false,"reason":"","by":{{"surface":"chat","utterance":null,"words":""}},"approved":null}}"#);
        assert!(decode(&line).is_err_and(|e| e.to_string().contains(part)), "{broken}");
    }
    assert_eq!(error, Err("voice: field \"state\" has the unknown word \"singing\"".into()));
}

#[test]
fn ledger_d15_an_unknown_posture_is_plan_and_said_so_r12() {
    let line = |posture: &str, ask: &str| format!(
        r#"{{"v":1,"seq":1,"at":1,"kind":"mode","posture":"{posture}","ask":"{ask}","epoch":1,"draining":0,"restored":false,"reason":"","by":{{"surface":"chat","utterance":null,"words":""}},"approved":null}}"#
    );
    let read = |posture, ask| match decode(&line(posture, ask)) {
        Ok(Decoded { event: Event { kind: EventKind::Mode(mode), .. }, folded }) => (mode.posture, mode.ask, folded),
        other => panic!("{other:?}"),
    };
    assert_eq!(read("wild", "bypass"), (Posture::Plan, AskPolicy::Bypass, Some(Folded::Posture("wild".into()))));
    assert_eq!(read("default", "never"), (Posture::Default, AskPolicy::Ask, Some(Folded::Ask("never".into()))));
    assert_eq!(read("default", "bypass"), (Posture::Default, AskPolicy::Bypass, None));
}

#[test]
fn the_start_of_a_torn_line_tells_whether_it_was_a_mode() {
    let cut = |text: &str, n: usize| could_be_mode(&text[..n.min(text.len())]);
    let mode = r#"{"v":1,"seq":1,"at":1,"kind":"mode","posture":"plan""#;
    assert!((0..=mode.len()).all(|n| cut(mode, n)));
    let notice = r#"{"v":1,"seq":1,"at":1,"kind":"notice","code":"x"#;
    assert!(cut(notice, 20) && !cut(notice, 33) && !cut(notice, 200));
}
