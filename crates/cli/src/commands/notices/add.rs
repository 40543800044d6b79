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
    if event == "SessionStart" {
        // What is said here is not in the history before the first prompt, so nobody could tell whether it
        // was lost: the hook of that prompt says it.
        if matches!(input.source.as_deref(), Some("startup" | "resume")) {
            manager.give_back_lost(&session).await?;
        }
        return Ok(Exit::Done);
    }
    let taken = manager.take_notices(&session, Asking::Running).await?;
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
