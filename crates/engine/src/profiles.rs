//! Finds the agents there are.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use asyncagents_core::{agent::Profile, id::AgentName};

use crate::system_prompt::read_inside;

/// The built-in agents and those in the folders, the later over the earlier. A file that
/// cannot be read is left out, and a log says why.
pub(crate) fn find(workspace: &Path, folders: &[PathBuf]) -> BTreeMap<AgentName, Profile> {
    let built_in = Profile::built_in().into_iter();
    let mut found: BTreeMap<AgentName, Profile> = built_in
        .map(|profile| (profile.name.clone(), profile))
        .collect();
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
            let Some(text) = read(workspace, file) else {
                tracing::warn!(file = %file.display(), "not a file that can be an agent's profile");
                continue;
            };
            match Profile::parse(stem, &String::from_utf8_lossy(&text)) {
                Ok(Some(profile)) => {
                    found.insert(profile.name.clone(), profile);
                }
                Ok(None) => {
                    found.remove(&AgentName::from(stem));
                }
                Err(why) => {
                    tracing::warn!(file = %file.display(), %why, "not an agent's profile");
                }
            }
        }
    }
    found
}

/// A profile's text. What is in the workspace must not lead out of it; a user's own folders
/// may hold links to anywhere.
fn read(workspace: &Path, file: &Path) -> Option<Vec<u8>> {
    match file.starts_with(workspace) {
        true => read_inside(workspace, file),
        false => read_inside(Path::new("/"), file),
    }
}
