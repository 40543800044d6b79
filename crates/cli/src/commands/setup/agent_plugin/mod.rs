//! `asyncagents setup claude-code` and `setup codex`: the plugin for both, by their own commands.

mod files;
mod program;

use std::{env, path::Path};

use anyhow::anyhow;
use asyncagents_models::KeyState;

pub(super) use self::program::AgentProgram;
use self::{
    files::{PluginFolder, Rendering, is_same},
    program::{MARKETPLACE, PLUGIN, Scope},
};
use crate::{
    config::Config,
    exit::{Exit, Failure},
    hosts,
    make_visible::shown_path,
    other_agents::OtherAgent,
    print,
    version_line::version_line,
};

/// Install the plugin that gives Claude Code the tools for background agents.
///
/// The plugin has the tools (an MCP server), hooks that say which conversation calls and that tell it
/// when a task has ended, also when it is idle, and a skill that teaches when to delegate. Its files
/// are written to `plugins/claude-code` in asyncagents' data folder, and Claude Code's own commands
/// install it from there: `claude plugin marketplace add`, `claude plugin install`. It names this
/// program by its path, so install it again when the program has moved.
///
/// The hook approves calls of our tools, but for `answer`, which Claude Code asks you about.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents setup claude-code                 for all your projects
  asyncagents setup claude-code --project       for this folder only
  asyncagents setup claude-code --check         is all there, and does the server answer?
  asyncagents setup claude-code --remove        take it away again")]
pub(in crate::commands) struct SetupClaudeCodeArgs {
    /// Install for you, in all projects. This is the default.
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Install for this folder: its `.claude/settings.json` names the plugin, and a folder on this
    /// machine.
    #[arg(long)]
    project: bool,

    /// Remove the plugin instead.
    #[arg(long, conflicts_with = "check")]
    remove: bool,

    /// Change nothing, and check: is the plugin installed, up to date and enabled, and does Claude
    /// Code reach its server?
    #[arg(long)]
    check: bool,
}

/// Install the plugin that gives Codex the tools for background agents.
///
/// The plugin has the tools (an MCP server), hooks that tell a turn under way what is new, and a skill
/// that teaches when to delegate. Its files are written to `plugins/codex` in asyncagents' data
/// folder, and Codex's own commands install it from there: `codex plugin marketplace add`, `codex
/// plugin add`. It names this program by its path, so install it again when the program has moved.
///
/// Codex asks before each call of a tool that may change something, and refuses it in `codex exec`. The
/// plugin therefore sets the approval mode of its server to `approve`, but for `answer`; --ask leaves
/// that out. Codex gives servers few variables: the plugin names those of the keys that asyncagents
/// knows. Codex asks you once to trust the hooks; without them an idle thread is told all the same.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents setup codex                       for all your projects
  asyncagents setup codex --ask                 Codex asks before each call
  asyncagents setup codex --check               is all there?
  asyncagents setup codex --remove              take it away again")]
pub(in crate::commands) struct SetupCodexArgs {
    /// Install for you, in all projects. This is the default, and all that Codex knows.
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Refused: Codex installs plugins for its user only.
    #[arg(long)]
    project: bool,

    /// Remove the plugin instead.
    #[arg(long, conflicts_with = "check")]
    remove: bool,

    /// Change nothing, and check: is the plugin installed, up to date and enabled, and is its program
    /// there?
    #[arg(long)]
    check: bool,

    /// Let Codex ask before each call.
    #[arg(long, conflicts_with_all = ["remove", "check"])]
    ask: bool,
}

pub(super) async fn claude_code(
    config: &Config,
    args: &SetupClaudeCodeArgs,
) -> Result<Exit, Failure> {
    let scope = if args.project {
        Scope::Project
    } else {
        Scope::User
    };
    let setup = Setup::new(config, OtherAgent::ClaudeCode, true).await?;
    match (args.remove, args.check) {
        (true, _) => setup.remove(scope).await,
        (_, true) => {
            let scope = (args.project || args.user).then_some(scope);
            setup.check(scope).await
        }
        _ => setup.install(scope).await,
    }
}

pub(super) async fn codex(config: &Config, args: &SetupCodexArgs) -> Result<Exit, Failure> {
    if args.project {
        return Err(Failure::Input(anyhow!(
            "Codex installs plugins for its user, not for a folder; leave out --project"
        )));
    }
    let setup = Setup::new(config, OtherAgent::Codex, !args.ask).await?;
    match (args.remove, args.check) {
        (true, _) => setup.remove(Scope::User).await,
        (_, true) => setup.check(None).await,
        _ => setup.install(Scope::User).await,
    }
}

