//! What all parts of an engine share: settings, store, models, toolboxes, watchers and drivers.

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    agent::{Entry, Mode, Permissions, ToolSpec, Tools},
    id::{OwnerId, SessionId, TaskId},
    lock::lock,
    moment::Moment,
    port::{
        Clock, Delegation, HostError, Journal, Report, Session, SessionEvent, Store, WholeSession,
        query, transact, transact_unsynced,
    },
    tool_set,
};
use asyncagents_models::Models;
use asyncagents_tools::Toolbox;
use tokio::sync::broadcast;

use crate::{
    Approver, Live, Settings, Unanswered,
    command_slots::CommandSlots,
    drivers::Drivers,
    grants::Grants,
    live::LiveSender,
    profiles::{self, Profiles},
    questions::Questions,
    record::SessionError,
    toolboxes::Toolboxes,
};

/// How many reports a slow listener may be behind before it misses some.
const MOST_BEHIND: usize = 8_192;

/// What an engine is made of.
pub struct Parts {
    pub settings: Settings,
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub models: Models,
    /// The tools, in the folder of the settings. Each session gets a toolbox of its own from it.
    pub toolbox: Toolbox,
    /// The tools for background tasks.
    pub delegation: Arc<dyn Delegation>,
    /// How many commands run at once; shared by all engines of a process.
    pub commands: Arc<CommandSlots>,
    /// Who is asked for permission. Without one, what has to be asked for is refused or waits, as
    /// the settings say.
    pub approver: Option<Arc<dyn Approver>>,
    /// The worker of this process, while there is one. As long as its lease lasts, no other
    /// process drives the sessions that this one drives.
    pub owner: Owner,
}

