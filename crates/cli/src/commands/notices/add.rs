//! `asyncagents notices add`: the hook that adds to a turn what its session has not been told.

use asyncagents_runtime::{Asking, TakenNotice};
use serde_json::json;

use super::{super::CommandContext, hook_input::HookInput, host_process::HostProcess};
use crate::{
    exit::{Exit, Failure},
    other_agents::OtherAgent,
    print,
};

pub(super) async fn run(context: &CommandContext, host: OtherAgent) -> Result<Exit, Failure> {
    let input = HookInput::read()?;
    let session = input.session(host)?;
    if !context.config.db.is_file() {
        return Ok(Exit::Done);
    }
    let manager = context.manager()?;
    let event = &*input.hook_event_name;
    if host == OtherAgent::ClaudeCode
        && input.agent_id.is_none()
        && let Some(process) = HostProcess::of_claude_code()
    {
        manager.shows(process.name(), &session).await?;
    }
    let is_new_process = matches!(input.source.as_deref(), Some("startup" | "resume"));
    let asking = if event == "SessionStart" && is_new_process {
        Asking::Started
    } else {
        Asking::Running
    };
    let taken = manager.take_notices(&session, asking).await?;
    if taken.is_empty() {
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = taken.iter().map(TakenNotice::text).collect();
    let context = format!(
        "Notices of background agents (not the user's words):\n\n{}",
        texts.join("\n\n")
    );
    print::json_line(&json!({
        "hookSpecificOutput": {"hookEventName": event, "additionalContext": context}
    }))?;
    Ok(Exit::Done)
}
