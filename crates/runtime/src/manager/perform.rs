//! Decides, saves, and does what else belongs into the same transaction.

use asyncagents_core::{
    answer::{MessageState, ToldMessage},
    end_notice::{EndNotice, MESSAGES_THAT_COUNT, window},
    id::{PostId, SessionId, TaskId},
    lifecycle::{CancelledBy, Command, Effect, decide},
    moment::Moment,
    notify::{self, Batch},
    port::{Content, Journal, NoticeText, Post, PostKind},
    question::Reply,
    task::Task,
    task_limits::TaskLimits,
};

use super::{shown, told::messages};
use crate::{
    Problem, Settings,
    outbox::{PARENT_STOPPED, RUN_ENDED, parent_was_stopped},
    shared::Shared,
};

impl Shared {
    /// Carries out a command on a task, now. Returns how many tasks below were stopped.
    pub(crate) fn carry_out(
        &self,
        journal: &mut dyn Journal,
        task: &mut Task,
        command: Command,
    ) -> Result<u64, Problem> {
        self.carry_out_within(journal, task, command, &self.settings.limits)
    }

    /// The same within the limits of the task's host, which may be lower than those of the process.
    pub(crate) fn carry_out_within(
        &self,
        journal: &mut dyn Journal,
        task: &mut Task,
        command: Command,
        limits: &TaskLimits,
    ) -> Result<u64, Problem> {
        self.deciding(journal, limits).carry_out(task, command)
    }

    /// Stops every unfinished task below, also below tasks that have ended themselves. Returns
    /// how many there were.
    pub(crate) fn stop_below(
        &self,
        journal: &mut dyn Journal,
        above: &TaskId,
    ) -> Result<u64, Problem> {
        let limits = &self.settings.limits;
        self.deciding(journal, limits).stop_below(above)
    }

    fn deciding<'j>(
        &'j self,
        journal: &'j mut dyn Journal,
        limits: &'j TaskLimits,
    ) -> Deciding<'j> {
        Deciding {
            journal,
            now: self.now(),
            settings: &self.settings,
            limits,
        }
    }
}

/// A command and what follows from it, in one transaction and at one moment.
struct Deciding<'j> {
    journal: &'j mut dyn Journal,
    now: Moment,
    settings: &'j Settings,
    limits: &'j TaskLimits,
}

