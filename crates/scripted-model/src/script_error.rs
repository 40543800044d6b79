//! What is wrong with a script.

use thiserror::Error;

/// What is wrong with a script.
#[derive(Debug, Clone, Error)]
pub enum ScriptError {
    /// It is not TOML, or not the TOML of a script.
    #[error("line {line}: {why}")]
    Malformed {
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A rule contradicts itself.
    #[error("line {line}: rule {rule}: {why}")]
    Rule {
        /// Where the rule begins, from 1.
        line: usize,
        /// Which rule, from 1.
        rule: usize,
        /// What is wrong.
        why: String,
    },
    /// What a capture looks for is not a regular expression.
    #[error("`capture.{name}`: {source}")]
    Capture {
        /// Its name.
        name: String,
        /// Why not.
        source: regex::Error,
    },
}
