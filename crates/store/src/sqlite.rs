//! Commits: many at a time, one after the other.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, TryLockError},
};

use async_trait::async_trait;
use asyncagents_core::{
    lock::lock,
    port::{Store, StoreError, StoreErrorKind, Stored, Work},
};
use rusqlite::{Connection, ffi};
use tokio::{
    sync::{Semaphore, oneshot},
    task::spawn_blocking,
};

use crate::{
    change_watch::ChangeWatch,
    identity::{self, Identity, Introduction, Origin},
    open::{self, Access, Options},
    sqlite_error::At,
    statements::Statements,
    transaction::Transaction,
};

/// How many pieces of work share a commit, at most: the first should not wait for too many.
const MOST_PER_COMMIT: usize = 512;

/// How many connections read at once.
const READERS: usize = 8;

/// How many bytes of a database are written anew while others have it open: they wait for that, and
/// not longer than their own timeout.
const REWRITTEN_BESIDE_OTHERS: u64 = 256 << 20;

/// The journal in a SQLite file.
///
/// Work that arrives while a commit is on its way to the disk is done in the next one,
/// all of it together, so a burst costs few commits.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    options: Options,
    access: Access,
    queue: Mutex<CommitQueue>,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// How many may read at once.
    reading: Semaphore,
    /// Reads the version, and makes commits that are not synced. The version is that of its own
    /// point of view: it does not change by what it has committed itself.
    watcher: Mutex<Connection>,
    changes: ChangeWatch,
}

/// Work that waits for a commit.
#[derive(Default)]
struct CommitQueue {
    waiting: Vec<Job>,
    /// A thread is committing, and will look into the queue again.
    is_committing: bool,
}

struct Job {
    work: Work,
    synced: bool,
    done: oneshot::Sender<Stored<()>>,
}

impl Sqlite {
    /// Opens the file, or makes a new one.
    ///
    /// # Errors
    /// When it cannot be opened, or is not a database of ours. It is left as it was then.
    pub fn open(path: impl AsRef<Path>) -> Stored<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the file with other options.
    ///
    /// # Errors
    /// As for [`Sqlite::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Stored<Self> {
        Self::open_as(path, options, &|_| Introduction::Keep)
    }

    /// Opens the file, and lets a database that has none be given an identity.
    ///
    /// # Errors
    /// As for [`Sqlite::open`].
    pub fn open_as(
        path: impl AsRef<Path>,
        options: Options,
        introduce: &dyn Fn(Origin) -> Introduction,
    ) -> Stored<Self> {
        let path = path.as_ref();
        let writer = open::writer(path, options, introduce)?;
        Self::with(path, options, Access::Write, writer)
    }

    /// Opens a file that cannot be written, to look at it. Whatever would change it is refused.
    ///
    /// # Errors
    /// As for [`Sqlite::open`]; also when it has an older format.
    pub fn open_to_read(path: impl AsRef<Path>) -> Stored<Self> {
        let (path, options) = (path.as_ref(), Options::default());
        let access = open::to_read(path, options)?;
        let writer = open::reader(path, options, access)?;
        Self::with(path, options, access, writer)
    }

    fn with(path: &Path, options: Options, access: Access, writer: Connection) -> Stored<Self> {
        let watcher = match access {
            Access::Write => open::unsynced_writer(path, options)?,
            Access::Read | Access::Immutable => open::reader(path, options, access)?,
        };
        // Links are followed by now.
        let file = watcher.path().map_or(path, Path::new);
        let changes = ChangeWatch::new(file, options);
        Ok(Self {
            inner: Arc::new(Inner {
                path: path.to_owned(),
                options,
                access,
                queue: Mutex::default(),
                writer: Mutex::new(writer),
                readers: Mutex::default(),
                reading: Semaphore::new(READERS),
                watcher: Mutex::new(watcher),
                changes,
            }),
        })
    }

    /// The identity that was written into the database.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn identity(&self) -> Stored<Option<Identity>> {
        identity::read(&lock(&self.inner.watcher)).at(&self.inner.path)
    }

    /// Replaces the identity: for a copy that is a database of its own, or one that was moved.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_identity(&self, new: &Identity) -> Stored<()> {
        let mut writer = lock(&self.inner.writer);
        let write = |writer: &mut Connection| {
            let transaction =
                writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            identity::write(&transaction, new)?;
            transaction.commit()
        };
        write(&mut writer).at(&self.inner.path)
    }

    async fn commit(&self, work: Work, synced: bool) -> Stored<()> {
        let (done, outcome) = oneshot::channel();
        let is_committing = {
            let mut queue = lock(&self.inner.queue);
            queue.waiting.push(Job { work, synced, done });
            mem::replace(&mut queue.is_committing, true)
        };
        if !is_committing {
            let inner = self.inner.clone();
            spawn_blocking(move || inner.commit_all());
        }
        outcome.await.unwrap_or_else(|_| Err(self.inner.ended()))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn write(&self, work: Work) -> Stored<()> {
        self.commit(work, true).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        self.commit(work, false).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        let inner = self.inner.clone();
        // Never closed, so there is always a permit to come.
        let _reads = self.inner.reading.acquire().await;
        let read = spawn_blocking(move || inner.read(work)).await;
        read.unwrap_or_else(|_| Err(self.inner.ended()))
    }

    async fn version(&self) -> Stored<i64> {
        // It is in memory: another thread would take longer to wake up than to read it.
        match self.inner.version_at_once() {
            Some(found) => found,
            None => {
                let inner = self.inner.clone();
                let asked = spawn_blocking(move || inner.version(&lock(&inner.watcher)));
                asked.await.unwrap_or_else(|_| Err(self.inner.ended()))
            }
        }
    }

    async fn changed_since(&self, version: i64) -> i64 {
        // Whoever looks does not keep the store open.
        let watched = Arc::downgrade(&self.inner);
        let look = move || {
            let store = watched.upgrade().map(|inner| Self { inner });
            async move {
                let Some(store) = store else { return false };
                // An error is for those who read; the next look may succeed.
                let _ = store.version().await;
                store.inner.changes.is_awaited()
            }
        };
        self.inner.changes.since(version, look).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        let inner = self.inner.clone();
        let given = spawn_blocking(move || inner.give_back_room(is_alone));
        given.await.unwrap_or_else(|_| Err(self.inner.ended()))
    }
}

