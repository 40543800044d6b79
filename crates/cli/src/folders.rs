//! Where files are: agents, skills, what lies beside the database.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use asyncagents_core::host_ref::HostRef;
use asyncagents_engine::agent_names;
use asyncagents_runtime::{SkillAround, SkillDirs, SkillPlaces};

use crate::config::{SkillConfig, config_folder, data_folder, data_home, home};

/// A file beside the database, by the end of its name.
pub(crate) fn beside(db: &Path, ending: &str) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The absolute path of a folder, without links.
pub(crate) fn real_folder(folder: &Path) -> anyhow::Result<String> {
    let folder = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
    if !folder.is_dir() {
        anyhow::bail!("{} is not a folder", folder.display());
    }
    let folder = folder.to_str();
    let folder = folder.ok_or_else(|| anyhow!("the folder's name is not text"))?;
    Ok(folder.to_owned())
}

/// The built-in agent in a folder.
pub(crate) fn engine_in(folder: &Path) -> anyhow::Result<HostRef> {
    Ok(HostRef::engine(&real_folder(folder)?))
}

/// A folder that was sealed must still be where it was: one that has become a link, or is below
/// one, would take a task elsewhere.
pub(crate) fn check_in_place(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    match fs::canonicalize(folder) {
        Ok(real) if real == folder && real.is_dir() => Ok(()),
        Ok(real) if real == folder => anyhow::bail!("{name} is not a folder any more"),
        Ok(real) => anyhow::bail!(
            "the folder {name} leads to {} now, where it was not launched; launch it anew there",
            real.display()
        ),
        Err(_) => anyhow::bail!("the folder {name} is not there any more"),
    }
}

/// The skills of a workspace.
pub(crate) fn skill_dirs(workspace: &Path, config: &SkillConfig) -> SkillDirs {
    SkillDirs::new(SkillPlaces::usual(&SkillAround {
        workspace: Some(workspace),
        home: home().as_deref(),
        config: config_folder().as_deref(),
        enterprise: config.enterprise.as_deref(),
        plugins: &config.plugins,
    }))
}

/// The agents that there are in a folder.
pub(crate) fn agents_in(workspace: &Path) -> Vec<String> {
    let names = agent_names(workspace, &agent_folders(workspace)).into_iter();
    names.map(|name| name.to_string()).collect()
}

/// Where agents are declared: for the user, then for the project; other tools' folders
/// before our own.
pub(crate) fn agent_folders(workspace: &Path) -> Vec<PathBuf> {
    let home = home();
    let config = home.as_ref().map(|home| home.join(".config"));
    let mut folders = Vec::new();
    folders.extend(config.iter().map(|config| config.join("opencode/agent")));
    folders.extend(config.iter().map(|config| config.join("opencode/agents")));
    folders.extend(home.iter().map(|home| home.join(".claude/agents")));
    folders.extend(config_folder().map(|config| config.join("agents")));
    for theirs in [
        ".opencode/agent",
        ".opencode/agents",
        ".claude/agents",
        ".asyncagents/agents",
    ] {
        folders.push(workspace.join(theirs));
    }
    folders
}

/// Where an OpenCode that is started like this process keeps its sessions.
pub(crate) fn opencode_data() -> String {
    data_home().unwrap_or_default().display().to_string()
}

/// Where OpenCode 2 keeps its sessions: the same folder, unless its database is elsewhere.
pub(crate) fn opencode2_data() -> String {
    let own = std::env::var("OPENCODE_DB").ok();
    own.filter(|path| !path.is_empty())
        .unwrap_or_else(opencode_data)
}

/// Where it is kept which files of the home were private.
pub(crate) fn private_files() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("private-files"))
}
