//! What `--host` takes: a word, and for most hosts a path or an address after a colon.

use std::path::Path;

pub(crate) const ENGINE: &str = "engine";
pub(crate) const OPENCODE: &str = "opencode";

/// All forms, for people.
pub(crate) const FORMS: &str = "engine, engine:FOLDER, opencode:URL, or another agent: claude, codex, gemini, \
    opencode, goose or one of [hosts.NAME]";

/// The word and what follows the colon.
pub(crate) fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (name, None),
    }
}

/// A name in a file of settings: paths are meant from where the file is.
pub(crate) fn from_folder(folder: &Path, name: &str) -> String {
    match split(name) {
        (ENGINE, Some(path)) => format!("{ENGINE}:{}", folder.join(path).display()),
        _ => name.to_owned(),
    }
}

/// The name of an `opencode serve`.
pub(crate) fn opencode_at(url: &str) -> String {
    format!("{OPENCODE}:{url}")
}
