//! The formats that have a record on each line.

use super::{
    ReadError, claude_code, codex,
    lines::{End, Found, Lines, Reading},
};
use crate::transcript::Transcript;

/// A format whose files have a record on each line. Such a file only grows, so its newest part can
/// be read without what comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// The transcript of a session of Claude Code, or of one of its sub-agents.
    ClaudeCode,
    /// The rollout of a thread of Codex.
    Codex,
}

impl LineFormat {
    /// Reads a whole file. A broken line is skipped and counted, but for a last one without a line
    /// break, which may be half written.
    ///
    /// # Errors
    /// When no line is a record of the format.
    pub fn read(self, file: &[u8]) -> Result<Transcript<'_>, ReadError> {
        self.read_whole(Lines::Bytes(file))
    }

    /// The same of a file that is known to be text.
    pub(super) fn read_text(self, file: &str) -> Result<Transcript<'_>, ReadError> {
        self.read_whole(Lines::Text(file))
    }

    fn read_whole(self, file: Lines<'_>) -> Result<Transcript<'_>, ReadError> {
        if file.without_mark().as_bytes().trim_ascii().is_empty() {
            return Err(ReadError::NoLines);
        }
        let (end, found) = self.read_lines(file, &Reading::default());
        match found {
            Found { known: 0, .. } => Err(ReadError::NoRecords {
                expected: match self {
                    Self::ClaudeCode => "a `type` and a `uuid` or `sessionId`",
                    Self::Codex => "a `type` and a `payload`",
                },
                lines: found.lines,
                reason: found
                    .first_reason
                    .unwrap_or_else(|| "another kind of record".to_owned()),
            }),
            Found { .. } => Ok(end.transcript),
        }
    }

    /// Reads whole lines at the end of a file. Lines that mean nothing are a conversation without
    /// messages: the file may have just been made.
    pub fn read_end<'a>(self, lines: &'a [u8], reading: &Reading) -> End<'a> {
        self.read_lines(Lines::Bytes(lines), reading).0
    }

    fn read_lines<'a>(self, lines: Lines<'a>, reading: &Reading) -> (End<'a>, Found) {
        let lines = lines.without_mark();
        match self {
            Self::ClaudeCode => claude_code::read(lines, reading),
            Self::Codex => codex::read(lines, reading),
        }
    }
}
