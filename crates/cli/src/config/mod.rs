//! Everything a user can set, where each value comes from, and what it may be.
//!
//! Later sources win: defaults, the user's file, the project's file, the environment, flags.

mod agent_hosts;
mod agent_settings;
mod folders;
mod load;
mod project_file;
mod schema;
mod setting;
mod settings;
mod skill_settings;
mod value;

pub(crate) use agent_hosts::{AgentHostConfig, allow};
pub(crate) use agent_settings::AgentConfig;
pub(crate) use folders::{config_folder, config_home, data_folder, data_home, home, no_home};
pub(crate) use load::{
    Loaded, ProjectTasks, is_of_agent, load, load_launched, load_without_project, with_project,
};
pub(crate) use schema::schema;
pub(crate) use settings::Config;
pub(crate) use skill_settings::SkillConfig;

use std::time::Duration;

use asyncagents_core::budget::Cost;

use self::{setting::Setting, value::Value};

/// Reads a duration as people write it: `90s`, `10m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Value::parse(text)
}

/// Reads dollars as people write them: `0.50`, `$2`.
pub(crate) fn dollars(text: &str) -> Result<Cost, String> {
    Value::parse(text)
}

/// Every setting that has one key.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    let agents = agent_settings::AGENT_SETTINGS.iter();
    let skills = skill_settings::SKILL_SETTINGS.iter();
    settings::SETTINGS.iter().chain(agents).chain(skills)
}
