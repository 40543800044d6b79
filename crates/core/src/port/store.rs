//! Where tasks are kept.

use async_trait::async_trait;

use super::{Chains, Leases, Outbox, Prune, Queue, Sessions, ShownSessions, Stored, Tasks, Waits};

/// What is done in one transaction. It answers whether to keep what it did.
///
/// A store may run it again when a transaction has lost a race: then nothing is kept of the run
/// before. So work changes the journal and nothing else, and what it answers is that of its last
/// run.
pub type Work = Box<dyn Fn(&mut dyn Journal) -> bool + Send>;

/// Keeps the journal. All processes that work with the same file see the same journal.
#[async_trait]
pub trait Store: Send + Sync {
    /// Runs `work` alone, against the newest state. When this returns, what it did is on
    /// disk, or none of it happened.
    async fn write(&self, work: Work) -> Stored<()>;

    /// The same, but when this returns, what it did survives the end of this process and not that of
    /// the machine: it is on disk with the next [`Store::write`] at the latest, and never after it.
    /// For what can be done again, or is followed at once by what may not, and what others need not
    /// notice soon.
    async fn write_unsynced(&self, work: Work) -> Stored<()>;

    /// Runs `work` against the state of one moment. It must not change anything.
    async fn read(&self, work: Work) -> Stored<()>;

    /// A number that changes when anyone has written. Cheap enough to ask often.
    async fn version(&self) -> Stored<i64>;

    /// Returns the version as soon as it is another than this one. Costs nothing while nobody
    /// writes, however many wait.
    async fn changed_since(&self, version: i64) -> i64;

    /// Gives the room of what was deleted back to the system, and returns how many bytes are kept
    /// for later, if that would keep others from writing for too long. `is_alone` says that nobody
    /// else has the journal open.
    async fn give_back_room(&self, is_alone: bool) -> Stored<u64>;
}

/// The journal as one transaction sees it: one trait for each group of tables.
pub trait Journal:
    Tasks + Queue + Leases + Outbox + Waits + Sessions + Chains + Prune + ShownSessions
{
}

impl<T: Tasks + Queue + Leases + Outbox + Waits + Sessions + Chains + Prune + ShownSessions> Journal
    for T
{
}
