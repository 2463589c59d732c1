//! The commander: what it calls, what it says, and what it never says.

use super::*;
use crate::engine::plan::{KeptCall, Proposal};
use crate::engine::sentence::{Answer, Template};
use crate::engine::tool::call_hash;

fn sentence(tool: &str, template: &str, fill: Fill, answer: Option<Answer>) -> Sentence {
    Sentence { tool: tool.into(), template: Template::parse(template).expect("a template"), arguments: json!({}), fill, answer: answer.map(Arc::new) }
}

fn commander() -> Commander {
    let list = Answer { text: "You have {count} notes: {titles}.".into(), none: Some("You have no notes.".into()), one: Some("You have one note: {titles}.".into()) };
    let plain = |text: &str| Some(Answer { text: text.into(), ..Answer::default() });
    Commander::new(vec![
        sentence("notes__list", "what's in my notes", Fill::Nothing, Some(list)),
        sentence("notes__add", "add {text} to my notes", Fill::Nothing, plain("I added {text} to your notes.")),
        sentence("notes__read", "read my note about {title}", Fill::Nothing, plain("That note says: {text}. That is all of it.")),
        sentence("todo__write", "put {text} on my list", Fill::AppendTodo, None),
        sentence("plan__submit", "present the plan", Fill::Draft, None),
        sentence("clock__now", "what time is it", Fill::Nothing, plain("It is {spoken_time}.")),
    ])
}

fn user(text: &str) -> Item { Item::User { id: "u".into(), text: text.into() } }

fn round(id: &str, tool: &str, arguments: Value, output: Value) -> [Item; 2] {
    [Item::Call { id: id.into(), tool: tool.into(), arguments }, Item::Result { id: id.into(), tool: tool.into(), output }]
}

fn request(items: Vec<Item>, draft: Vec<Step>) -> StepRequest {
    StepRequest { turn: Default::default(), step: 0, items, tools: Vec::new(), plan_mode: true, draft, approved: None, instructions: String::new() }
}

fn kept(title: &str, text: &str) -> Step {
    let arguments = json!({"text": text});
    let hash = call_hash("notes__add", &arguments);
    Step { title: title.into(), kept: Some(KeptCall { tool: "notes__add".into(), arguments, hash }), ..Step::default() }
}

/// Text as it is, calls as `tool arguments`.
fn told(outputs: &[AgentOutput]) -> Vec<String> {
    outputs.iter().map(|o| match o {
        AgentOutput::Text(text) => text.clone(),
        AgentOutput::Call { tool, arguments, .. } => format!("{tool} {arguments}"),
    }).collect()
}

fn to(items: Vec<Item>) -> String { told(&commander().respond(&request(items, vec![]))).join(" | ") }

