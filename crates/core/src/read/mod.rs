//! Readers: a host's saved conversation becomes a transcript.

mod compact_json;
mod error;
mod format;
mod lossy;
mod message_list;
mod opencode;
mod opencode2;

pub use error::ReadError;
pub use format::Format;
