//! What a task may spend, and what it has spent.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::wording::{counted, duration};

/// Money in millionths of a dollar: sums stay exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Cost(pub u64);

impl Cost {
    /// In dollars, for programs that read it.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// What another program says in dollars. Nothing if that is no sum of money.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in a range that fits"
    )]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (0.0..1e9)
            .contains(&dollars)
            .then(|| Self((dollars * 1e6).round() as u64))
    }

    /// How many units this pays for, where `units` of them cost `price`.
    pub fn buys(self, units: u64, price: Cost) -> u64 {
        let bought = u128::from(self.0) * u128::from(units) / u128::from(price.0.max(1));
        u64::try_from(bought).unwrap_or(u64::MAX)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (dollars, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{millionths:06}");
        let cents = digits.trim_end_matches('0');
        write!(f, "${dollars}.{cents:0<2}")
    }
}

/// What something cost, as far as prices are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    Known(Cost),
    /// This, and tokens whose price is not known.
    AtLeast(Cost),
    /// No price is known. That is not the same as free.
    Unknown,
}

impl Price {
    /// What this cost comes to, beside so many tokens without a known price.
    pub fn new(cost: Cost, unpriced: u64) -> Self {
        match (cost, unpriced) {
            (cost, 0) => Price::Known(cost),
            (Cost(0), _) => Price::Unknown,
            (cost, _) => Price::AtLeast(cost),
        }
    }

    /// What is known of it, in dollars.
    pub fn dollars(self) -> Option<f64> {
        match self {
            Price::Known(cost) | Price::AtLeast(cost) => Some(cost.dollars()),
            Price::Unknown => None,
        }
    }
}

impl From<Option<Cost>> for Price {
    fn from(cost: Option<Cost>) -> Self {
        cost.map_or(Price::Unknown, Price::Known)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Price::Known(cost) => write!(f, "{cost}"),
            Price::AtLeast(cost) => write!(f, "at least {cost}"),
            Price::Unknown => f.write_str("cost unknown"),
        }
    }
}

/// What has been used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Of the tokens, those whose price is not known.
    pub unpriced: u64,
    /// Answers of the model.
    pub turns: u64,
    pub tool_calls: u64,
}

impl Spent {
    /// What one answer of a model takes.
    pub fn answer(tokens: u64, cost: Cost, unpriced: u64) -> Self {
        Self {
            tokens,
            cost,
            unpriced,
            turns: 1,
            tool_calls: 0,
        }
    }

    /// The same where the price is known for all tokens, or for none.
    pub fn of_answer(tokens: u64, cost: Option<Cost>) -> Self {
        let unpriced = if cost.is_some() { 0 } else { tokens };
        Self::answer(tokens, cost.unwrap_or_default(), unpriced)
    }

    /// What it came to.
    pub fn price(self) -> Price {
        Price::new(self.cost, self.unpriced)
    }

    /// Both together.
    pub fn plus(self, more: Spent) -> Spent {
        self.each(more, u64::saturating_add)
    }

    /// What came on top of `earlier`.
    pub fn beyond(self, earlier: Spent) -> Spent {
        self.each(earlier, u64::saturating_sub)
    }

    fn each(self, other: Spent, work: fn(u64, u64) -> u64) -> Spent {
        Spent {
            tokens: work(self.tokens, other.tokens),
            cost: Cost(work(self.cost.0, other.cost.0)),
            unpriced: work(self.unpriced, other.unpriced),
            turns: work(self.turns, other.turns),
            tool_calls: work(self.tool_calls, other.tool_calls),
        }
    }
}

/// What a task may spend in one run, with everything below it. Zero means zero; what is
/// not limited is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    pub cost: Option<Cost>,
    /// Time since it began to run; waiting for a slot does not count.
    pub time: Option<Duration>,
    /// Answers of the model.
    pub turns: Option<u64>,
    pub tool_calls: Option<u64>,
}

impl Budget {
    /// This budget, with what it leaves open taken from `other`.
    pub fn or(self, other: Budget) -> Budget {
        Budget {
            tokens: self.tokens.or(other.tokens),
            cost: self.cost.or(other.cost),
            time: self.time.or(other.time),
            turns: self.turns.or(other.turns),
            tool_calls: self.tool_calls.or(other.tool_calls),
        }
    }

