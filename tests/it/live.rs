//! The product as a process of its own in a fresh home, and who talks to it: a chat client that follows the mirror, and a
//! headset on `/v1/realtime`.

#[path = "live_chat.rs"]
pub mod chat;
#[path = "live_headset.rs"]
pub mod headset;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use voxgate::media::resample::resample_all;
use voxgate::media::wav;

use crate::doors::http::{Answer, Socket, bearer, host, raw, socket};

/// Longest wait for anything on a busy machine. Nothing is timed by it.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A running voxgate. It is killed when this is dropped.
pub struct Gateway {
    child: Child,
    home: tempfile::TempDir,
    said: Arc<Mutex<String>>,
    pub address: SocketAddr,
    /// The page's link, with its code.
    pub page: String,
    pub operator: String,
    pub client: String,
}

/// The product's own program.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_voxgate"));
    for (name, _) in std::env::vars_os() {
        // What the caller has set for a gateway of theirs is not meant for this one; only where the weights lie is.
        if name.to_string_lossy().starts_with("VOXGATE_") && name != "VOXGATE_MODELS" { command.env_remove(&name); }
    }
    command.env_remove("RUST_LOG").kill_on_drop(true);
    command
}

/// A fresh home with this configuration.
pub fn home(config: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home
}

impl Gateway {
    /// `serve` with this configuration.
    pub async fn serve(config: &str) -> Self { Self::run(&["serve", "--port", "0"], config, &[]).await }

    /// Any command that opens doors, until they are open.
    pub async fn run(arguments: &[&str], config: &str, variables: &[(&str, String)]) -> Self {
        let home = home(config);
        let mut command = program();
        command.args(arguments).env("VOXGATE_HOME", home.path()).envs(variables.iter().map(|(k, v)| (*k, v)));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        keep(child.stdout.take().unwrap(), said.clone());
        keep(child.stderr.take().unwrap(), said.clone());
        let page = until(&mut child, &said, "/#code=").await;
        let page = page.split_whitespace().find(|word| word.contains("/#code=")).unwrap().to_string();
        let address = page.trim_start_matches("http://").split('/').next().unwrap().parse().unwrap();
        if arguments[0] == "serve" {
            assert_eq!(until(&mut child, &said, "listening on").await.trim(), format!("listening on http://{address}"));
        }
        let (operator, client) = (key(home.path(), "keys/operator"), key(home.path(), "keys/clients/default"));
        Self { child, home, said, address, page, operator, client }
    }

    pub fn home(&self) -> &Path { self.home.path() }

    /// Everything it has printed.
    pub fn said(&self) -> String { self.said.lock().unwrap().clone() }

    /// Waits for words on its stdout or stderr; the line that has them.
    pub async fn says(&mut self, words: &str) -> String { until(&mut self.child, &self.said, words).await }

    pub fn id(&self) -> u32 { self.child.id().unwrap() }

    /// A request of the operator.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        raw(self.address, method, path, &[host(self.address), bearer(&self.operator), "connection: close".into()], body).await
    }

    /// The mirror of a path's conversation.
    pub async fn mirror(&self, path: &str) -> Socket { socket(self.address, path, "voxgate.events", &self.operator).await.0 }

    /// Sends it this signal and waits for its end.
    pub async fn end(mut self, signal: &str) -> (ExitStatus, String) {
        let id = self.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        // The readers have what was written before the end.
        tokio::time::sleep(Duration::from_millis(200)).await;
        (status, self.said())
    }
}

fn key(home: &Path, name: &str) -> String { std::fs::read_to_string(home.join(name)).unwrap().trim().to_string() }

fn keep(stream: impl AsyncRead + Unpin + Send + 'static, said: Arc<Mutex<String>>) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut said = said.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    });
}

async fn until(child: &mut Child, said: &Mutex<String>, words: &str) -> String {
    let began = std::time::Instant::now();
    loop {
        if let Some(line) = said.lock().unwrap().lines().find(|line| line.contains(words)) { return line.to_string() }
        if let Some(status) = child.try_wait().unwrap() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            panic!("voxgate has ended with {status} before it said {words:?}:\n{}", said.lock().unwrap());
        }
        assert!(began.elapsed() < PATIENCE, "no {words:?} in time:\n{}", said.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A sentence in the default voice, with a little silence on either side.
pub fn sentence(text: &str, rate_hz: u32) -> Vec<i16> {
    let speech = crate::voice::hibari().speak(text).unwrap();
    let edge = vec![0; rate_hz as usize / 10];
    [edge.clone(), resample_all(&speech.samples, speech.rate_hz, rate_hz), edge].concat()
}

/// As a file.
pub fn sentence_file(path: PathBuf, lead_ms: usize, text: &str, rate_hz: u32) -> PathBuf {
    let sound = [vec![0; rate_hz as usize * lead_ms / 1000], sentence(text, rate_hz)].concat();
    std::fs::write(&path, wav::write(rate_hz, &sound)).unwrap();
    path
}
