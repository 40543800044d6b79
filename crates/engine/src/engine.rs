//! Sessions in the store, and a driver for each that has something to do.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    agent::{End, Entry, Profile, ToolSpec, Tools, Usage},
    id::{AgentName, OwnerId, PostId, SessionId, TaskId},
    lock::lock,
    port::{Clock, Delegation, HostError, Journal, Report, Session, SessionEvent, Store},
    progress::Totals,
    skill::{self, Role},
    tool_set,
};
use asyncagents_models::{Model, Models};
use asyncagents_tools::{Sandbox, Toolbox};
use tokio::{sync::broadcast, task::spawn_blocking};
use uuid::Uuid;

use crate::{
    Approver, Live, LiveEvents, Settings,
    choose_model::choose_model,
    drive::{Held, drive},
    drivers::Drivers,
    live::{self, LiveSender},
    permit::Grants,
    profiles::{self, Profiles},
    record::{Record, Trouble, Whole},
    system_prompt::{self, Facts},
};

/// How many reports a slow listener may be behind before it misses some.
const BEHIND: usize = 8_192;

/// The built-in agent as a host. Clones are the same host.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

/// What an engine is made of.
pub struct Parts {
    /// How it behaves.
    pub settings: Settings,
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Whom it asks.
    pub models: Models,
    /// What it can do, in the folder of the settings. Each session gets a toolbox of its own from it.
    pub toolbox: Toolbox,
    /// The tools for background tasks.
    pub delegation: Arc<dyn Delegation>,
    /// Who is asked for permission; without, whatever has to be asked for is refused.
    pub approver: Option<Arc<dyn Approver>>,
    /// The worker of this process, while there is one. As long as its lease lasts, no other
    /// process drives the sessions that this one drives.
    pub owner: Owner,
}

/// Tells the worker of this process.
pub type Owner = Arc<dyn Fn() -> Option<OwnerId> + Send + Sync>;

/// A session of a person, to be begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// For people.
    pub title: String,
    /// Who works in it.
    pub agent: AgentName,
    /// With which model, if not the agent's own.
    pub model: Option<String>,
}

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) record: Record,
    pub(crate) models: Models,
    /// In the engine's own folder. Those of sessions are made of it.
    toolbox: Toolbox,
    toolboxes: Mutex<HashMap<SessionId, Toolbox>>,
    pub(crate) delegation: Arc<dyn Delegation>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) grants: Grants,
    pub(crate) owner: Owner,
    pub(crate) reports: broadcast::Sender<Report>,
    watched: Mutex<HashMap<SessionId, LiveSender>>,
    /// Those who watch tasks that have no session yet.
    watched_tasks: Mutex<HashMap<TaskId, LiveSender>>,
    pub(crate) drivers: Drivers,
}

impl Engine {
    /// The host of a workspace.
    pub fn new(parts: Parts) -> Self {
        Self {
            inner: Arc::new(Inner {
                settings: parts.settings,
                record: Record {
                    store: parts.store,
                    clock: parts.clock,
                },
                models: parts.models,
                toolbox: parts.toolbox,
                toolboxes: Mutex::default(),
                delegation: parts.delegation,
                approver: parts.approver,
                owner: parts.owner,
                grants: Grants::default(),
                reports: broadcast::channel(BEHIND).0,
                watched: Mutex::default(),
                watched_tasks: Mutex::default(),
                drivers: Drivers::default(),
            }),
        }
    }

    /// Begins a session of a person.
    ///
    /// # Errors
    /// When there is no such agent or model, or the store fails.
    pub async fn begin(&self, begin: Begin) -> Result<SessionId, HostError> {
        let profiles = self.inner.profiles();
        let profile = profiles.known(&begin.agent)?;
        let model = self
            .inner
            .model_for(begin.model.as_deref(), profile, None)?;
        let id = SessionId::from(format!("{}{}", SessionId::KIND, Uuid::new_v4().simple()));
        let session = Session {
            id: id.clone(),
            task: None,
            title: begin.title,
            agent: begin.agent.clone(),
            model: model.name().clone(),
            system: self.inner.system(&profiles, profile, true),
            delegates: true,
            workspace: self.inner.workspace(),
            terms: None,
            base: None,
            begun: self.inner.record.clock.now(),
        };
        let begun = self.inner.record.write(move |journal| {
            journal.begin_session(&session)?;
            Ok(())
        });
        begun.await?;
        Ok(id)
    }

