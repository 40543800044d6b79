//! The plugin's files, which lie in `plugins` of the repository, as they are written for one program.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use crate::{
    config::data_folder, exit::Failure, make_visible::shown_path, other_agents::OtherAgent,
};

/// What the hooks and the server are called where they are looked for on the PATH.
const ON_PATH: &str = "asyncagents";

const MARKETPLACE: (&str, &str) = (
    ".claude-plugin/marketplace.json",
    include_str!("../../../../../../.claude-plugin/marketplace.json"),
);

/// The files of the plugin, by their paths below the marketplace. Those that name a program are JSON.
macro_rules! plugin_files {
    ($($path:literal),* $(,)?) => {
        [$((
            concat!("plugins/asyncagents/", $path),
            include_str!(concat!("../../../../../../plugins/asyncagents/", $path)),
        )),*]
    };
}

const FOR_CLAUDE_CODE: [(&str, &str); 4] = plugin_files![
    ".claude-plugin/plugin.json",
    ".mcp.json",
    "hooks/claude-code.json",
    "skills/delegate/SKILL.md",
];

const FOR_CODEX: [(&str, &str); 4] = plugin_files![
    ".codex-plugin/plugin.json",
    "codex.mcp.json",
    "hooks/codex.json",
    "skills/delegate/SKILL.md",
];

/// What differs between the plugin of one user and that of another.
#[derive(Debug, Clone)]
pub(super) struct Rendering {
    /// This program.
    pub(super) program: String,
    /// The variables that Codex passes on beside those that the plugin names.
    pub(super) variables: Vec<String>,
    /// Whether Codex calls the tools without asking each time.
    pub(super) approved: bool,
}

/// The folder that the plugin is installed from.
#[derive(Debug, Clone)]
pub(super) struct PluginFolder {
    agent: OtherAgent,
    pub(super) path: PathBuf,
}

impl PluginFolder {
    pub(super) fn of(agent: OtherAgent) -> Result<Self, Failure> {
        let data = data_folder().ok_or_else(|| {
            Failure::Machine(anyhow!("HOME is not set, so there is no data folder"))
        })?;
        let path = data.join("plugins").join(agent.name());
        Ok(Self { agent, path })
    }

    /// Where the agent reads the plugin.
    pub(super) fn plugin(&self) -> PathBuf {
        self.path.join("plugins/asyncagents")
    }

    /// Whether all is there, as this version writes it.
    pub(super) fn is_current(&self, rendering: &Rendering) -> bool {
        let is_same = |(path, text): &(&str, String)| {
            fs::read_to_string(self.path.join(path)).is_ok_and(|found| found == *text)
        };
        files(self.agent, rendering).iter().all(is_same)
    }

    /// Writes all files. Whoever reads one meanwhile sees all of the old one or all of the new one.
    pub(super) fn write(&self, rendering: &Rendering) -> Result<(), Failure> {
        for (path, text) in files(self.agent, rendering) {
            super::super::plugin_file::Draft::write(&self.path.join(path), &text)?.put()?;
        }
        Ok(())
    }

    /// Removes the folder. It is ours alone.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        match fs::remove_dir_all(&self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                let failed = Err(error).with_context(|| shown_path(&self.path).to_string());
                failed.map_err(Failure::Machine)
            }
        }
    }

    /// The program that the server's entry names.
    pub(super) fn program(&self) -> Option<PathBuf> {
        let entry = match self.agent {
            OtherAgent::ClaudeCode => ".mcp.json",
            OtherAgent::Codex => "codex.mcp.json",
        };
        let text = fs::read_to_string(self.plugin().join(entry)).ok()?;
        let entry: Value = serde_json::from_str(&text).ok()?;
        let command = entry.pointer("/mcpServers/asyncagents/command")?;
        command.as_str().map(PathBuf::from)
    }
}

fn files(agent: OtherAgent, rendering: &Rendering) -> Vec<(&'static str, String)> {
    let plugin = match agent {
        OtherAgent::ClaudeCode => &FOR_CLAUDE_CODE,
        OtherAgent::Codex => &FOR_CODEX,
    };
    let all = [&MARKETPLACE].into_iter().chain(plugin);
    all.map(|(path, text)| (*path, rendered(path, text, rendering)))
        .collect()
}

/// A file with this program in the place of the one on the PATH.
fn rendered(path: &str, text: &str, rendering: &Rendering) -> String {
    let parsed = serde_json::from_str::<Value>(text);
    let (Ok(mut json), true) = (parsed, path.ends_with(".json")) else {
        return text.to_owned();
    };
    name_program(&mut json, &rendering.program);
    if path.ends_with("codex.mcp.json")
        && let Some(server) = json.pointer_mut("/mcpServers/asyncagents")
    {
        for_codex(server, rendering);
    }
    format!("{json:#}\n")
}

fn for_codex(server: &mut Value, rendering: &Rendering) {
    if let Some(names) = server["env_vars"].as_array_mut() {
        for variable in &rendering.variables {
            if !names.iter().any(|known| known == variable) {
                names.push(variable.as_str().into());
            }
        }
    }
    if rendering.approved {
        server["default_tools_approval_mode"] = "approve".into();
        // With this one a model decides in its user's place.
        server["tools"] = json!({"answer": {"approval_mode": "prompt"}});
    }
}

/// Names the program in the commands of hooks and servers. A hook's is a line for a shell.
fn name_program(json: &mut Value, program: &str) {
    match json {
        Value::Object(fields) => {
            for (key, value) in fields {
                let command = value.as_str().filter(|_| key == "command");
                match command.map(|command| command.strip_prefix(ON_PATH)) {
                    Some(Some("")) => *value = program.into(),
                    Some(Some(rest)) if rest.starts_with(' ') => {
                        *value = format!("{}{rest}", quoted(program)).into();
                    }
                    _ => name_program(value, program),
                }
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| name_program(value, program)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Whether a folder is the same, whatever it is called.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendering(program: &str) -> Rendering {
        Rendering {
            program: program.to_owned(),
            variables: vec!["MY_KEY".to_owned(), "OPENAI_API_KEY".to_owned()],
            approved: true,
        }
    }

    fn all(agent: OtherAgent, program: &str) -> String {
        let files = files(agent, &rendering(program));
        let files = files.iter().filter(|(path, _)| path.ends_with(".json"));
        let shown = files.map(|(path, text)| format!("# {path}\n{text}"));
        shown.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_plugin_names_the_program_that_installed_it() {
        insta::assert_snapshot!(
            "plugin_claude_code",
            all(OtherAgent::ClaudeCode, "/opt/bin/asyncagents")
        );
        insta::assert_snapshot!(
            "plugin_codex",
            all(OtherAgent::Codex, "/opt/bin/asyncagents")
        );
    }

    #[test]
    fn a_folder_with_spaces_and_quotes_is_one_word_of_a_shell() {
        let hooks = all(OtherAgent::ClaudeCode, "/it's here/asyncagents");
        assert!(
            hooks.contains(r#""'/it'\\''s here/asyncagents' notices add --host claude-code""#),
            "{hooks}"
        );
        assert!(
            hooks.contains(r#""command": "/it's here/asyncagents""#),
            "{hooks}"
        );
        assert!(!hooks.contains(r#""asyncagents "#), "{hooks}");
    }
}
