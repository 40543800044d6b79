//! Errors of SQLite as errors of a store.

use std::path::Path;

use asyncagents_core::port::{FileWork, StoreError, StoreErrorKind, Stored};
use rusqlite::{ErrorCode, ffi};

/// Turns an error of SQLite into one that names the file.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Stored<T>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Stored<T> {
        self.map_err(|error| store_error(path, &error))
    }
}

fn store_error(path: &Path, error: &rusqlite::Error) -> StoreError {
    let kind = match error.sqlite_error() {
        Some(failure) => kind(failure),
        None => StoreErrorKind::Damaged,
    };
    let why = match kind {
        StoreErrorKind::Full => "the disk is full".to_owned(),
        _ => error.to_string(),
    };
    StoreError::new(kind, path.display(), why)
}

fn kind(failure: &ffi::Error) -> StoreErrorKind {
    match failure.code {
        ErrorCode::NotADatabase => StoreErrorKind::NotADatabase,
        ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch => StoreErrorKind::Damaged,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreErrorKind::Locked,
        ErrorCode::ReadOnly => StoreErrorKind::ReadOnly,
        ErrorCode::DiskFull => StoreErrorKind::Full,
        ErrorCode::SystemIoFailure => {
            failed_work(failure.extended_code).map_or(StoreErrorKind::Failed, StoreErrorKind::Disk)
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreErrorKind::CannotOpen,
        _ => StoreErrorKind::Failed,
    }
}

/// The file operation that failed; none if SQLite only had no memory.
fn failed_work(extended: i32) -> Option<FileWork> {
    Some(match extended {
        ffi::SQLITE_IOERR_NOMEM => return None,
        ffi::SQLITE_IOERR_READ
        | ffi::SQLITE_IOERR_SHORT_READ
        | ffi::SQLITE_IOERR_FSTAT
        | ffi::SQLITE_IOERR_ACCESS
        | ffi::SQLITE_IOERR_SEEK
        | ffi::SQLITE_IOERR_MMAP
        | ffi::SQLITE_IOERR_SHMMAP => FileWork::Read,
        ffi::SQLITE_IOERR_LOCK
        | ffi::SQLITE_IOERR_RDLOCK
        | ffi::SQLITE_IOERR_UNLOCK
        | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
        | ffi::SQLITE_IOERR_SHMLOCK => FileWork::Lock,
        // Write, truncate, remove, and codes of later versions.
        _ => FileWork::Write,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rstest::rstest;
    use rusqlite::ffi;

    use super::store_error;

    const DISK: &str = "I/O error; the file itself may be fine";

    #[rstest]
    #[case::read(ffi::SQLITE_IOERR_READ, "the disk failed to read /a.db: ", DISK)]
    #[case::short(ffi::SQLITE_IOERR_SHORT_READ, "the disk failed to read /a.db: ", DISK)]
    #[case::size(ffi::SQLITE_IOERR_FSTAT, "the disk failed to read /a.db: ", DISK)]
    #[case::shared(ffi::SQLITE_IOERR_SHMMAP, "the disk failed to read /a.db: ", DISK)]
    #[case::write(ffi::SQLITE_IOERR_WRITE, "the disk failed to write /a.db: ", DISK)]
    #[case::sync(ffi::SQLITE_IOERR_FSYNC, "the disk failed to write /a.db: ", DISK)]
    #[case::shorten(ffi::SQLITE_IOERR_TRUNCATE, "the disk failed to write /a.db: ", DISK)]
    #[case::grow(ffi::SQLITE_IOERR_SHMSIZE, "the disk failed to write /a.db: ", DISK)]
    #[case::remove(ffi::SQLITE_IOERR_DELETE, "the disk failed to write /a.db: ", DISK)]
    #[case::plain(ffi::SQLITE_IOERR, "the disk failed to write /a.db: ", DISK)]
    #[case::lock(ffi::SQLITE_IOERR_LOCK, "the disk failed to lock /a.db: ", DISK)]
    #[case::shared_lock(ffi::SQLITE_IOERR_SHMLOCK, "the disk failed to lock /a.db: ", DISK)]
    #[case::memory(ffi::SQLITE_IOERR_NOMEM, "/a.db: ", "")]
    #[case::full(ffi::SQLITE_FULL, "/a.db cannot grow: the disk is full", "")]
    #[case::corrupt(ffi::SQLITE_CORRUPT, "/a.db is damaged: ", "")]
    #[case::busy(ffi::SQLITE_BUSY, "/a.db is locked", "")]
    fn each_error_is_called_what_it_is(
        #[case] code: i32,
        #[case] begins: &str,
        #[case] ends: &str,
    ) {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let said = store_error(Path::new("/a.db"), &error).to_string();
        assert!(said.starts_with(begins) && said.ends_with(ends), "{said}");
    }
}
