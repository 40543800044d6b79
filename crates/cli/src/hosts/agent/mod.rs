//! Other agents as children: Claude Code, Codex, Gemini, OpenCode, goose, and those of `[hosts.NAME]`.

mod judge;
mod programs;
mod tools;

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use anyhow::{Context, anyhow, bail};
use async_trait::async_trait;
use asyncagents_core::{
    agent::{self, Permissions, Usage},
    budget::Cost,
    host_ref::{HostRef, HostSetup, LaunchSettings},
    id::ModelName,
    lock::lock,
    port::{Host, HostError},
    task_limits::TaskLimits,
    wording::listed,
};
use asyncagents_engine::Unanswered;
use asyncagents_hosts::{
    OutsideHost,
    acp::{Acp, AcpSettings},
    agent::{
        AgentHost, AgentSettings, Connection, EventSender, JournalSessions, OpenSession, Parts,
        Prices, Profile, Wire, WireError,
    },
    agent_rules::{AgentPlace, acp_settings, check_project, reads_by_commands, refused_tools},
    claude_stream::ClaudeStream,
};
use asyncagents_models::Models;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::spawn_blocking;

use self::{
    judge::Rules,
    programs::{AgentPrograms, Speaker},
    tools::ChildTools,
};
use super::{
    HostContext, HostKind, ShellLaunch, engine::models, inherited::choose_parent, refused,
    tool_settings, wrong_kind,
};
use crate::{
    adapters::{AgentProgram, find_adapter},
    config::{AgentHostConfig, Config, home, load_launched, with_project},
    exit::Failure,
    folders::{check_in_place, real_folder},
    launch_secrets::{self, Overrides},
    trust::Launches,
};

/// What every child is told.
const BACKGROUND: &str = "You work in the background on a task that another agent gave you. Do that \
    task and nothing else. If the project has a file AGENTS.md, CLAUDE.md or GEMINI.md, follow what it says about \
    how to work there. What you say last is handed to that agent as your result.";

/// The other agents of this process, one for each setup.
pub(super) struct AgentHosts {
    context: Arc<HostContext>,
    made: Mutex<HashMap<HostSetup, AgentHost>>,
}

impl AgentHosts {
    pub(super) fn new(context: Arc<HostContext>) -> Self {
        Self {
            context,
            made: Mutex::default(),
        }
    }

    /// The names that a user can type.
    pub(super) fn names(config: &Config) -> Vec<String> {
        let known = AgentProgram::ALL.iter().map(|agent| agent.name.to_owned());
        let own = config.agent_config.hosts.keys().cloned();
        let mut names: Vec<String> = known.chain(own).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether a user can type this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        let config = &self.context.config.agent_config;
        AgentProgram::named(name).is_some() || config.hosts.contains_key(name)
    }

    /// The agent of this name in a folder.
    pub(super) fn in_folder(
        &self,
        name: &str,
        folder: Option<&str>,
        overrides: &Overrides,
    ) -> anyhow::Result<HostSetup> {
        let folder = match folder {
            None => real_folder(&env::current_dir()?)?,
            Some("") => bail!("--host {name}: names no folder; leave the colon out for this one"),
            Some(folder) => {
                let real = real_folder(Path::new(folder));
                real.with_context(|| format!("--host {name}:{folder}"))?
            }
        };
        let launches = self.context.launches()?;
        let stored = launch_secrets::store_secrets(overrides, launches)?;
        let json = serde_json::to_string(&stored)?;
        Ok(launches.seal(self.agent_in(name, &folder), json))
    }

    /// The agent of this name, for a task of a caller in another host.
    ///
    /// # Errors
    /// When there is none, it cannot be started, or the caller's folder is not known here.
    pub(super) async fn named_by(
        &self,
        name: &str,
        caller: &HostSetup,
    ) -> Result<HostSetup, HostError> {
        let name = name.trim();
        if !self.knows(name) {
            let known = listed(Self::names(&self.context.config), "and");
            let why = format!("there is no host `{name}`; there are {known}");
            return Err(HostError::Refused(why));
        }
        let launches = self.context.launches().map_err(refused)?;
        let CallersPlace {
            folder,
            bridge,
            json,
        } = CallersPlace::of(caller, launches)?;
        let folder = real_folder(Path::new(folder)).map_err(refused)?;
        self.check_startable(name, Path::new(&folder))
            .await
            .map_err(refused)?;
        let mut setup = launches.seal(self.agent_in(name, &folder), json);
        if let HostRef::Agent { bridge: of, .. } = &mut setup.host {
            *of = bridge;
        }
        Ok(setup)
    }

