//! An agent that says what a script holds, one entry a step. It is how a fault is shown again without a model.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::Sender;

use super::{Agent, AgentError};
use crate::engine::conversation::{AgentOutput, StepRequest};

/// Its name in the table.
pub const NAME: &str = "scripted";

/// Requests that are remembered.
const SEEN_MAX: usize = 1_000;

/// One thing in a step.
#[derive(Clone, Debug)]
pub enum Beat {
    /// Say or want this.
    Out(AgentOutput),
    /// Wait.
    Wait(Duration),
    /// Fail.
    Fail(AgentError),
}

/// See the file's head. When the script is at its end it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    steps: Arc<Mutex<VecDeque<Vec<Beat>>>>,
    seen: Arc<Mutex<Vec<StepRequest>>>,
}

impl Scripted {
    /// An agent with these steps.
    pub fn new(steps: impl IntoIterator<Item = Vec<Beat>>) -> Scripted {
        Scripted { steps: Arc::new(Mutex::new(steps.into_iter().collect())), seen: Arc::default() }
    }

    /// The requests it was given so far, the first 1,000.
    pub fn seen(&self) -> Vec<StepRequest> { self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone() }
}

impl Agent for Scripted {
    fn name(&self) -> &str { NAME }

    fn step(&self, request: StepRequest, out: Sender<AgentOutput>) -> BoxFuture<'static, Result<(), AgentError>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < SEEN_MAX {
            seen.push(request);
        }
        drop(seen);
        let beats = self.steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default();
        Box::pin(async move {
            for beat in beats {
                match beat {
                    Beat::Out(output) => {
                        if out.send(output).await.is_err() {
                            return Ok(());
                        }
                    }
                    Beat::Wait(time) => tokio::time::sleep(time).await,
                    Beat::Fail(error) => return Err(error),
                }
            }
            Ok(())
        })
    }
}
