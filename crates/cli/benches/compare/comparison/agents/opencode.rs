//! OpenCode 1's `run`, over the Chat Completions protocol.

use std::{
    fs::{self, File},
    io,
    process::Command,
};

use serde_json::json;

use super::Agent;
use crate::comparison::{place::Place, script::Call};

pub(crate) struct OpenCode;

impl Agent for OpenCode {
    fn configure(
        &self,
        command: &mut Command,
        place: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()> {
        let model = json!({
            "name": "Scripted",
            "tool_call": true,
            "limit": {"context": 1_000_000, "output": 8192},
        });
        let config = json!({
            "autoupdate": false,
            "share": "disabled",
            "enabled_providers": ["scripted"],
            "model": "scripted/one",
            "small_model": "scripted/one",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
                "models": {"one": model},
            }},
        });
        place.configure(".config/opencode/opencode.json", &config.to_string())?;
        for what in [
            "MODELS_FETCH",
            "AUTOUPDATE",
            "SHARE",
            "LSP_DOWNLOAD",
            "DEFAULT_PLUGINS",
            "CLAUDE_CODE",
        ] {
            command.env(format!("OPENCODE_DISABLE_{what}"), "1");
        }
        // An argument with spaces would be changed on its way.
        let input = place.home().join("prompt");
        fs::write(&input, prompt)?;
        command.arg("run").stdin(File::open(input)?);
        Ok(())
    }

    fn read(&self, file: String) -> Call {
        let arguments = json!({"filePath": file});
        Call {
            tool: "read",
            arguments,
        }
    }

    fn bash(&self, command: &str) -> Call {
        let arguments = json!({"command": command, "description": "Do it"});
        Call {
            tool: "bash",
            arguments,
        }
    }

    fn delegate(&self, prompt: String) -> Option<Call> {
        Some(Call {
            tool: "task",
            arguments: json!({"description": "look", "prompt": prompt, "subagent_type": "general"}),
        })
    }
}
