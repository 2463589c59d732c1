//! WEIGHTS: which models there are, bringing them, checking them.
//!
//! Owns the models folder (`<folder>/<id>/<file>`) and the rule that nothing is loaded unchecked. Called by the `models`
//! command and by whoever starts a recogniser or a voice. Never loads a model itself and never fetches one unasked.

mod convert;
mod ct2;
mod fetch;
mod header;
mod manifest;
mod store;
mod verify;

pub use convert::{ConvertError, Encoding, to_ggml};
pub use ct2::Ct2Error;
pub use header::{Head, HeaderError, check as check_header};
pub use manifest::{Conversion, Kind, Manifest, Model, Part, Source};
pub use store::{Listing, Outcome, State, Store};
pub use verify::{Checked, read_checked, sha256_hex};

use std::path::PathBuf;

/// The listener that voxgate uses unless told otherwise.
pub const DEFAULT_LISTENER: &str = "whisper-tiny.en";
/// The voice that voxgate uses unless told otherwise.
pub const DEFAULT_VOICE: &str = "hibari";
/// The judge of ends of turns. Nothing stops without it; turns end by silence and grammar alone.
pub const TURN_JUDGE: &str = "smart-turn";
/// The second opinion on what is speech. Nothing stops without it; the always-on detector is believed alone.
pub const VOICE_CONFIRMER: &str = "silero";

/// What can go wrong with weights. Every text is for a person and says what to do where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The compiled-in list is broken.
    #[error("the built-in list of models cannot be read: {why}")]
    Manifest {
        /// The parser's words.
        why: String,
    },
    /// No such model.
    #[error("there is no model {id}; known are: {known}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// All names.
        known: String,
    },
    /// The model was not brought yet.
    #[error("model {id} is not here ({} is missing); get it with: voxgate models get {id}", path.display())]
    Missing {
        /// The model.
        id: String,
        /// The file that was looked for.
        path: PathBuf,
    },
    /// A file that a person named is not there.
    #[error("there is no model file {}", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// A file is not what was pinned, or not what was written at conversion.
    #[error("{} is damaged ({why}); bring it again with: voxgate models get {id}", path.display())]
    Damaged {
        /// The model (or its folder's name).
        id: String,
        /// The file.
        path: PathBuf,
        /// Length or hash, wanted and found.
        why: String,
    },
    /// A ggml file is malformed.
    #[error("{} is not a Whisper model that can be loaded: {why}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: HeaderError,
    },
    /// Python or its installer is not there.
    #[error("{what}; on Debian: apt-get install python3-pip")]
    NoPip {
        /// What was tried.
        what: String,
    },
    /// The package could not be downloaded.
    #[error("cannot download {package} {version}: {why}")]
    Download {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The last lines of what the installer said.
        why: String,
    },
    /// The package is not what it was.
    #[error("package {package}: {why}")]
    Package {
        /// The package's name, or the file's.
        package: String,
        /// What is wrong with it.
        why: String,
    },
    /// The conversion failed.
    #[error("cannot convert model {id}: {why}")]
    Convert {
        /// The model.
        id: String,
        /// Why.
        why: ConvertError,
    },
    /// The disk said no.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
}

impl ModelError {
    /// For `map_err`: an I/O error with the path it happened on.
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |why| Self::Io { path, why }
    }
}
