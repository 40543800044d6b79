//! A host: where sessions live and agents work.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use thiserror::Error;

use crate::{
    agent::{Effort, Tools},
    budget::Spent,
    fork::{Parent, Plan},
    id::{AgentName, ModelName, PostId, SessionId, TaskId},
    lifecycle::Standing,
    model_choice::HostModel,
    notify::Message,
    progress::{Observation, Totals},
    question::{Answered, Question, Reply},
    skill::Role,
    transcript::Transcript,
};

/// Where sessions live and agents work.
///
/// Everything that is put into a session carries a [`PostId`]. A host that is given the
/// same one twice keeps it once, if it can; the callers ask before they repeat themselves.
#[async_trait]
pub trait Host: Send + Sync {
    /// The agents a task may be given to.
    async fn agents(&self) -> Result<Vec<AgentName>, HostError>;

    /// The models that a task may be given, but for those that it has and does not list. Nothing
    /// where a host cannot say.
    async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        Ok(None)
    }

    /// The model that a task would have. Nothing if there is none of the name that is asked for,
    /// or if the host cannot say. [`HostError::Refused`] says what is wrong with it.
    async fn model_of(&self, wanted: &WantedModel) -> Result<Option<HostModel>, HostError> {
        let models = self.models().await?.unwrap_or_default();
        let mut models = models.into_iter();
        Ok(models.find(|model| Some(&model.name) == wanted.asked.as_ref()))
    }

    /// Makes a session for a task, or finds the one that was made for it before, unless this is the
    /// first attempt.
    async fn create(&self, session: NewSession) -> Result<SessionId, HostError>;

    /// Puts inherited context into a session, without an answer.
    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError>;

    /// Sets the session to work; returns as soon as the host has the prompt.
    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError>;

    /// Stops what the session is doing: its prompt is done then, and cancelled. A session that
    /// does nothing, or is gone, is stopped.
    async fn abort(&self, session: &SessionId) -> Result<(), HostError>;

    /// Makes a session that begins with its parent's own messages, or finds the one that was
    /// made for the task before. Nothing where a host cannot do that: the conversation is
    /// passed on as text then.
    async fn branch(
        &self,
        session: NewSession,
        plan: &Plan,
    ) -> Result<Option<SessionId>, HostError> {
        let _ = (session, plan);
        Ok(None)
    }

    /// The end of a session's conversation, as far back as a fork needs it.
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        let _ = plan;
        Ok(Recent {
            transcript: self.messages(session).await?,
            unread: false,
        })
    }

    /// Whether a notice sets an idle session to work again. A child that is done while tasks
    /// of its own are not is then waiting for them.
    fn notices_wake(&self) -> bool {
        false
    }

    /// Whether it ends a skill itself that has had its iterations.
    fn counts_iterations(&self) -> bool {
        false
    }

    /// Whether it gives a task its last turn itself, before the budget is used up.
    fn sums_up(&self) -> bool {
        false
    }

    /// Whether it may say only when a session has stopped what that has used.
    fn counts_at_the_end(&self) -> bool {
        false
    }

    /// Asks a model one thing, without tools, in a session of its own that is removed afterwards.
    /// Nothing where a host cannot do that, or the time was not enough.
    async fn ask_once(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        let _ = (session, question);
        Ok(None)
    }

    /// The session's conversation so far.
    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError>;

    /// Whether there is such a session.
    async fn exists(&self, session: &SessionId) -> Result<bool, HostError>;

    /// What became of a prompt.
    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError>;

    /// Tells a session something.
    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError>;

    /// Whether a notice is in the session's history.
    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError>;

    /// Whether a notice that is not in the history waits in the host, and will be.
    async fn is_on_its_way(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let _ = (session, notice);
        Ok(false)
    }

    /// Answers what a session has asked its user, by the host's name for the question. A question
    /// that was answered before is not answered again.
    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        let _ = (session, question, reply);
        Err(HostError::Refused(
            "its questions can only be answered in its own window".to_owned(),
        ))
    }

    /// Everything that happens in the host from now on.
    fn subscribe(&self) -> Box<dyn HostEvents>;

    /// Deletes a session. One that is gone already is deleted.
    async fn delete(&self, session: &SessionId) -> Result<(), HostError>;
}