/// Installs the plugin for an agent that was found, and checks it.
pub(super) async fn install(config: &Config, program: AgentProgram) -> Result<Exit, Failure> {
    Setup::of(config, program, true)?.install(Scope::User).await
}

/// Checks the plugin of an agent that was found.
pub(super) async fn check(config: &Config, program: AgentProgram) -> Result<Exit, Failure> {
    Setup::of(config, program, true)?.check(None).await
}

struct Setup {
    program: AgentProgram,
    folder: PluginFolder,
    rendering: Rendering,
}

impl Setup {
    async fn new(config: &Config, agent: OtherAgent, approved: bool) -> Result<Self, Failure> {
        let here = env::current_dir().map_err(|error| Failure::Machine(error.into()))?;
        let program = AgentProgram::get(agent, &here).await?;
        Self::of(config, program, approved)
    }

    fn of(config: &Config, program: AgentProgram, approved: bool) -> Result<Self, Failure> {
        let this = env::current_exe().map_err(|error| Failure::Machine(error.into()))?;
        let name = this.to_str().ok_or_else(|| {
            Failure::Machine(anyhow!(
                "{}: the name of this program is not text",
                shown_path(&this)
            ))
        })?;
        Ok(Self {
            folder: PluginFolder::of(program.agent)?,
            rendering: Rendering {
                program: name.to_owned(),
                variables: variables(config),
                approved,
            },
            program,
        })
    }

    async fn install(&self, scope: Scope) -> Result<Exit, Failure> {
        let agent = self.program.agent;
        self.say_found()?;
        print::answer(&format!(
            "The plugin's files go to {}; {} installs it from there.",
            shown_path(&self.folder.path),
            agent.shown()
        ))?;
        if agent == OtherAgent::Codex && self.rendering.approved {
            print::answer(
                "It sets the approval mode of its server to `approve`, so that Codex does not ask before \
                 each call (`answer` still asks); `asyncagents setup codex --ask` leaves that out.",
            )?;
        }
        let was_current = self.folder.is_current(&self.rendering);
        self.folder.write(&self.rendering)?;
        let folder = self.folder.path.to_string_lossy().into_owned();
        let add = ["plugin", "marketplace", "add", &folder];
        self.program.run(&add).await.map_err(Failure::Machine)?;
        let install: &[&str] = match agent {
            OtherAgent::ClaudeCode => &["plugin", "install", PLUGIN, "--scope", scope.word()],
            OtherAgent::Codex => &["plugin", "add", PLUGIN],
        };
        self.program.run(install).await.map_err(Failure::Machine)?;
        let done = self.check(Some(scope)).await?;
        if !was_current {
            print::answer(match agent {
                OtherAgent::ClaudeCode => "Restart Claude Code, or type /reload-plugins there.",
                OtherAgent::Codex => {
                    "Restart Codex, and trust the plugin's hooks when it asks. If its daemon runs: `codex \
                     app-server daemon restart`."
                }
            })?;
        }
        Ok(done)
    }

    async fn remove(&self, scope: Scope) -> Result<Exit, Failure> {
        let agent = self.program.agent;
        let installed = self.program.installed(Some(scope)).await;
        if installed.map_err(Failure::Machine)?.is_some() {
            let uninstall: &[&str] = match agent {
                OtherAgent::ClaudeCode => &["plugin", "uninstall", PLUGIN, "--scope", scope.word()],
                OtherAgent::Codex => &["plugin", "remove", PLUGIN],
            };
            self.program
                .run(uninstall)
                .await
                .map_err(Failure::Machine)?;
            print::answer(&format!("Removed the plugin from {}.", agent.shown()))?;
        } else {
            print::answer(&format!("{} does not have the plugin.", agent.shown()))?;
        }
        let left = self
            .program
            .installed(None)
            .await
            .map_err(Failure::Machine)?;
        if left.is_none() && self.folder.path.exists() {
            // It may have been taken away by hand.
            let _ = self
                .program
                .run(&["plugin", "marketplace", "remove", MARKETPLACE])
                .await;
            self.folder.remove()?;
        }
        Ok(Exit::Done)
    }

