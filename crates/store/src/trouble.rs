//! What SQLite says, in our words.

use std::path::Path;

use asyncagents_core::port::{FileWork, StoreError};
use rusqlite::{ErrorCode, ffi};

/// Judges an error of SQLite, once.
pub(crate) fn judge(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let why = error.to_string();
    let Some(failure) = error.sqlite_error() else {
        return StoreError::Damaged { path, why };
    };
    match failure.code {
        ErrorCode::NotADatabase => StoreError::NotADatabase { path },
        ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch => StoreError::Damaged { path, why },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked { path },
        ErrorCode::ReadOnly => StoreError::ReadOnly { path },
        ErrorCode::DiskFull => StoreError::Full {
            path,
            why: "the disk is full".to_owned(),
        },
        ErrorCode::SystemIoFailure => match failed_work(failure.extended_code) {
            Some(work) => StoreError::Disk { path, work, why },
            None => StoreError::Failed { path, why },
        },
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreError::CannotOpen { path, why },
        _ => StoreError::Failed { path, why },
    }
}

/// What the system could not do for SQLite; nothing if it only had no memory.
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
        // Those that write, shorten and remove, and any that may come.
        _ => FileWork::Write,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rstest::rstest;
    use rusqlite::ffi;

    use super::judge;

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
        let said = judge(Path::new("/a.db"), &error).to_string();
        assert!(said.starts_with(begins) && said.ends_with(ends), "{said}");
    }
}
