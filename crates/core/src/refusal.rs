//! Why a request is refused. Each says what was wrong and what to do next; nothing has
//! changed then.

use thiserror::Error;

use crate::{
    id::{AgentName, SessionId, TaskId},
    task::Status,
    task_limits::LONGEST_PROMPT,
    wording::{counted, listed},
};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Both at once.
    #[error(
        "`fork` and `resume` exclude each other: a resumed task already has a session. \
         Leave out `resume` to fork this conversation, or `fork` to go on with the task"
    )]
    ForkWithResume,
    /// Nothing to do.
    #[error("the prompt is empty; say what the task has to do")]
    EmptyPrompt,
    /// More than any model can read.
    #[error(
        "the prompt has more than {} MB; put what it is about into files, and name them",
        LONGEST_PROMPT / 1_000_000
    )]
    PromptTooLong,
    /// A parameter is missing.
    #[error("`{name}` is missing; {hint}")]
    Missing {
        /// The parameter.
        name: &'static str,
        /// What it is for.
        hint: &'static str,
    },
    /// A parameter is out of its range.
    #[error("`{name}`: {value} is refused; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was asked for.
        value: String,
        /// What would have been accepted.
        allowed: &'static str,
    },
    /// No such agent in this host.
    #[error("there is no agent `{agent}`; there are {}", listed(known.iter().map(AgentName::as_str), "and"))]
    UnknownAgent {
        /// What was asked for.
        agent: AgentName,
        /// What there is.
        known: Vec<AgentName>,
    },
    /// Too far down.
    #[error(
        "a task at depth {depth} is refused: the limit is {limit}. Do this part of the work \
         yourself"
    )]
    TooDeep {
        /// How deep it would have been.
        depth: u32,
        /// How deep it may be.
        limit: u32,
    },
    /// Too many in this tree.
    #[error(
        "{} launched below this session already, which is the limit; do the rest \
         yourself, or raise `limits.spawns`",
        counted(usize::try_from(*limit).unwrap_or(usize::MAX), "task was", "tasks were")
    )]
    TooMany {
        /// How many there may be.
        limit: u64,
    },
    /// What the caller works for has been stopped.
    #[error("the task you work for has been stopped ({status}); launch nothing more")]
    CallerStopped {
        /// How it ended.
        status: Status,
    },
    /// A skill would do through another task what it may not do itself.
    #[error(
        "{task} was not launched by the skill `{skill}` and has other tools, so it is not for you \
         to go on with; launch a task of your own"
    )]
    NotBoundBySkill {
        /// The task.
        task: TaskId,
        /// The skill.
        skill: String,
    },
    /// A skill is not among those that another may use.
    #[error("the skill `{by}` may not use the skill `{skill}`")]
    SkillNotAllowed {
        /// The skill that asks.
        by: String,
        /// What it asked for.
        skill: String,
    },
    /// Nothing left to run with.
    #[error(
        "a task without {what} could not run: {whose} budget leaves 0. Grant it some, or do the \
         work yourself"
    )]
    NoBudget {
        /// What there is none of.
        what: &'static str,
        /// Whose budget.
        whose: &'static str,
    },
    /// Nothing matches.
    #[error("there is no task `{asked}`; list the tasks to see which there are")]
    UnknownTask {
        /// What was asked for.
        asked: String,
    },
    /// Nothing matches.
    #[error("there is no run `{asked}`; `asyncagents trace` shows the newest")]
    UnknownChain {
        /// What was asked for.
        asked: String,
    },
    /// More than one matches.
    #[error(
        "`{asked}` is the beginning of {}; give more of the ID",
        listed(matches, "and")
    )]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// What it may stand for.
        matches: Vec<String>,
    },
    /// Not finished yet.
    #[error("{task} is still {status}; wait until it has finished, or cancel it")]
    StillRunning {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: Status,
    },
    /// Finished already.
    #[error("{task} has ended already ({status}); there is nothing to cancel")]
    AlreadyEnded {
        /// The task.
        task: TaskId,
        /// How it ended.
        status: Status,
    },
    /// Ended before it had a session.
    #[error("{task} ended before it had a session to go on with; start a new asyncagents_task")]
    NeverBegan {
        /// The task.
        task: TaskId,
    },
    /// No such message.
    #[error("the conversation of {task} has no message `{message}`; leave it out to see all of it")]
    UnknownMessage {
        /// The task.
        task: TaskId,
        /// What was asked for.
        message: String,
    },
    /// The host has no such session any more.
    #[error(
        "the session of {task} ({session}) no longer exists; start a new asyncagents_task instead"
    )]
    SessionGone {
        /// The task.
        task: TaskId,
        /// Its session.
        session: SessionId,
    },
}
