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
        self.deciding(journal).carry_out(task, command)
    }

    /// Stops every unfinished task below, also below tasks that have ended themselves. Returns
    /// how many there were.
    pub(crate) fn stop_below(
        &self,
        journal: &mut dyn Journal,
        above: &TaskId,
    ) -> Result<u64, Problem> {
        self.deciding(journal).stop_below(above)
    }

    fn deciding<'j>(&'j self, journal: &'j mut dyn Journal) -> Deciding<'j> {
        Deciding {
            journal,
            now: self.now(),
            settings: &self.settings,
        }
    }
}

/// A command and what follows from it, in one transaction and at one moment.
struct Deciding<'j> {
    journal: &'j mut dyn Journal,
    now: Moment,
    settings: &'j Settings,
}

impl Deciding<'_> {
    fn carry_out(&mut self, task: &mut Task, command: Command) -> Result<u64, Problem> {
        let now = self.now;
        let decision = decide(task, command, now, &self.settings.limits)?;
        if !decision.events.is_empty() {
            self.journal.append(task, &decision.events, now)?;
        }
        let mut stopped = 0;
        for effect in decision.effects {
            match effect {
                Effect::Tell => self.tell(task)?,
                Effect::SuppressNotice => {
                    let why = "it was stopped with what it worked for";
                    self.post(task, now)?;
                    self.journal
                        .undelivered(&task.id.notice(task.run), why, now)?;
                }
                Effect::Withdraw => {
                    for (notice, _) in self.journal.notices(&task.id)? {
                        self.journal
                            .withdraw(&notice, "the task was cleared", now)?;
                    }
                }
                Effect::StopBelow => stopped += self.stop_below(&task.id)?,
                Effect::SpendAbove => {
                    self.spend_above(task)?;
                    // A task above may have been ended for it, and this task with it.
                    if let Some(newest) = self.journal.task(&task.id)? {
                        *task = newest;
                    }
                }
            }
        }
        Ok(stopped)
    }

    fn stop_below(&mut self, above: &TaskId) -> Result<u64, Problem> {
        let mut stopped = 0;
        for mut below in self.journal.below(above)? {
            if below.is_live() {
                let command = Command::Cancel(CancelledBy::Above);
                stopped += 1 + self.carry_out(&mut below, command)?;
            } else {
                stopped += self.stop_below(&below.id)?;
            }
        }
        Ok(stopped)
    }

    /// Puts into the outbox what the parent is told, if it is there to be told.
    fn tell(&mut self, task: &Task) -> Result<(), Problem> {
        let now = self.now;
        // A parent that waits for the task reads the result itself, unless it dies first.
        let not_before = match self.journal.awaited(&task.id, &task.place.parent, now)? {
            Some(_) => now.after(self.settings.notice_delay),
            None => now,
        };
        self.post(task, not_before)?;
        if let Some(above) = &task.place.above
            && let Some(above) = self.journal.task(above)?
            && was_stopped(&above)
        {
            // To tell it would set a stopped session to work again.
            let why = "the parent had been stopped";
            self.journal
                .undelivered(&task.id.notice(task.run), why, now)?;
        }
        Ok(())
    }

    /// Every end of a run has a notice, told or not, so that the journal can account for it.
    fn post(&mut self, task: &Task, not_before: Moment) -> Result<(), Problem> {
        let batch = self.journal.batch(&task.place.parent, task.batch)?;
        let shown = shown(self.journal, task.clone())?;
        let wording = &self.settings.wording;
        let message = match &task.skill {
            Some(_) => {
                let answer = self.journal.answer(&task.id)?;
                notify::skill_message(task, &shown.id, answer.as_deref(), batch, wording)
            }
            None => notify::message(task, &shown.id, batch, wording),
        };
        if let Some(message) = message {
            let id = task.id.notice(task.run);
            self.journal
                .post(task, &Notice { id, message }, not_before)?;
        }
        Ok(())
    }

    /// What a task spends is spent by all above it too; one of them may have no more.
    fn spend_above(&mut self, task: &Task) -> Result<(), Problem> {
        let mut next = task.place.above.clone();
        while let Some(id) = next {
            let Some(mut above) = self.journal.task(&id)? else {
                break;
            };
            let command = Command::SpentBelow(self.journal.spent_below(&id)?);
            self.carry_out(&mut above, command)?;
            next = above.place.above;
        }
        Ok(())
    }
}
