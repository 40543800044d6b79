//! OpenCode.

use serde_json::{Value, json};
use uuid::Uuid;

use super::modes;
use crate::acp::AcpSettings;

pub(super) fn acp_settings() -> AcpSettings {
    modes("build", Some("plan"))
}

pub(super) fn variables(may_delegate: bool) -> Vec<(&'static str, String)> {
    let config = json!({
        "tools": {"task": may_delegate},
        "permission": permission(may_delegate),
        // Else what the user has allowed these agents would come first.
        "agent": {
            "build": {"permission": permission(may_delegate)},
            "plan": {"permission": permission(may_delegate)},
        },
    });
    vec![
        // It listens on a port, which other users of this machine reach.
        ("OPENCODE_SERVER_PASSWORD", Uuid::new_v4().to_string()),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()),
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
    ]
}

/// Unless it is told to, it asks nothing at all. Reading is free; so are our tools, which ask for
/// themselves. The last rule that fits counts.
fn permission(may_delegate: bool) -> Value {
    json!({
        "*": "ask",
        "read": "allow",
        "list": "allow",
        "glob": "allow",
        "grep": "allow",
        "lsp": "allow",
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
        "task": if may_delegate { "allow" } else { "deny" },
    })
}
