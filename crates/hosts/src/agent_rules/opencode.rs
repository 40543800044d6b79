//! OpenCode.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Held, modes};
use crate::acp::AcpSettings;

pub(super) fn acp_settings() -> AcpSettings {
    modes("build", Some("plan"))
}

pub(super) fn variables(held: Held<'_>) -> Vec<(&'static str, String)> {
    let permission = permission(held);
    let config = json!({
        "tools": {"task": false},
        "permission": permission,
        // Else what the user has allowed these agents would come first.
        "agent": {"build": {"permission": permission}, "plan": {"permission": permission}},
        // Else what is not permitted ends the turn, and there is no result.
        "experimental": {"continue_loop_on_deny": true},
    });
    vec![
        // It listens on a port, which other users of this machine reach.
        ("OPENCODE_SERVER_PASSWORD", Uuid::new_v4().to_string()),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()),
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
    ]
}

/// Unless it is told to, it asks nothing at all. Reading is free, unless there are rules about it; so are
/// our tools, which ask for themselves. The last rule that fits counts.
fn permission(held: Held<'_>) -> Value {
    let reads = if held.asks_to_read { "ask" } else { "allow" };
    json!({
        "*": "ask",
        "read": reads,
        "list": reads,
        "glob": reads,
        "grep": reads,
        "lsp": reads,
        "todoread": "allow",
        "todowrite": "allow",
        "asyncagents_*": "allow",
        "bash": "ask",
        "edit": "ask",
        "webfetch": "ask",
        "websearch": "ask",
        "skill": "ask",
        "external_directory": "ask",
        "doom_loop": "ask",
        // What its own sub-agents ask never comes out, and what they cost is not in its sum. Those that the
        // user has made are held to nothing here.
        "task": "deny",
    })
}
