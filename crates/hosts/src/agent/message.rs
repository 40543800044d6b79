//! What is said to another agent: entries of its session that it has not got, each with its name, so
//! that it is found again in the agent's own history.

use asyncagents_core::agent::{Entry, Filed};
use asyncagents_core::id::PostId;

use super::{Message, MessagePart};
use crate::jsonl::has_mark;

/// What an agent is told that was stopped in the middle of its work.
const GO_ON: &str = "You were interrupted: your process ended while you worked on the task above. A \
    tool that was running then may have done all, some or none of its work; check what is there \
    before you repeat it. Go on with the task. If it was done already, say again what came of it.";

/// What shows that it is not the user who speaks.
const NOTICE: &str = "[Not from your user: a message of asyncagents]";

/// What is said by an entry, if it says something to the agent.
pub(super) fn parts_of(entry: &Entry) -> Option<(PostId, Vec<MessagePart>)> {
    let text = |text: String| MessagePart::Text(text);
    Some(match entry {
        Entry::Inherited {
            post,
            preamble,
            context,
        } => {
            let preamble = marked(preamble, post);
            let context = MessagePart::Context(context.clone());
            (post.clone(), vec![text(preamble), context])
        }
        Entry::Prompted {
            post, text: said, ..
        } => (post.clone(), vec![text(marked(said, post))]),
        Entry::Notice {
            post,
            visible,
            hidden,
        } => {
            let said = format!("{NOTICE}\n{visible}\n\n{hidden}");
            (post.clone(), vec![text(marked(said.trim_end(), post))])
        }
        Entry::AgentSession { .. }
        | Entry::Nudged { .. }
        | Entry::LastTurn { .. }
        | Entry::FellBack(_)
        | Entry::Answered { .. }
        | Entry::ToolBegan { .. }
        | Entry::ToolEnded { .. }
        | Entry::Compacted { .. }
        | Entry::Ended { .. } => return None,
    })
}

/// Several entries as one message.
pub(super) fn message(entries: &[Filed]) -> Message {
    let parts: Vec<_> = (entries.iter())
        .filter_map(|filed| parts_of(&filed.entry))
        .collect();
    Message {
        id: parts.last().map(|(post, _)| post.clone()),
        parts: parts.into_iter().flat_map(|(_, parts)| parts).collect(),
    }
}

/// What an agent is told that was stopped in the middle of its work.
pub(super) fn go_on() -> Message {
    plain(GO_ON)
}

/// Something beside the entries.
pub(super) fn plain(text: &str) -> Message {
    Message {
        id: None,
        parts: vec![MessagePart::Text(format!("{NOTICE}\n{text}"))],
    }
}

/// What is in each text that is sent as this post.
pub(crate) fn mark(post: &PostId) -> String {
    format!("[asyncagents {post}]")
}

fn marked(text: &str, post: &PostId) -> String {
    format!("{text}\n\n{}", mark(post))
}

/// Whether a text of an agent's history is one that was sent as this post.
pub(crate) fn is_in(text: &str, post: &PostId) -> bool {
    has_mark(text, &mark(post))
}
