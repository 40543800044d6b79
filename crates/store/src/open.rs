//! Opens the file: checks whose it is, migrates it to the newest format, sets durability.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use asyncagents_core::port::{StoreError, StoreErrorKind, Stored};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use crate::{
    functions,
    identity::{self, Introduction, Origin},
    sqlite_error::At,
};

/// Marks the file as ours: `asyn`.
const APPLICATION: i64 = 0x6173_796e;

/// One step from each format to the next. A step that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
];

/// When a transaction counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it is on the disk: it survives a power cut.
    #[default]
    Full,
    /// When the operating system has it: it survives the end of the process. For tests.
    Process,
}

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Access {
    #[default]
    Write,
    /// Read, beside other processes that may write.
    Read,
    /// Read from a place where no process can write.
    Immutable,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// When a transaction counts as done.
    pub durability: Durability,
    /// How long to wait for another process to finish its transaction.
    pub busy_timeout: Duration,
    /// How often those who wait look whether anyone has written, where the kernel tells nothing.
    pub poll_interval: Duration,
    /// How often they look where it does: a writer may have been killed before it was told.
    pub fallback_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            busy_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_millis(50),
            fallback_interval: Duration::from_secs(5),
        }
    }
}

/// Gives a database its identity when it gets the tables of this version.
pub(crate) type Introduce<'a> = &'a dyn Fn(Origin) -> Introduction;

/// The first format that has identities.
const WITH_IDENTITY: i64 = 4;

/// A connection that may write, to a database that is ours and in the newest format.
pub(crate) fn writer(
    path: &Path,
    options: Options,
    introduce: Introduce<'_>,
) -> Stored<Connection> {
    create(path)?;
    let mut connection = connect(path, options, Access::Write)?;
    check_application(&connection, path)?;
    use_write_ahead_log(&connection, options.busy_timeout).at(path)?;
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Process => "OFF",
    };
    let set = connection.pragma_update(None, "synchronous", synchronous);
    set.at(path)?;
    keep_in_memory(&connection, WRITERS_CACHE).at(path)?;
    migrate(&mut connection, path, introduce)?;
    Ok(connection)
}

/// An error whose kind says everything.
fn error(path: &Path, kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, path.display(), "")
}

/// How a file can be read that cannot be written, if it is ours and in the newest format.
pub(crate) fn to_read(path: &Path, options: Options) -> Stored<Access> {
    let (access, ()) = look(path, options, |connection| {
        if format(connection, path)? < newest_format() {
            // A migration would have to write.
            return Err(error(path, StoreErrorKind::ReadOnly));
        }
        Ok(())
    })?;
    Ok(access)
}

/// The format of a file that is ours, or of an empty one, whether or not it can be written.
pub(crate) fn format_of(path: &Path) -> Stored<i64> {
    let (_, format) = look(path, Options::default(), |connection| {
        let format = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
        format.at(path)
    })?;
    Ok(format)
}

/// Looks at a file that is ours, and says how it could be read.
fn look<T>(
    path: &Path,
    options: Options,
    what: impl Fn(&Connection) -> Stored<T>,
) -> Stored<(Access, T)> {
    let by = |access: Access| -> Stored<(Access, T)> {
        let connection = connect(path, options, access)?;
        check_application(&connection, path)?;
        Ok((access, what(&connection)?))
    };
    match by(Access::Read) {
        // SQLite's readers share a second file, which is missing and cannot be made here.
        Err(error) if is_read_only(&error) && has_empty_log(path) => by(Access::Immutable),
        looked => looked,
    }
}

fn is_read_only(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::CannotOpen | StoreErrorKind::ReadOnly
    )
}

/// Whether every commit is in the file itself, and none only in the write-ahead log.
fn has_empty_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |found| found.len() == 0)
}

pub(crate) fn newest_format() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The format of a database, which is not newer than those known here.
fn format(connection: &Connection, path: &Path) -> Stored<i64> {
    let format = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    match (format.at(path)?, newest_format()) {
        (found, known) if found > known => Err(error(path, StoreErrorKind::Newer { found, known })),
        (found, _) => Ok(found),
    }
}

/// How many kilobytes of the file a connection keeps; the system has them too. What a reader has is
/// stale with the next commit: more would only be memory that grows with the file.
const WRITERS_CACHE: i64 = 1_024;
const READERS_CACHE: i64 = 128;

fn keep_in_memory(connection: &Connection, kilobytes: i64) -> rusqlite::Result<()> {
    // A positive number would be one of pages.
    connection.pragma_update(None, "cache_size", -kilobytes)
}

