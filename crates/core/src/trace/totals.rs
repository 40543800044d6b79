//! What steps come to.

use super::{Step, StepKind};
use crate::{
    agent::{Entry, Usage},
    budget::{Cost, Spent},
};

/// What steps come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceTotals {
    pub spent: Spent,
    /// Its tokens by kind, as far as hosts say the kind.
    pub usage: Usage,
}

impl TraceTotals {
    /// What these steps come to.
    pub fn of(steps: &[Step]) -> Self {
        let each = steps.iter().map(|step| match &step.what {
            StepKind::Model {
                usage,
                unsplit,
                cost,
                ..
            } => Self::answer(*usage, *unsplit, *cost),
            StepKind::Compacted { usage, cost, .. } => Self::answer(*usage, 0, *cost),
            StepKind::Tool { .. } => Self::from(Spent {
                tool_calls: 1,
                ..Spent::default()
            }),
            StepKind::Thought { .. }
            | StepKind::Notice { .. }
            | StepKind::Message { .. }
            | StepKind::Reply { .. }
            | StepKind::FellBack(_)
            | StepKind::Nudged { .. } => Self::default(),
        });
        each.fold(Self::default(), Self::plus)
    }

    /// What an entry of a session adds to what its run has used.
    pub fn of_entry(entry: &Entry) -> Self {
        match entry {
            Entry::Answered { answer, .. } => {
                let mut totals = Self::answer(answer.usage, 0, answer.cost);
                let calls = answer.calls().count();
                totals.spent.tool_calls = u64::try_from(calls).unwrap_or(u64::MAX);
                totals
            }
            Entry::Compacted { answer, .. } => Self::answer(answer.usage, 0, answer.cost),
            Entry::Inherited { .. }
            | Entry::Prompted { .. }
            | Entry::AgentSession { .. }
            | Entry::Notice { .. }
            | Entry::Nudged { .. }
            | Entry::LastTurn { .. }
            | Entry::FellBack(_)
            | Entry::ToolBegan { .. }
            | Entry::ToolEnded { .. }
            | Entry::Ended { .. } => Self::default(),
        }
    }

    fn answer(usage: Usage, unsplit: u64, cost: Option<Cost>) -> Self {
        let spent = Spent::of_answer(usage.context().saturating_add(unsplit), cost);
        Self { spent, usage }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            spent: self.spent.plus(more.spent),
            usage: self.usage.plus(more.usage),
        }
    }

    /// What came on top of `earlier`.
    #[must_use]
    pub fn beyond(self, earlier: Self) -> Self {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            spent: self.spent.beyond(earlier.spent),
            usage: Usage {
                input: less(self.usage.input, earlier.usage.input),
                cache_read: less(self.usage.cache_read, earlier.usage.cache_read),
                cache_write: less(self.usage.cache_write, earlier.usage.cache_write),
                output: less(self.usage.output, earlier.usage.output),
            },
        }
    }

    /// Tokens of a kind that their host does not tell.
    pub fn unsplit(self) -> u64 {
        self.spent.tokens.saturating_sub(self.usage.context())
    }
}

impl From<Spent> for TraceTotals {
    /// What a host counts that does not say the kind of its tokens.
    fn from(spent: Spent) -> Self {
        let usage = Usage::default();
        Self { spent, usage }
    }
}
