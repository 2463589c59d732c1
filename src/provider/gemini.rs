//! Gemini Live of Google AI Studio.

use super::{Capabilities, Dialect, Kind, as_it_is};

/// Its row. A connection lives about ten minutes and says before it ends.
pub(super) const KIND: Kind = Kind {
    name: "gemini",
    about: "Gemini Live (Google AI Studio)",
    url: "https://generativelanguage.googleapis.com",
    dialect: Dialect::GeminiLive,
    capabilities: CAPABILITIES,
    path: |_| "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent".into(),
    // In the address it would stand in the logs of whatever is in between.
    key: |key| ("x-goog-api-key", key.to_string()),
    session: as_it_is,
};

/// What Gemini Live can do, wherever it runs.
pub(super) const CAPABILITIES: Capabilities = Capabilities { cancels: true, truncates: false, edits: false, lets_go_of_turns: false, session_minutes: 0 };
