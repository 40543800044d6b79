//! Everything a user can set, where each value comes from, and what it may be.
//!
//! Later sources win: defaults, the user's file, the project's file, the environment, flags.

mod agent_settings;
mod load;
mod project_file;
mod settings;
mod skill_settings;

pub(crate) use agent_settings::AgentConfig;
pub(crate) use load::{
    Loaded, is_of_agent, load, load_launched, load_without_project, lowered_by_project,
};
pub(crate) use settings::{
    Config, Setting, config_folder, data_folder, dollars, duration, no_home,
};
pub(crate) use skill_settings::SkillConfig;

/// Every setting that has one key.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    let agents = agent_settings::AGENT_SETTINGS.iter();
    let skills = skill_settings::SKILL_SETTINGS.iter();
    settings::SETTINGS.iter().chain(agents).chain(skills)
}
