//! `asyncagents setup agents`: the programs with which other agents are driven as children.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;

use crate::{
    adapters::{Adapter, AgentProgram, Node, Origin, Package, find_adapter, find_own_program},
    exit::{Exit, Failure},
    make_visible::shown_path,
    on_path::find_on_path,
    print,
};

/// Install what other agents are driven by, as children.
///
/// A task with --host claude, codex or gemini runs in that agent. A program that speaks the Agent
/// Client Protocol drives it: claude-agent-acp for Claude Code, codex-acp for Codex, Gemini CLI
/// itself. One that is on your PATH is used. If there is none, this installs one by npm, at a version
/// that asyncagents was tested with, in `agents` in asyncagents' data folder, where nothing else
/// looks for it. npm checks every download against a sum that this program brings along, and runs no
/// scripts of the packages. Node.js 22 or newer is needed. OpenCode and goose need nothing beside
/// themselves; they are not installed.
///
/// Without a name: for Claude Code and Codex, as far as they are on your PATH and what drives them is
/// not.
///
/// Exit code 0 on success, 1 if that could not be done or --check found something missing, 2 for an
/// agent that is not known or not installed by this.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents setup agents                      for Claude Code and Codex, if they are here
  asyncagents setup agents codex                for Codex
  asyncagents setup agents --check              what is found where?
  asyncagents setup agents codex --remove       take it away again")]
pub(in crate::commands) struct SetupAgentsArgs {
    /// For which agents: claude, codex, gemini; with --check also opencode, goose.
    #[arg(value_name = "NAME", value_parser = agent)]
    names: Vec<&'static AgentProgram>,

    /// Remove what was installed by this instead. Without a name, for all agents.
    #[arg(long, conflicts_with = "check")]
    remove: bool,

    /// Change nothing, and say what is found where, and what is missing. Without a name, for all
    /// agents; something is missing then if none can be driven.
    #[arg(long)]
    check: bool,
}

fn agent(name: &str) -> Result<&'static AgentProgram, String> {
    AgentProgram::named(name).ok_or_else(|| {
        let names = AgentProgram::ALL.iter().map(|agent| agent.name);
        let names = names.collect::<Vec<_>>().join(", ");
        format!("asyncagents knows {names}")
    })
}

pub(super) async fn run(args: &SetupAgentsArgs) -> Result<Exit, Failure> {
    let here = env::current_dir().map_err(|error| Failure::Machine(error.into()))?;
    if args.check {
        check(&args.names, &here).await
    } else if args.remove {
        remove(&args.names)
    } else {
        install(&args.names, &here).await
    }
}

