//! Step 3: the limits on the whole context, which always hold.

use std::borrow::Borrow;

use super::{
    ForkError, Limits, OverBudget,
    cut_results::{CutConversation, Inherited, Tally},
    format::{self, Block, CLOSE, OPEN, Size},
    stats::CutToFit,
};

/// What fits.
#[derive(Default)]
pub(super) struct Fitted {
    /// The kept messages, oldest first, the summary before all others.
    pub(super) blocks: Vec<Block>,
    /// What was done to the results that are in them.
    pub(super) tally: Tally,
    /// How many results are in messages that were cut as a whole.
    pub(super) in_cut_messages: usize,
    /// Which messages were cut as a whole.
    pub(super) cut_to_fit: CutToFit,
    /// The context's size.
    pub(super) size: Size,
}

/// Fits a conversation to the limits, or refuses it if the limits say so.
pub(super) fn fit<'t>(
    conversation: CutConversation<'t, impl Iterator<Item = Inherited<'t>>>,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<Fitted, ForkError> {
    let CutConversation {
        summary,
        newest_first,
    } = conversation;
    let summary = summary.as_ref();
    match limits.when_over {
        OverBudget::Remove => Ok(keep_newest(summary, newest_first, limits, count_tokens)),
        OverBudget::Refuse => {
            let all: Vec<Inherited> = newest_first.collect();
            keep_all(summary, &all, limits, count_tokens)
        }
    }
}

/// Keeps the summary and the newest message, cut if they must be, and of the messages
/// between them as many of the newest as there is room for.
fn keep_newest<'t>(
    summary: Option<&Inherited>,
    newest_first: impl IntoIterator<Item = impl Borrow<Inherited<'t>>>,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Fitted {
    let mut newest_first = newest_first.into_iter();
    let newest = newest_first.next();
    let mut fitting = Fitting::new(limits, count_tokens);
    let mut blocks = Vec::new();

    let summary = summary.map(|summary| fitting.draft(summary, newest.is_none()));
    if let Some(newest) = &newest {
        let reserved = summary.as_ref().map(|summary| fitting.share_of(summary));
        let draft = fitting.draft(newest.borrow(), true);
        let placed = fitting.keep_cut(draft, reserved.unwrap_or_default());
        fitting.fitted.cut_to_fit.newest = placed.cut;
        blocks.push(placed.block);
    }
    let summary = summary.map(|summary| {
        let placed = fitting.keep_cut(summary, Size::default());
        fitting.fitted.cut_to_fit.summary = placed.cut;
        placed.block
    });
    // Before one of these two is cut, everything between them has gone.
    if fitting.fitted.cut_to_fit == CutToFit::default() {
        blocks.extend(newest_first.map_while(|message| fitting.keep_whole(message.borrow())));
    }
    blocks.extend(summary);
    blocks.reverse();
    Fitted {
        blocks,
        ..fitting.fitted
    }
}

/// Keeps everything as it is, or nothing.
fn keep_all(
    summary: Option<&Inherited>,
    newest_first: &[Inherited],
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<Fitted, ForkError> {
    let all = || newest_first.iter().chain(summary).enumerate();
    let lengths = all().map(|(at, message)| format::measure(message, at == 0));
    let chars = format::wrapper_chars() + lengths.sum::<usize>();
    if chars > limits.max_chars {
        return Err(ForkError::TooLarge {
            unit: "characters",
            size: chars,
            limit: limits.max_chars,
        });
    }
    let fitted = keep_newest(summary, newest_first, limits, count_tokens);
    let complete = fitted.blocks.len() == all().count();
    if complete && fitted.cut_to_fit == CutToFit::default() {
        return Ok(fitted);
    }
    let counts = all().map(|(at, message)| count_tokens(&format::write(message, at == 0)));
    Err(ForkError::TooLarge {
        unit: "tokens",
        size: wrapper(count_tokens).tokens + counts.sum::<usize>(),
        limit: limits.max_tokens,
    })
}

/// The context so far, and the room that is left for more.
struct Fitting<'a, C> {
    head_percent: usize,
    count_tokens: &'a C,
    room: Size,
    fitted: Fitted,
}

