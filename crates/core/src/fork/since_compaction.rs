//! Before the steps: only what came since the last compaction.

use std::ops::Range;

use super::Parent;
use crate::transcript::{Compaction, Message, Part};

/// The part of a conversation that a child may inherit, as places in it.
pub(super) struct Recent<'t> {
    pub(super) messages: &'t [Message<'t>],
    /// The summary of the latest complete compaction.
    pub(super) boundary: Option<usize>,
    /// What the host kept beside the summary. It came before the summary was
    /// written and is read after it, as the host's own model reads it.
    pub(super) tail: Range<usize>,
    /// Everything after the summary, or everything.
    pub(super) after: Range<usize>,
    /// What is left behind: all before the tail, and from the request to the summary.
    pub(super) compacted: [Range<usize>; 2],
}

/// Keeps from the summary of the latest complete compaction on.
pub(super) fn recent<'t>(parent: &'t Parent<'t>) -> Recent<'t> {
    let messages = parent.messages();
    let Some(boundary) = parent.boundary else {
        return Recent {
            messages,
            boundary: None,
            tail: 0..0,
            after: 0..messages.len(),
            compacted: [0..0, 0..0],
        };
    };
    let tail = kept_tail(messages, boundary.request);
    Recent {
        messages,
        boundary: Some(boundary.summary),
        after: boundary.summary + 1..messages.len(),
        compacted: [0..tail.start, boundary.request..boundary.summary],
        tail,
    }
}

/// The messages before the request that it tells to keep. If the first of them is not
/// in the conversation, which then is only the end of a longer one, it is all of them.
fn kept_tail(messages: &[Message], request: usize) -> Range<usize> {
    let Some(Compaction::Request {
        tail_start: Some(start),
    }) = &messages[request].compaction
    else {
        return request..request;
    };
    let has_id = |message: &Message| message.id.as_ref() == Some(start);
    match messages[..request].iter().rposition(has_id) {
        Some(first) => first..request,
        None if messages[request..].iter().any(has_id) => request..request,
        None => 0..request,
    }
}

impl<'t> Recent<'t> {
    /// The summary, if there is one with something in it.
    pub(super) fn summary(&self) -> Option<usize> {
        self.boundary.filter(|at| is_inherited(&self.messages[*at]))
    }

    /// All but the summary, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = usize> + use<'t> {
        let messages = self.messages;
        let oldest_first = self.tail.clone().chain(self.after.clone());
        let newest_first = oldest_first.rev();
        newest_first.filter(|at| is_inherited(&messages[*at]))
    }
}

/// Whether there is anything in a message for a child. A compaction that failed or
/// never finished has a summary that stands for nothing: it is passed over.
pub(super) fn is_inherited(message: &Message) -> bool {
    let abandoned = matches!(
        message.compaction,
        Some(
            Compaction::Summary {
                complete: false,
                ..
            } | Compaction::Checkpoint { complete: false }
        )
    );
    !abandoned && message.parts.iter().any(|part| is_shown(message, part))
}

/// Whether a child sees a part. Not blank text; and not the pending calls of the message
/// that asks for the fork, for a child that saw them would take its own launch for work
/// still to be done.
pub(super) fn is_shown(message: &Message, part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.is_blank(),
        Part::Tool(call) => message.finished || call.has_result(),
    }
}
