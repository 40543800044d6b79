//! Whose call it is: found out for each call, for one process may serve several conversations.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::anyhow;
use async_trait::async_trait;
use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    port::Host,
    skill::SkillContext,
    tool_set::ToolRequest,
};
use asyncagents_hosts::claude_code::{CallHints, SessionName, find_caller};
use asyncagents_runtime::{Manager, Ready, Skills, ToolDoor};
use asyncagents_server::mcp::{
    CallerSource, ServedSkill, SkillSource, ToolCaller, UserSkill, WhoCalls,
};
use uuid::Uuid;

use super::super::CommandContext;
use crate::{
    compose::App,
    config::{AgentConfig, Config},
    exit::Failure,
    hosts::{KnownHosts, models},
    other_agents::OtherAgent,
    worker_process,
};

/// The session that Claude Code had when it started this process.
const STARTED_WITH: &str = "CLAUDE_CODE_SESSION_ID";

/// Where the skill is that teaches when and how to delegate.
const OWN_SKILL: &str = "asyncagents/delegate";
const DELEGATE: &str = include_str!("../../../../../plugins/asyncagents/skills/delegate/SKILL.md");

/// Knows whose call it is, and has the tools for each.
pub(super) struct Who {
    config: Config,
    flags: Vec<(String, String)>,
    manager: Manager,
    hosts: Arc<KnownHosts>,
    setup: HostSetup,
    skills: Skills,
    folder: PathBuf,
    host: Option<OtherAgent>,
    /// The session of a client that does not say which one calls.
    session: SessionId,
    is_named: bool,
}

impl Who {
    pub(super) fn new(
        context: &CommandContext,
        app: &App,
        named: Option<&str>,
        host: Option<OtherAgent>,
    ) -> Result<Self, Failure> {
        let folder = env::current_dir().map_err(|error| Failure::Machine(error.into()))?;
        let name = match named.map(str::trim) {
            Some("") => return Err(Failure::Input(anyhow!("--session: is empty"))),
            Some(name) => name.to_owned(),
            None => Uuid::new_v4().simple().to_string(),
        };
        // In a namespace of its own, so that no client can speak for another agent's session.
        let session: SessionId = format!("mcp/{name}").as_str().into();
        let mut settings = context.launch_settings(None);
        let unanswered = "permissions.unanswered".to_owned();
        // The agent, or its user, can answer what a task asks.
        if context.config.agent_config.unanswered.is_none() {
            settings.insert(unanswered, "wait".to_owned());
        }
        // Which model is usual depends on the keys of this process, not on those of a worker.
        let agents = &context.config.agent_config;
        if agents.model == "auto"
            && let Some(model) = usual_model(agents)
        {
            settings.insert("model".to_owned(), model);
        }
        let setup = app.hosts.named(&context.config.host, &settings);
        let skills = app.hosts.skills_in(&folder, &context.overrides);
        Ok(Self {
            config: context.config.clone(),
            flags: context.flags.clone(),
            manager: app.manager.clone(),
            hosts: app.hosts.clone(),
            setup: setup.map_err(Failure::Input)?,
            skills: skills.map_err(Failure::Input)?,
            folder,
            host,
            session,
            is_named: named.is_some(),
        })
    }

    fn door(&self, outside: HostRef) -> Arc<ToolDoor> {
        let wording = &self.manager.settings().wording;
        let door = ToolDoor::new(&self.manager, self.setup.clone());
        let door = door.with_skills(self.skills.clone());
        Arc::new(door.for_sessions_of(outside, wording))
    }

    async fn of_claude_code(
        &self,
        tool_use: String,
        source: &CallerSource,
    ) -> Result<ToolCaller, String> {
        let no_folder = || "Claude Code's folder is not known: HOME is not set".to_owned();
        let config = OtherAgent::ClaudeCode.folder().ok_or_else(no_folder)?;
        let host = OtherAgent::ClaudeCode.host().ok_or_else(no_folder)?;
        let named = |session: &str, agent: Option<&str>| SessionName::new(session, agent);
        let handed_over = source.session.as_deref();
        let environment = env::var(STARTED_WITH).ok();
        let hints = CallHints {
            session: handed_over.and_then(|session| named(session, source.agent.as_deref())),
            config,
            folder: self.folder.clone(),
            environment: environment.and_then(|session| named(&session, None)),
        };
        let calling = find_caller(hints, &tool_use).await.ok_or_else(|| {
            "it cannot be found out which conversation calls: no transcript of Claude Code has this \
             call"
                .to_owned()
        })?;
        if !calling.is_certain {
            tracing::warn!(
                tool_use,
                "no transcript has this call; the environment is believed"
            );
        }
        Ok(ToolCaller {
            session: calling.session.id(),
            door: self.door(host),
            call: Some(tool_use).filter(|_| calling.is_certain),
            is_told_by_answers: true,
            answers_arrive: false,
            has_history: true,
            remark: None,
        })
    }

