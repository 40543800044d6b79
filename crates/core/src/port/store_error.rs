//! What can be wrong with a store.

use thiserror::Error;

use crate::words::words;

/// The result of looking into the journal.
pub type Stored<T> = Result<T, StoreError>;

/// The first format whose databases have a seal.
const FIRST_SEALED: i64 = 4;

/// What is wrong with the store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct StoreError {
    kind: StoreErrorKind,
    place: String,
    why: String,
}

/// Which kind of trouble a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// There is something else in its place.
    NotADatabase,
    /// A database of another program.
    NotOurs,
    /// Written by a newer version.
    Newer {
        found: i64,
        /// The newest format known.
        known: i64,
    },
    /// Of an older format, and not known to be its user's.
    Unknown {
        found: i64,
    },
    /// Of an older format, and a process of an older version is at work in it.
    InUse {
        found: i64,
    },
    /// What is stored cannot be what was written.
    Damaged,
    /// Another process holds it.
    Locked,
    ReadOnly,
    Full,
    /// The system could not do what was asked of it. What is stored is not at fault.
    Disk(FileWork),
    CannotOpen,
    Failed,
}

impl StoreError {
    /// `place` is what people know the database by: its file, or its address. `why` is not said
    /// where the kind says it all.
    pub fn new(kind: StoreErrorKind, place: impl ToString, why: impl ToString) -> Self {
        Self {
            kind,
            place: place.to_string(),
            why: why.to_string(),
        }
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Which database has it.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn sentence(&self) -> String {
        let Self { kind, place, why } = self;
        match kind {
            StoreErrorKind::NotADatabase => format!("{place} is not a database"),
            StoreErrorKind::NotOurs => format!("{place} is a database of another program"),
            StoreErrorKind::Newer { found, known } => {
                format!("{place} has format {found}, and this version knows formats up to {known}")
            }
            StoreErrorKind::Unknown { found } => format!(
                "{place} has format {found}, and {}",
                if *found < FIRST_SEALED {
                    "is from before databases had a seal of their user's"
                } else {
                    "has no seal of its user's for this place"
                }
            ),
            StoreErrorKind::InUse { found } => format!(
                "{place} has format {found}, and an older version of asyncagents is at work in it"
            ),
            StoreErrorKind::Damaged => format!("{place} is damaged: {why}"),
            StoreErrorKind::Locked => format!("{place} is locked by another process"),
            StoreErrorKind::ReadOnly => format!("{place} cannot be written: it is read-only"),
            StoreErrorKind::Full => format!("{place} cannot grow: {why}"),
            StoreErrorKind::Disk(work) => {
                format!("the disk failed to {work} {place}: {why}; the file itself may be fine")
            }
            StoreErrorKind::CannotOpen => format!("{place} cannot be opened: {why}"),
            StoreErrorKind::Failed => format!("{place}: {why}"),
        }
    }
}

/// What a disk is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWork {
    Read,
    /// To write, shorten or remove.
    Write,
    Lock,
}

words! {
    FileWork { Read = "read", Write = "write", Lock = "lock" }
}
