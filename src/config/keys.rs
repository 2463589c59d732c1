//! The table of keys: a new one is a row here and a field in the tree. The example file is made from it.

use std::net::IpAddr;

use super::tree::{Config, LooseModes, ModelRow, Persist, VoiceExit};
use super::value::{Given, decimal, some_text, text, texts, truth, whole, word};
use crate::engine::mode::{Autonomy, Mode, Telling, start_word};
use crate::engine::rules::Rules;
use crate::secret::Secret;

/// One key.
pub(super) struct Key {
    /// `section.key`.
    pub path: &'static str,
    /// Unit and meaning, for the example; further lines follow a line end.
    pub about: &'static str,
    /// Checks a value and puts it in.
    pub set: fn(&mut Config, &Given) -> Result<(), String>,
    /// The value as TOML.
    pub show: fn(&Config) -> String,
}

const AUTONOMY: [(&str, Autonomy); 3] = [("strict", Autonomy::Strict), ("hybrid", Autonomy::Hybrid), ("loose", Autonomy::Loose)];
const LOOSE: [(&str, LooseModes); 2] = [("allow", LooseModes::Allow), ("disable", LooseModes::Disable)];
const TELLING: [(&str, Telling); 3] = [("speech", Telling::Speech), ("earcon", Telling::Earcon), ("silent", Telling::Silent)];
const PERSIST: [(&str, Persist); 2] = [("log", Persist::Log), ("memory", Persist::Memory)];
const EXIT: [(&str, VoiceExit); 2] = [("confirm", VoiceExit::Confirm), ("off", VoiceExit::Off)];
const VAD: [(&str, &str); 2] = [("confirmed", "confirmed"), ("earshot", "earshot")];
const STT: [(&str, &str); 2] = [("whisper", "whisper"), ("scripted", "scripted")];
const TTS: [(&str, &str); 4] = [("hibari", "hibari"), ("flite", "flite"), ("espeak", "espeak"), ("tone", "tone")];
/// Kinds of providers, the variable that holds the key of each, and whether its address has to be named.
pub(super) const PROVIDERS: [(&str, &str, bool); 5] =
    [("openai", "OPENAI_API_KEY", false), ("azure", "AZURE_OPENAI_API_KEY", true), ("xai", "XAI_API_KEY", false), ("gemini", "GEMINI_API_KEY", false), ("vertex", "GOOGLE_ACCESS_TOKEN", true)];
const AGENT: [(&str, &str); 2] = [("commander", "commander"), ("openai", "openai")];

