//! A few recogniser processes that serve every session.
//!
//! Owns the queue, the workers and the life of their processes: a crash costs the utterance that was being heard and nothing
//! else. Called through [`Recogniser`]. Whoever starts a pool keeps it; dropping it ends the processes,
//! [`WhisperPool::shutdown`] also waits for them.
#![allow(clippy::disallowed_methods, reason = "a pause before a restart is the wall's")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::process::{Process, ProcessError};
use self::queue::Queue;
use super::wire::{SentPhrase, encode_start};
use super::{Job, Recogniser, SttError};
use crate::engine::heard::{Heard, Phrase};

mod process;
mod queue;

/// Utterances that may wait for each worker. More means that answers would come too late to be of use.
const QUEUE_PER_WORKER: usize = 8;
/// Pause before a process that failed without having served is started again; doubled each time up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(10);
/// A recognition takes about half a second; a machine that needs 20 s more cannot hold a conversation anyway.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long [`WhisperPool::shutdown`] waits for the processes.
const GOODBYE: Duration = Duration::from_secs(5);

/// Nats below the free transcript to which a phrase is followed unless told otherwise: the widest rule (6 for harmless
/// commands) and the lead of 2 that it must have over its rivals.
pub const DEFAULT_MARGIN: f32 = 8.0;

/// What a pool needs.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The voxgate binary itself.
    pub program: PathBuf,
    /// The ggml file.
    pub model: PathBuf,
    /// Threads for one recognition. Two on two cores are faster when nothing else runs and far slower when something does.
    pub threads: usize,
    /// Processes.
    pub workers: usize,
    /// The spoken grammar.
    pub phrases: Vec<Phrase>,
    /// For each phrase, by its place in `phrases`, how many nats below the free transcript it is still followed; where this is
    /// shorter, [`DEFAULT_MARGIN`]. Narrow ones save time: dangerous phrases are refused further down anyway.
    pub margins: Vec<f32>,
    /// How long a process may take for an utterance on top of the utterance's own length before it counts as frozen.
    pub patience: Duration,
    /// True: the processes transcribe as the native library itself would, without scores. For measurements.
    pub plain: bool,
}

impl PoolConfig {
    /// One process with one thread, 20 s of patience.
    pub fn new(program: impl Into<PathBuf>, model: impl Into<PathBuf>, phrases: Vec<Phrase>) -> Self {
        Self {
            program: program.into(),
            model: model.into(),
            threads: 1,
            workers: 1,
            phrases,
            margins: Vec::new(),
            patience: PATIENCE,
            plain: false,
        }
    }

    fn start_frame(&self) -> Result<Vec<u8>, SttError> {
        let margins = self.margins.iter().copied().chain(std::iter::repeat(DEFAULT_MARGIN));
        let sent: Vec<_> = self.phrases.iter().zip(margins).map(|(phrase, margin)| SentPhrase::new(phrase, margin)).collect();
        encode_start(&sent).map_err(|why| SttError::Unavailable(format!("the phrase table: {why}")))
    }
}

struct Ask {
    job: Job,
    came: Instant,
    answer: oneshot::Sender<Answer>,
}

impl Ask {
    /// The session may have given the answer up; that is its right.
    fn answer(self, waited: Duration, result: Result<Heard, SttError>) {
        let _ = self.answer.send((waited, result));
    }

    fn turn_away(self, why: SttError) {
        metrics::counter!("voxgate_recognition_refused_total", "reason" => why.code()).increment(1);
        let waited = self.came.elapsed();
        self.answer(waited, Err(why));
    }
}

/// How long it waited, and what came of it.
type Answer = (Duration, Result<Heard, SttError>);

/// What workers and owner both see.
struct Shared {
    waiting: StdMutex<Queue<Ask>>,
    came: Notify,
    closed: AtomicBool,
    restarts: AtomicU64,
    live: AtomicUsize,
    pids: StdMutex<Vec<Option<u32>>>,
}

