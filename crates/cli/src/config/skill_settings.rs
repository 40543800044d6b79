//! The settings of skills: where they are found, and their default terms.

use std::path::PathBuf;

use asyncagents_core::skill::UsualTerms;

use super::{
    setting::{
        FromProject::{Free, Refused},
        Setting, at, settings,
    },
    value::Value,
};

/// Settings of skills.
#[derive(Debug, Clone)]
pub(crate) struct SkillConfig {
    pub(crate) enterprise: Option<PathBuf>,
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) usual: UsualTerms,
}

impl SkillConfig {
    pub(crate) fn defaults() -> Self {
        Self {
            enterprise: Some(PathBuf::from("/etc/asyncagents/skills")),
            plugins: Vec::new(),
            usual: UsualTerms::default(),
        }
    }
}

/// The settings, in the form of all others.
pub(crate) const SKILL_SETTINGS: &[Setting] = settings! {
    "skills.enterprise", skills.enterprise: parsed(one_folder), Refused,
        "folder with the skills of the machine's administrator, or none; they override all \
         others";
    "skills.plugins", skills.plugins, Refused,
        "folders of plugins, each with skills in its folder `skills`; all others override them";
    "skills.max_iterations", skills.usual.iterations: within(1, 100, "1 to 100"), Free,
        "default max-iterations for skills: how often the model may answer; a sub-agent gets half \
         of it, one below it a quarter, at least 3";
    "skills.max_retries_per_tool", skills.usual.retries: within(0, 10, "0 to 10"), Free,
        "default max-retries-per-tool for skills: how often the same failing tool call is tried \
         again";
};

fn one_folder(text: &str) -> Result<Option<PathBuf>, String> {
    if text == "none" {
        return Ok(None);
    }
    let folders = Vec::<PathBuf>::parse(text);
    let mut folders = folders.map_err(|_| "an absolute path, or none")?;
    Ok(folders.pop())
}
