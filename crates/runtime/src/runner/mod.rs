//! Drives one run of one task: makes the session, sends the prompt, follows the child until
//! it ends. Everything it learns is saved before it goes on.

mod fall_back;
mod finish;
mod follow;
mod inspect;
mod make_session;
mod news;
mod reject_questions;
mod sum_up;

use std::{collections::HashSet, sync::Arc, time::Duration};

use asyncagents_core::{
    event::Launched,
    id::{OwnerId, PostId, SessionId, TaskId},
    lifecycle::{Command, Standing, lost_its_workers},
    port::Prompt,
    skill::Role,
    task::{Stage, State, Task},
    task_limits::TaskLimits,
};
use tokio::{sync::Notify, time};

use self::sum_up::AskedBefore;
use crate::{Problem, clock::Clocks, hosts::OpenHost, metrics, shared::Shared};

/// How the worker got the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It has just started it.
    Started,
    /// Another worker had it, and its host may have done anything since.
    TakenOver,
}

/// One run of a task.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owner: OwnerId,
    pub(crate) host: Arc<OpenHost>,
    pub(crate) stop: Arc<Notify>,
    pub(crate) task: Task,
    /// The skill that the task runs, once it has been read.
    pub(crate) role: Option<Role>,
    pub(crate) got: Origin,
    pub(crate) limits: TaskLimits,
    pub(crate) clocks: Clocks,
    /// The child has nothing to do until tasks of its own have ended, or until it has got what is
    /// on its way to it.
    pub(crate) waits: bool,
    /// How many messages the child had got when its host was last asked about it.
    pub(crate) told: usize,
    /// How many times in a row the host was asked about the child and did not answer.
    pub(crate) unanswered: u32,
    /// Whether what the child asks is rejected.
    pub(crate) rejects: bool,
    /// The questions that need not be looked at again for that.
    pub(crate) rejected: HashSet<String>,
}

/// Why a runner lets go of its task.
pub(crate) enum RunStopped {
    /// The task has ended, or the worker stops, or another worker has it.
    Done,
    /// The store failed. The task is as it was, and will be taken over.
    Failed(Problem),
}

impl From<Problem> for RunStopped {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::NotOurs => RunStopped::Done,
            problem => RunStopped::Failed(problem),
        }
    }
}

impl Run {
    /// Drives the task to its end, or until the worker stops.
    pub(crate) async fn drive(mut self) {
        if self.got == Origin::Started {
            metrics::spawned(&self.task);
        }
        let driven = self.steps().await;
        metrics::ended(&self.shared, &self.task).await;
        match driven {
            Ok(()) | Err(RunStopped::Done) => {}
            Err(RunStopped::Failed(problem)) => {
                tracing::error!(task = %self.task.id, %problem, "cannot follow the task, letting go of it");
            }
        }
        if let Some(session) = &self.task.session {
            self.host.forget(session);
        }
    }

    async fn steps(&mut self) -> Result<(), RunStopped> {
        let lost = lost_its_workers(&self.task, &self.limits);
        if let Some(why) = lost.filter(|_| !is_summing_up(&self.task)) {
            return Err(self.give_up(why).await);
        }
        if let Err(why) = self.read_role().await {
            return Err(self.give_up(why).await);
        }
        self.read_unanswered().await?;
        let known = self.task.session.clone();
        // A session that is not known to the task has never been sent a prompt.
        let got = known.as_ref().map_or(Origin::Started, |_| self.got);
        let session = match known {
            Some(session) => session,
            None => self.make_session().await?,
        };
        let reports = self.host.listen(&session);
        if got == Origin::TakenOver && is_summing_up(&self.task) {
            return self.sum_up(&session, AskedBefore::Perhaps).await;
        }
        match got {
            Origin::Started => self.prompt(&session).await?,
            Origin::TakenOver => self.go_on(&session).await?,
        }
        self.follow(&session, reports).await
    }

    /// Reads the skill that the task runs. A run without the terms of its skill could do more than
    /// they allow, so there is none.
    async fn read_role(&mut self) -> Result<(), String> {
        let Some(terms) = self.task.skill.clone() else {
            return Ok(());
        };
        let role = self.launched_with(|launched| launched.role).await;
        let role = role.map_err(|problem| problem.to_string())?;
        let role = role.ok_or("its launch does not say which skill it runs")?;
        self.role = Some(Role { terms, ..role });
        Ok(())
    }

