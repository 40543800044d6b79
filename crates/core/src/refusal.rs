//! Why a request is refused. Each says what was wrong, and nothing has changed then. What to type
//! or call instead is added by the door that the request came through.

use thiserror::Error;

use crate::{
    agent::Effort,
    id::{AgentName, ModelName, SessionId, TaskId},
    model_choice::KnownModels,
    task::Status,
    task_limits::LONGEST_PROMPT,
    wording::{brief, counted, listed},
};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error(
        "`fork` and `resume` exclude each other: a resumed task already has a session. \
         Leave out `resume` to fork this conversation, or `fork` to go on with the task"
    )]
    ForkWithResume,
    #[error("the prompt is empty; say what the task has to do")]
    EmptyPrompt,
    /// More than any model can read.
    #[error(
        "the prompt has more than {} MB; put what it is about into files, and name them",
        LONGEST_PROMPT / 1_000_000
    )]
    PromptTooLong,
    #[error("the message is empty; say what the task is to be told")]
    EmptyMessage,
    #[error(
        "the message has more than {} MB; put what it is about into files, and name them",
        LONGEST_PROMPT / 1_000_000
    )]
    MessageTooLong,
    /// There is nobody to read a message.
    #[error("{task} takes no more messages ({status}); resume it to go on with it")]
    TooLateToTell { task: TaskId, status: Status },
    /// The task has come to a limit and is asked for what it has found.
    #[error(
        "{task} sums up what it has found and takes no more messages; resume it when it has ended"
    )]
    SummingUp { task: TaskId },
    #[error("{task} asks nothing that is open; it may have been answered meanwhile")]
    NotAsking { task: TaskId },
    /// No such question is open.
    #[error(
        "{task} has not asked `{}`; open: {}",
        brief(asked),
        listed(open, "and")
    )]
    UnknownQuestion {
        task: TaskId,
        asked: String,
        /// Their codes and what they ask.
        open: Vec<String>,
    },
    /// It is not clear what would be permitted or answered.
    #[error(
        "{task} {}; name the question that is meant: {}",
        if open.len() > 1 {
            "asks several things"
        } else {
            "has only just asked this, or something else before it, which may have been meant"
        },
        listed(open, "and")
    )]
    WhichQuestion {
        task: TaskId,
        /// Their codes and what they ask.
        open: Vec<String>,
    },
    /// One answer is enough, and the first counts.
    #[error("what {task} asks has been answered, and the answer is on its way: {question}")]
    BeingAnswered { task: TaskId, question: String },
    /// The answer does not fit the question.
    #[error("that does not answer what {task} asks ({question}): {why}")]
    Unfit {
        task: TaskId,
        question: String,
        why: String,
    },
    /// A model would permit what only a person may.
    #[error(
        "only a person may grant a permission{}; reject it, or tell the user what is asked: {question}",
        if *always { " for always" } else { "" }
    )]
    OnlyAPersonPermits { always: bool, question: String },
    /// A command that only a person may give was typed by an agent.
    #[error(
        "this is the shell of {agent}, and only a person may grant a permission; ask the user to"
    )]
    InAgentsShell { agent: &'static str },
    /// An agent of which no session is known has typed a command for tasks.
    #[error(
        "this is the shell of {agent}, and which session types here is not known, so no task is \
         its to {what}; use the tools for background tasks, or ask the user to"
    )]
    UnknownAgentsShell {
        agent: &'static str,
        what: &'static str,
    },
    /// A command that only a person may give was given where nobody types.
    #[error(
        "only a person at a terminal may grant a permission, and this command has none; type it \
         into a terminal (over ssh: `ssh -t`), or `reject` what is asked"
    )]
    NotAtTerminal,
    /// The task was not launched by the caller, nor below it.
    #[error("{task} is not below this session, so it is not for you to {what}")]
    NotBelow { task: TaskId, what: &'static str },
    #[error("`{name}` is missing; {hint}")]
    Missing {
        name: &'static str,
        /// What it is for.
        hint: &'static str,
    },
    /// A parameter is out of its range.
    #[error("`{name}`: {} is refused; allowed: {allowed}", brief(value))]
    OutOfRange {
        name: &'static str,
        value: String,
        allowed: &'static str,
    },
    /// No such agent in this host.
    #[error("there is no agent `{}`; {}", brief(agent.as_str()), agents(known))]
    UnknownAgent {
        agent: AgentName,
        known: Vec<AgentName>,
    },
    /// No such model in this host.
    #[error(
        "there is no model `{}` here{}{}",
        brief(model.as_str()),
        because(why.as_deref()),
        there_are(known)
    )]
    UnknownModel {
        model: ModelName,
        /// What the host says about it.
        why: Option<String>,
        known: KnownModels,
    },
    /// The user does not allow it.
    #[error(
        "the model `{}`{} is not among those that the setting `models.allowed` allows: {}. \
         Only the user's own settings can change that",
        brief(model.as_str()),
        agents_own(agent.as_ref()),
        listed(allowed, "and")
    )]
    ModelNotAllowed {
        model: ModelName,
        /// The agent whose own it is, if nobody has asked for it.
        agent: Option<AgentName>,
        /// As patterns.
        allowed: Vec<String>,
    },
    /// The model has no such effort.
    #[error("the model `{model}` has no effort `{effort}`; {}", efforts(known))]
    UnknownEffort {
        model: ModelName,
        effort: Effort,
        known: Vec<Effort>,
    },
    /// The host does not say what models have.
    #[error(
        "`effort` is refused: {why}. Leave it out, or say with `model` which model is to have it"
    )]
    EffortNotKnown {
        /// What keeps the host from it.
        why: &'static str,
    },
    #[error(
        "a task at depth {depth} is refused: the limit is {limit}. Do this part of the work \
         yourself"
    )]
    TooDeep { depth: u32, limit: u32 },
    /// Too many tasks in this tree.
    #[error(
        "{} launched below this session already, which is the limit; do the rest \
         yourself, or raise `limits.spawns`",
        counted(limit, "task was", "tasks were")
    )]
    TooMany { limit: u64 },
    /// The task that the caller works for has been stopped.
    #[error("the task you work for has been stopped ({status}); launch nothing more")]
    CallerStopped { status: Status },
    /// A skill would do through another task what it may not do itself.
    #[error(
        "{task} was not launched by the skill `{skill}` and has other tools, so it is not for you \
         to go on with; launch a task of your own"
    )]
    NotBoundBySkill { task: TaskId, skill: String },
    /// The skill `by` does not list `skill` among the skills it may use.
    #[error("the skill `{by}` may not use the skill `{skill}`")]
    SkillNotAllowed { by: String, skill: String },
    /// Nothing left to run with.
    #[error("no {what} left in {whose} budget; grant it some, or do the work yourself")]
    NoBudget {
        what: &'static str,
        whose: &'static str,
    },
    #[error("there is no task `{}`", brief(asked))]
    UnknownTask { asked: String },
    #[error("there is no run `{}`", brief(asked))]
    UnknownChain { asked: String },
    /// More than one ID begins so.
    #[error(
        "`{asked}` is the beginning of {}; give more of the ID",
        listed(matches, "and")
    )]
    Ambiguous { asked: String, matches: Vec<String> },
    #[error("{task} is still {status}; wait until it has finished, or cancel it")]
    StillRunning { task: TaskId, status: Status },
    #[error("{task} has ended already ({status}); there is nothing to cancel")]
    AlreadyEnded { task: TaskId, status: Status },
    #[error("{task} ended before it had a session to go on with")]
    NeverBegan { task: TaskId },
    #[error(
        "the conversation of {task} has no message `{}`; leave it out to see all of it",
        brief(message)
    )]
    UnknownMessage { task: TaskId, message: String },
    /// The host has no such session any more.
    #[error("the session of {task} ({session}) no longer exists")]
    SessionGone { task: TaskId, session: SessionId },
}

