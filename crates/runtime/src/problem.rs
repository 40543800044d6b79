//! Why a request was not carried out.

use asyncagents_core::{
    port::{HostError, StoreError},
    refusal::Refusal,
};
use thiserror::Error;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// It makes no sense, or a limit forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another worker looks after the task now.
    #[error("another worker looks after the task now")]
    NotOurs,
}
