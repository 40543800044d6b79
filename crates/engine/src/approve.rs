//! Asking a person whether an agent may do something.

use async_trait::async_trait;
use asyncagents_core::{
    agent::Preview,
    id::{AgentName, SessionId},
};

/// Something that an agent wants to do and may not do unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Where.
    pub session: SessionId,
    /// What the session is about.
    pub title: String,
    /// Whether it is a background task's.
    pub background: bool,
    /// Who.
    pub agent: AgentName,
    /// With which tool.
    pub tool: String,
    /// What it would touch or run.
    pub target: String,
    /// What it would do, whole: how much of it is shown at once is for the one who asks.
    pub preview: Preview,
    /// What [`Reply::Always`] would cover, for people.
    pub always: String,
}

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This once.
    Yes,
    /// This, and the same again.
    Always,
    /// No, for a reason that the model is told.
    No(String),
}

/// Someone who can be asked.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer.
    async fn ask(&self, question: Question) -> Reply;
}
