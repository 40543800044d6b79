//! What the pipeline did, in figures.

use serde::Serialize;

use super::{
    Limits, Parent,
    fit_budget::Fitted,
    format,
    inherited::{Fate, ShownCall, Tier},
    since_compaction::Recent,
};

/// What a fork did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// What became of the parent's messages.
    pub messages: Messages,
    /// The compaction that the context begins with; none if none was found.
    pub compaction: Option<Compacted>,
    /// What became of tool results.
    pub results: Results,
    /// Calls whose parameters were shortened.
    pub params_cut: usize,
    /// Messages that were themselves too long for the limits.
    pub cut_to_fit: CutToFit,
    /// Characters, written out in full and as inherited.
    pub characters: Amount,
    /// Tokens, written out in full and as inherited.
    pub tokens: TokenAmount,
}

/// What became of the parent's messages. `in` is the sum of `kept`, `removed`,
/// `compacted` and `empty`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Messages {
    /// Messages that could be read.
    pub r#in: usize,
    /// Messages in the context.
    pub kept: usize,
    /// Oldest messages left out to stay within the limits.
    pub removed: usize,
    /// Messages that the compaction left behind, its own request among them.
    pub compacted: usize,
    /// Messages with nothing to inherit.
    pub empty: usize,
    /// Entries of the parent that could not be read at all.
    pub skipped: usize,
    /// Unreadable parts of messages that were read.
    pub skipped_parts: usize,
    /// Whether there are older messages, which were not even read: the limits left no room
    /// for them, or the compaction stands for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
}

/// The compaction that a context begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// The summary's place in the conversation, counted from 0.
    pub index: usize,
    /// The summary's ID, where the host gave one.
    pub id: Option<String>,
    /// Messages that the summary stands for.
    pub stands_for: usize,
    /// Whether the summary says nothing, so that it is not in the context.
    pub empty: bool,
    /// Messages from before the summary that the host kept beside it and that are in the
    /// context.
    pub kept_tail: usize,
}

/// What became of tool results. `kept` is the sum of the three tiers; those in messages
/// that were cut as a whole are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Results {
    /// Results in the context.
    pub kept: usize,
    /// Those in the newest tier.
    pub whole_tier: usize,
    /// Those in the middle tier.
    pub middle_tier: usize,
    /// Those in the oldest tier.
    pub old_tier: usize,
    /// Of all tiers, those that are complete.
    pub whole: usize,
    /// Of the middle tier, those that really were cut.
    pub cut_middle: usize,
    /// Of the oldest tier, those that really were cut.
    pub cut_old: usize,
    /// Of those cut, how many kept their end.
    pub head_tail: usize,
    /// Cleared by the host before the fork.
    pub cleared: usize,
    /// Replaced by a line, for a newer result of the same call has the same text and is whole.
    pub repeated: usize,
    /// Those in a message that was cut as a whole: some may be missing.
    pub in_cut_messages: usize,
    /// Those in messages that were removed.
    pub removed: usize,
}

/// Messages that were themselves too long for the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CutToFit {
    /// The newest message.
    pub newest: bool,
    /// The compaction's summary.
    pub summary: bool,
}

/// A size before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The whole conversation, nothing cut or removed.
    pub before: usize,
    /// The context.
    pub after: usize,
}

/// A size in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenAmount {
    /// The whole conversation, nothing cut or removed.
    pub before: usize,
    /// Whether `before` was worked out from `after`. Counting what is not kept would
    /// take longer than everything else together.
    pub before_is_estimate: bool,
    /// The context, counted.
    pub after: usize,
}

pub(super) fn gather(parent: &Parent, recent: &Recent, fitted: &Fitted, limits: &Limits) -> Stats {
    let [before, request] = recent.compacted.clone().map(|range| parent.extent(range));
    let [tail, after] = [&recent.tail, &recent.after].map(|range| parent.extent(range.clone()));
    let summary = recent.boundary.map_or(0..0, |at| at..at + 1);
    let summary = parent.extent(summary);
    let since = summary + tail + after;
    let compacted = before + request;

    let messages = Messages {
        r#in: since.messages + compacted.messages,
        kept: fitted.blocks.len(),
        removed: since.inherited - fitted.blocks.len(),
        compacted: compacted.messages,
        empty: since.messages - since.inherited,
        skipped: parent.transcript().skipped().messages,
        skipped_parts: parent.transcript().skipped().parts,
        unread: parent.unread,
    };
    let all = since + compacted;
    let chars_in_full = all.chars_in_full + if limits.call_ids { all.id_chars } else { 0 };
    let characters = Amount {
        // The newest message has no blank line after it.
        before: format::wrapper_chars() + chars_in_full - usize::from(all.inherited > 0),
        after: fitted.size.chars,
    };
    let (results, params_cut) = count_calls(fitted, since.results);
    let lost_nothing = messages.removed + messages.compacted == 0
        && !messages.unread
        && results.whole + results.cleared == results.kept
        && params_cut == 0
        && fitted.cut_to_fit == CutToFit::default();
    let kept_after_summary = fitted.blocks.len() - summary.inherited;
    Stats {
        messages,
        compaction: recent.boundary.map(|index| Compacted {
            index,
            id: parent.messages()[index]
                .id
                .as_ref()
                .map(|id| id.as_str().to_owned()),
            stands_for: before.inherited,
            empty: summary.inherited == 0,
            kept_tail: kept_after_summary.saturating_sub(after.inherited),
        }),
        results,
        params_cut,
        cut_to_fit: fitted.cut_to_fit,
        characters,
        tokens: TokenAmount {
            before: if lost_nothing {
                fitted.size.tokens
            } else {
                characters.before * fitted.size.tokens / characters.after
            },
            before_is_estimate: !lost_nothing,
            after: fitted.size.tokens,
        },
    }
}

/// What became of `all` results, and how many calls have shortened parameters.
fn count_calls(fitted: &Fitted, all: usize) -> (Results, usize) {
    let mut results = Results::default();
    let mut params_cut = 0;
    for block in &fitted.blocks {
        if block.cut {
            results.in_cut_messages += block.message.original().results();
            continue;
        }
        for call in block.message.calls() {
            params_cut += usize::from(call.params_cut);
            if call.call.has_result() {
                results.count(call);
            }
        }
    }
    results.removed = all - results.kept - results.in_cut_messages;
    (results, params_cut)
}

impl Results {
    fn count(&mut self, call: &ShownCall) {
        self.kept += 1;
        match call.tier {
            Tier::Whole => self.whole_tier += 1,
            Tier::Middle => self.middle_tier += 1,
            Tier::Old => self.old_tier += 1,
        }
        match (call.fate, call.tier) {
            (Fate::Whole, _) => self.whole += 1,
            (Fate::Cut, Tier::Old) => self.cut_old += 1,
            (Fate::Cut, Tier::Whole | Tier::Middle) => self.cut_middle += 1,
            (Fate::Cleared, _) => self.cleared += 1,
            (Fate::Repeated, _) => self.repeated += 1,
        }
        self.head_tail += usize::from(call.result.tail.chars > 0);
    }
}
