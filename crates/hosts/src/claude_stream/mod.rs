//! Claude Code as a child, without any program beside it: `claude -p` reads and writes a record on
//! each line.

mod arguments;
mod ask;
mod connection;
mod cost;
mod history;
mod message_id;
mod news;
mod open;
mod record;
mod turns;

pub use open::ClaudeStream;
