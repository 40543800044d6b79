//! Which processes are alive, and what each has to look after.

use std::time::Duration;

use super::{Clock, Stored};
use crate::{
    host_ref::HostRef,
    id::{OwnerId, TaskId},
    moment::Moment,
    task::Task,
};

/// The leases, as one transaction sees them.
pub trait Leases {
    /// Renews a process's lease, or begins it. False if it had one that was taken away.
    fn renew(&mut self, owner: &OwnerId, until: &LeaseTime, begin: bool) -> Stored<bool>;
    /// Ends a lease.
    fn retire(&mut self, owner: &OwnerId) -> Stored<()>;
    /// Ends all leases that have run out.
    fn expire(&mut self, now: &LeaseTime) -> Stored<()>;
    /// The leases that have run out.
    fn lapsed(&mut self, now: &LeaseTime) -> Stored<Vec<Lapsed>>;
    /// Whether a process has a lease that has not run out.
    fn has_lease(&mut self, owner: &OwnerId, now: &LeaseTime) -> Stored<bool>;
    /// Those who have a lease.
    fn owners(&mut self) -> Stored<Vec<OwnerId>>;
    /// The running tasks of an owner, with their runs.
    fn running(&mut self, owner: &OwnerId) -> Stored<Vec<(TaskId, u32)>>;
    /// The tasks that need an owner and have none with a lease.
    fn orphans(&mut self) -> Stored<Vec<Task>>;
    /// The unfinished tasks that no owner has, and their hosts.
    fn unowned(&mut self) -> Stored<Vec<(TaskId, HostRef)>>;
    /// The tasks of an owner whose host has to be stopped.
    fn to_stop(&mut self, owner: &OwnerId) -> Stored<Vec<Task>>;
    /// All tasks of an owner that need one.
    fn owned(&mut self, owner: &OwnerId) -> Stored<Vec<Task>>;
    /// How many tasks and notices of each host are not settled.
    fn unfinished(&mut self) -> Stored<Vec<(HostRef, u64)>>;
    /// How many tasks that a task launched are at work, or have ended without its having been
    /// told yet.
    fn unsettled_below(&mut self, above: &TaskId) -> Stored<u64>;
}

/// A lease that has run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lapsed {
    pub owner: OwnerId,
    /// When it ran out, by the time of day.
    pub until: Moment,
    /// It is of another boot of this machine: its owner did not die of a task.
    pub is_of_another_boot: bool,
}

/// A time by which leases are measured: setting the clock must not end a lease, nor keep one for
/// ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTime {
    /// Which boot `steady` counts from. A lease from another boot has run out. Without one, the
    /// time of day has to do.
    pub boot: String,
    /// Time since that boot.
    pub steady: Duration,
    /// The time of day: for leases without a boot.
    pub now: Moment,
}

impl LeaseTime {
    /// The time now.
    pub fn now(clock: &dyn Clock) -> Self {
        Self {
            boot: clock.boot().to_owned(),
            steady: clock.steady(),
            now: clock.now(),
        }
    }

    /// `time` later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self {
            steady: self.steady.saturating_add(time),
            now: self.now.after(time),
            ..self
        }
    }
}