/// What a refusal means for the caller. Each door has one table from these to its own codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request makes no sense, whatever the state of things: change it.
    BadRequest,
    /// There is nothing of the name that was given.
    NotFound,
    /// This caller may not do it.
    Forbidden,
    /// A limit or a budget is used up.
    Limit,
    /// The request makes sense, but not in the state that the task is in.
    Conflict,
}

impl Refusal {
    /// What it means for the caller.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Refusal::ForkWithResume
            | Refusal::EmptyPrompt
            | Refusal::PromptTooLong
            | Refusal::EmptyMessage
            | Refusal::MessageTooLong
            | Refusal::Unfit { .. }
            | Refusal::Missing { .. }
            | Refusal::OutOfRange { .. }
            | Refusal::UnknownAgent { .. }
            | Refusal::UnknownModel { .. }
            | Refusal::UnknownEffort { .. }
            | Refusal::EffortNotKnown { .. }
            | Refusal::Ambiguous { .. } => RefusalKind::BadRequest,
            Refusal::UnknownTask { .. }
            | Refusal::UnknownChain { .. }
            | Refusal::UnknownQuestion { .. }
            | Refusal::UnknownMessage { .. } => RefusalKind::NotFound,
            Refusal::NotBoundBySkill { .. }
            | Refusal::SkillNotAllowed { .. }
            | Refusal::ModelNotAllowed { .. }
            | Refusal::OnlyAPersonPermits { .. }
            | Refusal::InAgentsShell { .. }
            | Refusal::UnknownAgentsShell { .. }
            | Refusal::NotAtTerminal
            | Refusal::NotBelow { .. } => RefusalKind::Forbidden,
            Refusal::TooDeep { .. } | Refusal::TooMany { .. } | Refusal::NoBudget { .. } => {
                RefusalKind::Limit
            }
            Refusal::CallerStopped { .. }
            | Refusal::StillRunning { .. }
            | Refusal::TooLateToTell { .. }
            | Refusal::SummingUp { .. }
            | Refusal::NotAsking { .. }
            | Refusal::WhichQuestion { .. }
            | Refusal::BeingAnswered { .. }
            | Refusal::AlreadyEnded { .. }
            | Refusal::NeverBegan { .. }
            | Refusal::SessionGone { .. } => RefusalKind::Conflict,
        }
    }
}

fn because(why: Option<&str>) -> String {
    why.map_or(String::new(), |why| format!(": {why}"))
}

fn agents(known: &[AgentName]) -> String {
    match known {
        [] => "there is none here".to_owned(),
        known => {
            let names = known.iter().map(AgentName::as_str);
            format!("there are {}", listed(names, "and"))
        }
    }
}

fn there_are(known: &KnownModels) -> String {
    let names = known.nearest.iter().map(ModelName::as_str);
    match known.more {
        _ if known.nearest.is_empty() => String::new(),
        0 => format!("; there are {}", listed(names, "and")),
        more => {
            let names: Vec<&str> = names.collect();
            format!("; there are {} and {more} more", names.join(", "))
        }
    }
}

fn agents_own(agent: Option<&AgentName>) -> String {
    agent.map_or(String::new(), |agent| format!(" of the agent `{agent}`"))
}

fn efforts(known: &[Effort]) -> String {
    match known {
        [] => "it has none to choose from, so leave `effort` out".to_owned(),
        [one] => format!("it has {one}"),
        known => format!(
            "it has {}",
            listed(known.iter().map(|effort| effort.word()), "and")
        ),
    }
}
