//! Finds a project's file of settings. Other users can put files above our folders, as in a
//! temporary folder that all share, so the search ends where the folders are no longer ours.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::settings::config_folder;
use crate::own_file::is_ours;

/// The nearest `asyncagents.toml` in a folder or above it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProjectFile {
    None,
    /// The user's, in a folder of the user's.
    Ours(PathBuf),
    /// Another user's, or in another user's folder. Nothing above it is looked at.
    Foreign(PathBuf),
}

pub(super) fn find(here: &Path) -> ProjectFile {
    // Of a link, both ends: whoever made it has chosen the file.
    let ours = |path: &Path| {
        let ends = [fs::symlink_metadata(path), fs::metadata(path)];
        ends.into_iter()
            .all(|end| end.is_ok_and(|found| is_ours(&found)))
    };
    let users = config_folder().and_then(|folder| fs::canonicalize(folder).ok());
    for folder in here.ancestors() {
        // The user's own file is not a project's, also for those who work beside it.
        if users.is_some() && users == fs::canonicalize(folder).ok() {
            continue;
        }
        let file = folder.join("asyncagents.toml");
        match (file.is_file(), ours(folder)) {
            (true, true) if ours(&file) => return ProjectFile::Ours(file),
            (true, _) => return ProjectFile::Foreign(file),
            (false, true) => {}
            (false, false) => return ProjectFile::None,
        }
    }
    ProjectFile::None
}