    /// What can be known before there is a task. As for the built-in agent, a fork inherits the newest
    /// run of the folder, unless a session is named.
    pub(super) async fn check(&self, launch: &mut ShellLaunch<'_>) -> Result<(), Failure> {
        let HostRef::Agent { name, folder, .. } = launch.host.host.clone() else {
            return Ok(());
        };
        let startable = self.check_startable(&name, Path::new(&*folder)).await;
        startable.map_err(Failure::Input)?;
        choose_parent(&*self.context.store, &folder, launch).await
    }

    /// Whether there is a program for it, and it may work in a folder.
    async fn check_startable(&self, name: &str, folder: &Path) -> anyhow::Result<()> {
        let said = self.said(name);
        let speaker = programs::speaker(name, &said, folder).await;
        if let Some(program) = said.command.first() {
            programs::find_said(name, program, folder)?;
        } else if speaker == Speaker::Acp {
            find_adapter(programs::known_program(name)?, folder).await?;
        }
        let home = home().unwrap_or_default();
        let place = AgentPlace {
            home: &home,
            project: folder,
            is_sandboxed: said.sandbox != Some(false),
            asks_to_read: false,
            variable: |name| env::var_os(name),
        };
        check_project(name, place).map_err(|why| anyhow!(why))
    }

    /// As the user's settings have it now: whether it is sandboxed stays as it is at the launch.
    fn agent_in(&self, name: &str, folder: &str) -> HostRef {
        HostRef::Agent {
            name: name.into(),
            folder: folder.into(),
            bridge: None,
            unsandboxed: self.said(name).sandbox == Some(false),
        }
    }

    fn said(&self, name: &str) -> AgentHostConfig {
        let hosts = &self.context.config.agent_config.hosts;
        hosts.get(name).cloned().unwrap_or_default()
    }

    /// The agent as it is set up.
    fn get(&self, setup: &HostSetup) -> Result<AgentHost, HostError> {
        let setup = sealed_form(setup);
        let mut made = lock(&self.made);
        if let Some(known) = made.get(&setup) {
            return Ok(known.clone());
        }
        let host = self.make(&setup).map_err(refused)?;
        made.insert(setup, host.clone());
        Ok(host)
    }

    fn make(&self, setup: &HostSetup) -> anyhow::Result<AgentHost> {
        let HostRef::Agent {
            name,
            folder,
            unsandboxed,
            ..
        } = &setup.host
        else {
            return Err(wrong_kind(&setup.host).into());
        };
        raise_file_limit();
        let launches = self.context.launches()?;
        launches.check(setup)?;
        let stored = serde_json::from_str(&setup.settings.json)?;
        let overrides = launch_secrets::load_secrets(stored, launches)?;
        let workspace = PathBuf::from(&**folder);
        check_in_place(&workspace)?;
        let loaded = load_launched(Some(&workspace), &overrides)?;
        let config = &loaded.config;
        let models = models(&config.agent_config)?;
        let tools = tool_settings::tool_settings(&self.context, &workspace, config, &models)?;
        let manager = self.context.manager()?;
        let prefix = manager.settings().wording.prefix.clone();
        let home = home().ok_or_else(|| anyhow!("HOME is not set"))?;
        let said = said_of(config, name, *unsandboxed);
        let permissions = config.agent_config.permissions.clone();
        let permissions = Arc::new(Mutex::new(permissions));
        let skills = super::engine::skills_of(&self.context, &workspace, config, &models)?;
        let is_sandboxed = said.sandbox != Some(false);
        let programs = ProgramParts {
            name: name.to_string(),
            unsandboxed: *unsandboxed,
            overrides,
            permissions: permissions.clone(),
            folder: workspace.clone(),
            home,
            tools: Arc::new(tools),
            door: Arc::new(ChildTools {
                manager: manager.downgrade(),
                store: self.context.store.clone(),
                setup: setup.clone(),
                skills,
                wording: manager.settings().wording.clone(),
            }),
        };
        let owner = manager.downgrade();
        Ok(AgentHost::new(Parts {
            settings: AgentSettings {
                name: name.to_string(),
                folder: folder.to_string(),
                prefix,
                profiles: profiles(),
            },
            store: self.context.store.clone(),
            clock: self.context.clock.clone(),
            wire: Arc::new(ChosenWire(programs)),
            judge: Arc::new(Rules {
                permissions,
                folder: workspace,
                reads_by_commands: reads_by_commands(name),
                is_sandboxed,
                refused: refused_tools(name),
            }),
            prices: prices(name, models),
            owner: Arc::new(move || owner.upgrade()?.owner()),
        }))
    }

    /// Ends all their processes.
    pub(super) async fn stop(&self) {
        let hosts: Vec<AgentHost> = lock(&self.made).values().cloned().collect();
        for host in hosts {
            host.stop().await;
        }
    }
}

