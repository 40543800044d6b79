//! What an agent calls to get background tasks.

use async_trait::async_trait;

use crate::{
    agent::{ToolOutcome, ToolSpec},
    id::SessionId,
};

/// The tools for background tasks, as an agent's session calls them.
#[async_trait]
pub trait Delegation: Send + Sync {
    /// The tools.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Calls one. `input` is what the model wrote.
    async fn call(&self, session: &SessionId, tool: &str, input: &str) -> ToolOutcome;
}
