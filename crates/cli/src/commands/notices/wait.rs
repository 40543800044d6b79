//! `asyncagents notices wait`: the hook that wakes a session.

use asyncagents_core::id::SessionId;
use asyncagents_hosts::codex::rollout;
use asyncagents_runtime::{Asking, Awaited, Manager, TakenNotice};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    super::CommandContext,
    hook_input::HookInput,
    host_process::{HostProcess, is_attended},
    waiting_place::WaitingPlace,
};
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
    match host {
        OtherAgent::ClaudeCode => in_claude_code(context, &input, &session).await,
        OtherAgent::Codex => in_codex(context, &session).await,
    }
}

/// A main session with somebody before it is woken; the others are held until they know of all ends.
async fn in_claude_code(
    context: &CommandContext,
    input: &HookInput,
    session: &SessionId,
) -> Result<Exit, Failure> {
    let holds = input.agent_id.is_some() || !is_attended();
    let at_the_end = matches!(&*input.hook_event_name, "Stop" | "SubagentStop");
    if holds && !at_the_end {
        return Ok(Exit::Done);
    }
    let manager = context.manager()?;
    context.ensure_worker(&manager).await;
    let process = HostProcess::of_claude_code();
    // One that holds its turn is alone; of those that wake, a few are enough. The place is kept to the end.
    let waking = process.as_ref().filter(|_| !holds);
    let place = waking.map(|waking| WaitingPlace::take(&context.config.db, waking, session));
    match &place {
        Some(Ok(None)) => return Ok(Exit::Done),
        Some(Err(error)) => tracing::warn!(%error, "cannot tell how many hooks wait"),
        Some(Ok(Some(_))) | None => {}
    }
    let asking = if holds {
        Asking::Running
    } else {
        Asking::Waking
    };
    let taken = match wait(context, &manager, session, (asking, process)).await? {
        Awaited::Notices(taken) => taken,
        Awaited::NothingLeft => return Ok(Exit::Done),
    };
    print::remark(&format!("{}\n", texts(&taken)));
    Ok(Exit::Notice)
}

/// A run without a window ends when its turn does, and a sub-agent is heard no more, so these are held. In
/// a window a thread is told by its queue.
async fn in_codex(context: &CommandContext, session: &SessionId) -> Result<Exit, Failure> {
    if !is_held(session) {
        return Ok(Exit::Done);
    }
    let manager = context.manager()?;
    context.ensure_worker(&manager).await;
    let process = HostProcess::parent();
    match wait(context, &manager, session, (Asking::Running, process)).await? {
        Awaited::Notices(taken) => {
            let block = json!({"decision": "block", "reason": texts(&taken)});
            print::json_line(&block)?;
            Ok(Exit::Done)
        }
        Awaited::NothingLeft => Ok(Exit::Done),
    }
}

/// Whether this is the end of a turn that must not end before its thread knows of all ends.
fn is_held(session: &SessionId) -> bool {
    let home = OtherAgent::Codex.folder();
    let file = home.and_then(|home| rollout::find(&home, session.as_str()).ok().flatten());
    file.is_some_and(|file| rollout::is_told_by_hooks(&file).unwrap_or_default())
}

/// Waits for as long as the session can be told: its program is there, and shows it.
async fn wait(
    context: &CommandContext,
    manager: &Manager,
    session: &SessionId,
    (asking, process): (Asking, Option<HostProcess>),
) -> Result<Awaited, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.into());
    let mut terminate = signal(SignalKind::terminate()).map_err(machine)?;
    let can_be_told = async || {
        let Some(process) = &process else { return true };
        let shown = manager.shown_by(process.name()).await;
        let main = session.as_str().split('/').next().unwrap_or_default();
        let shows_it = |shown: SessionId| shown.as_str() == main;
        process.is_alive() && shown.ok().flatten().is_none_or(shows_it)
    };
    let ended = async {
        match &process {
            Some(process) => process.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        awaited = manager.await_notices(session, asking, can_be_told) => Ok(awaited?),
        () = context.keep_worker(manager) => Ok(Awaited::NothingLeft),
        () = ended => Ok(Awaited::NothingLeft),
        _ = terminate.recv() => Ok(Awaited::NothingLeft),
    }
}

fn texts(taken: &[TakenNotice]) -> String {
    let texts: Vec<String> = taken.iter().map(TakenNotice::text).collect();
    texts.join("\n\n")
}
