//! `asyncagents setup`: what is installed gets its plugin. `setup opencode`: the plugin goes where
//! OpenCode loads it, or away, or is checked; `claude-code` and `codex` in `agent_plugin`. The other
//! way round, `setup agents`: what other agents are driven by, as children.

mod agent_plugin;
mod agents;
mod check;
mod copies;
mod findings;
mod install;
mod json_entries;
mod loader;
mod mcp_client;
mod opencode2;
mod place;
mod plugin_file;
mod programs;
mod yaml_entry;

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use asyncagents_core::tool_set;
use asyncagents_hosts::opencode::version::{self, Generation};
use tempfile::TempDir;

pub(super) use self::findings::findings;
use self::{
    agent_plugin::{SetupClaudeCodeArgs, SetupCodexArgs},
    agents::SetupAgentsArgs,
    check::Check,
    install::Plan,
    mcp_client::{McpClient, SetupClientArgs},
    place::Surroundings,
    programs::Program,
};
use super::runtime::in_runtime;
use crate::{
    config::Config,
    exit::{Exit, Failure},
    make_visible::shown_path,
    print,
};

/// How long an OpenCode 2 that runs may take to load plugins that have changed. Before it begins it
/// answers for the old ones.
const RELOAD: Duration = Duration::from_millis(1_500);

/// Give other agents the tools for background agents.
///
/// Without a host: look for OpenCode (1 and 2, as `opencode` or `opencode2` on the PATH), Claude Code
/// (`claude`) and Codex (`codex`), install the plugin of each for all your projects, check that it is
/// there, and say what to restart. Other clients of MCP servers are set up by name.
///
/// Exit code 0 on success, 1 if none of them was found or something is missing.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_subcommand = true,
    subcommand_value_name = "HOST",
    subcommand_help_heading = "Hosts",
    after_help = "Examples:\n  asyncagents setup\n  asyncagents setup --check"
)]
pub(super) struct SetupArgs {
    /// Change nothing, and check what is found: like `asyncagents setup HOST --check`.
    #[arg(long)]
    check: bool,

    #[command(subcommand)]
    host: Option<SetupHost>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SetupHost {
    Opencode(SetupOpencodeArgs),
    ClaudeCode(SetupClaudeCodeArgs),
    Codex(SetupCodexArgs),
    Agents(SetupAgentsArgs),
    /// Enter the tools into Cursor's list of MCP servers.
    Cursor(SetupClientArgs),
    /// Enter the tools into VS Code's list of MCP servers.
    Vscode(SetupClientArgs),
    /// Enter the tools into Zed's list of MCP servers.
    Zed(SetupClientArgs),
    /// Enter the tools into Gemini CLI's list of MCP servers.
    Gemini(SetupClientArgs),
    /// Enter the tools into goose's list of extensions.
    Goose(SetupClientArgs),
}

/// Install the plugin that gives OpenCode the tools for background agents.
///
/// The plugin is one file for OpenCode 1 and 2, asyncagents.js, in the folder `plugins` of
/// OpenCode's configuration, and OpenCode loads what is there by itself: no other file is
/// changed. It names this program by its path, so install it again when the program has moved.
/// Installing again also updates it, and removes other copies that would be loaded in this
/// folder. A file that asyncagents did not write is left alone.
///
/// Exit code 0 on success, 1 if that could not be done or --check found something missing, 2 if
/// asyncagents did not write the file.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents setup opencode                   for all your projects
  asyncagents setup opencode --project         for this folder only
  asyncagents setup opencode --check           does OpenCode see the tools?
  asyncagents setup opencode --remove          take it away again")]
pub(super) struct SetupOpencodeArgs {
    /// Install for you, in all projects: in OPENCODE_CONFIG_DIR if that is set, else in `opencode`
    /// in your configuration folder. This is the default.
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Install for this folder and those below: in `.opencode` here.
    #[arg(long)]
    project: bool,

    /// Remove the plugin instead.
    #[arg(long, conflicts_with = "check")]
    remove: bool,

    /// Change nothing, and check: is OpenCode's version supported, are the plugin and its program
    /// there, once, and does OpenCode see the tools? Without --user and --project, check every
    /// place that OpenCode loads plugins from. OpenCode is started in this folder, where it runs
    /// the folder's plugins as always; with --user in an empty one. A background server of
    /// OpenCode 2 that runs is asked instead.
    #[arg(long)]
    check: bool,