/// `key(path, about, reader => field, show)` in one row.
macro_rules! row {
    ($path:literal, $about:literal, $($field:ident).+ = $read:expr, $show:expr) => {
        Key {
            path: $path,
            about: $about,
            set: |config, given| { config.$($field).+ = $read(given)?; Ok(()) },
            show: |config| { #[allow(clippy::redundant_closure_call)] ($show)(&config.$($field).+) },
        }
    };
}

/// All keys, in the order of the example.
pub(super) const KEYS: &[Key] = &[
    row!("server.address", "IP address to listen on, or \"localhost\". Anything but this machine itself is reachable by others.", server.address = address, quoted),
    row!("server.port", "TCP port, 0 to 65535; 0 picks a free one.", server.port = |g| whole(g, 0..=65_535_i64).map(|n| n as u16), plain),
    row!("server.allowed_hosts", "Host names (with port, if it is not the one above) accepted beside the address itself.", server.allowed_hosts = texts, list),
    row!("server.allowed_origins", "Origins of pages that may use this gateway beside its own, as \"https://example.org\".", server.allowed_origins = origins, list),
    row!("server.tls", "true: a second port speaks TLS (https, wss), which a microphone in a browser on another machine needs, and some SDKs.", server.tls = truth, plain),
    row!("server.tls_address", "IP address of that port, or \"localhost\"; \"0.0.0.0\" lets other machines in.", server.tls_address = address, quoted),
    row!("server.tls_port", "Its TCP port, 0 to 65535; 0 picks a free one.", server.tls_port = |g| whole(g, 0..=65_535_i64).map(|n| n as u16), plain),
    row!("server.tls_certificate", "File with your certificate and those above it (PEM). Empty: the gateway makes one and signs it itself.",
        server.tls_certificate = |g| text(g).map(|t| (!t.is_empty()).then(|| t.into())), folder),
    row!("server.tls_key", "File with the certificate's private key (PEM).", server.tls_key = |g| text(g).map(|t| (!t.is_empty()).then(|| t.into())), folder),
    row!("server.tls_names", "Names and IP addresses by which others know this machine, without ports; the first stands in links. The gateway's own certificate is\nfor these, localhost, the machine's host name and its address in the network.", server.tls_names = tls_names, list),
    row!("audio.input", "Microphone: \"default\", \"none\", the name of a device (see `voxgate devices`), or a WAV file.", audio.input = some_text, quoted),
    row!("audio.output", "Speaker: \"default\", \"none\", the name of a device, or a WAV file.", audio.output = some_text, quoted),
    row!("listen.vad", "What is speech: \"confirmed\" (a small network has the last word; needs the model silero), or \"earshot\" (lighter, easily\ntaken in by music and deaf in noise).", listen.vad = |g| kind(g, &VAD), quoted),
    row!("listen.threshold", "Voice probability that counts as speech, 0.05 to 0.95.", listen.threshold = |g| decimal(g, 0.05..=0.95), number),
    row!("listen.silence_ms", "Silence that ends a turn, 100 to 5000 milliseconds.", listen.silence_ms = |g| whole(g, 100..=5_000_u32), plain),
    row!("listen.answer_silence_ms", "Silence that ends a \"no\" or a \"stop\" while a question is open, 100 to 5000 milliseconds.",
        listen.answer_silence_ms = |g| whole(g, 100..=5_000_u32), plain),
    row!("listen.consent_silence_ms", "Silence that a consent or an approval waits for, 300 to 5000 milliseconds.",
        listen.consent_silence_ms = |g| whole(g, 300..=5_000_u32), plain),
    row!("listen.command_silence_ms", "Silence that ends a complete command that loosens nothing (\"enter plan mode\"), 100 to 5000 milliseconds.",
        listen.command_silence_ms = |g| whole(g, 100..=5_000_u32), plain),
    row!("listen.complete_silence_ms", "Silence that ends speech which sounds complete, where a judge of turns is there to say so, 100 to 5000 milliseconds.",
        listen.complete_silence_ms = |g| whole(g, 100..=5_000_u32), plain),
    row!("listen.unfinished_silence_ms", "Silence that ends what is plainly unfinished (\"add milk and\"), 100 to 5000 milliseconds.",
        listen.unfinished_silence_ms = |g| whole(g, 100..=5_000_u32), plain),
    row!("listen.look_ms", "Silence after which recognition begins, 60 to 1000 milliseconds; speech that goes on makes it void. Longer costs time,\nshorter costs recognitions.",
        listen.look_ms = |g| whole(g, 60..=1_000_u32), plain),
    row!("listen.duck_ms", "Voice over playback that makes it hold its breath until words say whether it goes on, 60 to 1000 milliseconds.",
        listen.duck_ms = |g| whole(g, 60..=1_000_u32), plain),
    row!("listen.barge_in_ms", "Voice that stops a client's playback on /v1/realtime before there are words, 100 to 2000 milliseconds.",
        listen.barge_in_ms = |g| whole(g, 100..=2_000_u32), plain),
    row!("listen.resume_ms", "Playback that was held for a noise without words comes back this long after it at the latest, 300 to 10000 milliseconds.",
        listen.resume_ms = |g| whole(g, 300..=10_000_u32), plain),
    row!("listen.join_ms", "Speech that begins this soon after the last is its second half, if no answer was heard yet, 0 to 5000 milliseconds.",
        listen.join_ms = |g| whole(g, 0..=5_000_u32), plain),
    row!("listen.echo_canceller", "true: what this machine's speaker plays is taken out of what its microphone hears. Clients bring their own.",
        listen.echo_canceller = truth, plain),
    row!("listen.noise_suppression", "true: steady noise is taken down before anything is heard (this machine's microphone, with the echo canceller).",
        listen.noise_suppression = truth, plain),
    row!("stt.kind", "Recogniser: \"whisper\", or \"scripted\" (words from a file, for reproducing a bug).", stt.kind = |g| kind(g, &STT), quoted),
    row!("stt.model", "Name of a model (see `voxgate models list`), or the path of a ggml file.", stt.model = some_text, quoted),
    row!("stt.threads", "Threads of one recogniser, 0 to 64; 0 lets the gateway choose.", stt.threads = |g| whole(g, 0..=64_u32), plain),
    row!("stt.workers", "Recogniser processes that serve all conversations, 1 to 16.", stt.workers = |g| whole(g, 1..=16_u32), plain),
    row!("stt.language", "Language that is spoken, as a two-letter code (ISO 639-1). Spoken commands are English, the most needed ones also German (\"de\").", stt.language = language, quoted),
    row!("tts.kind", "Voice: \"hibari\", \"flite\" or \"espeak\" (programs that need no model; they also stand in for hibari), or \"tone\" (beeps,\nfor tests).", tts.kind = |g| kind(g, &TTS), quoted),
    row!("tts.speed", "Speed of speech, 0.5 to 2; 1 is the voice's own.", tts.speed = |g| decimal(g, 0.5..=2.0), number),
    row!("agent.kind", "Agent: \"commander\" (built in, no model, no key) or \"openai\" (any OpenAI-compatible API).", agent.kind = |g| kind(g, &AGENT), quoted),
    Key {
        path: "agent.base_url",
        about: "Root of an OpenAI-compatible API; empty: what OPENAI_BASE_URL says, else OpenAI's own.",
        set: |config, given| unless_empty(given, |given| base_url(given).map(|url| config.agent.base_url = Some(url))),
        show: |config| quoted(&config.agent.base_url.as_deref().unwrap_or("")),
    },
    row!("agent.model", "Model name for \"openai\".", agent.model = text, quoted),
    Key {
        path: "agent.api_key",
        about: "Key for base_url; empty: what OPENAI_API_KEY says, but only for OpenAI's own API or the one OPENAI_BASE_URL names,\nso that it reaches nobody else. Local servers need none.",
        set: |config, given| unless_empty(given, |given| text(given).map(|key| config.agent.api_key = Some(Secret::new(key)))),
        show: |config| secret(&config.agent.api_key),
    },
    row!("agent.instructions", "What the agent is told beside the gateway's own words, at most 16384 characters.", agent.instructions = instructions, quoted),
    row!("realtime.models", "Models of providers that clients of /v1/realtime may name, each as \"NAME KIND [ADDRESS [MODEL]]\": \"gpt-realtime openai\",\n\"fast openai https://api.openai.com/v1 gpt-realtime-mini\", \"local openai http://127.0.0.1:9140/v1\". Kinds: openai, azure, xai, gemini, vertex.\nAny other name is the gateway's own voice and agent. Keys come from OPENAI_API_KEY, AZURE_OPENAI_API_KEY, XAI_API_KEY, GEMINI_API_KEY and\nGOOGLE_ACCESS_TOKEN.",
        realtime.models = models, |rows: &Vec<ModelRow>| list(&rows.iter().map(ModelRow::text).collect::<Vec<_>>())),
    Key {
        path: "realtime.api_key",
        about: "Key for models whose row names an address of its own; empty: none. The general variables reach no such address.",
        set: |config, given| unless_empty(given, |given| text(given).map(|key| config.realtime.api_key = Some(Secret::new(key)))),
        show: |config| secret(&config.realtime.api_key),
    },
    row!("realtime.listen", "true: in a session with a provider spoken commands and answers are heard on this machine; false: nothing is decided by voice there.",
        realtime.listen = truth, plain),
    row!("tools.files_root", "Folder that the file-reading tool may look into; empty: the tool is not offered.",
        tools.files_root = |g| text(g).map(|t| (!t.is_empty()).then(|| t.into())), folder),
    row!("tools.rules", "Ordered rules, the last that fits a call counts: \"deny tool:notes__delete\", \"ask path:/srv/*\", \"allow effect:files path:drafts/*\".\nConditions: tool:, command:, path: (* for anything), effect: (read, view, session, files, host, external, unknown), irreversible,\nneeds-human. No mode lifts a denial, plan mode refuses whatever a rule allows.",
        tools.rules = rules, |r: &Rules| list(&r.texts())),
    row!("plan.start", "What a new conversation begins in: \"default\", \"plan\", \"bypass\" or \"autonomous\". The words of other agents' settings are understood\n(\"manual\", \"bypassPermissions\"; \"acceptEdits\", \"auto\" and \"dontAsk\" begin in default). VOXGATE_PLAN_MODE_DEFAULT=1 begins in plan mode.",
        plan.start = start, |m: &Mode| quoted(&m.word())),
    row!("plan.loose_modes", "Bypass and autonomous: \"allow\" (a person chooses them on a screen) or \"disable\" (nobody can; a plan approved in one is carried out\nin default).",
        plan.loose_modes = |g| word(g, &LOOSE), |v| named(&LOOSE, v)),
    row!("plan.completion", "How it is told that the agent has carried a plan out: \"speech\", \"earcon\" (a tone) or \"silent\" (screens show it).",
        plan.completion = |g| word(g, &TELLING), |v| named(&TELLING, v)),
    row!("plan.persist", "Where plan mode is kept: \"log\" (there again after a restart) or \"memory\".", plan.persist = |g| word(g, &PERSIST), |v| named(&PERSIST, v)),
    row!("plan.mirror", "Keep each plan as a Markdown file under plans/ of the data folder as well, true or false. The log stays the authority: editing or\ndeleting a file changes nothing.",
        plan.mirror = truth, plain),
    row!("voice.exit", "Leaving plan mode and approving a plan by voice: \"confirm\" (asked once more) or \"off\" (a screen only).",
        voice.exit = |g| word(g, &EXIT), |v| named(&EXIT, v)),
    row!("autonomy.level", "How much is asked about until somebody sets another level: \"strict\" (all but reading), \"hybrid\" (what changes\nanything), \"loose\" (nothing; what is denied stays denied).",
        autonomy.level = |g| word(g, &AUTONOMY), |v| named(&AUTONOMY, v)),
    row!("record.enabled", "Keep the sound of every conversation as an Ogg Opus file beside its log (left: the microphone, right: what was played), true or\nfalse. Everybody in the conversation is told; `voxgate sessions wipe` deletes it with the rest.",
        record.enabled = truth, plain),
    row!("limits.sessions", "Conversations open at once, 1 to 1000.", limits.sessions = |g| whole(g, 1..=1_000_u32), plain),
    row!("limits.clients", "Sockets open at once, 1 to 10000.", limits.clients = |g| whole(g, 1..=10_000_u32), plain),
    row!("limits.message_kib", "Largest message of a client, 64 to 16384 KiB.", limits.message_kib = |g| whole(g, 64..=16_384_u32), plain),
    row!("limits.audio_s", "Sound a client may send ahead of its commit, 5 to 600 seconds.", limits.audio_s = |g| whole(g, 5..=600_u32), plain),
    row!("limits.log_mib", "A session log larger than this is rewritten to what its state needs, 1 to 128 MiB.", limits.log_mib = |g| whole(g, 1..=128_u32), plain),
];

/// The key of a path.
pub(super) fn find(path: &str) -> Option<&'static Key> { KEYS.iter().find(|key| key.path == path) }

/// The sections, in order.
pub(super) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&str> = KEYS.iter().filter_map(|key| key.path.split_once('.').map(|(section, _)| section)).collect();
    sections.dedup();
    sections
}

