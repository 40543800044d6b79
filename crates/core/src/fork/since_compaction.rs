//! Step 1: only what came since the last compaction.

use std::collections::HashMap;

use crate::transcript::{Compaction, Message, MessageId, Part, Transcript};

/// The part of a conversation that a child may inherit.
pub(super) struct Recent<'t> {
    /// The latest complete compaction.
    pub(super) boundary: Option<Boundary<'t>>,
    /// What the host kept beside the summary. It came before the summary was
    /// written and is read after it, as the host's own model reads it.
    pub(super) tail: &'t [Message<'t>],
    /// Everything after the summary, or everything.
    pub(super) after: &'t [Message<'t>],
    /// What the summary stands for: all before the tail, and from the request on.
    pub(super) compacted: [&'t [Message<'t>]; 2],
}

/// Where a conversation was compacted.
#[derive(Clone, Copy)]
pub(super) struct Boundary<'t> {
    /// The summary's place among all messages.
    pub(super) index: usize,
    /// The summary.
    pub(super) summary: &'t Message<'t>,
}

/// Finds the latest complete boundary and keeps from its summary on.
pub(super) fn recent<'t>(parent: &'t Transcript<'t>) -> Recent<'t> {
    let messages = parent.messages();
    let Some((request, index)) = latest_boundary(messages) else {
        return Recent {
            boundary: None,
            tail: &[],
            after: messages,
            compacted: [&[], &[]],
        };
    };
    let tail = kept_tail(messages, request);
    Recent {
        boundary: Some(Boundary {
            index,
            summary: &messages[index],
        }),
        tail,
        after: &messages[index + 1..],
        compacted: [&messages[..request - tail.len()], &messages[request..index]],
    }
}

/// The places of the latest request that has a complete summary, and of that summary.
fn latest_boundary(messages: &[Message]) -> Option<(usize, usize)> {
    let mut answered: HashMap<&MessageId, usize> = HashMap::new();
    for (at, message) in messages.iter().enumerate().rev() {
        match &message.compaction {
            None => {}
            Some(Compaction::Summary {
                request: Some(request),
                complete: true,
            }) => {
                answered.entry(request).or_insert(at);
            }
            Some(Compaction::Summary { .. }) => {}
            Some(Compaction::Request { .. }) => {
                let summary = message.id.as_ref().and_then(|id| answered.get(id));
                if let Some(summary) = summary {
                    return Some((at, *summary));
                }
            }
        }
    }
    None
}

/// The messages before the request that it tells to keep. If the first of them is not
/// in the conversation, which then is only the end of a longer one, it is all of them.
fn kept_tail<'t>(messages: &'t [Message<'t>], request: usize) -> &'t [Message<'t>] {
    let Some(Compaction::Request {
        tail_start: Some(start),
    }) = &messages[request].compaction
    else {
        return &[];
    };
    let has_id = |message: &Message| message.id.as_ref() == Some(start);
    let first = messages.iter().position(has_id).unwrap_or(0);
    messages.get(first..request).unwrap_or_default()
}

impl<'t> Recent<'t> {
    /// The summary, if there is one with something in it.
    pub(super) fn summary(&self) -> Option<&'t Message<'t>> {
        let summary = self.boundary.map(|boundary| boundary.summary);
        summary.filter(|summary| is_inherited(summary))
    }

    /// All but the summary, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &'t Message<'t>> + use<'t> {
        let oldest_first = self.tail.iter().chain(self.after);
        oldest_first.rev().filter(|message| is_inherited(message))
    }
}

/// Whether there is anything in a message for a child. A compaction that failed or
/// never finished has a summary that stands for nothing: it is passed over.
pub(super) fn is_inherited(message: &Message) -> bool {
    let abandoned = matches!(
        message.compaction,
        Some(Compaction::Summary {
            complete: false,
            ..
        })
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
