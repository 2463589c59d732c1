//! KEYS FOR A WHILE: what a client's own server hands to a browser instead of its key. Owns the secrets that were given out, in memory
//! only, so that they end with the process; `POST /v1/realtime/client_secrets` asks for one, `auth` knows them again. They are the
//! gateway's own and open `/v1/realtime` alone: what a provider gave for its own service never leaves this process.
//!
//! A secret can be used any number of times until it runs out, and a session begun with it may outlive it. It carries the session that
//! its socket begins with, filtered as a `session.update` is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::Shared;
use super::auth::{Caller, Digest, Key, digest};
use super::body::Fields;
use super::links::{NoRandomness, random_text};
use super::problem::Problem;
use super::realtime::{self, BadEvent};
use crate::session::clock::unix_ms;

/// Secrets that are good at one time; a newer one pushes the oldest out.
const SECRETS_MAX: usize = 1_024;
/// How long a secret may be good, in seconds, as the API has it; and how long it is where nothing is said.
const LIFE_S: (u64, u64) = (10, 7_200);
const LIFE_DEFAULT_S: u64 = 600;
/// Largest body, in bytes: the tools of a session may have a quarter of a mebibyte.
const BODY_MAX: usize = 512 * 1024;

/// What a secret stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The session its socket begins with, as `session.update` would have it.
    pub session: Value,
    /// The model, where the session names one.
    pub model: Option<String>,
    /// The key that asked for it; none: the operator's. When that is revoked the secret is no longer good.
    pub by: Option<Digest>,
}

/// See the file's head.
#[derive(Default)]
pub struct Secrets {
    held: Mutex<VecDeque<(Digest, u64, Arc<Grant>)>>,
}

impl Secrets {
    /// A new secret, good until `until_s` (Unix seconds): `ek_` and 43 characters of base64url.
    fn issue(&self, grant: Grant, now_s: u64, until_s: u64) -> Result<String, NoRandomness> {
        let secret = format!("ek_{}", random_text::<32>()?);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(_, until, _)| *until > now_s);
        if held.len() >= SECRETS_MAX {
            tracing::warn!("{SECRETS_MAX} client secrets are good at one time; the oldest goes");
            held.pop_front();
        }
        held.push_back((digest(secret.as_bytes()), until_s, Arc::new(grant)));
        Ok(secret)
    }

    /// What a presented secret stands for. All are compared, in constant time.
    pub(super) fn find(&self, presented: &[u8]) -> Option<Arc<Grant>> { self.find_at(presented, unix_ms() / 1_000) }

    fn find_at(&self, presented: &[u8], now_s: u64) -> Option<Arc<Grant>> {
        let wanted = digest(presented);
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |found: Option<Arc<Grant>>, (known, until, grant): &(Digest, u64, Arc<Grant>)| if bool::from(known.ct_eq(&wanted)) && *until > now_s { Some(Arc::clone(grant)) } else { found };
        held.iter().fold(None, fits)
    }
}

/// `POST /v1/realtime/client_secrets` with `{session?, expires_after?}`; `/v1/realtime/sessions` with a flat session, as in the beta.
pub(super) async fn create(State(shared): State<Arc<Shared>>, Extension(caller): Extension<Caller>, uri: Uri, request: Request) -> Result<Json<Value>, Problem> {
    let by = match (caller, request.extensions().get::<Key>()) {
        (Caller::Client, key) => key.map(|key| key.0),
        _ => None,
    };
    let fields = Fields::read(request, BODY_MAX, shared.doors.limits.body_timeout).await?;
    let beta = uri.path().ends_with("/sessions");
    let session = if beta { fields.all() } else { fields.value("session").unwrap_or_else(|| json!({})) };
    let life_s = life(fields.value("expires_after"))?;
    let (grant, holds) = granted(session, beta, by)?;
    let now_s = unix_ms() / 1_000;
    let value = shared.secrets.issue(grant, now_s, now_s + life_s)?;
    let expires_at = now_s + life_s;
    if beta {
        let mut session = holds;
        session["client_secret"] = json!({"value": value, "expires_at": expires_at});
        return Ok(Json(session));
    }
    Ok(Json(json!({"value": value, "expires_at": expires_at, "session": holds})))
}

