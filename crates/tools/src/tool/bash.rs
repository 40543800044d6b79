//! `bash`: a command in the workspace, in the sandbox.

use std::{collections::HashSet, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Preview, ToolOutcome},
    arguments::Arguments,
};

use super::{
    Call, Tool, Work,
    command::{Ended, How, Rest, Running, environment, helper_kind, sandbox_and_limits},
};
use crate::{
    sandbox::{Report, Sandbox},
    settings::SandboxMode,
    workspace::Workspace,
};

pub(super) const TOOL: Tool = Tool {
    name: "bash",
    description: "Runs a command with bash in the workspace and gives what it prints. Each \
    call is a new shell without input or terminal: `cd`, variables and background processes end \
    with it. `timeout`: seconds, 120 by default, at most 600. For files the other tools are \
    better.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}"#,
    example: r#"{"command": "cargo test", "timeout": 300}"#,
    read,
};

const LONGEST: Duration = Duration::from_secs(600);
/// The kernel takes no longer argument.
pub(super) const LONGEST_COMMAND: usize = 128 * 1024 - 1;
/// Ends a process that makes a file too large.
const SIGXFSZ: i32 = 25;
/// What shells and programs print about such a file.
const TOO_LARGE: [&str; 2] = ["File size limit exceeded", "File too large"];

/// A command and how long it may take.
pub(crate) struct Bash {
    pub(crate) command: String,
    timeout: Option<Duration>,
}

fn read(arguments: &Arguments) -> Result<Call, String> {
    let command = arguments.filled_text("command")?;
    if command.contains('\0') {
        return Err(arguments.wrong("command", "contains a zero byte"));
    }
    if command.len() > LONGEST_COMMAND {
        let why = "is longer than 128 kB: write it to a file and run that";
        return Err(arguments.wrong("command", why));
    }
    let timeout = arguments.number("timeout", 1)?.map(Duration::from_secs);
    Ok(Call {
        preview: Some(Preview::Command(command.clone())),
        ..Work::Command(Bash { command, timeout }).into()
    })
}

impl Bash {
    /// Runs the command. When this future is dropped, the pipe to the supervisor closes, and the
    /// supervisor ends all processes.
    pub(crate) async fn run(
        &self,
        workspace: &Arc<Workspace>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        let (sandbox, limits) = match sandbox_and_limits(workspace).await {
            Ok(found) => found,
            Err(why) => return ToolOutcome::Failed(why),
        };
        let (limits, remark) = match (&sandbox, workspace.settings.sandbox) {
            (Sandbox::Enforced { .. }, _) => (Some(limits), None),
            (Sandbox::Missing { why }, SandboxMode::Required) => {
                return ToolOutcome::Failed(format!(
                    "bash is refused: the configuration requires a sandbox, and there is none: \
                     {why}"
                ));
            }
            (Sandbox::Missing { why }, SandboxMode::Auto | SandboxMode::Off) => {
                let first = workspace.memory.is_first("not sandboxed");
                (None, first.then(|| format!("[not sandboxed: {why}]\n")))
            }
            (Sandbox::Off, _) => (None, None),
        };
        let sandboxed = limits.is_some();
        let kind = helper_kind(workspace, limits);
        let settings = &workspace.settings;
        let timeout = self.timeout.unwrap_or(settings.bash_timeout);
        let timeout = timeout.min(longest(workspace));

        let ended = match Running::start(workspace, &kind, &self.command).await {
            Ok(running) => {
                running
                    .finish(timeout, settings.output_limit, progress)
                    .await
            }
            Err(error) => Err(error),
        };
        match ended {
            Ok(mut ended) => {
                workspace.helpers.prepare(kind);
                ended.output.insert_str(0, &remark.unwrap_or_default());
                outcome(ended, sandboxed, workspace)
            }
            Err(error) => ToolOutcome::Failed(format!("bash cannot be started: {error}")),
        }
    }
}

/// How long a call may ask for at most.
fn longest(workspace: &Workspace) -> Duration {
    LONGEST.max(workspace.settings.bash_timeout)
}