/// The text of `config.example.toml`: every key with its meaning, unit and default.
pub fn example() -> String {
    let defaults = Config::default();
    let mut out = String::from(
        "# Every setting of voxgate with its default. Copy what you want to change to config.toml; `voxgate config check` reads it.\n\
         # Each key can also be set by a variable: VOXGATE_SERVER__PORT=8711 sets port in [server], and wins over the file.\n",
    );
    let mut open = "";
    for key in KEYS {
        let (section, name) = key.path.split_once('.').unwrap_or(("", key.path));
        if section != open {
            out.push_str(&format!("\n[{section}]\n"));
            open = section;
        }
        key.about.lines().for_each(|line| out.push_str(&format!("# {line}\n")));
        out.push_str(&format!("{name} = {}\n", (key.show)(&defaults)));
    }
    out
}

fn rules(given: &Given) -> Result<Rules, String> { Rules::parse(&texts(given)?) }

fn models(given: &Given) -> Result<Vec<ModelRow>, String> {
    let rows = texts(given)?.iter().map(|row| model(row)).collect::<Result<Vec<_>, _>>()?;
    match rows.iter().enumerate().find(|(at, row)| rows[..*at].iter().any(|before| before.name == row.name)) {
        Some((_, twice)) => Err(format!("names {} twice", twice.name)),
        None => Ok(rows),
    }
}