impl HostKind for AgentHosts {
    /// One that an OpenCode's session launched is worked on by that one's bridge.
    fn serves(&self, host: &HostRef) -> bool {
        matches!(host, HostRef::Agent { bridge: None, .. })
    }

    fn limits(&self, host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        let HostRef::Agent { folder, .. } = host else {
            return limits.clone();
        };
        let project = with_project(&self.context.config, Path::new(&**folder));
        project.map_or_else(|_| limits.clone(), |project| project.limits)
    }

    fn rejects_questions(&self, setup: &HostSetup) -> Option<bool> {
        let launches = self.context.launches().ok()?;
        launches.check(&sealed_form(setup)).ok()?;
        let stored = serde_json::from_str(&setup.settings.json).ok()?;
        let overrides = launch_secrets::load_secrets(stored, launches).ok()?;
        let HostRef::Agent { folder, .. } = &setup.host else {
            return None;
        };
        let loaded = load_launched(Some(Path::new(&**folder)), &overrides).ok()?;
        let unanswered = loaded.config.agent_config.unanswered?;
        Some(unanswered == Unanswered::Refuse)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        Ok(Arc::new(self.get(setup)?))
    }
}

/// How many files a process may have open when agents work in it: each has its pipes and its connections.
const FILES: u64 = 16_384;

/// As far as the user may.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES, |most| most.min(FILES));
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit {
            current: Some(most),
            ..limit
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
}

/// The sessions of the journal, to be read and told things, for tasks of theirs that run elsewhere.
pub(super) fn journal_sessions(context: &HostContext) -> Arc<dyn Host> {
    let (store, clock) = (context.store.clone(), context.clock.clone());
    let prefix = context.config.prefix.clone();
    Arc::new(OutsideHost::new(JournalSessions::new(store, clock, prefix)))
}

/// Where a caller works, and with which settings of its launcher's flags and environment.
#[derive(Debug)]
struct CallersPlace<'a> {
    folder: &'a str,
    bridge: Option<Box<HostRef>>,
    json: String,
}

impl<'a> CallersPlace<'a> {
    /// # Errors
    /// When it works in no folder of this machine, or this user has not launched it there.
    fn of(caller: &'a HostSetup, launches: &Launches) -> Result<Self, HostError> {
        let sealed = || launches.check(&sealed_form(caller)).map_err(refused);
        let (folder, bridge) = match &caller.host {
            // What is sealed for another agent is sealed for a folder: the row of a task must not say which.
            HostRef::Engine { folder } => {
                sealed()?;
                (folder, None)
            }
            HostRef::Agent { folder, bridge, .. } => {
                sealed()?;
                (folder, bridge.clone())
            }
            // These are on a connection of their own.
            HostRef::OpenCodeBridge { folder, .. } | HostRef::OpenCode2Bridge { folder, .. } => {
                (folder, Some(Box::new(caller.host.clone())))
            }
            HostRef::OpenCodeUrl { .. }
            | HostRef::OpenCode2Url { .. }
            | HostRef::ClaudeCode { .. }
            | HostRef::Codex { .. }
            | HostRef::McpClient
            | HostRef::Other(_) => {
                let why =
                    "other agents work in folders of this machine, and this session is in none";
                return Err(HostError::Refused(why.to_owned()));
            }
        };
        let json = match &*caller.settings.json {
            json if !json.is_empty() && sealed().is_ok() => json.to_owned(),
            _ => "{}".to_owned(),
        };
        Ok(Self {
            folder,
            bridge,
            json,
        })
    }
}

/// A setup as it was sealed: which OpenCode its session lives in may change.
fn sealed_form(setup: &HostSetup) -> HostSetup {
    match &setup.host {
        HostRef::Agent {
            name,
            folder,
            unsandboxed,
            ..
        } => HostSetup {
            host: HostRef::Agent {
                name: name.clone(),
                folder: folder.clone(),
                bridge: None,
                unsandboxed: *unsandboxed,
            },
            settings: setup.settings.clone(),
        },
        _ => setup.clone(),
    }
}

/// Who can be at work: the built-in agents, as others can be told to be them.
fn profiles() -> Vec<Profile> {
    let profile = |known: agent::Profile| {
        let reads_only = !known.tools.offers("edit");
        let own = Some(known.prompt).filter(|_| reads_only);
        let words = [Some(BACKGROUND.to_owned()), own];
        Profile {
            name: known.name,
            instructions: words.into_iter().flatten().collect::<Vec<_>>().join("\n\n"),
            reads_only,
        }
    };
    agent::Profile::built_in()
        .into_iter()
        .map(profile)
        .collect()
}

