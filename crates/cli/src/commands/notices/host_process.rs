//! The process of the agent whose hook this is. When it is killed, its hooks are not.

use std::{env, time::Duration};

use asyncagents_hosts::opencode::process;
use tokio::time;

const CHECK: Duration = Duration::from_secs(1);

/// The process of the agent around a hook.
#[derive(Debug, Clone)]
pub(super) struct HostProcess(String);

impl HostProcess {
    /// As Claude Code says it.
    pub(super) fn of_claude_code() -> Option<Self> {
        let pid: u32 = env::var("CLAUDE_PID").ok()?.parse().ok()?;
        Some(Self(process::identity(pid)))
    }

    /// The one that has started this hook, where it does not say more: Codex.
    pub(super) fn parent() -> Option<Self> {
        let pid = rustix::process::getppid()?.as_raw_nonzero();
        let pid = u32::try_from(pid.get()).ok()?;
        Some(Self(process::identity(pid)))
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    pub(super) fn is_alive(&self) -> bool {
        process::is_alive(&self.0)
    }

    /// Returns when it has ended.
    pub(super) async fn ended(&self) {
        while self.is_alive() {
            time::sleep(CHECK).await;
        }
    }
}

/// Whether somebody sits before it: then a hook may wait in the background. In print mode a hook that
/// waits holds the turn.
pub(super) fn is_attended() -> bool {
    match env::var("CLAUDE_CODE_SESSION_ATTENDED").as_deref() {
        Ok("1") => true,
        Ok(_) => false,
        Err(_) => env::var("CLAUDE_CODE_ENTRYPOINT").is_ok_and(|entry| entry == "cli"),
    }
}
