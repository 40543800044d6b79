//! Codex's `exec`, over the Responses protocol.

use std::{io, process::Command};

use serde_json::json;

use super::Agent;
use crate::comparison::{place::Place, script::Call};

pub(crate) struct Codex {
    pub(crate) sandbox: bool,
}

impl Agent for Codex {
    fn configure(
        &self,
        command: &mut Command,
        place: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()> {
        // A model that it knows, so that it has the instructions and tools for that.
        let config = format!(
            r#"model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
supports_websockets = false
[analytics]
enabled = false
"#
        );
        place.configure(".codex/config.toml", &config)?;
        let sandbox = if self.sandbox {
            "workspace-write"
        } else {
            "danger-full-access"
        };
        command.env("SCRIPTED_KEY", "none").args([
            "exec",
            "--skip-git-repo-check",
            "--sandbox",
            sandbox,
            prompt,
        ]);
        Ok(())
    }

    /// It has no tool for that, and reads in its shell.
    fn read(&self, file: String) -> Call {
        self.bash(&format!("cat '{file}'"))
    }

    fn bash(&self, command: &str) -> Call {
        let arguments = json!({"cmd": command});
        Call {
            tool: "exec_command",
            arguments,
        }
    }

    /// In `exec` its model is offered none.
    fn delegate(&self, _: String) -> Option<Call> {
        None
    }
}
