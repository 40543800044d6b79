//! Readers: a host's saved conversation becomes a transcript.

mod error;
mod format;
mod lossy;
mod opencode;

pub use error::ReadError;
pub use format::Format;
