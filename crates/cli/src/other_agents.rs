//! Other agents whose sessions launch tasks: what they are called, and where they keep conversations.

use std::{env, path::PathBuf};

use asyncagents_core::host_ref::HostRef;

use crate::config::home;

/// Another agent whose sessions launch tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherAgent {
    ClaudeCode,
    Codex,
}

impl OtherAgent {
    /// Every one, with the name a user types.
    pub(crate) const ALL: &[(&str, OtherAgent)] = &[
        ("claude-code", OtherAgent::ClaudeCode),
        ("codex", OtherAgent::Codex),
    ];

    /// The name a user types.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// Its name in sentences.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// What its program is called.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
        }
    }

    /// Its folder, as its environment says or where it is by default.
    pub(crate) fn folder(self) -> Option<PathBuf> {
        let (variable, default) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        };
        let set = env::var_os(variable).filter(|value| !value.is_empty());
        let folder = set.map(PathBuf::from);
        let folder = folder.or_else(|| home().map(|home| home.join(default)))?;
        // The same folder has one name, whichever way it was reached.
        Some(folder.canonicalize().unwrap_or(folder))
    }

    /// Its sessions' host, unless there is no folder, or its name is no text.
    pub(crate) fn host(self) -> Option<HostRef> {
        let folder = self.folder()?.to_str()?.into();
        Some(match self {
            Self::ClaudeCode => HostRef::ClaudeCode { config: folder },
            Self::Codex => HostRef::Codex { home: folder },
        })
    }
}
