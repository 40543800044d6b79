//! The plugin's file: whose it is, what is in it, how it is written.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use asyncagents_core::agent::ToolSpec;
use asyncagents_hosts::plugin;
use tempfile::NamedTempFile;

use crate::{exit::Failure, make_visible::shown_path, read_short::read_short};

/// What the plugin's file is called.
pub(super) const FILE: &str = "asyncagents.js";

/// What there is at the plugin's path.
#[derive(Debug)]
pub(in crate::commands) enum Found {
    Nothing,
    /// A plugin that asyncagents wrote, of whatever version.
    Ours(String),
    /// Something that is not ours to change.
    Foreign(&'static str),
}

pub(super) fn find(path: &Path) -> Result<Found, Failure> {
    let unreadable =
        |error| Failure::Machine(anyhow!("{} cannot be read: {error}", shown_path(path)));
    match path.symlink_metadata() {
        // A file in the place of a folder has nothing in it.
        Err(error) if is_absence(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(unreadable(error)),
        Ok(_) => {}
    }
    match path.metadata() {
        Err(error) if is_absence(&error) => Ok(Found::Foreign("a link that leads nowhere")),
        Err(error) => Err(unreadable(error)),
        Ok(about) if about.is_dir() => Ok(Found::Foreign("a folder")),
        // To read a pipe could take for ever.
        Ok(about) if !about.is_file() => Ok(Found::Foreign("not a file")),
        Ok(_) => {
            let is_ours = |text: &String| {
                let first = text.lines().next();
                first.is_some_and(|line| line.contains(plugin::MARK))
            };
            let foreign = Found::Foreign("not a file that asyncagents wrote");
            match read_short(path) {
                Ok(text) => Ok(Some(text).filter(is_ours).map_or(foreign, Found::Ours)),
                Err(error) if is_no_short_text(&error) => Ok(foreign),
                Err(error) => Err(unreadable(error)),
            }
        }
    }
}

fn is_no_short_text(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, InvalidData};
    matches!(error.kind(), FileTooLarge | InvalidData)
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// What to say of something that is not ours.
pub(super) fn foreign(path: &Path, what: &str) -> Failure {
    let path = shown_path(path);
    Failure::Input(anyhow!(
        "{path} is {what}; it was left alone. Move it away and try again"
    ))
}

/// A new text for the file, written beside it: what can go wrong has gone wrong by then.
pub(super) struct Draft {
    path: PathBuf,
    file: NamedTempFile,
}

impl Draft {
    /// Writes the text, and makes the folders to the file.
    pub(super) fn write(path: &Path, text: &str) -> Result<Self, Failure> {
        // What a link leads to is changed, and the link stays.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/"));
        no_file_in_the_way(folder)?;
        let refused = |error| refused(&path, "written", &error);
        fs::create_dir_all(folder).map_err(refused)?;
        let mut builder = tempfile::Builder::new();
        // A name that OpenCode does not take for a plugin.
        builder.prefix(".asyncagents-").suffix(".new");
        // A file that is there may have secrets in it, and stays as open as it was. A new one is as any
        // file of the user's; other users could not read a temporary file.
        let before = fs::metadata(&path).ok().map(|about| about.permissions());
        let usual = || fs::Permissions::from_mode(0o666);
        builder.permissions(before.clone().unwrap_or_else(usual));
        let mut file = builder.tempfile_in(folder).map_err(refused)?;
        if let Some(before) = before {
            file.as_file().set_permissions(before).map_err(refused)?;
        }
        let written = file.write_all(text.as_bytes());
        written
            .and_then(|()| file.as_file().sync_all())
            .map_err(refused)?;
        Ok(Self { path, file })
    }

    /// Puts it in its place. A reader sees all of the old file or all of the new one.
    pub(super) fn put(self) -> Result<(), Failure> {
        let Self { path, file } = self;
        let put = file.persist(&path).map(drop);
        put.map_err(|error| refused(&path, "written", &error.error))
    }
}

/// Removes the file, or the link to it.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).map_err(|error| refused(path, "removed", &error))
}

fn refused(path: &Path, what: &str, error: &io::Error) -> Failure {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let why = match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => "you may not write there".to_owned(),
        _ => error.to_string(),
    };
    let path = shown_path(path);
    Failure::Machine(anyhow!(
        "{path} cannot be {what}: {why}; nothing was changed"
    ))
}

/// The sentence that a system has for it names no path.
fn no_file_in_the_way(folder: &Path) -> Result<(), Failure> {
    let nearest = folder.ancestors().find(|folder| folder.exists());
    match nearest {
        Some(nearest) if !nearest.is_dir() => Err(foreign(nearest, "a file, not a folder")),
        _ => Ok(()),
    }
}

/// The program that a plugin names, if it is written as this version writes it.
pub(in crate::commands) fn program_in(text: &str, tools: &[ToolSpec]) -> Option<String> {
    const PLACE: &str = "PROGRAM-OF-THE-PLUGIN";
    let pattern = plugin::render(PLACE, tools);
    let (before, after) = pattern.lines().find_map(|line| line.split_once(PLACE))?;
    let named = |line: &str| {
        let named = line.strip_prefix(before)?.strip_suffix(after)?;
        serde_json::from_str::<String>(&format!("\"{named}\"")).ok()
    };
    text.lines().find_map(named)
}
