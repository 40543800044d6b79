//! Asking a person whether an agent may do something.

use async_trait::async_trait;
use asyncagents_core::{
    agent::Preview,
    id::{AgentName, SessionId},
};

/// Something that an agent wants to do and may not do unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub session: SessionId,
    /// What the session is about.
    pub title: String,
    /// Whether the session is a background task's.
    pub background: bool,
    pub agent: AgentName,
    /// The model's name for the call.
    pub call: String,
    pub tool: String,
    /// What the call would touch or run.
    pub target: String,
    /// What the call would do, whole: the approver decides how much of it is shown at once.
    pub preview: Preview,
    /// What [`Reply::Always`] would cover, for people.
    pub always: String,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This once.
    Yes,
    /// This, and the same again.
    Always,
    /// No, for a reason that the model is told.
    No(String),
}

/// A person who can be asked, by whatever means.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer. If that comes from elsewhere first, this is dropped.
    async fn ask(&self, question: Question) -> Reply;

    /// The question that was just dropped was answered elsewhere.
    fn answered_elsewhere(&self, question: &Question) {
        let _ = question;
    }
}