fn model(row: &str) -> Result<ModelRow, String> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let (name, kind, rest) = match words.as_slice() {
        [name, kind, rest @ ..] if rest.len() <= 2 => (*name, *kind, rest),
        _ => return Err(format!("must be \"NAME KIND [ADDRESS [MODEL]]\", not \"{row}\"")),
    };
    let Some((_, _, needs)) = PROVIDERS.iter().find(|(known, ..)| *known == kind) else {
        return Err(format!("knows the kinds {}, not \"{kind}\"", PROVIDERS.map(|(known, ..)| known).join(", ")));
    };
    let url = rest.first().copied().unwrap_or_default().trim_end_matches('/');
    match url {
        "" if *needs => return Err(format!("needs the address of the resource for {kind}: \"{name} {kind} https://NAME.openai.azure.com/openai/v1 DEPLOYMENT\"")),
        "" => {}
        url if url.contains('@') => return Err("must not hold a user name or password; put the key into api_key".into()),
        url if !is_web(&url.replacen("ws", "http", usize::from(url.starts_with("ws")))) => return Err(format!("must begin with http://, https://, ws:// or wss:// and name a host, not \"{url}\"")),
        _ => {}
    }
    Ok(ModelRow { name: name.into(), kind: kind.into(), url: url.into(), model: (*rest.get(1).unwrap_or(&name)).into() })
}

