//! Why an input is not a conversation.

use thiserror::Error;

/// Why an input is not a conversation. Each message, with its source, is one line that a
/// user can act on.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("the input is empty; expected a JSON list of messages")]
    Empty,
    /// Good until it stops.
    #[error(
        "the input ends too early, after {} (line {line}, column {column}); it seems to be truncated",
        complete(*messages)
    )]
    Truncated {
        /// How many messages are complete.
        messages: usize,
        line: usize,
        column: usize,
    },
    #[error("the input is not valid JSON")]
    Syntax(#[source] serde_json::Error),
    /// JSON, but of another kind.
    #[error("expected a list of messages (`{expected}`), found {found}")]
    NotAList {
        /// What the list looks like.
        expected: &'static str,
        found: String,
    },
    /// A list, but not of messages.
    #[error(
        "expected messages with {expected}, found none in {entries} entries; the first: {reason}"
    )]
    NoMessages {
        /// What a message has.
        expected: &'static str,
        /// How many entries there are.
        entries: usize,
        /// What is wrong with the first.
        reason: String,
    },
    #[error("the input is empty; expected a JSON record on each line")]
    NoLines,
    /// Lines, but of something else.
    #[error("expected lines with {expected}, found none in {}; the first: {reason}", of_lines(*lines))]
    NoRecords {
        /// What a record has.
        expected: &'static str,
        /// How many lines there are.
        lines: usize,
        /// What is wrong with the first.
        reason: String,
    },
}

fn of_lines(lines: usize) -> String {
    match lines {
        1 => "1 line".to_owned(),
        many => format!("{many} lines"),
    }
}

fn complete(messages: usize) -> String {
    match messages {
        1 => "1 complete message".to_owned(),
        many => format!("{many} complete messages"),
    }
}

/// The reason in a parser's error, in one short line: without the position, which counts
/// from the start of the entry, and without what the entry may hold of control characters.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = match text.rfind(" at line ") {
        Some(end) => &text[..end],
        None => &text,
    };
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = reason.chars().map(visible).take(120).collect();
    if reason.chars().count() > 120 {
        short.push('…');
    }
    short
}
