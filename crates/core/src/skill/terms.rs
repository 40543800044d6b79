//! The terms under which a sub-agent runs a skill.

use std::time::Duration;

use crate::{
    agent::{Effort, Tools},
    id::ModelName,
};

/// The terms under which a sub-agent runs a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
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
    /// The model that the skill would like; another will do.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if the skill says so.
    pub effort: Option<Effort>,
}

impl Terms {
    /// What a sub-agent may use: the skill's own list if it has one, or else its agent's.
    pub fn over(&self, agent: &Tools) -> Tools {
        let mine = self.tools.called_here();
        let mut not = agent.not.clone();
        not.extend(mine.not);
        Tools {
            only: mine.only.or(agent.only.clone()),
            not,
            within: agent.within.clone(),
        }
    }

    /// What a model is told of a call that has failed `times` times by now.
    pub fn advice(&self, times: u32) -> String {
        match (u64::from(self.retries) + 1).saturating_sub(times.into()) {
            0 => "[no tries left for this call: go another way]".to_owned(),
            1 => "[1 try left for this call]".to_owned(),
            left => format!("[{left} tries left for this call]"),
        }
    }

    /// Whether a call that has failed so often is not tried again.
    pub fn is_used_up(&self, times: u32) -> bool {
        times > self.retries
    }
}

/// The terms of skills that do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualTerms {
    /// How often the model may answer, before that is reduced for sub-agents.
    pub iterations: u64,
    /// How often the same failing call may be tried again.
    pub retries: u32,
}

impl Default for UsualTerms {
    fn default() -> Self {
        Self {
            iterations: 15,
            retries: 3,
        }
    }
}

/// Terms, and what the skill says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub terms: Terms,
    /// The skill's body, filled in.
    pub instructions: String,
}

/// What binds the tasks below these skills, the innermost of which comes first: the tools of
/// each, by the names that it has for them, the outermost first.
pub fn tools_below(skills: &[Terms]) -> Vec<Tools> {
    let tools = skills.iter().rev().map(|terms| terms.tools.clone());
    tools.filter(Tools::is_limit).collect()
}

/// The fewest iterations that a sub-agent gets.
const LEAST: u64 = 3;

/// How many iterations a sub-agent gets of what its skill has, half for each level: `depth` is
/// the caller's, 0 for a session that is no child.
pub fn iterations(base: u64, depth: u32) -> u64 {
    let halved = base.checked_shr(depth.saturating_add(1)).unwrap_or(0);
    halved.max(LEAST)
}
