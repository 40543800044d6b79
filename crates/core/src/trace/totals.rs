//! What steps come to.

use super::{Step, StepKind};
use crate::{
    agent::Usage,
    budget::{Cost, Price},
};

/// What steps come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceTotals {
    /// Tokens, by kind.
    pub usage: Usage,
    /// Tokens of which nobody says the kind.
    pub untold: u64,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Of the tokens, those that nobody knows the price of.
    pub unpriced: u64,
    /// Answers of the model.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

impl TraceTotals {
    /// What these steps come to.
    pub fn of(steps: &[Step]) -> Self {
        let each = steps.iter().map(|step| match &step.what {
            StepKind::Model {
                usage,
                untold,
                cost,
                ..
            } => Self {
                usage: *usage,
                untold: *untold,
                cost: cost.unwrap_or_default(),
                unpriced: unpriced(*cost, usage.context().saturating_add(*untold)),
                turns: 1,
                tool_calls: 0,
            },
            StepKind::Compacted { usage, cost, .. } => Self {
                usage: *usage,
                cost: cost.unwrap_or_default(),
                unpriced: unpriced(*cost, usage.context()),
                turns: 1,
                ..Self::default()
            },
            StepKind::Tool { .. } => Self {
                tool_calls: 1,
                ..Self::default()
            },
            StepKind::Thought { .. } | StepKind::Told { .. } | StepKind::Nudged { .. } => {
                Self::default()
            }
        });
        each.fold(Self::default(), Self::plus)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            usage: self.usage.plus(more.usage),
            untold: self.untold.saturating_add(more.untold),
            cost: Cost(self.cost.0.saturating_add(more.cost.0)),
            unpriced: self.unpriced.saturating_add(more.unpriced),
            turns: self.turns.saturating_add(more.turns),
            tool_calls: self.tool_calls.saturating_add(more.tool_calls),
        }
    }

    /// All tokens, in and out.
    pub fn tokens(self) -> u64 {
        self.usage.context().saturating_add(self.untold)
    }

    /// What they cost.
    pub fn price(self) -> Price {
        Price::new(self.cost, self.unpriced)
    }
}

fn unpriced(cost: Option<Cost>, tokens: u64) -> u64 {
    match cost {
        Some(_) => 0,
        None => tokens,
    }
}
