//! Gemini CLI.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{AgentPlace, Held, modes, project_files::settings_of_project};
use crate::{
    acp::{AcpSettings, BeforeLoad},
    agent_needs::{keep_gemini_conversation, needs},
};

pub(super) fn acp_settings(place: AgentPlace<'_>) -> AcpSettings {
    AcpSettings {
        titles_are_commands: true,
        puts_context_last: true,
        before_load: Some(keeps_conversations(place)),
        ..modes("default", Some("plan"))
    }
}

/// In a folder that it does not trust it starts no servers, not even ours. What it would take from a project is
/// refused below, or is not in the settings that it has in the sandbox; without that its user's decide.
pub(super) fn variables(place: AgentPlace<'_>) -> Vec<(&'static str, String)> {
    let trust = ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned());
    Vec::from_iter(place.is_sandboxed.then_some(trust))
}

const SHELL: [&str; 1] = ["run_shell_command"];
const CHANGES: [&str; 5] = [
    "activate_skill",
    "mcp_*",
    "replace",
    "web_fetch",
    "write_file",
];
const READS: [&str; 5] = [
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
];
/// The first has all of them; before it, each was a tool of its own.
const SUB_AGENTS: [&str; 3] = ["invoke_agent", "codebase_investigator", "generalist"];

/// Rules in Gemini CLI's own words. They come before those of its user: what changes something is always
/// asked about, and is not done where it only reads.
pub(super) fn policy(held: Held<'_>) -> String {
    let changes = rule(&CHANGES, "ask_user", "modes = [\"default\"]\n");
    // With a pattern, or it would run commands unasked that it knows to read only.
    let shell = rule(
        &SHELL,
        "ask_user",
        "modes = [\"default\"]\nargsPattern = \"command\"\n",
    );
    let all = [&CHANGES[..], &SHELL].concat();
    let planned = rule(&all, "deny", "modes = [\"plan\"]\n");
    let reads = held.asks_to_read.then(|| rule(&READS, "ask_user", ""));
    let denied = (!held.may_delegate).then(|| rule(&SUB_AGENTS, "deny", ""));
    let always = [changes, shell, planned].into_iter();
    always
        .chain(reads)
        .chain(denied)
        .collect::<Vec<_>>()
        .join("\n")
}

fn rule(tools: &[&str], decision: &str, more: &str) -> String {
    format!("[[rule]]\ntoolName = {tools:?}\ndecision = \"{decision}\"\npriority = 900\n{more}")
}

/// Those of its children are in a home of their own.
fn keeps_conversations(place: AgentPlace<'_>) -> BeforeLoad {
    let own = needs("gemini").filter(|_| place.is_sandboxed);
    let set = own.map(|needs| {
        let files = needs.files(place.home, place.project, place.variable);
        files.variables
    });
    let mut set = set.unwrap_or_default().into_iter();
    let own = set.find(|(name, _)| name == "GEMINI_CLI_HOME");
    let own = own.map(|(_, own)| own);
    let is_apart = own.is_some();
    let own = own.or_else(|| (place.variable)("GEMINI_CLI_HOME"));
    let folder = own.map_or_else(|| place.home.to_owned(), PathBuf::from);
    let folder = folder.join(".gemini");
    Arc::new(move |session| keep_gemini_conversation(&folder, is_apart, session))
}

pub(super) fn check_project(place: AgentPlace<'_>) -> Result<(), String> {
    let settings = settings_of_project(".gemini", place.project, place.home);
    let found = settings.or_else(|| variables_of_project(place.project, place.home));
    if let Some(file) = found {
        return Err(format!(
            "{} would decide what Gemini CLI runs, or which server it asks; remove it, or use another \
             host",
            file.display()
        ));
    }
    match SYSTEM_POLICIES
        .map(Path::new)
        .into_iter()
        .find(|folder| has_policies(folder))
    {
        None => Ok(()),
        Some(folder) => Err(format!(
            "{} has rules of this machine, beside which Gemini CLI takes none that hold a child to yours; \
             use another host",
            folder.display()
        )),
    }
}

/// Where the rules of a machine are. Where there are some, it ignores others of that rank.
const SYSTEM_POLICIES: [&str; 2] = [
    "/etc/gemini-cli/policies",
    "/Library/Application Support/GeminiCli/policies",
];

fn has_policies(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| {
        Path::new(&name)
            .extension()
            .is_some_and(|ending| ending == "toml")
    })
}

/// Beginnings of variables by which a file would decide what Gemini CLI, or what it starts, runs and asks.
const DECIDING: [&str; 9] = [
    "BASH_ENV",
    "CODE_ASSIST",
    "DYLD_",
    "GEMINI",
    "GIT_",
    "GOOGLE_",
    "LD_",
    "NODE_",
    "RIPGREP_",
];

/// A file of a project with such variables.
fn variables_of_project(folder: &Path, home: &Path) -> Option<PathBuf> {
    let file = env_file(folder, home)?;
    // What cannot be read here, or only in part, may be read there.
    let text = read_short(&file).unwrap_or_else(|| "GEMINI".to_owned());
    decides(&text).then_some(file)
}

/// The file from which Gemini CLI would take variables: it looks for one in the folder and in all above
/// it, and takes the first. What is in the home is the user's.
fn env_file(folder: &Path, home: &Path) -> Option<PathBuf> {
    let above = folder.ancestors().take_while(|above| *above != home);
    let mut files = above.flat_map(|above| [above.join(".gemini/.env"), above.join(".env")]);
    files.find(|file| fs::symlink_metadata(file).is_ok())
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

#[cfg(test)]
mod tests {
    use super::{super::place, *};

    #[test]
    fn a_project_does_not_decide_what_it_runs_or_asks() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("code/project");
        fs::create_dir_all(project.join(".git"))?;
        let check = || check_project(place(home.path(), &project));
        // The user's own.
        fs::create_dir(home.path().join(".gemini"))?;
        fs::write(home.path().join(".env"), "GEMINI_API_KEY=key")?;
        fs::write(project.join(".env"), "DATABASE_URL=here\nexport PORT=80\n")?;
        assert_eq!(check(), Ok(()));
        for line in [
            "GOOGLE_GEMINI_BASE_URL=http://evil.example",
            "export GEMINI_CLI_SYSTEM_SETTINGS_PATH: ./settings.json",
            "A=1\rNODE_OPTIONS=--require=./evil.js",
            "https_proxy=http://evil.example",
            "RIPGREP_CONFIG_PATH=./rg",
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
        assert_eq!(check(), Ok(()));
        Ok(())
    }
}
