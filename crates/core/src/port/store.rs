//! Where tasks are kept.

use std::{fmt, path::PathBuf, time::Duration};

use async_trait::async_trait;
use thiserror::Error;

use super::{Chains, Clock, Notice, Sessions};
use crate::{
    budget::Spent,
    event::{Event, Launched, Saved},
    fork::Plan,
    id::{HostKey, OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    notify::Batch,
    schedule::Slots,
    task::Task,
};

/// What is done in one transaction. It answers whether to keep what it did.
pub type Work = Box<dyn FnOnce(&mut dyn Journal) -> bool + Send>;

/// The result of looking into the journal.
pub type Stored<T> = Result<T, StoreError>;

/// Keeps the journal. All processes that work with the same file see the same journal.
#[async_trait]
pub trait Store: Send + Sync {
    /// Runs `work` alone, against the newest state. When this returns, what it did is on
    /// disk, or none of it happened.
    async fn write(&self, work: Work) -> Stored<()>;

    /// Runs `work` against the state of one moment. It must not change anything.
    async fn read(&self, work: Work) -> Stored<()>;

    /// A number that changes when anyone has written. Cheap enough to ask often.
    async fn version(&self) -> Stored<i64>;
}

/// The journal as one transaction sees it.
pub trait Journal: Sessions + Chains {
    /// A task.
    fn task(&mut self, id: &TaskId) -> Stored<Option<Task>>;
    /// The task that works in a session.
    fn task_in(&mut self, session: &SessionId) -> Stored<Option<Task>>;
    /// Begins a task with its first event.
    fn insert(&mut self, id: TaskId, launched: Launched, at: Moment) -> Stored<Task>;
    /// Saves what happened to a task, and folds it in.
    fn append(&mut self, task: &mut Task, events: &[Event], at: Moment) -> Stored<()>;
    /// Everything that happened to a task.
    fn events(&mut self, id: &TaskId) -> Stored<Vec<Saved>>;
    /// Which tasks something happened to after event number `position`, and the number of
    /// the newest event.
    fn changed_since(&mut self, position: i64) -> Stored<(Vec<TaskId>, i64)>;
    /// What a forked child inherits.
    fn fork_plan(&mut self, id: &TaskId) -> Stored<Option<Plan>>;
    /// What the skill says that a task runs.
    fn instructions(&mut self, id: &TaskId) -> Stored<Option<String>>;
    /// What a task has to do in its newest run.
    fn prompt(&mut self, id: &TaskId) -> Stored<Option<String>>;
    /// What a task's child said at the end of its newest finished run.
    fn answer(&mut self, id: &TaskId) -> Stored<Option<String>>;

    /// The tasks of a session that are not cleared, newest first; of all without one.
    fn tasks_of(&mut self, parent: Option<&SessionId>) -> Stored<Vec<Task>>;
    /// The tasks launched from the session of a task.
    fn below(&mut self, above: &TaskId) -> Stored<Vec<Task>>;
    /// What the tasks below a task have spent, all together.
    fn spent_below(&mut self, above: &TaskId) -> Stored<Spent>;
    /// The tasks that are not cleared and whose ID begins like this.
    fn beginning_with(&mut self, beginning: &str) -> Stored<Vec<Task>>;
    /// The IDs just before and after this one.
    fn neighbours(&mut self, id: &TaskId) -> Stored<Vec<TaskId>>;
    /// How many tasks were ever launched below a root session.
    fn launched_below(&mut self, root: &SessionId) -> Stored<u64>;
    /// What all tasks below a root session have spent, cleared ones too.
    fn spent_below_root(&mut self, root: &SessionId) -> Stored<Spent>;
    /// The batch a parent's unfinished tasks belong to, or a new one.
    fn open_batch(&mut self, parent: &SessionId) -> Stored<u64>;
    /// How far a batch has come.
    fn batch(&mut self, parent: &SessionId, batch: u64) -> Stored<Batch>;

    /// Up to `most` queued tasks of one depth that have an owner and whose former run has
    /// been stopped: first come first, those after place `after`, each with its place.
    fn queue(&mut self, depth: u32, after: i64, most: usize) -> Stored<Vec<(Task, i64)>>;
    /// The depths at which tasks are queued.
    fn queued_depths(&mut self) -> Stored<Vec<u32>>;
    /// Whether a task of this owner is queued.
    fn any_queued(&mut self, owner: &OwnerId) -> Stored<bool>;
    /// How many slots are taken by tasks that someone looks after.
    fn taken(&mut self, slots: &Slots) -> Stored<u64>;

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
    /// The hosts of unfinished tasks that nobody ever looked after.
    fn unowned(&mut self) -> Stored<Vec<HostKey>>;
    /// The tasks of an owner whose host has to be stopped.
    fn to_stop(&mut self, owner: &OwnerId) -> Stored<Vec<Task>>;
    /// All tasks of an owner that need one.
    fn owned(&mut self, owner: &OwnerId) -> Stored<Vec<Task>>;
    /// How many tasks and notices of each host are not settled.
    fn unfinished(&mut self) -> Stored<Vec<(HostKey, u64)>>;
    /// How many tasks that a task launched are at work, or have ended without its having been
    /// told yet.
    fn unsettled_below(&mut self, above: &TaskId) -> Stored<u64>;

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
    fn let_settle(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()>;
    /// A parent may be able to take its notices now.
    fn hurry(&mut self, parent: &SessionId, now: Moment) -> Stored<bool>;
    /// Whether a parent has notices to come.
    fn any_pending(&mut self, parent: &SessionId) -> Stored<bool>;
    /// A notice is in the parent's history.
    fn told(&mut self, notice: &PostId, at: Moment) -> Stored<()>;
    /// A notice will not be sent, for this reason.
    fn untold(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// Withdraws one notice, unless someone has begun to send it.
    fn withdraw(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// A task's notices, and what became of each.
    fn notices(&mut self, task: &TaskId) -> Stored<Vec<(PostId, Fate)>>;
    /// Someone waits for a task until then.
    fn wait(&mut self, task: &TaskId, by: &SessionId, until: Moment) -> Stored<i64>;
    /// That someone waits no more.
    fn stop_waiting(&mut self, wait: i64) -> Stored<()>;
    /// Until when someone in this session waits for a task.
    fn awaited(&mut self, task: &TaskId, by: &SessionId, now: Moment) -> Stored<Option<Moment>>;
}

/// A lease that has run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lapsed {
    /// Whose.
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

/// What became of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Nothing yet.
    Pending,
    /// It is in the parent's history.
    Told,
    /// It was not sent, for a reason.
    Untold(String),
}

/// A notice that has to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotice {
    /// Its place in the outbox.
    pub place: i64,
    /// What to say.
    pub notice: Notice,
    /// To whom.
    pub parent: SessionId,
    /// In which host.
    pub host: HostKey,
    /// When it was last about to be sent, and perhaps was.
    pub attempted: Option<Moment>,
    /// How often it was put off.
    pub attempts: u32,
}

/// What a disk is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWork {
    /// To read.
    Read,
    /// To write, shorten or remove.
    Write,
    /// To lock.
    Lock,
}

impl fmt::Display for FileWork {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            FileWork::Read => "read",
            FileWork::Write => "write",
            FileWork::Lock => "lock",
        })
    }
}

/// What is wrong with the store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The file is not a database.
    #[error("{} is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database, but of another program.
    #[error("{} is a database of another program", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer version.
    #[error("{} has format {found}, and this version knows formats up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known.
        known: i64,
    },
    /// Of an older format, and of nobody that is known.
    #[error("{} has format {found}, from before databases had a seal of their user's", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// Someone has damaged it.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it shows.
        why: String,
    },
    /// Someone else does not let go of it.
    #[error("{} is locked by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{} cannot be written: it is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No room.
    #[error("{} cannot grow: {why}", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The limit it met.
        why: String,
    },
    /// The system could not do what was asked of it. What is in the file is not at fault.
    #[error("the disk failed to {work} {}: {why}; the file itself may be fine", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What it was asked for.
        work: FileWork,
        /// What the database says.
        why: String,
    },
    /// It cannot be opened.
    #[error("{} cannot be opened: {why}", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Anything else.
    #[error("{}: {why}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the database says.
        why: String,
    },
}
