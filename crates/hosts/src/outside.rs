//! A program whose sessions launch tasks and are told of them, and that runs none itself.

use std::{future, sync::Arc};

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{AgentName, PostId, SessionId},
    port::{
        Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice, Prompt,
        Recent, Report,
    },
    transcript::Transcript,
};

/// What such a program is asked.
#[async_trait]
pub trait Outside: Send + Sync + 'static {
    /// The end of a session's conversation, as far back as a fork needs it.
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError>;

    /// Whether there is such a session.
    async fn exists(&self, session: &SessionId) -> Result<bool, HostError>;

    /// Tells a session something, if anything can be sent to it.
    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        let _ = (session, notice);
        Ok(Delivery::Held)
    }

    /// Whether a notice is in the session's history.
    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError>;

    /// Whether a notice that is not in the history waits in the program, and will be.
    async fn is_on_its_way(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError>;
}

/// The program as a host that runs no task.
pub struct OutsideHost(Arc<dyn Outside>);

impl OutsideHost {
    /// The program as a host.
    pub fn new(program: impl Outside) -> Self {
        Self(Arc::new(program))
    }
}

fn runs_no_tasks<T>() -> Result<T, HostError> {
    Err(HostError::Refused("no tasks run there".to_owned()))
}

#[async_trait]
impl Host for OutsideHost {
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        self.0.recent(session, plan).await
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        let recent = self.0.recent(session, &Plan::default()).await?;
        Ok(recent.transcript)
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        self.0.exists(session).await
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        self.0.deliver(session, notice).await
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.0.confirm(session, notice).await
    }

    async fn is_on_its_way(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.0.is_on_its_way(session, notice).await
    }

    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        Ok(Vec::new())
    }

    async fn create(&self, _: NewSession) -> Result<SessionId, HostError> {
        runs_no_tasks()
    }

    async fn inject(&self, _: &SessionId, _: Inheritance) -> Result<(), HostError> {
        runs_no_tasks()
    }

    async fn prompt(&self, _: &SessionId, _: Prompt) -> Result<(), HostError> {
        runs_no_tasks()
    }

    async fn abort(&self, _: &SessionId) -> Result<(), HostError> {
        Ok(())
    }

    async fn inspect(&self, _: &SessionId, _: &PostId) -> Result<Inspection, HostError> {
        runs_no_tasks()
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(Silence)
    }

    async fn delete(&self, _: &SessionId) -> Result<(), HostError> {
        runs_no_tasks()
    }
}

/// Nothing is heard of its sessions.
struct Silence;

#[async_trait]
impl HostEvents for Silence {
    async fn next(&mut self) -> Option<Report> {
        future::pending().await
    }
}
