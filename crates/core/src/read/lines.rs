//! Lines with a record each, and how far back they go.

use std::{ops::Range, str::Utf8Error};

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

/// The lines of a file: text, or bytes of which only each line can be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lines<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Lines<'a> {
    /// The same without the mark that a file of text may begin with.
    pub(super) fn without_mark(self) -> Self {
        const MARK: &str = "\u{feff}";
        match self {
            Self::Text(text) => Self::Text(text.strip_prefix(MARK).unwrap_or(text)),
            Self::Bytes(bytes) => Self::Bytes(bytes.strip_prefix(MARK.as_bytes()).unwrap_or(bytes)),
        }
    }

    pub(super) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// One line of them. What is known to be text is not looked at again.
    fn line(self, at: Range<usize>) -> Result<&'a str, Utf8Error> {
        match self {
            Self::Text(text) => Ok(&text[at]),
            Self::Bytes(bytes) => std::str::from_utf8(&bytes[at]),
        }
    }
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
        lines: Lines<'a>,
        mut take: impl FnMut(&mut Self, &'a str) -> Result<Go, serde_json::Error>,
    ) {
        let bytes = lines.as_bytes();
        let mut start = 0;
        while start < bytes.len() {
            let line_break = memchr(b'\n', &bytes[start..]);
            let line = start..line_break.map_or(bytes.len(), |length| start + length);
            start = line.end + 1;
            if bytes[line.clone()].trim_ascii().is_empty() {
                continue;
            }
            self.lines += 1;
            let taken = match lines.line(line) {
                Ok(text) => take(self, text).map_err(|reason| error::reason(&reason)),
                Err(_) => Err("not UTF-8 text".to_owned()),
            };
            match taken {
                Ok(Go::On) => {}
                Ok(Go::NoFurther) => return,
                Err(reason) => {
                    // Somebody may be writing the last line just now.
                    self.skipped.messages += usize::from(line_break.is_some());
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
