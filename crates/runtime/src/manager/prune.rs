//! Deleting what ended long ago.

use std::time::Duration;

use asyncagents_core::{
    moment::Moment,
    port::{OldSession, OldTree, SessionPlace},
};

use super::Manager;
use crate::Problem;

/// How many places are looked at in one transaction: others write in between.
const AT_ONCE: usize = 100;

/// What may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneRequest {
    /// How long ago tasks must have ended; none are deleted without it.
    pub tasks: Option<Duration>,
    /// How long ago something must have happened in sessions of persons.
    pub sessions: Option<Duration>,
    /// Nothing is deleted, only counted.
    pub only_count: bool,
}

/// What was deleted, or could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub tasks: u64,
    pub sessions: u64,
}

impl Pruned {
    /// Whether it is nothing.
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Manager {
    /// Deletes finished tasks and sessions of persons that are old enough. What is not finished, what
    /// somebody has still to be told, and what is above or below such a task stays. Each tree of tasks
    /// and each session goes in one transaction, so that whoever interrupts this leaves no half.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prune(&self, request: PruneRequest) -> Result<Pruned, Problem> {
        let before = |age: Duration| self.now().before(age);
        let mut pruned = Pruned::default();
        if let Some(age) = request.tasks {
            pruned.tasks = self.prune_tasks(before(age), request.only_count).await?;
        }
        // After the tasks: a session whose tasks are gone may go too.
        if let Some(age) = request.sessions {
            pruned.sessions = if request.only_count {
                let tasks = request.tasks.map(before);
                self.count_sessions(before(age), tasks).await?
            } else {
                self.prune_sessions(before(age)).await?
            };
        }
        Ok(pruned)
    }

    /// Gives the room of what was deleted back to the system; returns how many bytes cannot be given
    /// back now. `is_alone` says that no other process has the journal open.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn give_back_room(&self, is_alone: bool) -> Result<u64, Problem> {
        Ok(self.shared.store.give_back_room(is_alone).await?)
    }

    async fn prune_tasks(&self, before: Moment, only_count: bool) -> Result<u64, Problem> {
        let mut deleted = 0;
        let mut after = None;
        loop {
            let from = after.take();
            let page = self
                .shared
                .read(move |journal| Ok(journal.old_trees(before, from.as_ref(), AT_ONCE)?));
            let page = page.await?;
            let Some(last) = page.last() else {
                return Ok(deleted);
            };
            after = Some(last.place.clone());
            deleted += if only_count {
                page.iter().map(|tree| tree.tasks).sum::<u64>()
            } else {
                self.delete_trees(page, before).await?
            };
        }
    }

    async fn delete_trees(&self, trees: Vec<OldTree>, before: Moment) -> Result<u64, Problem> {
        let trees: Vec<OldTree> = trees.into_iter().filter(|tree| tree.tasks > 0).collect();
        if trees.is_empty() {
            return Ok(0);
        }
        let delete = self.shared.write(move |journal| {
            let each = trees
                .iter()
                .map(|tree| Ok(journal.delete_tree(&tree.place.root, before)?));
            each.sum::<Result<u64, Problem>>()
        });
        delete.await
    }

    async fn count_sessions(
        &self,
        before: Moment,
        tasks_before: Option<Moment>,
    ) -> Result<u64, Problem> {
        let (mut count, mut after) = (0, None);
        while let Some(page) = self.old_sessions(before, tasks_before, &mut after).await? {
            count += u64::try_from(page.len()).unwrap_or(u64::MAX);
        }
        Ok(count)
    }

    async fn prune_sessions(&self, before: Moment) -> Result<u64, Problem> {
        let (mut deleted, mut after) = (0, None);
        while let Some(page) = self.old_sessions(before, None, &mut after).await? {
            deleted += self.delete_sessions(page, before).await?;
        }
        Ok(deleted)
    }

    /// Those of the next places that can be deleted; `None` after the last.
    async fn old_sessions(
        &self,
        before: Moment,
        tasks_before: Option<Moment>,
        after: &mut Option<SessionPlace>,
    ) -> Result<Option<Vec<OldSession>>, Problem> {
        let from = after.take();
        let page = self.shared.read(move |journal| {
            Ok(journal.old_sessions(before, tasks_before, from.as_ref(), AT_ONCE)?)
        });
        let page = page.await?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        *after = Some(last.place.clone());
        Ok(Some(
            page.into_iter().filter(|session| session.is_old).collect(),
        ))
    }

    async fn delete_sessions(&self, old: Vec<OldSession>, before: Moment) -> Result<u64, Problem> {
        if old.is_empty() {
            return Ok(0);
        }
        let delete = self.shared.write(move |journal| {
            let each = old.iter().map(|session| {
                let deleted = journal.delete_old_session(&session.place.id, before)?;
                Ok(u64::from(deleted))
            });
            each.sum::<Result<u64, Problem>>()
        });
        delete.await
    }
}
