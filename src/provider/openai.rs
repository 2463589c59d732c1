//! OpenAI's Realtime API, and every server that speaks it.

use super::{Capabilities, Dialect, Kind, as_it_is, bearer, in_query};

/// Its row.
pub(super) const KIND: Kind = Kind {
    name: "openai",
    about: "OpenAI Realtime (GA), and local servers that speak it",
    url: "https://api.openai.com/v1",
    dialect: Dialect::OpenAiRealtime,
    capabilities: Capabilities { cancels: true, truncates: true, edits: true, lets_go_of_turns: true, session_minutes: 60 },
    path: |model| format!("/realtime?model={}", in_query(model)),
    key: bearer,
    session: as_it_is,
};
