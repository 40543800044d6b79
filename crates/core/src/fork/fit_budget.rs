//! Step 3: the limits on the whole context, which always hold.

use super::{
    ForkError, Limits, OverBudget,
    cut_results::{Cutter, Inherited, Tally},
    cut_text::{Slice, shorten},
    format::{self, Block, CLOSE, OPEN, Size},
    since_compaction::Recent,
    stats::CutToFit,
};
use crate::transcript::Message;

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

/// Keeps the summary and the newest message, cut if they must be, and of the messages
/// between them as many of the newest as there is room for.
pub(super) fn fit(
    recent: &Recent,
    cutter: &Cutter,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<Fitted, ForkError> {
    if limits.when_over == OverBudget::Refuse {
        refuse_if_over(recent, cutter, limits, count_tokens)?;
    }
    let mut fitting = Fitting::new(limits, count_tokens);
    let mut older = recent.newest_first().peekable();
    let summary = summary_as_inherited(recent, cutter);
    let only_summary = older.peek().is_none();

    let mut newer = 0;
    if let Some(newest) = older.next() {
        let reserved = summary.as_ref().map(|summary| fitting.share_of(summary));
        let inherited = cutter.cut(newest, newer);
        let (block, cut) = fitting.squeeze(&inherited, true, reserved.unwrap_or_default());
        fitting.fitted.cut_to_fit.newest = cut;
        let block = fitting.keep(block, &inherited, cut);
        fitting.fitted.blocks.push(block);
        newer += newest.results();
    }
    let summary = summary.map(|inherited| {
        let (block, cut) = fitting.squeeze(&inherited, only_summary, Size::default());
        fitting.fitted.cut_to_fit.summary = cut;
        fitting.keep(block, &inherited, cut)
    });
    for message in older {
        let inherited = cutter.cut(message, newer);
        let Some(block) = fitting.write_if_it_fits(&inherited, false, fitting.room) else {
            break;
        };
        let block = fitting.keep(block, &inherited, false);
        fitting.fitted.blocks.push(block);
        newer += message.results();
    }

    let mut fitted = fitting.fitted;
    fitted.blocks.extend(summary);
    fitted.blocks.reverse();
    Ok(fitted)
}

fn summary_as_inherited<'t>(recent: &Recent<'t>, cutter: &Cutter) -> Option<Inherited<'t>> {
    let summary = recent.summary()?;
    // A summary seldom holds results; only then is it worth counting all the others.
    let newer = match summary.results() {
        0 => 0,
        _ => recent.newest_first().map(Message::results).sum(),
    };
    Some(cutter.cut(summary, newer))
}

/// The context so far, and the room that is left for more.
struct Fitting<'a, C> {
    head_percent: usize,
    count_tokens: &'a C,
    room: Size,
    fitted: Fitted,
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

    /// What to leave to the summary while the newest message takes its room: as much as
    /// it needs, but not more than half.
    fn share_of(&self, summary: &Inherited) -> Size {
        let half = Size {
            chars: self.room.chars / 2,
            tokens: self.room.tokens / 2,
        };
        match self.write_if_it_fits(summary, false, half) {
            Some(block) => block.size,
            None => half,
        }
    }

    fn write_if_it_fits(&self, message: &Inherited, last: bool, room: Size) -> Option<Block> {
        let chars = format::measure(message, last);
        if chars > room.chars {
            return None;
        }
        let text = format::write(message, last);
        let tokens = (self.count_tokens)(&text);
        let size = Size { chars, tokens };
        (tokens <= room.tokens).then_some(Block { text, size })
    }

    /// Writes a message that has to be there, cut to fit beside what is reserved. Says
    /// whether it was cut.
    fn squeeze(&self, message: &Inherited, last: bool, reserved: Size) -> (Block, bool) {
        let room = self.room.less(reserved);
        if let Some(block) = self.write_if_it_fits(message, last, room) {
            return (block, false);
        }
        let whole = format::write(message, last);
        let whole = Slice::counted(&whole);
        let mut most = room.chars.min(whole.chars);
        loop {
            let text = shorten(whole, most, self.head_percent);
            let tokens = (self.count_tokens)(&text);
            if tokens <= room.tokens || most == 0 {
                let chars = text.chars().count();
                let size = Size { chars, tokens };
                return (Block { text, size }, true);
            }
            // Aim at the limit, and come nearer by some percent each time.
            let aim = most.saturating_mul(room.tokens) / tokens;
            most = aim.min(most - 1 - most / 50);
        }
    }

    /// Takes the block's room and counts its results.
    fn keep(&mut self, block: Block, message: &Inherited, cut: bool) -> Block {
        self.room = self.room.less(block.size);
        self.fitted.size.chars += block.size.chars;
        self.fitted.size.tokens += block.size.tokens;
        if cut {
            self.fitted.in_cut_messages += message.tally.results();
        } else {
            self.fitted.tally.add(message.tally);
        }
        block
    }
}

impl Size {
    fn less(self, other: Size) -> Self {
        Self {
            chars: self.chars.saturating_sub(other.chars),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

fn wrapper(count_tokens: &impl Fn(&str) -> usize) -> Size {
    Size {
        chars: format::wrapper_chars(),
        tokens: count_tokens(OPEN) + count_tokens(CLOSE),
    }
}

/// The size of everything, measured first and counted only if that is within the limit.
fn refuse_if_over(
    recent: &Recent,
    cutter: &Cutter,
    limits: &Limits,
    count_tokens: &impl Fn(&str) -> usize,
) -> Result<(), ForkError> {
    let mut newer = 0;
    let mut all = Vec::new();
    for message in recent.newest_first() {
        all.push(cutter.cut(message, newer));
        newer += message.results();
    }
    all.extend(summary_as_inherited(recent, cutter));

    let mut size = wrapper(count_tokens);
    let measured = all.iter().enumerate();
    size.chars += measured
        .map(|(at, message)| format::measure(message, at == 0))
        .sum::<usize>();
    if size.chars > limits.max_chars {
        return Err(ForkError::TooLarge {
            unit: "characters",
            size: size.chars,
            limit: limits.max_chars,
        });
    }
    let written = all.iter().enumerate();
    let count = |(at, message)| count_tokens(&format::write(message, at == 0));
    size.tokens += written.map(count).sum::<usize>();
    if size.tokens > limits.max_tokens {
        return Err(ForkError::TooLarge {
            unit: "tokens",
            size: size.tokens,
            limit: limits.max_tokens,
        });
    }
    Ok(())
}
