//! What every command that holds conversations needs: the home, the configuration, the trades and the doors, put together once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::prompts;
use crate::agent::{self, Agent};
use crate::config::{self, Config, Flag, LooseModes, Persist, VoiceExit};
use crate::engine::grammar::{Scored, phrase_table_of};
use crate::engine::guard::Guard;
use crate::engine::intent::followed_below;
use crate::engine::language::Language;
use crate::engine::mode::{Mode, Trust, start_mode};
use crate::engine::session::EngineConfig;
use crate::engine::turn::{EarSettings, TurnJudge};
#[cfg(feature = "voice")]
use crate::listen::{silero::SileroModel, smart_turn::SmartTurn};
use crate::listen::vad::VadMaker;
use crate::models;
use crate::provider::{self, Provider};
use crate::server::auth::Keys as DoorKeys;
use crate::server::{Doors, realtime, sockets};
use crate::session::hub::{Hub, HubConfig};
use crate::session::parts::{Cleaning, Parts};
use crate::store::home::{Home, HomeLock};
use crate::store::keys::{Grade, Keys};
use crate::store::log::Sessions;
use crate::store::settings::Settings;
use crate::store::todo::TodoMirror;
use crate::stt::{self, PoolConfig, Recogniser};
use crate::tools::{BuiltinContext, Catalogue};
use crate::tts::{self, Voice, VoiceSettings, cache::Cached, fallback::WithFallback, speakable::speakable};

/// The gateway's short sentences are rendered this long after the start.
const HEAD_START: std::time::Duration = std::time::Duration::from_secs(2);

/// Why a command cannot start. Its text is for a person; `code` is the process's exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    /// 1: something failed. 2: arguments, configuration or input are wrong.
    pub code: u8,
    /// What to read.
    pub message: String,
}

impl Trouble {
    /// Something failed.
    pub fn failed(message: impl ToString) -> Self { Self { code: 1, message: message.to_string() } }
    /// Something given is wrong.
    pub fn wrong(message: impl ToString) -> Self { Self { code: 2, message: message.to_string() } }
}

/// Which agent answers.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct AgentArgs {
    /// Agent: commander (built in), or openai for any OpenAI-compatible server
    #[arg(long, value_name = "KIND")]
    pub agent: Option<String>,
    /// Root of an OpenAI-compatible API, such as http://127.0.0.1:11434/v1
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Model the agent uses
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// Variables, home and configuration.
pub struct Place {
    /// The process's variables.
    pub variables: Vec<(String, String)>,
    /// Where everything lies.
    pub home: Home,
    /// What holds.
    pub config: Config,
    /// Where the weights lie.
    pub models: PathBuf,
}

impl Place {
    /// Reads variables and configuration; every mistake at once.
    ///
    /// # Errors
    /// [`Trouble`] with exit code 2.
    pub fn find(file: Option<&Path>, flags: &[Flag]) -> Result<Place, Trouble> {
        let variables = config::environment();
        let home = Home::find(|name| config::variable(&variables, name)).map_err(Trouble::wrong)?;
        let default = home.config_file();
        let config = Config::load(file.unwrap_or(&default), file.is_none(), &variables, flags).map_err(Trouble::wrong)?;
        let models = config::models_dir(&variables).ok_or_else(|| Trouble::wrong("no folder for models: set VOXGATE_MODELS or HOME"))?;
        Ok(Place { variables, home, config, models })
    }

    /// Makes the home's folders and takes it for this process.
    ///
    /// # Errors
    /// [`Trouble`]: another process has it (and who), or the disk refuses.
    pub fn hold(&self, what: &str) -> Result<HomeLock, Trouble> {
        self.home.create().map_err(Trouble::failed)?;
        HomeLock::take(&self.home, what).map_err(Trouble::failed)
    }

    /// The model file that is configured, checked to be there.
    ///
    /// # Errors
    /// [`Trouble`] that names the command which brings it.
    pub fn listener_model(&self) -> Result<PathBuf, Trouble> {
        let name = &self.config.stt.model;
        if name.contains('/') || name.ends_with(".bin") {
            let path = PathBuf::from(name);
            return if path.is_file() { Ok(path) } else { Err(Trouble::failed(format!("stt.model: there is no file {name}"))) };
        }
        models::Store::new(&self.models).and_then(|s| s.main_file(name)).map_err(Trouble::failed)
    }

