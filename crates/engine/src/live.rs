//! What a person who watches sees of a session while it works. Nothing depends on it.

use asyncagents_core::{agent::End, id::SessionId};
use tokio::sync::broadcast;

/// Something worth showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// The model is saying this.
    Text(String),
    /// The model is thinking this.
    Reasoning(String),
    /// An answer is complete.
    Answered,
    /// An answer broke off or was refused, and is asked for again. What was said of it is
    /// void.
    Again(String),
    /// A tool begins.
    Tool {
        /// Its name.
        name: String,
        /// What it touches or runs.
        target: String,
    },
    /// A line that a tool printed.
    Line(String),
    /// A tool has ended.
    ToolEnded {
        /// Its name.
        name: String,
        /// What went wrong, in a line.
        error: Option<String>,
    },
    /// A background task has ended.
    Told(String),
    /// The conversation is summarised.
    Compacting,
    /// It waits for background tasks.
    Waiting,
    /// The run is over.
    Ended(End),
}

/// What happens in all sessions of an engine, from now on.
pub struct LiveEvents(pub(crate) broadcast::Receiver<(SessionId, Live)>);

impl LiveEvents {
    /// The next one; `None` when the engine is gone. A slow watcher misses some.
    pub async fn next(&mut self) -> Option<(SessionId, Live)> {
        loop {
            match self.0.recv().await {
                Ok(seen) => return Some(seen),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
