//! Which OpenCode a story is told in.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::{Value, json};

use super::{api::Api, v1::V1, v2::V2};

/// An OpenCode, and how it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opencode {
    V1,
    /// OpenCode 2 with a server of its own: `serve`, `run --standalone`, the TUI `--standalone`.
    V2,
    /// OpenCode 2 as people have it: one server in the background for all its clients.
    V2Background,
}

impl Opencode {
    pub(crate) fn is_v2(self) -> bool {
        self != Self::V1
    }

    pub(super) fn api(self) -> &'static dyn Api {
        if self.is_v2() { &V2 } else { &V1 }
    }

    /// The executable. The first test fetches it if it is missing.
    pub(crate) fn program(self) -> PathBuf {
        fetch();
        let folder = repository().join("target");
        if self.is_v2() {
            folder.join("opencode2-for-tests/opencode2")
        } else {
            folder.join("opencode-for-tests/opencode")
        }
    }

    /// The tool that launches sub-agents of its own.
    pub(crate) fn own_sub_agents(self) -> &'static str {
        if self.is_v2() { "subagent" } else { "task" }
    }

    /// The tool that runs commands.
    pub(crate) fn shell(self) -> &'static str {
        if self.is_v2() { "shell" } else { "bash" }
    }

    /// The call that reads a file: its tool and its parameters.
    pub(crate) fn read(self, path: &Path) -> (&'static str, Value) {
        let parameter = if self.is_v2() { "path" } else { "filePath" };
        ("read", json!({parameter: path}))
    }

    /// How a client is told to have a server of its own, where that has to be said.
    pub(super) fn client_options(self) -> &'static [&'static str] {
        match self {
            Self::V2 => &["--standalone"],
            Self::V1 | Self::V2Background => &[],
        }
    }

    /// The event that says that a session has done what it was asked.
    pub(crate) fn end_of_turn(self) -> &'static str {
        if self.is_v2() {
            "session.execution.succeeded"
        } else {
            "session.idle"
        }
    }
}

/// The parameters of a call that runs a command: see [`Opencode::shell`].
pub(crate) fn command(line: &str) -> Value {
    json!({"command": line, "description": "run"})
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Fetches what is missing, once; another test may be doing that at this moment.
fn fetch() {
    static FETCHED: OnceLock<Result<(), String>> = OnceLock::new();
    let fetched = FETCHED.get_or_init(|| {
        let script = repository().join("scripts/opencode-for-tests");
        let run = Command::new(script).output();
        let Output { status, stderr, .. } = run.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&stderr).into_owned();
        if status.success() { Ok(()) } else { Err(said) }
    });
    assert_eq!(fetched, &Ok(()));
}
