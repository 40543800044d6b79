//! What can be wrong with a fork.

use thiserror::Error;

use crate::wording::grouped;

/// Why there is no fork.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForkError {
    /// Too long, and nothing may be left out.
    #[error(
        "the conversation has {} {unit} and the limit is {}",
        grouped(*size),
        grouped(*limit)
    )]
    TooLarge {
        /// `characters` or `tokens`.
        unit: &'static str,
        size: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// Why a setting is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    #[error("`{key}` is not a fork limit; there are {known}")]
    UnknownKey { key: String, known: String },
    /// Not a value of this limit.
    #[error("{key}: `{value}` is refused; allowed: {allowed}")]
    Refused {
        key: &'static str,
        value: String,
        /// What would have been accepted.
        allowed: String,
    },
}
