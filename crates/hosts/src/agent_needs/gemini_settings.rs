//! The settings of a Gemini CLI that is a child: of its user's only how it reaches its model. The rest would
//! let more pass than the user's rules here do (tools that are always allowed, servers that are trusted), or
//! take more from a project than a child should: it trusts the folder, as it starts no server elsewhere.

use serde_json::{Value, json};

/// What is the user's in them, at the top.
const KEPT: [&str; 5] = [
    "model",
    "modelConfigs",
    "privacy",
    "selectedAuthType",
    "telemetry",
];

/// There is no such file, so that none is taken in without a question, wherever a link leads.
const NO_FILE: &str = ".asyncagents-has-no-such-file";

/// The settings of a child of a user with these.
pub(super) fn settings_of_child(users: &str) -> String {
    let users: Value = serde_json::from_str(&without_comments(users)).unwrap_or_default();
    let mut own = json!({
        // What is in a file of variables would be in the environment of all that it runs.
        "advanced": {"ignoreLocalEnv": true},
        "context": {"fileName": NO_FILE},
        "hooksConfig": {"enabled": false},
        "skills": {"enabled": false},
    });
    for name in KEPT {
        if let Some(value) = users.get(name) {
            own[name] = value.clone();
        }
    }
    if let Some(auth) = users.pointer("/security/auth") {
        own["security"] = json!({"auth": auth});
    }
    own.to_string()
}

/// A text of JSON without the comments that people write into it.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let end = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else {
            let end = end_of_text(from);
            plain.push_str(&from[..end]);
            end
        };
        rest = &from[end..];
    }
    plain.push_str(rest);
    plain
}

/// Where a text in quotes ends that begins here, or one other sign.
fn end_of_text(from: &str) -> usize {
    if !from.starts_with('"') {
        return 1;
    }
    let mut is_escaped = false;
    for (at, byte) in from.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    from.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_of_its_user_how_the_model_is_reached() {
        let users = r#"{
            // "model": "none",
            "model": {"name": "a // b \" /* c"}, /* and
            "telemetry": 1, */
            "security": {"auth": {"selectedType": "oauth"}, "folderTrust": {"enabled": true}},
            "tools": {"allowed": ["run_shell_command"]},
            "mcpServers": {"mine": {"command": "x", "trust": true}},
            "advanced": {"ignoreLocalEnv": false},
            "hooks": {"BeforeTool": []}
        }"#;
        let own: Value = serde_json::from_str(&settings_of_child(users)).expect("JSON");
        let mut names: Vec<&String> = own.as_object().expect("fields").keys().collect();
        names.sort();
        let expected = [
            "advanced",
            "context",
            "hooksConfig",
            "model",
            "security",
            "skills",
        ];
        assert_eq!(names, expected);
        assert_eq!(own["model"]["name"], "a // b \" /* c");
        assert_eq!(own["security"], json!({"auth": {"selectedType": "oauth"}}));
        assert_eq!(own["advanced"]["ignoreLocalEnv"], true);
        for broken in ["", "[]", "{", "\"", "/*", "{\"model\": \"\\"] {
            let own: Value = serde_json::from_str(&settings_of_child(broken)).expect("JSON");
            assert_eq!(own["skills"]["enabled"], false, "{broken}");
        }
    }
}
