//! The programs of others that `scripts/mcp-for-tests` fetches.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A command of the Node.js that the programs need, which runs this file of a package's. Nothing if
/// they cannot be had here: then the test is skipped, and its name is printed past its own capture,
/// so that `scripts/test` counts it.
pub(crate) fn node(file: &str) -> Option<Command> {
    let folder = folder();
    let node = folder.join("node");
    if !node.exists() {
        let test = std::thread::current();
        let test = test.name().unwrap_or_default();
        // On a line of its own, whatever others are writing.
        let line = format!("\nskipped: {test}: the programs of npm's are not here\n");
        // Whoever closed stderr does not want to know.
        let _ = io::stderr().write_all(line.as_bytes());
        return None;
    }
    let mut command = Command::new(node);
    command.arg(folder.join("node_modules").join(file));
    Some(command)
}

/// Where they are. The first test fetches them.
fn folder() -> PathBuf {
    static FETCHED: OnceLock<()> = OnceLock::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    FETCHED.get_or_init(|| {
        let done = Command::new(repository.join("scripts/mcp-for-tests")).output();
        let done = done.expect("the script runs");
        assert!(done.status.success(), "{done:?}");
    });
    repository.join("target/mcp-for-tests")
}
