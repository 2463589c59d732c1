//! `voxgate serve`: the gateway with its doors open.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::setup::{Place, Trouble, start_metrics, told_to_stop};
use crate::server::{Doors, serve};
use crate::session::hub::Hub;
use crate::store::home::HomeLock;

/// How to serve.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// Address to listen on (default 127.0.0.1)
    #[arg(long)]
    pub address: Option<String>,
    /// Port to listen on; 0 picks a free one (default 8710)
    #[arg(long)]
    pub port: Option<u16>,
    /// Which agent answers
    #[command(flatten)]
    pub agent: super::setup::AgentArgs,
}

/// Doors that are open beside a conversation.
pub struct Opened {
    /// `http://ADDRESS:PORT`.
    pub url: String,
    /// The page with a code of one use and 60 s.
    pub page: String,
    /// The same over TLS, where that is on, with a code of its own.
    pub secure_page: Option<String>,
    stop: tokio::sync::oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Opened {
    /// Opens the doors over a hub.
    ///
    /// # Errors
    /// [`Trouble`] when no code can be made.
    pub fn open(listener: TcpListener, doors: Doors) -> Result<Opened, Trouble> {
        let local = listener.local_addr().map_err(Trouble::failed)?;
        let url = format!("http://{local}");
        let code = doors.links.issue().map_err(Trouble::failed)?;
        let page = format!("{url}/#code={code}");
        let secure_page = match &doors.secure {
            Some(secure) => Some(format!("{}/#code={}", secure.url, doors.links.issue().map_err(Trouble::failed)?)),
            None => None,
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(serve(listener, doors, async move { let _ = stopped.await; }));
        Ok(Opened { url, page, secure_page, stop, task })
    }

    /// Closes them and waits.
    pub async fn close(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// A gateway that runs: it holds the home, its doors are open.
pub struct Gateway {
    /// Every conversation of this home.
    pub hub: Arc<Hub>,
    /// The doors.
    pub opened: Opened,
    _lock: HomeLock,
}

impl Gateway {
    /// Takes the home, starts ears, voice and agent, and opens the doors. `what` tells other processes who holds the home.
    ///
    /// # Errors
    /// [`Trouble`]: somebody else has the home or the port, or something is missing.
    pub async fn start(place: &Place, what: &str) -> Result<Gateway, Trouble> {
        let mut lock = place.hold(what)?;
        let listener = place.listen().await?;
        let secure = super::secure::open(place).await?;
        let metrics = start_metrics();
        eprintln!("voxgate: loading the recogniser and the voice");
        let hub: Arc<Hub> = Arc::new(place.hub(place.parts().await?));
        let mut doors = place.doors(hub.clone(), metrics)?;
        doors.secure = secure;
        let opened = Opened::open(listener, doors)?;
        lock.set_address(&opened.url).map_err(Trouble::failed)?;
        Ok(Gateway { hub, opened, _lock: lock })
    }

    /// Ends every conversation and closes the doors.
    pub async fn close(self, reason: &str) {
        self.hub.close(reason).await;
        self.opened.close().await;
    }
}

/// Serves until it is told to stop.
///
/// # Errors
/// [`Trouble`].
pub async fn run(place: Place) -> Result<ExitCode, Trouble> {
    let gateway = Gateway::start(&place, "serve").await?;
    outln!("listening on {}", gateway.opened.url);
    eprintln!("voxgate: open {} in a browser (the link works once, for a minute; `voxgate link` prints another)", gateway.opened.page);
    if let Some(page) = &gateway.opened.secure_page {
        eprintln!("voxgate: from another machine open {page} (the browser asks whether to trust the gateway's own certificate, unless it is yours)");
    }
    told_to_stop().await;
    eprintln!("voxgate: closing");
    gateway.close("the gateway was stopped").await;
    Ok(ExitCode::SUCCESS)
}