async fn install(names: &[&'static AgentProgram], here: &Path) -> Result<Exit, Failure> {
    let wanted = if names.is_empty() {
        those_that_lack_something(here).await?
    } else {
        with_packages(names)?
    };
    if wanted.is_empty() {
        print::answer(
            "Nothing is missing. `asyncagents setup agents --check` says what is where.",
        )?;
        return Ok(Exit::Done);
    }
    // What cannot be run is not worth the download.
    let node = Node::find(here).await.map_err(Failure::Machine)?;
    print::answer(&format!(
        "Found Node.js {}: {}.",
        node.version,
        shown_path(&node.path)
    ))?;
    for (agent, package) in wanted {
        install_one(agent, &package, here).await?;
    }
    Ok(Exit::Done)
}

/// Claude Code and Codex, as far as they are here and what drives them is not.
async fn those_that_lack_something(
    here: &Path,
) -> Result<Vec<(&'static AgentProgram, Package)>, Failure> {
    let is_here = |agent: &&AgentProgram| {
        let own = agent.own.and_then(|own| find_on_path(own, here));
        own.is_some()
    };
    let here_are = Vec::from_iter(AgentProgram::ALL.iter().filter(is_here));
    if here_are.is_empty() {
        return Err(Failure::Machine(anyhow!(
            "there is no Claude Code and no Codex on the PATH; name what is to be installed, as in \
             `asyncagents setup agents claude`"
        )));
    }
    let lacks = here_are.into_iter().filter(|agent| {
        let has_own = agent
            .package
            .is_some_and(|package| package.installed().is_some());
        !has_own && find_on_path(agent.program, here).is_none()
    });
    with_packages(&lacks.collect::<Vec<_>>())
}

fn with_packages(
    agents: &[&'static AgentProgram],
) -> Result<Vec<(&'static AgentProgram, Package)>, Failure> {
    let with_package = |agent: &&'static AgentProgram| {
        let package = agent.package.map(|package| (*agent, package));
        package.ok_or_else(|| {
            let AgentProgram { shown, program, .. } = agent;
            Failure::Input(anyhow!(
                "asyncagents does not install {shown}, which needs nothing beside itself; install \
                 it so that `{program}` is on the PATH"
            ))
        })
    };
    agents.iter().map(with_package).collect()
}

async fn install_one(agent: &AgentProgram, package: &Package, here: &Path) -> Result<(), Failure> {
    let Package {
        program, version, ..
    } = package;
    let folder = package.folder().map_err(Failure::Machine)?;
    if package.installed().is_some() {
        let size = size_of(&folder);
        print::answer(&format!(
            "{program} {version} is already in {}, {size}.",
            shown_path(&folder)
        ))?;
        return Ok(());
    }
    print::answer(&format!(
        "npm installs {program} {version} for {}, about {} MB, in {}.",
        agent.shown,
        package.megabytes,
        shown_path(&folder)
    ))?;
    let progress = |line: &str| print::remark(&format!("npm: {line}\n"));
    let installed = package.install(here, &progress).await;
    installed.map_err(Failure::Machine)?;
    print::answer(&format!(
        "{program} {version} is installed, {}.",
        size_of(&folder)
    ))?;
    if let Some(other) = find_on_path(program, here) {
        print::remark(&format!(
            "{} is on the PATH, and is used instead.\n",
            shown_path(&other)
        ));
    }
    Ok(())
}

fn remove(names: &[&'static AgentProgram]) -> Result<Exit, Failure> {
    let all = AgentProgram::ALL.iter();
    let agents = if names.is_empty() {
        all.collect()
    } else {
        names.to_vec()
    };
    let mut removed = 0;
    for package in agents.iter().filter_map(|agent| agent.package) {
        for folder in package.remove().map_err(Failure::Machine)? {
            removed += 1;
            print::answer(&format!("{} is removed.", shown_path(&folder)))?;
        }
    }
    if removed == 0 {
        print::answer("There is nothing that asyncagents installed.")?;
    }
    Ok(Exit::Done)
}

async fn check(names: &[&'static AgentProgram], here: &Path) -> Result<Exit, Failure> {
    let all = AgentProgram::ALL.iter();
    let agents = if names.is_empty() {
        all.collect()
    } else {
        names.to_vec()
    };
    let mut missing = 0;
    for agent in &agents {
        let line = match find_adapter(agent, here).await {
            Ok(adapter) => found_line(&adapter),
            Err(why) => match find_own_program(agent, here) {
                Some(program) => format!(
                    "{}, on the PATH, without its adapter ({why:#})",
                    shown_path(&program)
                ),
                None => {
                    missing += 1;
                    format!("{why:#}")
                }
            },
        };
        print::answer(&format!("{}: {line}", agent.name))?;
    }
    if agents.iter().any(|agent| agent.package.is_some()) {
        let node = match Node::find(here).await {
            Ok(node) => format!("{}, {}", shown_path(&node.path), node.version),
            Err(why) => why.to_string(),
        };
        print::answer(&format!("Node.js: {node}"))?;
    }
    let is_well = if names.is_empty() {
        missing < agents.len()
    } else {
        missing == 0
    };
    if is_well {
        return Ok(Exit::Done);
    }
    let what = if names.is_empty() {
        "no agent can be driven"
    } else {
        "something is missing"
    };
    Err(Failure::Machine(anyhow!("{what}, as said above")))
}

fn found_line(adapter: &Adapter) -> String {
    let file = shown_path(&adapter.file);
    match adapter.origin {
        Origin::Path => format!("{file}, on the PATH"),
        Origin::Ours => format!("{file}, installed by asyncagents"),
    }
}

/// How big a folder is, for people.
fn size_of(folder: &Path) -> String {
    let megabytes = bytes_in(folder).unwrap_or_default().div_ceil(1_000_000);
    format!("{megabytes} MB")
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut open: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Of a link, what it takes itself.
            let about = entry.metadata()?;
            if about.is_dir() {
                open.push(entry.path());
            } else {
                bytes += about.len();
            }
        }
    }
    Ok(bytes)
}
