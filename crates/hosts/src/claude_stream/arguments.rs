//! What Claude Code is started with.

use std::path::Path;

use uuid::Uuid;

use crate::{
    agent::{OpenSession, Which},
    agent_rules::claude,
};

/// What makes it speak records.
const ALWAYS: [&str; 12] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    // Says when a message is not run because it was run before.
    "--replay-user-messages",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    // Only the server of ours, which it is told of later: those of the user's own sessions would
    // take the child for one.
    "--strict-mcp-config",
    "--permission-mode=default",
];

/// Files in which a project says how it wants to be worked on.
const INSTRUCTIONS: [&str; 3] = ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"];

/// The arguments for a session. `new` is the name of one that does not exist yet.
pub(super) fn arguments(open: &OpenSession, new: &Uuid, asks_to_read: bool) -> Vec<String> {
    let mut all: Vec<String> = ALWAYS.map(str::to_owned).into();
    let mut add = |name: &str, value: &str| all.push(format!("{name}={value}"));
    match &open.which {
        Which::New => add("--session-id", &new.to_string()),
        Which::Load(id) => add("--resume", id),
        Which::Fork(id) => {
            add("--resume", id);
            add("--session-id", &new.to_string());
        }
    }
    // A project's hooks would run, and could allow what nobody has allowed, also in a folder that the
    // user has told Claude Code to trust: that was said for sessions with a window.
    add("--setting-sources", "user");
    if let Some(model) = &open.model {
        add("--model", model);
    }
    add("--settings", &claude::settings(asks_to_read).to_string());
    add("--disallowedTools", &claude::disallowed(open).join(","));
    if matches!(open.which, Which::Fork(_)) {
        all.push("--fork-session".to_owned());
    }
    all
}

/// What it is told beside its own system prompt.
pub(super) fn instructions(open: &OpenSession) -> String {
    // Those of the project go with its settings, but are only a text.
    let of_project = project_instructions(&open.folder);
    let all = [open.instructions.clone(), of_project];
    Vec::from_iter(all.into_iter().flatten()).join("\n\n")
}

fn project_instructions(folder: &Path) -> Option<String> {
    let file = INSTRUCTIONS
        .into_iter()
        .find(|file| folder.join(file).is_file())?;
    Some(format!(
        "How this project wants to be worked on is in its file {file}: read it before you begin."
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(which: Which, folder: &Path) -> OpenSession {
        OpenSession {
            ours: "ses_1".into(),
            which,
            folder: folder.to_owned(),
            model: None,
            instructions: None,
            reads_only: false,
            may_delegate: true,
            has_answered: false,
            ends: None,
            look_for: Vec::new(),
        }
    }

    fn own(open: &OpenSession) -> Vec<String> {
        arguments(open, &Uuid::nil(), false).split_off(ALWAYS.len())
    }

    #[test]
    fn a_session_is_named_by_us_or_resumed() {
        let folder = tempfile::tempdir().expect("a folder");
        let nil = "--session-id=00000000-0000-0000-0000-000000000000";
        let first = |which| own(&open(which, folder.path())).swap_remove(0);
        assert_eq!(first(Which::New), nil);
        assert_eq!(first(Which::Load("one".to_owned())), "--resume=one");
        let fork = own(&open(Which::Fork("one".to_owned()), folder.path()));
        assert_eq!(fork[..2], ["--resume=one", nil]);
        assert_eq!(fork.last().map(String::as_str), Some("--fork-session"));
    }

    #[test]
    fn a_child_that_only_reads_has_no_tools_for_changes_and_one_at_the_limit_no_sub_agents() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = open(Which::New, folder.path());
        let tools = own(&session).pop().expect("tools");
        assert!(!tools.contains("Edit") && !tools.contains("Task"));
        session.reads_only = true;
        session.may_delegate = false;
        let tools = own(&session).pop().expect("tools");
        assert!(tools.starts_with("--disallowedTools=EnterPlanMode,"));
        assert!(tools.ends_with(",Task,Agent,Workflow,Edit,MultiEdit,Write,NotebookEdit"));
    }

    #[test]
    fn a_project_has_no_settings_and_may_have_instructions() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = open(Which::New, folder.path());
        session.instructions = Some("Be brief.".to_owned());
        session.model = Some("opus".to_owned());
        fs::write(folder.path().join("AGENTS.md"), "Speak softly.").expect("written");
        let trusted = format!(
            r#"{{"projects":{{{:?}:{{"hasTrustDialogAccepted":true}}}}}}"#,
            folder.path()
        );
        fs::write(folder.path().join(".claude.json"), trusted).expect("written");
        assert_eq!(
            own(&session)[1..3],
            ["--setting-sources=user", "--model=opus"]
        );
        assert_eq!(
            instructions(&session),
            "Be brief.\n\nHow this project wants to be worked on is in its file AGENTS.md: read it \
             before you begin."
        );
    }
}
