//! Finds a project's file of settings. Other users can put files above our folders, as in a
//! temporary folder that all share, so the search ends at a folder of another user.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use asyncagents_core::owner_rule::may_instruct;

use super::folders::config_folder;

/// The nearest `asyncagents.toml` in a folder or above it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProjectFile {
    None,
    /// The user's or root's, in such a folder.
    Ours(PathBuf),
    /// Another user's, or in another user's folder. Nothing above it is looked at.
    Foreign(PathBuf),
    /// A folder has its name, and there is no other.
    Folder(PathBuf),
}

pub(super) fn find(here: &Path) -> ProjectFile {
    let user = rustix::process::geteuid().as_raw();
    // Of a link, both ends: the user who made it has chosen the file.
    let ours = |path: &Path| {
        let ends = [fs::symlink_metadata(path), fs::metadata(path)];
        ends.into_iter()
            .all(|end| end.is_ok_and(|found| may_instruct(found.uid(), user)))
    };
    let users = config_folder().and_then(|folder| fs::canonicalize(folder).ok());
    let mut none = ProjectFile::None;
    for folder in here.ancestors() {
        // The user's own file is not a project's, also for those who work beside it.
        if users.is_some() && users == fs::canonicalize(folder).ok() {
            continue;
        }
        let file = folder.join("asyncagents.toml");
        match (file.is_file(), ours(folder)) {
            (true, true) if ours(&file) => return ProjectFile::Ours(file),
            (true, _) => return ProjectFile::Foreign(file),
            (false, true) if file.is_dir() && none == ProjectFile::None => {
                none = ProjectFile::Folder(file);
            }
            (false, true) => {}
            (false, false) => return none,
        }
    }
    none
}
