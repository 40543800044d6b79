//! Files of a project that would decide what an agent runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An agent's settings in a folder or above it, up to the repository's.
pub(super) fn settings_of_project(settings: &str, folder: &Path, home: &Path) -> Option<PathBuf> {
    for above in folder.ancestors() {
        let file = above.join(settings);
        let is_there = fs::symlink_metadata(&file).is_ok();
        // Codex's own sandbox leaves empty ones behind, also in temporary folders above the project.
        if above != home && is_there && !is_empty_folder(&file) {
            return Some(file);
        }
        if is_repository(above) {
            return None;
        }
    }
    None
}

fn is_empty_folder(path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    is_folder && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

pub(super) fn is_repository(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".git")).is_ok()
}