impl Shared {
    fn new(workers: usize) -> Self {
        Self {
            waiting: StdMutex::new(Queue::new(workers * QUEUE_PER_WORKER)), came: Notify::new(), closed: AtomicBool::new(false), restarts: AtomicU64::new(0),
            live: AtomicUsize::new(0), pids: StdMutex::new(vec![None; workers]),
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue<Ask>> { self.waiting.lock().unwrap_or_else(PoisonError::into_inner) }

    /// Puts one in its place; those that it makes void, or that make room for it, are told.
    fn push(&self, ask: Ask) {
        let mut queue = self.queue();
        if self.closed.load(Ordering::SeqCst) {
            return ask.turn_away(SttError::Unavailable("it was shut down".to_owned()));
        }
        let entered = queue.push(ask.job.order, ask);
        depth(queue.len());
        drop(queue);
        match entered {
            Err(ask) => ask.turn_away(SttError::Busy),
            Ok(entered) => {
                self.came.notify_one();
                entered.void.into_iter().for_each(|ask| ask.turn_away(SttError::Superseded));
                entered.displaced.into_iter().for_each(|ask| ask.turn_away(SttError::Busy));
            }
        }
    }

    /// The next utterance; `None` when the pool is shut down. May be given up at any time without losing one.
    async fn next(&self) -> Option<Ask> {
        loop {
            let came = self.came.notified();
            if self.closed.load(Ordering::SeqCst) {
                return None;
            }
            {
                let mut queue = self.queue();
                while let Some(ask) = queue.pop() {
                    depth(queue.len());
                    // What nobody waits for any more is not heard.
                    if ask.answer.is_closed() { continue }
                    if queue.len() > 0 { self.came.notify_one() }
                    return Some(ask);
                }
            }
            came.await;
        }
    }

    /// Nothing more comes; what waits is given up.
    fn close(&self) {
        let mut queue = self.queue();
        self.closed.store(true, Ordering::SeqCst);
        while let Some(ask) = queue.pop() { ask.turn_away(SttError::Unavailable("it was shut down".to_owned())) }
        drop(queue);
        self.came.notify_waiters();
    }
}

fn depth(waiting: usize) { metrics::gauge!("voxgate_recognition_queue").set(waiting as f64) }

/// A pool of Whisper processes.
pub struct WhisperPool {
    shared: Arc<Shared>,
    workers: JoinSet<()>,
}

impl WhisperPool {
    /// Starts the processes and waits until each has loaded its model.
    ///
    /// # Errors
    /// [`SttError::Unavailable`] with the reason: program or model missing, model damaged, phrase table unusable.
    pub async fn start(config: PoolConfig) -> Result<Self, SttError> {
        let count = config.workers.clamp(1, 64);
        let start_frame: Arc<[u8]> = config.start_frame()?.into();
        let config = Arc::new(config);
        let shared = Arc::new(Shared::new(count));
        let mut workers = JoinSet::new();
        for index in 0..count {
            let mut worker = Worker {
                index,
                config: config.clone(),
                start_frame: start_frame.clone(),
                shared: shared.clone(),
                failures: 0,
            };
            let process = worker.spawn().await.map_err(|why| SttError::Unavailable(why.to_string()))?;
            workers.spawn(worker.run(process));
        }
        Ok(Self { shared, workers })
    }

    /// How often a process had to be started again.
    pub fn restarts(&self) -> u64 {
        self.shared.restarts.load(Ordering::Relaxed)
    }

    /// Processes that are ready or at work.
    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Relaxed)
    }

    /// Process ids of the workers that run, for `doctor` and tests.
    pub fn pids(&self) -> Vec<u32> {
        self.shared.pids.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().copied().collect()
    }

    /// Ends the pool and waits for its processes: what is being heard is finished if it takes less than 5 s, what waits is
    /// given up.
    pub async fn shutdown(self) {
        let Self { shared, mut workers } = self;
        shared.close();
        let all = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(GOODBYE, all).await.is_err() {
            workers.shutdown().await;
        }
    }
}

impl Recogniser for WhisperPool {
    fn recognise(&self, job: Job) -> BoxFuture<'_, Result<Heard, SttError>> {
        async move { self.recognise_told(job).await.1 }.boxed()
    }

    fn recognise_told(&self, job: Job) -> BoxFuture<'_, Answer> {
        async move {
            if job.is_too_long() {
                tracing::warn!(samples = job.samples.len(), "an utterance is longer than 30 s; its end is not heard");
            }
            let (answer, result) = oneshot::channel();
            self.shared.push(Ask { job, came: Instant::now(), answer });
            result.await.unwrap_or_else(|_| (Duration::ZERO, Err(SttError::Unavailable("it was shut down".to_owned()))))
        }
        .boxed()
    }
}

