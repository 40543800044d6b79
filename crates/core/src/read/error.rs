//! Why an input is not a conversation.

use thiserror::Error;

/// Why an input is not a conversation. Each message is one line a user can act on.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Nothing at all.
    #[error("the input is empty; expected a JSON list of messages")]
    Empty,
    /// Good until it stops.
    #[error(
        "the input ends in the middle of message {message} (line {line}, column {column}); it seems to be truncated"
    )]
    Truncated {
        /// The message that is cut off, counted from 1.
        message: usize,
        /// Line of the end.
        line: usize,
        /// Column of the end.
        column: usize,
    },
    /// Not JSON.
    #[error("the input is not valid JSON: {source}")]
    Syntax {
        /// What the parser met, and where.
        source: serde_json::Error,
    },
    /// JSON, but of another kind.
    #[error("expected a list of messages (`[{{\"info\": …, \"parts\": […]}}, …]`), found {found}")]
    NotAList {
        /// What there is instead.
        found: &'static str,
    },
    /// A list, but not of messages.
    #[error(
        "none of the {entries} entries is a message with `info.role` and `parts`; the first: {reason}"
    )]
    NoMessages {
        /// How many entries there are.
        entries: usize,
        /// What is wrong with the first.
        reason: serde_json::Error,
    },
}
