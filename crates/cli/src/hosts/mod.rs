//! The hosts that tasks can run in, one file for each kind.

mod agent;
mod engine;
mod inherited;
mod opencode2_bridge;
mod opencode2_transport;
mod opencode_bridge;
mod opencode_url;
mod outside;
mod tool_settings;

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use anyhow::anyhow;
use async_trait::async_trait;
use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    model_choice::ModelPolicy,
    port::{Clock, Host, HostError, Store},
    request::TaskArgs,
    task::Task,
    task_limits::TaskLimits,
};
use asyncagents_engine::{Approver, Engine};
use asyncagents_runtime::{ForkSettings, Hosts, Manager, Skills, WeakManager};

use self::{
    agent::AgentHosts, engine::EngineHosts, opencode_url::OpenCodeUrlHosts, outside::OutsideHosts,
};
pub(crate) use self::{
    engine::{load_certificates, models},
    opencode_bridge::Bridges,
    tool_settings::helper,
};
use crate::{
    config::{Config, ProjectTasks, with_project},
    exit::Failure,
    host_name,
    launch_secrets::Overrides,
    trust::Launches,
};

/// What a kind of host brings: how it is named and opened, and which of its tasks run here.
pub trait HostKind: Send + Sync {
    /// The host that `--host` names by its word and what follows the colon.
    fn named(&self, _rest: Option<&str>, _overrides: &Overrides) -> anyhow::Result<HostSetup> {
        anyhow::bail!("it cannot be named")
    }

    /// Whether this process can run its tasks.
    fn serves(&self, _host: &HostRef) -> bool {
        true
    }

    /// See [`Hosts::lacks`].
    fn lacks(&self, _task: &Task) -> Option<String> {
        None
    }

    /// See [`Hosts::successor`].
    fn successor(&self, _host: &HostRef) -> Option<HostRef> {
        None
    }

    /// See [`Hosts::limits`].
    fn limits(&self, _host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        limits.clone()
    }

    /// See [`Hosts::model_policy`].
    fn model_policy(&self, _setup: &HostSetup, usual: &ModelPolicy) -> ModelPolicy {
        usual.clone()
    }

    /// See [`Hosts::rejects_questions`].
    fn rejects_questions(&self, _setup: &HostSetup) -> Option<bool> {
        None
    }

    /// The host, as the launcher of a task has set it up.
    ///
    /// # Errors
    /// When it cannot be reached, or is not opened for that launcher.
    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError>;
}

/// A kind of host that a program brings, beside those that asyncagents has.
pub struct ExtraHostKind {
    /// What `--host` calls it, before a colon and what follows.
    pub word: &'static str,
    /// Makes the kind for the tasks of a database.
    pub make: fn(db: &Path) -> Box<dyn HostKind>,
}

/// A task that is launched from a shell.
pub(crate) struct ShellLaunch<'a> {
    /// Whose task it will be.
    pub(crate) session: SessionId,
    /// Whether the user has named that session.
    pub(crate) is_session_named: bool,
    pub(crate) host: HostSetup,
    pub(crate) request: &'a TaskArgs,
}

/// Whose tasks a process looks after.
#[derive(Default)]
pub(crate) enum ServedTasks {
    #[default]
    All,
    /// Those of one host: a run works for its own folder, whatever was set when a task there was
    /// launched.
    Of(HostRef),
    /// Nobody's: a worker does.
    None,
}

/// What is different about the hosts of one command or another.
#[derive(Default)]
pub(crate) struct HostOptions {
    /// Who is asked for permission.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Whether a person's run ends without its background tasks.
    pub(crate) no_wait: bool,
    /// Whose tasks this process looks after.
    pub(crate) tasks: ServedTasks,
    /// No file of settings is read.
    pub(crate) bare: bool,
    /// The OpenCode around this process. It looks after no other tasks then.
    pub(crate) bridges: Option<Arc<Bridges>>,
}

/// What hosts are made from.
pub(crate) struct HostContext {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Knows what this user has launched here; nothing if the database is not this user's.
    pub(crate) launches: Option<Launches>,
    pub(crate) options: HostOptions,
    pub(crate) manager: OnceLock<WeakManager>,
}

impl HostContext {
    fn launches(&self) -> anyhow::Result<&Launches> {
        let launches = self.launches.as_ref();
        launches.ok_or_else(|| anyhow!("the database is not yours"))
    }

    fn manager(&self) -> anyhow::Result<Manager> {
        let manager = self.manager.get().and_then(WeakManager::upgrade);
        manager.ok_or_else(|| anyhow!("asyncagents is ending"))
    }
}

