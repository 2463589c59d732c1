//! The conversations of this process and of its store: opened, restored, listed, ended. The one implementation of
//! [`Conversations`] for the product.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use super::clock::unix_ms;
use super::driver::{Driver, OpenRecording};
use super::handle::Handle;
use super::parts::{Journal, NoJournal, Parts};
use super::registry::{Conversations, Listed, OpenRefused, Which};
use crate::engine::event::{Event, EventKind};
use crate::engine::mode::{AskPolicy, Autonomy, Posture};
use crate::engine::plan::PlanVersion;
use crate::engine::session::{Engine, EngineConfig};
use crate::store::ids;
use crate::store::log::{LogError, SessionLog, Sessions};
use crate::store::plan_mirror;
use crate::store::settings::Settings;
use crate::store::todo::TodoMirror;
use crate::tools::{BuiltinContext, ToolRunner};

/// What a hub is made with.
pub struct HubConfig {
    /// The trades.
    pub parts: Parts,
    /// For every engine; the autonomy level in it is the configured one.
    pub engine: EngineConfig,
    /// For the built-in tools.
    pub builtins: BuiltinContext,
    /// The logs.
    pub sessions: Sessions,
    /// What was set at run time.
    pub settings: Settings,
    /// The todo mirror.
    pub todos: TodoMirror,
    /// Where plans are mirrored, if they are.
    pub plans: Option<PathBuf>,
    /// Conversations that run at once.
    pub most: usize,
    /// False: plan mode is not kept over a restart.
    pub keep_plan: bool,
    /// The sound of conversations is kept beside their logs.
    pub record: bool,
}

struct Running {
    handle: Handle,
    attached: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    running: HashMap<String, Running>,
    tasks: JoinSet<()>,
}

/// See the file's head.
pub struct Hub {
    config: HubConfigInner,
    state: Mutex<State>,
    settings: Mutex<(Settings, Autonomy)>,
}

struct HubConfigInner {
    parts: Parts,
    engine: EngineConfig,
    builtins: BuiltinContext,
    sessions: Sessions,
    todos: Arc<Mutex<TodoMirror>>,
    plans: Option<PathBuf>,
    most: usize,
    keep_plan: bool,
    record: bool,
}

/// Writes a conversation's events down, and its todo list and plans beside them.
struct LogJournal {
    log: SessionLog,
    todos: Arc<Mutex<TodoMirror>>,
    plans: Option<PathBuf>,
    /// The newest version, for the mirror of plans.
    newest: Option<PlanVersion>,
}

impl Journal for LogJournal {
    fn append(&mut self, event: &Event) -> Result<(), String> {
        if let EventKind::Todo(items) = &event.kind {
            let mut todos = self.todos.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = todos.set(self.log.id(), items, event.at_ms) {
                tracing::warn!(%error, "the todo mirror could not be written; the list is in the log");
            }
        }
        if let Some(folder) = &self.plans {
            if let Err(error) = plan_mirror::write(folder, self.log.id(), &event.kind, self.newest.as_ref()) {
                tracing::warn!(%error, "a plan could not be mirrored; it is in the log");
            }
            if let EventKind::Presented(plan) = &event.kind { self.newest = Some(plan.clone()) }
        }
        self.log.append(event).map_err(|e| e.to_string())
    }

    fn settle(&mut self) {
        if let Err(error) = self.log.sync() {
            tracing::error!(%error, "the log could not be brought to disk");
        }
    }
}

