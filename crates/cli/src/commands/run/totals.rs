//! What a run came to.

use std::time::Duration;

use asyncagents_core::{
    agent::Usage, answer::Shown, budget::Spent, id::SessionId, moment::Moment, task::Outcome,
};
use asyncagents_engine::Engine;
use asyncagents_runtime::{Manager, Problem};

use crate::exit::Failure;

/// How a run ended, and what it used.
pub(super) struct Totals {
    pub(super) session: SessionId,
    pub(super) outcome: Outcome,
    pub(super) answer: Option<String>,
    /// By this run and the tasks below it.
    pub(super) spent: Spent,
    /// By the model of the session itself, in all its runs.
    pub(super) usage: Usage,
    pub(super) took: Duration,
    pub(super) tasks: Vec<Shown>,
    pub(super) now: Moment,
}

impl Totals {
    /// Why there is no answer, if there is none.
    pub(super) fn failed(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Completed => None,
            Outcome::Failed { why } => Some(why),
            Outcome::Cancelled => Some("it was stopped"),
        }
    }
}

/// What a session and the tasks below it have used, cleared ones too.
pub(super) async fn spent(
    manager: &Manager,
    engine: &Engine,
    session: &SessionId,
) -> Result<Spent, Failure> {
    let (own, _) = engine.used(session).await.map_err(Problem::from)?;
    let below = manager.spent_below(session).await?;
    Ok(below.plus(own.spent()))
}