    /// The newest session of a person in this workspace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn newest(&self) -> Result<Option<SessionId>, HostError> {
        let workspace = self.inner.workspace();
        let newest = self.inner.record.read(move |journal| {
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
        let id = session.clone();
        let found = self.inner.record.read(move |journal| {
            let there = journal.session(&id)?.is_some();
            Ok((there, journal.open_prompt(&id)?))
        });
        let (there, prompt) = found.await?;
        if !there {
            return Err(HostError::NoSession(session.clone()));
        }
        if prompt.is_some() {
            self.inner.attend(session);
        }
        Ok(prompt)
    }

    /// A session.
    ///
    /// # Errors
    /// When there is no such session, or the store fails.
    pub async fn session(&self, session: &SessionId) -> Result<Session, HostError> {
        let found = self.inner.record.session(session).await?;
        found.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// Whether another process that is alive, or was a moment ago, works in a session.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_busy(&self, session: &SessionId) -> Result<bool, HostError> {
        let (id, mine) = (session.clone(), (self.inner.owner)());
        let busy = self
            .inner
            .record
            .read(move |journal| is_driven_elsewhere(journal, &id, mine.as_ref()));
        Ok(busy.await?)
    }

    /// How the run of a prompt ended and what was said last, if it is over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn end_of(
        &self,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Option<(End, Option<String>)>, HostError> {
        let (id, prompt) = (session.clone(), prompt.clone());
        let ended = self.inner.record.read(move |journal| {
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
        let whole = self.inner.existing(session).await?;
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
        match self.inner.toolbox.sandbox() {
            Sandbox::Enforced { .. } => "commands run in a sandbox".to_owned(),
            Sandbox::Missing { why } => format!("commands run WITHOUT a sandbox: {why}"),
            Sandbox::Off => "commands run without a sandbox: it is switched off".to_owned(),
        }
    }

    /// What a user should know about the project: files that are not read.
    pub fn remarks(&self) -> Vec<String> {
        let foreign = system_prompt::foreign_instructions(&self.inner.settings.workspace);
        let remark = |file: PathBuf| {
            let file = file.display();
            format!("{file} is not read: it belongs to another user")
        };
        foreign.map(remark).collect()
    }

    /// What happens in a session from now on, for the one who watches it.
    pub fn watch(&self, session: &SessionId) -> LiveEvents {
        let (sender, events) = live::channel();
        lock(&self.inner.watched).insert(session.clone(), sender);
        events
    }

    /// What happens in the session of a task, from its beginning if it has not begun yet.
    pub fn watch_task(&self, task: &TaskId) -> LiveEvents {
        let (sender, events) = live::channel();
        lock(&self.inner.watched_tasks).insert(task.clone(), sender);
        events
    }

    /// Says what is wrong with the model that an agent would use, before anything is begun.
    ///
    /// # Errors
    /// When there is no such agent or model, or no key for it.
    pub fn check(&self, agent: &AgentName, model: Option<&str>) -> Result<(), HostError> {
        let profiles = self.inner.profiles();
        let model = self.inner.model_for(model, profiles.known(agent)?, None)?;
        let checked = self.inner.models.check(model.name().as_str());
        checked.map_err(|error| HostError::Refused(error.to_string()))
    }

    /// Stops in good order: what is running may finish its step, and whoever drives the
    /// sessions next goes on from there.
    pub async fn stop(&self) {
        let timeout = self.inner.settings.farewell;
        self.inner.drivers.close(timeout).await;
        self.inner.toolbox.close();
    }

    /// Stops at once, as if the process had died.
    pub fn kill(&self) {
        self.inner.drivers.kill();
    }
}

impl Inner {
    /// Sees to it that a session is driven.
    pub(crate) fn attend(self: &Arc<Self>, session: &SessionId) {
        // It lets go also if it is aborted before it has begun.
        let drive = |handle| drive(Held::new(self.clone(), session.clone(), handle));
        self.drivers.attend(session, drive);
    }

    /// The model of a session.
    pub(crate) fn model_for(
        &self,
        asked: Option<&str>,
        profile: &Profile,
        parent: Option<&Session>,
    ) -> Result<Model, HostError> {
        let configured = self.settings.model.as_deref();
        choose_model(&self.models, configured, asked, profile, parent)
    }

    pub(crate) fn report(&self, session: &SessionId, event: SessionEvent) {
        // Nobody has to listen.
        let _ = self.reports.send(Report::Session(session.clone(), event));
    }

    /// The toolbox of a session, in its folder. What it knows of files lasts until the session is
    /// deleted.
    pub(crate) fn toolbox_of(&self, session: &Session) -> io::Result<Toolbox> {
        let mut toolboxes = lock(&self.toolboxes);
        if let Some(known) = toolboxes.get(&session.id) {
            return Ok(known.clone());
        }
        let folder = Path::new(&session.workspace);
        let mut allowed = self.settings.session_folders.iter();
        let made = if allowed.any(|allowed| folder.starts_with(allowed)) {
            self.toolbox.in_folder(folder)?
        } else {
            self.toolbox.for_session()
        };
        toolboxes.insert(session.id.clone(), made.clone());
        Ok(made)
    }

    /// Drops what is kept of a session that is deleted.
    pub(crate) fn forget(&self, session: &SessionId) {
        lock(&self.toolboxes).remove(session);
    }

    pub(crate) fn show(&self, session: &SessionId, live: Live) {
        let mut watched = lock(&self.watched);
        let gone = watched
            .get(session)
            .is_some_and(|watcher| !watcher.send(live));
        if gone {
            watched.remove(session);
        }
    }

    /// The agents there are. Those of the project have no more turns than the user gives.
    pub(crate) fn profiles(&self) -> Profiles {
        let mut found = profiles::find(&self.settings.workspace, &self.settings.agent_folders);
        for profile in found.of_project() {
            profile.max_turns = match (profile.max_turns, self.settings.max_turns) {
                (Some(own), Some(most)) => Some(own.min(most)),
                (own, most) => own.or(most),
            };
        }
        found
    }

    pub(crate) fn workspace(&self) -> String {
        self.settings.workspace.display().to_string()
    }

    pub(crate) fn system(&self, profiles: &Profiles, profile: &Profile, delegates: bool) -> String {
        let task = format!("{}task", self.settings.prefix);
        let delegates = delegates && profile.tools.offers(&task);
        let agents = profiles
            .all()
            .filter(|_| delegates)
            .map(|profile| (&profile.name, profile.description.as_str()));
        let sandbox = match self.toolbox.sandbox() {
            Sandbox::Enforced { what } => format!("Commands run in a sandbox: {what}."),
            Sandbox::Missing { .. } | Sandbox::Off => "Commands run without a sandbox.".to_owned(),
        };
        system_prompt::write(&Facts {
            profile,
            workspace: Path::new(&self.settings.workspace),
            now: self.record.clock.now(),
            agents: agents.collect(),
            prefix: &self.settings.prefix,
            sandbox,
        })
    }

    /// What a sub-agent that runs a skill is told. It knows nothing of its caller.
    pub(crate) fn system_of_skill(
        &self,
        profiles: &Profiles,
        profile: &Profile,
        delegates: bool,
        role: &Role,
    ) -> String {
        let system = self.system(profiles, profile, delegates);
        let (tools, _) = self.tools(delegates, &profile.tools);
        let first = |text: &'_ str| text.split(". ").next().unwrap_or_default().to_owned();
        let about = |spec: &ToolSpec| match profile.tools.uses(&spec.name) {
            Some(uses) => format!("{} ({uses})", first(&spec.description)),
            None => first(&spec.description),
        };
        let tools: Vec<(String, String)> = tools
            .into_iter()
            .map(|spec| (spec.name.clone(), about(&spec)))
            .collect();
        let tools = tools
            .iter()
            .map(|(name, about)| (name.as_str(), about.as_str()));
        let skill = skill::isolated(&role.terms.skill, &role.instructions, tools);
        format!("{system}\n# Skill\n\n{skill}\n")
    }

    /// The tools that a session's model is offered, always in the same order; and the names of
    /// those that are not the toolbox's.
    pub(crate) fn tools(&self, delegates: bool, tools: &Tools) -> (Vec<ToolSpec>, Vec<String>) {
        let own = asyncagents_tools::specs().into_iter();
        let delegation = self.delegation.tools();
        let names = delegation.iter().map(|spec| spec.name.clone()).collect();
        // A skill need not be a task.
        let may = |spec: &ToolSpec| delegates || spec.name == tool_set::SKILL;
        let delegation = delegation.into_iter().filter(may);
        let offered = own.chain(delegation);
        let offered = offered.filter(|spec| tools.offers(&spec.name));
        (offered.collect(), names)
    }

    pub(crate) async fn existing(&self, session: &SessionId) -> Result<Whole, HostError> {
        let whole = self.record.whole(session).await?;
        whole.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// The session that was made for a task, or a new one.
    pub(crate) async fn make(
        &self,
        session: Session,
        first: Option<Entry>,
    ) -> Result<SessionId, HostError> {
        let task = session.task.clone();
        let made = self.record.write(move |journal| {
            if let Some(task) = &session.task
                && let Some(made) = journal.session_for(task)?
            {
                return Ok(made);
            }
            journal.begin_session(&session)?;
            if let Some(first) = &first {
                journal.file(&session.id, first, session.begun)?;
            }
            Ok(session.id.clone())
        });
        let made = made.await?;
        let watcher = task.and_then(|task| lock(&self.watched_tasks).remove(&task));
        if let Some(watcher) = watcher {
            lock(&self.watched).insert(made.clone(), watcher);
        }
        Ok(made)
    }
}

/// Whether another process drives a session and still has its lease.
pub(crate) fn is_driven_elsewhere(
    journal: &mut dyn Journal,
    session: &SessionId,
    mine: Option<&OwnerId>,
) -> Result<bool, Trouble> {
    let driver = journal.driver(session)?.unwrap_or_default();
    let owner = driver.split_once('/').map_or("", |(owner, _)| owner);
    if owner.is_empty() || mine.is_some_and(|mine| mine.as_str() == owner) {
        return Ok(false);
    }
    Ok(journal
        .owners()?
        .iter()
        .any(|alive| alive.as_str() == owner))
}
