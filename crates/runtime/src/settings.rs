//! How the runtime behaves.

use std::time::Duration;

use asyncagents_core::{
    fork::{Limits, Mode},
    model_choice::ModelPolicy,
    notify::Wording,
    skill::UsualTerms,
    task_limits::TaskLimits,
};

/// How the runtime behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What keeps tasks from running away.
    pub limits: TaskLimits,
    /// What a forked child inherits.
    pub fork: Limits,
    /// In what form it inherits.
    pub fork_mode: Mode,
    pub wording: Wording,
    /// A worker that has not been heard of for this long is dead, and its tasks are taken
    /// over. Workers renew their lease three times as often.
    pub lease: Duration,
    /// A child that is silent for this long is inspected; then after twice that, and so on.
    pub inspect_after: Duration,
    /// How long a notice waits for a caller who is blocked and will read the result.
    pub notice_delay: Duration,
    /// How long the end of a task may wait, while others of its batch run, to be told together with
    /// theirs.
    pub notice_window: Duration,
    /// How long a notice or a prompt that was sent may take to show in the session's history.
    pub confirm_timeout: Duration,
    /// How long work in progress may take to come to an end when a worker stops.
    pub shutdown_timeout: Duration,
    /// On what terms skills run that do not say.
    pub skills: UsualTerms,
    /// Whether a model may grant what a task below it asks for, once. Never for always.
    pub model_may_permit: bool,
    /// Which models tasks may have, and what is asked when one is unavailable.
    pub models: ModelPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: TaskLimits::default(),
            fork: Limits::default(),
            fork_mode: Mode::default(),
            wording: Wording::default(),
            lease: Duration::from_secs(10),
            inspect_after: Duration::from_secs(60),
            notice_delay: Duration::from_secs(2),
            notice_window: Duration::from_secs(8),
            confirm_timeout: Duration::from_secs(2),
            shutdown_timeout: Duration::from_secs(3),
            skills: UsualTerms::default(),
            model_may_permit: false,
            models: ModelPolicy::default(),
        }
    }
}