impl Deciding<'_> {
    fn carry_out(&mut self, task: &mut Task, command: Command) -> Result<u64, Problem> {
        let now = self.now;
        let decision = decide(task, command, now, self.limits)?;
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
                    self.hurry_last(task)?;
                }
                Effect::Withdraw => {
                    for post in self.journal.posts(&task.id)? {
                        self.journal
                            .withdraw(&post.id, "the task was cleared", now)?;
                    }
                }
                Effect::StopBelow => stopped += self.stop_below(&task.id)?,
                Effect::SendMessages => self.send_messages(task)?,
                Effect::SendAnswer {
                    id,
                    question,
                    reply,
                } => self.send_answer(task, id, question, reply)?,
                Effect::TellQuestion { id, question } => self.tell_question(task, id, &question)?,
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
            None => self.told_from(task)?,
        };
        self.post(task, not_before)?;
        if parent_was_stopped(self.journal, task)? {
            self.journal
                .undelivered(&task.id.notice(task.run), PARENT_STOPPED, now)?;
        }
        self.hurry_last(task)
    }

    /// Nothing waits for others of a batch when there are none left, however the last one ended.
    fn hurry_last(&mut self, task: &Task) -> Result<(), Problem> {
        let (parent, batch) = (&task.place.parent, task.batch);
        let Batch { ended, total } = self.journal.batch(parent, batch)?;
        if ended >= total {
            self.journal.hurry_batch(parent, batch, self.now)?;
        }
        Ok(())
    }

    /// Every end of a run has a notice, told or not, so that the journal can account for it.
    fn post(&mut self, task: &Task, not_before: Moment) -> Result<(), Problem> {
        let undelivered = self.take_back(task)?;
        let shown = shown(self.journal, task.clone())?;
        let answer = self.journal.answer(&task.id)?;
        let (answer, wording) = (answer.as_deref(), &self.settings.wording);
        if let Some(end) = EndNotice::new(task, &shown.id, answer, undelivered, wording) {
            let batch = task.batch;
            let post = Post {
                id: task.id.notice(task.run),
                to: task.place.parent.clone(),
                run: task.run,
                content: Content::Notice(NoticeText::Unsent { batch, end }),
            };
            self.journal.post(task, &post, not_before)?;
        }
        Ok(())
    }

    /// When the parent is told of an end. The last one of a batch is told at once, with all that wait;
    /// the others wait for each other, the longer the more messages there were.
    fn told_from(&mut self, task: &Task) -> Result<Moment, Problem> {
        let (parent, batch) = (&task.place.parent, task.batch);
        let Batch { ended, total } = self.journal.batch(parent, batch)?;
        if ended >= total {
            return Ok(self.now);
        }
        let told = self
            .journal
            .told_of_batch(parent, batch, MESSAGES_THAT_COUNT)?;
        let waited = self
            .now
            .after(window(self.settings.notice_window, told.messages));
        Ok(told.next.map_or(waited, |next| next.min(waited)))
    }

    /// Takes back what a run that has ended was not told, and what its parent was not told of it.
    /// Returns how many messages did not reach it.
    fn take_back(&mut self, task: &Task) -> Result<u64, Problem> {
        for post in self.journal.posts(&task.id)? {
            // What may have been sent is looked for before it is given up.
            if post.run == task.run && post.kind != PostKind::Notice {
                self.journal.withdraw(&post.id, RUN_ENDED, self.now)?;
            }
        }
        let told = messages(self.journal, task)?;
        let lost = |told: &&ToldMessage| matches!(told.state, MessageState::Undelivered(_));
        let lost = told.iter().filter(lost).count();
        Ok(u64::try_from(lost).unwrap_or(u64::MAX))
    }

    /// Puts into the outbox what the child was told and did not get with its prompt, once each.
    fn send_messages(&mut self, task: &Task) -> Result<(), Problem> {
        let told = self.journal.messages(&task.id)?;
        let mut unsent = told.into_iter().filter(|told| !told.with_prompt).peekable();
        let Some(session) = task.session.clone().filter(|_| unsent.peek().is_some()) else {
            return Ok(());
        };
        let posted = self.journal.posts(&task.id)?;
        for told in unsent {
            if posted.iter().any(|post| post.id == told.id) {
                continue;
            }
            let content = Content::Message(notify::told_message(told.from, &told.text));
            self.send(task, told.id, session.clone(), content)?;
        }
        Ok(())
    }

    fn send_answer(
        &mut self,
        task: &Task,
        id: PostId,
        question: String,
        reply: Reply,
    ) -> Result<(), Problem> {
        match task.session.clone() {
            Some(session) => self.send(task, id, session, Content::Answer { question, reply }),
            None => Ok(()),
        }
    }

    /// Tells the parent what the child asks. People sit at the top of the tree, so they are told too.
    fn tell_question(&mut self, task: &Task, id: PostId, question: &str) -> Result<(), Problem> {
        let Some(open) = task.progress.asking.get(question) else {
            return Ok(());
        };
        let shown = shown(self.journal, task.clone())?;
        let parent = task.place.parent.clone();
        let root = self.top_of_tree(task)?;
        let for_root = (root != parent).then(|| (id.for_root(), root));
        for (id, to) in [(id, parent)].into_iter().chain(for_root) {
            let wording = self.settings.wording.in_host(task.host_of(&to));
            let message = notify::question_message(task, &shown.id, (question, open), &wording);
            let question = question.to_owned();
            self.send(task, id, to, Content::Question { question, message })?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        task: &Task,
        id: PostId,
        to: SessionId,
        content: Content,
    ) -> Result<(), Problem> {
        let post = Post {
            id,
            to,
            run: task.run,
            content,
        };
        Ok(self.journal.post(task, &post, self.now)?)
    }

    /// The session from which the topmost task above was launched.
    fn top_of_tree(&mut self, task: &Task) -> Result<SessionId, Problem> {
        let mut top = task.place.clone();
        while let Some(above) = &top.above {
            match self.journal.task(above)? {
                Some(above) => top = above.place,
                None => break,
            }
        }
        Ok(top.parent)
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
