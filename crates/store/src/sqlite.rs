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
    statements::Statements,
    transaction::Transaction,
    trouble::judge,
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
    line: Mutex<Line>,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// As many may read at once.
    reading: Semaphore,
    watcher: Mutex<Connection>,
}

/// Work that waits for a commit.
#[derive(Default)]
struct Line {
    waiting: Vec<Job>,
    /// Someone is already at it and will look into the line again.
    attended: bool,
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

    /// Opens the file in another way.
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
        let path = path.as_ref().to_owned();
        let writer = open::writer(&path, options, introduce)?;
        let watcher = open::reader(&path, options, Access::Write)?;
        Ok(Self {
            inner: Arc::new(Inner {
                line: Mutex::default(),
                writer: Mutex::new(writer),
                readers: Mutex::default(),
                reading: Semaphore::new(READERS),
                watcher: Mutex::new(watcher),
                path,
                options,
                access: Access::Write,
            }),
        })
    }

    /// Opens a file that cannot be written, to look at it. Whatever would change it is refused.
    ///
    /// # Errors
    /// As for [`Sqlite::open`]; also when it has an older format.
    pub fn open_to_read(path: impl AsRef<Path>) -> Stored<Self> {
        let path = path.as_ref().to_owned();
        let options = Options::default();
        let access = open::to_read(&path, options)?;
        Ok(Self {
            inner: Arc::new(Inner {
                line: Mutex::default(),
                writer: Mutex::new(open::reader(&path, options, access)?),
                readers: Mutex::default(),
                reading: Semaphore::new(READERS),
                watcher: Mutex::new(open::reader(&path, options, access)?),
                path,
                options,
                access,
            }),
        })
    }

    /// Which database it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn identity(&self) -> Stored<Option<Identity>> {
        let read = identity::read(&lock(&self.inner.watcher));
        read.map_err(|error| judge(&self.inner.path, &error))
    }

    /// Makes it another database, or the same one elsewhere.
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
        write(&mut writer).map_err(|error| judge(&self.inner.path, &error))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn write(&self, work: Work) -> Stored<()> {
        let (done, outcome) = oneshot::channel();
        let attended = {
            let mut line = lock(&self.inner.line);
            line.waiting.push(Job { work, done });
            mem::replace(&mut line.attended, true)
        };
        if !attended {
            let inner = self.inner.clone();
            spawn_blocking(move || inner.attend());
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
            version.map_err(|error| judge(&inner.path, &error))
        });
        asked.await.unwrap_or_else(|_| Err(self.inner.ended()))
    }
}

impl Inner {
    /// Commits what is in the line until the line is empty.
    fn attend(&self) {
        loop {
            let jobs = {
                let mut line = lock(&self.line);
                let many = line.waiting.len().min(MOST_PER_COMMIT);
                if many == 0 {
                    line.attended = false;
                    return;
                }
                line.waiting.drain(..many).collect::<Vec<_>>()
            };
            let mut waiting = Vec::with_capacity(jobs.len());
            let mut works = Vec::with_capacity(jobs.len());
            for Job { work, done } in jobs {
                works.push(work);
                waiting.push(done);
            }
            let committed = self.commit(works);
            for done in waiting {
                // Whoever asked may have gone; the work is done all the same.
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
        run().map_err(|error| {
            // A full disk may have ended the transaction already.
            if !connection.is_autocommit() {
                let _ = connection.execute_batch("ROLLBACK");
            }
            judge(&self.path, &error)
        })
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
        let done = run().map_err(|error| judge(&self.path, &error));
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
