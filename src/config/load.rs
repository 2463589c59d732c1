//! Walks the sources in their order, sets what is right and collects what is wrong.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Key};
use super::mistakes::{ConfigErrors, Mistake, Place};
use super::nearest::nearest;
use super::tree::{Config, OPENAI_URL};
use super::value::Given;
use super::{Flag, variable};
use crate::engine::mode::Mode;
use crate::secret::Secret;

/// Variables of this program that are no settings.
const OTHER_VARIABLES: [&str; 4] = ["VOXGATE_HOME", "VOXGATE_MODELS", "VOXGATE_LOG", PLAN_DEFAULT];
/// Begins every conversation in plan mode (1, true, yes, on) or not (0, false, no, off), whatever the file says.
const PLAN_DEFAULT: &str = "VOXGATE_PLAN_MODE_DEFAULT";
const PREFIX: &str = "VOXGATE_";

#[derive(Default)]
struct Loader {
    config: Config,
    mistakes: Vec<Mistake>,
    /// Keys that were set, and where last.
    set: HashMap<&'static str, Place>,
}

/// Reads all sources. `file` is its name and its text.
pub(super) fn load(file: Option<(&str, &str)>, variables: &[(String, String)], flags: &[Flag]) -> Result<Config, ConfigErrors> {
    let mut loader = Loader::default();
    let general = |name: &str| variable(variables, name).filter(|v| !v.is_empty());
    let general_url = general("OPENAI_BASE_URL");
    if let Some(url) = &general_url {
        loader.put("agent.base_url", &Given::Loose(url.clone()), Place::Variable("OPENAI_BASE_URL".into()));
    }
    if let Some((name, text)) = file {
        loader.file(name, text);
    }
    loader.variables(variables);
    loader.plan_default(general(PLAN_DEFAULT));
    for flag in flags {
        loader.put(flag.key, &Given::Loose(flag.value.clone()), Place::Flag(flag.name.into()));
    }
    loader.general_key(general("OPENAI_API_KEY"), general_url.as_deref());
    for (kind, name, _) in keys::PROVIDERS {
        if let Some(key) = general(name) { loader.config.realtime.keys.push((kind.to_string(), Secret::new(key))) }
    }
    loader.together();
    if loader.mistakes.is_empty() { Ok(loader.config) } else { Err(ConfigErrors(loader.mistakes)) }
}

impl Loader {
    fn wrong(&mut self, place: Place, key: &str, problem: impl Into<String>, meant: Option<String>) {
        self.mistakes.push(Mistake { place, key: key.to_string(), problem: problem.into(), meant });
    }

    fn put(&mut self, path: &str, given: &Given, place: Place) {
        match keys::find(path) {
            Some(key) => self.put_key(key, given, place),
            None => self.wrong(place, path, "is no known key", meant_key(path)),
        }
    }

    fn put_key(&mut self, key: &'static Key, given: &Given, place: Place) {
        match (key.set)(&mut self.config, given) {
            Ok(()) => drop(self.set.insert(key.path, place)),
            Err(problem) => self.wrong(place, key.path, problem, None),
        }
    }

