//! The way to one process of another agent: a session is opened in it, it is prompted, and what
//! happens comes back. Each protocol has an implementation.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{Kind, ToolOutcome, Usage},
    budget::Cost,
    id::{PostId, SessionId},
    make_visible::make_visible,
    question::{Question, Reply},
    shorten::short_line,
};
use thiserror::Error;

use super::EventSender;

/// How long an agent may take to start and open a session.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Starts processes of one agent.
#[async_trait]
pub trait Wire: Send + Sync {
    /// Starts a process and opens a session in it. What happens there is sent to `events`, in
    /// order, until the connection is dropped.
    ///
    /// # Errors
    /// When there is no such session, or the agent does not start.
    async fn start(
        &self,
        open: &OpenSession,
        events: EventSender,
    ) -> Result<Box<dyn Connection>, WireError>;
}

/// A session to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// Our name for it.
    pub ours: SessionId,
    pub which: Which,
    /// The folder it works in.
    pub folder: PathBuf,
    /// With which model, if not the agent's own.
    pub model: Option<String>,
    /// What the agent is told beside its own system prompt.
    pub instructions: Option<String>,
    /// Whether it may only read.
    pub reads_only: bool,
    /// Whether it may have sub-agents of its own, and tools of ours.
    pub may_delegate: bool,
    /// Whether the agent has answered in it before.
    pub has_answered: bool,
    /// A process that worked in it before, and may not any more.
    pub ends: Option<String>,
    /// Posts that may be in its history, which are looked for there.
    pub look_for: Vec<PostId>,
}

/// Which session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    New,
    /// One that was opened before, by the agent's name for it.
    Load(String),
    /// A new one that begins with all that another has.
    Fork(String),
}

/// One process with one session. It ends when this is dropped, with all processes that it has
/// started.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The session that was opened.
    fn session(&self) -> &SessionOpened;

    /// Gives the session something to do, and returns when it has done that. One at a time.
    ///
    /// # Errors
    /// When the agent fails, or is gone.
    async fn prompt(&self, message: &Message) -> Result<TurnEnd, WireError>;

    /// Tells the session something in the middle of its work. False where it cannot be told now.
    ///
    /// # Errors
    /// When the agent is gone.
    async fn steer(&self, message: &Message) -> Result<bool, WireError>;

    /// Stops what it does; the prompt ends then.
    async fn cancel(&self);

    /// What it was told in the middle of its work and has not got: it was cancelled before that. Each is
    /// given once, and not told again by the connection.
    fn take_untold(&self) -> Vec<PostId> {
        Vec::new()
    }

    /// Answers what it has asked. `Always` is `Once` here: agents write what is always allowed into
    /// files of the project or their user, where it would outlive the session and its sandbox. False if the words of a rejection could not be told with it.
    fn reply(&self, question: &str, reply: &Reply) -> bool;

    /// Ends the process in order, if it does that soon.
    async fn close(&self);
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOpened {
    /// The agent's name for it.
    pub id: String,
    /// Which of the posts that were looked for are in its history.
    pub found: BTreeSet<PostId>,
    /// The process that works in it, so that another one of ours can end it first.
    pub process: Option<String>,
    /// Whether the agent can make another one that begins with all of this one.
    pub forks: bool,
}

/// Something that is said to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it consists of, in order.
    pub parts: Vec<MessagePart>,
    /// The newest of the posts in it, where one is: the name of the whole.
    pub id: Option<PostId>,
}

/// A piece of what is said to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePart {
    Text(String),
    /// A conversation to know, not to answer.
    Context(String),
}

impl Message {
    /// All of it as one text.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            MessagePart::Text(text) | MessagePart::Context(text) => text.as_str(),
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// How many tokens it takes, about.
    pub(super) fn about_tokens(&self) -> u64 {
        let lengths = self.parts.iter().map(|part| match part {
            MessagePart::Text(text) | MessagePart::Context(text) => text.len() as u64,
        });
        lengths.sum::<u64>() / 4
    }
}

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    pub stop: TurnStop,
    /// The tokens of all its answers, if the agent says so.
    pub usage: Option<Usage>,
}

/// Why a prompt is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStop {
    /// The agent has done what it wanted to do.
    Finished,
    Cancelled,
    /// It ended before that, for a reason.
    Failed(String),
}

/// What happens in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireEvent {
    /// A piece of what the model says.
    Text(String),
    /// A piece of what it thinks.
    Thought(String),
    Tool(ToolNews),
    /// What the window holds after the newest answer.
    Context(u64),
    /// What the session has cost in this process, as the agent counts.
    CostSum(Cost),
    /// What it has cost since the agent said so last, in this process or an earlier one.
    Spent(Cost),
    /// Which model answers.
    Model(String),
    Asked(Ask),
    /// A question needs no answer any more.
    Withdrawn(String),
    /// A sign of life without news.
    Alive,
    /// It has made a call that it must ask about first, and did not.
    Disobeyed(String),
}

/// How long the name of a tool is, at most.
const LONGEST_NAME: usize = 100;

/// The name of a tool as one short line, whatever the agent, or its model, has made of it.
pub(crate) fn tool_label(name: &str) -> String {
    make_visible(&short_line(name, LONGEST_NAME))
}

/// News of a tool call. What is not said has not changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolNews {
    /// The agent's name for the call.
    pub id: String,
    pub name: Option<String>,
    /// The parameters, as JSON.
    pub input: Option<String>,
    /// What the agent says that it does, as JSON, where it does not tell the parameters.
    pub described: Option<String>,
    /// It is run.
    pub began: bool,
    /// What it has printed since the last news.
    pub printed: Option<String>,
    /// What came of it.
    pub outcome: Option<ToolOutcome>,
}

/// Something that the agent asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Under this name it is answered.
    pub id: String,
    pub what: Asked,
}

/// What an agent asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Whether a call may run.
    Call(AskedCall),
    /// What its user chooses.
    Form(Question),
}

/// A call that wants a permission, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCall {
    /// The agent's name for the tool.
    pub tool: String,
    /// What kind of thing it does, as far as the agent says.
    pub kind: Option<Kind>,
    /// To what: a command or a path.
    pub target: String,
    /// Whether the target is what the tool gets. Else it is words about it, which no rule may take for that.
    pub is_exact: bool,
    /// Further files that it is about.
    pub also: Vec<String>,
    /// Whether it is one of our own tools for tasks.
    pub is_ours: bool,
    /// The rest of what it is to do, for people.
    pub details: String,
}

/// Why an agent did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// It cannot be started here.
    #[error("{0}")]
    NotStarted(String),
    /// It has no such session.
    #[error("its session cannot be loaded: {0}")]
    NoSession(String),
    /// It refuses, or failed.
    #[error("{0}")]
    Failed(String),
    /// Its process has ended.
    #[error("{0}")]
    Gone(String),
    /// It does what it was not allowed to do; its process must end.
    #[error("{0}")]
    Disobeys(String),
}