/// Every kind of host.
pub(crate) struct KnownHosts {
    context: Arc<HostContext>,
    engine: EngineHosts,
    agents: AgentHosts,
    opencode_url: OpenCodeUrlHosts,
    bridges: Arc<Bridges>,
    extra: Vec<(&'static str, Box<dyn HostKind>)>,
}

impl KnownHosts {
    pub(crate) fn new(context: HostContext, extra: &[ExtraHostKind]) -> Self {
        let context = Arc::new(context);
        let make = |kind: &ExtraHostKind| (kind.word, (kind.make)(&context.config.db));
        Self {
            extra: extra.iter().map(make).collect(),
            engine: EngineHosts::new(context.clone()),
            agents: AgentHosts::new(context.clone()),
            opencode_url: OpenCodeUrlHosts(context.clone()),
            bridges: context.options.bridges.clone().unwrap_or_default(),
            context,
        }
    }

    /// Hosts that are the built-in agent ask the manager in turn.
    pub(crate) fn set_manager(&self, manager: &Manager) {
        // It is set once, before these hosts are shared.
        let _ = self.context.manager.set(manager.downgrade());
    }

    fn kind(&self, host: &HostRef) -> &dyn HostKind {
        match host {
            HostRef::Engine { .. } => &self.engine,
            HostRef::OpenCodeBridge { .. } => &*self.bridges,
            HostRef::OpenCode2Bridge { .. } => &self.bridges.opencode2,
            HostRef::OpenCodeUrl { .. } | HostRef::OpenCode2Url { .. } => &self.opencode_url,
            HostRef::ClaudeCode { .. } | HostRef::Codex { .. } | HostRef::McpClient => {
                &OutsideHosts
            }
            HostRef::Agent { .. } => &self.agents,
            HostRef::Other(name) => {
                let (word, _) = host_name::split(name);
                self.extra(word).unwrap_or(&UnknownHosts)
            }
        }
    }

    fn extra(&self, word: &str) -> Option<&dyn HostKind> {
        let mut extra = self.extra.iter();
        let found = extra.find(|(known, _)| *known == word);
        found.map(|(_, kind)| &**kind)
    }

    /// The host that `--host` names, set up so that any process works on its tasks as their
    /// launcher wants, and not as the one who started the worker.
    pub(crate) fn named(&self, name: &str, overrides: &Overrides) -> anyhow::Result<HostSetup> {
        let (word, rest) = host_name::split(name);
        match word {
            host_name::ENGINE => self.engine.named(rest, overrides),
            host_name::OPENCODE if rest.is_some_and(is_address) => {
                self.opencode_url.named(rest, overrides)
            }
            _ if self.agents.knows(word) => self.agents.in_folder(word, rest, overrides),
            _ => match self.extra(word) {
                Some(kind) => kind.named(rest, overrides),
                None => anyhow::bail!("--host {name}: must be {}", host_name::FORMS),
            },
        }
    }

    /// What can be known before there is a task: a launch that could only fail is refused, and what
    /// is missing is filled in.
    pub(crate) async fn check(&self, launch: &mut ShellLaunch<'_>) -> Result<(), Failure> {
        match &launch.host.host {
            HostRef::Engine { .. } => self.engine.check(launch).await,
            HostRef::OpenCodeUrl { .. } | HostRef::OpenCode2Url { .. } => {
                self.opencode_url.check(launch).await
            }
            HostRef::Agent { .. } => self.agents.check(launch).await,
            HostRef::OpenCodeBridge { .. }
            | HostRef::OpenCode2Bridge { .. }
            | HostRef::ClaudeCode { .. }
            | HostRef::Codex { .. }
            | HostRef::McpClient
            | HostRef::Other(_) => Ok(()),
        }
    }

    /// The built-in agent as it is set up.
    pub(crate) fn engine(&self, setup: &HostSetup) -> Result<Engine, HostError> {
        self.engine_and_skills(setup).map(|(engine, _)| engine)
    }

    /// The built-in agent as it is set up, and the skills of its folder.
    pub(crate) fn engine_and_skills(
        &self,
        setup: &HostSetup,
    ) -> Result<(Engine, Skills), HostError> {
        self.engine.get(setup)
    }

    /// The skills that all agents in a folder have.
    pub(crate) fn skills_in(&self, folder: &Path, overrides: &Overrides) -> anyhow::Result<Skills> {
        self.engine.skills_in(folder, overrides)
    }

    /// What the project around a folder says about tasks.
    ///
    /// # Errors
    /// When its file cannot be used.
    pub(crate) fn project_in(&self, folder: &Path) -> anyhow::Result<ProjectTasks> {
        with_project(&self.context.config, folder)
    }