/// What tokens cost, by our own table: some agents say only how many there were.
fn prices(name: &str, models: Models) -> Arc<Prices> {
    let provider = match name {
        "claude" => "anthropic/",
        "codex" => "openai/",
        "gemini" => "gemini/",
        _ => "",
    };
    Arc::new(move |model: &ModelName, usage: Usage| -> Option<Cost> {
        let model = model.as_str();
        // An effort may be written behind it.
        let model = model.split('[').next().unwrap_or(model);
        let full = if model.contains('/') {
            model.to_owned()
        } else {
            format!("{provider}{model}")
        };
        models.cost_elsewhere(&full, usage)
    })
}

/// What the programs of an agent are started from.
struct ProgramParts {
    name: String,
    /// Whether it was launched without a sandbox.
    unsandboxed: bool,
    /// The settings of the launch.
    overrides: Overrides,
    /// The user's rules, for who judges by them.
    permissions: Arc<Mutex<Permissions>>,
    folder: PathBuf,
    home: PathBuf,
    tools: Arc<asyncagents_tools::Settings>,
    door: Arc<ChildTools>,
}

/// What the settings say about an agent: without a sandbox only if both they and its launch say so.
fn said_of(config: &Config, name: &str, unsandboxed: bool) -> AgentHostConfig {
    let said = config.agent_config.hosts.get(name).cloned();
    let mut said = said.unwrap_or_default();
    said.sandbox = Some(!unsandboxed || said.sandbox != Some(false));
    said
}

impl ProgramParts {
    /// What the files say now, which may be more or less than when the worker was started: a rule is in
    /// force from the next process on.
    async fn read_settings(&self) -> anyhow::Result<AgentHostConfig> {
        let (folder, overrides) = (self.folder.clone(), self.overrides.clone());
        let loaded = spawn_blocking(move || load_launched(Some(&folder), &overrides));
        let config = loaded.await??.config;
        *lock(&self.permissions) = config.agent_config.permissions.clone();
        Ok(said_of(&config, &self.name, self.unsandboxed))
    }
}

/// The protocol of whichever program is there when a process is started.
struct ChosenWire(ProgramParts);

#[async_trait]
impl Wire for ChosenWire {
    async fn start(
        &self,
        open: &OpenSession,
        events: EventSender,
    ) -> Result<Box<dyn Connection>, WireError> {
        let parts = &self.0;
        let said = parts.read_settings().await.map_err(|error| {
            let why = format!("{} cannot be started: {error:#}", parts.name);
            WireError::NotStarted(why)
        })?;
        let speaker = programs::speaker(&parts.name, &said, &parts.folder).await;
        let asks_to_read = lock(&parts.permissions).restrict_reading();
        let programs = Arc::new(AgentPrograms {
            name: parts.name.clone(),
            said: said.clone(),
            folder: parts.folder.clone(),
            home: parts.home.clone(),
            tools: parts.tools.clone(),
            speaker,
            asks_to_read,
            door: parts.door.clone(),
        });
        match speaker {
            Speaker::Acp => {
                let known = acp_settings(&parts.name, programs.place());
                let settings = AcpSettings {
                    mode: said.mode.or(known.mode),
                    read_only_mode: said.read_only_mode.or(known.read_only_mode),
                    ..known
                };
                Acp::new(settings, programs).start(open, events).await
            }
            Speaker::Claude => {
                let moved = env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
                let config = moved.unwrap_or_else(|| parts.home.join(".claude"));
                ClaudeStream::new(programs, config, asks_to_read)
                    .start(open, events)
                    .await
            }
        }
    }
}

/// Whether a setup says nothing but where: it is only read then.
pub(super) fn is_only_named(setup: &HostSetup) -> bool {
    setup.settings == LaunchSettings::default()
        && matches!(setup.host, HostRef::Engine { .. } | HostRef::Agent { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who can write a task's row chooses no folder for an agent of another vendor.
    #[test]
    fn a_caller_is_believed_about_its_folder_only_with_a_seal() -> anyhow::Result<()> {
        let launches = Launches::of_this_process()?;
        let agent = |folder: &str| HostRef::Agent {
            name: "codex".into(),
            folder: folder.into(),
            bridge: None,
            unsandboxed: false,
        };
        for host in [HostRef::engine, agent as fn(&str) -> HostRef] {
            let mut caller = launches.seal(host("/project"), r#"{"model":"a/b"}"#.to_owned());
            let place = CallersPlace::of(&caller, &launches)?;
            assert_eq!(place.folder, "/project");
            assert_eq!(place.json, r#"{"model":"a/b"}"#);
            caller.host = host("/home/me");
            assert!(CallersPlace::of(&caller, &launches).is_err());
        }
        Ok(())
    }
}
