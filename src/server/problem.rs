//! WHAT WENT WRONG, as a client reads it: one refusal, two shapes. Owns the error bodies of every route; made by the
//! other files of this room. Never holds a key, a code, or what somebody sent beyond the name of a field.
//!
//! Under `/v1` (and the other realtime paths) a body has OpenAI's shape, elsewhere the gateway's own
//! `{success: false, error, error_code, field?}`. Which one is decided by the path when the response goes out.

use std::time::Duration;

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::session::handle::{AttachRefused, Declined, Gone};
use crate::session::registry::OpenRefused;

/// A refusal on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Problem {
    /// HTTP status.
    pub status: StatusCode,
    /// Stable code.
    pub code: &'static str,
    /// A sentence for a person.
    pub message: String,
    /// The argument that is wrong, if it is one.
    pub field: Option<&'static str>,
    /// Seconds after which another try makes sense.
    pub retry_after_s: Option<u32>,
    /// It goes out so much later.
    pub delay: Duration,
}

impl Problem {
    /// A refusal with this status, code and sentence.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, retry_after_s: None, delay: Duration::ZERO }
    }

    /// 400, naming the argument. The sentence begins with the argument's name.
    pub fn field(field: &'static str, message: &str) -> Self {
        Self { field: Some(field), ..Self::new(StatusCode::BAD_REQUEST, "invalid_value", format!("`{field}` {message}")) }
    }

    /// 404 for a conversation nobody knows.
    pub fn unknown_session(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_session", format!("there is no conversation {}", clip(id)))
    }

    /// The body for a request to `path`.
    pub fn body(&self, path: &str) -> Value {
        if is_openai(path) {
            let kind = if self.status.is_server_error() { "server_error" } else { "invalid_request_error" };
            return json!({"error": {"message": self.message, "type": kind, "param": self.field, "code": self.code}});
        }
        let mut body = json!({"success": false, "error": self.message, "error_code": self.code});
        if let Some(field) = self.field {
            body["field"] = field.into();
        }
        body
    }

    /// The whole response for a request to `path`.
    pub fn response(&self, path: &str) -> Response {
        let mut response = (self.status, [(CONTENT_TYPE, "application/json")], self.body(path).to_string()).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Carries the problem outwards; [`dress`] writes the body, because only there the path is known.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives every refusal its body: those of this room, and those that axum made itself (wrong method, no upgrade).
pub fn dress(path: &str, mut response: Response) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return problem.response(path);
    }
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || is_json(&response) {
        return response;
    }
    let mut dressed = of_status(status).response(path);
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE && name != CONTENT_LENGTH {
            dressed.headers_mut().insert(name.clone(), value.clone());
        }
    }
    dressed
}

fn of_status(status: StatusCode) -> Problem {
    let (code, message) = match status {
        StatusCode::NOT_FOUND => ("not_found", "nothing is served at this path"),
        StatusCode::METHOD_NOT_ALLOWED => ("method_not_allowed", "this path does not take that method"),
        StatusCode::UPGRADE_REQUIRED => ("upgrade_required", "this path speaks WebSocket (version 13) only"),
        s if s.is_server_error() => ("server_error", "something failed on this side"),
        _ => ("bad_request", "the request cannot be read; a WebSocket path needs a whole WebSocket handshake"),
    };
    Problem::new(status, code, message)
}

fn is_json(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

fn is_openai(path: &str) -> bool {
    ["/v1", "/openai", "/realtime"].iter().any(|start| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The first 64 characters, so that a long id does not come back as a long body.
fn clip(text: &str) -> String { text.chars().take(64).collect() }

impl From<OpenRefused> for Problem {
    fn from(refused: OpenRefused) -> Self {
        let message = refused.to_string();
        match refused {
            OpenRefused::Unknown(id) => Problem::unknown_session(&id),
            OpenRefused::Full(_) => Problem { retry_after_s: Some(30), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "sessions_full", message) },
            OpenRefused::Broken(_) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "session_broken", message),
        }
    }
}

impl From<Gone> for Problem {
    fn from(gone: Gone) -> Self { Problem::new(StatusCode::GONE, "session_ended", gone.to_string()) }
}

impl From<AttachRefused> for Problem {
    fn from(refused: AttachRefused) -> Self { Problem::new(StatusCode::CONFLICT, "session_held", refused.to_string()) }
}

/// A decision that was not carried out is a conflict with the state, except where what it names does not exist.
impl From<Declined> for Problem {
    fn from(declined: Declined) -> Self {
        let status = match declined.code {
            "no_such_request" | "no_such_version" | "no_such_comment" | "no_such_step" => StatusCode::NOT_FOUND,
            "missing_required_field" | "too_long" | "no_comments" | "quote_not_found" => StatusCode::BAD_REQUEST,
            "mode_forbidden" | "screen_only" => StatusCode::FORBIDDEN,
            _ => StatusCode::CONFLICT,
        };
        Problem::new(status, declined.code, declined.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_chooses_the_shape() {
        let problem = Problem::field("enabled", "must be true or false");
        assert_eq!(problem.body("/api/autonomy")["field"], "enabled");
        assert_eq!(problem.body("/api/autonomy")["success"], false);
        assert_eq!(problem.body("/v1/sessions")["error"]["param"], "enabled");
        assert_eq!(problem.body("/v1")["error"]["code"], "invalid_value");
        assert_eq!(problem.body("/v1x")["error_code"], "invalid_value");
    }

    #[test]
    fn an_unknown_id_does_not_come_back_whole() {
        assert!(Problem::unknown_session(&"x".repeat(5_000)).message.len() < 120);
    }
}
