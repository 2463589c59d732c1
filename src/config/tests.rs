//! Everything that is wrong at once, each with its place; the example is the table.

use super::*;
use crate::engine::mode::{Autonomy, Mode};

fn vars(list: &[(&str, &str)]) -> Vec<(String, String)> { list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect() }

fn told(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    match Config::from_text("config.toml", text, &vars(variables), &[]) {
        Ok(_) => vec![],
        Err(errors) => errors.0.iter().map(Mistake::to_string).collect(),
    }
}

#[test]
fn the_example_is_the_table_and_the_defaults() {
    let file = include_str!("../../config.example.toml");
    assert_eq!(file, example(), "config.example.toml is not what the table of keys says; write the text below into it");
    assert_eq!(Config::from_text("config.example.toml", file, &[], &[]), Ok(Config::default()));
    for (path, value) in Config::default().shown() {
        let name = path.split('.').next_back().unwrap_or(path);
        assert!(file.contains(&format!("\n{name} = {value}\n")), "{path}");
    }
}

#[test]
fn ledger_d57_every_mistake_is_told_at_once_with_its_line_and_unknown_keys_fail() {
    let text = "[server]\nport = 70000\nadress = \"::1\"\n\n[lisen]\nsilence_ms = 5\n\n[agent]\nkind = \"openai\"\nport = 1\n[stt]\nworkers = \"two\"\nlanguage = \"English\"\n";
    assert_eq!(told(text, &[("VOXGATE_TTS__SPEED", "fast"), ("VOXGATE_PLAN__STRAT", "plan"), ("VOXGATE_HOEM", "/x")]), [
        "config.toml:2: server.port must be a whole number from 0 to 65535, not 70000",
        "config.toml:3: server.adress is no known key; did you mean server.address?",
        "config.toml:5: [lisen] is no known section; did you mean [listen]?",
        "config.toml:10: agent.port is no known key; did you mean server.port?",
        "config.toml:12: stt.workers must be a whole number from 1 to 16, not \"two\"",
        "config.toml:13: stt.language must be two lower-case letters, not \"English\"",
        "VOXGATE_HOEM: is no known variable; did you mean VOXGATE_HOME?",
        "VOXGATE_PLAN__STRAT: plan.strat is no known key; did you mean plan.start?",
        "VOXGATE_TTS__SPEED: tts.speed must be a number from 0.5 to 2, not \"fast\"",
        "config.toml:9: agent.model is missing: agent.kind \"openai\" needs the name of a model",
    ]);
}

#[test]
fn broken_toml_is_told_with_its_line_and_the_rest_is_still_read() {
    let told = told("[server\nport = 1\n[tts]\nspeed = = 2\nkind = \"organ\"\n", &[]);
    assert!(told.iter().any(|t| t.starts_with("config.toml:1: ")), "{told:?}");
    assert!(told.iter().any(|t| t.starts_with("config.toml:4: ")), "{told:?}");
    assert!(told.iter().any(|t| t.contains("tts.kind must be one of hibari, flite, espeak, tone, not \"organ\"")), "{told:?}");
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    assert_eq!(told("port = 5\nserver = 6\n", &[]), [
        "config.toml:1: port stands outside of any section; did you mean server.port?",
        "config.toml:2: server is a section: write [server] on a line of its own",
    ]);
    assert_eq!(told("[server]\nallowed_origins = [\"https://a.org/x\"]\naddress = \"example.org\"\n[agent]\nbase_url = \"https://me:pw@host/v1\"\napi_key = 12345\n", &[]), [
        "config.toml:2: server.allowed_origins every entry must be an origin like \"https://example.org\", not \"https://a.org/x\"",
        "config.toml:3: server.address must be an IP address or localhost, not \"example.org\"",
        "config.toml:5: agent.base_url must not hold a user name or password; put the key into api_key",
        "config.toml:6: agent.api_key must be text in quotes, not a number",
    ]);
    assert_eq!(told("[listen]\nthreshold = nan\nanswer_silence_ms = 900\n", &[]).len(), 2);
}

