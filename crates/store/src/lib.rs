//! The journal on SQLite.
//!
//! `sqlite.rs` opens the file and commits, `journal.rs` has the SQL, `record.rs` says how an
//! event is written. The SQL is what SQLite and Postgres have in common; what only SQLite
//! knows (pragmas, how a transaction begins, error codes) is in `sqlite.rs` and `open.rs`.

mod chains;
mod entry;
mod identity;
mod journal;
mod open;
mod record;
mod row;
mod sessions;
mod sqlite;
mod terms;
mod trouble;

pub use identity::{Identity, Introduction, Origin};
pub use open::{Durability, Options};
pub use sqlite::Sqlite;
