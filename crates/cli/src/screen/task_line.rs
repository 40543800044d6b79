//! A background task in a line.

use asyncagents_core::{
    answer::Shown,
    budget::{Cost, Price},
    moment::Moment,
    task::{Outcome, State, Status},
    wording::{self, grouped},
};

use crate::width::{fitting, fitting_parts, width};

/// Between the parts of a line.
const BETWEEN: &str = " · ";

/// So much of a description is shown before figures are left out.
const SHORT: usize = 16;

/// `task_3f9c21ab "Find the slow query" running 12 s · grep · 3 tools · 1,204 tokens · $0.0036`
pub(super) fn task_line(shown: &Shown, now: Moment) -> String {
    with_description(shown, &shown.task.brief.description, now)
}

/// The same, no wider than this: first with less of the description, then with fewer figures.
pub(super) fn task_line_within(shown: &Shown, now: Moment, columns: usize) -> String {
    let words = shown.task.brief.description.split_whitespace();
    let description = words.collect::<Vec<_>>().join(" ");
    let line = with_description(shown, &description, now);
    let over = width(&line).saturating_sub(columns);
    let room = width(&description).saturating_sub(over).max(SHORT);
    // Where it stands is said in any case.
    let bare = with_description(shown, "", now);
    let bare = bare.split(BETWEEN).next().unwrap_or_default();
    let room = room.min(columns.saturating_sub(width(bare)));
    let line = with_description(shown, &fitting(&description, room), now);
    fitting_parts(&line, BETWEEN, columns)
}

fn with_description(shown: &Shown, description: &str, now: Moment) -> String {
    let task = &shown.task;
    let (status, spent) = (task.status(), &task.progress.spent);
    let mut line = format!("{} \"{description}\" {status}", shown.id);
    if status != Status::Queued {
        line.push_str(&format!(" {} s", task.ran(now).as_secs()));
    }
    let mut add = |part: &str| {
        line.push_str(BETWEEN);
        line.push_str(part);
    };
    let part = match &task.state {
        State::Running { .. } => task.progress.recent.back(),
        State::Ended {
            outcome: Outcome::Failed { why },
            ..
        } => Some(why),
        State::Ended { .. } | State::Queued { .. } => None,
    };
    if let Some(part) = part {
        add(part);
    }
    if spent.turns > 0 {
        add(&counted(spent.tool_calls, "tool"));
        add(&format!("{} tokens", grouped(spent.tokens)));
        add(&dollars(spent.price()));
    }
    line
}

/// `1 tool`, `1,204 tools`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    wording::counted(number, what, &format!("{what}s"))
}

/// With four decimals. A model without a price is not free.
pub(crate) fn dollars(price: Price) -> String {
    let exact = |Cost(millionths)| format!("${:.4}", millionths as f64 / 1e6);
    match price {
        Price::Known(Cost(0)) => "$0.00".to_owned(),
        Price::Known(cost) => exact(cost),
        Price::AtLeast(cost) => format!("at least {}", exact(cost)),
        Price::Unknown => price.to_string(),
    }
}
