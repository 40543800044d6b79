//! The settings of skills: where they are found, and what those run with that do not say.

use std::path::PathBuf;

use asyncagents_core::skill::UsualTerms;

use super::{
    agent_settings::{folders, paths},
    settings::{FromProject, Setting, number},
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
    Setting {
        key: "skills.enterprise",
        about: "the folder with the skills of whoever looks after the machine, or none; they count \
                more than all others",
        project: FromProject::Refused,
        show: |config| {
            let folder = config.skills.enterprise.as_ref();
            folder.map_or("none".to_owned(), |folder| folder.display().to_string())
        },
        set: |config, value| {
            let mut folder = Vec::new();
            if value != "none" {
                paths(&mut folder, value).map_err(|_| "an absolute path, or none")?;
            }
            config.skills.enterprise = folder.pop();
            Ok(())
        },
    },
    Setting {
        key: "skills.plugins",
        about: "folders of plugins, each with skills in its folder `skills`; they count less than \
                all others",
        project: FromProject::Refused,
        show: |config| folders(&config.skills.plugins),
        set: |config, value| paths(&mut config.skills.plugins, value),
    },
    Setting {
        key: "skills.max_iterations",
        about: "how often the model of a skill may answer, where the skill does not say; a \
                sub-agent gets half of it, one below it a quarter, at least 3",
        project: FromProject::Free,
        show: |config| config.skills.usual.iterations.to_string(),
        set: |config, value| {
            let mut most = 0;
            number(&mut most, value)?;
            match most {
                1..=100 => config.skills.usual.iterations = most,
                _ => return Err("1 to 100".to_owned()),
            }
            Ok(())
        },
    },
    Setting {
        key: "skills.max_retries_per_tool",
        about: "how often a skill may try the same failing tool call again, where it does not say",
        project: FromProject::Free,
        show: |config| config.skills.usual.retries.to_string(),
        set: |config, value| {
            let mut most = 0;
            number(&mut most, value)?;
            match most {
                0..=10 => config.skills.usual.retries = most,
                _ => return Err("0 to 10".to_owned()),
            }
            Ok(())
        },
    },
];
