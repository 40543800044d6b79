//! The Node.js that runs adapters.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::{anyhow, bail};
use asyncagents_core::lock::lock;

use crate::{make_visible::shown_path, on_path::find_on_path, version_line::version_line};

/// The oldest version that the adapters work with.
const NEEDED: u32 = 22;

/// The newest version that was asked for, and of which file: a worker asks again for each agent.
static NEWEST: Mutex<Option<(FileId, String)>> = Mutex::new(None);

/// Which file it is, and that it has not been written since.
type FileId = (u64, u64, i64, i64);

/// A Node.js that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) path: PathBuf,
    /// As it prints it.
    pub(crate) version: String,
}

impl Node {
    /// The one on the PATH, if it is new enough.
    pub(crate) async fn find(here: &Path) -> anyhow::Result<Self> {
        let path = find_on_path("node", here).ok_or_else(|| {
            anyhow!("there is no Node.js on the PATH; install Node.js {NEEDED} or newer")
        })?;
        let version = version_of(&path).await?;
        let shown = shown_path(&path);
        match major(&version) {
            Some(major) if major >= NEEDED => Ok(Self { path, version }),
            Some(_) => bail!(
                "{shown} is Node.js {version}, which is too old; install Node.js {NEEDED} or newer"
            ),
            None => bail!(
                "{shown} says {version:?}, which is no version of Node.js; install Node.js {NEEDED} or newer"
            ),
        }
    }
}

async fn version_of(program: &Path) -> anyhow::Result<String> {
    let about = fs::metadata(program)?;
    let file = (about.dev(), about.ino(), about.mtime(), about.mtime_nsec());
    let known = lock(&NEWEST).clone();
    if let Some((_, version)) = known.filter(|(known, _)| *known == file) {
        return Ok(version);
    }
    let version = version_line(program).await?;
    *lock(&NEWEST) = Some((file, version.clone()));
    Ok(version)
}

/// The first number of a version like `v24.21.0`.
fn major(version: &str) -> Option<u32> {
    let numbers = version.strip_prefix('v')?;
    numbers.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn a_version_is_read_as_node_prints_it() {
        assert_eq!(major("v24.21.0"), Some(24));
        assert_eq!(major("v22"), Some(22));
        for other in ["24.21.0", "v", "vx.1", "", "v99999999999.0"] {
            assert_eq!(major(other), None, "{other}");
        }
    }
}
