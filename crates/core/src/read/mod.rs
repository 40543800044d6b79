//! Readers: a host's saved conversation becomes a transcript.

mod claude_code;
mod codex;
mod compact_json;
mod content;
mod error;
mod format;
mod line_format;
mod lines;
mod lossy;
mod message_list;
mod opencode;
mod opencode2;

pub use error::ReadError;
pub use format::Format;
pub use line_format::LineFormat;
pub use lines::{End, Reached, Reading};
