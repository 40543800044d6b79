//! The sessions of the built-in agent, in the same journal as the tasks.

use super::Stored;
use crate::{
    agent::{Entry, Filed},
    id::{AgentName, ModelName, PostId, SessionId, TaskId},
    moment::Moment,
    skill::Terms,
    trace::RunSummary,
};

/// A session of the built-in agent. What happened in it are its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    /// The task it was made for; none for a person's.
    pub task: Option<TaskId>,
    /// For people.
    pub title: String,
    pub agent: AgentName,
    pub model: ModelName,
    /// What the model is told first, fixed when the session began: every request begins
    /// with it.
    pub system: String,
    /// Whether the model is offered to launch tasks.
    pub delegates: bool,
    /// The folder it works in.
    pub workspace: String,
    /// The terms on which it runs a skill.
    pub terms: Option<Terms>,
    /// The conversation it begins with, entry by entry.
    pub base: Option<Base>,
    pub begun: Moment,
}

/// A conversation up to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub session: SessionId,
    /// The newest entry that belongs to it.
    pub until: u64,
}

/// The sessions, as one transaction sees them.
pub trait Sessions {
    /// A session that is not deleted.
    fn session(&mut self, id: &SessionId) -> Stored<Option<Session>>;
    /// The session that was made for a task, deleted or not.
    fn session_for(&mut self, task: &TaskId) -> Stored<Option<SessionId>>;
    /// The newest session of a person in a folder.
    fn newest_session(&mut self, workspace: &str) -> Stored<Option<Session>>;
    /// The newest sessions of persons, in one folder or in all, newest first.
    fn newest_sessions(&mut self, workspace: Option<&str>, most: usize) -> Stored<Vec<Session>>;
    /// The sessions whose name begins so, of this agent or those that tasks belong to.
    fn sessions_beginning_with(&mut self, beginning: &str, most: usize) -> Stored<Vec<SessionId>>;
    /// What a session begins with, deleted or not.
    fn base_of(&mut self, id: &SessionId) -> Stored<Option<Base>>;
    /// Begins a session.
    fn begin_session(&mut self, session: &Session) -> Stored<()>;
    /// Marks a session as deleted; what others begin with stays.
    fn delete_session(&mut self, id: &SessionId) -> Stored<()>;
    /// Marks all sessions as deleted.
    fn delete_all_sessions(&mut self) -> Stored<()>;
    /// From now on only this driver writes what the model and its tools do.
    fn drive(&mut self, id: &SessionId, driver: &str) -> Stored<()>;
    /// Who drives a session.
    fn driver(&mut self, id: &SessionId) -> Stored<Option<String>>;
    /// Adds an entry and returns its number. One with a name that is there already is not
    /// added again; its number is returned.
    fn file(&mut self, session: &SessionId, entry: &Entry, at: Moment) -> Stored<u64>;
    /// The entries after one number, up to another.
    fn entries(&mut self, session: &SessionId, after: u64, until: u64) -> Stored<Vec<Filed>>;
    /// The end of a run, if it is over.
    fn end_of(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<Entry>>;
    /// The prompt of a run that is not over.
    fn open_prompt(&mut self, session: &SessionId) -> Stored<Option<PostId>>;
    /// A run summed up, however long it is; nothing if its prompt is not there.
    fn run_summary(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<RunSummary>>;
    /// Whether an entry of this name is there.
    fn posted(&mut self, session: &SessionId, post: &PostId) -> Stored<bool>;
}