/// What the model gets.
fn outcome(ended: Ended, sandboxed: bool, workspace: &Workspace) -> ToolOutcome {
    let mut text = ended.output;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let too_large = match ended.how {
        How::Reported(Report::Killed(SIGXFSZ)) => true,
        How::Reported(Report::Exited(code)) if code == 128 + SIGXFSZ => true,
        _ => TOO_LARGE.iter().any(|words| text.contains(words)),
    };
    let remark = match ended.how {
        How::Reported(Report::Exited(0)) => {
            if text.is_empty() {
                text.push_str("[no output]\n");
            }
            return ToolOutcome::Done(text);
        }
        How::Reported(Report::Exited(code)) => format!("[exit code {code}]\n"),
        How::Reported(Report::Killed(signal)) => format!("[ended by {}]\n", signal_name(signal)),
        How::Reported(Report::Failed(why)) => format!("[not run: {why}]\n"),
        How::Reported(Report::Left(why)) => {
            format!("[it ended, but not all its processes: {why}]\n")
        }
        How::Reported(Report::Exceeded(limit)) => {
            format!("[ended because {limit}; all its processes were ended]\n")
        }
        How::Reported(Report::Lost(how)) => format!(
            "[its supervisor {how}; all its processes were ended, and the exit status of the command is \
             unknown]\n"
        ),
        How::TimedOut { after, rest } => {
            let ended = match rest {
                Rest::Ended => "all its processes were ended",
                Rest::BeingEnded => "its processes are still being ended",
                Rest::MayRun => "some of its processes may still run",
            };
            let longest = longest(workspace).as_secs();
            let after = after.as_secs_f64();
            format!("[timed out after {after} s; {ended}. `timeout` can be up to {longest} s]\n")
        }
        How::Lost => "[its supervisor has vanished; the exit status of the command is unknown]\n".to_owned(),
        How::BeingEnded => {
            "[its processes are still being ended; the exit status of the command is not known yet]\n".to_owned()
        }
    };
    let refused = [
        "Permission denied",
        "Operation not permitted",
        "Invalid cross-device",
    ]
    .iter()
    .any(|words| text.contains(words));
    text.push_str(&remark);
    if let Some(most) = workspace.settings.resources.file_size.filter(|_| too_large) {
        text.push_str(&format!("[no file may be larger than {most}]\n"));
    }
    if sandboxed && refused && workspace.memory.is_first("sandboxed") {
        text.push_str(&hint(workspace));
    }
    if let Some(name) = sandboxed.then(|| kept_back(workspace, &text)).flatten()
        && workspace.memory.is_first("variables")
    {
        text.push_str(&format!(
            "[{name} is set, but not passed on to sandboxed commands; the user can list it in \
                 `sandbox.variables`]\n"
        ));
    }
    ToolOutcome::Failed(text)
}

/// What the sandbox has to do with a refusal.
fn hint(workspace: &Workspace) -> String {
    let folders: Vec<_> = workspace
        .places
        .writable
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let network = if workspace.settings.network {
        " and use no local sockets"
    } else {
        " and have no network"
    };
    format!(
        "[commands are sandboxed: they can write only in {}{network}]\n",
        folders.join(", ")
    )
}

pub(crate) fn signal_name(signal: i32) -> String {
    let known = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        SIGXFSZ => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({known})")
}

/// A variable that a failed command speaks of and did not get.
fn kept_back(workspace: &Workspace, text: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: HashSet<&str> = text.split(|c| !is_word(c)).collect();
    let passed = environment(workspace, true);
    let is_passed = |name: &str| passed.iter().any(|(passed, _)| passed == name);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_never_passed = |name: &String| workspace.settings.secret_variables.contains(name);
    let kept = names.filter(|name| name.len() > 2 && !is_passed(name));
    let mut kept = kept.filter(|name| !is_never_passed(name));
    kept.find(|name| words.contains(name.as_str()))
}
