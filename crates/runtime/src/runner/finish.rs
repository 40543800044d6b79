//! Ends a run whose child is done, unless something is on its way to the child: it will go on when
//! it has got that.

use asyncagents_core::{
    lifecycle::Command,
    progress::{Observation, Totals},
    task::{Outcome, Stage},
};

use super::{Run, RunStopped, ours, stage};
use crate::sent_messages::SentMessages;

impl Run {
    /// How many of the child's own tasks are at work, or have ended without its having been told.
    /// What it is told sets it to work again, so until then it is not done, whatever it says. This
    /// is read before the host is asked: what settles in between comes with a turn that the
    /// host knows of.
    pub(super) async fn unsettled_below(&self) -> Result<u64, RunStopped> {
        let id = self.task.id.clone();
        let read = self
            .shared
            .read(move |journal| Ok(journal.unsettled_below(&id)?));
        Ok(read.await?)
    }

    /// Looks for what keeps a child that is done from its end: tasks of its own, and messages to it
    /// that may have been sent.
    pub(super) async fn look_for_unsettled(&mut self) -> Result<(), RunStopped> {
        let task = self.task.clone();
        let read = self.shared.read(move |journal| {
            let sent = SentMessages::of(journal, &task)?;
            Ok((sent, journal.unsettled_below(&task.id)?))
        });
        let (sent, below) = read.await?;
        self.waits = below > 0 || sent.on_their_way > 0;
        self.told = sent.delivered;
        Ok(())
    }

    /// The child says that it is done, and is to get something first.
    pub(super) async fn hold(&mut self, totals: Option<Totals>) -> Result<(), RunStopped> {
        self.waits = true;
        let counted = |totals| Command::Observe(vec![Observation::Counted(totals)]);
        let mut commands: Vec<Command> = totals.map(counted).into_iter().collect();
        if stage(&self.task) == Some(&Stage::Prompting) {
            // What is on its way waits for that.
            commands.push(Command::Prompted);
        }
        self.record_all(commands).await
    }

    /// Ends the run. A message may have been sent since the host was asked: then what it answered
    /// is old, and it is asked again. A child that has failed is not to go on: if the message wakes
    /// it, it is stopped.
    pub(super) async fn finish(
        &mut self,
        outcome: Outcome,
        answer: Option<String>,
        totals: Option<Totals>,
    ) -> Result<(), RunStopped> {
        let wakes = self.host.host.notices_wake();
        let (shared, owner, counted) = (self.shared.clone(), self.owner.clone(), totals.clone());
        let (id, run, told) = (self.task.id.clone(), self.task.run, self.told);
        let finished = self.shared.write(move |journal| {
            let mut task = ours(journal.task(&id)?, &owner, run)?;
            let sent = SentMessages::of(journal, &task)?;
            let woken = wakes && (sent.on_their_way > 0 || sent.delivered > told);
            if woken && outcome == Outcome::Completed {
                return Ok(None);
            }
            let finish = Command::Finish {
                outcome: outcome.clone(),
                answer: answer.clone(),
                totals: counted.clone(),
                woken,
            };
            shared.carry_out(journal, &mut task, finish)?;
            Ok(Some(task))
        });
        let Some(task) = finished.await? else {
            return self.hold(totals).await;
        };
        self.task = task;
        self.shared.watch.wake(std::slice::from_ref(&self.task.id));
        self.shared.written();
        Err(RunStopped::Done)
    }
}
