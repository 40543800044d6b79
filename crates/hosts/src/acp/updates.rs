//! `session/update`: what happens in a session. What is not understood is no news.

use asyncagents_core::{
    agent::{Kind, ToolOutcome},
    budget::Cost,
};
use serde_json::{Value, json};

use crate::agent::{ToolNews, WireEvent, tool_label};

/// What an update tells.
pub(super) fn news(update: &Value) -> Vec<WireEvent> {
    let text = || update.pointer("/content/text").and_then(Value::as_str);
    match update["sessionUpdate"].as_str() {
        Some("agent_message_chunk") => {
            Vec::from_iter(text().map(|text| WireEvent::Text(text.to_owned())))
        }
        Some("agent_thought_chunk") => {
            Vec::from_iter(text().map(|text| WireEvent::Thought(text.to_owned())))
        }
        Some("tool_call" | "tool_call_update") => Vec::from_iter(tool(update).map(WireEvent::Tool)),
        Some("usage_update") => usage(update),
        _ => vec![WireEvent::Alive],
    }
}

/// Whether it is about what a sub-agent of the session does.
pub(super) fn is_of_sub_agent(update: &Value) -> bool {
    let above = update.pointer("/_meta/claudeCode/parentToolUseId");
    above.is_some_and(Value::is_string)
}

/// A piece of what was said to the agent before.
pub(super) fn said_to_it(update: &Value) -> Option<&str> {
    let is_said = update["sessionUpdate"].as_str() == Some("user_message_chunk");
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.filter(|_| is_said)
}

fn tool(update: &Value) -> Option<ToolNews> {
    let input = update.get("rawInput").filter(|input| has_something(input));
    let status = update["status"].as_str();
    let outcome = match status {
        Some("completed") => Some(ToolOutcome::Done(output(update))),
        Some("failed") => Some(ToolOutcome::Failed(output(update))),
        _ => None,
    };
    Some(ToolNews {
        id: call_id(update)?.to_owned(),
        name: news_of_name(update),
        input: input.map(Value::to_string),
        described: described(update),
        began: input.is_some() || status == Some("in_progress"),
        printed: printed(update).map(str::to_owned),
        outcome,
    })
}

/// No agent needs a longer one.
pub(super) const LONGEST_ID: usize = 500;

/// The agent's name for a call.
pub(super) fn call_id(update: &Value) -> Option<&str> {
    let id = update["toolCallId"].as_str();
    id.filter(|id| id.len() <= LONGEST_ID)
}

/// The name of a tool, if an update tells it: later ones have titles that say what the tool does.
fn news_of_name(update: &Value) -> Option<String> {
    if update["sessionUpdate"].as_str() == Some("tool_call") {
        return tool_name(update);
    }
    let told = ["name", "_meta", "rawInput"].map(|field| (field.to_owned(), update[field].clone()));
    tool_name(&Value::Object(told.into_iter().collect()))
}

/// The name of a tool: agents have no common place for it.
pub(super) fn tool_name(call: &Value) -> Option<String> {
    let text = |path: &str| call.pointer(path).and_then(Value::as_str);
    let of_server = || {
        let (server, tool) = server_and_tool(call)?;
        Some(match server {
            GOOSES_OWN => tool.to_owned(),
            server => format!("mcp__{server}__{tool}"),
        })
    };
    let named = text("/_meta/claudeCode/toolName").or_else(|| text("/name"));
    let kind = || text("/kind").filter(|kind| *kind != "other");
    let first_word = || text("/title")?.split_whitespace().next();
    of_server()
        .or_else(|| named.or_else(kind).or_else(first_word).map(str::to_owned))
        .map(|name| tool_label(&name))
        .filter(|name| !name.is_empty())
}

/// What goose calls the part of itself that has files and commands.
const GOOSES_OWN: &str = "developer";

/// What a call does, as far as the agent says. goose says only which tool it is.
pub(super) fn kind_of(call: &Value) -> Option<Kind> {
    match call["kind"].as_str() {
        Some("read" | "search") => Some(Kind::Read),
        Some("edit" | "delete" | "move") => Some(Kind::Edit),
        Some("execute") => Some(Kind::Run),
        // A command that Claude Code goes on to watch.
        _ if is_named_by_claude(call, "Monitor") => Some(Kind::Run),
        _ => match gooses_tool(call)? {
            (GOOSES_OWN, "shell") => Some(Kind::Run),
            (GOOSES_OWN, "write" | "edit") => Some(Kind::Edit),
            (GOOSES_OWN, "tree") => Some(Kind::Read),
            _ => None,
        },
    }
}

fn is_named_by_claude(call: &Value, tool: &str) -> bool {
    call.pointer("/_meta/claudeCode/toolName") == Some(&json!(tool))
}

/// The server and the tool of a call to an MCP server, where the agent says so beside its input. The
/// input alone are words of the model.
fn server_and_tool(call: &Value) -> Option<(&str, &str)> {
    gooses_tool(call).or_else(|| codexs_tool(call))
}

