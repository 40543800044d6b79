//! Codex.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    AgentPlace, Held, modes,
    project_files::{is_repository, settings_of_project},
};
use crate::{acp::AcpSettings, agent::HOOK_TIMEOUT};

pub(super) fn acp_settings(is_sandboxed: bool) -> AcpSettings {
    if is_sandboxed {
        // Its own sandbox cannot be set up within ours, and without it there is only the mode in which it
        // asks nobody. Its hook asks instead.
        modes("agent-full-access", Some("agent-full-access"))
    } else {
        // It begins in a mode in which a model decides in the user's place.
        modes("workspace-write", Some("read-only"))
    }
}

pub(super) fn variables(held: Held<'_>) -> Vec<(&'static str, String)> {
    // What its own sub-agents use is not in what it says that it has used.
    let mut config = json!({"features": {"multi_agent": false}});
    if let Some(program) = held.hook {
        config["hooks"] = hooks(program);
    }
    vec![
        ("CODEX_CONFIG", config.to_string()),
        ("NO_BROWSER", "1".to_owned()),
        // Else a server in the user's settings that is called as ours is would be taken for it.
        ("DISABLE_MCP_CONFIG_FILTERING", "true".to_owned()),
    ]
}

/// A hook before each call. It runs only hooks that its user has approved, which it knows by a
/// sum of what they are: the user who has a task done by Codex approves this one. If Codex reckons in
/// another way one day it does not run the hook, and is stopped at its first call.
fn hooks(program: &Path) -> Value {
    let program = program.display().to_string().replace('\'', r"'\''");
    // In this order the sum is of them.
    let hook = json!({
        "async": false,
        "command": format!("'{program}' hook ask"),
        "timeout": HOOK_TIMEOUT.as_secs(),
        "type": "command",
    });
    let approved = json!({"event_name": "pre_tool_use", "hooks": [hook]}).to_string();
    let sum = Sha256::digest(approved.as_bytes());
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "PreToolUse": [{"hooks": [hook]}],
        "state": {
            "/<session-flags>/config.toml:pre_tool_use:0:0": {
                "trusted_hash": format!("sha256:{sum}"),
            },
        },
    })
}

/// A project's settings say what runs, its rules what runs unasked, and there may be more by now: Codex
/// reads some of it without being told to trust the folder.
pub(super) fn check_project(place: AgentPlace<'_>) -> Result<(), String> {
    let Some(file) = settings_of_project(".codex", place.project, place.home) else {
        return Ok(());
    };
    let own = (place.variable)("CODEX_HOME");
    let own = own.map_or_else(|| place.home.join(".codex"), PathBuf::from);
    if trusts(&own.join("config.toml"), place.project) {
        return Ok(());
    }
    Err(format!(
        "{} would decide what Codex runs, and Codex has not been told to trust this folder; open it \
         in Codex once and trust it, or remove that",
        file.display()
    ))
}

/// Whether the user has told Codex to trust a folder, or the repository that it is in. As in Codex,
/// that says nothing about what is below: somebody who trusts the home folder has not read all of it.
fn trusts(settings: &Path, folder: &Path) -> bool {
    let text = fs::read_to_string(settings).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let projects = table.get("projects").and_then(toml::Value::as_table);
    let is_trusted = |path: &Path| {
        let project = projects?.get(path.to_str()?)?;
        project
            .get("trust_level")?
            .as_str()
            .map(|level| level == "trusted")
    };
    let repository = folder.ancestors().find(|above| is_repository(above));
    let mut named = [Some(folder), repository].into_iter().flatten();
    named.any(|path| is_trusted(path).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{super::place, *};

    #[test]
    fn a_project_does_not_decide_what_runs() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("project");
        let check = |folder: &Path| check_project(place(home.path(), folder));
        fs::create_dir_all(project.join(".git"))?;
        assert_eq!(check(&project), Ok(()));
        fs::create_dir(project.join(".codex"))?;
        assert_eq!(check(&project), Ok(()));
        for file in ["config.toml", "rules/default.rules", "hooks.json"] {
            let file = project.join(".codex").join(file);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(&file, "")?;
            for folder in [&project, &project.join("src")] {
                assert!(check(folder).is_err(), "{}", file.display());
            }
            fs::remove_dir_all(project.join(".codex"))?;
        }
        Ok(())
    }

    /// People run Codex in their home folder once, and are asked whether they trust it.
    #[test]
    fn to_trust_a_folder_is_not_to_trust_all_below() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let (above, project) = (home.path(), home.path().join("downloads/project"));
        let (sub, settings) = (project.join("src"), above.join("config.toml"));
        fs::create_dir_all(project.join(".git"))?;
        fs::create_dir_all(&sub)?;
        for (trusted, is_enough) in [(above, false), (&project, true), (&sub, true)] {
            let line = format!("[projects.{trusted:?}]\ntrust_level = \"trusted\"\n");
            fs::write(&settings, line)?;
            assert_eq!(trusts(&settings, &sub), is_enough, "{trusted:?}");
        }
        Ok(())
    }
}
