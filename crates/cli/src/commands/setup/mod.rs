//! `asyncagents setup opencode`: the plugin goes where OpenCode loads it, or away, or is
//! checked.

mod check;
mod install;
mod loader;
mod place;
mod plugin_file;

use asyncagents_core::tool_set;

use self::place::Surroundings;
use super::in_runtime;
use crate::{
    args::{SetupArgs, SetupHost, SetupOpencodeArgs},
    config::Config,
    exit::{Exit, Failure},
};

pub(super) fn run(config: &Config, args: &SetupArgs) -> Result<Exit, Failure> {
    match &args.host {
        SetupHost::Opencode(args) => opencode(config, args),
    }
}

fn opencode(config: &Config, args: &SetupOpencodeArgs) -> Result<Exit, Failure> {
    let around = Surroundings::look()?;
    let tools = tool_set::specs_with_skill(&config.prefix, None);
    let place = || match args.project {
        true => Ok(around.project()),
        false => around.user(),
    };
    if args.check {
        let places = match args.user || args.project {
            true => vec![place()?],
            false => around.all(),
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
    match args.remove {
        true => install::remove(&place()?),
        false => install::install(&around, &place()?, &tools),
    }
}
