//! Finds the agents there are.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use asyncagents_core::{
    agent::{Profile, Tools},
    id::AgentName,
    port::HostError,
    skill::Terms,
};

use crate::read_file::{Unread, read_projects, read_users};

/// The agents there are, and the files that cannot be used.
#[derive(Default)]
pub(crate) struct Profiles {
    found: BTreeMap<AgentName, Profile>,
    broken: BTreeMap<AgentName, String>,
}

impl Profiles {
    pub(crate) fn get(&self, agent: &AgentName) -> Option<&Profile> {
        self.found.get(agent)
    }

    /// The agents that the project declares.
    pub(crate) fn of_project(&mut self) -> impl Iterator<Item = &mut Profile> {
        let found = self.found.values_mut();
        found.filter(|profile| profile.of_project)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &AgentName> {
        self.found.keys()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Profile> {
        self.found.values()
    }

    /// An agent, or why there is none of this name.
    pub(crate) fn known(&self, agent: &AgentName) -> Result<&Profile, HostError> {
        self.found.get(agent).ok_or_else(|| {
            if let Some(why) = self.broken.get(agent) {
                return HostError::Refused(why.clone());
            }
            let names: Vec<&str> = self.names().map(AgentName::as_str).collect();
            let names = names.join(", ");
            HostError::Refused(format!("there is no agent {agent}; there are {names}"))
        })
    }
}

/// What an agent may use of its tools: where skills above restrict it, and one that it runs itself.
pub(crate) fn restricted(tools: Tools, outer: &[Tools], skill: Option<&Terms>) -> Tools {
    let tools = tools.bounded(outer);
    match skill {
        Some(terms) => terms.over(&tools),
        None => tools,
    }
}

/// The names of the agents that there are in a workspace.
pub fn agent_names(workspace: &Path, folders: &[PathBuf]) -> Vec<AgentName> {
    find(workspace, folders).names().cloned().collect()
}

/// The built-in agents and those in the folders, the later over the earlier.
pub(crate) fn find(workspace: &Path, folders: &[PathBuf]) -> Profiles {
    let mut profiles = Profiles::default();
    for profile in Profile::built_in() {
        profiles.found.insert(profile.name.clone(), profile);
    }
    for folder in folders {
        let Ok(files) = fs::read_dir(folder) else {
            continue;
        };
        let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        files.sort();
        let markdown = files
            .iter()
            .filter(|file| file.extension().is_some_and(|kind| kind == "md"));
        for file in markdown {
            let Some(stem) = file.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            match read(workspace, file).map(|text| Profile::parse(stem, &text)) {
                Ok(Ok(Some(mut profile))) => {
                    profile.of_project = file.starts_with(workspace);
                    profiles.found.insert(profile.name.clone(), profile);
                }
                Ok(Ok(None)) => {
                    profiles.found.remove(&AgentName::from(stem));
                }
                Ok(Err(why)) => profiles.reject(file, stem, &why.to_string()),
                Err(unread) => profiles.reject(file, stem, unread.why()),
            }
        }
    }
    profiles
}

impl Profiles {
    fn reject(&mut self, file: &Path, stem: &str, why: &str) {
        tracing::warn!(file = %file.display(), why, "not an agent's profile");
        let why = format!("{} cannot be used: {why}", file.display());
        self.broken.insert(stem.into(), why);
    }
}

/// A profile's text. What is in the workspace must not lead out of it; a user's own folders
/// may hold links to anywhere.
fn read(workspace: &Path, file: &Path) -> Result<String, Unread> {
    if file.starts_with(workspace) {
        read_projects(workspace, file)
    } else {
        read_users(file)
    }
}
