//! What a caller is told of a sub-agent that has ended: a short summary and where the whole is.

use crate::{id::ChainId, task::Outcome};

/// How many characters of an answer are told.
const MOST: usize = 500;

/// What came of a sub-agent, in short: the beginning of its final answer, or why it failed.
pub fn summary(outcome: &Outcome, answer: Option<&str>) -> String {
    match outcome {
        Outcome::Completed => shortened(answer.unwrap_or_default().trim()),
        Outcome::Failed { why } if why.trim().is_empty() => "Failed: Unknown error".to_owned(),
        Outcome::Failed { why } => format!("Failed: {why}"),
        Outcome::Cancelled => "Failed: it was cancelled".to_owned(),
    }
}

/// The two parts of the message about it.
pub fn message_parts(summary: &str, chain: Option<&ChainId>) -> [String; 2] {
    let chain = chain.map_or("none", ChainId::as_str);
    [
        format!("Sub-agent completed: {summary}"),
        format!("Full trace: {chain}"),
    ]
}

fn shortened(answer: &str) -> String {
    match answer.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}... (truncated)", answer.get(..end).unwrap_or_default()),
        None => answer.to_owned(),
    }
}
