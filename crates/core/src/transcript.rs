//! A conversation, whatever host it came from.

use std::borrow::Cow;

pub use crate::text::Text;

macro_rules! host_names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name<'a>(Cow<'a, str>);

        impl<'a> $name<'a> {
            /// An ID as the host writes it.
            pub fn new(id: impl Into<Cow<'a, str>>) -> Self {
                Self(id.into())
            }

            /// The same ID, with a text of its own.
            pub fn into_owned(self) -> $name<'static> {
                $name(Cow::Owned(self.0.into_owned()))
            }

            /// The ID as the host writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}

host_names! {
    /// A host's name for a message.
    MessageId;
    /// A host's name for one tool call.
    CallId;
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, or the host in the user's name.
    User,
    Assistant,
}

/// What the model would see of one message, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// The host's ID, where it gave one.
    pub id: Option<MessageId<'a>>,
    pub role: Role,
    /// False while the agent is still writing it. [`Transcript::new`] settles which
    /// message that is.
    pub finished: bool,
    /// The message's place in a compaction, if it has one.
    pub compaction: Option<Compaction<'a>>,
    /// Text and tool calls; everything else is not inherited and not kept.
    pub parts: Vec<Part<'a>>,
}

/// The two messages of a compaction, or the one that is both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compaction<'a> {
    /// The user message that asked for it.
    Request {
        /// The first of the messages that the host keeps beside the summary.
        tail_start: Option<MessageId<'a>>,
    },
    Summary {
        request: Option<MessageId<'a>>,
        /// Finished without an error. Only then does it stand for what came before.
        complete: bool,
    },
    /// A summary that nothing asked for, with what the host keeps beside it as text.
    Checkpoint {
        /// Finished without an error. Only then does it stand for what came before.
        complete: bool,
    },
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    Text(Text<'a>),
    /// A tool call, with its result once there is one.
    Tool(ToolCall<'a>),
}

/// A tool call and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The host's ID, where it gave one.
    pub id: Option<CallId<'a>>,
    pub name: Text<'a>,
    /// The parameters as compact JSON.
    pub input: Text<'a>,
    pub outcome: Outcome<'a>,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// No result: still running, or interrupted for good.
    Pending,
    Completed(Text<'a>),
    Failed(Text<'a>),
    /// The host threw the output away to save room.
    Cleared,
}

impl<'a> Outcome<'a> {
    /// What the model reads in place of a cleared result.
    pub const CLEARED: &'static str = "[Old tool result content cleared]";

    /// What the tool answered, where that is still there.
    pub(crate) fn text(&self) -> Option<&Text<'a>> {
        match self {
            Self::Completed(text) | Self::Failed(text) => Some(text),
            Self::Pending | Self::Cleared => None,
        }
    }
}

impl Message<'_> {
    /// The same message, with a text of its own.
    pub fn into_owned(self) -> Message<'static> {
        let compaction = self.compaction.map(|compaction| match compaction {
            Compaction::Request { tail_start } => Compaction::Request {
                tail_start: tail_start.map(MessageId::into_owned),
            },
            Compaction::Summary { request, complete } => Compaction::Summary {
                request: request.map(MessageId::into_owned),
                complete,
            },
            Compaction::Checkpoint { complete } => Compaction::Checkpoint { complete },
        });
        let own = |part| match part {
            Part::Text(text) => Part::Text(text.into_owned()),
            Part::Tool(call) => Part::Tool(call.into_owned()),
        };
        Message {
            id: self.id.map(MessageId::into_owned),
            role: self.role,
            finished: self.finished,
            compaction,
            parts: self.parts.into_iter().map(own).collect(),
        }
    }

    /// How many of its calls have a result (an error and a cleared result are results).
    pub fn results(&self) -> usize {
        let has_result = |part: &&Part| match part {
            Part::Text(_) => false,
            Part::Tool(call) => call.has_result(),
        };
        self.parts.iter().filter(has_result).count()
    }
}

impl ToolCall<'_> {
    /// The same call, with a text of its own.
    pub fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            id: self.id.map(CallId::into_owned),
            name: self.name.into_owned(),
            input: self.input.into_owned(),
            outcome: match self.outcome {
                Outcome::Pending => Outcome::Pending,
                Outcome::Completed(text) => Outcome::Completed(text.into_owned()),
                Outcome::Failed(text) => Outcome::Failed(text.into_owned()),
                Outcome::Cleared => Outcome::Cleared,
            },
        }
    }

    /// Anything but pending.
    pub(crate) fn has_result(&self) -> bool {
        !matches!(self.outcome, Outcome::Pending)
    }
}

/// What a reader could not use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Entries that are not messages.
    pub messages: usize,
    /// Broken parts of messages that are otherwise fine.
    pub parts: usize,
}

/// A conversation, oldest message first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript<'a> {
    messages: Vec<Message<'a>>,
    skipped: Skipped,
}

impl<'a> Transcript<'a> {
    /// Takes what a reader found, oldest first.
    ///
    /// Only the agent's newest message can still be in the making; an older one that
    /// never finished was interrupted for good and counts as finished.
    pub fn new(mut messages: Vec<Message<'a>>, skipped: Skipped) -> Self {
        let of_agent =
            |message: &Message| message.role == Role::Assistant && message.compaction.is_none();
        let newest = messages.iter().rposition(of_agent);
        for (at, message) in messages.iter_mut().enumerate() {
            message.finished |= Some(at) != newest;
        }
        Self { messages, skipped }
    }

    /// The messages after the one of this ID; nothing if there is no such message.
    pub fn after(&self, id: &str) -> Option<&[Message<'a>]> {
        let is_it = |message: &Message| message.id.as_ref().is_some_and(|own| own.as_str() == id);
        let at = self.messages.iter().position(is_it)?;
        self.messages.get(at + 1..)
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Message<'a>] {
        &self.messages
    }

    /// The messages, oldest first, to be changed or passed on.
    pub fn into_messages(self) -> Vec<Message<'a>> {
        self.messages
    }

    /// What could not be read.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }
}
