//! What is remembered of each session: the files it has seen, and the hints it has been given.

use std::{
    collections::{HashMap, HashSet},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use asyncagents_core::lock::lock;

/// What is remembered of a session.
#[derive(Default)]
pub(crate) struct Memory {
    seen: Mutex<HashMap<PathBuf, Stamp>>,
    hints: Mutex<HashSet<&'static str>>,
}

/// How a file looked from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Whether a session may change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The file is as the session knows it.
    Current,
    /// The file has changed since.
    Stale,
    /// The session has not read it.
    Never,
}

impl Stamp {
    /// How a file looks now.
    pub(crate) fn of(file: &Metadata) -> Self {
        Self {
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Memory {
    /// Notes how a file looked when the session read or wrote it.
    pub(crate) fn saw(&self, path: &Path, stamp: Stamp) {
        lock(&self.seen).insert(path.to_owned(), stamp);
    }

    /// Compares a file with what the session knows of it.
    pub(crate) fn compare(&self, path: &Path, now: Stamp) -> Seen {
        match lock(&self.seen).get(path) {
            None => Seen::Never,
            Some(known) if *known == now => Seen::Current,
            Some(_) => Seen::Stale,
        }
    }

    /// Whether the session gets this hint for the first time.
    pub(crate) fn is_first(&self, hint: &'static str) -> bool {
        lock(&self.hints).insert(hint)
    }
}
