//! The formats that can be read.

use super::{LineFormat, ReadError, opencode, opencode2};
use crate::transcript::Transcript;

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The answer of OpenCode's `GET /session/:id/message`, or what `opencode export` prints.
    #[default]
    OpenCode,
    /// The same of OpenCode 2: the answer of `GET /api/session/:id/message` (a page, in either
    /// order), `…/context` or `…/export`.
    OpenCode2,
    /// A transcript of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`.
    ClaudeCode,
    /// A rollout of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl`.
    Codex,
}

impl Format {
    /// Every format, with the name a user types.
    pub const ALL: &[(&str, Format)] = &[
        ("opencode", Format::OpenCode),
        ("opencode2", Format::OpenCode2),
        ("claude-code", Format::ClaudeCode),
        ("codex", Format::Codex),
    ];

    /// Reads a saved conversation. The transcript borrows from `input` where it can.
    ///
    /// # Errors
    /// When `input` as a whole is not a conversation. A broken message inside one is
    /// skipped and counted instead.
    pub fn read(self, input: &str) -> Result<Transcript<'_>, ReadError> {
        match self {
            Format::OpenCode => opencode::read(input),
            Format::OpenCode2 => opencode2::read(input),
            Format::ClaudeCode => LineFormat::ClaudeCode.read_text(input),
            Format::Codex => LineFormat::Codex.read_text(input),
        }
    }

    /// The format as one with a record on each line, if it is.
    pub fn lines(self) -> Option<LineFormat> {
        match self {
            Format::OpenCode | Format::OpenCode2 => None,
            Format::ClaudeCode => Some(LineFormat::ClaudeCode),
            Format::Codex => Some(LineFormat::Codex),
        }
    }
}