/// goose's own tools are in parts of it that have names, like servers.
fn gooses_tool(call: &Value) -> Option<(&str, &str)> {
    let tool = call.pointer("/_meta/goose/toolCall")?;
    Some((tool["extensionName"].as_str()?, tool["toolName"].as_str()?))
}

fn codexs_tool(call: &Value) -> Option<(&str, &str)> {
    if call.pointer("/_meta/is_mcp_tool_call") != Some(&Value::Bool(true)) {
        return None;
    }
    let input = &call["rawInput"];
    Some((input["server"].as_str()?, input["tool"].as_str()?))
}

/// Whether a call is one to our server of tools. Only what agents say beside titles and inputs counts:
/// those are words of the model, which would give itself a permission.
pub(super) fn is_of_server(call: &Value, server: &str) -> bool {
    let name = call.pointer("/_meta/claudeCode/toolName");
    let name = name.and_then(Value::as_str).unwrap_or_default();
    let is_named = name.starts_with(&format!("mcp__{server}__"));
    is_named || server_and_tool(call).is_some_and(|(known, _)| known == server)
}

/// Whether it is a piece of the conversation.
pub(super) fn is_said_or_done(update: &Value) -> bool {
    let what = update["sessionUpdate"].as_str().unwrap_or_default();
    what.ends_with("_chunk") || what.starts_with("tool_call")
}

/// Whether the agent says that its model has failed. What it says after that is why.
pub(super) fn is_failure(update: &Value) -> bool {
    let status = update.pointer("/_meta/codex/threadStatus/type");
    status.and_then(Value::as_str) == Some("systemError")
}

/// Why goose's model has failed: it says so in the model's place, as the last thing in a turn that has
/// ended well for all that the protocol knows.
pub(super) fn gooses_failure(update: &Value) -> Option<&str> {
    const BEGINS: &str = "Ran into this error: ";
    const ENDS: &str = "Please retry if you think this is a transient or recoverable error.";
    let text = said(update).filter(|_| update.pointer("/_meta/goose").is_some())?;
    let why = text.strip_prefix(BEGINS)?.strip_suffix(ENDS)?;
    Some(why.trim_end())
}

/// What an agent says, if it says something.
pub(super) fn said(update: &Value) -> Option<&str> {
    let is_said = update["sessionUpdate"].as_str() == Some("agent_message_chunk");
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.filter(|_| is_said)
}

fn has_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// What a call is about in the agent's words, where it does not say what the tool gets: Codex of what it
/// reads, Gemini CLI of everything.
fn described(update: &Value) -> Option<String> {
    if !update["rawInput"].is_null() {
        return None;
    }
    let title = update["title"].as_str()?;
    let places = update["locations"].as_array().into_iter().flatten();
    let paths = places.filter_map(|place| place["path"].as_str());
    let paths: Vec<&str> = paths.filter(|path| !title.contains(path)).collect();
    let mut said = json!({"title": title});
    if !paths.is_empty() {
        said["paths"] = json!(paths);
    }
    Some(said.to_string())
}

/// What Codex's commands print comes beside the rest, in pieces.
fn printed(update: &Value) -> Option<&str> {
    let said = ["terminal_output", "terminal_output_delta"];
    let mut said = said.iter().map(|key| &update["_meta"][key]["data"]);
    said.find_map(Value::as_str)
}

/// What came of a call: as texts, or as the agent has it.
fn output(update: &Value) -> String {
    let pieces = update["content"].as_array().into_iter().flatten();
    let texts = pieces.filter_map(|piece| piece.pointer("/content/text").and_then(Value::as_str));
    let texts: Vec<&str> = texts.collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    match &update["rawOutput"] {
        Value::Null => exit_code(&update["_meta"]["terminal_exit"]),
        Value::String(text) => text.clone(),
        // All that Codex says of a file that it has read.
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("exit_code") => {
            exit_code(&update["rawOutput"])
        }
        other => other.to_string(),
    }
}

/// How a command has ended, if not well.
fn exit_code(said: &Value) -> String {
    match said["exit_code"].as_i64() {
        None | Some(0) => String::new(),
        Some(code) => format!("exit code {code}"),
    }
}

fn usage(update: &Value) -> Vec<WireEvent> {
    let model = update
        .pointer("/_meta/_claude~1model")
        .and_then(Value::as_str);
    let mut news = Vec::from_iter(model.map(|model| WireEvent::Model(model.to_owned())));
    let dollars = update.pointer("/cost/amount").and_then(Value::as_f64);
    let is_money = |_: &f64| {
        update
            .pointer("/cost/currency")
            .is_none_or(|it| it == "USD")
    };
    let sum = dollars.filter(is_money).and_then(Cost::from_dollars);
    let used = update["used"].as_u64().map(|used| used.min(MOST_TOKENS));
    news.extend(used.map(WireEvent::Context));
    news.extend(sum.map(WireEvent::CostSum));
    news
}

