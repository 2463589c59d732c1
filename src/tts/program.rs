//! Running a speech program: text in by stdin, WAV out by stdout or a scratch file, with a time limit, ended when nobody waits.
//!
//! Owns the child process and its scratch folder. Called by the kinds that are programs. Never goes through a shell; the text is never an argument.

use super::{Speech, TtsError};
use crate::media::wav;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// How long a program may take, in seconds.
const LIMIT_S: u64 = 20;
/// Most bytes of sound that are taken (11 minutes at 48 kHz).
const MAX_SOUND: u64 = 64 << 20;

/// Tells scratch folders of this process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A program that reads text on stdin and writes WAV.
pub struct Program {
    /// What is run.
    pub name: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Set where it cannot write to a pipe: the argument before the file that it is to write.
    pub file_after: Option<&'static str>,
    /// The Debian package that brings it.
    pub package: &'static str,
}

/// A folder of one synthesis, readable by its owner alone, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let name = format!("voxgate-tts-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // Fails where something of the name is there already, so nobody else's link is followed.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Program {
    /// Speaks a text.
    pub async fn speak(&self, text: &str) -> Result<Speech, TtsError> {
        let io = |e: std::io::Error| self.failed(format!("no scratch file: {e}"));
        let scratch = self.file_after.map(|_| Scratch::new()).transpose().map_err(io)?;
        let file = scratch.as_ref().map(|s| s.0.join("out.wav"));
        let mut child = self.spawn(file.as_deref())?;
        let limit = Duration::from_secs(LIMIT_S);
        let mut bytes = match tokio::time::timeout(limit, self.converse(&mut child, text)).await {
            Ok(answer) => answer?,
            // Dropping the child ends it.
            Err(_) => return Err(TtsError::Timeout { program: self.name.clone(), seconds: LIMIT_S }),
        };
        if let Some(file) = &file {
            let size = tokio::fs::metadata(file).await.map_err(io)?.len();
            if size > MAX_SOUND {
                return Err(self.failed(format!("it wrote {size} bytes")));
            }
            bytes = tokio::fs::read(file).await.map_err(io)?;
        }
        match wav::parse(&bytes) {
            Ok(sound) => Ok(Speech { samples: sound.samples, rate_hz: sound.rate_hz }),
            Err(wav::WavError::NoSound) => Ok(Speech { samples: Vec::new(), rate_hz: 0 }),
            Err(e) => Err(self.failed(format!("its sound cannot be read: {e}"))),
        }
    }

    fn spawn(&self, file: Option<&Path>) -> Result<Child, TtsError> {
        let mut command = Command::new(&self.name);
        command.args(&self.args);
        if let (Some(option), Some(file)) = (self.file_after, file) {
            command.arg(option).arg(file);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => TtsError::ProgramMissing { program: self.name.clone(), package: self.package },
            _ => self.failed(e.to_string()),
        })
    }

    async fn converse(&self, child: &mut Child, text: &str) -> Result<Vec<u8>, TtsError> {
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(self.failed("it has no pipes".into()));
        };
        let write = async {
            // A program that ends early closes its end; its status says why.
            let _ = stdin.write_all(text.as_bytes()).await;
            let _ = stdin.write_all(b"\n").await;
            drop(stdin);
        };
        let (mut sound, mut complaint) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (stdout.take(MAX_SOUND), stderr.take(4096));
        let (_, read, _) = tokio::join!(write, stdout.read_to_end(&mut sound), stderr.read_to_end(&mut complaint));
        read.map_err(|e| self.failed(e.to_string()))?;
        let status = child.wait().await.map_err(|e| self.failed(e.to_string()))?;
        if status.success() {
            return Ok(sound);
        }
        let said = String::from_utf8_lossy(&complaint);
        let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
        Err(self.failed(format!("{status}: {}", last.chars().take(200).collect::<String>())))
    }

    fn failed(&self, reason: String) -> TtsError {
        TtsError::ProgramFailed { program: self.name.clone(), reason }
    }
}
