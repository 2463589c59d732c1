//! Gemini Live of Google Cloud: the same protocol at another address, with an access token, and models by their whole name.

use super::{Dialect, Kind, as_it_is, bearer, gemini};

/// Its row. The address has the region ("https://us-central1-aiplatform.googleapis.com"); the model is
/// "projects/P/locations/L/publishers/google/models/M".
pub(super) const KIND: Kind = Kind {
    name: "vertex",
    about: "Gemini Live (Google Cloud)",
    url: "",
    dialect: Dialect::GeminiLive,
    capabilities: gemini::CAPABILITIES,
    path: |_| "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent".into(),
    key: bearer,
    session: as_it_is,
};
