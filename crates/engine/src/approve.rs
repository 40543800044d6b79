//! Asking a person whether an agent may do something.

use async_trait::async_trait;
use asyncagents_core::id::{AgentName, SessionId};

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
    pub details: Details,
    /// What [`Reply::Always`] would cover, for people.
    pub always: String,
}

/// What a call would do, in the model's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Details {
    /// A command is run.
    Command(String),
    /// A file is written.
    Write {
        /// All of it.
        content: String,
    },
    /// A piece of a file is replaced.
    Edit {
        /// What is there now.
        old: String,
        /// What shall be there.
        new: String,
        /// Wherever it is, not in one place only.
        everywhere: bool,
    },
    /// Some other tool is used, with these arguments: names and values. What
    /// [`Question::target`] says is not among them.
    Arguments(Vec<(String, String)>),
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
