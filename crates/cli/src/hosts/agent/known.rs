//! How the known agents are held to what the user allows: in which mode they ask, and what they are
//! told so that a project does not decide what runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::bail;
use asyncagents_hosts::{
    acp::{AcpSettings, BeforeLoad},
    agent::{HOOK_TIMEOUT, OpenSession},
    agent_needs::{keep_gemini_conversation, needs},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::config::AgentHostConfig;

/// Claude Code's tools for agents of its own.
const CLAUDES_AGENTS: [&str; 3] = ["Task", "Agent", "Workflow"];

/// Those for waking itself and others, which nobody would see.
const CLAUDES_WAKING: [&str; 3] = ["ListAgents", "SendMessage", "ScheduleWakeup"];

/// Those that change files, or end with a plan.
const CLAUDES_CHANGES: [&str; 6] = [
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Write",
    "EnterPlanMode",
    "ExitPlanMode",
];

/// How an agent is used over ACP: as the user says, or else as is known of it.
pub(super) fn acp_settings(
    name: &str,
    said: &AgentHostConfig,
    home: &Path,
    project: &Path,
) -> AcpSettings {
    let (mode, read_only) = match name {
        // Its mode for plans ends with one, and asks nobody.
        "claude" => (Some("default"), Some("default")),
        // Its own sandbox cannot be set up within ours, and without it there is only the mode in which it
        // asks nobody. Its hook asks instead.
        "codex" if asks_by_hook(name, said) => {
            (Some("agent-full-access"), Some("agent-full-access"))
        }
        // It begins in a mode in which a model decides in the user's place.
        "codex" => (Some("workspace-write"), Some("read-only")),
        "gemini" => (Some("default"), Some("plan")),
        "opencode" => (Some("build"), Some("plan")),
        // It has none in which it reads and does nothing else.
        "goose" => (Some("approve"), None),
        _ => (None, None),
    };
    let owned = |mode: Option<&str>| mode.map(str::to_owned);
    AcpSettings {
        name: name.to_owned(),
        mode: said.mode.clone().or_else(|| owned(mode)),
        read_only_mode: said.read_only_mode.clone().or_else(|| owned(read_only)),
        meta: (name == "claude").then_some(claudes_meta),
        before_load: (name == "gemini").then(|| keeps_geminis_conversations(said, home, project)),
    }
}

/// Whether a hook asks before each call, because the protocol would not.
pub(super) fn asks_by_hook(name: &str, said: &AgentHostConfig) -> bool {
    name == "codex" && said.sandbox != Some(false)
}

/// Whether an agent has no tools to read with, only commands.
pub(super) fn reads_by_commands(name: &str) -> bool {
    name == "codex"
}

/// Those of its children are in a home of their own.
fn keeps_geminis_conversations(said: &AgentHostConfig, home: &Path, project: &Path) -> BeforeLoad {
    let variable = |name: &str| env::var_os(name);
    let own = needs("gemini").filter(|_| said.sandbox != Some(false));
    let set = own.map(|needs| needs.files(home, project, variable).variables);
    let mut set = set.unwrap_or_default().into_iter();
    let own = set.find(|(name, _)| name == "GEMINI_CLI_HOME");
    let own = own
        .map(|(_, own)| own)
        .or_else(|| variable("GEMINI_CLI_HOME"));
    let folder = own.map_or_else(|| home.to_owned(), PathBuf::from);
    let folder = folder.join(".gemini");
    Arc::new(move |session| keep_gemini_conversation(&folder, session))
}

/// A project's hooks and servers would run unasked.
fn claudes_meta(open: &OpenSession) -> Value {
    let alone = CLAUDES_AGENTS.iter().filter(|_| !open.may_delegate);
    let reading = CLAUDES_CHANGES.iter().filter(|_| open.reads_only);
    let not: Vec<&&str> = CLAUDES_WAKING.iter().chain(alone).chain(reading).collect();
    let options = json!({
        "settingSources": ["user"],
        "strictMcpConfig": true,
        "disallowedTools": not,
    });
    json!({"claudeCode": {"options": options}})
}

/// Variables by which an agent is held to the same, where the protocol has no word for it. `hook`: the
/// program that asks before each call, if that is needed.
pub(super) fn variables(
    name: &str,
    may_delegate: bool,
    hook: Option<&Path>,
) -> Vec<(&'static str, String)> {
    match name {
        "codex" => {
            let mut config = json!({"features": {"multi_agent": may_delegate}});
            if let Some(program) = hook {
                config["hooks"] = codexs_hooks(program);
            }
            vec![
                ("CODEX_CONFIG", config.to_string()),
                ("NO_BROWSER", "1".to_owned()),
                // Else a server in the user's settings that is called as ours is would be taken for it.
                ("DISABLE_MCP_CONFIG_FILTERING", "true".to_owned()),
            ]
        }
        "opencode" => {
            // Unless it is told to, it asks nothing at all.
            let task = if may_delegate { "allow" } else { "deny" };
            let config = json!({
                "tools": {"task": may_delegate},
                "permission": {"bash": "ask", "edit": "ask", "webfetch": "ask", "task": task},
            });
            vec![
                // It listens on a port, which other users of this machine reach.
                ("OPENCODE_SERVER_PASSWORD", Uuid::new_v4().to_string()),
                ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()),
                ("OPENCODE_CONFIG_CONTENT", config.to_string()),
            ]
        }
        "goose" => vec![("GOOSE_MODE", "approve".to_owned())],
        _ => Vec::new(),
    }
}

