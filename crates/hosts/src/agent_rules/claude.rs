//! Claude Code, by its adapter and by itself.

use serde_json::{Value, json};

use super::modes;
use crate::{acp::AcpSettings, agent::OpenSession};

/// What needs a person before it, has effects after its turn, or reaches other sessions. Plan mode is for
/// making plans: it is to end with one, and nobody is asked.
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

/// What is always asked about, whatever the user has allowed Claude Code in its own settings: our rules
/// answer first, and a profile that only reads is held to that by the answers.
const ASKED: [&str; 8] = [
    "Bash",
    "Edit",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// The tools that a session does not get.
pub(crate) fn disallowed(open: &OpenSession) -> Vec<&'static str> {
    let mut tools = NOT_FOR_CHILDREN.to_vec();
    if !open.may_delegate {
        tools.extend(SUB_AGENTS);
    }
    if open.reads_only {
        tools.extend(CHANGES);
    }
    tools
}

/// Its settings beside the user's.
pub(crate) fn settings() -> Value {
    json!({"permissions": {"ask": ASKED}})
}

pub(super) fn acp_settings() -> AcpSettings {
    AcpSettings {
        meta: Some(meta),
        ..modes("default", Some("default"))
    }
}

/// A project's hooks and servers would run unasked.
fn meta(open: &OpenSession) -> Value {
    let options = json!({
        "settingSources": ["user"],
        "settings": settings(),
        "strictMcpConfig": true,
        "disallowedTools": disallowed(open),
        // Nobody reads what might be said next, and it is paid for.
        "promptSuggestions": false,
    });
    json!({"claudeCode": {"options": options}})
}