#[test]
fn later_sources_win() -> Result<(), ConfigErrors> {
    let text = "[server]\nport = 1\n[autonomy]\nlevel = \"strict\"\n[listen]\nsilence_ms = 700\n";
    let variables = vars(&[("VOXGATE_SERVER__PORT", "2"), ("VOXGATE_SERVER__ALLOWED_HOSTS", "a.org, b.org"), ("PATH", "/bin"), ("VOXGATE_HOME", "/x")]);
    let flags = [Flag { name: "--port", key: "server.port", value: "3".into() }];
    let config = Config::from_text("c", text, &variables, &flags)?;
    assert_eq!((config.server.port, config.listen.silence_ms, config.autonomy.level), (3, 700, Autonomy::Strict));
    assert_eq!(config.server.allowed_hosts, ["a.org", "b.org"]);
    let wrong = Config::from_text("c", text, &variables, &[Flag { name: "--port", key: "server.port", value: "x".into() }]);
    assert!(wrong.is_err_and(|e| e.to_string().contains("--port: server.port must be a whole number")));
    Ok(())
}

#[test]
fn the_general_key_reaches_openai_only() -> Result<(), ConfigErrors> {
    let key = |text: &str, variables: &[(&str, &str)]| {
        let mut all = vec![("OPENAI_API_KEY", "sk-canary")];
        all.extend(variables);
        Config::from_text("c", text, &vars(&all), &[]).map(|c| c.agent.api_key.map(|k| k.expose().to_string()))
    };
    assert_eq!(key("", &[])?.as_deref(), Some("sk-canary"));
    assert_eq!(key("", &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")])?.as_deref(), Some("sk-canary"));
    assert_eq!(key("[agent]\nbase_url = \"https://api.openai.com/v2\"\n", &[])?.as_deref(), Some("sk-canary"));
    for other in ["http://127.0.0.1:9/v1", "https://api.openai.com.evil.example/v1", "http://api.openai.com/v1"] {
        assert_eq!(key(&format!("[agent]\nbase_url = \"{other}\"\n"), &[])?, None, "{other}");
    }
    assert_eq!(key("[agent]\napi_key = \"own\"\n", &[])?.as_deref(), Some("own"));
    let example = example();
    assert_eq!(key(&example, &[])?.as_deref(), Some("sk-canary"), "a copied example changes nothing");
    assert_eq!(key(&example, &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")])?.as_deref(), Some("sk-canary"));
    Ok(())
}

#[test]
fn a_key_is_never_shown() -> Result<(), ConfigErrors> {
    let config = Config::from_text("c", "[agent]\napi_key = \"canary\"\n", &[], &[])?;
    assert!(!format!("{config:?}{:?}", config.shown()).contains("canary"));
    let error = Config::from_text("c", "[agent]\napi_key = [\"canary\"]\nkind = 5\n", &[], &[]).map_err(|e| e.to_string());
    assert!(error.is_err_and(|e| e.contains("agent.api_key") && !e.contains("canary")));
    Ok(())
}

#[test]
fn a_file_may_be_absent_only_when_nobody_named_it() {
    let nowhere = Path::new("/nonexistent/config.toml");
    assert_eq!(Config::load(nowhere, true, &[], &[]), Ok(Config::default()));
    assert!(Config::load(nowhere, false, &[], &[]).is_err_and(|e| e.to_string().contains("/nonexistent/config.toml: ")));
}

#[test]
fn weights_lie_in_the_cache_unless_a_variable_says_otherwise() {
    assert_eq!(models_dir(&vars(&[("VOXGATE_MODELS", "/m"), ("HOME", "/h")])), Some("/m".into()));
    assert_eq!(models_dir(&vars(&[("HOME", "/h"), ("XDG_CACHE_HOME", "rel")])), Some("/h/.cache/voxgate/models".into()));
    assert_eq!(models_dir(&[]), None);
}

#[test]
fn ledger_f22_f23_plan_mode_is_off_by_default_a_key_and_a_variable_turn_it_on_and_the_variable_wins() {
    let start = |text: &str, variables: &[(&str, &str)]| Config::from_text("c", text, &vars(variables), &[]).map(|c| c.plan.start).map_err(|e| e.to_string());
    assert_eq!(start("", &[]), Ok(Mode::Default));
    assert_eq!(start("[plan]\nstart = \"plan\"\n", &[]), Ok(Mode::Plan));
    for (word, mode) in [("1", Mode::Plan), ("true", Mode::Plan), ("yes", Mode::Plan), ("on", Mode::Plan), ("0", Mode::Default), ("off", Mode::Default)] {
        for text in ["", "[plan]\nstart = \"plan\"\n"] {
            assert_eq!(start(text, &[("VOXGATE_PLAN_MODE_DEFAULT", word)]), Ok(mode), "{word} over {text:?}");
        }
    }
    assert!(start("", &[("VOXGATE_PLAN_MODE_DEFAULT", "perhaps")]).is_err());
}