    /// Everything that can be done, by manifest.
    ///
    /// # Errors
    /// [`Trouble`] with every mistake in every manifest.
    pub fn catalogue(&self) -> Result<Catalogue, Trouble> {
        let dir = self.home.tools_dir();
        Catalogue::load(true, dir.is_dir().then_some(dir.as_path()))
            .map_err(|errors| Trouble::wrong(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
    }

    /// Starts ears, voice and agent.
    ///
    /// # Errors
    /// [`Trouble`] that says what is missing and what mends it.
    pub async fn parts(&self) -> Result<Parts, Trouble> {
        let catalogue = self.catalogue()?;
        let agent = self.agent(&catalogue)?;
        let (recogniser, voice) = tokio::try_join!(self.recogniser(), self.voice())?;
        Ok(Parts { recogniser, vad: self.vad(), language: self.config.stt.language.clone(), judge: self.judge(), judge_waits: self.judge_waits(), voice, agent, catalogue, cleaning: self.cleaning() })
    }

    /// The detector of voice that is configured; without its weights the lighter one, with a warning.
    #[cfg(feature = "voice")]
    pub fn vad(&self) -> VadMaker {
        if self.config.listen.vad != "confirmed" {
            return VadMaker::default();
        }
        let model = self.weights(models::VOICE_CONFIRMER).and_then(|bytes| SileroModel::from_bytes(bytes).map_err(|e| e.to_string()));
        match model {
            Ok(model) => VadMaker::confirmed(model),
            Err(why) => {
                tracing::warn!("listen.vad = \"earshot\" is used: {why}");
                VadMaker::default()
            }
        }
    }

    /// The detector of this build, which has but one.
    #[cfg(not(feature = "voice"))]
    pub fn vad(&self) -> VadMaker { VadMaker::default() }

    /// The checked bytes of a model's main file.
    #[cfg(feature = "voice")]
    fn weights(&self, id: &str) -> Result<Vec<u8>, String> {
        let store = models::Store::new(&self.models).map_err(|e| e.to_string())?;
        let file = store.manifest().model(id).map_err(|e| e.to_string())?.main_file().unwrap_or("model").to_owned();
        store.read(id, &file).map_err(|e| e.to_string())
    }

    /// The language that is spoken.
    pub fn language(&self) -> Language { Language::of(&self.config.stt.language) }

    /// The sentences that are scored where this language is spoken: none in a language without sentences.
    pub fn phrase_table(&self) -> Vec<Scored> { phrase_table_of(self.language()) }

    /// The numbers of turn taking, as configured, and the language.
    pub fn ear_settings(&self) -> EarSettings {
        let listen = &self.config.listen;
        EarSettings {
            on: listen.threshold, off: (listen.threshold - 0.15).max(0.05), silence_ms: listen.silence_ms.into(), answer_silence_ms: listen.answer_silence_ms.into(),
            loosen_silence_ms: listen.consent_silence_ms.into(), look_ms: listen.look_ms.into(), command_silence_ms: listen.command_silence_ms.into(),
            complete_silence_ms: listen.complete_silence_ms.into(), unfinished_silence_ms: listen.unfinished_silence_ms.into(), duck_ms: listen.duck_ms.into(),
            barge_in_ms: listen.barge_in_ms.into(), false_interruption_ms: listen.resume_ms.into(), join_ms: listen.join_ms.into(), language: self.language(), ..EarSettings::default()
        }
    }

    /// Who says whether a turn sounds complete; nobody where its weights have not been brought.
    #[cfg(feature = "voice")]
    pub fn judge(&self) -> Option<Arc<dyn TurnJudge>> {
        match self.weights(models::TURN_JUDGE).and_then(|bytes| SmartTurn::from_bytes(bytes).map_err(|e| e.to_string())) {
            Ok(judge) => Some(Arc::new(Judge(std::sync::Mutex::new(judge)))),
            Err(why) => {
                tracing::warn!("turns end by silence and words alone: {why}");
                None
            }
        }
    }

    /// This build has no judge of turns.
    #[cfg(not(feature = "voice"))]
    pub fn judge(&self) -> Option<Arc<dyn TurnJudge>> { None }

    fn cleaning(&self) -> Cleaning {
        let listen = &self.config.listen;
        Cleaning { echo_canceller: listen.echo_canceller, noise_suppression: listen.noise_suppression }
    }

    /// Starts the ears alone, as configured.
    ///
    /// # Errors
    /// [`Trouble`] that says what is missing and what mends it.
    pub async fn recogniser(&self) -> Result<Arc<dyn Recogniser>, Trouble> {
        let settings = match self.config.stt.kind.as_str() {
            "scripted" => stt::Settings::Scripted(Vec::new()),
            _ => stt::Settings::Whisper(self.listeners()?),
        };
        stt::start(settings).await.map_err(Trouble::failed)
    }

    /// The recogniser's processes, as configured: model, phrases, and how far each is followed.
    ///
    /// # Errors
    /// [`Trouble`] that names the command which brings the model.
    pub fn listeners(&self) -> Result<PoolConfig, Trouble> {
        let program = std::env::current_exe().map_err(|e| Trouble::failed(format!("this program cannot find itself: {e}")))?;
        let table = self.phrase_table();
        let margins = table.iter().map(|s| followed_below(s.meaning.class())).collect();
        let phrases = table.into_iter().map(|s| s.phrase).collect();
        Ok(PoolConfig { threads: self.listener_threads(), workers: self.config.stt.workers.max(1) as usize, margins, ..PoolConfig::new(program, self.listener_model()?, phrases) })
    }

    fn listener_threads(&self) -> usize { match self.config.stt.threads { 0 => free_threads(self.config.stt.workers), n => n as usize } }

    /// The recogniser has every core.
    fn judge_waits(&self) -> bool { self.listener_threads() * self.config.stt.workers.max(1) as usize >= cores() }

    async fn voice(&self) -> Result<Arc<dyn Voice>, Trouble> {
        let spare = self.spare_voice().await;
        let first = match (self.first_voice().await, spare) {
            (Ok(first), Some(spare)) => Arc::new(WithFallback::new(first, spare)),
            (Ok(first), None) => first,
            (Err(trouble), Some(spare)) => {
                eprintln!("voxgate: {} speaks: {trouble}", spare.name());
                tracing::warn!("{} speaks: {trouble}", spare.name());
                spare
            }
            (Err(trouble), None) => return Err(trouble),
        };
        let cached = Arc::new(Cached::new(first));
        let warming = cached.clone();
        tokio::spawn(async move { warming.prewarm(prompts::all().iter().map(|p| speakable(p)).collect(), HEAD_START).await });
        Ok(cached)
    }

    /// Who speaks where the default voice cannot: the first program that is installed and does. None beside another voice.
    async fn spare_voice(&self) -> Option<Arc<dyn Voice>> {
        if self.config.tts.kind != models::DEFAULT_VOICE {
            return None;
        }
        let settings = VoiceSettings { speed: self.config.tts.speed, ..VoiceSettings::default() };
        for kind in ["flite", "espeak"] {
            if let Ok(voice) = tts::open(kind, &settings)
                && voice.synthesise("Ready.".into()).await.is_ok_and(|s| !s.samples.is_empty()) { return Some(voice) }
        }
        None
    }

    async fn first_voice(&self) -> Result<Arc<dyn Voice>, Trouble> {
        let kind = self.config.tts.kind.clone();
        let store = models::Store::new(&self.models).map_err(Trouble::failed)?;
        let model_dir = if kind == models::DEFAULT_VOICE {
            let file = store.main_file(models::DEFAULT_VOICE).map_err(Trouble::failed)?;
            file.parent().map(Path::to_path_buf).unwrap_or_default()
        } else {
            PathBuf::new()
        };
        let settings = VoiceSettings { model_dir, voice: String::new(), speed: self.config.tts.speed };
        let opened = tokio::task::spawn_blocking(move || tts::open(&kind, &settings)).await.map_err(Trouble::failed)?;
        opened.map_err(Trouble::failed)
    }

    /// The agent that is configured.
    ///
    /// # Errors
    /// [`Trouble`] when its settings cannot work.
    pub fn agent(&self, catalogue: &Catalogue) -> Result<Arc<dyn Agent>, Trouble> {
        if self.config.agent.kind == agent::openai::NAME {
            return Ok(Arc::new(self.openai()?));
        }
        Ok(Arc::new(agent::commander::Commander::new(catalogue.sentences().to_vec())))
    }

    /// The language model's client, as configured.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn openai(&self) -> Result<agent::openai::OpenAi, Trouble> {
        let mut settings = agent::openai::Settings::new(self.config.agent.url(), &self.config.agent.model);
        settings.api_key = self.config.agent.api_key.as_ref().map(|k| k.expose().to_string());
        agent::openai::OpenAi::new(settings).map_err(Trouble::wrong)
    }

    /// The gateway's own folder, which no tool touches whatever the mode; its notes are there for tools.
    fn guard(&self) -> Guard {
        let home = &self.home;
        let own = [home.config_file(), home.tools_dir(), home.keys_dir(), home.sessions_dir(), home.trash_dir(), home.todos_file(), home.plans_dir(), home.settings_file()].map(|p| p.display().to_string());
        let base = self.config.tools.files_root.as_ref().map_or(String::new(), |root| root.display().to_string());
        Guard::over(&own, &base)
    }

    /// The hub of all conversations of this home.
    pub fn hub(&self, parts: Parts) -> Hub {
        let (settings, told) = Settings::load(&self.home);
        let (todos, told_todos) = TodoMirror::load(&self.home);
        told.iter().chain(told_todos.iter()).for_each(|t| tracing::warn!("{t}"));
        let loose_modes = self.config.plan.loose_modes == LooseModes::Allow;
        let start = start_mode(&[(Trust::User, self.config.plan.start.word())], loose_modes);
        let engine = EngineConfig {
            ear: self.ear_settings(), autonomy: self.config.autonomy.level, voice_exit: self.config.voice.exit == VoiceExit::Confirm,
            start_in_plan: start == Mode::Plan, start_ask: start.ask().unwrap_or_default(), loose_modes, completion: self.config.plan.completion, rules: Arc::new(self.config.tools.rules.clone()),
            guard: Arc::new(self.guard()), instructions: self.config.agent.instructions.clone(), tools: Arc::new([]),
        };
        Hub::new(HubConfig {
            parts, engine, settings, todos, plans: self.config.plan.mirror.then(|| self.home.plans_dir()),
            builtins: BuiltinContext { notes_dir: self.home.notes_dir(), files_root: self.config.tools.files_root.clone() },
            sessions: Sessions::of(&self.home).with_cap(u64::from(self.config.limits.log_mib) << 20),
            most: self.config.limits.sessions as usize, keep_plan: self.config.plan.persist == Persist::Log, record: self.config.record.enabled,
        })
    }

    /// Opens the listening socket.
    ///
    /// # Errors
    /// [`Trouble`] that says who has the port, as far as that is known, and what to do.
    pub async fn listen(&self) -> Result<TcpListener, Trouble> {
        let server = &self.config.server;
        let address = socket_address("server.address", &server.address, server.port)?;
        if !address.ip().is_loopback() {
            let host = address.ip();
            return Err(Trouble::wrong(format!("server.address: {host} can be reached from elsewhere and this port has no TLS; leave it at 127.0.0.1 and set server.tls = true and server.tls_address = \"{host}\"")));
        }
        bind(address, "choose one with --port N, or --port 0 for any free one").await
    }

    /// The providers that are set up. A key that belongs to a kind's own service goes nowhere else.
    fn providers(&self) -> Result<Arc<[Arc<Provider>]>, Trouble> {
        let realtime = &self.config.realtime;
        realtime.models.iter().map(|row| {
            let kind = provider::kind(&row.kind).ok_or_else(|| Trouble::wrong(format!("realtime.models: there is no kind {}", row.kind)))?;
            let general = || realtime.keys.iter().find(|(of, _)| *of == row.kind).map(|(_, key)| key.clone());
            let own = row.url.is_empty() || row.url == kind.url;
            // Azure's address is always named, and its variable is for it alone.
            let key = if own || kind.url.is_empty() { realtime.api_key.clone().filter(|_| !own).or_else(general) } else { realtime.api_key.clone() };
            let url = if row.url.is_empty() { kind.url.to_string() } else { row.url.clone() };
            Ok(Arc::new(Provider { name: row.name.clone(), kind, url, model: row.model.clone(), key, listens: realtime.listen }))
        }).collect()
    }

    /// The doors over a hub.
    ///
    /// # Errors
    /// [`Trouble`] when the keys cannot be read or made.
    pub fn doors(&self, hub: Arc<Hub>, metrics: Option<metrics_exporter_prometheus::PrometheusHandle>) -> Result<Doors, Trouble> {
        let keys = Keys::load_or_create(&self.home).map_err(Trouble::failed)?;
        let providers = self.providers()?;
        let models = std::iter::once("voxgate".to_string()).chain(providers.iter().map(|p| p.name.clone())).collect();
        let wire = move |socket, handle, query| speak_realtime(socket, handle, query, Arc::clone(&providers));
        let mut doors = Doors::new(hub, Arc::new(FileKeys::new(&self.home, keys)), Arc::new(wire));
        doors.metrics = metrics;
        doors.models = models;
        doors.hosts = self.config.server.allowed_hosts.clone();
        doors.origins = self.config.server.allowed_origins.clone();
        doors.limits.connections = self.config.limits.clients as usize;
        doors.limits.realtime_message_max = realtime::MESSAGE_MAX.max(doors.limits.realtime_message_max);
        Ok(doors)
    }
}

/// An address of the settings, which name IP addresses or `localhost`.
pub(super) fn socket_address(key: &str, host: &str, port: u16) -> Result<SocketAddr, Trouble> {
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    host.parse().map(|ip| SocketAddr::new(ip, port)).map_err(|_| Trouble::wrong(format!("{key}: {host} is no IP address")))
}

/// Listens there. `mend` is what to do when somebody else does.
pub(super) async fn bind(address: SocketAddr, mend: &str) -> Result<TcpListener, Trouble> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Trouble::failed(format!("port {} of {} is taken by another program; {mend}", address.port(), address.ip())),
        _ => Trouble::failed(format!("{address} cannot be listened on: {error}")),
    })
}