    fn of_codex(&self, thread: &str, call: Option<String>) -> Result<ToolCaller, String> {
        let no_folder = || "Codex's home folder is not known: HOME is not set".to_owned();
        let host = OtherAgent::Codex.host().ok_or_else(no_folder)?;
        // Sessions of other kinds have names that are no IDs.
        let name = SessionName::new(thread, None);
        let name = name.ok_or_else(|| "Codex named a thread that is no ID".to_owned())?;
        Ok(ToolCaller {
            session: name.id(),
            door: self.door(host),
            call,
            is_told_by_answers: true,
            answers_arrive: false,
            has_history: true,
            remark: None,
        })
    }

    fn of_connection(&self) -> ToolCaller {
        let told = "You are told of ends with the answer to your next call; nothing wakes you.";
        let remark = if self.is_named {
            told.to_owned()
        } else {
            format!(
                "Your tasks belong to this connection, and are not seen by the next one: start \
                 `asyncagents mcp --session NAME` to keep them. {told}"
            )
        };
        ToolCaller {
            session: self.session.clone(),
            door: self.door(HostRef::McpClient),
            call: None,
            is_told_by_answers: true,
            answers_arrive: true,
            has_history: false,
            remark: Some(remark),
        }
    }
}

/// The model of the first provider that this process has a key for.
fn usual_model(agents: &AgentConfig) -> Option<String> {
    models(agents).ok()?.default_model().ok()
}

#[async_trait]
impl WhoCalls for Who {
    async fn who(&self, source: CallerSource) -> Result<ToolCaller, String> {
        let tool_use = source.tool_use.clone();
        match (tool_use, &source.thread, self.host) {
            (Some(tool_use), _, _) => self.of_claude_code(tool_use, &source).await,
            (None, Some(thread), _) => self.of_codex(thread, source.call),
            (None, None, Some(OtherAgent::ClaudeCode)) => {
                Err("Claude Code did not say which conversation calls".to_owned())
            }
            (None, None, Some(OtherAgent::Codex)) => {
                Err("Codex did not say which thread calls".to_owned())
            }
            (None, None, None) => Ok(self.of_connection()),
        }
    }

    async fn check(&self, request: &ToolRequest) -> Result<(), String> {
        self.hosts
            .project_in(Path::new(&self.folder))
            .map_err(|error| format!("{error:#}"))?;
        let ToolRequest::Task(args) = request else {
            return Ok(());
        };
        // Another agent has a model of its own.
        let is_checked_later = args.resume.is_some() || args.model.is_some() || args.host.is_some();
        if is_checked_later || !matches!(self.setup.host, HostRef::Engine { .. }) {
            return Ok(());
        }
        let engine = self.hosts.engine(&self.setup);
        let engine = engine.map_err(|error| error.to_string())?;
        let known = engine.agents().await.unwrap_or_default();
        let agent = args.agent.as_str().into();
        // An agent that is not known is refused at the launch, which says which there are.
        if !known.contains(&agent) {
            return Ok(());
        }
        engine.check(&agent, None).map_err(|error| {
            let hint = match self.host {
                Some(OtherAgent::Codex) => {
                    ". Codex passes on only variables that its configuration names; `asyncagents setup \
                     codex` names those of the keys, so set it where Codex is started"
                }
                Some(OtherAgent::ClaudeCode) | None => "",
            };
            format!("{error}{hint}")
        })
    }

    fn disclosed(&self) -> Option<String> {
        self.skills.disclosed()
    }

    fn user_skills(&self) -> Vec<UserSkill> {
        let listed = self.skills.for_user().into_iter();
        let skills = listed.map(|listed| {
            let manifest = &listed.skill.manifest;
            UserSkill {
                name: manifest.name.clone(),
                title: manifest.title.clone(),
                description: manifest.description.clone(),
                hint: manifest.argument_hint.clone(),
            }
        });
        skills.collect()
    }

    async fn skill_text(&self, name: &str, arguments: &str) -> Result<String, String> {
        let text = self.skills.text_for_user(name, arguments, &self.session);
        let Ready {
            skill,
            folder,
            body,
        } = text.await.map_err(|trouble| trouble.why)?;
        let manifest = &skill.manifest;
        let runs_as_task = manifest.context == SkillContext::Isolated && manifest.for_model;
        Ok(if runs_as_task {
            let name = &manifest.name;
            format!(
                "Call the tool `skill` of asyncagents with name={name:?}, arguments={arguments:?}."
            )
        } else {
            let folder = folder.display();
            format!(
                "{body}\n\nThe files of this skill are in {folder}; its relative paths begin there."
            )
        })
    }

    fn served_skills(&self) -> Vec<ServedSkill> {
        let found = self.skills.for_clients().into_iter();
        let served = found.map(|listed| ServedSkill {
            path: listed.skill.manifest.name.clone(),
            source: SkillSource::Folder(listed),
        });
        let own = ServedSkill {
            path: OWN_SKILL.to_owned(),
            source: SkillSource::Text(DELEGATE),
        };
        served.chain([own]).collect()
    }

    async fn agents(&self) -> Vec<String> {
        if !matches!(self.setup.host, HostRef::Engine { .. }) {
            return Vec::new();
        }
        let Ok(engine) = self.hosts.engine(&self.setup) else {
            return Vec::new();
        };
        let agents = engine.agents().await.unwrap_or_default();
        agents.iter().map(|agent| format!("- {agent}")).collect()
    }

    async fn changed(&self) {
        worker_process::ensure(&self.config, &self.flags, &self.manager).await;
    }
}
