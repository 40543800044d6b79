//! The terms under which a sub-agent runs a skill.

use std::time::Duration;

use crate::agent::Tools;

/// The terms under which a sub-agent runs a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The skill.
    pub skill: String,
    /// The tools, by the names that the skill has for them. Without a list of its own, the
    /// agent's.
    pub tools: Tools,
    /// How often its model may answer in one run.
    pub iterations: u64,
    /// How often the same failing call may be tried again.
    pub retries: u32,
    /// How long one answer and its tools may take.
    pub iteration_time: Option<Duration>,
}

/// Terms, and what the skill says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The terms.
    pub terms: Terms,
    /// The skill's body, filled in.
    pub instructions: String,
}

/// The fewest iterations that a sub-agent gets.
const LEAST: u64 = 3;

/// How many iterations a sub-agent gets of what its skill has, half for each level: `depth` is
/// the caller's, 0 for a session that is no child.
pub fn iterations(base: u64, depth: u32) -> u64 {
    let halved = base.checked_shr(depth.saturating_add(1)).unwrap_or(0);
    halved.max(LEAST)
}