/// The judge of turns, for one look at a time.
#[cfg(feature = "voice")]
struct Judge(std::sync::Mutex<SmartTurn>);

#[cfg(feature = "voice")]
impl TurnJudge for Judge {
    fn complete(&self, sound: &[i16]) -> f32 { self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).complete(sound) }
}

/// Threads of one recogniser. Two hear nearly twice as fast on free cores and many times slower on busy ones (they wait for each
/// other by spinning), so a second is taken only where every worker can have two and two cores are left.
fn cores() -> usize { std::thread::available_parallelism().map_or(1, usize::from) }

fn free_threads(workers: u32) -> usize {
    if cores() >= 2 * workers.max(1) as usize + 2 { 2 } else { 1 }
}

async fn speak_realtime(socket: axum::extract::ws::WebSocket, handle: crate::session::handle::Handle, query: sockets::RealtimeQuery, providers: Arc<[Arc<Provider>]>) {
    realtime::run(socket, handle, realtime::RealtimeQuery { model: query.model, conversation: query.conversation, plan: query.plan, session: query.session, speaks: query.speaks }, providers).await;
}

/// The keys of the home, as the doors ask for them. Clients that are added and revoked by commands are noticed.
struct FileKeys {
    home: Home,
    held: std::sync::RwLock<Keys>,
    /// When the folder had last changed when it was read, in Unix milliseconds.
    seen: std::sync::atomic::AtomicU64,
}

