//! What a hook is given on standard input. Its text is another program's, and in parts a model's.

use std::io;

use anyhow::{Context, anyhow};
use asyncagents_core::id::SessionId;
use asyncagents_hosts::claude_code::SessionName;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{exit::Failure, other_agents::OtherAgent, read_input::at_most};

/// The longest input that is read: it has the result of a tool in it.
const MOST_MEGABYTES: u64 = 64;

#[derive(Debug, Deserialize)]
pub(super) struct HookInput {
    pub(super) session_id: String,
    pub(super) hook_event_name: String,
    /// In a sub-agent.
    #[serde(default)]
    pub(super) agent_id: Option<String>,
    /// What a session was started by.
    #[serde(default)]
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) tool_name: Option<String>,
    #[serde(default)]
    pub(super) tool_input: Option<Map<String, Value>>,
    /// The server whose tool it is.
    #[serde(default)]
    pub(super) mcp_server: Option<McpServer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    /// Who has named it: the user, a project, a plugin, …
    pub(super) source: String,
}

impl HookInput {
    pub(super) fn read() -> Result<Self, Failure> {
        let read = || -> anyhow::Result<Self> {
            let bytes = at_most(io::stdin().lock(), 0, MOST_MEGABYTES)?;
            let bytes = bytes.ok_or_else(|| anyhow!("is larger than {MOST_MEGABYTES} MB"))?;
            serde_json::from_slice(&bytes).context("is not what a hook is given")
        };
        read().context("standard input").map_err(Failure::Input)
    }

    /// The session that it is about, as tasks name it.
    pub(super) fn session(&self, host: OtherAgent) -> Result<SessionId, Failure> {
        let agent = self.agent_id.as_deref();
        let name = SessionName::new(&self.session_id, agent);
        let name = name.ok_or_else(|| Failure::Input(anyhow!("session_id is not an ID")))?;
        Ok(match (host, agent) {
            (OtherAgent::ClaudeCode, _) | (OtherAgent::Codex, None) => name.id(),
            // A sub-agent of Codex is a thread.
            (OtherAgent::Codex, Some(thread)) => thread.into(),
        })
    }
}
