//! What an agent calls to get background tasks.

use async_trait::async_trait;

use crate::{
    agent::{ToolOutcome, ToolSpec},
    id::SessionId,
    tool_set::ToolRequest,
};

/// The tools for background tasks, as an agent's session calls them.
#[async_trait]
pub trait Delegation: Send + Sync {
    /// The tools.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Does what a call of one of them asks for. `message` is that which makes the call, by its
    /// name in the session's transcript.
    async fn call(&self, session: &SessionId, message: &str, request: ToolRequest) -> ToolOutcome;
}
