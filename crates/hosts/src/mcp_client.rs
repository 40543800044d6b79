//! A client of our MCP server that is no agent we know: it has no history that could be read, and is
//! told something with the next answer that it gets.

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{PostId, SessionId},
    port::{HostError, Recent},
};

use crate::outside::Outside;

/// A client without a history.
pub struct McpClient;

#[async_trait]
impl Outside for McpClient {
    async fn recent(&self, session: &SessionId, _: &Plan) -> Result<Recent, HostError> {
        Err(HostError::Refused(format!(
            "{session} is an MCP client whose conversation cannot be read, so nothing can be \
             inherited from it; launch without `fork`, and say in the prompt what has to be known"
        )))
    }

    async fn exists(&self, _: &SessionId) -> Result<bool, HostError> {
        Ok(true)
    }

    async fn confirm(&self, _: &SessionId, _: &PostId) -> Result<bool, HostError> {
        Ok(false)
    }

    async fn is_on_its_way(&self, _: &SessionId, _: &PostId) -> Result<bool, HostError> {
        Ok(false)
    }
}
