//! pi in print mode, over the Chat Completions protocol.

use std::{io, process::Command};

use serde_json::json;

use super::Agent;
use crate::comparison::{place::Place, script::Call};

pub(crate) struct Pi;

impl Agent for Pi {
    fn configure(
        &self,
        command: &mut Command,
        place: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()> {
        let providers = json!({"providers": {"scripted": {
            "baseUrl": format!("{url}/v1"),
            "api": "openai-completions",
            "apiKey": "none",
            "models": [{"id": "one"}],
        }}});
        place.configure(".pi/agent/models.json", &providers.to_string())?;
        command
            .env("PI_OFFLINE", "1")
            .env("PI_TELEMETRY", "0")
            .env("PI_SKIP_VERSION_CHECK", "1")
            .args(["--model", "scripted/one", "--print", prompt]);
        Ok(())
    }

    fn read(&self, file: String) -> Call {
        let arguments = json!({"path": file});
        Call {
            tool: "read",
            arguments,
        }
    }

    fn bash(&self, command: &str) -> Call {
        let arguments = json!({"command": command});
        Call {
            tool: "bash",
            arguments,
        }
    }

    /// It has no sub-agents.
    fn delegate(&self, _: String) -> Option<Call> {
        None
    }
}
