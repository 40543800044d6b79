//! What Claude Code is started with.

use std::path::Path;

use uuid::Uuid;

use crate::agent::{OpenSession, Which};

/// What makes it speak records.
const ALWAYS: [&str; 13] = [
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
    // Plan mode would be for making plans: it is told to end with one, and nobody is asked.
    "--permission-mode=default",
    // A message is in its file before the model is asked, so that it is found there after a kill.
    r#"--settings={"env":{"CLAUDE_CODE_EAGER_FLUSH":"1"}}"#,
];

/// What needs a person before it, has effects after its turn, or reaches other sessions.
const NOT_FOR_CHILDREN: [&str; 10] = [
    "EnterPlanMode",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "ListAgents",
    "SendMessage",
];
const SUB_AGENTS: [&str; 3] = ["Task", "Agent", "Workflow"];
const CHANGES: [&str; 4] = ["Edit", "MultiEdit", "Write", "NotebookEdit"];

/// Files in which a project says how it wants to be worked on.
const INSTRUCTIONS: [&str; 3] = ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"];

/// The arguments for a session. `new` is the name of one that does not exist yet.
pub(super) fn arguments(open: &OpenSession, new: &Uuid) -> Vec<String> {
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
    let instructions = open.instructions.clone();
    // They go with the settings of the project, but are only a text.
    let of_project = project_instructions(&open.folder);
    let instructions = [instructions, of_project];
    let instructions = Vec::from_iter(instructions.into_iter().flatten()).join("\n\n");
    if !instructions.is_empty() {
        add("--append-system-prompt", &instructions);
    }
    if let Some(model) = &open.model {
        add("--model", model);
    }
    add("--disallowedTools", &disallowed(open).join(","));
    if matches!(open.which, Which::Fork(_)) {
        all.push("--fork-session".to_owned());
    }
    all
}

fn disallowed(open: &OpenSession) -> Vec<&'static str> {
    let mut tools = NOT_FOR_CHILDREN.to_vec();
    if !open.may_delegate {
        tools.extend(SUB_AGENTS);
    }
    if open.reads_only {
        tools.extend(CHANGES);
    }
    tools
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
            ends: None,
            look_for: Vec::new(),
        }
    }

    fn own(open: &OpenSession) -> Vec<String> {
        arguments(open, &Uuid::nil()).split_off(ALWAYS.len())
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
            own(&session)[1..4],
            [
                "--setting-sources=user",
                "--append-system-prompt=Be brief.\n\nHow this project wants to be worked on is in its \
                 file AGENTS.md: read it before you begin.",
                "--model=opus",
            ]
        );
    }
}