/// A connection whose commits a power cut may undo, to a database that was opened for writing.
/// Whatever is synced later, or copied into the database itself, syncs them too.
pub(crate) fn unsynced_writer(path: &Path, options: Options) -> Stored<Connection> {
    let connection = connect(path, options, Access::Write)?;
    let synchronous = match options.durability {
        Durability::Full => "NORMAL",
        Durability::Process => "OFF",
    };
    keep_in_memory(&connection, READERS_CACHE).at(path)?;
    let set = connection.pragma_update(None, "synchronous", synchronous);
    set.at(path).map(|()| connection)
}

/// A connection that only reads.
pub(crate) fn reader(path: &Path, options: Options, access: Access) -> Stored<Connection> {
    let connection = connect(path, options, access)?;
    let set = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "query_only", true)?;
        keep_in_memory(&connection, READERS_CACHE)
    };
    set().at(path)?;
    Ok(connection)
}

/// An empty file that only its user may read; SQLite gives the files beside it the same
/// permissions.
fn create(path: &Path) -> Stored<()> {
    let cannot =
        |error: io::Error| StoreError::new(StoreErrorKind::CannotOpen, path.display(), error);
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        private_folder(folder).map_err(cannot)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(cannot(error)),
    }
}

/// Folders that are missing are for the user alone.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn connect(path: &Path, options: Options, access: Access) -> Stored<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match access {
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Immutable => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        };
    let name = match access {
        Access::Write | Access::Read => path.to_owned(),
        Access::Immutable => address(path).into(),
    };
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&name, flags)?;
        harden(&connection)?;
        functions::add(&connection)?;
        connection.busy_timeout(options.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(connection)
    };
    open().at(path)
}

/// The address of a file that does not change. Whatever has a meaning in addresses is written as
/// a number.
fn address(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address + "?immutable=1"
}

/// A file can hold code as well as rows: triggers, views, cascades, functions in indexes. We use
/// none of that, so none of it runs.
fn harden(connection: &Connection) -> rusqlite::Result<()> {
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    ] {
        connection.set_db_config(what, on)?;
    }
    Ok(())
}

/// An empty database becomes ours; another program's is left alone, and so is one that claims to
/// be ours and has tables from before it got a format.
fn check_application(connection: &Connection, path: &Path) -> Stored<()> {
    // All at one moment: another process may be making it ours.
    let read = || -> rusqlite::Result<(i64, i64, i64)> {
        let moment = connection.unchecked_transaction()?;
        let number = |sql: &str| moment.query_row(sql, [], |row| row.get::<_, i64>(0));
        let found = (
            number("PRAGMA application_id")?,
            number("PRAGMA user_version")?,
            number("SELECT count(*) FROM sqlite_master")?,
        );
        moment.finish()?;
        Ok(found)
    };
    match read().at(path)? {
        (0, 0, 0) | (APPLICATION, 1.., _) => Ok(()),
        _ => Err(error(path, StoreErrorKind::NotOurs)),
    }
}

/// Readers do not wait for the writer and the writer does not wait for readers. Of several
/// processes that open a new file, one switches, and SQLite does not let the others wait.
fn use_write_ahead_log(connection: &Connection, busy_timeout: Duration) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && begun.elapsed() < busy_timeout => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Whether a process has a lease: it is of an older version, and would go on writing the older
/// format. By the time of day, as all formats have it.
fn is_in_use(connection: &Connection) -> rusqlite::Result<bool> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_millis());
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    // No lease is that long: the clock was set since.
    let most = now.saturating_add(3_600_000);
    let sql = "SELECT EXISTS (SELECT 1 FROM owners WHERE until > ?1 AND until < ?2)";
    connection.query_row(sql, [now, most], |row| row.get(0))
}

/// Brings the database to the newest format, whole or not at all.
fn migrate(connection: &mut Connection, path: &Path, introduce: Introduce<'_>) -> Stored<()> {
    let known = newest_format();
    if format(connection, path)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.at(path)?;
    // Another process may have done it since.
    let found = format(&transaction, path)?;
    if found == known {
        return Ok(());
    }
    if found > 0 && is_in_use(&transaction).at(path)? {
        return Err(error(path, StoreErrorKind::InUse { found }));
    }
    let origin = match found {
        0 => Origin::New,
        found if found < WITH_IDENTITY => Origin::Older,
        _ => Origin::Known(identity::read(&transaction).at(path)?),
    };
    functions::add_for_migrations(&transaction).at(path)?;
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).at(path)?;
    }
    match introduce(origin) {
        Introduction::As(identity) => identity::write(&transaction, &identity).at(path)?,
        Introduction::Keep => {}
        Introduction::Refuse => return Err(error(path, StoreErrorKind::Unknown { found })),
    }
    for (pragma, value) in [("application_id", APPLICATION), ("user_version", known)] {
        transaction.pragma_update(None, pragma, value).at(path)?;
    }
    transaction.commit().at(path)
}
