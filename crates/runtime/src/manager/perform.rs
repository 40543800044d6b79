//! Decides, saves, and does what else belongs into the same transaction.

use asyncagents_core::{
    id::TaskId,
    lifecycle::{CancelledBy, Command, Effect, decide, was_stopped},
    moment::Moment,
    notify,
    port::{Journal, Notice},
    task::Task,
};

use super::shown;
use crate::{Problem, Settings, shared::Shared};

impl Shared {
    /// Carries out a command on a task, now. Returns how many tasks below were stopped.
    pub(crate) fn carry_out(
        &self,
        journal: &mut dyn Journal,
        task: &mut Task,
        command: Command,
    ) -> Result<u64, Problem> {
        carry_out(journal, task, command, self.now(), &self.settings)
    }
}

fn carry_out(
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
            Effect::Hush => {
                let why = "it was stopped with what it worked for";
                post(journal, task, now, settings)?;
                journal.untold(&task.id.notice(task.run), why, now)?;
            }
            Effect::Withdraw => {
                for (notice, _) in journal.notices(&task.id)? {
                    journal.withdraw(&notice, "the task was cleared", now)?;
                }
            }
            Effect::StopBelow => stopped += stop_below(journal, &task.id, now, settings)?,
            Effect::SpendAbove => {
                spend_above(journal, task, now, settings)?;
                // Whoever is above may have been ended for it, and this task with it.
                if let Some(newest) = journal.task(&task.id)? {
                    *task = newest;
                }
            }
        }
    }
    Ok(stopped)
}

/// Stops every unfinished task below, also below tasks that have ended themselves. Returns
/// how many there were.
pub(crate) fn stop_below(
    journal: &mut dyn Journal,
    above: &TaskId,
    now: Moment,
    settings: &Settings,
) -> Result<u64, Problem> {
    let mut stopped = 0;
    for mut below in journal.below(above)? {
        if below.is_live() {
            let command = Command::Cancel(CancelledBy::Above);
            stopped += 1 + carry_out(journal, &mut below, command, now, settings)?;
        } else {
            stopped += stop_below(journal, &below.id, now, settings)?;
        }
    }
    Ok(stopped)
}

/// Puts into the outbox what the parent is told, if it is there to be told.
fn tell(
    journal: &mut dyn Journal,
    task: &Task,
    now: Moment,
    settings: &Settings,
) -> Result<(), Problem> {
    // A parent that waits for the task reads the result itself, unless it dies first.
    let not_before = match journal.awaited(&task.id, &task.place.parent, now)? {
        Some(_) => now.after(settings.notice_delay),
        None => now,
    };
    post(journal, task, not_before, settings)?;
    if let Some(above) = &task.place.above
        && let Some(above) = journal.task(above)?
        && was_stopped(&above)
    {
        // To tell it would set a stopped session to work again.
        let why = "the parent had been stopped";
        journal.untold(&task.id.notice(task.run), why, now)?;
    }
    Ok(())
}

/// Every end of a run has a notice, told or not, so that the journal can account for it.
fn post(
    journal: &mut dyn Journal,
    task: &Task,
    not_before: Moment,
    settings: &Settings,
) -> Result<(), Problem> {
    let batch = journal.batch(&task.place.parent, task.batch)?;
    let shown = shown(journal, task.clone())?;
    let wording = &settings.wording;
    let message = match &task.skill {
        Some(_) => {
            let answer = journal.answer(&task.id)?;
            notify::skill_message(task, &shown.id, answer.as_deref(), batch, wording)
        }
        None => notify::message(task, &shown.id, batch, wording),
    };
    if let Some(message) = message {
        let id = task.id.notice(task.run);
        journal.post(task, &Notice { id, message }, not_before)?;
    }
    Ok(())
}

/// What a task spends is spent by all above it too; one of them may have no more.
fn spend_above(
    journal: &mut dyn Journal,
    task: &Task,
    now: Moment,
    settings: &Settings,
) -> Result<(), Problem> {
    let mut next = task.place.above.clone();
    while let Some(id) = next {
        let Some(mut above) = journal.task(&id)? else {
            break;
        };
        let command = Command::SpentBelow(journal.spent_below(&id)?);
        carry_out(journal, &mut above, command, now, settings)?;
        next = above.place.above;
    }
    Ok(())
}
