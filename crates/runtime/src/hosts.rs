//! The hosts a process has, and who listens to which session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::agent_meant,
    fork::{Limits, Mode},
    host_ref::{HostRef, HostSetup},
    id::{AgentName, SessionId},
    lock::lock,
    model_choice::{HostModel, ModelPolicy},
    port::{Host, HostError, SessionEvent, WantedModel},
    task::Task,
    task_limits::TaskLimits,
};
use tokio::{sync::mpsc, time};

/// Where hosts come from.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Whether tasks of this host can be run by this process.
    fn serves(&self, host: &HostRef) -> bool;

    /// The host that a caller in another one names, for a task of its own.
    ///
    /// # Errors
    /// When there is none of the name, with those that there are, or it cannot be used here.
    async fn named(&self, name: &str, caller: &HostSetup) -> Result<HostSetup, HostError> {
        let _ = caller;
        let why = format!("there is no host `{name}` here; leave `host` out");
        Err(HostError::Refused(why))
    }

    /// Whether this process looks after the tasks that are launched here. Otherwise they wait for a
    /// worker.
    fn keeps_launched(&self) -> bool {
        true
    }

    /// What this process lacks to run a task that another one may have, such as a key.
    fn lacks(&self, task: &Task) -> Option<String> {
        let _ = task;
        None
    }

    /// The host that has the sessions of this one now, if this one has ended and another is
    /// served here in its place.
    fn successor(&self, host: &HostRef) -> Option<HostRef> {
        let _ = host;
        None
    }

    /// The limits of this host's tasks, given those of the process: the folder that a host works
    /// in may have lower ones.
    fn limits(&self, host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        let _ = host;
        limits.clone()
    }

    /// What forked children inherit in this host, given what is said for the process: the folder
    /// that a host works in may say otherwise.
    fn fork(&self, host: &HostRef, usual: ForkSettings) -> ForkSettings {
        let _ = host;
        usual
    }

    /// What the user says about the models of a host's tasks, given what is said for the process:
    /// a launch may have settings of its own.
    fn model_policy(&self, setup: &HostSetup, usual: &ModelPolicy) -> ModelPolicy {
        let _ = setup;
        usual.clone()
    }

    /// Whether what a task asks is rejected, because its launch says that nobody will answer.
    /// Nothing if the launch does not say, or the host sees to it.
    fn rejects_questions(&self, setup: &HostSetup) -> Option<bool> {
        let _ = setup;
        None
    }

    /// Opens a host. It is asked once for each setup, unless it fails.
    ///
    /// # Errors
    /// When there is no such host.
    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError>;
}

/// What a forked child inherits, and in what form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkSettings {
    pub limits: Limits,
    pub mode: Mode,
}

/// How long a host may take to answer, once a task is under way.
const HOST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a caller waits for a host: nearly all of the work comes later.
pub(crate) const CALLER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the list of a host's models is taken to be right.
const MODELS_VALID: Duration = Duration::from_secs(60);

/// What the runner of a task is told of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunReport {
    /// Something happened in its session.
    Event(SessionEvent),
    /// Reports may have been lost.
    Missed,
}

/// The hosts that are open.
pub(crate) struct OpenHosts {
    pub(crate) source: Arc<dyn Hosts>,
    open: Mutex<HashMap<HostSetup, Arc<OpenHost>>>,
}

/// A host, what is known of it, and who listens.
pub(crate) struct OpenHost {
    pub(crate) host: Arc<dyn Host>,
    agents: Mutex<Vec<AgentName>>,
    models: Mutex<Option<(time::Instant, Vec<HostModel>)>>,
    listeners: Mutex<HashMap<SessionId, mpsc::UnboundedSender<RunReport>>>,
}

impl OpenHosts {
    pub(crate) fn new(source: Arc<dyn Hosts>) -> Self {
        Self {
            source,
            open: Mutex::default(),
        }
    }

    /// The host, opened if it was not.
    pub(crate) fn get(&self, setup: &HostSetup) -> Result<Arc<OpenHost>, HostError> {
        let mut open = lock(&self.open);
        if let Some(host) = open.get(setup) {
            return Ok(host.clone());
        }
        let host = Arc::new(OpenHost {
            host: self.source.open(setup)?,
            agents: Mutex::default(),
            models: Mutex::default(),
            listeners: Mutex::default(),
        });
        open.insert(setup.clone(), host.clone());
        Ok(host)
    }
}