impl Inner {
    /// Commits what is in the queue until it is empty.
    fn commit_all(&self) {
        loop {
            let jobs = {
                let mut queue = lock(&self.queue);
                let many = queue.waiting.len().min(MOST_PER_COMMIT);
                if many == 0 {
                    queue.is_committing = false;
                    return;
                }
                queue.waiting.drain(..many).collect::<Vec<_>>()
            };
            let synced = jobs.iter().any(|job| job.synced);
            let jobs = jobs.into_iter().map(|job| (job.work, job.done));
            let (works, waiting): (Vec<_>, Vec<_>) = jobs.unzip();
            let committed = if synced {
                self.commit_synced(works)
            } else {
                self.commit(&lock(&self.watcher), works)
            };
            for done in waiting {
                // The caller may have gone; the work is done all the same.
                let _ = done.send(committed.clone());
            }
        }
    }

    /// Commits, and tells those who wait if there is something to see.
    fn commit_synced(&self, works: Vec<Work>) -> Stored<()> {
        let writer = lock(&self.writer);
        let before = writer.total_changes();
        let committed = self.commit(&writer, works);
        if committed.is_ok() && writer.total_changes() != before {
            self.changes.ring();
        }
        committed
    }

    /// Does all of the work in one transaction. What answers false leaves no trace.
    fn commit(&self, connection: &Connection, works: Vec<Work>) -> Stored<()> {
        let sql = |statement: &str| {
            let mut statement = connection.prepare_cached(statement)?;
            statement.raw_execute().map(drop)
        };
        let run = || -> rusqlite::Result<()> {
            sql("BEGIN IMMEDIATE")?;
            for work in works {
                sql("SAVEPOINT work")?;
                let mut transaction = Transaction::new(Statements::new(connection, &self.path));
                let keep = catch_unwind(AssertUnwindSafe(|| work(&mut transaction)));
                // A disk that is full in the middle ends the transaction for everyone in it.
                if connection.is_autocommit() {
                    let full = ffi::Error::new(ffi::SQLITE_FULL);
                    return Err(rusqlite::Error::SqliteFailure(full, None));
                }
                if !keep.unwrap_or(false) {
                    sql("ROLLBACK TO work")?;
                }
                sql("RELEASE work")?;
            }
            sql("COMMIT")
        };
        let committed = run();
        // A full disk may have ended the transaction already.
        if committed.is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        committed.at(&self.path)
    }

    /// The version, unless a commit is under way that has to be waited for.
    fn version_at_once(&self) -> Option<Stored<i64>> {
        match self.watcher.try_lock() {
            Ok(watcher) => Some(self.version(&watcher)),
            Err(TryLockError::Poisoned(watcher)) => Some(self.version(&watcher.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Those who wait are told while the connection is held, so that no older version comes after a
    /// newer one.
    fn version(&self, watcher: &Connection) -> Stored<i64> {
        let version = watcher.prepare_cached("PRAGMA data_version");
        let version = version.and_then(|mut asked| asked.query_row([], |row| row.get(0)));
        let version = version.at(&self.path);
        version.inspect(|version| self.changes.found(*version))
    }

    fn read(&self, work: Work) -> Stored<()> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.path, self.options, self.access)?,
        };
        let run = || -> rusqlite::Result<()> {
            connection.prepare_cached("BEGIN")?.raw_execute()?;
            work(&mut Transaction::new(Statements::new(
                &connection,
                &self.path,
            )));
            connection.prepare_cached("COMMIT")?.raw_execute()?;
            Ok(())
        };
        let done = run().at(&self.path);
        if done.is_ok() {
            lock(&self.readers).push(connection);
        }
        done
    }

    /// Writes the database anew without the pages that are free. Others can read meanwhile, and
    /// write when it is done.
    fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        let connection = lock(&self.writer);
        let number = |pragma: &str| {
            let asked = connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
            asked.map(|number| u64::try_from(number).unwrap_or_default())
        };
        let give = || -> rusqlite::Result<u64> {
            let page = number("PRAGMA page_size")?;
            let free = number("PRAGMA freelist_count")?.saturating_mul(page);
            let used = number("PRAGMA page_count")?.saturating_mul(page);
            let used = used.saturating_sub(free);
            if free > 0 && !is_alone && used > REWRITTEN_BESIDE_OTHERS {
                return Ok(free);
            }
            if free > 0 {
                connection.execute_batch("VACUUM")?;
            }
            // Whoever reads keeps what they see: the rest is for the next time.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(0)
        };
        give().at(&self.path)
    }

    fn ended(&self) -> StoreError {
        let why = "the program is ending";
        StoreError::new(StoreErrorKind::Failed, self.path.display(), why)
    }
}