    /// With --check: OpenCode's program [default: ASYNCAGENTS_OPENCODE_BIN, or `opencode` and
    /// `opencode2` on the PATH].
    #[arg(long, value_name = "PATH", requires = "check")]
    opencode_bin: Option<PathBuf>,
}

pub(super) fn run(config: &Config, args: &SetupArgs) -> Result<Exit, Failure> {
    let Some(host) = &args.host else {
        return in_runtime(whatever_is_installed(config, args.check));
    };
    if args.check {
        return Err(Failure::Input(anyhow!(
            "--check goes behind the host, as in `asyncagents setup opencode --check`"
        )));
    }
    match host {
        SetupHost::Opencode(args) => opencode(config, args),
        SetupHost::ClaudeCode(args) => in_runtime(agent_plugin::claude_code(config, args)),
        SetupHost::Codex(args) => in_runtime(agent_plugin::codex(config, args)),
        SetupHost::Agents(args) => in_runtime(agents::run(args)),
        SetupHost::Cursor(args) => mcp_client::run(McpClient::Cursor, args),
        SetupHost::Vscode(args) => mcp_client::run(McpClient::VsCode, args),
        SetupHost::Zed(args) => mcp_client::run(McpClient::Zed, args),
        SetupHost::Gemini(args) => mcp_client::run(McpClient::Gemini, args),
        SetupHost::Goose(args) => mcp_client::run(McpClient::Goose, args),
    }
}

/// Finds what is installed, gives it the plugin, and checks that. What fails in one is no reason to
/// leave out the next.
async fn whatever_is_installed(config: &Config, only_check: bool) -> Result<Exit, Failure> {
    let around = Surroundings::look()?;
    let (programs, problems) = programs::installed(&around.here).await;
    for problem in problems {
        print::remark(&format!("{problem}\n"));
    }
    let (programs, unknown): (Vec<Program>, Vec<Program>) = programs
        .into_iter()
        .partition(|program| program.generation.is_ok());
    for program in &unknown {
        let why = program.generation.as_ref().err();
        let why = why.map(String::as_str).unwrap_or_default();
        print::remark(&format!("{}: {why}\n", shown_path(&program.path)));
    }
    let agents = agent_plugin::installed(&around.here).await;
    if programs.is_empty() && agents.is_empty() {
        return Err(Failure::Machine(anyhow!(
            "there is no OpenCode, Claude Code or Codex here that asyncagents works with; install one \
             of them, or install the plugin for an OpenCode that is not on the PATH with `asyncagents \
             setup opencode`"
        )));
    }
    let mut done = Ok(Exit::Done);
    if !programs.is_empty() {
        let of_opencode = if only_check {
            check_opencode(config, &around, &programs).await
        } else {
            install_opencode(config, &around, &programs).await
        };
        done = first_failure(done, of_opencode);
    }
    for program in agents {
        let of_agent = if only_check {
            agent_plugin::check(config, program).await
        } else {
            agent_plugin::install(config, program).await
        };
        done = first_failure(done, of_agent);
    }
    if !only_check {
        mcp_client::say_offers();
    }
    done
}

/// The first failure; one that comes after it is only said.
fn first_failure(
    before: Result<Exit, Failure>,
    now: Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    match (before, now) {
        (Err(before), Err(Failure::Machine(now) | Failure::Input(now))) => {
            print::remark(&format!("asyncagents: {now:#}\n"));
            Err(before)
        }
        (Err(failure), _) | (Ok(_), Err(failure)) => Err(failure),
        (Ok(_), Ok(now)) => Ok(now),
    }
}

async fn check_opencode(
    config: &Config,
    around: &Surroundings,
    programs: &[Program],
) -> Result<Exit, Failure> {
    let check = Check {
        around,
        places: &around.all(),
        folder: &around.here,
        tools: &tool_set::specs_with_skill(&config.prefix, None),
    };
    check.run(programs).await
}

async fn install_opencode(
    config: &Config,
    around: &Surroundings,
    programs: &[Program],
) -> Result<Exit, Failure> {
    for Program { path, version, .. } in programs {
        let version = version::in_line(version);
        print::answer(&format!("Found OpenCode {version}: {}.", shown_path(path)))?;
    }
    let plan = Plan::new(around, around.user()?)?;
    print::answer(&format!(
        "The plugin goes to {}. Other copies of it that OpenCode would load here are removed; \
         nothing else is changed.",
        shown_path(&plan.place().file())
    ))?;
    let tools = tool_set::specs_with_skill(&config.prefix, None);
    let changed = plan.install(&tools)?;
    if changed {
        tokio::time::sleep(RELOAD).await;
    }
    let done = check_opencode(config, around, programs).await?;
    if changed {
        let has = |wanted| {
            let mut generations = programs.iter().map(|program| &program.generation);
            generations.any(|generation| *generation == Ok(wanted))
        };
        install::say_next(has(Generation::One), has(Generation::Two));
    }
    Ok(done)
}

fn opencode(config: &Config, args: &SetupOpencodeArgs) -> Result<Exit, Failure> {
    let around = Surroundings::look()?;
    let tools = tool_set::specs_with_skill(&config.prefix, None);
    let place = || {
        if args.project {
            Ok(around.project())
        } else {
            around.user()
        }
    };
    if args.remove {
        return install::remove(&place()?);
    }
    if !args.check {
        if Plan::new(&around, place()?)?.install(&tools)? {
            install::say_next(true, true);
            install::say_check();
        }
        return Ok(Exit::Done);
    }
    let places = if args.user || args.project {
        vec![place()?]
    } else {
        around.all()
    };
    // Among a project's plugins only where the project is looked at, too.
    let elsewhere = args.user.then(tempfile::tempdir).transpose();
    let elsewhere = elsewhere.map_err(|error| Failure::Machine(error.into()))?;
    let elsewhere = elsewhere.as_ref().map(TempDir::path);
    let check = Check {
        around: &around,
        places: &places,
        folder: elsewhere.unwrap_or(&around.here),
        tools: &tools,
    };
    in_runtime(async {
        let named = args.opencode_bin.as_deref();
        let programs = programs::programs(named, &around.here).await?;
        check.run(&programs).await
    })
}
