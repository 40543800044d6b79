//! The format of a database, which a newer version may change while older processes have it open.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use asyncagents_core::{lock::lock, port::Stored};
use rusqlite::Connection;

use crate::{
    open::{self, Access, Options},
    sqlite_error::At,
};

/// The format that this version writes.
pub fn newest_format() -> i64 {
    open::newest_format()
}

/// The format of a database of asyncagents, which may be one that cannot be written; 0 of an empty
/// file.
///
/// # Errors
/// When it cannot be read, or is another program's.
pub fn format_of(path: &Path) -> Stored<i64> {
    open::format_of(path)
}

/// Looks at the format of a database, and changes nothing.
pub struct FormatWatch {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl FormatWatch {
    /// Opens a database to look at its format.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> Stored<Self> {
        let connection = open::reader(path, Options::default(), Access::Read)?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
        })
    }

    /// The format as it is now; 0 of a file without tables.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn format(&self) -> Stored<i64> {
        let connection = lock(&self.connection);
        let format = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
        format.at(&self.path)
    }

    /// Whether a newer version has changed the format: this one can no longer read everything.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_newer(&self) -> Stored<bool> {
        Ok(self.format()? > newest_format())
    }
}