/// Returns the worker of this process.
pub type Owner = Arc<dyn Fn() -> Option<OwnerId> + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pub(crate) models: Models,
    /// In the engine's own folder. Those of sessions are made of it.
    pub(crate) toolbox: Toolbox,
    toolboxes: Toolboxes,
    pub(crate) delegation: Arc<dyn Delegation>,
    pub(crate) commands: Arc<CommandSlots>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) grants: Grants,
    /// The modes of sessions that have one of their own.
    pub(crate) modes: Mutex<HashMap<SessionId, Mode>>,
    pub(crate) questions: Questions,
    pub(crate) owner: Owner,
    pub(crate) reports: broadcast::Sender<Report>,
    pub(crate) watched: Mutex<HashMap<SessionId, LiveSender>>,
    /// The watchers of tasks that have no session yet.
    pub(crate) watched_tasks: Mutex<HashMap<TaskId, LiveSender>>,
    pub(crate) drivers: Drivers,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            settings: parts.settings,
            store: parts.store,
            clock: parts.clock,
            models: parts.models,
            toolbox: parts.toolbox,
            toolboxes: Toolboxes::default(),
            delegation: parts.delegation,
            commands: parts.commands,
            approver: parts.approver,
            owner: parts.owner,
            grants: Grants::default(),
            modes: Mutex::default(),
            questions: Questions::default(),
            reports: broadcast::channel(MOST_BEHIND).0,
            watched: Mutex::default(),
            watched_tasks: Mutex::default(),
            drivers: Drivers::default(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        transact(&*self.store, work).await
    }

    /// The same for what can be done again, or is followed at once by what is on disk before it
    /// counts.
    pub(crate) async fn write_unsynced<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        transact_unsynced(&*self.store, work).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        query(&*self.store, work).await
    }

    /// A session, if there is one.
    pub(crate) async fn session(&self, id: &SessionId) -> Result<Option<Session>, SessionError> {
        let id = id.clone();
        self.read(move |journal| Ok(journal.session(&id)?)).await
    }

    /// A session and everything in it, what it begins with included.
    pub(crate) async fn whole(&self, id: &SessionId) -> Result<Option<WholeSession>, SessionError> {
        let id = id.clone();
        self.read(move |journal| Ok(WholeSession::read(journal, &id)?))
            .await
    }

    /// Adds an entry to a session, whether it is driven or not.
    pub(crate) async fn file(&self, id: &SessionId, entry: Entry) -> Result<(), HostError> {
        let (session, now) = (id.clone(), self.now());
        let filed = self.write(move |journal| {
            let there = journal.session(&session)?.is_some();
            if there {
                journal.file(&session, &entry, now)?;
            }
            Ok(there)
        });
        if filed.await? {
            Ok(())
        } else {
            Err(HostError::NoSession(id.clone()))
        }
    }

    /// What a session may do without asking.
    pub(crate) fn permissions(&self, session: &SessionId) -> Cow<'_, Permissions> {
        let permissions = &self.settings.permissions;
        match lock(&self.modes).get(session) {
            Some(mode) if *mode != permissions.mode => Cow::Owned(Permissions {
                mode: *mode,
                ..permissions.clone()
            }),
            Some(_) | None => Cow::Borrowed(permissions),
        }
    }

    pub(crate) fn report(&self, session: &SessionId, event: SessionEvent) {
        // Without a listener there is nothing to do.
        let _ = self.reports.send(Report::Session(session.clone(), event));
    }

    /// The toolbox of a session that is driven, in its folder.
    pub(crate) fn toolbox_of(&self, session: &Session) -> io::Result<Toolbox> {
        self.toolboxes.open(&session.id, || {
            let folder = Path::new(&session.workspace);
            let mut allowed = self.settings.session_folders.iter();
            let made = if allowed.any(|allowed| folder.starts_with(allowed)) {
                self.toolbox.in_folder(folder)?
            } else {
                self.toolbox.for_session()
            };
            Ok(made.named(session.id.as_str()))
        })
    }

    /// A session is not driven any more: what is kept of those before it is bounded.
    pub(crate) fn rest(&self, session: &SessionId) {
        if let Some(gone) = self.toolboxes.rest(session) {
            self.questions.forget(&gone);
        }
    }

    /// Drops what is kept of a session that is deleted.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.toolboxes.forget(session);
        lock(&self.modes).remove(session);
        self.questions.forget(session);
    }

    /// Shows something to the watcher of a session, if it has one.
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
            let limits = [profile.max_turns, self.settings.max_turns];
            profile.max_turns = limits.into_iter().flatten().min();
        }
        found
    }

    pub(crate) fn workspace(&self) -> String {
        self.settings.workspace.display().to_string()
    }

    /// The tools that a session's model is offered, always in the same order; and the names of
    /// those that are not the toolbox's.
    pub(crate) fn tools(&self, delegates: bool, tools: &Tools) -> (Vec<ToolSpec>, Vec<String>) {
        let own = asyncagents_tools::specs().into_iter();
        let delegation = self.delegation.tools();
        let names = delegation.iter().map(|spec| spec.name.clone()).collect();
        // Nothing can be answered where no task waits for an answer.
        let answers = self.approver.is_some() || self.settings.unanswered == Unanswered::Wait;
        let answer = format!("{}{}", self.settings.prefix, tool_set::ANSWER);
        // A skill need not be a task.
        let may = |spec: &ToolSpec| {
            let usable = delegates && (answers || spec.name != answer);
            usable || spec.name == tool_set::SKILL
        };
        let offered = own.chain(delegation.into_iter().filter(may));
        let offered = offered.filter(|spec| tools.offers(&spec.name));
        (offered.collect(), names)
    }

    pub(crate) async fn existing(&self, session: &SessionId) -> Result<WholeSession, HostError> {
        let whole = self.whole(session).await?;
        whole.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// The session that was made for a task, or a new one.
    pub(crate) async fn make(
        &self,
        session: Session,
        first: Option<Entry>,
    ) -> Result<SessionId, HostError> {
        let task = session.task.clone();
        // Whatever is said in it is on disk after it; before that, another is as good.
        let made = self.write_unsynced(move |journal| {
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