struct Worker {
    index: usize,
    config: Arc<PoolConfig>,
    start_frame: Arc<[u8]>,
    shared: Arc<Shared>,
    /// Processes that ended since one last answered.
    failures: u32,
}

impl Worker {
    async fn run(mut self, mut process: Process) {
        loop {
            let ended = tokio::select! {
                ask = self.shared.next() => match ask {
                    None => return process.end().await,
                    Some(ask) => self.answer(&mut process, ask).await,
                },
                why = process.ended() => Some(why),
            };
            if let Some(why) = ended {
                self.gone(&why);
                drop(process);
                match self.revive(why).await {
                    Some(next) => process = next,
                    None => return,
                }
            }
        }
    }

    /// Has one utterance recognised. Gives the reason when the process is of no more use.
    async fn answer(&mut self, process: &mut Process, ask: Ask) -> Option<String> {
        let waited = ask.came.elapsed();
        metrics::histogram!("voxgate_recognition_wait_seconds").record(waited.as_secs_f64());
        let (result, ended) = match process.recognise(&ask.job).await {
            Ok(heard) => (Ok(heard), None),
            Err(ProcessError::Refused(why)) => (Err(SttError::Refused(why)), None),
            Err(ProcessError::TimedOut(time)) => {
                (Err(SttError::TimedOut { seconds: time.as_secs() }), Some("it gave no answer".to_owned()))
            }
            Err(error) => (Err(SttError::Crashed(error.to_string())), Some(error.to_string())),
        };
        if ended.is_none() {
            self.failures = 0;
        }
        ask.answer(waited, result);
        ended
    }

    async fn spawn(&mut self) -> Result<Process, ProcessError> {
        let process = Process::start(&self.config, &self.start_frame).await?;
        self.shared.live.fetch_add(1, Ordering::Relaxed);
        self.set_pid(process.pid());
        Ok(process)
    }

    fn gone(&self, why: &str) {
        tracing::warn!(worker = self.index, why, "a recogniser process ended");
        self.shared.live.fetch_sub(1, Ordering::Relaxed);
        self.set_pid(None);
    }

    fn set_pid(&self, pid: Option<u32>) {
        let mut pids = self.shared.pids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = pids.get_mut(self.index) {
            *slot = pid;
        }
    }

    /// Starts processes until one runs. `None` when the pool is shut down meanwhile.
    async fn revive(&mut self, mut why: String) -> Option<Process> {
        loop {
            if self.failures > 0 {
                let pause = (FIRST_PAUSE * 2_u32.saturating_pow(self.failures - 1)).min(LAST_PAUSE);
                self.turn_away(&why, pause).await?;
            }
            self.failures = self.failures.saturating_add(1).min(16);
            self.shared.restarts.fetch_add(1, Ordering::Relaxed);
            match self.spawn().await {
                Ok(process) => return Some(process),
                Err(error) => {
                    why = error.to_string();
                    tracing::error!(worker = self.index, why, "a recogniser process cannot be started");
                }
            }
        }
    }