    /// Goes on where another worker left off.
    async fn go_on(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let on_its_way = stage(&self.task) == Some(&Stage::Prompting);
        if on_its_way && self.task.progress.reprompted > 0 {
            return self.go_on_falling_back(session).await;
        }
        let mut inspection = self.ask_until_answered(session).await?;
        if on_its_way && inspection.standing == Standing::Unprompted {
            // The other worker may have sent the prompt just before it died.
            self.pause(self.shared.settings.confirm_timeout).await?;
            inspection = self.ask_until_answered(session).await?;
        }
        self.act(session, inspection).await
    }

    /// A pause that the worker's end cuts short.
    async fn pause(&self, time: Duration) -> Result<(), RunStopped> {
        tokio::select! {
            () = time::sleep(time) => Ok(()),
            () = self.stop.notified() => Err(RunStopped::Done),
        }
    }

    /// Something of the launch event that is only read when it is needed.
    async fn launched_with<T: Send + 'static>(
        &self,
        what: fn(Launched) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let id = self.task.id.clone();
        self.shared
            .read(move |journal| Ok(journal.launched(&id)?.and_then(what)))
            .await
    }

    /// Sends the prompt. If that fails, the host may have it all the same.
    async fn prompt(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let (id, run, owner) = (self.task.id.clone(), self.task.run, self.owner.clone());
        let text = self
            .shared
            .read(move |journal| {
                // A worker that was asleep for too long has no right to send it.
                ours(journal.task(&id)?, &owner, run)?;
                Ok(journal.prompt(&id)?)
            })
            .await?
            .unwrap_or_default();
        let prompt = Prompt {
            id: self.prompt_id(),
            text: self.or_go_on(session, text).await?,
            agent: self.task.brief.agent.clone(),
            model: self.task.model().cloned(),
            effort: self.task.brief.effort,
            role: self.role.clone(),
        };
        if !self.shared.has_own_lease() {
            return Err(RunStopped::Done);
        }
        let sent = self.host.ask(|host| host.prompt(session, prompt)).await;
        if let Err(error) = sent {
            let why = format!("its prompt could not be sent: {error}");
            let inspection = self.ask_until_answered(session).await?;
            match inspection.standing {
                Standing::Unprompted => return Err(self.give_up(why).await),
                Standing::Working => {}
                Standing::Gone
                | Standing::Done { .. }
                | Standing::ModelUnavailable(_)
                | Standing::Interrupted => {
                    return Box::pin(self.act(session, inspection)).await;
                }
            }
        }
        self.record(Command::Prompted).await
    }

    async fn give_up(&mut self, why: String) -> RunStopped {
        match self.record(Command::GiveUp { why }).await {
            Ok(()) => RunStopped::Done,
            Err(let_go) => let_go,
        }
    }

    pub(crate) async fn record(&mut self, command: Command) -> Result<(), RunStopped> {
        self.record_all(vec![command]).await
    }

    /// Saves what has happened, if the task is still this worker's and this run still runs.
    async fn record_all(&mut self, commands: Vec<Command>) -> Result<(), RunStopped> {
        if commands.is_empty() {
            return Ok(());
        }
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        let (id, run, limits) = (self.task.id.clone(), self.task.run, self.limits.clone());
        let recorded = self.shared.write(move |journal| {
            let mut task = ours(journal.task(&id)?, &owner, run)?;
            for command in &commands {
                shared.carry_out_within(journal, &mut task, command.clone(), &limits)?;
            }
            Ok(task)
        });
        self.task = recorded.await?;
        self.shared.watch.wake(std::slice::from_ref(&self.task.id));
        if !self.task.is_live() {
            self.shared.written();
            return Err(RunStopped::Done);
        }
        Ok(())
    }

    fn prompt_id(&self) -> PostId {
        self.task.prompt()
    }
}

/// The task, if this worker still runs this run of it.
pub(crate) fn ours(task: Option<Task>, owner: &OwnerId, run: u32) -> Result<Task, Problem> {
    let ours = |task: &Task| {
        task.owner.as_ref() == Some(owner)
            && task.run == run
            && matches!(task.state, State::Running { .. })
    };
    task.filter(ours).ok_or(Problem::NotOurs)
}

pub(crate) fn stage(task: &Task) -> Option<&Stage> {
    match &task.state {
        State::Running { stage, .. } => Some(stage),
        State::Queued { .. } | State::Ended { .. } => None,
    }
}

fn is_summing_up(task: &Task) -> bool {
    matches!(stage(task), Some(Stage::SummingUp { .. }))
}

/// What a worker calls a run.
pub(crate) type RunKey = (TaskId, u32);
