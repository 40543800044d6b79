//! The identity of a database. Its seal is made and verified by the caller; here it is only kept.

use std::{ffi::OsString, path::PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

/// Which database a file is, and where it was when that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A name that no other database has.
    pub id: String,
    /// Path of the file.
    pub path: PathBuf,
    /// The file as the system tells files apart: a copy is another one, also at the same path.
    pub file: String,
    /// Authenticates the other fields.
    pub seal: String,
}

/// Decision about a database that is new, or of an older format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Introduction {
    /// Write this identity.
    As(Identity),
    /// Keep the identity it has, if any.
    Keep,
    /// Do not open it, and leave it as it is.
    Refuse,
}

/// Where a database comes from that is to be brought to the newest format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Created just now.
    New,
    /// A version before identities made it.
    Older,
    /// A version with identities made it: this one, or none.
    Known(Option<Identity>),
}

pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<Identity>> {
    let row = connection.query_row("SELECT id, path, file, seal FROM identity", [], |row| {
        Ok(Identity {
            id: row.get(0)?,
            path: as_path(row.get(1)?),
            file: row.get(2)?,
            seal: row.get(3)?,
        })
    });
    row.optional()
}

/// Inside a transaction.
pub(crate) fn write(connection: &Connection, identity: &Identity) -> rusqlite::Result<()> {
    let Identity {
        id,
        path,
        file,
        seal,
    } = identity;
    connection.execute("DELETE FROM identity", [])?;
    connection.execute(
        "INSERT INTO identity (id, path, file, seal) VALUES (?1, ?2, ?3, ?4)",
        params![id, as_bytes(path.clone()), file, seal],
    )?;
    Ok(())
}

#[cfg(unix)]
fn as_bytes(path: PathBuf) -> Vec<u8> {
    std::os::unix::ffi::OsStringExt::into_vec(path.into_os_string())
}

#[cfg(unix)]
fn as_path(bytes: Vec<u8>) -> PathBuf {
    <OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into()
}