impl OpenHost {
    /// Asks the host something for a task that is under way.
    pub(crate) async fn ask<'h, T, F>(
        &'h self,
        call: impl FnOnce(&'h dyn Host) -> F,
    ) -> Result<T, HostError>
    where
        F: Future<Output = Result<T, HostError>>,
    {
        self.ask_within(HOST_TIMEOUT, call).await
    }

    /// Asks the host something. One that does not answer in time cannot be reached.
    pub(crate) async fn ask_within<'h, T, F>(
        &'h self,
        timeout: Duration,
        call: impl FnOnce(&'h dyn Host) -> F,
    ) -> Result<T, HostError>
    where
        F: Future<Output = Result<T, HostError>>,
    {
        let answer = time::timeout(timeout, call(&*self.host)).await;
        answer.unwrap_or_else(|_| {
            let seconds = timeout.as_secs();
            let why = format!("no answer for {seconds} seconds");
            Err(HostError::Unreachable(why))
        })
    }

    /// The agent that is meant by a name; if there is none, which there are. The host is asked
    /// only about agents it has not named before.
    pub(crate) async fn agent_named(
        &self,
        asked: &AgentName,
    ) -> Result<Result<AgentName, Vec<AgentName>>, HostError> {
        let named = |known: &[AgentName]| {
            let known = known.iter().map(AgentName::as_str);
            agent_meant(asked.as_str(), known).map(AgentName::from)
        };
        // One that the host has by this very name may be new, and comes before others' names for
        // those it had.
        let had = lock(&self.agents).clone();
        let same =
            |agent: &AgentName| agent.as_str().to_lowercase() == asked.as_str().to_lowercase();
        if let Some(agent) = named(&had).filter(same) {
            return Ok(Ok(agent));
        }
        let known = self
            .ask_within(CALLER_TIMEOUT, |host| host.agents())
            .await?;
        lock(&self.agents).clone_from(&known);
        Ok(named(&known).ok_or(known))
    }

    /// The models that the host lists, as it did a moment ago or does now. Nothing if it cannot say.
    pub(crate) async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        let valid = |at: &time::Instant| at.elapsed() < MODELS_VALID;
        let had = lock(&self.models).clone();
        if let Some((_, models)) = had.filter(|(at, _)| valid(at)) {
            return Ok(Some(models));
        }
        let models = self.ask_within(CALLER_TIMEOUT, |host| host.models());
        let models = models.await?;
        *lock(&self.models) = models.clone().map(|models| (time::Instant::now(), models));
        Ok(models)
    }

    /// The model that a task would have, if the host says so. One that it has listed is not asked
    /// for again.
    pub(crate) async fn model_of(
        &self,
        wanted: &WantedModel,
    ) -> Result<Option<HostModel>, HostError> {
        let listed = self.models().await?.unwrap_or_default();
        let same = |model: &HostModel| Some(&model.name) == wanted.asked.as_ref();
        if let Some(model) = listed.into_iter().find(same) {
            return Ok(Some(model));
        }
        let asked = self.ask_within(CALLER_TIMEOUT, |host| host.model_of(wanted));
        asked.await
    }

    /// Hears what happens in a session from now on.
    pub(crate) fn listen(&self, session: &SessionId) -> mpsc::UnboundedReceiver<RunReport> {
        let (sender, receiver) = mpsc::unbounded_channel();
        lock(&self.listeners).insert(session.clone(), sender);
        receiver
    }

    /// Passes on what happened in a session; false if it has no listener.
    pub(crate) fn tell(&self, session: &SessionId, event: SessionEvent) -> bool {
        let mut listeners = lock(&self.listeners);
        let Some(listener) = listeners.get(session) else {
            return false;
        };
        let received = listener.send(RunReport::Event(event)).is_ok();
        if !received {
            listeners.remove(session);
        }
        received
    }

    /// All listeners may have missed something.
    pub(crate) fn tell_missed(&self) {
        lock(&self.listeners).retain(|_, listener| listener.send(RunReport::Missed).is_ok());
    }

    /// Forgets the listener of a session, if it is gone.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut listeners = lock(&self.listeners);
        // The next run may listen already.
        if listeners
            .get(session)
            .is_some_and(|listener| listener.is_closed())
        {
            listeners.remove(session);
        }
    }
}
