//! Claude Code in print mode, over the Messages protocol.

use std::{io, process::Command};

use serde_json::json;

use super::Agent;
use crate::comparison::{place::Place, script::Call};

pub(crate) struct Claude {
    /// Whether its sub-agents run in the background, as they do unless a call says otherwise.
    pub(crate) background: bool,
}

impl Agent for Claude {
    fn configure(
        &self,
        command: &mut Command,
        _: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()> {
        command
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_TELEMETRY", "1")
            // It refuses more than 20 at once otherwise.
            .env("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "1000")
            // It refuses to skip permissions for root, and takes rules from everybody.
            .args(["-p", prompt, "--allowedTools", "Read,Bash,Agent"]);
        Ok(())
    }

    fn read(&self, file: String) -> Call {
        let arguments = json!({"file_path": file});
        Call {
            tool: "Read",
            arguments,
        }
    }

    fn bash(&self, command: &str) -> Call {
        let arguments = json!({"command": command, "description": "Do it"});
        Call {
            tool: "Bash",
            arguments,
        }
    }

    fn delegate(&self, prompt: String) -> Option<Call> {
        let mut arguments = json!({
            "description": "look",
            "prompt": prompt,
            "subagent_type": "general-purpose",
        });
        if !self.background {
            arguments["run_in_background"] = false.into();
        }
        Some(Call {
            tool: "Agent",
            arguments,
        })
    }
}
