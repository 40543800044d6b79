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
