//! The report on a sub-agent that has ended: a short summary and where the whole is.

use crate::{id::ChainId, shorten::shorten, task::Outcome};

/// How many characters of an answer are in the summary.
const MOST: usize = 500;

/// How a sub-agent ended, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubAgentReport {
    pub outcome: Outcome,
    /// The beginning of its final answer, or why there is none.
    pub summary: String,
    pub chain: Option<ChainId>,
}

impl SubAgentReport {
    /// The report on a sub-agent with this outcome and final answer.
    pub fn new(outcome: &Outcome, answer: Option<&str>, chain: Option<&ChainId>) -> Self {
        let summary = match outcome {
            Outcome::Completed => {
                shorten(answer.unwrap_or_default().trim(), MOST, "... (truncated)")
            }
            Outcome::Failed { why } if why.trim().is_empty() => "Unknown error".to_owned(),
            Outcome::Failed { why } => why.clone(),
            Outcome::Cancelled => "it was cancelled".to_owned(),
        };
        Self {
            outcome: outcome.clone(),
            summary,
            chain: chain.cloned(),
        }
    }

    /// The result in a sentence.
    pub fn headline(&self) -> String {
        let failed = match self.outcome {
            Outcome::Completed => "",
            Outcome::Failed { .. } | Outcome::Cancelled => "Failed: ",
        };
        format!("Sub-agent completed: {failed}{}", self.summary)
    }

    /// Where the whole is.
    pub fn trace(&self) -> String {
        let chain = self.chain.as_ref().map_or("none", ChainId::as_str);
        format!("Full trace: {chain}")
    }
}
