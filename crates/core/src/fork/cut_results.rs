//! Step 2: tool results, the newest whole and older ones ever shorter.

use aho_corasick::packed::Searcher;

use super::{
    Limits,
    cut_text::{Kept, Slice},
    since_compaction::{Recent, is_shown},
};
use crate::transcript::{CallId, Message, Outcome, Part, Role, ToolCall};

/// A message as the child will see it. All slices of the parent's text.
pub(super) struct Inherited<'t> {
    pub(super) role: Role,
    pub(super) parts: Vec<Shown<'t>>,
    pub(super) tally: Tally,
}

/// A part as the child will see it.
pub(super) enum Shown<'t> {
    Text(Slice<'t>),
    Call {
        name: Slice<'t>,
        params: Kept<'t>,
        result: Option<ShownResult<'t>>,
    },
}

/// A result as the child will see it.
pub(super) struct ShownResult<'t> {
    pub(super) kind: ResultKind,
    pub(super) call_id: Option<&'t str>,
    pub(super) text: Kept<'t>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultKind {
    Output,
    Error,
    None,
}

/// How far back a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    Whole,
    Middle,
    Old,
}

/// What was done to results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Results by the place they took, cut or not.
    pub(super) whole_tier: usize,
    pub(super) middle_tier: usize,
    pub(super) old_tier: usize,
    /// Results that really were cut.
    pub(super) cut_middle: usize,
    pub(super) cut_old: usize,
    /// Of those, how many kept their end.
    pub(super) head_tail: usize,
    pub(super) cleared: usize,
    pub(super) params_cut: usize,
}

impl Tally {
    /// How many results there are.
    pub(super) fn results(self) -> usize {
        self.whole_tier + self.middle_tier + self.old_tier
    }

    /// How many of them were cut.
    pub(super) fn cut(self) -> usize {
        self.cut_middle + self.cut_old
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.whole_tier += other.whole_tier;
        self.middle_tier += other.middle_tier;
        self.old_tier += other.old_tier;
        self.cut_middle += other.cut_middle;
        self.cut_old += other.cut_old;
        self.head_tail += other.head_tail;
        self.cleared += other.cleared;
        self.params_cut += other.params_cut;
    }
}

/// A conversation with its results cut, a message at a time.
pub(super) struct CutConversation<'t, I> {
    /// What stands for everything before.
    pub(super) summary: Option<Inherited<'t>>,
    /// Everything else. A message is cut when it is asked for.
    pub(super) newest_first: I,
}

/// Cuts results by their age.
pub(super) fn cut<'t>(
    recent: &Recent<'t>,
    limits: &Limits,
) -> CutConversation<'t, impl Iterator<Item = Inherited<'t>>> {
    let cutter = Cutter::new(limits);
    let summary = recent.summary().map(|summary| {
        // A summary seldom holds results; only then is it worth counting all the others.
        let newer = match summary.results() {
            0 => 0,
            _ => recent.newest_first().map(Message::results).sum(),
        };
        cutter.cut(summary, newer)
    });
    let mut newer = 0;
    let newest_first = recent.newest_first().map(move |message| {
        let inherited = cutter.cut(message, newer);
        newer += message.results();
        inherited
    });
    CutConversation {
        summary,
        newest_first,
    }
}

/// Decides how much of each result stays.
pub(super) struct Cutter<'l> {
    limits: &'l Limits,
    failure: FailureWords<'l>,
}

