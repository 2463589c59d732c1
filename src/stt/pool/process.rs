//! One recogniser process, as the pool sees it.
//!
//! Owns its pipes, its deadline and its end. Called by the pool's workers only. The process gets no environment of the gateway
//! (where keys are) and its own process group, so that Ctrl-C in a terminal reaches the gateway alone, which ends it in order.
#![allow(clippy::disallowed_methods, reason = "a recogniser's process is given a few variables and no others")]

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::PoolConfig;
use crate::engine::heard::Heard;
use crate::stt::wire::{Reply, encode_job, frame_length};
use crate::stt::{Job, SAMPLE_RATE_HZ};

/// A model loads in under a second; a busy machine with a cold disk may need much longer.
const START_TIME: Duration = Duration::from_secs(60);
/// Variables that a dynamic program may need to run at all.
const PASSED_ON: [&str; 3] = ["LD_LIBRARY_PATH", "RUST_BACKTRACE", "TMPDIR"];

/// Why a process did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It cannot be started.
    #[error("{program} cannot be started: {why}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's words.
        why: io::Error,
    },
    /// It started and said why it cannot work.
    #[error("{0}")]
    Failed(String),
    /// It ended.
    #[error("{0}")]
    Ended(String),
    /// It is alive but did not answer.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered that this utterance cannot be done.
    #[error("{0}")]
    Refused(String),
}

/// A process that has loaded its model. Dropping it kills it.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    log: JoinHandle<()>,
    patience: Duration,
    next_id: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.log.abort();
    }
}

impl Process {
    /// Starts a process and waits until its model is loaded.
    pub async fn start(config: &PoolConfig, start_frame: &[u8]) -> Result<Self, ProcessError> {
        let mut process = Self::spawn(config)?;
        match timeout(START_TIME, process.exchange(start_frame)).await {
            Err(_) => Err(ProcessError::TimedOut(START_TIME)),
            Ok(Ok(Reply::Ready)) => Ok(process),
            Ok(Ok(Reply::Failed(why))) => Err(ProcessError::Failed(why)),
            Ok(Ok(_)) => Err(ProcessError::Failed("it did not begin as a recogniser does".to_owned())),
            Ok(Err(why)) => Err(process.ended_by(&why).await),
        }
    }

    fn spawn(config: &PoolConfig) -> Result<Self, ProcessError> {
        let failed = |why| ProcessError::Spawn { program: config.program.display().to_string(), why };
        let mut command = Command::new(&config.program);
        command.arg("recogniser").arg("--model").arg(&config.model).arg("--threads").arg(config.threads.to_string());
        command.args(config.plain.then_some("--plain"));
        command.env_clear();
        command.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let no_pipe = || failed(io::Error::other("a pipe is missing"));
        let input = child.stdin.take().ok_or_else(no_pipe)?;
        let output = child.stdout.take().ok_or_else(no_pipe)?;
        let errors = child.stderr.take().ok_or_else(no_pipe)?;
        let log = tokio::spawn(log(errors, child.id().unwrap_or(0)));
        Ok(Self { child, input, output, log, patience: config.patience, next_id: 1 })
    }

    /// The process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Has one utterance recognised.
    pub async fn recognise(&mut self, job: &Job) -> Result<Heard, ProcessError> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = encode_job(id, job).map_err(|why| ProcessError::Refused(why.to_string()))?;
        let length = Duration::from_secs((job.heard_samples().len() / SAMPLE_RATE_HZ) as u64);
        let time = self.patience + length;
        match timeout(time, self.exchange(&frame)).await {
            Err(_) => {
                let _ = self.child.start_kill();
                Err(ProcessError::TimedOut(time))
            }
            Ok(Ok(Reply::Heard { id: of, heard, ms })) if of == id => {
                tracing::debug!(mel = ms.mel, encode = ms.encode, free = ms.free, score = ms.score, "heard (ms)");
                Ok(heard)
            }
            Ok(Ok(Reply::Refused { id: of, why })) if of == id => Err(ProcessError::Refused(why)),
            Ok(Ok(_)) => Err(ProcessError::Ended("it answered something else than it was asked".to_owned())),
            Ok(Err(why)) => Err(self.ended_by(&why).await),
        }
    }

    /// Sends a frame and reads the answer.
    async fn exchange(&mut self, frame: &[u8]) -> io::Result<Reply> {
        self.input.write_all(frame).await?;
        self.input.flush().await?;
        let mut head = [0; 4];
        self.output.read_exact(&mut head).await?;
        let mut body = vec![0; frame_length(head)?];
        self.output.read_exact(&mut body).await?;
        Reply::decode(&body)
    }

    /// A pipe broke: says what became of the process, ending it when it still runs.
    async fn ended_by(&mut self, why: &io::Error) -> ProcessError {
        match timeout(Duration::from_millis(500), self.child.wait()).await {
            Ok(Ok(status)) => ProcessError::Ended(describe(status)),
            _ => {
                let _ = self.child.start_kill();
                ProcessError::Ended(format!("its pipe broke: {why}"))
            }
        }
    }

    /// Waits for it to end by itself.
    pub async fn ended(&mut self) -> String {
        self.child.wait().await.map_or_else(|why| why.to_string(), describe)
    }

    /// Ends it and waits until it is gone. It holds nothing that would have to be saved.
    pub async fn end(mut self) {
        let _ = self.child.kill().await;
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("ended with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Passes on what the process writes on stderr, line by line; a line without an end is passed on in pieces of 4 KiB.
async fn log(mut from: ChildStderr, pid: u32) {
    let mut buffer = [0; 4096];
    let mut held = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer[held..]).await {
        let filled = held + count;
        let full = filled == buffer.len();
        let end = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(if full { filled } else { 0 }, |at| at + 1);
        for line in String::from_utf8_lossy(&buffer[..end]).lines().filter(|line| !line.trim().is_empty()) {
            tracing::info!(pid, "recogniser: {line}");
        }
        buffer.copy_within(end..filled, 0);
        held = filled - end;
    }
}
