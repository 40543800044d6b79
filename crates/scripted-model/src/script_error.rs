//! What is wrong with a script.

use thiserror::Error;

/// What is wrong with a script.
#[derive(Debug, Clone, Error)]
pub enum ScriptError {
    /// It is not TOML, or not the TOML of a script.
    #[error("line {line}: {why}")]
    Malformed { line: usize, why: String },
    /// A rule contradicts itself. Rules and lines are counted from 1.
    #[error("line {line}: rule {rule}: {why}")]
    Rule {
        line: usize,
        rule: usize,
        why: String,
    },
    /// What a capture looks for is not a regular expression.
    #[error("`capture.{name}`: {source}")]
    Capture { name: String, source: regex::Error },
}
