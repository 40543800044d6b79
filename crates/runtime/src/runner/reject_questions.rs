//! Rejects what a child asks if its launch says that nobody will answer.

use asyncagents_core::{
    lifecycle::Command,
    port::{Journal, PostKind, Stored},
    question::Reply,
    task::{Stage, Task},
};

use super::{Run, RunStopped, ours, stage};
use crate::{Problem, shared::Shared};

/// What the child is told instead of an answer.
const WHY: &str = "Nobody can be asked here: the task was launched where no person waits for \
                   questions (`permissions.unanswered`). Go on without it, or say in your answer \
                   what you were not able to do.";

impl Run {
    /// Finds out whether questions are rejected: as its launch says, or the nearest above it that
    /// says something.
    pub(super) async fn read_unanswered(&mut self) -> Result<(), Problem> {
        let (shared, task) = (self.shared.clone(), self.task.clone());
        let rejects = self.shared.read(move |journal| {
            let said = said_at_launch(&shared, journal, task.clone())?;
            Ok(said.unwrap_or(false))
        });
        self.rejects = rejects.await?;
        Ok(())
    }

    /// Rejects every question that nobody has answered in this run, each once: one whose answer the
    /// host does not take stays open.
    pub(super) async fn reject_questions(&mut self) -> Result<(), RunStopped> {
        let asking = &self.task.progress.asking;
        if !self.rejects || asking.keys().all(|asked| self.rejected.contains(asked)) {
            return Ok(());
        }
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        let (id, run, limits) = (self.task.id.clone(), self.task.run, self.limits.clone());
        let written = self.shared.write(move |journal| {
            let mut task = ours(journal.task(&id)?, &owner, run)?;
            // Another model is being asked to go on, or it says its last: there is no one to answer.
            if stage(&task) != Some(&Stage::Working) {
                return Ok((task, Vec::new()));
            }
            let open: Vec<String> = task.progress.asking.keys().cloned().collect();
            for question in unanswered(journal, &task)? {
                let text = Some(WHY.to_owned());
                let reply = Reply::Reject { text };
                let command = Command::Answer { question, reply };
                shared.carry_out_within(journal, &mut task, command, &limits)?;
            }
            Ok((task, open))
        });
        let (task, seen_to) = written.await?;
        self.task = task;
        self.rejected.extend(seen_to);
        self.shared.written();
        Ok(())
    }
}

/// What a task's launch says, or the nearest above it.
fn said_at_launch(
    shared: &Shared,
    journal: &mut dyn Journal,
    mut task: Task,
) -> Result<Option<bool>, Problem> {
    loop {
        if let Some(rejects) = shared.hosts.source.rejects_questions(&task.brief.host) {
            return Ok(Some(rejects));
        }
        let above = match &task.place.above {
            Some(above) => journal.task(above)?,
            None => None,
        };
        match above {
            Some(above) => task = above,
            None => return Ok(None),
        }
    }
}

/// The open questions for which there is no answer yet, given or on its way.
fn unanswered(journal: &mut dyn Journal, task: &Task) -> Stored<Vec<String>> {
    let posts = journal.posts(&task.id)?;
    let is_answered = |question: &str| {
        let mut own = posts.iter().filter(|post| post.run == task.run);
        own.any(|post| post.kind == PostKind::Answer && post.question.as_deref() == Some(question))
    };
    let open = task.progress.asking.keys();
    Ok(open.filter(|asked| !is_answered(asked)).cloned().collect())
}