impl DoorKeys for FileKeys {
    fn operator(&self, presented: &[u8]) -> bool { self.grade(presented) == Some(Grade::Operator) }
    fn client(&self, presented: &[u8]) -> bool { self.grade(presented) == Some(Grade::Client) }
    fn stands(&self, key: &[u8; 32]) -> bool { self.held().stands(key) }

    fn refresh(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        let Some(changed) = Keys::changed_ms(&self.home) else { return false };
        // A second change in the same tick of the disk's clock looks like none, so what is young is read again.
        let is_old = crate::session::clock::unix_ms().saturating_sub(changed) > 2_000;
        if self.seen.swap(changed, Relaxed) == changed && is_old { return false }
        let mut fresh = self.held().clone();
        match fresh.reload(&self.home) {
            Ok(()) => *self.held.write().unwrap_or_else(std::sync::PoisonError::into_inner) = fresh,
            Err(error) => tracing::error!(%error, "the clients' keys cannot be read; those of before stay"),
        }
        true
    }
}

impl FileKeys {
    fn new(home: &Home, keys: Keys) -> Self {
        Self { home: home.clone(), seen: std::sync::atomic::AtomicU64::new(Keys::changed_ms(home).unwrap_or(0)), held: std::sync::RwLock::new(keys) }
    }

    fn held(&self) -> std::sync::RwLockReadGuard<'_, Keys> { self.held.read().unwrap_or_else(std::sync::PoisonError::into_inner) }

    fn grade(&self, presented: &[u8]) -> Option<Grade> { std::str::from_utf8(presented).ok().and_then(|key| self.held().grade(key)) }
}

/// Logs go to stderr, as `RUST_LOG` says; warnings alone where it says nothing.
pub fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

/// Does the work of a command that waits for things, with its log on stderr. What still computes then is left behind after 2 s.
///
/// # Errors
/// The work's; a system that gives no threads.
pub fn logged(work: impl Future<Output = Result<ExitCode, Trouble>>) -> Result<ExitCode, Trouble> {
    start_logging();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Trouble::failed)?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(Duration::from_secs(2));
    done
}

/// Counts for `/metrics`; `None` when another recorder is there already.
pub fn start_metrics() -> Option<metrics_exporter_prometheus::PrometheusHandle> {
    metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().ok()
}

/// Ends on Ctrl-C or a polite kill.
pub async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = terminate.recv() => {} },
        Err(_) => { let _ = tokio::signal::ctrl_c().await; }
    }
}
