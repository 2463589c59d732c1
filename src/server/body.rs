//! REST BODIES IN: a JSON object of limited size and time, and its fields by name. Handlers read with it; what is wrong
//! becomes a [`Problem`] that names the field.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::Shared;
use super::problem::Problem;

/// The object a request brought; empty when it brought nothing.
pub struct Fields(Map<String, Value>);

impl FromRequest<Arc<Shared>> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        Self::read(request, shared.doors.limits.body_max, shared.doors.limits.body_timeout).await
    }
}

fn unreadable(error: &axum::Error, max: usize) -> Problem {
    let too_large = std::error::Error::source(error).is_some_and(|source| source.to_string().contains("length limit"));
    if too_large {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("a body may have {max} bytes at most"))
    } else {
        Problem::new(StatusCode::BAD_REQUEST, "body_unreadable", "the body broke off")
    }
}

fn parse(bytes: &[u8]) -> Result<Fields, Problem> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Fields(Map::new()));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(Fields(fields)),
        Ok(_) => Err(Problem::field("body", "must be a JSON object")),
        Err(error) => Err(Problem {
            code: "invalid_json",
            ..Problem::field("body", &format!("is not JSON: line {}, column {}", error.line(), error.column()))
        }),
    }
}

impl Fields {
    /// Reads a body of at most `max` bytes.
    pub async fn read(request: Request, max: usize, patience: Duration) -> Result<Self, Problem> {
        let bytes = tokio::time::timeout(patience, to_bytes(request.into_body(), max)).await
            .map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body did not arrive in time"))?
            .map_err(|error| unreadable(&error, max))?;
        parse(&bytes)
    }

    /// Everything, as it came.
    pub fn all(&self) -> Value { Value::Object(self.0.clone()) }

    /// A field as it came; `null` counts as absent.
    pub fn value(&self, name: &str) -> Option<Value> { self.0.get(name).filter(|value| !value.is_null()).cloned() }

    /// A field that must be there.
    pub fn bool(&self, name: &'static str) -> Result<bool, Problem> {
        self.maybe(name, Value::as_bool, "must be true or false")?.ok_or_else(|| Problem::field(name, "is missing; it must be true or false"))
    }

    /// A field that may be there; `null` counts as absent.
    pub fn maybe_bool(&self, name: &'static str) -> Result<Option<bool>, Problem> { self.maybe(name, Value::as_bool, "must be true or false") }

    /// A text that must be there.
    pub fn text(&self, name: &'static str) -> Result<String, Problem> {
        self.maybe_text(name)?.ok_or_else(|| Problem::field(name, "is missing; it must be a text"))
    }

    /// A text that may be there.
    pub fn maybe_text(&self, name: &'static str) -> Result<Option<String>, Problem> {
        self.maybe(name, |value| value.as_str().map(str::to_string), "must be a text")
    }

    /// A version number that may be there.
    pub fn maybe_version(&self, name: &'static str) -> Result<Option<u32>, Problem> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        self.maybe(name, number, "must be a whole number from 1 up")
    }

    fn maybe<T>(&self, name: &'static str, read: impl Fn(&Value) -> Option<T>, rule: &str) -> Result<Option<T>, Problem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| Problem::field(name, rule)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_f14_mistakes_name_the_field() {
        let of = |text: &str| parse(text.as_bytes());
        assert_eq!(of("[1]").err().unwrap().field, Some("body"));
        assert_eq!(of("{\"a\":").err().unwrap().code, "invalid_json");
        assert_eq!(of("\u{0}").err().unwrap().code, "invalid_json");
        assert!(of(&"[".repeat(5_000)).is_err(), "depth is limited");
        for body in ["", "{}", r#"{"enabled": null}"#, r#"{"enabled": "true"}"#, r#"{"enabled": 1}"#] {
            let problem = of(body).ok().unwrap().bool("enabled").unwrap_err();
            assert_eq!((problem.status, problem.field), (StatusCode::BAD_REQUEST, Some("enabled")), "{body}");
        }
        // Plan mode is a resource of its conversation, read and written under one path; the global level is another.
        let methods = |path: &str| crate::server::routes::ROUTES.iter().filter(|r| r.path == path).map(|r| r.method).collect::<Vec<_>>();
        assert_eq!((methods("/api/sessions/{id}/plan_mode"), methods("/api/autonomy")), (vec!["GET", "POST"], vec!["GET", "POST"]));
        let fields = of(r#"{"b": 1, "t": 2, "v": 0, "n": null}"#).ok().unwrap();
        assert_eq!(fields.bool("b").unwrap_err().field, Some("b"));
        assert_eq!(fields.bool("gone").unwrap_err().field, Some("gone"));
        assert_eq!(fields.maybe_text("t").unwrap_err().field, Some("t"));
        assert_eq!(fields.maybe_version("v").unwrap_err().field, Some("v"));
        assert_eq!(fields.maybe_text("n"), Ok(None));
    }
}
