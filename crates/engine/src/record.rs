//! Sessions as the journal has them.

use asyncagents_core::port::{HostError, StoreError};

/// Why something was not read or saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// Another driver has taken over, or the session is gone.
    #[error("another process works in the session")]
    NotOurs,
    /// Another process, which is alive, drives the session.
    #[error("another process works in the session")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SessionError> for HostError {
    fn from(error: SessionError) -> Self {
        HostError::Unreachable(error.to_string())
    }
}
