//! Why a request was not carried out.

use asyncagents_core::{
    port::{HostError, StoreError, StoreErrorKind},
    refusal::{Refusal, RefusalKind},
};
use thiserror::Error;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("another worker looks after the task now")]
    NotOurs,
}

/// What a problem means for the caller. Each door has one table from these to its own codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request is refused, for this reason.
    Refused(RefusalKind),
    /// The database that was named cannot be used: name another.
    WrongDatabase,
    /// Transient: the host or the database cannot be reached now. Retry.
    Unavailable,
    /// The store failed, and may fail again.
    Failed,
}

impl Problem {
    /// What it means for the caller.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Problem::Refused(refusal) => ProblemKind::Refused(refusal.kind()),
            Problem::Host(HostError::Refused(_)) => ProblemKind::Refused(RefusalKind::BadRequest),
            Problem::Host(HostError::NoSession(_)) => ProblemKind::Refused(RefusalKind::NotFound),
            Problem::Host(HostError::Unreachable(_)) | Problem::NotOurs => ProblemKind::Unavailable,
            Problem::Store(error) => match error.kind() {
                StoreErrorKind::NotADatabase
                | StoreErrorKind::NotOurs
                | StoreErrorKind::Newer { .. }
                | StoreErrorKind::Unknown { .. }
                | StoreErrorKind::CannotOpen => ProblemKind::WrongDatabase,
                StoreErrorKind::InUse { .. } | StoreErrorKind::Locked => ProblemKind::Unavailable,
                StoreErrorKind::Damaged
                | StoreErrorKind::ReadOnly
                | StoreErrorKind::Full
                | StoreErrorKind::Disk(_)
                | StoreErrorKind::Failed => ProblemKind::Failed,
            },
        }
    }
}
