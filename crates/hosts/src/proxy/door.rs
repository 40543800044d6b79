//! What an agent's programs reach of us through the proxy.

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Our tools for tasks.
    Tools,
    /// Whether a call may be made: a hook of the agent asks.
    Permissions,
}

/// Serves a door to an agent.
#[async_trait]
pub trait DoorStream: Send + Sync {
    /// Serves one connection to its end. It is dropped in the middle of it when the proxy is.
    async fn serve(&self, stream: Box<dyn TwoWay>);
}

/// Bytes in both directions.
pub trait TwoWay: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> TwoWay for T {}
