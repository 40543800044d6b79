//! What a line of a transcript proves: that a model was told something, or that it makes a call.

use std::{borrow::Cow, io, path::Path};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonl::{has_mark, newest_line};

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<WireAttachment<'a>>,
    /// What was done to the queue of messages.
    operation: Option<String>,
    /// What the model was shown of an attachment.
    #[serde(borrow)]
    rendered: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAttachment<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    blocking_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireAnswer<'a> {
    #[serde(borrow)]
    content: Vec<WireBlock<'a>>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

/// Whether a model has seen a text with this mark.
pub(super) fn is_told(file: &Path, mark: &str) -> io::Result<bool> {
    if mark.is_empty() {
        return Ok(false);
    }
    let finder = Finder::new(mark);
    let tells = |line: &[u8]| {
        finder.find(line)?;
        tells(line, mark).then_some(())
    };
    Ok(newest_line(file, u64::MAX, tells)?.is_some())
}

/// Whether a text with this mark waits to be shown to the model: it was put into the queue, and what
/// came last of it there is that.
pub(super) fn is_queued(file: &Path, mark: &str) -> io::Result<bool> {
    let finder = Finder::new(mark);
    let operation = newest_line(file, u64::MAX, |line| {
        finder.find(line)?;
        let line = serde_json::from_slice::<WireLine>(line).ok()?;
        line.operation.filter(|_| line.kind == "queue-operation")
    })?;
    Ok(operation.as_deref() == Some("enqueue") && !is_told(file, mark)?)
}

fn tells(line: &[u8], mark: &str) -> bool {
    let Ok(line) = serde_json::from_slice::<WireLine>(line) else {
        return false;
    };
    let has_mark = |json: Option<&RawValue>| json.is_some_and(|json| has_mark(json.get(), mark));
    match (line.kind.as_str(), line.attachment) {
        // Notices, what hooks say when they let no turn end, and results.
        ("user", _) => has_mark(line.message),
        ("attachment", Some(attachment)) => {
            has_mark(line.rendered)
                || match attachment.kind.as_str() {
                    "queued_command" => has_mark(attachment.prompt),
                    "hook_additional_context" => has_mark(attachment.content),
                    "hook_blocking_error" => has_mark(attachment.blocking_error),
                    _ => false,
                }
        }
        _ => false,
    }
}

/// Recognises lines that make a tool call.
pub(super) struct Calls<'a> {
    call: &'a str,
    finder: Finder<'a>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(call: &'a str) -> Self {
        Self {
            call,
            finder: Finder::new(call),
        }
    }

    pub(super) fn is_made_in(&self, line: &[u8]) -> bool {
        if self.finder.find(line).is_none() {
            return false;
        }
        let Ok(line) = serde_json::from_slice::<WireLine>(line) else {
            return false;
        };
        let answer = line.message.filter(|_| line.kind == "assistant");
        let answer =
            answer.and_then(|answer| serde_json::from_str::<WireAnswer>(answer.get()).ok());
        let mut blocks = answer.into_iter().flat_map(|answer| answer.content);
        blocks.any(|block| block.kind == "tool_use" && block.id.as_deref() == Some(self.call))
    }
}
