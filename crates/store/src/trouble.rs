//! What SQLite says, in our words.

use std::path::Path;

use asyncagents_core::port::StoreError;
use rusqlite::ErrorCode;

/// Judges an error of SQLite, once.
pub(crate) fn judge(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let why = error.to_string();
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Damaged { path, why };
    };
    match code {
        ErrorCode::NotADatabase => StoreError::NotADatabase { path },
        ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch => StoreError::Damaged { path, why },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked { path },
        ErrorCode::ReadOnly => StoreError::ReadOnly { path },
        ErrorCode::DiskFull => StoreError::Full {
            path,
            why: "the disk is full".to_owned(),
        },
        // A quota, a limit on file sizes, a broken disk: whatever it is, it takes no more.
        ErrorCode::SystemIoFailure => StoreError::Full { path, why },
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreError::CannotOpen { path, why },
        _ => StoreError::Failed { path, why },
    }
}
