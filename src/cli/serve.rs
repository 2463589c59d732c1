//! `voxgate serve`: the gateway with its doors open.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::setup::{Place, Trouble, start_metrics, told_to_stop};
use crate::server::{Doors, serve};
use crate::session::hub::Hub;

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
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(serve(listener, doors, async move { let _ = stopped.await; }));
        Ok(Opened { url, page, stop, task })
    }

    /// Closes them and waits.
    pub async fn close(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Serves until it is told to stop.
///
/// # Errors
/// [`Trouble`].
pub async fn run(place: Place) -> Result<ExitCode, Trouble> {
    let mut lock = place.hold("serve")?;
    let listener = place.listen().await?;
    let metrics = start_metrics();
    eprintln!("voxgate: loading the recogniser and the voice");
    let hub: Arc<Hub> = Arc::new(place.hub(place.parts().await?));
    let opened = Opened::open(listener, place.doors(hub.clone(), metrics)?)?;
    lock.set_address(&opened.url).map_err(Trouble::failed)?;
    println!("listening on {}", opened.url);
    eprintln!("voxgate: open {} in a browser (the link works once, for a minute; `voxgate link` prints another)", opened.page);
    told_to_stop().await;
    eprintln!("voxgate: closing");
    hub.close("the gateway was stopped").await;
    opened.close().await;
    Ok(ExitCode::SUCCESS)
}
