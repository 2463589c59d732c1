//! OpenAI Realtime as Azure serves it (GA). The model is the deployment's name, the key has a header of its own.

use super::{Capabilities, Dialect, Kind, as_it_is, in_query};

/// Its row. The root is the resource's own, `https://NAME.openai.azure.com/openai/v1`.
pub(super) const KIND: Kind = Kind {
    name: "azure",
    about: "OpenAI Realtime on Azure (GA); its address is the resource's",
    url: "",
    dialect: Dialect::OpenAiRealtime,
    capabilities: Capabilities { cancels: true, truncates: true, edits: true, lets_go_of_turns: true, session_minutes: 60 },
    path: |model| format!("/realtime?model={}", in_query(model)),
    key: |key| ("api-key", key.to_string()),
    session: as_it_is,
};
