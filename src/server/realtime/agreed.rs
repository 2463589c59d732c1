//! A session that is agreed on before there is a socket: read as a `session.update` is, and written out as it will hold.

use serde_json::{Value, json};

use crate::dialect::openai_beta;
use crate::dialect::openai_realtime::error::BadEvent;
use crate::dialect::openai_realtime::session::{SessionChange, SessionState};

/// Reads a session object; `flat`: in the shape of the protocol's beta. Answers with the session that a socket begins with, the model it
/// names, and the whole session as it will hold under this id, in the shape it came in.
///
/// # Errors
/// [`BadEvent`], naming the field.
pub fn agree(session: Value, flat: bool, id: &str) -> Result<(Value, Option<String>, Value), BadEvent> {
    let mut session = if flat { openai_beta::session_from_client(session, "realtime") } else { session };
    if session.is_object() && session.get("type").is_none() { session["type"] = json!("realtime") }
    let change = SessionChange::parse(&session)?;
    let model = session["model"].as_str().filter(|model| !model.is_empty()).map(str::to_string);
    let mut state = SessionState::new(id, model.as_deref());
    state.apply(change, false)?;
    let holds = state.to_json();
    Ok((session, model, if flat { openai_beta::session_to_client(holds) } else { holds }))
}
