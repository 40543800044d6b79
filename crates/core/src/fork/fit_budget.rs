//! After the steps: the limits on the whole context, which always hold.

use super::{
    ForkError, Limits, OverBudget,
    format::{self, Block, CLOSE, Length, OPEN, Size},
    inherited::Inherited,
    pipeline::Conversation,
    stats::CutToFit,
};

/// What fits.
pub(super) struct Fitted<'t> {
    /// The kept messages, oldest first, the summary before all others.
    pub(super) blocks: Vec<Block<'t>>,
    /// Which messages were cut as a whole.
    pub(super) cut_to_fit: CutToFit,
    pub(super) size: Size,
}

/// Fits a conversation to the limits, or refuses it if the limits say so.
pub(super) fn fit<'t>(
    conversation: Conversation<'t, impl Iterator<Item = Inherited<'t>>>,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<Fitted<'t>, ForkError> {
    let Conversation {
        summary,
        newest_first,
    } = conversation;
    match limits.when_over {
        OverBudget::Remove => Ok(keep_newest(summary, newest_first, limits, count_tokens)),
        OverBudget::Refuse => {
            let newest_first: Vec<Inherited> = newest_first.collect();
            keep_all(summary, &newest_first, limits, count_tokens)
        }
    }
}

/// Keeps the summary and the newest message, cut if they must be, and of the messages
/// between them as many of the newest as there is room for.
fn keep_newest<'t>(
    summary: Option<Inherited<'t>>,
    mut newest_first: impl Iterator<Item = Inherited<'t>>,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Fitted<'t> {
    let newest = newest_first.next();
    let mut fitting = Fitting::new(limits, count_tokens);
    let mut cut_to_fit = CutToFit::default();
    let mut blocks = Vec::new();

    let summary = summary.map(|summary| fitting.draft(summary, newest.is_none()));
    if let Some(newest) = newest {
        let reserved = summary.as_ref().map(|summary| fitting.share_of(summary));
        let draft = fitting.draft(newest, true);
        let block = fitting.keep_cut(draft, reserved.unwrap_or_default());
        cut_to_fit.newest = block.cut;
        blocks.push(block);
    }
    let summary = summary.map(|summary| fitting.keep_cut(summary, Size::default()));
    cut_to_fit.summary = summary.as_ref().is_some_and(|summary| summary.cut);
    // Before one of these two is cut, everything between them has gone.
    if cut_to_fit == CutToFit::default() {
        blocks.extend(newest_first.map_while(|message| fitting.keep_whole(message)));
    }
    blocks.extend(summary);
    blocks.reverse();
    Fitted {
        blocks,
        cut_to_fit,
        size: fitting.size,
    }
}

/// Keeps everything as it is, or nothing.
fn keep_all<'t>(
    summary: Option<Inherited<'t>>,
    newest_first: &[Inherited<'t>],
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<Fitted<'t>, ForkError> {
    let all = || newest_first.iter().chain(&summary).enumerate();
    let lengths = all().map(|(at, message)| format::measure(message, at == 0).chars);
    let chars = format::wrapper_chars() + lengths.sum::<usize>();
    if chars > limits.max_chars {
        return Err(ForkError::TooLarge {
            unit: "characters",
            size: chars,
            limit: limits.max_chars,
        });
    }
    let copies = newest_first.iter().cloned();
    let fitted = keep_newest(summary.clone(), copies, limits, count_tokens);
    let complete = fitted.blocks.len() == all().count();
    if complete && fitted.cut_to_fit == CutToFit::default() {
        return Ok(fitted);
    }
    let counts = all().map(|(at, message)| count_tokens(&format::write(message, at == 0, 0)));
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
    size: Size,
}

/// A message that may be kept. Not written if it is longer than all the room there is.
struct Draft<'t> {
    message: Inherited<'t>,
    last: bool,
    chars: usize,
    written: Option<(String, Size)>,
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
            size: wrapper,
        }
    }

    fn draft<'t>(&self, message: Inherited<'t>, last: bool) -> Draft<'t> {
        let Length { chars, bytes } = format::measure(&message, last);
        let written = (chars <= self.room.chars).then(|| {
            let text = format::write(&message, last, bytes);
            let tokens = (self.count_tokens)(&text);
            (text, Size { chars, tokens })
        });
        Draft {
            message,
            last,
            chars,
            written,
        }
    }

    /// What to leave to the summary while the newest message takes its room: as much as
    /// it needs, but not more than half.
    fn share_of(&self, summary: &Draft) -> Size {
        let (chars, tokens) = match &summary.written {
            Some((_, size)) => (size.chars, size.tokens),
            None => (summary.chars, usize::MAX),
        };
        Size {
            chars: chars.min(self.room.chars / 2),
            tokens: tokens.min(self.room.tokens / 2),
        }
    }

    /// Keeps a message if there is room for all of it.
    fn keep_whole<'t>(&mut self, message: Inherited<'t>) -> Option<Block<'t>> {
        let draft = self.draft(message, false);
        let written = draft
            .written
            .filter(|(_, size)| size.is_within(self.room))?;
        Some(self.keep(draft.message, written, false))
    }

    /// Keeps a message that has to be there, cut to fit beside what is reserved.
    fn keep_cut<'t>(&mut self, draft: Draft<'t>, reserved: Size) -> Block<'t> {
        let room = self.room.less(reserved);
        match draft.written {
            Some(written) if written.1.is_within(room) => self.keep(draft.message, written, false),
            _ => {
                let shortened = self.shorten(&draft.message, draft.last, draft.chars, room);
                self.keep(draft.message, shortened, true)
            }
        }
    }

    fn keep<'t>(
        &mut self,
        message: Inherited<'t>,
        (text, size): (String, Size),
        cut: bool,
    ) -> Block<'t> {
        self.room = self.room.less(size);
        self.size.chars += size.chars;
        self.size.tokens += size.tokens;
        Block { message, text, cut }
    }

    fn shorten(&self, message: &Inherited, last: bool, chars: usize, room: Size) -> (String, Size) {
        let mut most = room.chars.min(chars);
        loop {
            let text = format::write_shortened(message, last, most, self.head_percent);
            let tokens = (self.count_tokens)(&text);
            if tokens <= room.tokens || most == 0 {
                let chars = text.chars().count();
                return (text, Size { chars, tokens });
            }
            // Aim at the limit, and come nearer by some percent each time.
            let aim = most.saturating_mul(room.tokens) / tokens;
            most = aim.min(most - 1 - most / 50);
        }
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
