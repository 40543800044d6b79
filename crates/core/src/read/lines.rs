//! Lines with a record each, and how far back they go.

use memchr::memchr;

use super::error;
use crate::transcript::{Skipped, Transcript};

/// Which part of a file is read, and how much of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading<'a> {
    /// The tool call that asks for a fork. What came after the message it is in is not read, and
    /// the calls of that message are pending, as they were when it asked. Without such a call
    /// everything is read.
    pub asked_in: Option<&'a str>,
    /// Whether the file has lines before these.
    pub has_more: bool,
    /// Whether the file is known to be a sub-agent's. Only Claude Code keeps records of sub-agents
    /// among those of a session too.
    pub of_sub_agent: bool,
}

/// What the lines at the end of a file say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End<'a> {
    /// Without an oldest message of which only a part may have been read.
    pub transcript: Transcript<'a>,
    pub reached: Reached,
}

/// How far back the lines that were read go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// To where the conversation begins.
    Beginning,
    /// To a compaction that stands for everything before, with what is kept beside its summary.
    Compaction,
    /// To somewhere in the conversation.
    Middle,
    /// Not far enough to say what the conversation is.
    TooLittle,
}

/// What the lines of a file are, beside what they say.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Lines that are not blank.
    pub(super) lines: usize,
    /// Lines that are records of the format, of whatever kind.
    pub(super) known: usize,
    pub(super) skipped: Skipped,
    /// What is wrong with the first line that is.
    pub(super) first_reason: Option<String>,
}

impl Found {
    /// Hands every line that is text to `take`, oldest first, until that says to stop. An error
    /// means that the line is broken.
    pub(super) fn each<'a>(
        &mut self,
        lines: &'a [u8],
        mut take: impl FnMut(&mut Self, &'a str) -> Result<Go, serde_json::Error>,
    ) {
        let mut rest = lines;
        while !rest.is_empty() {
            let (line, is_whole) = match memchr(b'\n', rest) {
                Some(end) => {
                    let line = &rest[..end];
                    rest = &rest[end + 1..];
                    (line, true)
                }
                None => (std::mem::take(&mut rest), false),
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.lines += 1;
            let taken = match std::str::from_utf8(line) {
                Ok(text) => take(self, text).map_err(|reason| error::reason(&reason)),
                Err(_) => Err("not UTF-8 text".to_owned()),
            };
            match taken {
                Ok(Go::On) => {}
                Ok(Go::NoFurther) => return,
                Err(reason) => {
                    // Somebody may be writing the last line just now.
                    self.skipped.messages += usize::from(is_whole);
                    self.first_reason.get_or_insert(reason);
                }
            }
        }
    }
}

/// Whether more lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    On,
    NoFurther,
}