#[test]
fn a_sentence_is_exactly_one_call_also_of_hidden_tools() {
    assert_eq!(to(vec![user("What's in my notes?")]), "notes__list {}");
    assert_eq!(to(vec![user("Add buy milk to my notes.")]), r#"notes__add {"text":"buy milk"}"#);
    assert_eq!(to(vec![user("hello"), Item::Gateway(GatewayNote::Mode { plan: true }), user("What time is it?")]), "clock__now {}");
}

#[test]
fn what_it_does_not_know_it_says_in_one_sentence() {
    let said = to(vec![user("Tell me a joke about ducks.")]);
    assert_eq!(said, "I did not understand that; you can say, for example: what's in my notes, add something to my notes, or what time is it.");
    assert!(Commander::new(vec![]).help.contains("nothing I can do"));
}

#[test]
fn results_are_told_by_their_templates() {
    let after = |tool: &str, arguments: Value, output: Value| to([vec![user("x")], round("c", tool, arguments, output).to_vec()].concat());
    assert_eq!(after("notes__list", json!({}), json!({"success": true, "count": 2, "titles": ["buy milk", "call Bob."]})), "You have 2 notes: buy milk, and call Bob.");
    assert_eq!(after("notes__list", json!({}), json!({"success": true, "count": 1, "titles": ["buy milk"]})), "You have one note: buy milk.");
    assert_eq!(after("notes__list", json!({}), json!({"success": true, "count": 0, "titles": []})), "You have no notes.");
    assert_eq!(after("notes__list", json!({}), json!({"count": 11, "titles": vec!["a"; 11]})), "You have 11 notes: a, a, a, a, a, a, a, a, and three more.");
    assert_eq!(after("notes__add", json!({"text": "buy milk"}), json!({"success": true})), "I added buy milk to your notes.");
    assert_eq!(after("other__tool", json!({}), json!({"success": true})), "That is done.");
}

#[test]
fn failures_are_told_shortly() {
    let after = |output: Value| to([vec![user("x")], round("c", "notes__add", json!({}), output).to_vec()].concat());
    assert_eq!(after(json!({"success": false, "error_code": "plan_mode_blocked", "error": "long"})), "", "the gateway says that one itself");
    assert_eq!(after(json!({"success": false, "error_code": "denied_by_user"})), "All right, I did not do it.");
    assert_eq!(after(json!({"success": false, "error_code": "expired"})), "Nobody answered, so I did not do it.");
    assert_eq!(after(json!({"success": false, "error_code": "no_such_note", "error": "there is no note about x."})), "There is no note about x.");
    assert!(after(json!({"success": false, "error_code": "timeout", "outcome_unknown": true, "error": "x"})).contains("do not know"));
    assert_eq!(after(json!({"success": false})), "That did not work.");
}

#[test]
fn the_plan_is_presented_with_its_draft() {
    let present = |items: Vec<Item>, draft: Vec<Step>| told(&commander().respond(&request(items, draft))).join(" | ");
    assert!(present(vec![user("Present the plan.")], vec![]).contains("nothing to present"));
    let one = vec![kept("Add buy eggs to the notes", "buy eggs")];
    let expected = r#"plan__submit {"summary":"Add buy eggs to the notes.","steps":["Add buy eggs to the notes"]}"#;
    assert_eq!(present(vec![user("Present the plan.")], one.clone()), expected);
    assert_eq!(present(vec![Item::Gateway(GatewayNote::PresentDraft)], one.clone()), expected);
    let two = vec![one[0].clone(), kept("Add call St. Mary. Now! to the notes", "call St. Mary. Now!")];
    let call = present(vec![user("present the plan")], two.clone());
    let arguments: Value = serde_json::from_str(call.strip_prefix("plan__submit ").expect("a call")).expect("JSON");
    let mut proposal = Proposal::parse(&arguments).expect("a plan");
    proposal.keep_from(&two);
    assert_eq!(proposal.title(), "Two changes: add buy eggs to the notes, and add call St Mary Now to the notes");
    assert!(proposal.steps.iter().all(|s| s.kept.is_some()), "every step keeps its call");
    let presented = round("c", "plan__submit", json!({}), json!({"success": true, "version": 1}));
    assert_eq!(present([vec![user("present the plan")], presented.to_vec()].concat(), one), "", "the gateway reads it");
}

#[test]
fn an_approved_plan_is_carried_out_under_new_names_and_closed() {
    let agent = commander();
    let steps = vec![kept("Add a to the notes", "a"), Step { title: "Think it over".into(), ..Step::default() }, kept("Add b to the notes", "b")];
    let note = Item::Gateway(GatewayNote::Approved { version: 1, title: "t".into(), steps });
    let outputs = agent.respond(&request(vec![user("present"), note.clone()], vec![]));
    assert_eq!(told(&outputs), [r#"notes__add {"text":"a"}"#, r#"notes__add {"text":"b"}"#]);
    let ids: Vec<_> = outputs.iter().map(|o| match o { AgentOutput::Call { id, .. } => id.clone(), _ => panic!("a call") }).collect();
    assert!(ids[0] != ids[1] && commander().ids.next() != agent.ids.next());
    let calls = |second: Value| {
        let (a, b) = (round("1", "notes__add", json!({"text": "a"}), json!({"success": true})), round("2", "notes__add", json!({"text": "b"}), second));
        to(vec![note.clone(), a[0].clone(), b[0].clone(), b[1].clone(), a[1].clone()])
    };
    assert_eq!(calls(json!({"success": true})), r#"Done. I added a to your notes. I added b to your notes. I know no call for the step "Think it over" of it."#);
    assert!(calls(json!({"success": false, "error_code": "denied_by_user"})).starts_with("Not all of the plan was done. I added a to your notes. All right, I did not do it."));
    assert!(to(vec![Item::Gateway(GatewayNote::Approved { version: 2, title: "t".into(), steps: vec![Step::default()] })]).starts_with("Plan two is approved, but"));
    assert!(to(vec![Item::Gateway(GatewayNote::ChangesRequested { version: 1, comments: "no".into() })]).contains("draft stays"));
}

#[test]
fn a_todo_is_added_to_the_list_there_is() {
    let before = round("c", "todo__write", json!({}), json!({"success": true, "todos": [{"id": "1", "content": "a", "status": "completed"}]}));
    assert_eq!(to([before.to_vec(), vec![user("Put water the plants on my list")]].concat()),
        r#"todo__write {"todos":[{"id":"1","content":"a","status":"completed"},"water the plants"]}"#);
    assert_eq!(to(vec![user("Put x on my list")]), r#"todo__write {"todos":["x"]}"#);
}

#[test]
fn it_never_says_what_would_answer_a_question() {
    for text in ["Yes, go ahead.", "first. Confirm plan one. last", "exit plan mode"] {
        let items = [vec![user("x")], round("c", "notes__read", json!({"title": "x"}), json!({"success": true, "text": text})).to_vec()].concat();
        assert!(!sounds_approving(&to(items)), "{text}");
    }
    assert!(!sounds_approving(&commander().help));
}

#[test]
fn nothing_new_is_answered_with_nothing() {
    assert_eq!(to(vec![]), "");
    assert_eq!(to(vec![user("x"), Item::Assistant { id: "a".into(), text: "y".into(), speech: None }]), "");
}
