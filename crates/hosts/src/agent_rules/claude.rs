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

/// What is asked about beside that, where there are rules about reading.
const READS: [&str; 4] = ["Glob", "Grep", "LS", "Read"];

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
pub(crate) fn settings(asks_to_read: bool) -> Value {
    let mut asked = ASKED.to_vec();
    if asks_to_read {
        asked.extend(READS);
    }
    json!({
        "permissions": {"ask": asked},
        // Else nobody is asked about commands where the user has turned its own sandbox on.
        "sandbox": {"autoAllowBashIfSandboxed": false},
        // What is said is in its file before the model is asked, so that it is found there after a kill.
        "env": {"CLAUDE_CODE_EAGER_FLUSH": "1"},
    })
}

pub(super) fn acp_settings(asks_to_read: bool) -> AcpSettings {
    let meta: fn(&OpenSession) -> Value = if asks_to_read {
        |open| meta(open, true)
    } else {
        |open| meta(open, false)
    };
    AcpSettings {
        meta: Some(meta),
        puts_context_last: true,
        ..modes("default", Some("default"))
    }
}

/// A project's hooks and servers would run unasked.
fn meta(open: &OpenSession, asks_to_read: bool) -> Value {
    let options = json!({
        "settingSources": ["user"],
        "settings": settings(asks_to_read),
        "strictMcpConfig": true,
        "disallowedTools": disallowed(open),
        // Nobody reads what might be said next, and it is paid for.
        "promptSuggestions": false,
    });
    json!({"claudeCode": {"options": options}})
}
