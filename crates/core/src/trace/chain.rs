//! A run and its place among others.

use std::time::Duration;

use super::{Step, TraceTotals};
use crate::{
    id::{AgentName, ChainId, PostId, SessionId, TaskId},
    moment::Moment,
    task::{Outcome, Status},
};

/// A run that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub id: ChainId,
    /// The run from which it was begun.
    pub parent: Option<ChainId>,
    /// What it is a run of.
    pub of: ChainOf,
    /// When it was asked for.
    pub begun: Moment,
}

/// What a chain is a run of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainOf {
    Task {
        task: TaskId,
        /// 0 for the launch, then one for each follow-up.
        run: u32,
    },
    /// A person's, in a session of the built-in agent.
    Session { session: SessionId, prompt: PostId },
}

/// A run with everything that happened in it, and the runs below it; or without its steps, where only
/// what they come to is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The run; tasks of old have no name for theirs.
    pub chain: Option<ChainId>,
    /// The run from which it was begun.
    pub parent: Option<ChainId>,
    /// The task, if it is one's.
    pub task: Option<TaskId>,
    /// For people.
    pub title: String,
    /// The skill that it runs.
    pub skill: Option<String>,
    pub agent: Option<AgentName>,
    pub request: String,
    pub state: TraceState,
    /// When it was asked for.
    pub begun: Moment,
    /// How long it has taken, or took.
    pub took: Duration,
    pub steps: Vec<Step>,
    /// What was said at the end.
    pub answer: Option<String>,
    /// What it has used itself.
    pub own: TraceTotals,
    /// What it has used together with the runs below it.
    pub all: TraceTotals,
    /// The runs that were begun from within it, in order.
    pub children: Vec<Trace>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceState {
    /// Waiting for a slot.
    Queued,
    /// At work, or interrupted: nothing says that it is over.
    Running,
    Ended {
        outcome: Outcome,
        /// Whether its agent came to this end: with an answer, at a limit, or because the model
        /// refused. False if it was stopped, or the model, its host or its process failed.
        own: bool,
    },
}

impl TraceState {
    /// The same in the words for tasks.
    pub fn status(&self) -> Status {
        match self {
            TraceState::Queued => Status::Queued,
            TraceState::Running => Status::Running,
            TraceState::Ended { outcome, .. } => outcome.status(),
        }
    }

    /// Why it has no answer, if there is a reason.
    pub fn why(&self) -> Option<&str> {
        match self {
            TraceState::Queued | TraceState::Running => None,
            TraceState::Ended { outcome, .. } => outcome.why(),
        }
    }

    /// Whether its agent came to this end.
    pub fn is_own_end(&self) -> bool {
        matches!(self, TraceState::Ended { own: true, .. })
    }

    /// Whether there is more to come.
    pub fn is_live(&self) -> bool {
        !matches!(self, TraceState::Ended { .. })
    }
}

impl Trace {
    /// Sums up what it and the runs below it have used.
    pub fn add_up(&mut self) {
        self.all = self.own;
        for child in &mut self.children {
            child.add_up();
            self.all = self.all.plus(child.all);
        }
    }
}
