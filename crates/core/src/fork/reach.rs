//! How far back a fork has to read.

use super::{Limits, OverBudget, format, pipeline::Pipeline, since_compaction::is_inherited};
use crate::transcript::{Compaction, Message, MessageId, Part, Text};

/// How many messages are read beyond what fits, in search of a summary that stands for them.
const LOOK_BEYOND: usize = 500;

/// No model is shown more characters than this, some million tokens: where there is that much
/// without a summary, there is none that stands for what comes before.
const MOST_SHOWN: usize = 3_000_000;

/// Reads a conversation from its end and says when a fork needs no more of it: when the
/// limits are reached, or a compaction that stands for everything before.
pub struct Reach<'l> {
    limits: &'l Limits,
    pipeline: Pipeline<'l>,
    /// Messages that were looked at.
    seen: usize,
    /// Characters that would be kept.
    chars: usize,
    /// Characters of all messages that were looked at, with nothing cut.
    chars_in_full: usize,
    /// Messages that were read after there was enough.
    beyond: usize,
    awaited: Awaited,
}

/// More characters than this never fit. A token of ordinary text has four; where one has ten on
/// average there is little to read.
fn most_chars(limits: &Limits) -> usize {
    limits.max_chars.min(limits.max_tokens.saturating_mul(10))
}

/// What a model was shown of a message.
fn text_of<'m>(message: &'m Message<'_>) -> impl Iterator<Item = &'m Text<'m>> {
    message
        .parts
        .iter()
        .flat_map(|part| match part {
            Part::Text(text) => [Some(text), None],
            Part::Tool(call) => [Some(&call.input), call.outcome.text()],
        })
        .flatten()
}

/// What is still to come of a compaction.
enum Awaited {
    Summary,
    /// The request that a complete summary answers.
    Request(MessageId<'static>),
    /// The first message of the tail that is kept beside the summary.
    Tail(MessageId<'static>),
    Found,
}

impl<'l> Reach<'l> {
    /// Nothing is read yet.
    pub fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            pipeline: Pipeline::new(limits),
            seen: 0,
            chars: 0,
            chars_in_full: 0,
            beyond: 0,
            awaited: Awaited::Summary,
        }
    }

    /// Takes all messages that were read so far, newest first, and looks at those it has not
    /// seen. True when none before them is needed.
    pub fn is_enough(&mut self, newest_first: &[Message]) -> bool {
        let unseen = self.seen..newest_first.len();
        self.seen = unseen.end;
        unseen.fold(false, |enough, at| {
            enough | self.is_enough_with(newest_first, at)
        })
    }

    fn is_enough_with(&mut self, newest_first: &[Message], at: usize) -> bool {
        let message = &newest_first[at];
        self.look_for_boundary(message);
        if matches!(self.awaited, Awaited::Found) {
            return true;
        }
        if is_inherited(message) {
            let inherited = self.pipeline.take(newest_first, at);
            self.chars += format::measure(&inherited, false).chars;
            self.chars_in_full += text_of(message).map(Text::chars).sum::<usize>();
        }
        match self.limits.when_over {
            OverBudget::Refuse => false,
            OverBudget::Remove if self.chars <= most_chars(self.limits) => false,
            OverBudget::Remove => {
                self.beyond += 1;
                self.beyond > LOOK_BEYOND || self.chars_in_full > MOST_SHOWN
            }
        }
    }

    fn look_for_boundary(&mut self, message: &Message) {
        match (&self.awaited, &message.compaction) {
            (
                Awaited::Summary,
                Some(Compaction::Summary {
                    request: Some(request),
                    complete: true,
                }),
            ) => self.awaited = Awaited::Request(request.clone().into_owned()),
            // Newer than every request that has not been read: nothing before it counts.
            (_, Some(Compaction::Checkpoint { complete: true })) => self.awaited = Awaited::Found,
            (Awaited::Request(wanted), Some(Compaction::Request { tail_start }))
                if message.id.as_ref() == Some(wanted) =>
            {
                self.awaited = match tail_start {
                    Some(start) => Awaited::Tail(start.clone().into_owned()),
                    None => Awaited::Found,
                };
            }
            (Awaited::Tail(start), _) if message.id.as_ref() == Some(start) => {
                self.awaited = Awaited::Found;
            }
            (Awaited::Summary | Awaited::Request(_) | Awaited::Tail(_) | Awaited::Found, _) => {}
        }
    }
}
