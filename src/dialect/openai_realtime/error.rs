//! What is wrong with a client event, said so that its author can mend it.

/// A client event that was not carried out. Goes out as an `error` event; the session goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadEvent {
    /// Stable code.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
    /// The field, as a path (`session.audio.input.format.rate`).
    pub param: Option<String>,
    /// The client's own `event_id` of the event, where it had one.
    pub event_id: Option<String>,
}

impl BadEvent {
    /// A mistake that concerns no single field.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), param: None, event_id: None }
    }

    /// A mistake in this field.
    pub fn at(code: &'static str, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::new(code, message) }
    }

    /// A value that cannot be taken.
    pub fn value(param: impl Into<String>, message: impl Into<String>) -> Self { Self::at("invalid_value", param, message) }

    /// A required field that is not there.
    pub fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::at("missing_required_parameter", param.clone(), format!("Missing required parameter: '{param}'."))
    }

    /// The same mistake, tied to the client's event.
    pub fn of(self, event_id: Option<String>) -> Self { Self { event_id: event_id.or(self.event_id), ..self } }
}

/// `text` as it may stand in a message: at most 64 characters, none of them control characters.
pub(super) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(64).is_some() {
        out.push('…');
    }
    out
}
