//! `asyncagents skill`: the skills there are, one file for each verb.

mod check;
mod list;
mod run;
mod show;

use std::{env, path::Path};

use anyhow::Context;
use asyncagents_core::skill::Catalog;

use super::Shell;
use crate::{
    args::{SkillArgs, SkillVerb},
    config::Config,
    exit::{Exit, Failure},
    wire,
};

pub(super) fn run(
    config: &Config,
    shell: impl FnOnce() -> Result<Shell, Failure>,
    args: &SkillArgs,
) -> Result<Exit, Failure> {
    match &args.verb {
        SkillVerb::Run(args) => run::run(&shell()?, args),
        SkillVerb::List(args) => list::run(&catalog(config)?, args),
        SkillVerb::Show(args) => show::run(&catalog(config)?, args),
        SkillVerb::Check(args) => check::run(args),
    }
}

/// The skills that an agent in this folder has.
fn catalog(config: &Config) -> Result<Catalog, Failure> {
    let here = env::current_dir()
        .context("this folder")
        .map_err(Failure::Machine)?;
    Ok(wire::skill_dirs(&here, &config.skills).catalog())
}

/// A path as people read it: from this folder if it is below.
fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(&here).unwrap_or(path);
    below.display().to_string()
}
