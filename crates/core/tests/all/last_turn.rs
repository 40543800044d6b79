//! The last turn of a task: what is kept back for it, when it is due, what it may take.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost, Spent},
    last_turn::{Allowance, next_is_too_much, tokens},
};
use proptest::prelude::*;
use rstest::rstest;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn spent(tokens: u64, cost: u64) -> Spent {
    Spent {
        tokens,
        cost: Cost(cost),
        ..Spent::default()
    }
}

#[rstest]
#[case::a_tenth(100, 10)]
#[case::a_minute_at_most(3_600, 60)]
#[case::nothing_of_nothing(0, 0)]
fn of_the_time_a_tenth_is_kept_back_and_a_minute_at_most(#[case] all: u64, #[case] kept: u64) {
    let budget = Budget {
        time: Some(seconds(all)),
        ..Budget::default()
    };
    assert_eq!(budget.reserve().time, Some(seconds(kept)));
    assert_eq!(budget.for_work().time, Some(seconds(all - kept)));
}

#[rstest]
#[case::it_fits(8_000, 1_000, None)]
#[case::tokens(8_000, 1_001, Some("the budget of 10,000 tokens is used up"))]
#[case::already_used(9_500, 0, Some("the budget of 10,000 tokens is used up"))]
fn the_next_answer_must_leave_what_is_kept_back(
    #[case] used: u64,
    #[case] next: u64,
    #[case] why: Option<&str>,
) {
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let found = next_is_too_much(budget, spent(used, 0), spent(next, 0));
    assert_eq!(found.as_deref(), why);
}

#[test]
fn money_is_kept_back_as_tokens_are() {
    let budget = Budget {
        cost: Some(Cost(1_000_000)),
        ..Budget::default()
    };
    let found = |used, next| next_is_too_much(budget, spent(0, used), spent(0, next));
    assert_eq!(found(800_000, 100_000), None);
    let why = found(800_000, 100_001);
    assert_eq!(why.as_deref(), Some("the budget of $1.00 is used up"));
}

#[rstest]
#[case::unlimited(Budget::default(), spent(5, 5), Some((None, None, 60)))]
#[case::a_tenth(Budget { tokens: Some(1_000), ..Budget::default() }, spent(500, 0), Some((Some(100), None, 60)))]
#[case::what_is_left(Budget { tokens: Some(1_000), ..Budget::default() }, spent(960, 0), Some((Some(40), None, 60)))]
#[case::nothing_left(Budget { tokens: Some(1_000), ..Budget::default() }, spent(1_000, 0), None)]
#[case::zero_stays_zero(Budget { cost: Some(Cost(0)), ..Budget::default() }, spent(0, 0), None)]
#[case::money(Budget { cost: Some(Cost(500)), ..Budget::default() }, spent(0, 400), Some((None, Some(50), 60)))]
#[case::time(Budget { time: Some(seconds(40)), ..Budget::default() }, spent(0, 0), Some((None, None, 4)))]
#[case::no_more_tools(Budget { tool_calls: Some(0), ..Budget::default() }, spent(0, 0), Some((None, None, 60)))]
fn what_a_last_turn_may_take(
    #[case] budget: Budget,
    #[case] spent: Spent,
    #[case] expected: Option<(Option<u64>, Option<u64>, u64)>,
) {
    let allowance = Allowance::of(budget, budget.left(spent, Duration::ZERO));
    let found = allowance.map(|may| (may.tokens, may.cost.map(|cost| cost.0), may.time.as_secs()));
    assert_eq!(found, expected);
}

#[rstest]
#[case::nothing_limits_it(None, None, spent(0, 0), 40_000)]
#[case::tokens(Some(3_000), None, spent(9_000, 0), 3_000)]
#[case::what_a_token_has_cost(None, Some(1_000), spent(100_000, 10_000), 2_500)]
#[case::no_price(None, Some(1_000), spent(100_000, 0), 40_000)]
fn how_much_a_host_without_prices_may_read(
    #[case] most: Option<u64>,
    #[case] cost: Option<u64>,
    #[case] spent: Spent,
    #[case] expected: u64,
) {
    let allowance = Allowance {
        tokens: most,
        cost: cost.map(Cost),
        time: seconds(60),
    };
    assert_eq!(tokens(allowance, spent), expected);
}

proptest! {
    #[test]
    fn a_last_turn_never_takes_more_than_a_tenth_nor_than_is_left(
        tokens in 0..1_000_000_u64,
        used in 0..1_100_000_u64,
        time in 0..100_000_u64,
        ran in 0..100_000_u64,
    ) {
        let budget = Budget {
            tokens: Some(tokens),
            time: Some(seconds(time)),
            ..Budget::default()
        };
        let left = budget.left(spent(used, 0), seconds(ran));
        if let Some(may) = Allowance::of(budget, left) {
            let most = may.tokens.expect("limited");
            prop_assert!(most <= tokens / 10 && used + most <= tokens);
            prop_assert!(may.time <= seconds(60) && may.time <= seconds(time) / 10);
            prop_assert!(seconds(ran) + may.time <= seconds(time));
        }
    }
}
