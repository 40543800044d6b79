//! Where a user keeps configuration and data.

use std::{env, path::PathBuf};

/// Why it is not known where the user's folders are.
pub(crate) fn no_home() -> &'static str {
    match env::var_os("HOME") {
        Some(home) if !home.is_empty() => "HOME is not an absolute path",
        _ => "HOME is not set",
    }
}

/// Where asyncagents keeps a user's data, if it is known who the user is.
pub(crate) fn data_folder() -> Option<PathBuf> {
    data_home().map(|folder| folder.join("asyncagents"))
}

/// Where asyncagents keeps a user's configuration.
pub(crate) fn config_folder() -> Option<PathBuf> {
    config_home().map(|folder| folder.join("asyncagents"))
}

/// Where all programs keep a user's configuration.
pub(crate) fn config_home() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// Where all programs keep a user's data.
pub(crate) fn data_home() -> Option<PathBuf> {
    absolute("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")))
}

/// The user's home folder.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// The path in a variable; a relative one is as good as none.
fn absolute(variable: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}
