//! Opens the file: whose it is, which format it has, how it is written.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use asyncagents_core::port::{StoreError, StoreErrorKind, Stored};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    identity::{self, Introduction, Origin},
    trouble::judge,
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
    /// Everything.
    #[default]
    Write,
    /// It is read, beside others who may write it.
    Read,
    /// It is read where nothing can be written, so that nobody else writes it either.
    Still,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// When a transaction counts as done.
    pub durability: Durability,
    /// How long to wait for another process to finish its transaction.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            patience: Duration::from_secs(10),
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
    let judged = |error: rusqlite::Error| judge(path, &error);
    check_whose(&connection, path)?;
    journal_ahead(&connection, options.patience).map_err(judged)?;
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Process => "OFF",
    };
    connection
        .pragma_update(None, "synchronous", synchronous)
        .map_err(judged)?;
    migrate(&mut connection, path, introduce)?;
    Ok(connection)
}

/// An error that needs no more words.
fn error(path: &Path, kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, path.display(), "")
}

/// How a file can be read that cannot be written, if it is ours and in the newest format.
pub(crate) fn to_read(path: &Path, options: Options) -> Stored<Access> {
    match look(path, options, Access::Read) {
        // Readers share a file that is not there and cannot be made.
        Err(error) if is_shut(&error) && has_all(path) => {
            look(path, options, Access::Still)?;
            Ok(Access::Still)
        }
        looked => looked.map(|()| Access::Read),
    }
}

fn is_shut(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::CannotOpen | StoreErrorKind::ReadOnly
    )
}

/// Whether all that was written is in the file itself.
fn has_all(path: &Path) -> bool {
    let mut ahead = path.as_os_str().to_owned();
    ahead.push("-wal");
    std::fs::metadata(ahead).map_or(true, |found| found.len() == 0)
}

fn look(path: &Path, options: Options, access: Access) -> Stored<()> {
    let connection = connect(path, options, access)?;
    check_whose(&connection, path)?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let format = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    match format.map_err(|error| judge(path, &error))? {
        found if found == known => Ok(()),
        found if found > known => Err(error(path, StoreErrorKind::Newer { found, known })),
        // It would have to be brought to the newest format first.
        _ => Err(error(path, StoreErrorKind::ReadOnly)),
    }
}

/// A connection that only reads.
pub(crate) fn reader(path: &Path, options: Options, access: Access) -> Stored<Connection> {
    let connection = connect(path, options, access)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| judge(path, &error))?;
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
            Access::Still => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        };
    let name = match access {
        Access::Write | Access::Read => path.to_owned(),
        Access::Still => address(path).into(),
    };
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&name, flags)?;
        harden(&connection)?;
        connection.busy_timeout(options.patience)?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(connection)
    };
    open().map_err(|error| judge(path, &error))
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

/// An empty database becomes ours; one that is somebody else's is left alone, and so is one that
/// claims to be ours and has tables from before it got a format.
fn check_whose(connection: &Connection, path: &Path) -> Stored<()> {
    // All at one moment: another process may be making it ours.
    let look = || -> rusqlite::Result<(i64, i64, i64)> {
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
    match look().map_err(|error| judge(path, &error))? {
        (0, 0, 0) | (APPLICATION, 1.., _) => Ok(()),
        _ => Err(error(path, StoreErrorKind::NotOurs)),
    }
}

/// Readers do not wait for the writer and the writer does not wait for readers. Of several
/// processes that open a new file, one switches, and SQLite does not let the others wait.
fn journal_ahead(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && begun.elapsed() < patience => {
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
    let judged = |error: rusqlite::Error| judge(path, &error);
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let format = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
    };
    match format(connection).map_err(judged)? {
        found if found == known => return Ok(()),
        found if found > known => return Err(error(path, StoreErrorKind::Newer { found, known })),
        _ => {}
    }
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(judged)?;
    // Another process may have done it since.
    let found = format(&transaction).map_err(judged)?;
    if found > 0 && found < known && is_in_use(&transaction).map_err(judged)? {
        return Err(error(path, StoreErrorKind::InUse { found }));
    }
    let origin = match found {
        0 => Origin::New,
        found if found < WITH_IDENTITY => Origin::Older,
        _ => Origin::Known(identity::read(&transaction).map_err(judged)?),
    };
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).map_err(judged)?;
    }
    if found < known {
        match introduce(origin) {
            Introduction::As(identity) => {
                identity::write(&transaction, &identity).map_err(judged)?;
            }
            Introduction::Keep => {}
            Introduction::Refuse => {
                return Err(error(path, StoreErrorKind::Unknown { found }));
            }
        }
        transaction
            .pragma_update(None, "application_id", APPLICATION)
            .map_err(judged)?;
        transaction
            .pragma_update(None, "user_version", known)
            .map_err(judged)?;
    }
    transaction.commit().map_err(judged)
}
