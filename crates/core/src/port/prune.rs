//! Deleting what ended long ago.

use super::Stored;
use crate::{
    id::{SessionId, TaskId},
    moment::Moment,
};

/// What can be deleted, as one transaction sees it. A tree is a task that no other task launched,
/// with all tasks below it: it goes whole or not at all, so that nothing points to what is gone.
pub trait Prune {
    /// Trees that ended before a moment, the first to end first: up to `most` places after one.
    /// The places of trees that must stay are among them, without tasks.
    fn old_trees(
        &mut self,
        before: Moment,
        after: Option<&TreePlace>,
        most: usize,
    ) -> Stored<Vec<OldTree>>;

    /// Deletes a tree with everything that is kept of its tasks, and returns how many they were;
    /// none if it must stay. A session that another one begins with is only marked as deleted, and
    /// goes when that one goes.
    fn delete_tree(&mut self, root: &TaskId, before: Moment) -> Stored<u64>;

    /// Sessions of persons in which nothing has happened since a moment, and that no task, no post
    /// and no process needs: those of `most` places after one, the oldest first. With `tasks_before`
    /// as if trees that ended before it were deleted already.
    fn old_sessions(
        &mut self,
        before: Moment,
        tasks_before: Option<Moment>,
        after: Option<&SessionPlace>,
        most: usize,
    ) -> Stored<Vec<OldSession>>;

    /// Deletes a session with everything that is kept of it; false if it must stay.
    fn delete_old_session(&mut self, id: &SessionId, before: Moment) -> Stored<bool>;
}

/// Where a tree is among those that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePlace {
    /// When its first task ended.
    pub ended: Moment,
    pub root: TaskId,
}

/// A tree of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldTree {
    pub place: TreePlace,
    /// How many tasks it has; none if it must stay.
    pub tasks: u64,
}

/// Where a session is among those of persons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    pub begun: Moment,
    pub id: SessionId,
}

/// A session of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldSession {
    pub place: SessionPlace,
    /// Whether it can be deleted.
    pub is_old: bool,
}
