//! Which agent a story is told in.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// An agent that tasks are launched in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
}

impl Agent {
    /// The executable, unless it cannot be had here. The first test fetches it.
    pub(super) fn program(self) -> Option<PathBuf> {
        static FETCHED: OnceLock<()> = OnceLock::new();
        FETCHED.get_or_init(|| {
            let done = Command::new(repository().join("scripts/agents-for-tests")).status();
            assert!(done.expect("the script runs").success());
        });
        let program = repository()
            .join("target/agents-for-tests")
            .join(self.command());
        program.exists().then_some(program)
    }

    /// What `asyncagents setup` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// What its program is called.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
        }
    }

    /// Without a window: hooks that nobody was asked about, and tools that nobody need be.
    pub(crate) fn unasked(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["--allowedTools", "Read"],
            Self::Codex => &["--dangerously-bypass-hook-trust"],
        }
    }

    /// The name of one of our tools for its model, as a script writes it.
    pub(crate) fn tool(self, name: &str) -> String {
        match self {
            Self::ClaudeCode => format!("mcp__plugin_asyncagents_asyncagents__{name}"),
            Self::Codex => format!("mcp__asyncagents/{name}"),
        }
    }

    /// What its window shows below the last answer of a turn.
    pub(super) fn end_of_turn(self) -> &'static str {
        match self {
            Self::ClaudeCode => "· done",
            Self::Codex => "Worked for",
        }
    }

    /// What the names of its models have in them. The tasks have another one.
    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "gpt",
        }
    }
}

fn repository() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).expect("the repository")
}
