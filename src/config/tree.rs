//! The tree itself: plain structs, one a room, each with its defaults. What a key means stands beside it in the table.

use std::path::PathBuf;

use crate::engine::mode::{Autonomy, Mode, Telling};
use crate::engine::rules::Rules;
use crate::secret::Secret;

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The front door.
    pub server: ServerConfig,
    /// Sound devices.
    pub audio: AudioConfig,
    /// Hearing.
    pub listen: ListenConfig,
    /// Speech to text.
    pub stt: SttConfig,
    /// Text to speech.
    pub tts: TtsConfig,
    /// The agent.
    pub agent: AgentConfig,
    /// Providers of realtime speech.
    pub realtime: RealtimeConfig,
    /// Tools.
    pub tools: ToolsConfig,
    /// Plan mode.
    pub plan: PlanConfig,
    /// What a voice may decide.
    pub voice: VoiceConfig,
    /// How much is asked about.
    pub autonomy: AutonomyConfig,
    /// Recordings.
    pub record: RecordConfig,
    /// Sizes and counts.
    pub limits: LimitsConfig,
}

/// The front door.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Address to listen on: an IP address or `localhost`.
    pub address: String,
    /// TCP port; 0 picks a free one.
    pub port: u16,
    /// Host names accepted beside the address itself.
    pub allowed_hosts: Vec<String>,
    /// Origins accepted beside the gateway's own page.
    pub allowed_origins: Vec<String>,
    /// A second port speaks TLS.
    pub tls: bool,
    /// Its address: an IP address or `localhost`.
    pub tls_address: String,
    /// Its port; 0 picks a free one.
    pub tls_port: u16,
    /// The operator's certificate; none: one is made.
    pub tls_certificate: Option<PathBuf>,
    /// Its key.
    pub tls_key: Option<PathBuf>,
    /// Names that people use for this machine.
    pub tls_names: Vec<String>,
}

impl Default for ServerConfig {
    fn default() -> Self { Self { address: "127.0.0.1".into(), port: 8710, allowed_hosts: vec![], allowed_origins: vec![], tls: false, tls_address: "127.0.0.1".into(), tls_port: 8711, tls_certificate: None, tls_key: None, tls_names: vec![] } }
}

/// Sound devices.
#[derive(Clone, Debug, PartialEq)]
pub struct AudioConfig {
    /// `default`, `none`, a device's name, or a WAV file.
    pub input: String,
    /// `default`, `none`, a device's name, or a WAV file.
    pub output: String,
}

impl Default for AudioConfig {
    fn default() -> Self { Self { input: "default".into(), output: "default".into() } }
}

/// Hearing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenConfig {
    /// The detector of voice: `confirmed` or `earshot`.
    pub vad: String,
    /// Voice probability that counts as speech.
    pub threshold: f32,
    /// Silence that ends a turn, in milliseconds.
    pub silence_ms: u32,
    /// Silence that ends a denial or a "stop" while a question is open, in milliseconds.
    pub answer_silence_ms: u32,
    /// Silence that consent and loosening wait for, in milliseconds.
    pub consent_silence_ms: u32,
    /// Silence that ends a complete command that loosens nothing, in milliseconds.
    pub command_silence_ms: u32,
    /// Silence that ends speech which sounds complete, in milliseconds.
    pub complete_silence_ms: u32,
    /// Silence that ends speech which is plainly unfinished, in milliseconds.
    pub unfinished_silence_ms: u32,
    /// Silence after which recognition begins, in milliseconds.
    pub look_ms: u32,
    /// Voice over playback that makes it hold its breath, in milliseconds.
    pub duck_ms: u32,
    /// Voice that stops a client's playback without words, in milliseconds.
    pub barge_in_ms: u32,
    /// Playback that was held without words comes back after this, in milliseconds.
    pub resume_ms: u32,
    /// A second half that begins this soon joins the turn before it, in milliseconds.
    pub join_ms: u32,
    /// What a device plays is taken out of what its microphone hears.
    pub echo_canceller: bool,
    /// Steady noise is taken down as well.
    pub noise_suppression: bool,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            vad: "confirmed".into(), threshold: 0.5, silence_ms: 500, answer_silence_ms: 300, consent_silence_ms: 600, command_silence_ms: 320, complete_silence_ms: 300, unfinished_silence_ms: 1_400, look_ms: 100, duck_ms: 60,
            barge_in_ms: 400, resume_ms: 2_500, join_ms: 1_200, echo_canceller: true, noise_suppression: false,
        }
    }
}

/// Speech to text.
#[derive(Clone, Debug, PartialEq)]
pub struct SttConfig {
    /// Row of the recogniser table.
    pub kind: String,
    /// Name of a known model, or the path of a ggml file.
    pub model: String,
    /// Threads of one recogniser; 0 lets the gateway choose.
    pub threads: u32,
    /// Recogniser processes that serve all conversations.
    pub workers: u32,
    /// ISO 639-1 code.
    pub language: String,
}

