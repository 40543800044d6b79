//! What the protocol needs of the built-in agent, whatever runs it.

use std::path::Path;

use async_trait::async_trait;
use asyncagents_core::{
    agent::{Call, End, Filed, Usage},
    budget::Price,
    id::{PostId, SessionId},
    port::Session,
};

use super::{AgentError, SessionMode};

/// The built-in agent, in every folder.
#[async_trait]
pub trait BuiltInAgent: Send + Sync {
    /// Whether the client may be asked for permissions. One that is an agent would answer its own
    /// questions.
    fn may_ask(&self) -> bool;

    /// The mode that sessions begin in.
    fn usual_mode(&self) -> SessionMode;

    /// A name for a session that is still to be begun.
    fn new_session(&self) -> SessionId;

    /// The folder without links, if the agent can work there.
    ///
    /// # Errors
    /// When it cannot: no model can be asked, or the settings there are wrong.
    fn check(&self, folder: &Path) -> Result<String, AgentError>;

    /// Begins a session.
    ///
    /// # Errors
    /// When the agent cannot work there.
    async fn begin(&self, place: &Place, title: String) -> Result<(), AgentError>;

    /// A session of a folder, as it is kept.
    ///
    /// # Errors
    /// When there is none of that name.
    async fn session(&self, folder: &str, session: &SessionId) -> Result<Session, AgentError>;

    /// Waits until no other process works in a session. The lease of one that was killed there
    /// expires.
    ///
    /// # Errors
    /// When one goes on working.
    async fn until_free(&self, place: &Place) -> Result<(), AgentError>;

    /// Begins a session with all that another one has so far.
    ///
    /// # Errors
    /// When there is none of that name.
    async fn fork(&self, place: &Place) -> Result<SessionId, AgentError>;

    /// Everything that has happened in a session, be it a person's or a background task's.
    ///
    /// # Errors
    /// When there is none of that name.
    async fn entries(&self, folder: &str, session: &SessionId) -> Result<Vec<Filed>, AgentError>;

    /// Gives a session something to do.
    ///
    /// # Errors
    /// When the agent cannot work there.
    async fn prompt(&self, place: &Place, text: String) -> Result<PromptRun, AgentError>;

    /// How the run of a prompt ended, if it is over.
    ///
    /// # Errors
    /// When the store fails.
    async fn end_of(&self, place: &Place, prompt: &PostId) -> Result<Option<End>, AgentError>;

    /// Stops what a session does.
    ///
    /// # Errors
    /// When the store fails.
    async fn abort(&self, place: &Place) -> Result<(), AgentError>;

    /// A run that is on its way is judged by the place's mode from now on.
    fn mode_changed(&self, place: &Place);

    /// What a session has used, and what fills its model's window.
    ///
    /// # Errors
    /// When the store fails.
    async fn used(&self, place: &Place) -> Result<Used, AgentError>;

    /// Makes sure that somebody works on background tasks.
    async fn ensure_worker(&self);
}

/// A session, where it works, and in which mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub session: SessionId,
    /// Without links.
    pub folder: String,
    pub mode: SessionMode,
}

/// A prompt that was taken, and what happens then.
pub struct PromptRun {
    pub prompt: PostId,
    pub happenings: Box<dyn Happenings>,
}

/// What happens in a session, in order.
#[async_trait]
pub trait Happenings: Send {
    /// The next; nothing when no more can come.
    async fn next(&mut self) -> Option<Happening>;

    /// The next, if it has happened already.
    fn next_now(&mut self) -> Option<Happening>;
}

/// Something that happens while a session works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The model says this.
    Text(String),
    /// The model thinks this.
    Thought(String),
    /// An answer of the model is complete.
    Answered,
    /// An answer broke off and is asked for again, for this reason.
    Retrying(String),
    /// A tool begins.
    CallBegan(Call),
    /// A tool has printed these lines.
    Printed(Vec<String>),
    /// A tool has ended, or was not run at all.
    CallEnded {
        /// The model's name for the call.
        call: String,
        /// The tool.
        name: String,
        failed: bool,
        /// What the model gets.
        result: String,
    },
    /// The run may be over.
    Ended,
}

/// What a session has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Its tokens by kind, without those of its background tasks.
    pub tokens: Usage,
    /// What it and its background tasks cost.
    pub price: Price,
    /// How many tokens the conversation has.
    pub context: u64,
    /// How many it can have.
    pub window: u64,
}
