//! What the model says, and to what.

use thiserror::Error;

use crate::{reply::Reply, when::When};

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
