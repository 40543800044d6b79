//! A background task: what it is to do, and where it stands.

use std::{fmt, time::Duration};

use crate::{
    agent::{Effort, End},
    budget::{Budget, Spent},
    host_ref::{HostRef, HostSetup},
    id::{AgentName, ChainId, ModelName, OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    progress::Progress,
    skill::Terms,
    words::words,
};

/// A background task. Everything here is folded from the task's events; see
/// [`crate::lifecycle::apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// Where it stands in the tree of tasks.
    pub place: Place,
    /// What it was launched with.
    pub brief: Brief,
    /// The skill it runs, and on what terms. The skill's text is only read when it is sent.
    pub skill: Option<Terms>,
    /// What one run of it may spend.
    pub budget: Budget,
    pub launched_at: Moment,
    /// Tasks of one parent that were unfinished at the same time share a batch.
    pub batch: u64,
    /// 0 for the launch, then one for each follow-up.
    pub run: u32,
    /// The child's session, once it exists.
    pub session: Option<SessionId>,
    pub state: State,
    /// The host may still be working for a run that has ended: it has to be told to stop.
    pub stopping: bool,
    /// How far it has come.
    pub progress: Progress,
    /// What the tasks below it have spent.
    pub below: Spent,
    /// What it and those below had spent when this run began.
    pub spent_before: Spent,
    /// When its result was first read.
    pub retrieved_at: Option<Moment>,
    /// Forgotten by its parent: it shows nowhere any more.
    pub cleared: bool,
    /// The process that looks after it.
    pub owner: Option<OwnerId>,
    /// The trace of its newest run.
    pub chain: Option<ChainId>,
    /// How many events it has had.
    pub seq: u64,
}

/// Where a task stands in the tree of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The session that launched it and is told about it.
    pub parent: SessionId,
    /// The task working in that session, if it is a child itself.
    pub above: Option<TaskId>,
    /// The session at the top of the tree.
    pub root: SessionId,
    /// 1 for a task of a session that is no child.
    pub depth: u32,
    /// The host that the root session lives in, where that is not the host of the task.
    pub outside: Option<HostRef>,
    /// The host of the task above, where that is not the host of the task.
    pub above_in: Option<HostRef>,
}

impl Place {
    /// The host that the launching session lives in, where that is not the host of the task.
    pub fn parent_outside(&self) -> Option<&HostRef> {
        match self.above {
            None => self.outside.as_ref(),
            Some(_) => self.above_in.as_ref(),
        }
    }
}

/// What a task was launched with, without its prompt: that can be long, and is only read
/// when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// Short, for lists and notices.
    pub description: String,
    pub agent: AgentName,
    /// The model, if it is not the agent's own.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if the launcher says so.
    pub effort: Option<Effort>,
    /// What the child knows at the start.
    pub context: Context,
    /// The host it runs in.
    pub host: HostSetup,
}

/// What a child knows at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context {
    /// Only its prompt.
    #[default]
    Fresh,
    /// Its parent's conversation too.
    Forked,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting for a slot.
    Queued { since: Moment },
    Running {
        since: Moment,
        /// How far it has come.
        stage: Stage,
    },
    /// Finished, one way or the other.
    Ended {
        at: Moment,
        ran: Duration,
        outcome: Outcome,
    },
}

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The child's session is being made.
    Creating,
    /// The session is there, the prompt may or may not be.
    Prompting,
    /// The host has taken the prompt.
    Working,
    /// A limit is reached: its work is stopped, and it may say what it has found so far.
    SummingUp {
        /// The limit, in words.
        why: String,
    },
}

/// What a running task does, as far as was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase<'t> {
    /// Its session is being made and prompted.
    Starting,
    /// Its model thinks, or it waits for tasks of its own.
    Working,
    /// It has called this tool, and its model has not answered since.
    Using(&'t str),
    /// Its command waits until fewer of other tasks run.
    CommandQueued,
    /// It waits for an answer of its user.
    Asking,
    /// A limit is reached, and it says what it has found so far.
    SummingUp,
}

impl fmt::Display for Phase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Working => f.write_str("working"),
            Self::Using(tool) => write!(f, "using {tool}"),
            Self::CommandQueued => f.write_str("command queued"),
            Self::Asking => f.write_str("asking"),
            Self::SummingUp => f.write_str("summing up"),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed {
        /// What went wrong, for people and models.
        why: String,
    },
    Cancelled,
}

