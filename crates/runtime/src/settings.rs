//! How the runtime behaves.

use std::time::Duration;

use asyncagents_core::{
    fork::{Limits, Mode},
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
    /// How parents are told.
    pub wording: Wording,
    /// A worker that has not been heard of for this long is dead, and its tasks are taken
    /// over. Workers renew their lease three times as often.
    pub lease: Duration,
    /// A child that is silent for this long is asked about; then after twice that, and so on.
    pub silence: Duration,
    /// How often to look whether another process has written.
    pub look: Duration,
    /// How long a notice waits for a caller who is blocked and will read the result.
    pub grace: Duration,
    /// How long a notice that was sent may take to show in the parent's history.
    pub settle: Duration,
    /// How long work in progress may take to come to an end when a worker stops.
    pub farewell: Duration,
    /// On what terms skills run that do not say.
    pub skills: UsualTerms,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: TaskLimits::default(),
            fork: Limits::default(),
            fork_mode: Mode::default(),
            wording: Wording::default(),
            lease: Duration::from_secs(10),
            silence: Duration::from_secs(60),
            look: Duration::from_millis(50),
            grace: Duration::from_secs(2),
            settle: Duration::from_secs(2),
            farewell: Duration::from_secs(3),
            skills: UsualTerms::default(),
        }
    }
}
