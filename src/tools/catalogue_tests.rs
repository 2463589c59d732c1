//! The catalogue and its manifests: what loads, what fails, and what a call becomes before it is judged.

use serde_json::json;

use super::*;
use crate::engine::sentence::{best, sounds_approving};
use crate::engine::tool::Effect;

fn first_party() -> Catalogue { Catalogue::load(true, None).expect("the first-party manifests load") }

fn extra(text: &str) -> Result<Catalogue, Vec<ManifestError>> {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("extra.json"), text).expect("a file");
    Catalogue::load(true, Some(dir.path()))
}

/// A manifest of one endpoint with these further keys.
fn manifest(keys: &str) -> String {
    format!(r#"{{"skill_id":"x","endpoints":[{{"id":"y","method":"CUSTOM","description":"d",{keys}}}]}}"#)
}

fn faults(text: &str) -> String {
    extra(text).expect_err("it must not load").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn ledger_f56_first_party_effects_are_declared_and_the_old_names_lead_to_them() {
    let catalogue = first_party();
    for (name, canonical, effect) in [
        ("notes__list", "notes__list", Effect::Read), ("notes__add", "notes__add", Effect::Files), ("notes__delete", "notes__delete", Effect::Files),
        ("feral_workflows__todo_write", "todo__write", Effect::Session), ("exit_plan_mode", "plan__submit", Effect::Session),
        ("clock__now", "clock__now", Effect::Read), ("files__read", "files__read", Effect::Read),
    ] {
        let spec = catalogue.spec(name).expect(name);
        assert_eq!((spec.name.as_str(), spec.effect), (canonical, effect));
    }
    assert!(catalogue.specs().iter().all(|s| s.effect != Effect::Unknown && !s.irreversible));
    assert!(catalogue.specs().len() <= 128, "all of them fit a request of the chat protocol");
    assert!(catalogue.spec("notes").is_none() && catalogue.spec("").is_none());
}

#[test]
fn what_was_said_becomes_the_call_that_was_meant() {
    let catalogue = first_party();
    for (said, tool, slots) in [
        ("What's in my notes?", "notes__list", "{}"), ("Read me my notes, please.", "notes__list", "{}"), ("what notes do I have", "notes__list", "{}"),
        ("Add buy milk to my notes.", "notes__add", r#"{"text":"buy milk"}"#), ("Could you make a note to call Bob?", "notes__add", r#"{"text":"call Bob"}"#),
        ("Make a note that says the door is green", "notes__add", r#"{"text":"the door is green"}"#),
        ("Write down that the boiler leaks", "notes__add", r#"{"text":"the boiler leaks"}"#),
        ("Put eggs in my notes", "notes__add", r#"{"text":"eggs"}"#),
        ("Read my note about the boat", "notes__read", r#"{"title":"the boat"}"#), ("Delete the note about milk", "notes__delete", r#"{"title":"milk"}"#),
        ("Remove milk from my notes.", "notes__delete", r#"{"title":"milk"}"#),
        ("What time is it?", "clock__now", "{}"), ("Tell me the time.", "clock__now", "{}"), ("What's the date today?", "clock__today", "{}"),
        ("Present the plan.", "plan__submit", "{}"), ("Show me the plan", "plan__submit", "{}"),
        ("Put water the plants on the to-do list.", "todo__write", r#"{"text":"water the plants"}"#),
        ("Read the file groceries.txt", "files__read", r#"{"path":"groceries.txt"}"#),
    ] {
        let (sentence, found) = best(catalogue.sentences(), said).unwrap_or_else(|| panic!("nothing matches {said:?}"));
        assert_eq!((sentence.tool.as_str(), Value::Object(found.slots).to_string().as_str()), (tool, slots), "{said}");
    }
    for said in ["How are you?", "Don't add milk to my notes", "He said add milk", "Enter plan mode.", "Yes, go ahead.", "Confirm plan one", "Stop", ""] {
        assert!(best(catalogue.sentences(), said).is_none(), "{said}");
    }
}

#[test]
fn nothing_that_is_asked_sounds_like_its_answer() {
    let catalogue = first_party();
    for spec in catalogue.specs() {
        for text in ["yes go ahead", "confirm plan one", "go ahead", "milk"] {
            let keys = spec.parameters["properties"].as_object().expect("an object schema").keys();
            let arguments: Value = keys.map(|k| (k.clone(), json!(text))).collect::<serde_json::Map<_, _>>().into();
            let call = ToolCall { id: "c".into(), tool: spec.name.clone(), arguments, stamp: Default::default() };
            let described = catalogue.describe(&call);
            assert!(!sounds_approving(&described.ask), "{}", described.ask);
        }
    }
}

#[test]
fn a_call_is_told_in_words() {
    let catalogue = first_party();
    let call = |tool: &str, arguments| ToolCall { id: "c".into(), tool: tool.into(), arguments, stamp: Default::default() };
    let told = catalogue.describe(&call("notes__add", json!({"text": "buy\n milk"})));
    assert_eq!((told.ask.as_str(), told.step.as_str()), ("Add buy milk to your notes?", "Add buy milk to the notes"));
    let long = catalogue.describe(&call("notes__add", json!({"text": "x".repeat(4000)})));
    assert!(long.ask.len() < 250 && long.ask.contains("and so on"));
    assert_eq!(catalogue.describe(&call("nobody__knows", json!({}))).ask, "Run the tool nobody__knows now?");
}

#[test]
fn what_an_agent_wrote_is_checked_and_completed() {
    let catalogue = extra(&manifest(
        r#""url":"builtin:reply","effect":"read","params":[{"name":"n","type":"integer","required":true},{"name":"unit","type":"string","enum":["cm","in"],"default":"cm"}]"#,
    )).expect("it loads");
    assert_eq!(catalogue.prepare("x__y", r#"{"n": 3}"#), Ok(json!({"n": 3, "unit": "cm"})));
    assert_eq!(catalogue.prepare("x__y", r#"{"unit":"in","n":"3"}"#), Ok(json!({"n": 3, "unit": "in"})));
    for (text, field) in [("{}", "n"), (r#"{"n":"three"}"#, "n"), (r#"{"n":1.5}"#, "n"), (r#"{"n":1,"unit":"m"}"#, "unit"), (r#"{"n":1,"z":2}"#, "z"), ("{", "arguments"), ("[1]", "arguments")] {
        let outcome = catalogue.prepare("x__y", text).expect_err(text);
        assert_eq!((outcome.error_code.as_str(), outcome.output["field"].as_str()), ("invalid_arguments", Some(field)), "{text}");
    }
    assert_eq!(catalogue.prepare("notes__list", ""), Ok(json!({})));
    assert_eq!(catalogue.prepare("nobody__knows", r#"{"a":1}"#), Ok(json!({"a": 1})));
    assert!(catalogue.prepare("notes__add", &format!(r#"{{"text":"{}"}}"#, "x".repeat(70_000))).is_err());
}

#[test]
fn a_manifest_in_the_folder_works_by_voice_without_a_rebuild() {
    let catalogue = extra(r#"{"skill_id":"house","endpoints":[{"id":"wifi","method":"CUSTOM","url":"builtin:reply","description":"The guest network.",
        "effect":"read","params":[{"name":"word","type":"string","default":"marmalade"}],
        "phrases":["what's the [guest] wifi password"],"answer":"The password is {word}, all in lower case."}]}"#).expect("it loads");
    let (sentence, _) = best(catalogue.sentences(), "What's the guest wifi password?").expect("a match");
    assert_eq!(sentence.tool, "house__wifi");
    assert_eq!(catalogue.prepare("house__wifi", "{}"), Ok(json!({"word": "marmalade"})));
}

#[test]
fn ledger_f36_f37_d29_l29_effects_follow_what_is_declared_and_never_flatter() {
    let effect = |keys: &str| extra(&manifest(keys)).expect("it loads").spec("x__y").expect("x__y").effect;
    assert_eq!(effect(r#""url":"builtin:notes_list","read_only_hint":true"#), Effect::Read);
    assert_eq!(effect(r#""url":"builtin:notes_list""#), Effect::Unknown);
    assert_eq!(effect(r#""url":"builtin:notes_list","safety_tier":"safe""#), Effect::Unknown);
    assert_eq!(effect(r#""url":"builtin:notes_add","read_only_hint":false,"effect":"files""#), Effect::Files);
    assert_eq!(effect(r#""url":"builtin:notes_add","effect":"external""#), Effect::External);
    for (keys, word) in [
        (r#""url":"builtin:notes_add","read_only_hint":true,"effect":"files""#, "$.endpoints[0].read_only_hint"),
        (r#""url":"builtin:notes_delete","read_only_hint":true"#, "builtin:notes_delete is of class \"files\""),
        (r#""url":"builtin:notes_add","effect":"read""#, "write \"effect\": \"files\""),
        (r#""url":"builtin:notes_add","effect":"session""#, "$.endpoints[0].effect"),
        (r#""url":"builtin:notes_list","effect":"read","irreversible":true"#, "$.endpoints[0].irreversible"),
    ] {
        let said = faults(&manifest(keys));
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn ledger_f38_no_name_lets_a_tool_into_plan_mode() {
    // Words that a list of harmless names would hold, before and behind, over our own tools and made-up ones.
    let words = ["read", "get", "list", "search", "find", "show", "status", "view", "fetch", "query", "describe", "safe", "plan", "check", "lookup", "info"];
    let mutating: Vec<ToolSpec> = first_party().specs().iter().filter(|s| !s.effect.is_plan_safe()).cloned().collect();
    assert!(!mutating.is_empty());
    for (spec, word) in mutating.iter().flat_map(|s| words.map(|w| (s, w))) {
        for name in [format!("{word}__{}", spec.name.replace("__", "_")), format!("{}_{word}", spec.name), word.to_string()] {
            let named = ToolSpec { name: name.clone(), display: word.into(), description: format!("{word} only, changes nothing"), ..spec.clone() };
            assert!(crate::engine::tool::listed(std::slice::from_ref(&named), true, false).is_empty(), "{name} is listed");
            let gate = crate::engine::gate::Gate::new(crate::engine::mode::Stamp { epoch: 1, posture: crate::engine::mode::Posture::Plan });
            let call = ToolCall { id: "c".into(), tool: name.clone(), arguments: json!({}), stamp: gate.stamp() };
            let verdict = gate.judge(&call, Some(&named), Default::default(), None);
            assert!(matches!(verdict, crate::engine::gate::Verdict::Refuse(ref r) if r.code == "plan_mode_blocked"), "{name}: {verdict:?}");
        }
    }
    for word in words {
        let text = format!(r#"{{"skill_id":"{word}","endpoints":[{{"id":"{word}_only","method":"CUSTOM","url":"builtin:notes_list","description":"{word} only"}}]}}"#);
        assert_eq!(extra(&text).expect("it loads").spec(&format!("{word}__{word}_only")).map(|s| s.effect), Some(Effect::Unknown), "{word}");
    }
}

#[test]
fn all_mistakes_come_at_once_with_their_places() {
    let said = faults(r#"{"skill_id":"Bad__name","permissions":["root"],"crons":[{"at":"noon"}],"colour":"red","endpoints":[
        {"id":"a","method":"GET","url":"http://x","description":"d","effect":"harmless","safety_tier":"mild","timeout_seconds":0,"spice":1},
        {"id":"b","method":"CUSTOM","url":"builtin:nothing","description":"","params":[{"name":"n","type":"integer","default":"x"},{"name":"n","type":"text"}]},
        {"id":"c","method":"CUSTOM","url":"builtin:reply","description":"d","params":[{"name":"t","type":"string","required":true}],
         "ask":"{t}","step":"Yes, go ahead","phrases":["say {u} aloud","{t}","say it now","open [the"],"answer":{"tekst":"x"}}]}"#);
    for word in [
        "$.skill_id", "$.permissions[0]", "$.crons", "$.colour", "$.endpoints[0].method", "$.endpoints[0].effect", "$.endpoints[0].safety_tier",
        "$.endpoints[0].timeout_seconds", "$.endpoints[0].spice", "$.endpoints[1].url", "$.endpoints[1].description", "$.endpoints[1].params[0].default",
        "$.endpoints[1].params[1].type", "$.endpoints[2].ask", "$.endpoints[2].step", "$.endpoints[2].phrases[0]", "$.endpoints[2].phrases[1]",
        "$.endpoints[2].phrases[2]", "$.endpoints[2].phrases[3]", "$.endpoints[2].answer.tekst",
    ] {
        assert!(said.contains(&format!("{word}:")), "{word} is missing in\n{said}");
    }
    assert!(faults("{").contains("line 1"));
    assert!(faults("[]").contains("$: this is no object"));
}

#[test]
fn a_name_that_is_taken_fails_the_load() {
    let twice = r#"{"skill_id":"notes","endpoints":[{"id":"add","method":"CUSTOM","url":"builtin:notes_add","description":"d","effect":"files"}]}"#;
    assert!(faults(twice).contains("the name notes__add is taken by tools/notes.json"));
    assert!(faults(&manifest(r#""url":"builtin:reply","aliases":["exit_plan_mode"]"#)).contains("taken by tools/plan.json"));
    assert!(Catalogue::load(false, None).expect("nothing to load").specs().is_empty());
}

#[test]
fn plan_mode_offers_what_may_run_and_the_tool_that_presents() {
    let names = |plan| first_party().offered(plan).into_iter().map(|s| s.name).collect::<Vec<_>>();
    assert_eq!(names(true), ["notes__list", "notes__read", "todo__write", "plan__submit", "clock__now", "clock__today", "files__read"]);
    assert_eq!(names(false), ["notes__list", "notes__read", "notes__add", "notes__delete", "todo__write", "clock__now", "clock__today", "files__read"]);
    let marked = extra(&manifest(r#""url":"builtin:notes_list","effect":"read","requires_user_approval":true"#)).expect("it loads");
    assert!(marked.offered(true).iter().all(|s| s.name != "x__y") && marked.offered(false).iter().any(|s| s.name == "x__y"));
}
