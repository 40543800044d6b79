//! Runs a read-only command: nothing but the temporary folder is writable, and there is no network.

use std::{io, sync::Arc, time::Duration};

use super::{
    bash::{LONGEST_COMMAND, signal_name},
    command::{Ended, How, Running, helper_kind, sandbox_and_limits},
};
use crate::{
    sandbox::{Limits, Network, Report, Sandbox},
    workspace::Workspace,
};

/// How long a read-only command may take.
const READ_ONLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of what a read-only command prints is kept.
const READ_ONLY_OUTPUT: usize = 10_000;

/// Runs a read-only command and returns what it prints. `unsandboxed`: it may run without a sandbox.
pub(crate) async fn run_read_only(
    workspace: &Arc<Workspace>,
    command: &str,
    unsandboxed: bool,
) -> Result<String, String> {
    if command.contains('\0') || command.len() > LONGEST_COMMAND {
        return Err("it is no command".to_owned());
    }
    let (sandbox, limits) = sandbox_and_limits(workspace).await?;
    let limits = match sandbox {
        Sandbox::Enforced { .. } => Some(Limits {
            network: Network::Nothing,
            writable: vec![workspace.temporary.path().to_owned()],
            ..limits
        }),
        Sandbox::Missing { .. } | Sandbox::Off if unsandboxed => None,
        Sandbox::Missing { why } => return Err(format!("it cannot be sandboxed: {why}")),
        Sandbox::Off => return Err("it cannot be sandboxed: that is switched off".to_owned()),
    };
    let kind = helper_kind(workspace, limits);
    let cannot_start = |error: io::Error| format!("it cannot be started: {error}");
    let running = Running::start(workspace, &kind, command).await;
    let running = running.map_err(cannot_start)?;
    // Room for the remarks is taken from the limit.
    let ended = running
        .finish(READ_ONLY_TIMEOUT, READ_ONLY_OUTPUT + 1_000, &|_| {})
        .await;
    let Ended { output, how } = ended.map_err(cannot_start)?;
    let last = || output.lines().next_back().unwrap_or_default().to_owned();
    match how {
        How::Reported(Report::Exited(0)) => Ok(output),
        How::Reported(Report::Exited(code)) => Err(match last() {
            nothing if nothing.trim().is_empty() => format!("exit code {code}"),
            last => format!("exit code {code}: {last}"),
        }),
        How::TimedOut { after, .. } => Err(format!("it took longer than {after:?}")),
        How::Reported(Report::Killed(signal)) => Err(format!("ended by {}", signal_name(signal))),
        How::Reported(Report::Exceeded(limit)) => Err(format!("ended because {limit}")),
        How::Reported(Report::Failed(why) | Report::Left(why)) => Err(why),
        How::Reported(Report::Lost(_)) | How::Lost | How::BeingEnded => {
            Err("its exit status is unknown".to_owned())
        }
    }
}