/// `expires_after: {anchor: "created_at", seconds}`, in seconds.
fn life(given: Option<Value>) -> Result<u64, Problem> {
    let Some(given) = given else { return Ok(LIFE_DEFAULT_S) };
    let wrong = |message: &str| Problem::field("expires_after", message);
    if !given.is_object() { return Err(wrong("must be an object with anchor and seconds")) }
    if given.get("anchor").is_some_and(|anchor| anchor != "created_at") { return Err(wrong("counts from created_at and nothing else")) }
    match given.get("seconds") {
        None | Some(Value::Null) => Ok(LIFE_DEFAULT_S),
        Some(seconds) => seconds.as_u64().filter(|s| (LIFE_S.0..=LIFE_S.1).contains(s)).ok_or_else(|| wrong("must have between 10 and 7200 seconds")),
    }
}

/// The grant of a session, and the whole session as it will hold.
fn granted(session: Value, beta: bool, by: Option<Digest>) -> Result<(Grant, Value), Problem> {
    let Value::Object(mut fields) = session else { return Err(Problem::field("session", "must be an object")) };
    fields.remove("expires_after");
    let agreed = realtime::agree(Value::Object(fields), beta, &format!("sess_{}", random_text::<12>()?));
    let (session, model, holds) = agreed.map_err(|bad| Problem { field: Some("session"), ..Problem::new(StatusCode::BAD_REQUEST, bad.code, named(bad)) })?;
    Ok((Grant { session, model, by }, holds))
}

fn named(bad: BadEvent) -> String {
    match bad.param {
        Some(param) => format!("`{param}`: {}", bad.message),
        None => bad.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_good_until_it_runs_out_and_not_for_ever() {
        let secrets = Secrets::default();
        let grant = |model: &str| Grant { session: json!({"type": "realtime"}), model: Some(model.into()), by: None };
        let one = secrets.issue(grant("a"), 100, 110).unwrap();
        assert!(one.starts_with("ek_") && one.len() == 46);
        assert_eq!(secrets.find_at(one.as_bytes(), 109).unwrap().model.as_deref(), Some("a"));
        assert!(secrets.find_at(one.as_bytes(), 109).is_some(), "again");
        assert!(secrets.find_at(one.as_bytes(), 110).is_none() && secrets.find_at(b"ek_", 0).is_none() && secrets.find_at(b"", 0).is_none());
        let first = secrets.issue(grant("b"), 200, 900).unwrap();
        for _ in 0..SECRETS_MAX { secrets.issue(grant("c"), 200, 900).unwrap(); }
        assert!(secrets.find_at(first.as_bytes(), 201).is_none(), "pushed out");
        assert_eq!(secrets.held.lock().unwrap().len(), SECRETS_MAX);
    }

    #[test]
    fn mistakes_are_named_and_what_runs_tools_elsewhere_is_left_out() {
        let life_of = |text: &str| life(serde_json::from_str(text).unwrap()).map_err(|p| p.field);
        assert_eq!([life_of("null"), life_of("{}"), life_of(r#"{"anchor":"created_at","seconds":10}"#), life_of(r#"{"seconds":7200}"#)], [Ok(600), Ok(600), Ok(10), Ok(7_200)]);
        for bad in ["5", r#"{"seconds":9}"#, r#"{"seconds":7201}"#, r#"{"seconds":"60"}"#, r#"{"anchor":"now","seconds":60}"#] {
            assert_eq!(life_of(bad), Err(Some("expires_after")), "{bad}");
        }
        let (_, holds) = granted(json!({"model": "m", "tools": [{"type": "mcp", "server_url": "http://x"}, {"type": "function", "name": "f"}], "prompt": {"id": "p"}}), false, None).unwrap();
        assert_eq!((holds["tools"].as_array().unwrap().len(), &holds["prompt"], &holds["model"]), (1, &Value::Null, &json!("m")));
        let bad = granted(json!({"audio": {"output": {"speed": 9}}}), false, None).unwrap_err();
        assert!(bad.message.contains("session.audio.output.speed"), "{bad}");
        assert!(granted(json!({"type": "transcription"}), false, None).is_err() && granted(json!([]), false, None).is_err());
        let (grant, _) = granted(json!({"model": "m", "modalities": ["text"], "voice": "v"}), true, None).unwrap();
        assert_eq!(grant.session, json!({"type": "realtime", "model": "m", "output_modalities": ["text"], "audio": {"output": {"voice": "v"}}}));
    }
}
