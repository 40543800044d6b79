//! Sessions in the store, and a driver for each that has something to do.

use std::{path::PathBuf, sync::Arc};

use asyncagents_core::{
    agent::{End, Entry, Filed, Mode, Usage},
    id::{AgentName, PostId, SessionId, TaskId},
    lock::lock,
    model_choice::ModelPolicy,
    port::{Base, HostError, Session, is_driven_elsewhere},
    progress::Totals,
};
use asyncagents_models::ModelError;
use asyncagents_tools::Sandbox;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::{
    LiveEvents, Parts,
    choose_model::{choose_model, next_model, refused},
    drive::{SessionGuard, drive},
    live,
    shared::Shared,
    system_prompt,
};

/// The built-in agent as a host. Clones are the same host.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// A session of a person, to be begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    pub title: String,
    pub agent: AgentName,
    /// If not the agent's own.
    pub model: Option<String>,
}

impl Engine {
    /// The host of a workspace.
    pub fn new(parts: Parts) -> Self {
        let shared = Arc::new(Shared::new(parts));
        Self { shared }
    }

    /// A name for a session of a person that is still to be begun.
    pub fn new_session_id() -> SessionId {
        SessionId::from(format!("{}{}", SessionId::KIND, Uuid::new_v4().simple()))
    }

    /// Begins a session of a person.
    ///
    /// # Errors
    /// When there is no such agent or model, or the store fails.
    pub async fn begin(&self, begin: Begin) -> Result<SessionId, HostError> {
        self.begin_as(Self::new_session_id(), begin).await
    }

    /// The same under a name that was given out before.
    ///
    /// # Errors
    /// When there is no such agent or model, or the store fails.
    pub async fn begin_as(&self, id: SessionId, begin: Begin) -> Result<SessionId, HostError> {
        let profiles = self.shared.profiles();
        let profile = profiles.known(&begin.agent)?;
        let model = choose_model(&self.shared, begin.model.as_deref(), profile, None)?;
        let session = Session {
            id,
            task: None,
            title: begin.title,
            agent: begin.agent.clone(),
            model: model.name().clone(),
            system: system_prompt::write(&self.shared, &profiles, profile, true),
            delegates: true,
            workspace: self.shared.workspace(),
            terms: None,
            base: None,
            begun: self.shared.now(),
        };
        self.shared.make(session, None).await
    }

    /// Begins a session of a person with all that another one has so far. What that one does later
    /// does not matter to it.
    ///
    /// # Errors
    /// When there is no such session, it is a background task's, or the store fails.
    pub async fn fork(&self, session: &SessionId) -> Result<SessionId, HostError> {
        let parent = self.shared.existing(session).await?;
        if parent.session.task.is_some() {
            let why = format!("{session} is the session of a background task");
            return Err(HostError::Refused(why));
        }
        let conversation = parent.conversation();
        let own = &parent.session;
        let fork = Session {
            id: Self::new_session_id(),
            model: conversation.model().unwrap_or(&own.model).clone(),
            base: Some(Base {
                session: own.id.clone(),
                until: conversation.newest(),
            }),
            begun: self.shared.now(),
            ..own.clone()
        };
        self.shared.make(fork, None).await
    }

