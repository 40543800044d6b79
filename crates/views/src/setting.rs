//! Settings, and the small answers of verbs that change something.

use std::borrow::Cow;

use serde::Serialize;

/// A setting, its value, and where that comes from.
#[derive(Debug, Serialize)]
pub struct SettingView {
    pub about: String,
    pub key: String,
    pub source: String,
    pub value: String,
}

/// The tasks of a session were forgotten.
#[derive(Debug, Serialize)]
pub struct ClearedView {
    pub cleared: u64,
    /// How many of them were unfinished.
    pub stopped: u64,
}

/// A database was made the user's.
#[derive(Debug, Serialize)]
pub struct AdoptedView<'a> {
    /// The path of the database.
    pub adopted: Cow<'a, str>,
    /// How many unfinished tasks were ended.
    pub ended: u64,
}

/// What ended long ago was deleted, or could be.
#[derive(Debug, Serialize)]
pub struct PrunedView {
    /// The size of the database, if something was deleted.
    pub bytes_after: Option<u64>,
    pub bytes_before: Option<u64>,
    /// False if it was only counted.
    pub deleted: bool,
    pub sessions: u64,
    pub tasks: u64,
}
