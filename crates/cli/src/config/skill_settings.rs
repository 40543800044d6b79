//! The settings of skills: where they are found, and what those run with that do not say.

use std::path::PathBuf;

use asyncagents_core::skill::UsualTerms;

use super::{
    setting::{FromProject::Free, Setting, at, at_parsed},
    value::Value,
};

/// What can be said about skills.
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
pub(crate) const SKILL_SETTINGS: &[Setting] = &[
    Setting::new(
        "skills.enterprise",
        &at_parsed(|c| &mut c.skills.enterprise, one_folder),
    )
    .about(
        "the folder with the skills of whoever looks after the machine, or none; they count \
         more than all others",
    ),
    Setting::new("skills.plugins", &at(|c| &mut c.skills.plugins)).about(
        "folders of plugins, each with skills in its folder `skills`; they count less than \
         all others",
    ),
    Setting::new(
        "skills.max_iterations",
        &at(|c| &mut c.skills.usual.iterations).within(1, 100, "1 to 100"),
    )
    .about(
        "how often the model of a skill may answer, where the skill does not say; a \
         sub-agent gets half of it, one below it a quarter, at least 3",
    )
    .project(Free),
    Setting::new(
        "skills.max_retries_per_tool",
        &at(|c| &mut c.skills.usual.retries).within(0, 10, "0 to 10"),
    )
    .about("how often a skill may try the same failing tool call again, where it does not say")
    .project(Free),
];

fn one_folder(text: &str) -> Result<Option<PathBuf>, String> {
    if text == "none" {
        return Ok(None);
    }
    let folders = Vec::<PathBuf>::parse(text);
    let mut folders = folders.map_err(|_| "an absolute path, or none")?;
    Ok(folders.pop())
}