impl<'l> Cutter<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            failure: FailureWords::new(&limits.head_tail_words),
        }
    }

    /// Cuts the results of one message, which has `newer` results after it.
    fn cut<'t>(&self, message: &'t Message<'t>, newer: usize) -> Inherited<'t> {
        let mut tally = Tally::default();
        Inherited {
            role: message.role,
            parts: self.cut_parts(message, newer, &mut tally).collect(),
            tally,
        }
    }

    /// The same, a part at a time.
    pub(super) fn cut_parts<'t>(
        &self,
        message: &'t Message<'t>,
        newer: usize,
        tally: &mut Tally,
    ) -> impl Iterator<Item = Shown<'t>> {
        // Places are counted from the newest, so the message's first result comes last.
        let mut place = newer + message.results();
        let shown = message.parts.iter().filter(|part| is_shown(message, part));
        shown.map(move |part| match part {
            Part::Text(text) => Shown::Text(Slice::all(text)),
            Part::Tool(call) => {
                let shown = self.cut_call(call, self.tier(place), tally);
                place -= usize::from(call.has_result());
                shown
            }
        })
    }

    /// The tier of the result at a place, 1 being the newest. A call without a result
    /// has the place of the nearest newer result; where there is none, of the newest.
    fn tier(&self, place: usize) -> Tier {
        let place = place.max(1);
        if place <= self.limits.whole_results {
            Tier::Whole
        } else if place <= self.limits.whole_results + self.limits.middle_results {
            Tier::Middle
        } else {
            Tier::Old
        }
    }

    fn cut_call<'t>(&self, call: &'t ToolCall<'t>, tier: Tier, tally: &mut Tally) -> Shown<'t> {
        let keep = match tier {
            Tier::Whole => self.limits.whole_param_chars,
            Tier::Middle => self.limits.middle_param_chars,
            Tier::Old => self.limits.old_param_chars,
        };
        let params = Kept::preview(Slice::all(&call.input), keep);
        tally.params_cut += usize::from(params.is_cut());
        if call.has_result() {
            match tier {
                Tier::Whole => tally.whole_tier += 1,
                Tier::Middle => tally.middle_tier += 1,
                Tier::Old => tally.old_tier += 1,
            }
        }
        let (kind, text) = match &call.outcome {
            Outcome::Pending => (ResultKind::None, Kept::whole(Slice::default())),
            Outcome::Cleared => {
                tally.cleared += 1;
                let cleared = Kept::whole(Slice::counted(Outcome::CLEARED));
                (ResultKind::Output, cleared)
            }
            Outcome::Completed(text) => {
                let kept = self.cut_result(call.name.as_str(), Slice::all(text), tier, tally);
                (ResultKind::Output, kept)
            }
            Outcome::Failed(text) => {
                let kept = self.cut_result(call.name.as_str(), Slice::all(text), tier, tally);
                (ResultKind::Error, kept)
            }
        };
        let id = call.id.as_ref().filter(|_| self.limits.call_ids);
        let call_id = id.map(CallId::as_str);
        Shown::Call {
            name: Slice::all(&call.name),
            params,
            // Without a result there is nothing to show but an ID.
            result: (kind != ResultKind::None || call_id.is_some()).then_some(ShownResult {
                kind,
                call_id,
                text,
            }),
        }
    }

    fn cut_result<'t>(
        &self,
        tool: &str,
        text: Slice<'t>,
        tier: Tier,
        tally: &mut Tally,
    ) -> Kept<'t> {
        let (keep, cut) = match tier {
            Tier::Whole => return Kept::whole(text),
            Tier::Middle => (self.limits.middle_result_chars, &mut tally.cut_middle),
            Tier::Old => (self.limits.old_result_chars, &mut tally.cut_old),
        };
        let users_words = self.limits.uncut_tools.iter().any(|name| name == tool);
        if text.chars <= keep || users_words {
            return Kept::whole(text);
        }
        *cut += 1;
        let head_percent = match self.end_matters(tool, text.text) {
            true => self.limits.head_percent,
            false => 100,
        };
        let kept = Kept::cut(text, keep, head_percent);
        tally.head_tail += usize::from(kept.tail.chars > 0);
        kept
    }

    /// Commands and failures say what happened in their last lines.
    fn end_matters(&self, tool: &str, text: &str) -> bool {
        let names = &self.limits.head_tail_tools;
        names.iter().any(|name| tool.contains(name.as_str())) || self.failure.is_in(text)
    }
}

/// Finds any of a few words, all at once.
struct FailureWords<'l> {
    words: &'l [String],
    /// Absent for no words, or for more than it can take at once.
    searcher: Option<Searcher>,
}

impl<'l> FailureWords<'l> {
    fn new(words: &'l [String]) -> Self {
        Self {
            words,
            searcher: Searcher::new(words),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match &self.searcher {
            Some(searcher) => searcher.find(text).is_some(),
            None => self.words.iter().any(|word| text.contains(word.as_str())),
        }
    }
}