/// A hook before each call of Codex. It runs only hooks that its user has approved, which it knows by a
/// sum of what they are: the user who has a task done by Codex approves this one. If Codex reckons in
/// another way one day it does not run the hook, and is stopped at its first call.
fn codexs_hooks(program: &Path) -> Value {
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

/// Tools that an agent does not get, as it can only be held to that by an answer: goose asks nobody about
/// what its own sub-agents do.
pub(super) fn refused_tools(name: &str) -> &'static [&'static str] {
    match name {
        "goose" => &["mcp__summon__delegate"],
        _ => &[],
    }
}

/// Refuses a project whose files would decide what the agent runs, where nothing else can be done.
///
/// # Errors
/// With what to do.
pub(super) fn check_project(name: &str, folder: &Path, home: &Path) -> anyhow::Result<()> {
    let settings = match name {
        // Its settings say what runs, its rules what runs unasked, and there may be more by now: Codex
        // reads some of it without being told to trust the folder.
        "codex" => ".codex",
        "gemini" => ".gemini",
        // Their hooks and servers run unasked.
        "goose" => ".agents/plugins",
        _ => return Ok(()),
    };
    let found = settings_of_project(settings, folder, home);
    if name == "goose" {
        let Some(file) = found else {
            return Ok(());
        };
        bail!(
            "{} would decide what goose runs; remove the folder, or use another host",
            file.display()
        );
    }
    if name == "gemini" {
        let Some(file) = found.or_else(|| geminis_variables(folder, home)) else {
            return Ok(());
        };
        bail!(
            "{} would decide what Gemini CLI runs, or which server it asks; remove it, or use another \
             host",
            file.display()
        );
    }
    let Some(file) = found else {
        return Ok(());
    };
    let own = env::var_os("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
    if trusts(&own.join("config.toml"), folder) {
        return Ok(());
    }
    bail!(
        "{} would decide what Codex runs, and Codex has not been told to trust this folder; open it \
         in Codex once and trust it, or remove that",
        file.display()
    )
}

/// Beginnings of variables by which a file would decide what Gemini CLI, or what it starts, runs and asks.
const DECIDING: [&str; 8] = [
    "BASH_ENV",
    "CODE_ASSIST",
    "DYLD_",
    "GEMINI",
    "GIT_",
    "GOOGLE_",
    "LD_",
    "NODE_",
];

/// A file from which Gemini CLI would take such variables: it looks for one in the folder and in all above
/// it, and takes the first.
fn geminis_variables(folder: &Path, home: &Path) -> Option<PathBuf> {
    // What is in the home is the user's.
    let above = folder.ancestors().take_while(|above| *above != home);
    for above in above {
        let own = above.join(".gemini/.env");
        if fs::symlink_metadata(&own).is_ok() {
            return Some(own);
        }
        let file = above.join(".env");
        if fs::symlink_metadata(&file).is_ok() {
            // What cannot be read here, or only in part, may be read there.
            let text = read_short(&file).unwrap_or_else(|| "GEMINI".to_owned());
            return decides(&text).then_some(file);
        }
    }
    None
}

/// The text of a file, if it is not too long to be one of variables.
fn read_short(file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    let is_short = metadata.is_file() && metadata.len() <= LONGEST_OF_VARIABLES;
    let bytes = is_short.then(|| fs::read(file).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

const LONGEST_OF_VARIABLES: u64 = 1_000_000;

/// Whether a text of variables has such a name anywhere: what it takes for a line is its parser's to say.
fn decides(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| {
        let is_proxy = word.to_ascii_uppercase().ends_with("_PROXY");
        is_proxy || DECIDING.iter().any(|begins| word.starts_with(begins))
    })
}

/// An agent's settings in a folder or above it, up to the repository's.
fn settings_of_project(settings: &str, folder: &Path, home: &Path) -> Option<PathBuf> {
    for above in folder.ancestors() {
        let file = above.join(settings);
        let is_there = fs::symlink_metadata(&file).is_ok();
        // Codex's own sandbox leaves empty ones behind, also in temporary folders above the project.
        if above != home && is_there && !is_empty_folder(&file) {
            return Some(file);
        }
        if is_repository(above) {
            return None;
        }
    }
    None
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

fn is_empty_folder(path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    is_folder && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn is_repository(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".git")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_does_not_decide_what_codex_runs() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".git"))?;
        check_project("codex", &project, home.path())?;
        fs::create_dir(project.join(".codex"))?;
        check_project("codex", &project, home.path())?;
        for file in ["config.toml", "rules/default.rules", "hooks.json"] {
            let file = project.join(".codex").join(file);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(&file, "")?;
            let below = project.join("src");
            for folder in [&project, &below] {
                let checked = check_project("codex", folder, home.path());
                assert!(checked.is_err(), "{}", file.display());
            }
            check_project("claude", &project, home.path())?;
            fs::remove_dir_all(project.join(".codex"))?;
        }
        Ok(())
    }

    #[test]
    fn a_project_does_not_decide_what_gemini_runs_or_asks() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("code/project");
        fs::create_dir_all(project.join(".git"))?;
        let check = || check_project("gemini", &project, home.path());
        // The user's own.
        fs::create_dir(home.path().join(".gemini"))?;
        fs::write(home.path().join(".env"), "GEMINI_API_KEY=key")?;
        fs::write(project.join(".env"), "DATABASE_URL=here\nexport PORT=80\n")?;
        check()?;
        for line in [
            "GOOGLE_GEMINI_BASE_URL=http://evil.example",
            "export GEMINI_CLI_SYSTEM_SETTINGS_PATH: ./settings.json",
            "A=1\rNODE_OPTIONS=--require=./evil.js",
            "https_proxy=http://evil.example",
        ] {
            fs::write(project.join(".env"), line)?;
            assert!(check().is_err(), "{line}");
        }
        fs::remove_file(project.join(".env"))?;
        fs::write(project.with_file_name(".env"), "GOOGLE_API_KEY=theirs")?;
        assert!(check().is_err(), "above the project, too");
        fs::remove_file(project.with_file_name(".env"))?;
        for file in [
            "commands/c.toml",
            "extensions/e/e.json",
            ".env",
            "settings.json",
        ] {
            let file = project.join(".gemini").join(file);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(&file, "")?;
            assert!(check().is_err(), "{}", file.display());
            fs::remove_dir_all(project.join(".gemini"))?;
        }
        check()
    }

    #[test]
    fn plugins_of_a_project_do_not_run_in_goose() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".git"))?;
        fs::create_dir_all(project.join("src"))?;
        // What is in the home folder is the user's own.
        fs::create_dir_all(home.path().join(".agents/plugins"))?;
        check_project("goose", &project, home.path())?;
        fs::create_dir_all(project.join(".agents/plugins/theirs/hooks"))?;
        for folder in [project.clone(), project.join("src")] {
            let checked = check_project("goose", &folder, home.path());
            let why = checked.err().map(|error| error.to_string());
            let why = why.unwrap_or_default();
            assert!(why.contains("would decide what goose runs"), "{why}");
        }
        Ok(())
    }

    /// People run Codex in their home folder once, and are asked whether they trust it.
    #[test]
    fn to_trust_a_folder_is_not_to_trust_all_below() -> anyhow::Result<()> {
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
