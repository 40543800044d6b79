//! Finds a project's file of settings. Other users can put files above our folders, as in a
//! temporary folder that all share, so the search ends where the folders are no longer ours.

use std::{
    fs,
    path::{Path, PathBuf},
};

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
    let ours = |path: &Path| fs::metadata(path).is_ok_and(|found| is_ours(&found));
    for folder in here.ancestors() {
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
