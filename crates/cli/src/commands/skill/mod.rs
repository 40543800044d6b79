//! `asyncagents skill`: the skills there are, one file for each verb.

mod check;
mod list;
mod run;
mod show;

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Context;
use asyncagents_core::skill::Catalog;

use super::CommandContext;
use crate::{
    args::Assignment,
    config::Config,
    exit::{Exit, Failure},
    folders,
    make_visible::make_visible,
};

/// Find, check and run skills: instructions in a file SKILL.md that an agent follows when asked.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Examples:
  asyncagents skill list
  asyncagents skill run code-review \"the newest commit\"
  asyncagents skill show code-review
  asyncagents skill check .claude/skills"
)]
pub(super) struct SkillArgs {
    #[command(subcommand)]
    verb: SkillVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SkillVerb {
    Run(run::SkillRunArgs),
    List(list::SkillListArgs),
    Show(show::SkillShowArgs),
    Check(check::SkillCheckArgs),
}

impl SkillArgs {
    /// The settings that its options set.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        match &self.verb {
            SkillVerb::Run(args) => args.settings(),
            SkillVerb::List(_) | SkillVerb::Show(_) | SkillVerb::Check(_) => Vec::new(),
        }
    }
}

pub(super) fn run(
    config: &Config,
    context: impl FnOnce() -> Result<CommandContext, Failure>,
    args: &SkillArgs,
) -> Result<Exit, Failure> {
    match &args.verb {
        SkillVerb::Run(args) => run::run(&context()?, args),
        SkillVerb::List(args) => list::run(&catalog(config)?, args),
        SkillVerb::Show(args) => show::run(&catalog(config)?, args),
        SkillVerb::Check(args) => check::run(config, args),
    }
}

/// The skills that an agent in this folder has.
fn catalog(config: &Config) -> Result<Catalog, Failure> {
    Ok(folders::skill_dirs(&here()?, &config.skills).catalog())
}

fn here() -> Result<PathBuf, Failure> {
    env::current_dir()
        .context("this folder")
        .map_err(Failure::Machine)
}

/// A path as people read it, in one line: from this folder if it is below.
fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(&here).unwrap_or(path);
    make_visible(&below.display().to_string())
}
