//! Finds the agents there are.

use std::{collections::BTreeMap, fs, path::PathBuf};

use asyncagents_core::{agent::Profile, id::AgentName};

/// A profile is a page of text; whatever is larger than this is something else.
const LARGEST: u64 = 1_000_000;

/// The built-in agents and those in the folders, the later over the earlier. A file that
/// cannot be read is left out, and a log says why.
pub(crate) fn find(folders: &[PathBuf]) -> BTreeMap<AgentName, Profile> {
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
            if fs::metadata(file).is_ok_and(|about| about.len() > LARGEST) {
                tracing::warn!(file = %file.display(), "too large for an agent's profile");
                continue;
            }
            match fs::read_to_string(file).map(|text| Profile::parse(stem, &text)) {
                Ok(Ok(Some(profile))) => {
                    found.insert(profile.name.clone(), profile);
                }
                Ok(Ok(None)) => {
                    found.remove(&AgentName::from(stem));
                }
                Ok(Err(why)) => {
                    tracing::warn!(file = %file.display(), %why, "not an agent's profile");
                }
                Err(why) => tracing::warn!(file = %file.display(), %why, "cannot be read"),
            }
        }
    }
    found
}