    /// Everything that has happened in a session, also before it was forked from another.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn entries(&self, session: &SessionId) -> Result<Vec<Filed>, HostError> {
        Ok(self.shared.existing(session).await?.entries())
    }

    /// How many tokens a session's conversation has, and how many its model can have.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn window(&self, session: &SessionId) -> Result<(u64, u64), HostError> {
        let whole = self.shared.existing(session).await?;
        let weighed = spawn_blocking(move || {
            let conversation = whole.conversation();
            let model = conversation.model().unwrap_or(&whole.session.model);
            (conversation.weight(), model.clone())
        });
        let failed = |error: tokio::task::JoinError| HostError::Unreachable(error.to_string());
        let (weight, model) = weighed.await.map_err(failed)?;
        let model = self.shared.models.resolve(model.as_str());
        Ok((weight, model.map_err(refused)?.window()))
    }

    /// Judges the calls of a session by another mode from now on, also those of a run that is on its
    /// way. What it launches is launched with the engine's own.
    pub fn set_mode(&self, session: &SessionId, mode: Mode) {
        lock(&self.shared.modes).insert(session.clone(), mode);
    }

    /// The newest session of a person in this workspace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn newest(&self) -> Result<Option<SessionId>, HostError> {
        let workspace = self.shared.workspace();
        let newest = self.shared.read(move |journal| {
            let newest = journal.newest_session(&workspace)?;
            Ok(newest.map(|session| session.id))
        });
        Ok(newest.await?)
    }

    /// Goes on with a run that is not over. Returns the prompt that began it.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn go_on(&self, session: &SessionId) -> Result<Option<PostId>, HostError> {
        let id = self.session(session).await?.id;
        let read = self
            .shared
            .read(move |journal| Ok(journal.open_prompt(&id)?));
        let prompt = read.await?;
        if prompt.is_some() {
            self.attend(session);
        }
        Ok(prompt)
    }

    /// A session as the journal has it.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn session(&self, session: &SessionId) -> Result<Session, HostError> {
        let found = self.shared.session(session).await?;
        found.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// Whether another process that is alive, or was a moment ago, works in a session.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_busy(&self, session: &SessionId) -> Result<bool, HostError> {
        let (id, mine) = (session.clone(), (self.shared.owner)());
        let busy = self
            .shared
            .read(move |journal| Ok(is_driven_elsewhere(journal, &id, mine.as_ref())?));
        Ok(busy.await?)
    }

    /// How the run of a prompt ended and its last answer, if it is over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn end_of(
        &self,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Option<(End, Option<String>)>, HostError> {
        let (id, prompt) = (session.clone(), prompt.clone());
        let ended = self.shared.read(move |journal| {
            Ok(match journal.end_of(&id, &prompt)? {
                Some(Entry::Ended { end, answer, .. }) => Some((end, answer)),
                _ => None,
            })
        });
        Ok(ended.await?)
    }

    /// What a session has used, and its tokens by kind.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn used(&self, session: &SessionId) -> Result<(Totals, Usage), HostError> {
        let whole = self.shared.existing(session).await?;
        // A long session takes a while to go through.
        let counted = spawn_blocking(move || {
            let conversation = whole.conversation();
            (conversation.totals().clone(), conversation.usage())
        });
        let failed = |error: tokio::task::JoinError| HostError::Unreachable(error.to_string());
        counted.await.map_err(failed)
    }

    /// How commands are run, for people.
    pub fn sandbox(&self) -> String {
        match self.shared.toolbox.sandbox() {
            Sandbox::Enforced { .. } => "commands run in a sandbox".to_owned(),
            Sandbox::Missing { why } => format!("commands run WITHOUT a sandbox: {why}"),
            Sandbox::Off => "commands run without a sandbox: it is switched off".to_owned(),
        }
    }

    /// What a user should know about the project: files that are not read.
    pub fn remarks(&self) -> Vec<String> {
        let foreign = system_prompt::foreign_instructions(&self.shared.settings.workspace);
        let remark = |file: PathBuf| {
            let file = file.display();
            format!("{file} is not read: it belongs to another user")
        };
        foreign.map(remark).collect()
    }

    /// What happens in a session from now on, for its watcher.
    pub fn watch(&self, session: &SessionId) -> LiveEvents {
        let (sender, events) = live::channel();
        lock(&self.shared.watched).insert(session.clone(), sender);
        events
    }

    /// What happens in the session of a task, from its beginning if it has not begun yet.
    pub fn watch_task(&self, task: &TaskId) -> LiveEvents {
        let (sender, events) = live::channel();
        lock(&self.shared.watched_tasks).insert(task.clone(), sender);
        events
    }

    /// What the user says about models.
    pub fn model_policy(&self) -> &ModelPolicy {
        &self.shared.settings.model_policy
    }

    /// Says what is wrong with the model that an agent would use, before anything is begun.
    ///
    /// # Errors
    /// When there is no such agent or model, or no key for it.
    pub fn check(&self, agent: &AgentName, model: Option<&str>) -> Result<(), HostError> {
        let profiles = self.shared.profiles();
        let model = choose_model(&self.shared, model, profiles.known(agent)?, None)?;
        let checked = self.shared.models.check(model.name().as_str());
        let replaced = || next_model(&self.shared, &[model.name()], None).is_ok();
        match checked {
            Err(error) if !(error.is_unavailable() && replaced()) => Err(refused(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The key that the model of a new session would need and that this process does not have, in words.
    pub fn lacks_key(&self, agent: &AgentName, model: Option<&str>) -> Option<String> {
        let profiles = self.shared.profiles();
        let profile = profiles.known(agent).ok()?;
        let models = &self.shared.models;
        let named = match choose_model(&self.shared, model, profile, None) {
            Ok(model) => Ok(model.name().to_string()),
            Err(_) => models.default_model(),
        };
        let checked = named.and_then(|name| models.check(&name));
        let missing = checked.err().filter(ModelError::is_missing_key)?;
        let replaced = next_model(&self.shared, &[], None).is_ok();
        (!replaced).then(|| missing.to_string())
    }

    /// Stops in good order: a running step may finish, and the next driver of the sessions, in
    /// whatever process, goes on from there.
    pub async fn stop(&self) {
        let timeout = self.shared.settings.shutdown_timeout;
        self.shared.drivers.close(timeout).await;
        self.shared.toolbox.close();
    }

    /// Stops at once, as if the process had died.
    pub fn kill(&self) {
        self.shared.drivers.kill();
    }

    /// Makes sure that a session is driven.
    pub(crate) fn attend(&self, session: &SessionId) {
        // The guard releases the session also if the driver is aborted before it has begun.
        let drive = |handle| {
            drive(SessionGuard {
                shared: self.shared.clone(),
                id: session.clone(),
                handle,
            })
        };
        self.shared.drivers.attend(session, drive);
    }
}
