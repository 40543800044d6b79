//! Claude Code and Codex, asked by their own commands.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use tokio::{process::Command, time::timeout};

use crate::{
    exit::Failure, make_visible::shown_path, on_path::find_on_path, other_agents::OtherAgent,
    print, version_line::version_line,
};

/// How the plugin is called by both.
pub(super) const PLUGIN: &str = "asyncagents@asyncagents";
pub(super) const MARKETPLACE: &str = "asyncagents";

/// How long one of their commands may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where the plugin is installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    Project,
}

impl Scope {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// An agent that is installed here.
pub(in super::super) struct AgentProgram {
    pub(super) agent: OtherAgent,
    pub(super) path: PathBuf,
    pub(super) version: String,
}

/// The plugin as an agent knows it.
pub(super) struct InstalledPlugin {
    pub(super) is_enabled: bool,
    /// The folder that it was installed from.
    pub(super) from: Option<PathBuf>,
}

impl AgentProgram {
    /// The program on the PATH, if there is one.
    pub(in super::super) async fn find(
        agent: OtherAgent,
        here: &Path,
    ) -> Option<anyhow::Result<Self>> {
        let path = find_on_path(agent.program(), here)?;
        let version = version_line(&path).await;
        Some(version.map(|version| Self {
            agent,
            path,
            version,
        }))
    }

    /// The program on the PATH, or why there is none.
    pub(super) async fn get(agent: OtherAgent, here: &Path) -> Result<Self, Failure> {
        let found = Self::find(agent, here).await.unwrap_or_else(|| {
            let (name, program) = (agent.shown(), agent.program());
            Err(anyhow!(
                "there is no `{program}` on the PATH; install {name} first"
            ))
        });
        found.map_err(Failure::Machine)
    }

    /// Runs one of its commands; returns what it prints. It says itself why it did not do something.
    pub(super) async fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.path);
        command.args(args).stdin(Stdio::null()).kill_on_drop(true);
        let said = format!("`{} {}`", self.agent.program(), args.join(" "));
        let output = timeout(TIMEOUT, command.output()).await;
        let output = output.map_err(|_| anyhow!("{said} does not end"))?;
        let output =
            output.with_context(|| format!("{} cannot be started", shown_path(&self.path)))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let printed = text(&output.stderr) + &text(&output.stdout);
        let is_reason = |line: &&str| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("WARNING")
        };
        let why = printed
            .lines()
            .find(is_reason)
            .unwrap_or("it does not say why");
        let why: String = why
            .trim()
            .chars()
            .filter(print::harmless)
            .take(300)
            .collect();
        bail!("{said} failed: {why}")
    }

    /// The plugin, if it is installed.
    pub(super) async fn installed(
        &self,
        scope: Option<Scope>,
    ) -> anyhow::Result<Option<InstalledPlugin>> {
        let listed = self.run(&["plugin", "list", "--json"]).await?;
        let listed: Value = serde_json::from_str(&listed)
            .with_context(|| format!("{} does not list its plugins", self.agent.shown()))?;
        let plugins = match self.agent {
            OtherAgent::ClaudeCode => listed.as_array(),
            OtherAgent::Codex => listed["installed"].as_array(),
        };
        let is_ours = |plugin: &&Value| {
            let name = match self.agent {
                OtherAgent::ClaudeCode => &plugin["id"],
                OtherAgent::Codex => &plugin["pluginId"],
            };
            let fits =
                |scope: Scope| self.agent == OtherAgent::Codex || plugin["scope"] == scope.word();
            name == PLUGIN && scope.is_none_or(fits)
        };
        let plugin = plugins.into_iter().flatten().find(is_ours);
        Ok(plugin.map(|plugin| {
            let from = match self.agent {
                OtherAgent::ClaudeCode => plugin["readFromFolder"].as_str(),
                OtherAgent::Codex => plugin["source"]["path"].as_str(),
            };
            InstalledPlugin {
                is_enabled: plugin["enabled"] == true,
                from: from.map(PathBuf::from),
            }
        }))
    }
}
