//! `asyncagents setup opencode`: the plugin goes where OpenCode loads it, or away, or is
//! checked.

mod check;
mod install;
mod loader;
mod place;
mod plugin_file;

use std::path::PathBuf;

use asyncagents_core::tool_set;

use self::place::Surroundings;
use super::runtime::in_runtime;
use crate::{
    config::Config,
    exit::{Exit, Failure},
};

/// Give another agent the tools for background agents.
#[derive(Debug, clap::Args)]
#[command(
    // A short error that names the hosts says more than the whole help.
    arg_required_else_help = false,
    disable_help_subcommand = true,
    subcommand_value_name = "HOST",
    subcommand_help_heading = "Hosts",
    after_help = "Example:\n  asyncagents setup opencode"
)]
pub(super) struct SetupArgs {
    #[command(subcommand)]
    host: SetupHost,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SetupHost {
    Opencode(SetupOpencodeArgs),
}

/// Install the plugin that gives OpenCode the tools for background agents.
///
/// The plugin is one file, asyncagents.js, in the folder `plugin` (or `plugins`, if that is
/// there) of OpenCode's configuration, and OpenCode loads what is there by itself: no other
/// file is changed. It names this program by its path, so install it again when the program
/// has moved. Installing again also updates it. A file of that name which asyncagents did not
/// write is left alone.
///
/// Exit code 0 on success, 1 if that could not be done or --check found something missing, 2 if
/// asyncagents did not write the file.
#[derive(Debug, clap::Args)]
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
    /// there, and does an OpenCode that is started for it see the tools? Without --user and
    /// --project, check every place that OpenCode loads plugins from. OpenCode is started in this
    /// folder, where it runs the folder's plugins as always; with --user in an empty one.
    #[arg(long)]
    check: bool,

    /// With --check: OpenCode's program [default: ASYNCAGENTS_OPENCODE_BIN, or `opencode` on
    /// the PATH].
    #[arg(long, value_name = "PATH", requires = "check")]
    opencode_bin: Option<PathBuf>,
}

pub(super) fn run(config: &Config, args: &SetupArgs) -> Result<Exit, Failure> {
    match &args.host {
        SetupHost::Opencode(args) => opencode(config, args),
    }
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
    if args.check {
        let places = if args.user || args.project {
            vec![place()?]
        } else {
            around.all()
        };
        let opencode = args.opencode_bin.as_deref();
        // Among a project's plugins only where the project is looked at, too.
        let elsewhere = args.user.then(tempfile::tempdir).transpose();
        let elsewhere = elsewhere.map_err(|error| Failure::Machine(error.into()))?;
        let folder = elsewhere
            .as_ref()
            .map_or(around.here.as_path(), |folder| folder.path());
        return in_runtime(check::check(&around, &places, folder, opencode, &tools));
    }
    if args.remove {
        install::remove(&place()?)
    } else {
        install::install(&around, &place()?, &tools)
    }
}
