//! Stopping and forgetting.

use std::sync::Arc;

use asyncagents_core::{
    answer::{self, Shown},
    id::SessionId,
    lifecycle::{CancelledBy, Command},
    request::Caller,
};

use super::{Manager, find, shown};
use crate::{Problem, shared::Shared};

/// What was cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    pub shown: Shown,
    /// How many below it were stopped too.
    pub below: u64,
}

impl Cancelled {
    /// What the caller is answered.
    pub fn text(&self) -> String {
        answer::cancelled(&self.shown, self.below)
    }
}

/// What was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared {
    pub tasks: u64,
    /// How many unfinished ones were stopped, of them and of those below them.
    pub stopped: u64,
}

impl Cleared {
    /// What the caller is answered.
    pub fn text(&self) -> String {
        answer::cleared(self.tasks, self.stopped)
    }
}

impl Manager {
    /// Stops a task and everything below it.
    ///
    /// # Errors
    /// When there is no such task, or it has ended already.
    pub async fn cancel(&self, caller: &Caller, asked: &str) -> Result<Cancelled, Problem> {
        let (shared, caller, asked) =
            (self.shared.clone(), caller.clone(), asked.trim().to_owned());
        let cancelled = self
            .shared
            .write(move |journal| {
                let mut task = find(journal, &caller, &asked)?;
                // A task that has ended may have left others at work.
                let left = if task.is_live() {
                    0
                } else {
                    shared.stop_below(journal, &task.id)?
                };
                let below = match left {
                    0 => {
                        let command = Command::Cancel(CancelledBy::Request);
                        shared.carry_out(journal, &mut task, command)?
                    }
                    left => left,
                };
                let shown = shown(journal, task)?;
                Ok(Cancelled { shown, below })
            })
            .await?;
        self.shared.written();
        Ok(cancelled)
    }

    /// Stops what a session has running and forgets its tasks.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn clear(&self, session: &SessionId) -> Result<Cleared, Problem> {
        clear(&self.shared, session).await
    }
}

/// Stops what a session has running and forgets its tasks.
pub(crate) async fn clear(shared: &Arc<Shared>, session: &SessionId) -> Result<Cleared, Problem> {
    let (handle, session) = (shared.clone(), session.clone());
    let cleared = shared
        .write(move |journal| {
            let mut cleared = Cleared {
                tasks: 0,
                stopped: 0,
            };
            for mut task in journal.tasks_of(Some(&session))? {
                cleared.tasks += 1;
                cleared.stopped += u64::from(task.is_live());
                cleared.stopped += handle.carry_out(journal, &mut task, Command::Clear)?;
            }
            Ok(cleared)
        })
        .await?;
    shared.written();
    Ok(cleared)
}