impl Outcome {
    /// What a task that ended so is called by those who look at it.
    pub fn status(&self) -> Status {
        match self {
            Outcome::Completed => Status::Completed,
            Outcome::Failed { .. } => Status::Error,
            Outcome::Cancelled => Status::Cancelled,
        }
    }

    /// What went wrong, if it failed.
    pub fn why(&self) -> Option<&str> {
        match self {
            Outcome::Failed { why } => Some(why),
            Outcome::Completed | Outcome::Cancelled => None,
        }
    }
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        match end {
            End::Answered => Outcome::Completed,
            End::Failed { why } | End::Broken { why } => Outcome::Failed { why },
            End::Aborted => Outcome::Cancelled,
        }
    }
}

/// What a task is called by those who look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waiting for a slot.
    Queued,
    Running,
    /// At work on a follow-up.
    Resumed,
    Completed,
    Error,
    Cancelled,
}

words! {
    Status {
        Queued = "queued",
        Running = "running",
        Resumed = "resumed",
        Completed = "completed",
        Error = "error",
        Cancelled = "cancelled",
    }
}

impl Task {
    /// The newest prompt of its session.
    pub fn prompt(&self) -> PostId {
        match self.progress.reprompted {
            0 => self.id.prompt(self.run),
            time => self.id.prompt_again(self.run, time),
        }
    }

    /// The host of a session that is told about it: its own, its parent's or the root.
    pub fn host_of(&self, session: &SessionId) -> &HostRef {
        let place = &self.place;
        let elsewhere = if self.session.as_ref() == Some(session) {
            None
        } else if *session == place.parent {
            place.parent_outside()
        } else {
            place.outside.as_ref().filter(|_| *session == place.root)
        };
        elsewhere.unwrap_or(&self.brief.host.host)
    }

    /// Who works on it: the agent, and in which other one, if it is in another.
    pub fn worked_on_by(&self) -> String {
        let agent = &self.brief.agent;
        match &self.brief.host.host {
            HostRef::Agent {
                name,
                unsandboxed: false,
                ..
            } => format!("{agent} in {name}"),
            HostRef::Agent { name, .. } => format!("{agent} in {name}, unsandboxed"),
            _ => agent.to_string(),
        }
    }

    /// What it is called by those who look at it.
    pub fn status(&self) -> Status {
        match &self.state {
            State::Queued { .. } => Status::Queued,
            State::Running { .. } if self.run > 0 => Status::Resumed,
            State::Running { .. } => Status::Running,
            State::Ended { outcome, .. } => outcome.status(),
        }
    }

    /// What it does, if it runs.
    pub fn phase(&self) -> Option<Phase<'_>> {
        let State::Running { stage, .. } = &self.state else {
            return None;
        };
        Some(match (stage, &self.progress.using) {
            (Stage::Creating | Stage::Prompting, _) => Phase::Starting,
            (Stage::SummingUp { .. }, _) => Phase::SummingUp,
            _ if !self.progress.asking.is_empty() => Phase::Asking,
            (Stage::Working, _) if self.progress.command_queued => Phase::CommandQueued,
            (Stage::Working, Some(tool)) => Phase::Using(tool),
            (Stage::Working, None) => Phase::Working,
        })
    }

    /// The model to go on with, if it is not the agent's own: the one that was asked for, or the
    /// one that took its place.
    pub fn model(&self) -> Option<&ModelName> {
        self.progress.model.as_ref().or(self.brief.model.as_ref())
    }

    /// Whether it is in the queue because something is missing, and no worker has it.
    pub fn is_held(&self) -> bool {
        let is_queued = matches!(self.state, State::Queued { .. });
        is_queued && self.owner.is_none() && self.progress.held.is_some()
    }

    /// Queued or running.
    pub fn is_live(&self) -> bool {
        match self.state {
            State::Queued { .. } | State::Running { .. } => true,
            State::Ended { .. } => false,
        }
    }

    /// How long this run has been running, or ran.
    pub fn ran(&self, now: Moment) -> Duration {
        match &self.state {
            State::Queued { .. } => Duration::ZERO,
            State::Running { since, .. } => now.since(*since),
            State::Ended { ran, .. } => *ran,
        }
    }

    /// What it and the tasks below it have spent in this run.
    pub fn spent_in_run(&self) -> Spent {
        self.progress
            .spent
            .plus(self.below)
            .beyond(self.spent_before)
    }

    /// What is left of its budget for this run.
    pub fn left(&self, now: Moment) -> Budget {
        self.budget.left(self.spent_in_run(), self.ran(now))
    }
}