impl ModelRow {
    fn text(&self) -> String {
        let model = if self.model == self.name { "" } else { self.model.as_str() };
        [self.name.as_str(), &self.kind, &self.url, model].iter().filter(|w| !w.is_empty()).copied().collect::<Vec<_>>().join(" ")
    }
}

fn start(given: &Given) -> Result<Mode, String> {
    let word = text(given)?;
    start_word(&word).ok_or_else(|| format!("must be one of default, plan, bypass, autonomous, not \"{word}\""))
}

fn kind(given: &Given, kinds: &[(&str, &'static str)]) -> Result<String, String> { word(given, kinds).map(str::to_string) }

/// An empty text leaves what an earlier source said.
fn unless_empty(given: &Given, set: impl FnOnce(&Given) -> Result<(), String>) -> Result<(), String> {
    let empty = matches!(given, Given::Text(text) | Given::Loose(text) if text.is_empty());
    if empty { Ok(()) } else { set(given) }
}

fn address(given: &Given) -> Result<String, String> {
    let address = some_text(given)?;
    if address == "localhost" || address.parse::<IpAddr>().is_ok() { Ok(address) } else { Err(format!("must be an IP address or localhost, not \"{address}\"")) }
}

fn origins(given: &Given) -> Result<Vec<String>, String> {
    let list = texts(given)?;
    match list.iter().find(|o| !is_web(o) || o.matches('/').count() != 2) {
        Some(bad) => Err(format!("every entry must be an origin like \"https://example.org\", not \"{bad}\"")),
        None => Ok(list),
    }
}

fn tls_names(given: &Given) -> Result<Vec<String>, String> {
    let list = texts(given)?;
    let fits = |name: &str| name.parse::<IpAddr>().is_ok() || !name.is_empty() && name.len() <= 253 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    match list.iter().find(|name| !fits(name)) {
        Some(bad) => Err(format!("every entry must be a host name or an IP address without a port, not \"{bad}\"")),
        None => Ok(list),
    }
}

fn is_web(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    host.is_some_and(|h| !h.is_empty() && !h.starts_with('/')) && !url.contains(char::is_whitespace)
}

fn base_url(given: &Given) -> Result<String, String> {
    let url = some_text(given)?;
    // A user name or password would be logged with the address; it is not repeated here.
    if url.contains('@') {
        return Err("must not hold a user name or password; put the key into api_key".into());
    }
    if is_web(&url) { Ok(url.trim_end_matches('/').to_string()) } else { Err(format!("must begin with http:// or https:// and name a host, not \"{url}\"")) }
}

fn language(given: &Given) -> Result<String, String> {
    let code = text(given)?;
    if code.len() == 2 && code.bytes().all(|b| b.is_ascii_lowercase()) { Ok(code) } else { Err(format!("must be two lower-case letters, not \"{code}\"")) }
}

fn instructions(given: &Given) -> Result<String, String> {
    let words = text(given)?;
    let chars = words.chars().count();
    if chars > 16_384 { Err(format!("has {chars} characters, at most 16384 are allowed")) } else { Ok(words) }
}

/// Text as a TOML basic string.
fn quoted(value: &impl AsRef<str>) -> String {
    let mut out = String::from("\"");
    for c in value.as_ref().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

fn plain(value: &impl ToString) -> String { value.to_string() }

fn number(value: &f32) -> String { format!("{value:?}") }

fn list(values: &[String]) -> String { format!("[{}]", values.iter().map(quoted).collect::<Vec<_>>().join(", ")) }

fn secret(value: &Option<Secret>) -> String { quoted(&value.as_ref().map_or(String::new(), Secret::to_string)) }

fn folder(value: &Option<std::path::PathBuf>) -> String { quoted(&value.as_ref().map_or(String::new(), |p| p.display().to_string())) }

fn named<T: PartialEq>(words: &[(&str, T)], value: &T) -> String { quoted(&words.iter().find(|(_, v)| v == value).map_or("", |(w, _)| w)) }