    /// Waits; while no other process lives either, utterances are told at once that nobody listens.
    async fn turn_away(&self, why: &str, pause: Duration) -> Option<()> {
        let until = Instant::now() + pause;
        while self.shared.live.load(Ordering::Relaxed) == 0 {
            match tokio::time::timeout_at(until, self.shared.next()).await {
                Err(_) => return Some(()),
                Ok(None) => return None,
                Ok(Some(ask)) => ask.turn_away(SttError::Unavailable(why.to_owned())),
            }
        }
        tokio::time::sleep_until(until).await;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stt::Order;

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let config = PoolConfig::new("/nonexistent/voxgate", "/nonexistent/model.bin", Vec::new());
        let error = WhisperPool::start(config).await.err().unwrap();
        assert!(matches!(&error, SttError::Unavailable(why) if why.contains("/nonexistent/voxgate")), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_says_nonsense_is_refused() {
        let config = PoolConfig::new("/bin/echo", "/nonexistent/model.bin", Vec::new());
        assert!(matches!(WhisperPool::start(config).await, Err(SttError::Unavailable(_))));
    }

    /// A recogniser without a model: answers each sound with a running number and its first sample, in decimal. Perl is in every Debian.
    const FAKE: &str = r#"#!/usr/bin/perl
use strict; $| = 1; binmode STDIN; binmode STDOUT; my $n = 0;
while (read(STDIN, my $head, 4) == 4) {
    read(STDIN, my $body, unpack('V', $head));
    my $tag = ord($body);
    if ($tag == 1) { print pack('V', 1), chr(3); next }
    my $id = unpack('V', substr($body, 1, 4));
    my $first = unpack('s<', substr($body, 11 + ord(substr($body, 10, 1)), 2));
    my $json = '{"id":' . $id . ',"text":"' . ++$n . ' ' . $first . '","free_ll":0,"tokens":1,"no_speech":0,"clipped":false,"scores":[],"ms":{"mel":0,"encode":0,"free":0,"score":0}}';
    print pack('V', 1 + length($json)), chr(5), $json;
}
"#;

    async fn fake() -> (tempfile::TempDir, WhisperPool) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fake");
        std::fs::write(&program, FAKE).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let pool = WhisperPool::start(PoolConfig::new(program, "none", Vec::new())).await.unwrap();
        (folder, pool)
    }

    fn job(name: i16, session: u64) -> Job { Job { order: Order { session, ..Order::default() }, ..Job::new(vec![name; 4]) } }

    /// Asks all at once; what was answered, in that order, and what was turned away.
    async fn ask(pool: &WhisperPool, jobs: Vec<Job>) -> (Vec<String>, Vec<(i16, SttError)>) {
        let (heard, refused) = (StdMutex::new(Vec::new()), StdMutex::new(Vec::new()));
        let one = async |job: Job| {
            let name = job.samples[0];
            match pool.recognise(job).await {
                Ok(words) => heard.lock().unwrap().push(words.text),
                Err(why) => refused.lock().unwrap().push((name, why)),
            }
        };
        futures_util::future::join_all(jobs.into_iter().map(one)).await;
        // The order in which they were heard, not that in which the waiting ones were woken.
        let mut heard: Vec<(u32, String)> = heard.into_inner().unwrap().iter().filter_map(|t| t.split_once(' ')).map(|(n, t)| (n.parse().unwrap(), t.to_string())).collect();
        heard.sort();
        (heard.into_iter().map(|(_, text)| text).collect(), refused.into_inner().unwrap())
    }

    #[tokio::test]
    async fn commands_are_heard_first_and_conversations_by_turns() {
        let (_folder, pool) = fake().await;
        let mut urgent = job(9, 3);
        urgent.order.urgent = true;
        let (heard, refused) = ask(&pool, vec![job(1, 1), job(2, 1), job(3, 1), job(4, 2), urgent]).await;
        assert_eq!((heard, refused), (["9", "1", "4", "2", "3"].map(String::from).to_vec(), vec![]));
        pool.shutdown().await;
    }

    #[tokio::test]
    async fn a_look_that_newer_sound_makes_void_is_not_heard_and_a_flood_gives_way() {
        let (_folder, pool) = fake().await;
        let look = |name| { let mut job = job(name, 1); job.order.look = true; job };
        let (heard, refused) = ask(&pool, vec![look(1), look(2), job(3, 2)]).await;
        assert_eq!((heard, refused), (vec!["2".to_string(), "3".into()], vec![(1, SttError::Superseded)]));
        let mut jobs: Vec<_> = (1..=8).map(|name| job(name, 1)).collect();
        jobs.push(job(20, 2));
        let (heard, refused) = ask(&pool, jobs).await;
        assert!(heard.contains(&"20".to_string()) && heard.len() == 8, "{heard:?}");
        assert_eq!(refused, vec![(8, SttError::Busy)]);
        let (waited, result) = pool.recognise_told(job(5, 1)).await;
        assert!(result.is_ok() && waited < Duration::from_secs(2), "{waited:?}");
        pool.shutdown().await;
    }
}
