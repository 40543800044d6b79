//! The formats that can be read.

use super::{ReadError, opencode};
use crate::transcript::Transcript;

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The answer of OpenCode's `GET /session/:id/message`, or what `opencode export` prints.
    #[default]
    OpenCode,
}

impl Format {
    /// Every format, with the name a user types.
    pub const ALL: &[(&str, Format)] = &[("opencode", Format::OpenCode)];

    /// Reads a saved conversation. The transcript borrows from `input` where it can.
    ///
    /// # Errors
    /// When `input` as a whole is not a conversation. A broken message inside one is
    /// skipped and counted instead.
    pub fn read(self, input: &str) -> Result<Transcript<'_>, ReadError> {
        match self {
            Format::OpenCode => opencode::read(input),
        }
    }
}