    /// What the project of a host's folder says, where one server works in all folders and is in
    /// none of them. A file that became unusable is an error at the next call from there.
    fn project_of(&self, host: &HostRef) -> Option<ProjectTasks> {
        match host {
            HostRef::OpenCode2Bridge { folder, .. } => self.project_in(Path::new(&**folder)).ok(),
            HostRef::Engine { .. }
            | HostRef::OpenCodeBridge { .. }
            | HostRef::OpenCodeUrl { .. }
            | HostRef::OpenCode2Url { .. }
            | HostRef::ClaudeCode { .. }
            | HostRef::Codex { .. }
            | HostRef::McpClient
            | HostRef::Agent { .. }
            | HostRef::Other(_) => None,
        }
    }

    /// Lets all built-in agents finish their step.
    pub(crate) async fn stop(&self) {
        self.engine.stop().await;
        self.agents.stop().await;
    }
}

#[async_trait]
impl Hosts for KnownHosts {
    fn serves(&self, host: &HostRef) -> bool {
        let options = &self.context.options;
        if self.context.launches.is_none() {
            return false;
        }
        match &options.tasks {
            ServedTasks::Of(only) => only == host || is_agent_beside(host, only),
            ServedTasks::None => false,
            ServedTasks::All if options.bridges.is_some() => self.bridges.serves(bridge_of(host)),
            ServedTasks::All => self.kind(host).serves(host),
        }
    }

    fn keeps_launched(&self) -> bool {
        !matches!(self.context.options.tasks, ServedTasks::None)
    }

    fn lacks(&self, task: &Task) -> Option<String> {
        self.kind(&task.brief.host.host).lacks(task)
    }

    async fn named(&self, name: &str, caller: &HostSetup) -> Result<HostSetup, HostError> {
        self.agents.named_by(name, caller).await
    }

    fn successor(&self, host: &HostRef) -> Option<HostRef> {
        match host {
            HostRef::Agent {
                name,
                folder,
                bridge: Some(bridge),
                unsandboxed,
            } => Some(HostRef::Agent {
                name: name.clone(),
                folder: folder.clone(),
                bridge: Some(Box::new(self.successor(bridge)?)),
                unsandboxed: *unsandboxed,
            }),
            _ => self.kind(host).successor(host),
        }
    }

    fn limits(&self, host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        match self.project_of(host) {
            Some(project) => project.limits,
            None => self.kind(host).limits(host, limits),
        }
    }

    fn fork(&self, host: &HostRef, usual: ForkSettings) -> ForkSettings {
        self.project_of(host).map_or(usual, |project| ForkSettings {
            limits: project.fork,
            mode: project.fork_mode,
        })
    }

    fn model_policy(&self, setup: &HostSetup, usual: &ModelPolicy) -> ModelPolicy {
        self.kind(&setup.host).model_policy(setup, usual)
    }

    fn rejects_questions(&self, setup: &HostSetup) -> Option<bool> {
        self.kind(&setup.host).rejects_questions(setup)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        if self.context.launches.is_none() {
            let why = "its database is not yours, so it is not asked for more";
            return Err(HostError::Refused(why.to_owned()));
        }
        if agent::is_only_named(setup) {
            return Ok(agent::journal_sessions(&self.context));
        }
        self.kind(&setup.host).open(setup)
    }
}

/// Whether it is another agent in the folder of a run.
fn is_agent_beside(host: &HostRef, run: &HostRef) -> bool {
    match (host, run) {
        (
            HostRef::Agent {
                folder,
                bridge: None,
                ..
            },
            HostRef::Engine { folder: own },
        ) => folder == own,
        _ => false,
    }
}

/// The OpenCode whose bridge works on the tasks of a host: for another agent, that of the session
/// which launched them.
fn bridge_of(host: &HostRef) -> &HostRef {
    match host {
        HostRef::Agent {
            bridge: Some(bridge),
            ..
        } => bridge,
        host => host,
    }
}

/// Whether it is where a server listens, and no folder.
fn is_address(rest: &str) -> bool {
    rest.contains("://")
}

/// Hosts of other versions.
struct UnknownHosts;

impl HostKind for UnknownHosts {
    fn serves(&self, _: &HostRef) -> bool {
        false
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let host = &setup.host;
        let why = format!("this version of asyncagents does not know the host `{host}`");
        Err(HostError::Refused(why))
    }
}

fn wrong_kind(host: &HostRef) -> HostError {
    HostError::Refused(format!("{} is another kind of host", host.label()))
}

fn refused(error: anyhow::Error) -> HostError {
    HostError::Refused(format!("{error:#}"))
}
