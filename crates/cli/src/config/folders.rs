//! Where a user keeps configuration and data.

use std::{env, path::PathBuf};

/// Why it is not known where the user's folders are.
pub(crate) fn no_home() -> &'static str {
    match env::var_os("HOME") {
        Some(home) if !home.is_empty() => "HOME is not an absolute path",
        _ => "HOME is not set",
    }
}

/// Where programs keep a user's data, if they know who the user is.
pub(crate) fn data_folder() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// Where programs keep a user's configuration.
pub(crate) fn config_folder() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(below_home));
    let base = absolute(variable).or_else(home);
    base.map(|base| base.join("asyncagents"))
}
