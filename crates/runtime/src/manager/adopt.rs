//! Taking over a journal that is a copy of another. The other may be at work on the same tasks,
//! so here they end, without a notice and without stopping a host.

use asyncagents_core::{lifecycle::Command, port::Fate, task::Outcome};

use super::Manager;
use crate::Problem;

/// What becomes of the conversations in a journal that is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversations {
    /// They can be gone on with: the user had them.
    Kept,
    /// They can only be read: another user may have written what their models are told.
    Closed,
}

impl Manager {
    /// Ends every unfinished task and withdraws every notice; returns how many tasks there were.
    ///
    /// # Errors
    /// When the store fails; nothing has changed then.
    pub async fn settle_copy(
        &self,
        why: &str,
        conversations: Conversations,
    ) -> Result<u64, Problem> {
        let (shared, why) = (self.shared.clone(), why.to_owned());
        let ended = self
            .shared
            .write(move |journal| {
                let now = shared.now();
                // Then everything is an orphan, also what its parent has cleared.
                for owner in journal.owners()? {
                    journal.retire(&owner)?;
                }
                let mut ended = 0;
                for task in journal.orphans()? {
                    // One that is above may have taken it along.
                    let Some(mut task) = journal.task(&task.id)? else {
                        continue;
                    };
                    if task.is_live() {
                        let command = Command::Finish {
                            outcome: Outcome::Failed { why: why.clone() },
                            answer: None,
                            totals: None,
                            woken: false,
                        };
                        shared.carry_out(journal, &mut task, command)?;
                        ended += 1;
                    }
                }
                for mut task in journal.orphans()? {
                    shared.carry_out(journal, &mut task, Command::Stopped { totals: None })?;
                    for post in journal.posts(&task.id)? {
                        if post.fate == Fate::Pending {
                            journal.undelivered(&post.id, &why, now)?;
                        }
                    }
                }
                if conversations == Conversations::Closed {
                    journal.delete_all_sessions()?;
                }
                // Nothing may be left to do; if there is, the file is not what it seems.
                if !journal.orphans()?.is_empty() {
                    return Err(Problem::NotOurs);
                }
                Ok(ended)
            })
            .await?;
        self.shared.watch.wake_all();
        Ok(ended)
    }
}
