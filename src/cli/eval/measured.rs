//! What measurements over recordings share: flags, the folder of things that can be brought again, a recogniser that remembers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::setup::{Place, Trouble};
use crate::config;
use crate::eval::recall::{Fingerprint, Recall};
use crate::session::clock::Stopwatch;
use crate::stt::{self, PoolConfig};

/// A measurement runs behind everything else on the machine, and waits as long as that takes.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Flags of measurements that are published.
#[derive(clap::Args, Clone, Debug)]
pub struct Measured {
    /// The project's folder; the figure goes to docs/figures in it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub project: PathBuf,
    /// Stop hearing after so many minutes and publish what was heard; the next run goes on
    #[arg(long, value_name = "N")]
    pub minutes: Option<u64>,
}

impl Measured {
    /// Says at every question whether the time is up.
    pub fn limit(&self) -> impl Fn() -> bool + use<> {
        let (watch, most) = (Stopwatch::start(), self.minutes.map(|m| Duration::from_secs(m * 60)));
        move || most.is_some_and(|most| watch.elapsed() >= most)
    }
}

impl Place {
    /// A folder of what measurements bring and keep, outside the project.
    ///
    /// # Errors
    /// [`Trouble`] when no variable says where.
    pub fn eval_dir(&self, name: &str) -> Result<PathBuf, Trouble> {
        let cache = config::cache_dir(&self.variables).ok_or_else(|| Trouble::wrong("no folder for what is brought: set XDG_CACHE_HOME or HOME"))?;
        Ok(cache.join("eval").join(name))
    }

    /// The recogniser as it is configured, on one thread, with everything it heard before. `plain`: as the library itself would.
    ///
    /// # Errors
    /// [`Trouble`] that says what is missing and what mends it.
    pub async fn remembering(&self, plain: bool) -> Result<Recall, Trouble> {
        let pool = PoolConfig { threads: 1, workers: 1, plain, patience: PATIENCE, ..self.listeners()? };
        let fingerprint = Fingerprint::of(&pool.model, &format!("{plain} {:?} {:?}", pool.phrases, pool.margins)).map_err(Trouble::failed)?;
        let inner = stt::start(stt::Settings::Whisper(pool)).await.map_err(Trouble::failed)?;
        Recall::open(&self.eval_dir("heard")?, &fingerprint, Arc::clone(&inner)).map_err(Trouble::failed)
    }
}
