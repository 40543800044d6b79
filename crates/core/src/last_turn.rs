//! The last turn of a task whose budget is used up: it may say what it has found so far, without
//! tools, within what was kept back of its budget.

use std::time::Duration;

use crate::budget::{Budget, Cost, LONGEST_LAST_TURN, Limit, Spent};

/// What a last turn may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    pub cost: Option<Cost>,
    pub time: Duration,
}

impl Allowance {
    /// What a budget has for a last turn of what is left of it. Nothing if a limit leaves none:
    /// zero stays zero.
    pub fn of(budget: Budget, left: Budget) -> Option<Self> {
        let Budget {
            tokens, cost, time, ..
        } = left.at_most(budget.reserve());
        let time = time.unwrap_or(LONGEST_LAST_TURN);
        let nothing = tokens == Some(0) || cost == Some(Cost(0)) || time.is_zero();
        (!nothing).then_some(Self { tokens, cost, time })
    }
}

/// How many tokens a last turn may take that is asked in a host whose prices are not known: what
/// the task has paid for a token tells. That was mostly for what the provider had in its cache, and
/// the last turn is not there.
pub fn tokens(allowance: Allowance, spent: Spent) -> u64 {
    let by_cost = allowance.cost.filter(|_| spent.cost > Cost(0));
    let by_cost = by_cost.map(|cost| cost.buys(spent.tokens, spent.cost) / UNCACHED);
    let limits = [allowance.tokens, by_cost, Some(MOST_TOKENS)];
    limits.into_iter().flatten().fold(MOST_TOKENS, u64::min)
}

/// How many tokens a last turn reads at most, where nothing else limits it.
const MOST_TOKENS: u64 = 40_000;

/// How many times dearer a token may be that no cache has.
const UNCACHED: u64 = 4;

/// Why a task that has spent so much and ran so long has to sum up, if it has: what is left of its
/// budget was kept back for that. For hosts that do not see to it themselves, and tell what was
/// used only afterwards.
pub fn due(budget: Budget, spent: Spent, ran: Duration) -> Option<String> {
    let work = budget.for_work();
    let late = work.out_of_time(ran).map(|_| Limit::Time);
    let over = work.over(spent).or(late);
    over.map(|limit| budget.used_up(limit))
}

/// Why the next answer would take what is kept back for the last turn, if it would: it takes as
/// many tokens as the conversation has, and about as much money as the one before.
pub fn next_is_too_much(budget: Budget, spent: Spent, next: Spent) -> Option<String> {
    let over = budget.for_work().over(spent.plus(next));
    let over = over.filter(|limit| matches!(limit, Limit::Tokens | Limit::Cost));
    over.map(|limit| budget.used_up(limit))
}

/// What the model is told before its last turn.
pub fn request(why: &str) -> String {
    format!(
        "This is your last turn: {why}. Do not call tools. Say what you have found and done so \
         far, and what is left."
    )
}
