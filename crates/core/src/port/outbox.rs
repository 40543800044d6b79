//! Notices to parents.

use super::{Notice, Stored};
use crate::{
    host_ref::HostSetup,
    id::{OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    task::Task,
};

/// The outbox, as one transaction sees it.
pub trait Outbox {
    /// Puts a notice about a task into the outbox, not to be sent before a moment.
    fn post(&mut self, task: &Task, notice: &Notice, not_before: Moment) -> Stored<()>;
    /// The notices of an owner that are due, oldest first: up to `most` after place `after`.
    fn due(
        &mut self,
        owner: &OwnerId,
        now: Moment,
        after: i64,
        most: usize,
    ) -> Stored<Vec<PendingNotice>>;
    /// When the next notice of an owner that is not due yet will be.
    fn next_due(&mut self, owner: &OwnerId, now: Moment) -> Stored<Option<Moment>>;
    /// Marks a notice as about to be sent. False if it is not as it was found: no longer
    /// pending, no longer this owner's, or marked by someone else since.
    fn sending(&mut self, found: &PendingNotice, by: &OwnerId, at: Moment) -> Stored<bool>;
    /// Puts a notice off, and says when it may last have been sent, if it may have been.
    fn put_off(&mut self, notice: &PostId, until: Moment, attempted: Option<Moment>) -> Stored<()>;
    /// Another worker may have sent a task's notices just now; they are to be looked for at
    /// `until`.
    fn postpone_notices(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()>;
    /// A parent may be able to take its notices now.
    fn hurry(&mut self, parent: &SessionId, now: Moment) -> Stored<bool>;
    /// Whether a parent has notices to come.
    fn any_pending(&mut self, parent: &SessionId) -> Stored<bool>;
    /// A notice has been delivered: it is in the parent's history.
    fn delivered(&mut self, notice: &PostId, at: Moment) -> Stored<()>;
    /// A notice will not be delivered, for this reason.
    fn undelivered(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// Withdraws one notice, unless someone has begun to send it.
    fn withdraw(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// A task's notices, and what became of each.
    fn notices(&mut self, task: &TaskId) -> Stored<Vec<(PostId, Fate)>>;
}

/// What became of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Pending,
    /// It is in the parent's history.
    Delivered,
    /// It was given up or withdrawn, for a reason.
    Undelivered(String),
}

/// A notice that has to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotice {
    /// Its place in the outbox.
    pub place: i64,
    pub notice: Notice,
    pub parent: SessionId,
    pub host: HostSetup,
    /// When it was last about to be sent, and perhaps was.
    pub attempted: Option<Moment>,
    /// How often it was put off.
    pub attempts: u32,
}
