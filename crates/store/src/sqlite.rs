//! Commits: many at a time, one after the other.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
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
    watcher: Mutex<Connection>,
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
        let watcher = open::reader(path, options, access)?;
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

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn write(&self, work: Work) -> Stored<()> {
        let (done, outcome) = oneshot::channel();
        let is_committing = {
            let mut queue = lock(&self.inner.queue);
            queue.waiting.push(Job { work, done });
            mem::replace(&mut queue.is_committing, true)
        };
        if !is_committing {
            let inner = self.inner.clone();
            spawn_blocking(move || inner.commit_all());
        }
        outcome.await.unwrap_or_else(|_| Err(self.inner.ended()))
    }

    async fn read(&self, work: Work) -> Stored<()> {
        let inner = self.inner.clone();
        // Never closed, so there is always a permit to come.
        let _reads = self.inner.reading.acquire().await;
        let read = spawn_blocking(move || inner.read(work)).await;
        read.unwrap_or_else(|_| Err(self.inner.ended()))
    }

    async fn version(&self) -> Stored<i64> {
        let inner = self.inner.clone();
        let asked = spawn_blocking(move || {
            let watcher = lock(&inner.watcher);
            let version = watcher.query_row("PRAGMA data_version", [], |row| row.get(0));
            version.at(&inner.path)
        });
        asked.await.unwrap_or_else(|_| Err(self.inner.ended()))
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
            let jobs = jobs.into_iter().map(|Job { work, done }| (work, done));
            let (works, waiting): (Vec<_>, Vec<_>) = jobs.unzip();
            let committed = self.commit(works);
            for done in waiting {
                // The caller may have gone; the work is done all the same.
                let _ = done.send(committed.clone());
            }
        }
    }

    /// Does all of the work in one transaction. What answers false leaves no trace.
    fn commit(&self, works: Vec<Work>) -> Stored<()> {
        let connection = lock(&self.writer);
        let sql = |statement: &str| {
            let mut statement = connection.prepare_cached(statement)?;
            statement.raw_execute().map(drop)
        };
        let run = || -> rusqlite::Result<()> {
            sql("BEGIN IMMEDIATE")?;
            for work in works {
                sql("SAVEPOINT work")?;
                let mut transaction = Transaction::new(Statements::new(&connection, &self.path));
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

    fn ended(&self) -> StoreError {
        let why = "the program is ending";
        StoreError::new(StoreErrorKind::Failed, self.path.display(), why)
    }
}
