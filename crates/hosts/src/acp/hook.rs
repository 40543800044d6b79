//! What a hook is given before a call (`PreToolUse`), as a question, and what it prints for the answer.

use asyncagents_core::{agent::Kind, question::Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::updates::LONGEST_ID;
use crate::agent::{Ask, Asked, AskedCall};

/// Tools with which an agent keeps its own notes.
const OWN_AFFAIRS: [&str; 7] = [
    "create_goal",
    "get_goal",
    "request_user_input",
    "tool_search",
    "update_goal",
    "update_plan",
    "wait",
];

/// How the names of files begin in a patch.
const FILES_OF_PATCH: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// A call that a hook asks about.
#[derive(Debug)]
pub(super) struct Hooked {
    /// The agent's name for the call.
    pub(super) call: String,
    /// Nothing, if nobody needs to be asked.
    pub(super) ask: Option<Ask>,
}

#[derive(Deserialize)]
struct WireInput {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: String,
}

/// Reads what the hook was given. Nothing if that is not what a hook is given.
pub(super) fn read(id: String, input: &[u8], tools: Option<&str>) -> Option<Hooked> {
    let WireInput {
        tool_name: tool,
        tool_input: input,
        tool_use_id: call,
    } = serde_json::from_slice(input).ok()?;
    if call.len() > LONGEST_ID {
        return None;
    }
    if OWN_AFFAIRS.contains(&tool.as_str()) {
        return Some(Hooked { call, ask: None });
    }
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let (kind, target, also) = match tool.as_str() {
        "Bash" => (Some(Kind::Run), text("command").to_owned(), Vec::new()),
        "view_image" => (Some(Kind::Read), text("path").to_owned(), Vec::new()),
        "apply_patch" => {
            let files = files_of(text("command"));
            let first = files.first().cloned();
            (Some(Kind::Edit), first.unwrap_or_default(), files)
        }
        _ => (None, String::new(), Vec::new()),
    };
    let details = input.as_object().map(details).unwrap_or_default();
    let is_ours = tools.is_some_and(|server| tool.starts_with(&format!("mcp__{server}__")));
    let call_of = AskedCall {
        tool,
        kind,
        // Of all tools that it asks about it is known what they get.
        is_exact: kind.is_some(),
        target,
        also,
        is_ours,
        details,
    };
    Some(Hooked {
        call,
        ask: Some(Ask {
            id,
            what: Asked::Call(call_of),
        }),
    })
}

/// Without blanks around a name: who applies the patch takes none for a part of it.
fn files_of(patch: &str) -> Vec<String> {
    let file = |line: &str| {
        let mut names = FILES_OF_PATCH.iter();
        let name = names.find_map(|begins| line.trim().strip_prefix(begins));
        name.map(|name| name.trim().to_owned())
    };
    patch.lines().filter_map(file).collect()
}

fn details(fields: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What the hook prints.
pub(super) fn printed(reply: &Reply) -> String {
    let why = match reply {
        Reply::Once | Reply::Always => return json!({}).to_string(),
        Reply::Reject { text } => text.as_deref(),
        Reply::Values(_) => None,
    };
    let decided = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": why.unwrap_or("it was not permitted"),
    });
    json!({"hookSpecificOutput": decided}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, input: &Value) -> Hooked {
        let input = json!({"tool_name": tool, "tool_input": input, "tool_use_id": "call_1"});
        read(
            "1".to_owned(),
            input.to_string().as_bytes(),
            Some("asyncagents"),
        )
        .expect("a call")
    }

    #[test]
    fn a_call_is_what_rules_are_about() {
        let call = |tool, input| match asked(tool, &input).ask.map(|ask| ask.what) {
            Some(Asked::Call(call)) => call,
            other => unreachable!("{other:?}"),
        };
        let command = call("Bash", json!({"command": "rm -rf x"}));
        assert_eq!(
            (command.kind, &*command.target),
            (Some(Kind::Run), "rm -rf x")
        );
        let patch =
            "*** Begin Patch\n*** Update File: a.rs\n *** Move to:  b.rs \n-x\n+y\n*** End Patch";
        let patch = call("apply_patch", json!({"command": patch}));
        assert_eq!(patch.kind, Some(Kind::Edit));
        assert_eq!(patch.also, ["a.rs", "b.rs"]);
        assert!(call("mcp__asyncagents__task", json!({})).is_ours);
        let foreign = call("mcp__other__task", json!({}));
        assert_eq!((foreign.kind, foreign.is_ours), (None, false));
        assert!(asked("update_plan", &json!({})).ask.is_none());
        assert!(read("1".to_owned(), b"{\"tool_name\": \"Bash\"}", None).is_none());
    }

    #[test]
    fn only_what_is_allowed_is_not_denied() {
        assert_eq!(printed(&Reply::Once), "{}");
        let text = Some("use the mock".to_owned());
        for reply in [Reply::Reject { text }, Reply::Values(Default::default())] {
            let printed = printed(&reply);
            assert!(
                printed.contains(r#""permissionDecision":"deny""#),
                "{printed}"
            );
        }
    }
}
