//! `asyncagents setup`: what is installed gets its plugin. `setup opencode`: the plugin goes where
//! OpenCode loads it, or away, or is checked.

mod check;
mod copies;
mod findings;
mod install;
mod loader;
mod opencode2;
mod place;
mod plugin_file;
mod programs;

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use asyncagents_core::tool_set;
use asyncagents_hosts::opencode::version::{self, Generation};
use tempfile::TempDir;

pub(super) use self::findings::findings;
use self::{check::Check, install::Plan, place::Surroundings, programs::Program};
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
/// Without a host: look for OpenCode (1 and 2, as `opencode` or `opencode2` on the PATH), install its
/// plugin for all your projects, remove other copies, check that OpenCode sees it, and say what to
/// restart.
///
/// Exit code 0 on success, 1 if no OpenCode was found or something is missing.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_subcommand = true,
    subcommand_value_name = "HOST",
    subcommand_help_heading = "Hosts",
    after_help = "Examples:\n  asyncagents setup\n  asyncagents setup --check"
)]
pub(super) struct SetupArgs {
    /// Change nothing, and check: like `asyncagents setup opencode --check`.
    #[arg(long)]
    check: bool,

    #[command(subcommand)]
    host: Option<SetupHost>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SetupHost {
    Opencode(SetupOpencodeArgs),
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
    match &args.host {
        None if args.check => {
            let check = SetupOpencodeArgs {
                check: true,
                ..SetupOpencodeArgs::default()
            };
            opencode(config, &check)
        }
        None => in_runtime(whatever_is_installed(config)),
        Some(SetupHost::Opencode(_)) if args.check => Err(Failure::Input(anyhow!(
            "--check goes behind the host: `asyncagents setup opencode --check`"
        ))),
        Some(SetupHost::Opencode(args)) => opencode(config, args),
    }
}

/// Finds what is installed, gives it the plugin, and checks that.
async fn whatever_is_installed(config: &Config) -> Result<Exit, Failure> {
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
    if programs.is_empty() {
        return Err(Failure::Machine(anyhow!(
            "there is no OpenCode here that asyncagents works with; install it, or install the \
             plugin for one that is not on the PATH with `asyncagents setup opencode`"
        )));
    }
    for Program { path, version, .. } in &programs {
        let version = version::in_line(version);
        print::answer(&format!("Found OpenCode {version}: {}.", shown_path(path)))?;
    }
    let plan = Plan::new(&around, around.user()?)?;
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
    let check = Check {
        around: &around,
        places: &around.all(),
        folder: &around.here,
        tools: &tools,
    };
    let done = check.run(&programs).await?;
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
