//! A file that is read again and is the same: a sentence in the place of its text.
//!
//! Only what the model is shown has the sentence. The session keeps each result whole, so that
//! whatever is made of it later (a fork, a conversation after a compaction) has the text at the
//! newest read, and no sentence can outlive the text that it speaks of.

use std::collections::HashMap;

use super::{Call, ToolOutcome, Turn};
use crate::arguments::Arguments;

/// The tool that reads files.
const READ: &str = "read";

/// Which reads the model sees whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Reads {
    /// The turn with the newest text of each.
    whole: HashMap<Read, usize>,
}

/// Which part of which file, in the model's words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Read {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Reads {
    /// What the model is shown of a result, in the turn `at`; `earlier` are the turns before it.
    pub(super) fn shown<'t>(
        &mut self,
        (call, outcome): (&Call, ToolOutcome),
        at: usize,
        earlier: impl Fn(usize) -> Option<&'t Turn>,
    ) -> ToolOutcome {
        let ToolOutcome::Done(text) = &outcome else {
            return outcome;
        };
        let Some(read) = Read::of(call) else {
            return outcome;
        };
        let sentence = read.unchanged();
        let newest = self.whole.get(&read).and_then(|at| earlier(*at));
        let is_there =
            matches!(newest, Some(Turn::Result { outcome: before, .. }) if *before == outcome);
        if is_there && sentence.len() < text.len() {
            return ToolOutcome::Done(sentence);
        }
        self.whole.insert(read, at);
        outcome
    }
}

impl Read {
    fn of(call: &Call) -> Option<Self> {
        if call.name != READ {
            return None;
        }
        let arguments = Arguments::read(&call.input, "").ok()?;
        Some(Self {
            path: arguments.text("path").ok()?,
            offset: arguments.number("offset", 0).ok()?,
            limit: arguments.number("limit", 0).ok()?,
        })
    }

    fn unchanged(&self) -> String {
        let Self {
            path,
            offset,
            limit,
        } = self;
        let range = match (offset, limit) {
            (None, None) => String::new(),
            (Some(offset), None) => format!(" from line {offset}"),
            (offset, Some(limit)) => {
                format!(" from line {}, {limit} lines", offset.unwrap_or(1))
            }
        };
        format!("[{path}{range}: this read gives the same as the one above]")
    }
}
