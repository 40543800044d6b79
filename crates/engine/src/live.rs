//! What a person who watches sees of a session while it works. Nothing depends on it.

use asyncagents_core::agent::End;
use tokio::sync::mpsc;

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
        /// The model's name for the call.
        call: String,
        /// The tool.
        name: String,
        /// What it touches or runs.
        target: String,
    },
    /// A line that a tool printed.
    Line(String),
    /// A tool has ended, or was not run at all.
    ToolEnded {
        /// The model's name for the call.
        call: String,
        /// The tool.
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

/// What happens in a session, from now on.
pub struct LiveEvents(pub(crate) mpsc::UnboundedReceiver<Live>);

impl LiveEvents {
    /// The next one; `None` when nobody can tell any more.
    pub async fn next(&mut self) -> Option<Live> {
        self.0.recv().await
    }
}