impl Hub {
    /// A hub with nothing running.
    pub fn new(config: HubConfig) -> Self {
        let level = config.settings.autonomy().unwrap_or(config.engine.autonomy);
        let HubConfig { parts, engine, builtins, sessions, settings, todos, plans, most, keep_plan, record } = config;
        Self {
            config: HubConfigInner { parts, engine, builtins, sessions, todos: Arc::new(Mutex::new(todos)), plans, most, keep_plan, record },
            state: Mutex::default(),
            settings: Mutex::new((settings, level)),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> { self.state.lock().unwrap_or_else(PoisonError::into_inner) }

    fn level(&self) -> Autonomy { self.settings.lock().unwrap_or_else(PoisonError::into_inner).1 }

    /// The driver of a conversation, for a caller that runs it itself (`talk`). It is found by others from now on.
    ///
    /// # Errors
    /// [`OpenRefused`]; [`OpenRefused::Unknown`] also when it runs already.
    pub fn make(&self, which: Which) -> Result<(Driver, Handle), OpenRefused> {
        let mut state = self.state();
        state.running.retain(|_, r| r.handle.is_alive());
        if state.running.len() >= self.config.most {
            // One that nobody watches or listens to makes room; it can be opened again where it was.
            let idle = state.running.iter().filter(|(_, r)| r.attached.load(Ordering::Relaxed) == 0).min_by_key(|(id, _)| id.as_str()).map(|(id, _)| id.clone());
            if let Some(resting) = idle.and_then(|id| state.running.remove(&id)) {
                resting.handle.rest();
            }
        }
        if state.running.len() >= self.config.most {
            return Err(OpenRefused::Full(self.config.most));
        }
        let id = self.id_of(which)?;
        let (id, engine, journal) = match id {
            Some(id) => self.restored(id)?,
            None => self.fresh()?,
        };
        let (handle, commands) = Handle::channel(&id);
        let attached = Arc::new(AtomicUsize::new(0));
        let runner = ToolRunner::new(self.config.parts.catalogue.clone(), engine.gate(), self.config.builtins.clone()).with_session(&id);
        let driver = Driver::new(&id, engine, self.config.parts.clone(), runner, journal, commands, attached.clone());
        let driver = if self.config.record { driver.with_recorder(self.recorder(&id)) } else { driver };
        state.running.insert(id, Running { handle: handle.clone(), attached });
        Ok((driver, handle))
    }

    fn recorder(&self, id: &str) -> OpenRecording {
        let (sessions, id) = (self.config.sessions.clone(), id.to_string());
        Box::new(move || sessions.new_recording(&id).map_err(|error| error.to_string()))
    }

    fn id_of(&self, which: Which) -> Result<Option<String>, OpenRefused> {
        match which {
            Which::New => Ok(None),
            Which::Id(id) => Ok(Some(id)),
            Which::Last => {
                let listed = self.config.sessions.list().map_err(|e| OpenRefused::Broken(e.to_string()))?;
                Ok(listed.into_iter().next().map(|s| s.id))
            }
        }
    }

    fn engine_config(&self) -> EngineConfig {
        EngineConfig { autonomy: self.level(), tools: self.config.parts.catalogue.specs().to_vec().into(), ..self.config.engine.clone() }
    }

    fn fresh(&self) -> Result<(String, Engine, Box<dyn Journal>), OpenRefused> {
        let now = unix_ms();
        let id = ids::session_id(now).map_err(|e| OpenRefused::Broken(e.to_string()))?;
        let journal: Box<dyn Journal> = match self.config.sessions.create(&id, now) {
            Ok(log) => Box::new(LogJournal { log, todos: self.config.todos.clone(), plans: self.config.plans.clone(), newest: None }),
            Err(error) => {
                tracing::error!(%error, "a conversation is held without a log");
                Box::new(NoJournal)
            }
        };
        Ok((id, Engine::new(self.engine_config(), now), journal))
    }

    fn restored(&self, id: String) -> Result<(String, Engine, Box<dyn Journal>), OpenRefused> {
        let (log, replay) = match self.config.sessions.open(&id) {
            Ok(opened) => opened,
            Err(LogError::Unknown(_) | LogError::BadId(_)) => return Err(OpenRefused::Unknown(id)),
            Err(error) => return Err(OpenRefused::Broken(error.to_string())),
        };
        if let Some(damage) = &replay.damage {
            tracing::error!(session = %id, ?damage, "the log was damaged; what could be read is used");
        }
        let mut snapshot = replay.snapshot();
        if snapshot.in_plan() && !self.config.keep_plan && !self.config.engine.start_in_plan {
            snapshot.stamp.posture = Posture::Default;
            snapshot.ask = AskPolicy::Ask;
        }
        let newest = snapshot.newest().cloned();
        let engine = Engine::restore(self.engine_config(), snapshot, unix_ms(), replay.must_plan());
        Ok((id, engine, Box::new(LogJournal { log, todos: self.config.todos.clone(), plans: self.config.plans.clone(), newest })))
    }

    fn find_or_start(&self, which: Which) -> Result<Handle, OpenRefused> {
        if let Some(handle) = self.find(&which)? {
            return Ok(handle);
        }
        let (driver, handle) = self.make(which)?;
        self.state().tasks.spawn(driver.run());
        Ok(handle)
    }

    fn find(&self, which: &Which) -> Result<Option<Handle>, OpenRefused> {
        let id = match which {
            Which::New => return Ok(None),
            Which::Id(id) => Some(id.clone()),
            Which::Last => self.id_of(Which::Last)?,
        };
        let state = self.state();
        Ok(id.and_then(|id| state.running.get(&id)).map(|r| r.handle.clone()).filter(Handle::is_alive))
    }

    /// Ends every conversation that this hub runs and waits for them.
    pub async fn close(&self, reason: &str) {
        let (handles, mut tasks) = {
            let mut state = self.state();
            (state.running.drain().map(|(_, r)| r.handle).collect::<Vec<_>>(), std::mem::take(&mut state.tasks))
        };
        for handle in handles {
            handle.close(reason).await;
        }
        while tasks.join_next().await.is_some() {}
    }

    fn listed(&self) -> Vec<Listed> {
        let state = self.state();
        let known = self.config.sessions.list().unwrap_or_else(|error| {
            tracing::error!(%error, "the conversations could not be listed");
            Vec::new()
        });
        known.into_iter().map(|s| {
            let running = state.running.get(&s.id).filter(|r| r.handle.is_alive());
            Listed {
                title: s.title, started_ms: s.started_ms, last_ms: s.last_ms, mode: s.mode.to_string(),
                attached: running.map_or(0, |r| r.attached.load(Ordering::Relaxed)), running: running.is_some(), id: s.id,
            }
        }).collect()
    }
}

impl Conversations for Hub {
    fn open(&self, which: Which) -> BoxFuture<'_, Result<Handle, OpenRefused>> { Box::pin(async move { self.find_or_start(which) }) }

    fn list(&self) -> BoxFuture<'_, Vec<Listed>> { Box::pin(async move { self.listed() }) }

    fn autonomy(&self) -> Autonomy { self.level() }

    fn set_autonomy(&self, to: Autonomy) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let written = {
                let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
                settings.1 = to;
                settings.0.set_autonomy(to)
            };
            let handles: Vec<Handle> = self.state().running.values().map(|r| r.handle.clone()).collect();
            for handle in handles {
                handle.autonomy(to).await;
            }
            if let Err(error) = &written {
                tracing::error!(%error, "the autonomy level holds, but could not be written down");
            }
            written.is_ok()
        })
    }
}
