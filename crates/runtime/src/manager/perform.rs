//! Decides, saves, and does what else belongs into the same transaction.

use asyncagents_core::{
    budget::Spent,
    event::Event,
    lifecycle::{CancelledBy, Command, Effect, decide, over_budget},
    moment::Moment,
    notify,
    port::{Journal, Notice},
    task::{Outcome, State, Task},
};

use super::shown;
use crate::{Problem, Settings};

/// Carries out a command on a task. Returns how many tasks below were stopped.
pub(crate) fn carry_out(
    journal: &mut dyn Journal,
    task: &mut Task,
    command: Command,
    now: Moment,
    settings: &Settings,
) -> Result<u64, Problem> {
    let decision = decide(task, command, now, &settings.limits)?;
    if !decision.events.is_empty() {
        journal.append(task, &decision.events, now)?;
    }
    let mut stopped = 0;
    for effect in decision.effects {
        match effect {
            Effect::Tell => tell(journal, task, now, settings)?,
            Effect::Withdraw => journal.withdraw(&task.id, "the task was cleared", now)?,
            Effect::StopBelow => {
                for mut below in journal.live_below(&task.id)? {
                    let command = Command::Cancel(CancelledBy::Above);
                    stopped += 1 + carry_out(journal, &mut below, command, now, settings)?;
                }
            }
            Effect::SpendAbove(spent) => {
                spend_above(journal, task, spent, now, settings)?;
                // Whoever is above may have been ended for it, and this task with it.
                if let Some(newest) = journal.task(&task.id)? {
                    *task = newest;
                }
            }
        }
    }
    Ok(stopped)
}

/// Puts into the outbox what the parent is told.
fn tell(
    journal: &mut dyn Journal,
    task: &Task,
    now: Moment,
    settings: &Settings,
) -> Result<(), Problem> {
    let parent = &task.place.parent;
    let batch = journal.batch(parent, task.batch)?;
    let shown = shown(journal, task.clone())?;
    let Some(message) = notify::message(task, &shown.id, batch, &settings.wording) else {
        return Ok(());
    };
    let notice = Notice {
        id: task.id.notice(task.run),
        message,
    };
    // A parent that waits for the task reads the result itself, unless it dies first.
    let not_before = match journal.awaited(&task.id, parent, now)? {
        Some(_) => now.after(settings.grace),
        None => now,
    };
    journal.post(task, &notice, not_before)?;
    if let Some(above) = &task.place.above
        && let Some(above) = journal.task(above)?
        && was_stopped(&above)
    {
        // To tell it would set a stopped session to work again.
        journal.untold(&notice.id, "the parent had been stopped", now)?;
    }
    Ok(())
}

/// Nobody is left in its session who could use an answer.
pub(crate) fn was_stopped(task: &Task) -> bool {
    match &task.state {
        State::Queued { .. } | State::Running { .. } => task.cleared,
        State::Ended { outcome, .. } => task.cleared || *outcome != Outcome::Completed,
    }
}

/// What a task spends is spent by all above it too; one of them may have no more.
fn spend_above(
    journal: &mut dyn Journal,
    task: &Task,
    spent: Spent,
    now: Moment,
    settings: &Settings,
) -> Result<(), Problem> {
    let mut next = task.place.above.clone();
    while let Some(id) = next {
        let Some(mut above) = journal.task(&id)? else {
            break;
        };
        journal.append(&mut above, &[Event::SpentBelow(spent)], now)?;
        if let Some(why) = over_budget(&above) {
            carry_out(journal, &mut above, Command::GiveUp { why }, now, settings)?;
        }
        next = above.place.above;
    }
    Ok(())
}