    /// Prints what was found; an error says what to do.
    async fn check(&self, scope: Option<Scope>) -> Result<Exit, Failure> {
        let agent = self.program.agent;
        let (name, command) = (
            agent.shown(),
            format!("`asyncagents setup {}`", agent.name()),
        );
        let wrong = |why: String| Err(Failure::Machine(anyhow!("{why}; {command} installs it")));
        let installed = self
            .program
            .installed(scope)
            .await
            .map_err(Failure::Machine)?;
        let Some(plugin) = installed else {
            return wrong(format!("{name} does not have the plugin"));
        };
        if !plugin.is_enabled {
            return Err(Failure::Machine(anyhow!(
                "{name} has the plugin, but it is disabled; enable it with /plugin there"
            )));
        }
        if let Some(from) = plugin
            .from
            .filter(|from| !is_same(from, &self.folder.plugin()))
        {
            print::answer(&format!("plugin: installed from {}", shown_path(&from)))?;
            print::answer(&format!(
                "It looks for `asyncagents` on the PATH. {command} uses this program after `{} plugin \
                 marketplace remove {MARKETPLACE}`.",
                agent.program()
            ))?;
        } else {
            self.check_program(&command).await?;
        }
        if agent == OtherAgent::ClaudeCode {
            self.check_server().await?;
        }
        print::answer(&format!("{name} has the plugin."))?;
        Ok(Exit::Done)
    }

    async fn check_program(&self, command: &str) -> Result<(), Failure> {
        let asked = Rendering {
            approved: false,
            ..self.rendering.clone()
        };
        let is_current = self.folder.is_current(&self.rendering) || self.folder.is_current(&asked);
        let age = if is_current {
            "up to date"
        } else {
            "of another version, or changed by hand"
        };
        print::answer(&format!(
            "plugin: {}, {age}",
            shown_path(&self.folder.plugin())
        ))?;
        let missing =
            |why: String| Failure::Machine(anyhow!("{why}; {command} names this program"));
        let program = self.folder.program();
        let program = program.ok_or_else(|| missing("the plugin names no program".to_owned()))?;
        let version = version_line(&program).await;
        let version = version.map_err(|error| missing(format!("{error:#}")))?;
        print::answer(&format!("program: {}, {version}", shown_path(&program)))?;
        Ok(())
    }

    /// Claude Code starts the server and says whether it answers.
    async fn check_server(&self) -> Result<(), Failure> {
        let listed = self
            .program
            .run(&["mcp", "list"])
            .await
            .map_err(Failure::Machine)?;
        let line = listed
            .lines()
            .find(|line| line.starts_with("plugin:asyncagents:"));
        match line {
            Some(line) if line.contains("Connected") => {
                print::answer("server: reached by Claude Code")?
            }
            Some(line) => {
                let line: String = line.chars().filter(print::harmless).take(300).collect();
                return Err(Failure::Machine(anyhow!(
                    "Claude Code does not reach the server: {line}"
                )));
            }
            None => {
                return Err(Failure::Machine(anyhow!(
                    "Claude Code does not know the plugin's server; restart it, or look at `claude mcp list`"
                )));
            }
        }
        Ok(())
    }

    fn say_found(&self) -> Result<(), Failure> {
        let AgentProgram {
            agent,
            path,
            version,
        } = &self.program;
        let (name, path) = (agent.shown(), shown_path(path));
        let mut words = version.split_whitespace();
        let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = number.unwrap_or(version);
        print::answer(&format!("Found {name} {version}: {path}."))?;
        Ok(())
    }
}

/// The variables that the program needs where few are passed on: those of keys, and its settings that
/// are set now. Only their names are written.
fn variables(config: &Config) -> Vec<String> {
    let models = hosts::models(&config.agent_config);
    let overview = models.map(|models| models.overview()).unwrap_or_default();
    let keys = overview
        .into_iter()
        .filter_map(|provider| match provider.key {
            KeyState::Variable { name, .. } => Some(name),
            _ => None,
        });
    let set = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = set.filter(|name| name.starts_with("ASYNCAGENTS_"));
    let mut all: Vec<String> = keys.chain(ours).collect();
    all.sort();
    all.dedup();
    all
}

/// The agents that are installed here.
pub(super) async fn installed(here: &Path) -> Vec<AgentProgram> {
    let mut found = Vec::new();
    for (_, agent) in OtherAgent::ALL {
        match AgentProgram::find(*agent, here).await {
            Some(Ok(program)) => found.push(program),
            Some(Err(error)) => print::remark(&format!("{error:#}\n")),
            None => {}
        }
    }
    found
}