impl Default for SttConfig {
    fn default() -> Self { Self { kind: "whisper".into(), model: "whisper-tiny.en".into(), threads: 0, workers: 1, language: "en".into() } }
}

/// Text to speech.
#[derive(Clone, Debug, PartialEq)]
pub struct TtsConfig {
    /// Row of the voice table.
    pub kind: String,
    /// Speed of speech; 1 is the voice's own.
    pub speed: f32,
}

impl Default for TtsConfig {
    fn default() -> Self { Self { kind: "hibari".into(), speed: 1.0 } }
}

/// The agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// Row of the agent table.
    pub kind: String,
    /// Root of an OpenAI-compatible API, without a slash at its end. `None`: OpenAI's own, see [`AgentConfig::url`].
    pub base_url: Option<String>,
    /// Model name, for kinds that have one.
    pub model: String,
    /// Key for `base_url`, if it needs one.
    pub api_key: Option<Secret>,
    /// For the agent, beside what the gateway tells it.
    pub instructions: String,
}

/// Where OpenAI's own API is.
pub(super) const OPENAI_URL: &str = "https://api.openai.com/v1";

impl AgentConfig {
    /// Root of the API to call, without a slash at its end.
    pub fn url(&self) -> &str { self.base_url.as_deref().unwrap_or(OPENAI_URL) }
}

impl Default for AgentConfig {
    fn default() -> Self { Self { kind: "commander".into(), base_url: None, model: String::new(), api_key: None, instructions: String::new() } }
}

/// A model that clients of `/v1/realtime` may name, and the provider behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRow {
    /// What clients call it.
    pub name: String,
    /// The kind of provider.
    pub kind: String,
    /// Root of its API, without a slash at its end; empty: the kind's own.
    pub url: String,
    /// The model's name there.
    pub model: String,
}

/// Providers of realtime speech.
#[derive(Clone, Debug, PartialEq)]
pub struct RealtimeConfig {
    /// The models there are beside the gateway's own.
    pub models: Vec<ModelRow>,
    /// Key for rows that name an address.
    pub api_key: Option<Secret>,
    /// Keys of the variables that each kind's users know, for rows without an address: kind and key.
    pub keys: Vec<(String, Secret)>,
    /// The person's commands are heard here.
    pub listen: bool,
}

impl Default for RealtimeConfig {
    fn default() -> Self { Self { models: Vec::new(), api_key: None, keys: Vec::new(), listen: true } }
}

/// Tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolsConfig {
    /// Folder the file-reading tool may look into; without one the tool is not offered.
    pub files_root: Option<PathBuf>,
    /// Ordered rules; the last that fits a call counts.
    pub rules: Rules,
}

/// Where plan mode is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persist {
    /// In the session log: it is there again after a restart.
    #[default]
    Log,
    /// In memory: a restart begins in the start mode.
    Memory,
}

/// Plan mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanConfig {
    /// What a new conversation begins in.
    pub start: Mode,
    /// How a completed plan is told.
    pub completion: Telling,
    /// Conversations may be in bypass and autonomous.
    pub loose_modes: LooseModes,
    /// Where it is kept.
    pub persist: Persist,
    /// Every presented plan is kept as Markdown, too.
    pub mirror: bool,
}

/// The organisation's switch for modes that ask less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LooseModes {
    /// A person may choose them on a screen.
    #[default]
    Allow,
    /// Nobody may; what is approved in one is carried out in default.
    Disable,
}

/// Whether a voice may loosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VoiceExit {
    /// Leaving and approving are asked about once more, by voice.
    #[default]
    Confirm,
    /// A voice can only tighten; leaving and approving need a screen.
    Off,
}

/// What a voice may decide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VoiceConfig {
    /// Whether it may loosen.
    pub exit: VoiceExit,
}

/// How much is asked about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutonomyConfig {
    /// The level until somebody sets another at run time.
    pub level: Autonomy,
}

/// Recordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordConfig {
    /// The sound of conversations is kept.
    pub enabled: bool,
}

/// Sizes and counts.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsConfig {
    /// Conversations that are open at once.
    pub sessions: u32,
    /// Sockets that are open at once.
    pub clients: u32,
    /// Largest message of a client, in KiB.
    pub message_kib: u32,
    /// Sound a client may send ahead of its commit, in seconds.
    pub audio_s: u32,
    /// A session log larger than this is rewritten, in MiB.
    pub log_mib: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self { Self { sessions: 16, clients: 200, message_kib: 1024, audio_s: 60, log_mib: 64 } }
}
