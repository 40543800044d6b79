//! Which database a file is. What trusts a database says so by a seal, which is made and judged
//! elsewhere: here it is only kept.

use std::{ffi::OsString, path::PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

/// Which database this is, and where it was when it was told so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name, which no other database has.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// Which file it is, as the system tells them apart: a copy is another, also in the same
    /// place.
    pub file: String,
    /// What proves the rest.
    pub seal: String,
}

/// What becomes of a database that is new, or of an older format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Introduction {
    /// It gets this identity.
    As(Identity),
    /// It keeps the one that it has, if any.
    Keep,
    /// It is left alone, and not opened.
    Refuse,
}

/// Where a database comes from that is to be brought to the newest format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was made just now.
    New,
    /// A version before identities made it.
    Older,
    /// It has this identity, or none.
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
