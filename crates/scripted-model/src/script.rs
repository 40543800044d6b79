//! What the model says, and to what.

use crate::{reply::Reply, script_error::ScriptError, when::When};

/// A list of rules; the first that fits a request and has uses left answers it.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(crate) rules: Vec<Rule>,
    pub(crate) forget_bodies: bool,
}

/// One rule: when it fits, and what it answers.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) when: When,
    pub(crate) reply: Reply,
}

impl Script {
    /// A script without rules: every request is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// This script with one more rule, after all others.
    #[must_use]
    pub fn rule(mut self, when: When, reply: Reply) -> Self {
        self.rules.push(Rule { when, reply });
        self
    }

    /// This script with the rules of another after its own.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    /// This script on a server that only counts its requests and keeps none of them.
    #[must_use]
    pub fn forget_bodies(mut self) -> Self {
        self.forget_bodies = true;
        self
    }

    /// What a builder could not say when it was called.
    pub(crate) fn check(&self) -> Result<(), ScriptError> {
        match self.rules.iter().find_map(|rule| rule.when.wrong.as_ref()) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}
