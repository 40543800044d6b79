//! asyncagents itself.

use std::{io, process::Command};

use serde_json::json;

use super::Agent;
use crate::comparison::{place::Place, script::Call};

pub(crate) struct Ours {
    pub(crate) sandbox: bool,
}

impl Agent for Ours {
    fn configure(
        &self,
        command: &mut Command,
        _: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()> {
        command
            .arg("-c")
            .arg(format!("providers.test.base_url={url}"))
            .args(["-c", "providers.test.wire=anthropic"])
            .args(["-c", "model=test/model"]);
        if !self.sandbox {
            command.args(["-c", "sandbox.mode=off"]);
        }
        command.args(["run", "--permission", "yolo", prompt]);
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

    fn delegate(&self, prompt: String) -> Option<Call> {
        Some(Call {
            tool: "asyncagents_task",
            arguments: json!({"description": "look", "prompt": prompt, "agent": "general"}),
        })
    }
}
