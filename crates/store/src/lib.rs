//! The journal in a database.
//!
//! The SQL is in one file for each trait of the port: `tasks.rs` (with `task_list.rs`), `queue.rs`, `leases.rs`,
//! `outbox.rs`, `waits.rs`, `sessions.rs`, `chains.rs`, `prune.rs`. It is written for the trait in `sql.rs`, so
//! a second database needs that trait for its connection and [`Store`] for its transactions, not
//! this SQL again. `record.rs`, `question.rs`, `entry.rs`, `terms.rs` and `row.rs` say how records are written.
//!
//! What only SQLite knows: `statements.rs` (runs the SQL), `sqlite.rs` (commits, and
//! `PRAGMA data_version` as the version), `change_watch.rs` (waits for writes), `open.rs` with `migrations/` (pragmas, rowid keys,
//! `WITHOUT ROWID`), `identity.rs` (which file it is) and `sqlite_error.rs` (error codes).
//!
//! [`Store`]: asyncagents_core::port::Store

mod chains;
mod change_watch;
mod end_notice;
mod entry;
mod format_watch;
mod functions;
mod host_setup;
mod identity;
mod launched;
mod leases;
mod open;
mod outbox;
mod packed;
#[cfg(test)]
mod plans;
mod prune;
mod question;
mod queue;
mod record;
mod row;
mod search;
mod sessions;
mod shown_sessions;
mod sql;
mod sqlite;
mod sqlite_error;
mod statements;
mod task_list;
mod tasks;
mod terms;
mod transaction;
mod used;
mod waits;

pub use format_watch::{FormatWatch, format_of, newest_format};
pub use identity::{Identity, Introduction, Origin};
pub use open::{Durability, Options};
pub use sqlite::Sqlite;