    fn file(&mut self, name: &str, text: &str) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let line = |at: usize| Place::Line(name.to_string(), line_of(text, at));
        for error in errors {
            self.wrong(line(error.span().map_or(0, |s| s.start)), "", error.message(), None);
        }
        let mut sections: Vec<_> = table.get_ref().iter().collect();
        sections.sort_by_key(|(key, _)| key.span().start);
        for (section, value) in sections {
            let (name, place) = (section.get_ref().as_ref(), line(section.span().start));
            match value.get_ref() {
                DeValue::Table(inner) if keys::sections().contains(&name) => self.section(name, inner, &line),
                DeValue::Table(_) => {
                    let meant = nearest(name, keys::sections()).map(|s| format!("[{s}]"));
                    self.wrong(place, &format!("[{name}]"), "is no known section", meant);
                }
                _ if keys::sections().contains(&name) => self.wrong(place, name, format!("is a section: write [{name}] on a line of its own"), None),
                _ => self.wrong(place, name, "stands outside of any section", meant_key(name)),
            }
        }
    }

    fn section(&mut self, section: &str, inner: &DeTable<'_>, line: &impl Fn(usize) -> Place) {
        let mut entries: Vec<(&Spanned<_>, _)> = inner.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            self.put(&format!("{section}.{}", key.get_ref()), &given(value.get_ref()), line(key.span().start));
        }
    }

    fn variables(&mut self, variables: &[(String, String)]) {
        let mut ours: Vec<&(String, String)> = variables.iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        ours.sort();
        for (name, value) in ours {
            let place = Place::Variable(name.clone());
            match name[PREFIX.len()..].split_once("__") {
                Some((section, key)) => self.put(&format!("{section}.{key}").to_ascii_lowercase(), &Given::Loose(value.clone()), place),
                None if OTHER_VARIABLES.contains(&name.as_str()) => {}
                // Not ours for certain, but a slip in one that is would go unseen.
                None => {
                    if let Some(meant) = nearest_variable(name) {
                        self.wrong(place, "", "is no known variable", Some(meant));
                    }
                }
            }
        }
    }

    /// The one switch that clients of other gateways know. It wins over the file; off takes back plan mode alone.
    fn plan_default(&mut self, value: Option<String>) {
        let Some(value) = value else { return };
        let place = || Place::Variable(PLAN_DEFAULT.into());
        match value.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => self.put("plan.start", &Given::Loose("plan".into()), place()),
            "0" | "false" | "no" | "off" if self.config.plan.start == Mode::Plan => self.put("plan.start", &Given::Loose("default".into()), place()),
            "0" | "false" | "no" | "off" => {}
            _ => self.wrong(place(), "", "must be 1, true, yes or on, or 0, false, no or off", None),
        }
    }

    /// The general key goes only to OpenAI itself or where its own variable points, never to another host that is configured.
    fn general_key(&mut self, key: Option<String>, general_url: Option<&str>) {
        let agent = &mut self.config.agent;
        let Some(key) = key.filter(|_| agent.api_key.is_none()) else { return };
        let by_variable = general_url.is_some_and(|url| url.trim_end_matches('/') == agent.url());
        if by_variable || host(agent.url()) == host(OPENAI_URL) {
            agent.api_key = Some(Secret::new(key));
        }
    }

    fn together(&mut self) {
        if self.config.agent.kind == "openai" && self.config.agent.model.is_empty() {
            let place = self.set.get("agent.kind").cloned().unwrap_or(Place::Together);
            self.wrong(place, "agent.model", "is missing: agent.kind \"openai\" needs the name of a model", None);
        }
        let server = &self.config.server;
        let half = match (&server.tls_certificate, &server.tls_key) {
            (Some(_), None) => Some(("server.tls_key", "is missing: server.tls_certificate needs the file with its key")),
            (None, Some(_)) => Some(("server.tls_certificate", "is missing: server.tls_key needs the file with its certificate; without both the gateway makes its own")),
            _ => None,
        };
        if let Some((key, problem)) = half {
            let place = self.set.get("server.tls_certificate").or(self.set.get("server.tls_key")).cloned().unwrap_or(Place::Together);
            self.wrong(place, key, problem, None);
        }
        let listen = &self.config.listen;
        if listen.answer_silence_ms > listen.consent_silence_ms {
            let problem = format!("({}) must not be longer than listen.consent_silence_ms ({})", listen.answer_silence_ms, listen.consent_silence_ms);
            let place = self.set.get("listen.answer_silence_ms").or(self.set.get("listen.consent_silence_ms")).cloned().unwrap_or(Place::Together);
            self.wrong(place, "listen.answer_silence_ms", problem, None);
        }
    }
}

/// The whole authority, scheme included: a key for https must not travel over http.
fn host(url: &str) -> String {
    let end = url.find("://").and_then(|at| url[at + 3..].find('/').map(|n| at + 3 + n)).unwrap_or(url.len());
    url[..end].to_ascii_lowercase()
}

/// A key that was probably meant: one that is spelt almost like it, or the same name in another section.
fn meant_key(path: &str) -> Option<String> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let same_name = || keys::KEYS.iter().map(|k| k.path).find(|p| p.rsplit('.').next() == Some(last));
    nearest(path, keys::KEYS.iter().map(|k| k.path)).or_else(same_name).map(str::to_string)
}

fn nearest_variable(name: &str) -> Option<String> {
    let settings: Vec<String> = keys::KEYS.iter().map(|k| format!("{PREFIX}{}", k.path.replace('.', "__").to_ascii_uppercase())).collect();
    let single = name[PREFIX.len()..].replace('_', "").to_ascii_lowercase();
    let slip = settings.iter().find(|s| s[PREFIX.len()..].replace('_', "").to_ascii_lowercase() == single);
    let other = OTHER_VARIABLES.iter().find(|o| nearest(&name[PREFIX.len()..], [o[PREFIX.len()..].to_ascii_lowercase().as_str()]).is_some());
    slip.cloned().or_else(|| other.map(|o| o.to_string()))
}

fn given(value: &DeValue<'_>) -> Given {
    match value {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(number) => Given::Whole(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Given::Decimal(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Given::Truth(*truth),
        DeValue::Array(items) => Given::List(items.iter().map(|item| given(item.get_ref())).collect()),
        DeValue::Datetime(_) => Given::Other("date"),
        DeValue::Table(_) => Given::Other("table"),
    }
}

fn line_of(text: &str, at: usize) -> usize { text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1 }