/// No window holds more.
pub(super) const MOST_TOKENS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As OpenCode tells of a call.
    #[test]
    fn a_title_that_comes_later_is_no_name() {
        let first = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "read"});
        let later = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1",
            "kind": "read", "title": "project/notes.md"});
        let name = |update: &Value| tool(update).and_then(|news| news.name);
        assert_eq!(name(&first).as_deref(), Some("read"));
        assert_eq!(name(&later), None);
    }

    /// As Codex tells of a file that it reads and of a command.
    #[test]
    fn what_codex_reads_and_prints_is_known() {
        let file = "/project/notes.md";
        let first = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "name": "exec_command",
            "kind": "read", "title": format!("Read file '{file}'"), "status": "in_progress",
            "locations": [{"path": file}]});
        let read = tool(&first).and_then(|news| news.described);
        assert_eq!(
            read.as_deref(),
            Some(r#"{"title":"Read file '/project/notes.md'"}"#)
        );
        let piece = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1",
            "_meta": {"terminal_output_delta": {"data": "dry\n", "terminal_id": "1"}}});
        let piece = tool(&piece).and_then(|news| news.printed);
        assert_eq!(piece.as_deref(), Some("dry\n"));
        let ends = |code: u8| {
            let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1",
                "status": "completed", "rawOutput": {"exit_code": code}});
            tool(&end).and_then(|news| news.outcome)
        };
        assert_eq!(ends(0), Some(ToolOutcome::Done(String::new())));
        assert_eq!(ends(2), Some(ToolOutcome::Done("exit code 2".to_owned())));
        let more = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1",
            "status": "completed", "rawOutput": {"exit_code": 0, "stdout": "dry"}});
        let more = tool(&more).and_then(|news| news.outcome);
        let all = r#"{"exit_code":0,"stdout":"dry"}"#.to_owned();
        assert_eq!(more, Some(ToolOutcome::Done(all)));
    }

    /// A model may write anything into the input of a call, and agents make titles of it.
    #[test]
    fn a_model_cannot_say_that_a_call_is_one_of_ours() {
        let of_claude = json!({"_meta": {"claudeCode": {"toolName": "mcp__ours__task"}}});
        let of_codex = json!({"_meta": {"is_mcp_tool_call": true},
            "rawInput": {"server": "ours", "tool": "task", "arguments": {}}});
        let of_goose = json!({"_meta": {"goose": {"toolCall":
            {"extensionName": "ours", "toolName": "task"}}}});
        for call in [of_claude, of_codex, of_goose] {
            assert!(is_of_server(&call, "ours"), "{call}");
            assert!(!is_of_server(&call, "our"), "{call}");
        }
        let input = json!({"command": "rm -r .", "server": "ours", "tool": "task"});
        for tricky in [
            json!({"kind": "execute", "rawInput": input}),
            json!({"rawInput": input, "_meta": {"claudeCode": {"toolName": "mcp__other__run"}}}),
            json!({"kind": "other", "title": "mcp__ours__task rm -r ."}),
            json!({"name": "mcp__ours__task"}),
            json!({"rawInput": {"server": "other", "tool": "mcp__ours__task"},
                "_meta": {"is_mcp_tool_call": true}}),
        ] {
            assert!(!is_of_server(&tricky, "ours"), "{tricky}");
        }
        let shell = json!({"name": "bash", "rawInput": input});
        assert_eq!(tool_name(&shell).as_deref(), Some("bash"));
    }

    #[test]
    fn gooses_model_has_not_said_why_it_failed() {
        let text = "Ran into this error: Request failed: no credit.\n\nPlease retry if you think this \
            is a transient or recoverable error.";
        let mut update = json!({"sessionUpdate": "agent_message_chunk", "content": {"text": text}});
        assert_eq!(
            gooses_failure(&update),
            None,
            "another agent's model may say so"
        );
        update["_meta"] = json!({"goose": {"messageId": "msg_1"}});
        assert_eq!(gooses_failure(&update), Some("Request failed: no credit."));
    }

    /// It calls all of them `other`.
    #[test]
    fn what_gooses_tools_do_is_known_by_whose_they_are() {
        let call = |extension: &str, tool: &str| {
            let meta =
                json!({"goose": {"toolCall": {"extensionName": extension, "toolName": tool}}});
            let call = json!({"kind": "other", "title": "shell · ls", "_meta": meta});
            (tool_name(&call).unwrap_or_default(), kind_of(&call))
        };
        let own = |tool: &str| call("developer", tool);
        assert_eq!(own("shell"), ("shell".to_owned(), Some(Kind::Run)));
        assert_eq!(own("write"), ("write".to_owned(), Some(Kind::Edit)));
        assert_eq!(
            call("theirs", "shell"),
            ("mcp__theirs__shell".to_owned(), None)
        );
    }
}
