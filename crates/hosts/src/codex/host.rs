//! The threads of one Codex, as parents of tasks. What they are told goes into their queue, but for
//! those of `codex exec` and of sub-agents, which ask.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{PostId, SessionId},
    port::{Delivery, HostError, Notice, Recent},
};
use tokio::task::spawn_blocking;

use super::{queue::Queue, rollout};
use crate::outside::Outside;

/// A Codex, by its home folder.
pub struct Codex {
    home: PathBuf,
    queue: Queue,
}

impl Codex {
    /// The Codex whose home folder this is, reached by its program.
    pub fn new(home: PathBuf, program: PathBuf) -> Self {
        let queue = Queue::new(home.clone(), program);
        Self { home, queue }
    }

    /// Asks something about the rollout of a thread.
    async fn ask<T: Send + 'static>(
        &self,
        thread: &SessionId,
        ask: impl FnOnce(PathBuf) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        let (home, thread) = (self.home.clone(), thread.clone());
        let asked = spawn_blocking(move || {
            let file = rollout::find(&home, thread.as_str()).map_err(unreachable)?;
            ask(file.ok_or(HostError::NoSession(thread))?)
        });
        asked.await.map_err(unreachable)?
    }
}

fn unreachable(error: impl std::fmt::Display) -> HostError {
    HostError::Unreachable(error.to_string())
}

#[async_trait]
impl Outside for Codex {
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        let plan = plan.clone();
        self.ask(session, move |file| {
            let recent = rollout::recent(&file, &plan);
            recent.map_err(|error| HostError::Refused(error.to_string()))
        })
        .await
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        match self.ask(session, |_| Ok(())).await {
            Ok(()) => Ok(true),
            Err(HostError::NoSession(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        // What is queued for `codex exec` is not run before it has ended, and what is queued for a
        // sub-agent not before its parent has its answer. A hook waits, and answers to calls tell them too.
        let asks_itself = self.ask(session, |file| {
            rollout::is_told_by_hooks(&file).map_err(unreachable)
        });
        match asks_itself.await {
            Ok(true) => return Ok(Delivery::Held),
            Ok(false) => {}
            Err(HostError::NoSession(_)) => return Ok(Delivery::Gone),
            Err(error) => return Err(error),
        }
        if !self.queue.add(session, &notice).await? {
            return Ok(Delivery::NotNow);
        }
        // The turn begins at once if the thread is idle, and its message is in the rollout then.
        let (pause, times) = (Duration::from_millis(20), 10);
        for _ in 0..times {
            if self.confirm(session, &notice.id).await? {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        Ok(Delivery::Taken)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let mark = notice.to_string();
        self.ask(session, move |file| {
            rollout::told(&file, &mark).map_err(unreachable)
        })
        .await
    }

    async fn is_on_its_way(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.queue.has(session, notice).await
    }
}
