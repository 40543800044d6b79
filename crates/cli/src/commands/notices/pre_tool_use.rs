//! `asyncagents hook pre-tool-use`: the hook before one of our tools, which hands over who calls and
//! approves the call.

use serde_json::{Map, Value, json};

use super::hook_input::{HookInput, McpServer};
use crate::{
    args::named,
    exit::{Exit, Failure},
    other_agents::OtherAgent,
    print,
};

/// Decide about a call of one of our tools; a hook runs this.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(in super::super) struct HookArgs {
    #[command(subcommand)]
    event: HookEvent,
}

#[derive(Debug, clap::Subcommand)]
enum HookEvent {
    /// Before a tool is called: say who calls, and approve it unless it answers for the user.
    PreToolUse {
        /// Agent whose hook runs this: claude-code or codex.
        #[arg(long, value_name = "AGENT", value_parser = named(OtherAgent::ALL))]
        host: OtherAgent,
    },
    /// Before a call of an agent that works on a task: ask whether it may be made.
    Ask,
}

impl HookArgs {
    /// Whether the worker of an agent in the sandbox is asked.
    pub(in super::super) fn asks(&self) -> bool {
        matches!(self.event, HookEvent::Ask)
    }
}

/// The tools that never are approved here: with them a model decides in its user's place.
const FOR_THE_USER: [&str; 2] = ["answer", "apply"];

/// Where a user names servers. A project's file may call a server of its own as ours is called, and what
/// is said of no server is not known to be ours.
const NAMED_BY_THE_USER: [&str; 4] = ["plugin", "user", "local", "dynamic"];

/// Between the server's name and the tool's.
const SEPARATOR: &str = "__";

pub(in super::super) fn hook(args: &HookArgs) -> Result<Exit, Failure> {
    let HookEvent::PreToolUse { host } = &args.event else {
        return super::ask();
    };
    let input = HookInput::read()?;
    let name = input.tool_name.as_deref().unwrap_or_default();
    let is_ours = input.mcp_server.as_ref().is_some_and(is_the_users);
    if *host != OtherAgent::ClaudeCode || !is_ours || !is_approved(name) {
        return Ok(Exit::Done);
    }
    let mut arguments: Map<String, Value> = input.tool_input.unwrap_or_default();
    let mut caller = json!({"session": input.session_id});
    if let (Some(agent), Some(caller)) = (input.agent_id, caller.as_object_mut()) {
        caller.insert("agent".to_owned(), agent.into());
    }
    arguments.insert("asyncagents_caller".to_owned(), caller);
    print::json_line(&json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "a background agent works within your own asyncagents settings",
            "updatedInput": arguments,
        }
    }))?;
    Ok(Exit::Done)
}

fn is_the_users(server: &McpServer) -> bool {
    NAMED_BY_THE_USER.contains(&server.source.as_str())
}

/// Whether it is one of our tools, as our server is called in a plugin or by itself, and one that may
/// be approved.
fn is_approved(name: &str) -> bool {
    let ours = ["mcp__plugin_asyncagents_asyncagents", "mcp__asyncagents"];
    let Some((server, tool)) = name.rsplit_once(SEPARATOR) else {
        return false;
    };
    ours.contains(&server) && !FOR_THE_USER.contains(&tool)
}