/// What happens in a host, in order. It may lose reports and repeat them.
#[async_trait]
pub trait HostEvents: Send {
    /// The next report; `None` when the host is gone for good.
    async fn next(&mut self) -> Option<Report>;
}

/// What decides which model a task has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedModel {
    /// The one that is asked for, if one is.
    pub asked: Option<ModelName>,
    pub agent: AgentName,
    /// The session that launches the task.
    pub parent: SessionId,
}

/// The end of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub transcript: Transcript<'static>,
    /// Whether there are older messages, which were not read.
    pub unread: bool,
}

impl Recent {
    /// What a child inherits from.
    pub fn into_parent(self) -> Parent<'static> {
        if self.unread {
            Parent::end_of(self.transcript)
        } else {
            Parent::new(self.transcript)
        }
    }
}

/// A session to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The task it is for.
    pub task: TaskId,
    /// The session that launched the task.
    pub parent: SessionId,
    /// For people.
    pub title: String,
    pub agent: AgentName,
    /// With which model, if not the agent's own.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if the launcher says so.
    pub effort: Option<Effort>,
    /// Whether tasks may be launched from it. At the depth limit they may not.
    pub may_delegate: bool,
    /// The skill that it runs, on whose terms it works.
    pub role: Option<Role>,
    /// The tools of the skills above it, each of which binds it.
    pub within: Vec<Tools>,
    /// Whether no attempt was made before this one: there is nothing to be found then.
    pub first_attempt: bool,
}

/// What a forked child inherits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inheritance {
    /// Its name in the session.
    pub id: PostId,
    /// What the child must know about the context.
    pub preamble: String,
    pub context: String,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its name in the session.
    pub id: PostId,
    pub text: String,
    pub agent: AgentName,
    /// With which model, if not the agent's own.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if the launcher says so.
    pub effort: Option<Effort>,
    /// The skill that the session runs, for hosts that have to be told with every prompt.
    pub role: Option<Role>,
}

/// One thing to ask, by the agent and the model of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneQuestion {
    pub id: PostId,
    pub text: String,
    pub agent: AgentName,
    /// Which model, if not the session's.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if the launcher of the task says so.
    pub effort: Option<Effort>,
    /// The skill that the session runs, which may want a model of its own.
    pub role: Option<Role>,
    /// How long the answer may take.
    pub within: Duration,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneAnswer {
    pub text: String,
    pub spent: Spent,
}

/// What a parent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its name in the session.
    pub id: PostId,
    pub message: Message,
}

/// What came of telling a session something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The host took it. Whether it is in the history is for [`Host::confirm`] to say.
    Taken,
    /// Not now; the session cannot take it.
    NotNow,
    /// Nothing can be sent to it now: it is told when it asks.
    Held,
    /// There is no such session any more.
    Gone,
}

/// What a host says when it is asked about a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    pub standing: Standing,
    /// What the session has used in all.
    pub totals: Option<Totals>,
    /// What it has asked its user and waits for, by the host's names for the questions, if
    /// the host was asked for that too.
    pub asking: Option<BTreeMap<String, Question>>,
}

/// Something that happened in a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    Session(SessionId, SessionEvent),
    /// Reports may have been lost here.
    Missed,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// Progress. `key` names what was observed, so that a repetition is recognised.
    Observed {
        /// The host's name for it.
        key: String,
        what: Observation,
    },
    /// A sign of life without progress worth keeping.
    Alive,
    /// It works no more. Why is for [`Host::inspect`] to say.
    Idle,
    Deleted,
}

/// Why a host did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostError {
    /// It cannot be reached now, or is overloaded.
    #[error("the host cannot be reached: {0}")]
    Unreachable(String),
    /// It refuses, and will refuse again.
    #[error("the host refuses: {0}")]
    Refused(String),
    /// It has no such session.
    #[error("the host has no session {0}")]
    NoSession(SessionId),
}
