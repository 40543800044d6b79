//! Every copy of the plugin that OpenCode would load. OpenCode runs all of them, and OpenCode 2 loads
//! nothing at all in a folder where two plugins have one name, so there is to be only one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    place::{Place, Surroundings, is_same},
    plugin_file::{self, FILE, Found},
};
use crate::{exit::Failure, make_visible::shown_path, read_short::read_short};

/// Why there is only one.
pub(super) const ONLY_ONE: &str = "OpenCode would load both";

/// A file of ours among OpenCode's plugins.
#[derive(Debug, Clone)]
pub(in crate::commands) struct PluginCopy {
    pub(in crate::commands) place: Place,
    pub(in crate::commands) file: PathBuf,
    pub(in crate::commands) text: String,
}

/// An entry of OpenCode's settings that names the plugin.
#[derive(Debug)]
pub(in crate::commands) struct Entry {
    pub(in crate::commands) settings: PathBuf,
    /// What it leads to.
    pub(in crate::commands) file: PathBuf,
}

/// How a copy relates to the one that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twin {
    /// It is that one.
    Itself,
    /// It is the same entry of a folder, by a link to the folder: there is nothing to remove.
    ByLinkedFolder,
    /// The one that stays is a link to it.
    Target,
    Second,
}

/// All copies in these places, in their order.
pub(in crate::commands) fn copies(places: &[Place]) -> Result<Vec<PluginCopy>, Failure> {
    let mut copies = Vec::new();
    for place in places {
        for folder in place.plugin_folders() {
            for file in scripts(&folder) {
                let found = match plugin_file::find(&file) {
                    Ok(found) => found,
                    // Other files are not our concern.
                    Err(error) if file.ends_with(FILE) => return Err(error),
                    Err(_) => continue,
                };
                if let Found::Ours(text) = found {
                    let place = place.clone();
                    copies.push(PluginCopy { place, file, text });
                }
            }
        }
    }
    Ok(copies)
}

/// What OpenCode would load from a folder, by name. The plugin may have been renamed.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_script = |file: &PathBuf| {
        let end = file.extension().and_then(|end| end.to_str());
        matches!(end, Some("js" | "ts"))
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_script)
        .collect();
    files.sort();
    files
}

impl PluginCopy {
    /// How it relates to the file that stays.
    pub(super) fn twin(&self, kept: &Path) -> Twin {
        if self.file == kept {
            Twin::Itself
        } else if !is_same(&self.file, kept) || self.is_link() {
            Twin::Second
        } else if kept.is_symlink() && !same_entry(&self.file, kept) {
            Twin::Target
        } else {
            Twin::ByLinkedFolder
        }
    }

    fn is_link(&self) -> bool {
        self.file.is_symlink()
    }
}

/// Whether two paths are one entry of one folder.
fn same_entry(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| {
        path.parent()
            .map(Path::canonicalize)
            .and_then(io::Result::ok)
    };
    one.file_name() == other.file_name() && folder(one) == folder(other)
}

/// The entries of OpenCode's settings that name our plugin. One that names the file that OpenCode
/// loads anyway does no harm.
pub(in crate::commands) fn entries(around: &Surroundings) -> Vec<Entry> {
    let mut entries = Vec::new();
    for settings in around.settings() {
        let text = read_short(&settings).unwrap_or_default();
        let folder = settings.parent().unwrap_or(Path::new("/"));
        let lines = text.lines().filter(|line| !line.trim().starts_with("//"));
        // Settings have comments, so this is no JSON. What stands in quotes is enough.
        let quoted = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
        for named in quoted.filter(|quoted| quoted.ends_with(FILE)) {
            let path = named.strip_prefix("file://").unwrap_or(named);
            entries.push(Entry {
                settings: settings.clone(),
                file: folder.join(path),
            });
        }
    }
    entries
}

impl Entry {
    /// Whether it makes OpenCode load one more than the copy that stays.
    pub(in crate::commands) fn is_second(&self, kept: &Path) -> bool {
        matches!(plugin_file::find(&self.file), Ok(Found::Ours(_))) && !is_same(&self.file, kept)
    }

    /// What to say of it, beside the copy that stays.
    pub(super) fn remark(&self, kept: &Path) -> String {
        let settings = shown_path(&self.settings);
        if self.is_second(kept) {
            let file = shown_path(&self.file);
            format!(
                "{settings} names {file} among its plugins, which is a second copy; take the entry \
                 out: {ONLY_ONE}."
            )
        } else {
            format!(
                "{settings} names {FILE} among its plugins; OpenCode finds it without that, so the \
                 entry can go."
            )
        }
    }
}
