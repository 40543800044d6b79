//! The sessions of one Claude Code, as parents of tasks. They are told by its hooks, which ask.

use std::path::PathBuf;

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{PostId, SessionId},
    port::{HostError, Recent},
};
use tokio::task::spawn_blocking;

use super::{SessionName, transcript};
use crate::outside::Outside;

/// A Claude Code, by its configuration folder.
pub struct ClaudeCode {
    config: PathBuf,
}

impl ClaudeCode {
    /// The Claude Code whose configuration is in this folder.
    pub fn new(config: PathBuf) -> Self {
        Self { config }
    }

    /// Asks something about the transcript of a session.
    async fn ask<T: Send + 'static>(
        &self,
        session: &SessionId,
        ask: impl FnOnce(PathBuf) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        let missing = HostError::NoSession(session.clone());
        let name = SessionName::parse(session).ok_or_else(|| missing.clone())?;
        let config = self.config.clone();
        let asked = spawn_blocking(move || {
            let file = transcript::find(&config, &name.session, name.agent.as_deref());
            ask(file.map_err(unreachable)?.ok_or(missing)?)
        });
        asked.await.map_err(unreachable)?
    }
}

fn unreachable(error: impl std::fmt::Display) -> HostError {
    HostError::Unreachable(error.to_string())
}

#[async_trait]
impl Outside for ClaudeCode {
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        let plan = plan.clone();
        self.ask(session, move |file| {
            let recent = transcript::recent(&file, &plan);
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

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let mark = notice.to_string();
        self.ask(session, move |file| {
            transcript::told(&file, &mark).map_err(unreachable)
        })
        .await
    }

    async fn is_on_its_way(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let mark = notice.to_string();
        self.ask(session, move |file| {
            transcript::queued(&file, &mark).map_err(unreachable)
        })
        .await
    }
}