/// A message that may be kept. Not written if it is longer than all the room there is.
struct Draft<'m, 't> {
    message: &'m Inherited<'t>,
    last: bool,
    chars: usize,
    block: Option<Block>,
}

/// A message that has its place in the context.
struct Placed {
    block: Block,
    cut: bool,
}

impl<'a, C: Fn(&str) -> usize> Fitting<'a, C> {
    fn new(limits: &Limits, count_tokens: &'a C) -> Self {
        let wrapper = wrapper(count_tokens);
        let all = Size {
            chars: limits.max_chars,
            tokens: limits.max_tokens,
        };
        Self {
            head_percent: limits.head_percent,
            count_tokens,
            room: all.less(wrapper),
            fitted: Fitted {
                size: wrapper,
                ..Fitted::default()
            },
        }
    }

    fn draft<'m, 't>(&self, message: &'m Inherited<'t>, last: bool) -> Draft<'m, 't> {
        let chars = format::measure(message, last);
        let block = (chars <= self.room.chars).then(|| {
            let text = format::write(message, last);
            let tokens = (self.count_tokens)(&text);
            let size = Size { chars, tokens };
            Block { text, size }
        });
        Draft {
            message,
            last,
            chars,
            block,
        }
    }

    /// What to leave to the summary while the newest message takes its room: as much as
    /// it needs, but not more than half.
    fn share_of(&self, summary: &Draft) -> Size {
        let (chars, tokens) = match &summary.block {
            Some(block) => (block.size.chars, block.size.tokens),
            None => (summary.chars, usize::MAX),
        };
        Size {
            chars: chars.min(self.room.chars / 2),
            tokens: tokens.min(self.room.tokens / 2),
        }
    }

    /// Keeps a message if there is room for all of it.
    fn keep_whole(&mut self, message: &Inherited) -> Option<Block> {
        let draft = self.draft(message, false);
        let block = draft
            .block
            .filter(|block| block.size.is_within(self.room))?;
        self.take_room(block.size);
        self.fitted.tally.add(message.tally);
        Some(block)
    }

    /// Keeps a message that has to be there, cut to fit beside what is reserved.
    fn keep_cut(&mut self, draft: Draft, reserved: Size) -> Placed {
        let room = self.room.less(reserved);
        let placed = match draft.block {
            Some(block) if block.size.is_within(room) => Placed { block, cut: false },
            _ => Placed {
                block: self.shorten(draft.message, draft.last, draft.chars, room),
                cut: true,
            },
        };
        self.take_room(placed.block.size);
        if placed.cut {
            self.fitted.in_cut_messages += draft.message.tally.results();
        } else {
            self.fitted.tally.add(draft.message.tally);
        }
        placed
    }

    fn shorten(&self, message: &Inherited, last: bool, chars: usize, room: Size) -> Block {
        let mut most = room.chars.min(chars);
        loop {
            let text = format::write_shortened(message, last, most, self.head_percent);
            let tokens = (self.count_tokens)(&text);
            if tokens <= room.tokens || most == 0 {
                let chars = text.chars().count();
                let size = Size { chars, tokens };
                return Block { text, size };
            }
            // Aim at the limit, and come nearer by some percent each time.
            let aim = most.saturating_mul(room.tokens) / tokens;
            most = aim.min(most - 1 - most / 50);
        }
    }

    fn take_room(&mut self, size: Size) {
        self.room = self.room.less(size);
        self.fitted.size.chars += size.chars;
        self.fitted.size.tokens += size.tokens;
    }
}

impl Size {
    fn less(self, other: Size) -> Self {
        Self {
            chars: self.chars.saturating_sub(other.chars),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn is_within(self, room: Size) -> bool {
        self.chars <= room.chars && self.tokens <= room.tokens
    }
}

fn wrapper(count_tokens: &impl Fn(&str) -> usize) -> Size {
    Size {
        chars: format::wrapper_chars(),
        tokens: count_tokens(OPEN) + count_tokens(CLOSE),
    }
}