    /// The smaller of the two, limit by limit.
    pub fn at_most(self, other: Budget) -> Budget {
        fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Budget {
            tokens: smaller(self.tokens, other.tokens),
            cost: smaller(self.cost, other.cost),
            time: smaller(self.time, other.time),
            turns: smaller(self.turns, other.turns),
            tool_calls: smaller(self.tool_calls, other.tool_calls),
        }
    }

    /// What is left of it.
    pub fn left(self, spent: Spent, ran: Duration) -> Budget {
        Budget {
            tokens: self.tokens.map(|most| most.saturating_sub(spent.tokens)),
            cost: self.cost.map(|most| most - spent.cost),
            time: self.time.map(|most| most.saturating_sub(ran)),
            turns: self.turns.map(|most| most.saturating_sub(spent.turns)),
            tool_calls: self
                .tool_calls
                .map(|most| most.saturating_sub(spent.tool_calls)),
        }
    }

    /// The limit that leaves nothing to run with, if there is one. A task can work without
    /// money (a local model) and without tools, but not without these.
    pub fn nothing_left(self) -> Option<&'static str> {
        let empty = [
            ("tokens", self.tokens == Some(0)),
            ("time", self.time == Some(Duration::ZERO)),
            ("turns", self.turns == Some(0)),
        ];
        empty
            .iter()
            .find(|(_, empty)| *empty)
            .map(|(name, _)| *name)
    }

    /// What is kept back of it for a last turn, in which a task sums up: a tenth, and a minute at
    /// most. Of turns and tool calls nothing is.
    pub fn reserve(self) -> Budget {
        Budget {
            tokens: self.tokens.map(|most| most / 10),
            cost: self.cost.map(|most| Cost(most.0 / 10)),
            time: self.time.map(|most| (most / 10).min(LONGEST_LAST_TURN)),
            turns: None,
            tool_calls: None,
        }
    }

    /// What may be used before the last turn.
    pub fn for_work(self) -> Budget {
        let reserve = self.reserve();
        Budget {
            tokens: self
                .tokens
                .map(|most| most - reserve.tokens.unwrap_or_default()),
            cost: self
                .cost
                .map(|most| most - reserve.cost.unwrap_or_default()),
            time: self
                .time
                .map(|most| most - reserve.time.unwrap_or_default()),
            ..self
        }
    }

    /// The first limit that this much is over. One that is reached exactly is kept.
    pub fn over(self, spent: Spent) -> Option<Limit> {
        fn over<T: PartialOrd>(most: Option<T>, used: T) -> bool {
            most.is_some_and(|most| used > most)
        }
        let limits = [
            (Limit::Tokens, over(self.tokens, spent.tokens)),
            (Limit::Turns, over(self.turns, spent.turns)),
            (Limit::ToolCalls, over(self.tool_calls, spent.tool_calls)),
            (Limit::Cost, over(self.cost, spent.cost)),
        ];
        let found = limits.iter().find(|(_, over)| *over);
        found.map(|(limit, _)| *limit)
    }

    /// Why this much is too much, if it is.
    pub fn exceeded(self, spent: Spent) -> Option<String> {
        self.over(spent).map(|limit| self.used_up(limit))
    }

    /// That a limit of it is used up, in words.
    pub fn used_up(self, limit: Limit) -> String {
        let amount = |most: Option<u64>, one, many| {
            let most = usize::try_from(most.unwrap_or_default()).unwrap_or(usize::MAX);
            counted(most, one, many)
        };
        let what = match limit {
            Limit::Tokens => amount(self.tokens, "token", "tokens"),
            Limit::Turns => amount(self.turns, "turn", "turns"),
            Limit::ToolCalls => amount(self.tool_calls, "tool call", "tool calls"),
            Limit::Cost => self.cost.unwrap_or_default().to_string(),
            Limit::Time => {
                let most = duration(self.time.unwrap_or_default());
                return format!("the time limit of {most} is reached");
            }
        };
        format!("the budget of {what} is used up")
    }

    /// Why the time is up, if it is.
    pub fn out_of_time(self, ran: Duration) -> Option<String> {
        let over = self.time.is_some_and(|most| ran >= most);
        over.then(|| self.used_up(Limit::Time))
    }
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Tokens, in and out.
    Tokens,
    /// Answers of the model.
    Turns,
    ToolCalls,
    Cost,
    /// Time since it began to run.
    Time,
}

/// How long a last turn may take, however much time there is.
pub(crate) const LONGEST_LAST_TURN: Duration = Duration::from_secs(60);
